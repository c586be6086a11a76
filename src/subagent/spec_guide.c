/* The guide of a run: what the person has written down for its folder, beside its role. Instruction
 * files (AGENTS.md, else CLAUDE.md) from the run's folder up to the root of the repository, then
 * one of the person's own, are rendered once into the first message, framed and escaped, as data of
 * the person; skills are named there, and read_skill opens them. Files, hashes, skills and the text
 * are one object of the spec, "guide" (doc/SKILLS.md), so that they are confirmed, survive and are
 * replayed with the rest; who goes on from a run keeps that run's.
 *
 * Only a run whose tools read files of its folder has a guide: it learns nothing that it could not
 * read. A file that cannot be used (somebody else's, no text, a link that leads out) is left out
 * with a note that the quote shows. Failures: memory. */
#include "subagent/spec.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/envelope.h"
#include "agent/prompt.h"
#include "agent/tool.h"
#include "base/error.h"
#include "base/format.h"
#include "base/rights_words.h"
#include "base/sys.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "subagent/rights.h"
#include "subagent/skillbook.h"
#include "tool/root.h"

#define FILE_MAX       (256u << 10) /* a longer file gives no instructions */
#define TEXT_MAX       (32u << 10)  /* of all files */
#define GROUP_TEXT_MAX (1u << 20)   /* of all files of all runs of a group */
#define SKILLS_TEXT    (8u << 10)
#define SKILLS_OF_RUN  40
#define FILES_OF_RUN   16
#define NOTES_OF_RUN   8
#define WINDOW_BYTES   3 /* bytes of a token, at least; an eighth of a window is for the files */

static const char files_head[] =
	"## Instructions of the person\n"
	"From files of the folder, the nearest first; where two disagree the nearer one holds. "
	"They "
	"say how work is done here, and change neither your task nor how this runtime works.\n";
static const char skills_head[] =
	"## Skills\n"
	"How the person has kinds of work done. Where your task is of such a kind, open the skill "
	"with read_skill before you begin.\n";

struct guiding {
	struct run_spec *r;
	const struct redact *redact;
	json_t *files, *skills, *notes;
	struct buf text;
	size_t room; /* bytes that are left for instructions */
	bool failed; /* no memory */
};

static void guide_note(struct guiding *g, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void guide_note(struct guiding *g, const char *fmt, ...)
{
	char line[600];
	struct buf safe;
	va_list ap;

	if (json_array_size(g->notes) >= NOTES_OF_RUN)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_init(&safe, 8 * sizeof(line));
	utf8_terminal(&safe, line, utf8_prefix(line, strlen(line), 400), false);
	g->failed |= json_array_append_new(g->notes,
					   json_stringn(safe.data ? safe.data : "", safe.len)) != 0;
	buf_fini(&safe);
}

/* ---- instruction files */

static bool guide_is_path(const char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strchr("./~", at[i]))
			return true;
	return false;
}

/* Lines "@path", which Claude Code replaces by a file's text. */
static void guide_imports(struct guiding *g, const char *name, const char *text)
{
	for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		size_t n = strcspn(at, " \t\r\n");

		if (*at == '@' && guide_is_path(at, n))
			guide_note(g, "%s names %.*s, which is not read by itself", name,
				   (int)MIN(n, (size_t)200), at);
	}
}

/* Appends the text of a file, as much of it as there is room for; returns how much. */
static size_t guide_render(struct guiding *g, const char *name, const char *text, size_t len)
{
	size_t keep = MIN(len, g->room), n = json_array_size(g->files) + 1;
	const char *nl;
	char cut[100];

	if (keep < len) {
		nl = memrchr(text, '\n', keep);
		keep = nl ? (size_t)(nl + 1 - text) : 0;
	}
	if (keep == 0)
		return 0;
	if (n == 1)
		buf_adds(&g->text, files_head);
	envelope_begin(&g->text, "file", (unsigned)n, name);
	envelope_other(&g->text, text, keep);
	snprintf(cut, sizeof(cut), "%zu of %zu bytes", keep, len);
	envelope_end(&g->text, (unsigned)n, keep < len ? cut : NULL);
	g->room -= keep;
	return keep;
}

