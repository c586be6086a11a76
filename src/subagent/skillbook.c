/* Folders of skills and what their SKILL.md say. What a skill's files hold is read anew when the
 * kernel says that one of them has changed (skill_stamp); a bad skill is an entry with a reason
 * and takes no other down. Front matter is read as generously as that of roles: other programs'
 * keys are noted, not refused.
 *
 * One lock, for several runtimes in one process. Failures: memory. */
#include "subagent/skillbook.h"

#include <ava.h>
#include <ctype.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/util.h"
#include "codec/front.h"
#include "codec/utf8.h"
#include "subagent/rolebook.h"
#include "tool/skill.h"

#define NAMES_MAX 4096 /* names of a folder that are looked at */
#define KEPT_MAX  1024 /* skills that are remembered */
#define PATH_MOST 4096
#define UPS_MAX   16
#define NOTES_MAX 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A skill as it was read. */
static struct kept_skill {
	struct skill skill; /* without source and trust */
	uint64_t stamp;
} * kept;
static size_t nkept, kept_cap;

/* ---- SKILL.md */

static enum front_key skill_key(const char *key, size_t len)
{
	static const char *const known[] = {
		"name",          "license", "allowed-tools",           "metadata",
		"compatibility", "version", "disable-model-invocation"};

	if (len == 11 && strncasecmp(key, "description", len) == 0)
		return FRONT_TEXT;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strlen(known[i]) == len && strncasecmp(key, known[i], len) == 0)
			return FRONT_FIELD;
	return FRONT_UNKNOWN;
}

/* "PDF Tools" to "pdf-tools"; "": nothing of it can be a name. */
static void skill_name(const char *text, char out[SKILL_NAME_MAX + 1])
{
	size_t n = 0;

	for (; *text && n < SKILL_NAME_MAX; text++) {
		bool word = isalnum((unsigned char)*text) || strchr("._-", *text);

		if (word && (n > 0 || isalnum((unsigned char)*text)))
			out[n++] = (char)tolower((unsigned char)*text);
		else if (!word && n > 0 && out[n - 1] != '-')
			out[n++] = '-';
	}
	while (n > 0 && out[n - 1] == '-')
		n--;
	out[n] = '\0';
}

/* The description on one line. */
static char *skill_summary(const char *text)
{
	struct buf line, safe;
	char *out;
	size_t cut;

	buf_init(&line, SKILL_TEXT_MAX);
	buf_init(&safe, 8 * SKILL_TEXT_MAX);
	for (; *text; text++)
		if (!strchr(" \t\r\n\f\v", *text))
			buf_addc(&line, *text);
		else if (line.len > 0 && line.data[line.len - 1] != ' ')
			buf_addc(&line, ' ');
	while (line.len > 0 && line.data[line.len - 1] == ' ')
		line.len--;
	cut = utf8_prefix(line.data ? line.data : "", line.len, SKILL_SUMMARY_MAX);
	utf8_terminal(&safe, line.data ? line.data : "", cut, false);
	buf_adds(&safe, cut < line.len ? "…" : "");
	out = buf_take(&safe, NULL);
	buf_fini(&line);
	buf_fini(&safe);
	return out;
}

static void skill_notes(struct skill *s, const struct yaml_node *root, unsigned left)
{
	struct buf b;

	buf_init(&b, NOTES_MAX);
	for (const struct yaml_node *n = root->first; n && b.len < NOTES_MAX - 200; n = n->next) {
		size_t len = strlen(n->key);

		if (len == 13 && strncasecmp(n->key, "allowed-tools", len) == 0)
			buf_addf(&b, "%u: allowed-tools: tools are the run's, never a file's\n",
				 n->key_line);
		else if (skill_key(n->key, len) == FRONT_UNKNOWN)
			buf_addf(&b, "%u: %.40s: there is no such field, it is not used\n",
				 n->key_line, n->key);
	}
	if (left > 0)
		buf_addf(&b,
			 "0: %u link%s or other entries that are no plain files are no part "
			 "of it\n",
			 left, left == 1 ? "" : "s");
	s->notes = buf_take(&b, NULL);
	buf_fini(&b);
}