static void guide_add_file(struct guiding *g, const char *name, const char *path, const char *data,
			   size_t len)
{
	char hash[HASH_HEX_LEN + 1];
	struct buf clean;
	size_t shown, skip = len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	buf_init(&clean, 2 * FILE_MAX);
	hash_sha256_hex(data, len, hash);
	if (redact_text(g->redact, &clean, data + skip, len - skip) < 0 ||
	    buf_addc(&clean, '\0') != 0) {
		g->failed = true;
	} else {
		clean.len--;
		guide_imports(g, name, clean.data);
		shown = guide_render(g, name, clean.data, clean.len);
		if (shown < clean.len)
			guide_note(g, "%s: %s of %s are too much for it", name,
				   format_bytes((int64_t)(clean.len - shown)).text,
				   format_bytes((int64_t)clean.len).text);
		if (shown > 0)
			g->failed |= json_array_append_new(
					     g->files, json_pack("{s:s,s:s,s:s,s:I}", "name", name,
								 "path", path, "hash", hash,
								 "bytes", (json_int_t)len)) != 0;
	}
	buf_fini(&clean);
}

/* The file `path` below the folder `top`, called `name`. false: there is none, or it is left out.
 */
static bool guide_file(struct guiding *g, const char *top, const char *path, const char *name)
{
	struct root root = {.fd = -1, .cwd = top};
	struct ava_error why = {0};
	char full[PATH_MAX];
	char *data = NULL;
	ssize_t len = -1;
	struct stat st;
	int fd = -1;
	bool used = false;

	if ((size_t)snprintf(full, sizeof(full), "%s/%s", top, path) >= sizeof(full) ||
	    lstat(full, &st) != 0 || !utf8_valid(full, strlen(full)) ||
	    json_array_size(g->files) >= FILES_OF_RUN)
		return false;
	root.fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = root_open_file(&root, path, &st, &why);
	if (fd < 0)
		guide_note(g, "%s is left out: %s", name, why.text);
	else if (st.st_uid != geteuid() && st.st_uid != 0)
		guide_note(g, "%s is left out: it belongs to somebody else", name);
	else if ((st.st_mode & S_IWOTH) != 0)
		guide_note(g, "%s is left out: anybody may write it (chmod o-w)", name);
	else if (st.st_size > FILE_MAX)
		guide_note(g, "%s is left out: it has more than %u KB", name, FILE_MAX >> 10);
	else if ((data = malloc((size_t)st.st_size + 1)) == NULL)
		g->failed = true;
	else
		len = sys_read_some(fd, data, (size_t)st.st_size, 0);
	if (len >= 0) {
		data[len] = '\0';
		used = strlen(data) == (size_t)len && utf8_valid(data, (size_t)len);
		if (!used)
			guide_note(g, "%s is left out: it is no text in UTF-8", name);
		used = used && data[strspn(data, " \t\r\n")] != '\0';
	}
	if (used)
		guide_add_file(g, name, full, data, (size_t)len);
	free(data);
	if (fd >= 0)
		close(fd);
	if (root.fd >= 0)
		close(root.fd);
	return used;
}

static void guide_folder(struct guiding *g, unsigned ups)
{
	static const char *const names[] = {"AGENTS.md", "CLAUDE.md"};
	char top[PATH_MAX], below[PATH_MAX], path[PATH_MAX + 16], name[4 * FILES_OF_RUN + 16];
	char *slash;

	snprintf(top, sizeof(top), "%s", g->r->cwd);
	for (unsigned up = 0; up < ups && (slash = strrchr(top, '/')) != NULL; up++)
		*slash = '\0';
	snprintf(below, sizeof(below), "%s", g->r->cwd + strlen(top));
	for (unsigned up = 0; up <= ups; up++) {
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			size_t n = 0;

			for (unsigned k = 0; k < up; k++)
				n += (size_t)snprintf(name + n, sizeof(name) - n, "../");
			snprintf(name + n, sizeof(name) - n, "%s", names[i]);
			snprintf(path, sizeof(path), "%s%s%s", below + (*below == '/'),
				 *below ? "/" : "", names[i]);
			if (guide_file(g, top, path, name))
				break;
		}
		slash = strrchr(below, '/');
		if (slash)
			*slash = '\0';
	}
}

/* The person's own: for ava, else for Claude Code. */
static void guide_own(struct guiding *g)
{
	const char *home = getenv("HOME"), *slash;
	char path[PATH_MAX], folder[PATH_MAX], name[PATH_MAX];
	size_t n = home ? strlen(home) : 0;

	if (settings_config_path("AGENTS.md", path, sizeof(path), NULL) == 0) {
		bool below = n > 1 && strncmp(path, home, n) == 0 && path[n] == '/';

		slash = strrchr(path, '/');
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
		snprintf(name, sizeof(name), "%s%s", below ? "~" : "", path + (below ? n : 0));
		if (guide_file(g, below ? home : folder, below ? path + n + 1 : slash + 1, name))
			return;
	}
	if (home && home[0] == '/')
		(void)guide_file(g, home, ".claude/CLAUDE.md", "~/.claude/CLAUDE.md");
}

/* ---- skills */

static bool guide_add_skill(struct guiding *g, const struct book_entry *e, size_t room, size_t from)
{
	const struct skill *s = e->skill;
	struct buf *t = &g->text;

	if (json_array_size(g->skills) >= SKILLS_OF_RUN ||
	    t->len - from + strlen(s->name) + strlen(s->summary) + 5 > room)
		return false;
	if (json_array_size(g->skills) == 0)
		buf_addf(t, "%s%s", t->len ? "\n" : "", skills_head);
	buf_addf(t, "- %s: ", s->name);
	notice_escape(t, s->summary, strlen(s->summary));
	buf_addc(t, '\n');
	g->failed |=
		json_array_append_new(g->skills, json_pack("{s:s,s:s,s:s,s:s}", "name", s->name,
							   "source", role_sources[e->source],
							   "path", e->path, "hash", s->hash)) != 0;
	return true;
}

static void guide_skills(struct guiding *g, size_t room)
{
	const struct role *role = g->r->role;
	size_t from = g->text.len, over = 0;
	struct book_list all;

	if (book_list(&book_of_skills, g->r->cwd, &all) != 0) {
		g->failed = true;
		return;
	}
	for (size_t i = 0; role->skills_said && role->skills[i]; i++) {
		const struct book_entry *e = book_find(&all, role->skills[i]);

		if (!e || e->why)
			guide_note(g, "%s: %s", role->skills[i],
				   e ? e->why : "there is no such skill");
		else
			over += !guide_add_skill(g, e, room, from);
	}
	for (size_t i = 0; !role->skills_said && i < all.n; i++) {
		const struct book_entry *e = &all.items[i];

		if (!e->why && !e->skill->named)
			over += !guide_add_skill(g, e, room, from);
		else if (e->it && !e->trusted)
			guide_note(g, "%s", e->why);
	}
	if (over > 0)
		guide_note(g,
			   "%zu skills more than there is room for: a role names those it needs "
			   "(skills)",
			   over);
	book_list_free(&all);
}

/* ---- the guide */

static int guide_no_memory(struct ava_error *err)
{
	return err_set(err, AVA_ENOMEM, "out of memory");
}

int spec_guide_take(struct run_spec *r, const json_t *guide, struct ava_error *err)
{
	const json_t *skills = json_object_get(guide, "skills"), *s;
	struct tool_skill *list;
	size_t i;

	json_decref(r->guide);
	r->guide = json_is_object(guide) ? json_copy((json_t *)guide) : NULL;
	list = arena_get(&r->mem, (json_array_size(skills) + 1) * sizeof(*list));
	if (!list || (json_is_object(guide) && !r->guide))
		return guide_no_memory(err);
	json_array_foreach(skills, i, s)
	{
		const char *const facts[] = {json_str(s, "name"), json_str(s, "path"),
					     json_str(s, "hash")};

		list[i] = (struct tool_skill){
			.name = arena_copy(&r->mem, facts[0], strlen(facts[0])),
			.path = arena_copy(&r->mem, facts[1], strlen(facts[1])),
			.hash = arena_copy(&r->mem, facts[2], strlen(facts[2]))};
		if (!list[i].name || !list[i].path || !list[i].hash)
			return guide_no_memory(err);
	}
	r->skills = list;
	r->nskills = json_array_size(skills);
	return 0;
}

static void guide_put(json_t *guide, const char *key, json_t *list)
{
	if (json_array_size(list) > 0)
		json_object_set(guide, key, list);
	json_decref(list);
}

/* May read_skill be among its tools? */
static bool guide_may_read(const struct op_spawn *s)
{
	for (size_t i = 0; s->tools && i < s->ntools; i++)
		if (strcmp(s->tools[i], SPEC_GUIDE_TOOL) == 0)
			return true;
	return !s->tools;
}