static const struct yaml_node *skill_field(const struct yaml_node *root, const char *name)
{
	for (const struct yaml_node *n = root->first; n; n = n->next)
		if (strcasecmp(n->key, name) == 0 && n->kind == YAML_SCALAR && !yaml_is_null(n))
			return n;
	return NULL;
}

/* Fills name, summary and notes from the text of SKILL.md. */
static int skill_read(struct skill *s, const struct skill_file *f, unsigned left,
		      struct ava_error *err)
{
	const struct yaml_node *name, *description, *named;
	char path[PATH_MOST], said[SKILL_NAME_MAX + 1] = "";
	const char *folder = strrchr(s->path, '/');
	struct front front = {0};
	int rv;

	snprintf(path, sizeof(path), "%s/%s", s->path, f->path);
	rv = front_read(&front, path, f->data, f->len, SKILL_TEXT_MAX, skill_key, err);
	if (rv == 0 && yaml_root(front.yaml)->kind != YAML_MAP)
		rv = err_set(err, AVA_EINVAL,
			     "%s:%u: the front matter must be lines such as name: my-skill", path,
			     front.line + 1);
	if (rv == 0) {
		name = skill_field(yaml_root(front.yaml), "name");
		description = skill_field(yaml_root(front.yaml), "description");
		skill_name(name ? name->text : folder ? folder + 1 : "", said);
		s->summary = skill_summary(description ? description->text : "");
		if (!said[0])
			rv = err_set(err, AVA_EINVAL,
				     "%s:%u: nothing of its name can be a name here: letters, "
				     "digits, - and _",
				     path, name ? name->line : 1);
		else if (s->summary && !s->summary[0])
			rv = err_set(err, AVA_EINVAL,
				     "%s:%u: the description is missing: write what it is for",
				     path, front.line);
		skill_notes(s, yaml_root(front.yaml), left);
		named = skill_field(yaml_root(front.yaml), "disable-model-invocation");
		s->named = named && strcasecmp(named->text, "true") == 0;
		s->name = strdup(said);
		if (!s->summary || !s->notes || !s->name)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
	}
	front_fini(&front);
	return rv;
}

/* ---- what was read before */

static void skill_fini(struct skill *s)
{
	free(s->name);
	free(s->summary);
	free(s->path);
	free(s->notes);
	free(s->why);
	*s = (struct skill){0};
}

static char *skill_text_copy(const char *s, bool *ok)
{
	char *copy = s ? strdup(s) : NULL;

	*ok = *ok && (copy || !s);
	return copy;
}

static bool skill_copy(struct skill *to, const struct skill *s)
{
	bool ok = true;

	*to = *s;
	to->name = skill_text_copy(s->name, &ok);
	to->summary = skill_text_copy(s->summary, &ok);
	to->path = skill_text_copy(s->path, &ok);
	to->notes = skill_text_copy(s->notes, &ok);
	to->why = skill_text_copy(s->why, &ok);
	if (!ok)
		skill_fini(to);
	return ok;
}

static void keep_skill(const struct skill *s, uint64_t stamp)
{
	size_t i = 0;

	while (i < nkept && strcmp(kept[i].skill.path, s->path) != 0)
		i++;
	if (i == KEPT_MAX)
		i = (size_t)(stamp % KEPT_MAX); /* any one gives way */
	if (i < nkept)
		skill_fini(&kept[i].skill);
	else if (!ARRAY_ROOM(kept, kept_cap, nkept + 1))
		return;
	if (skill_copy(&kept[i].skill, s)) {
		kept[i].stamp = stamp;
		nkept = MAX(nkept, i + 1);
	} else if (i < nkept) {
		kept[i] = kept[--nkept];
	}
}

/* The skill in the folder `path`. false: no memory. */
static bool skill_at(const char *path, struct skill *out)
{
	const struct skill_file *main_file;
	struct skill_files f = {0};
	struct ava_error err = {0};
	struct skill s = {0};
	uint64_t stamp = 0;
	bool settled = false;
	int rv = skill_stamp(path, &stamp, &settled, &err);

	for (size_t i = 0; rv == 0 && i < nkept; i++)
		if (kept[i].stamp == stamp && strcmp(kept[i].skill.path, path) == 0)
			return skill_copy(out, &kept[i].skill);
	s.path = strdup(path);
	if (!s.path)
		return false;
	rv = rv ? rv : skill_load(path, &f, &err);
	main_file = rv == 0 ? skill_file_of(&f, "") : NULL;
	if (rv == 0 && !main_file)
		rv = err_set(&err, AVA_ENOENT, "%s holds no " SKILL_FILE, path);
	else if (rv != 0)
		err_wrap(&err, rv, "%s", path);
	if (rv == 0)
		rv = skill_read(&s, main_file, f.left, &err);
	snprintf(s.hash, sizeof(s.hash), "%s", f.hash);
	s.files = (unsigned)f.n;
	s.bytes = f.bytes;
	if (rv != 0) {
		s.why = strdup(err.text);
		free(s.name);
		s.name = NULL;
	}
	skill_files_fini(&f);
	if (rv == AVA_ENOMEM || (rv != 0 && !s.why)) {
		skill_fini(&s);
		return false;
	}
	if (settled)
		keep_skill(&s, stamp);
	*out = s;
	return true;
}

/* ---- the list */

void skill_list_free(struct skill_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		skill_fini(&l->items[i]);
	free(l->items);
	*l = (struct skill_list){0};
}

static bool skill_is(const struct skill *s, const char *name)
{
	const char *a = s->name ? s->name : "";

	for (; *a && *name; a++, name++) {
		char x = *a == '_' ? '-' : *a, y = *name == '_' || *name == ' ' ? '-' : *name;

		if (tolower((unsigned char)x) != tolower((unsigned char)y))
			return false;
	}
	return *a == *name;
}

const struct skill *skill_find(const struct skill_list *l, const char *name)
{
	const struct skill *found = NULL;

	for (size_t i = 0; i < l->n; i++)
		if (skill_is(&l->items[i], name) && (!found || (found->why && !l->items[i].why)))
			found = &l->items[i];
	return found;
}

/* Why a skill that can be read is not used; an empty text: it is. */
static void skill_judge(const struct skill_list *l, const struct skill *s, char *why, size_t size)
{
	const struct skill *first = skill_find(l, s->name);

	if (first && !first->why)
		snprintf(why, size, "%s: the skill %s of %s comes before it", s->path, s->name,
			 first->path);
	else if (!s->trusted)
		snprintf(
			why, size,
			"the project's skill %s is not trusted: read it, then: ava skills trust %s",
			s->name, s->path);
}

static int skill_put(struct skill_list *l, const char *path, enum role_source source)
{
	char why[2 * PATH_MOST + 200] = "";
	struct stat st;
	struct skill s;

	if (!ARRAY_ROOM(l->items, l->cap, l->n + 1) || !skill_at(path, &s))
		return AVA_ENOMEM;
	s.source = source;
	s.trusted = s.name && (source != ROLE_PROJECT || roles_trusted(s.hash));
	if (s.name && source != ROLE_PROJECT &&
	    (stat(path, &st) != 0 || (st.st_mode & S_IWOTH) != 0))
		snprintf(why, sizeof(why), "%s: anybody may write it: chmod o-w it", path);
	else if (s.name)
		skill_judge(l, &s, why, sizeof(why));
	if (why[0] && !(s.why = strdup(why))) {
		skill_fini(&s);
		return AVA_ENOMEM;
	}
	l->items[l->n++] = s;
	return 0;
}

static bool holds_skill(const char *path)
{
	static const char *const names[] = {SKILL_FILE, "skill.md", "Skill.md"};
	char file[PATH_MOST + 16];
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(file, sizeof(file), "%s/%s", path, names[i]);
		if (lstat(file, &st) == 0)
			return true;
	}
	return false;
}