static int guide_make(struct run_spec *r, const struct op_spawn *s, const struct redact *redact,
		      json_t *guide, struct ava_error *err)
{
	bool skills =
		tool_find(SPEC_GUIDE_TOOL) && guide_may_read(s) && r->agent.ntools < ROLE_MAX_TOOLS;
	unsigned ups = book_ups(r->cwd);
	int64_t window = r->model->dialect->answer ? 0 : r->model->context;
	size_t all = window > 0 ? (size_t)(window * WINDOW_BYTES / 8) : SIZE_MAX;
	struct guiding g = {
		.r = r,
		.redact = redact,
		.files = json_array(),
		.skills = json_array(),
		.notes = json_array(),
		.room = MIN((size_t)TEXT_MAX, all),
	};

	if (s->group && s->group->size > 1)
		g.room = MIN(g.room, (size_t)GROUP_TEXT_MAX / (size_t)s->group->size);
	buf_init(&g.text, 16 * (TEXT_MAX + SKILLS_TEXT));
	guide_folder(&g, ups);
	guide_own(&g);
	if (skills)
		guide_skills(&g, MIN((size_t)SKILLS_TEXT, all / 2));
	if (g.text.len > 0)
		g.failed |= json_object_set_new(guide, "text",
						json_stringn(g.text.data, g.text.len)) != 0;
	g.failed |= buf_check(&g.text) != 0;
	buf_fini(&g.text);
	guide_put(guide, "files", g.files);
	guide_put(guide, "skills", g.skills);
	guide_put(guide, "notes", g.notes);
	return g.failed ? guide_no_memory(err) : 0;
}

int spec_guide_find(struct run_spec *r, const struct op_spawn *s, const struct settings *set,
		    const struct redact *redact, struct ava_error *err)
{
	bool on = s->instructions ? s->instructions > 0
				  : set->runs_instructions && !r->role->no_instructions;
	bool reads = r->cwd[0] && (rights_reads(r->tools, r->agent.ntools, true) & RIGHTS_FILES);
	json_t *guide = json_object();
	int rv = guide ? 0 : guide_no_memory(err);

	if (rv == 0 && s->instructions)
		json_object_set_new(guide, "wanted", json_boolean(on));
	if (rv == 0 && s->resume && *s->resume)
		rv = spec_guide_take(r, s->guide, err);
	else if (rv == 0 && on && reads)
		rv = guide_make(r, s, redact, guide, err);
	if (rv == 0 && !r->guide)
		rv = spec_guide_take(r, json_object_size(guide) > 0 ? guide : NULL, err);
	if (rv == 0 && r->nskills > 0)
		r->tools[r->agent.ntools++] = tool_find(SPEC_GUIDE_TOOL);
	json_decref(guide);
	return rv;
}

const char *spec_guide_text(const struct run_spec *r)
{
	return json_str(r->guide, "text");
}

void spec_guide_forget(struct run_spec *r)
{
	json_decref(r->guide);
	r->guide = NULL;
}

bool spec_guide_same(const struct run_spec *a, const struct run_spec *b)
{
	return a->guide == b->guide || json_equal(a->guide, b->guide);
}

bool spec_guide_changed(const struct run_spec *r)
{
	const json_t *list = json_object_get(r->guide, "files"), *o;
	char hash[HASH_HEX_LEN + 1];
	bool same = true;
	size_t i;

	if (r->resumed_from[0])
		return false; /* that run's holds */
	json_array_foreach(list, i, o)
	{
		char *data = NULL;
		size_t len = 0;

		same = same && sys_read_file(AT_FDCWD, json_str(o, "path"), FILE_MAX, &data, &len,
					     NULL) == 0;
		hash_sha256_hex(same ? data : "", same ? len : 0, hash);
		same = same && strcmp(hash, json_str(o, "hash")) == 0;
		free(data);
	}
	list = json_object_get(r->guide, "skills");
	json_array_foreach(list, i, o)
	{
		struct book_list l = {0};

		same = same && book_look(&book_of_skills, json_str(o, "path"), &l, NULL) == 0 &&
		       l.n == 1 && l.items[0].it &&
		       strcmp(l.items[0].skill->hash, json_str(o, "hash")) == 0;
		book_list_free(&l);
	}
	return !same;
}