static int skill_rest(struct skill_list *l, const char *place, enum role_source source)
{
	char why[PATH_MOST + 100];

	if (!ARRAY_ROOM(l->items, l->cap, l->n + 1))
		return AVA_ENOMEM;
	snprintf(why, sizeof(why),
		 "%s: there is more than the %u skills and %d names that are looked at: move the "
		 "rest away",
		 place, SKILLS_MAX, NAMES_MAX);
	l->items[l->n] =
		(struct skill){.path = strdup(place), .why = strdup(why), .source = source};
	l->n++;
	return l->items[l->n - 1].path && l->items[l->n - 1].why ? 0 : AVA_ENOMEM;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The skills in the folder `place`, in the order of their names. */
static int skill_place(struct skill_list *l, const char *place, enum role_source source)
{
	char *names[NAMES_MAX], path[PATH_MOST];
	DIR *d = opendir(place);
	struct dirent *e;
	unsigned n = 0, found = 0;
	bool over = false;
	int rv = 0;

	while (d && !over && (e = readdir(d)) != NULL) {
		over = n == NAMES_MAX;
		if (!over && e->d_name[0] != '.' && e->d_type != DT_REG &&
		    utf8_valid(e->d_name, strlen(e->d_name)) &&
		    (names[n] = strdup(e->d_name)) != NULL)
			n++;
	}
	if (d)
		closedir(d);
	if (n > 0)
		qsort(names, n, sizeof(*names), by_text);
	for (unsigned i = 0; i < n; i++) {
		if (rv == 0 &&
		    (size_t)snprintf(path, sizeof(path), "%s/%s", place, names[i]) < sizeof(path) &&
		    holds_skill(path)) {
			over = over || found == SKILLS_MAX;
			rv = found++ < SKILLS_MAX ? skill_put(l, path, source) : 0;
		}
		free(names[i]);
	}
	return rv == 0 && over ? skill_rest(l, place, source) : rv;
}

/* Cuts the last part of the path off; false: it has no other. */
static bool skill_parent(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	return true;
}

unsigned skills_project_ups(const char *cwd)
{
	const char *home = getenv("HOME");
	char at[PATH_MOST], git[PATH_MOST + 8];
	unsigned n = 0;

	snprintf(at, sizeof(at), "%s", cwd);
	do {
		snprintf(git, sizeof(git), "%s/.git", at);
		if (home && strcmp(at, home) == 0)
			return 0;
		if (access(git, F_OK) == 0)
			return n;
	} while (++n < UPS_MAX && skill_parent(at));
	return 0;
}

/* The nearest folder of this name; false: none. */
static bool skill_project(const char *cwd, unsigned ups, const char *name, char out[PATH_MOST])
{
	char at[PATH_MOST - 32];
	struct stat st;

	if (cwd[0] != '/' || snprintf(at, sizeof(at), "%s", cwd) >= (int)sizeof(at))
		return false;
	do {
		snprintf(out, PATH_MOST, "%s/%s", at, name);
		if (stat(out, &st) == 0 && S_ISDIR(st.st_mode))
			return true;
	} while (ups-- > 0 && skill_parent(at));
	return false;
}

int skills_list(const char *cwd, unsigned ups, struct skill_list *out)
{
	static const char *const of_project[] = {".claude/skills", ".agents/skills"};
	const char *home = getenv("HOME");
	bool project = !home || strcmp(cwd, home) != 0;
	struct skill_list l = {0};
	char path[PATH_MOST];
	int rv = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; rv == 0 && project && i < ARRAY_LEN(of_project); i++)
		if (skill_project(cwd, ups, of_project[i], path))
			rv = skill_place(&l, path, ROLE_PROJECT);
	if (rv == 0 && settings_config_path("skills", path, sizeof(path), NULL) == 0)
		rv = skill_place(&l, path, ROLE_USER);
	if (rv == 0 && home && home[0] == '/' &&
	    (size_t)snprintf(path, sizeof(path), "%s/.claude/skills", home) < sizeof(path))
		rv = skill_place(&l, path, ROLE_CLAUDE);
	pthread_mutex_unlock(&lock);
	if (rv != 0) {
		skill_list_free(&l);
		return rv;
	}
	*out = l;
	return 0;
}

int skills_look(const char *path, struct skill_list *out, struct ava_error *err)
{
	struct skill_list l = {0};
	struct stat st;
	int rv;

	if (stat(path, &st) != 0)
		return err_sys(err, "%.500s", path);
	pthread_mutex_lock(&lock);
	rv = holds_skill(path) ? skill_put(&l, path, ROLE_PROJECT)
			       : skill_place(&l, path, ROLE_PROJECT);
	pthread_mutex_unlock(&lock);
	if (rv != 0) {
		skill_list_free(&l);
		return err_set(err, rv, "out of memory");
	}
	*out = l;
	return 0;
}
