/* Verbs about roles and skills: which there are, one of them whole, a check of files, and trust.
 *
 * Trust is a person's word for the bytes of a file, or of all files of a skill: their hash,
 * appended to roles/trusted.jsonl below the data root with an event in the day's log, in one
 * commit. No tool of a model leads here, and the data root is closed to tools. The caller names the
 * hash that was shown, so that a file that changed meanwhile is not trusted unseen.
 *
 * What can fail: no such role or file; a hash that is not the file's; the disk. */
#include "ava/verbs.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "codec/jscan.h"
#include "codec/utf8.h"
#include "subagent/rolebook.h"
#include "subagent/skillbook.h"
#include "subagent/spec.h"
#include "tool/mcp.h"
#include "tool/skill.h"

#define TRUSTED_FILE "roles/trusted.jsonl"
#define TRUSTED_MAX  (4u << 20)

/* ---- a role, a skill as JSON */

static void write_tools(struct jw *w, const struct core *c, const struct role *r)
{
	const struct tool *tools[ROLE_MAX_TOOLS];
	unsigned n = role_tools(r, true, tools);

	jw_array(w, "tools");
	for (unsigned i = 0; i < n; i++)
		jw_str(w, NULL, tools[i]->name);
	jw_end(w);
	jw_array(w, "missing");
	for (unsigned i = 0; r->tools[i]; i++)
		if (!tool_find(r->tools[i]) && !mcp_client_wanted(c->sup.mcp, r->tools[i]))
			jw_str(w, NULL, r->tools[i]);
	jw_end(w);
}

static void write_note(struct jw *w, unsigned line, const char *text, size_t len)
{
	jw_object(w, NULL);
	jw_int(w, "line", line);
	jw_strn(w, "text", text, len);
	jw_end(w);
}

static void write_role(struct jw *w, const struct core *c, const struct book_entry *e, bool whole)
{
	const struct role *r = e->role;
	struct ava_error err = {0};
	bool usable = !e->why && role_usable(r, true, &err) == 0;

	jw_str(w, "display", r->display);
	jw_str(w, "model", r->model);
	jw_bool(w, "usable", usable);
	jw_str(w, "why", e->why ? e->why : err.text);
	write_tools(w, c, r);
	jw_fixed(w, "timeout", spec_time_otherwise(r, &c->settings), 3);
	jw_int(w, "max_cost_cents", spec_cost_otherwise(r, &c->settings) / 10000);
	jw_int(w, "max_tokens", spec_tokens_otherwise(r, &c->settings));
	jw_int(w, "max_iterations", spec_iterations_otherwise(r, &c->settings));
	jw_bool(w, "extended_thinking", r->thinking);
	jw_array(w, "notes");
	for (unsigned i = 0; i < r->nnotes; i++)
		write_note(w, r->notes[i].line, r->notes[i].text, strlen(r->notes[i].text));
	jw_end(w);
	if (whole && r->schema)
		jw_raw(w, "output_schema", r->schema, strlen(r->schema));
	if (whole)
		jw_str(w, "instructions", r->instructions);
}

/* The text of SKILL.md and the names of all files, where they are those of the hash beside them. */
static void write_skill_text(struct jw *w, const char *path, const char *hash)
{
	struct skill_files f;
	struct buf safe;

	if (skill_load(path, &f, NULL) != 0)
		return;
	buf_init(&safe, 8 * SKILL_TEXT_MAX);
	for (size_t i = 0; i < f.n && strcmp(f.hash, hash) == 0; i++)
		if (&f.items[i] == skill_file_of(&f, ""))
			utf8_terminal(&safe, f.items[i].data, f.items[i].len, true);
	jw_strn(w, "text", safe.data ? safe.data : "", safe.len);
	jw_array(w, "contents");
	for (size_t i = 0; i < f.n && strcmp(f.hash, hash) == 0; i++) {
		jw_object(w, NULL);
		jw_str(w, "path", f.items[i].path);
		jw_int(w, "bytes", (int64_t)f.items[i].len);
		jw_bool(w, "runs", f.items[i].runs);
		jw_end(w);
	}
	jw_end(w);
	buf_fini(&safe);
	skill_files_fini(&f);
}

static void write_skill(struct jw *w, const struct book_entry *e, bool whole)
{
	const struct skill *s = e->skill;

	jw_bool(w, "usable", !e->why);
	jw_str(w, "why", e->why ? e->why : "");
	jw_int(w, "files", s->files);
	jw_int(w, "bytes", s->bytes);
	jw_array(w, "notes");
	for (const char *at = s->notes; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		const char *text = strchr(at, ' ') + 1;

		write_note(w, (unsigned)atoi(at), text, strcspn(text, "\n"));
	}
	jw_end(w);
	if (whole)
		write_skill_text(w, e->path, s->hash);
}

/* ---- what both have */

static const char *entry_name(const struct book *b, const struct book_entry *e)
{
	return b == &book_of_roles ? e->role->name : e->skill->name;
}

static const char *entry_hash(const struct book *b, const struct book_entry *e)
{
	return b == &book_of_roles ? e->role->hash : e->skill->hash;
}

static void write_book_entry(struct jw *w, const struct core *c, const struct book *b,
			     const struct book_entry *e, bool whole)
{
	jw_object(w, NULL);
	jw_str(w, "name", entry_name(b, e));
	jw_str(w, "summary", b == &book_of_roles ? e->role->summary : e->skill->summary);
	jw_str(w, "source", role_sources[e->source]);
	jw_str(w, "path", e->path);
	jw_str(w, "hash", entry_hash(b, e));
	jw_bool(w, "trusted", e->trusted);
	if (b == &book_of_roles)
		write_role(w, c, e, whole);
	else
		write_skill(w, e, whole);
	jw_end(w);
}

/* {"roles":[…],"broken":[…]} */
static void write_list(struct jw *w, const struct core *c, const struct book_list *l, bool whole)
{
	jw_object(w, NULL);
	jw_array(w, l->book->all);
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i].it)
			write_book_entry(w, c, l->book, &l->items[i], whole);
	jw_end(w);
	jw_array(w, "broken");
	for (size_t i = 0; i < l->n; i++)
		if (!l->items[i].it) {
			jw_object(w, NULL);
			jw_str(w, "path", l->items[i].path);
			jw_str(w, "source", role_sources[l->items[i].source]);
			jw_str(w, "why", l->items[i].why);
			jw_end(w);
		}
	jw_end(w);
}

/* ---- list */

struct roles_args {
	const char *cwd, *path, *hash;
};

static const struct arg roles_args[] = {
	{"cwd", ARG_SAID, offsetof(struct roles_args, cwd), .most = 4095},
	{NULL},
};

/* The book that a verb is about. */
static const struct book *book_of(const struct verb_call *v)
{
	return strstr(v->verb->path, "/skills") ? &book_of_skills : &book_of_roles;
}

static void send_list(struct verb_call *v, int rv, struct book_list *l, bool whole,
		      const struct ava_error *err)
{
	struct verb_answer a;

	if (verb_begin(&a, v->reply, rv, err)) {
		write_list(&a.w, v->core, l, whole);
		verb_send(&a, 200);
	}
	book_list_free(l);
}

static void verb_roles(struct verb_call *v)
{
	struct roles_args args = {.cwd = ""};
	struct ava_error err = {0};
	struct book_list l;
	int rv;

	if (!verb_args(v, &args))
		return;
	rv = book_list(book_of(v), args.cwd, &l);
	if (rv != 0)
		err_set(&err, rv, "out of memory");
	send_list(v, rv, &l, false, &err);
}

static void verb_role(struct verb_call *v)
{
	struct roles_args args = {.cwd = ""};
	const struct book *b = book_of(v);
	const struct book_entry *e = NULL;
	struct ava_error err = {0};
	struct verb_answer a;
	struct book_list l;
	int rv;

	if (!verb_args(v, &args))
		return;
	rv = book_list(b, args.cwd, &l);
	e = rv == 0 ? book_find(&l, v->id) : NULL;
	if (rv != 0)
		err_set(&err, rv, "out of memory");
	else if (!e)
		rv = err_set(&err, AVA_ENOENT, "there is no %s %.60s (ava %s lists them)", b->one,
			     v->id, b->all);
	if (verb_begin(&a, v->reply, rv, &err)) {
		write_book_entry(&a.w, v->core, b, e, true);
		verb_send(&a, 200);
	}
	book_list_free(&l);
}

static const struct arg check_args[] = {
	{"path", ARG_SAID, offsetof(struct roles_args, path), .most = 4095},
	{NULL},
};

/* Reads the file or folder that the body names. false: answered. */
static bool verbs_roles_look(struct verb_call *v, struct roles_args *args, struct book_list *l)
{
	struct ava_error err = {0};
	int rv;

	if (!verb_body(v) || !verb_args(v, args))
		return false;
	rv = args->path && args->path[0] == '/'
		     ? book_look(book_of(v), args->path, l, &err)
		     : err_set(&err, AVA_EINVAL, "path must be an absolute path");
	if (rv != 0)
		verb_fail(v->reply, rv, &err);
	return rv == 0;
}

static void verb_check(struct verb_call *v)
{
	struct roles_args args = {0};
	struct book_list l = {0};

	if (verbs_roles_look(v, &args, &l))
		send_list(v, 0, &l, true, NULL);
}

/* ---- trust */

struct trusting {
	struct verb_reply *reply;
	const char *what; /* static: "role", "skill" */
	char *name, *path;
	char hash[HASH_HEX_LEN + 1];
};

static void trusting_free(struct trusting *t)
{
	free(t->name);
	free(t->path);
	free(t);
}

static const struct arg trust_args[] = {
	{"path", ARG_SAID, offsetof(struct roles_args, path), .most = 4095},
	{"hash", ARG_SAID, offsetof(struct roles_args, hash), .most = HASH_HEX_LEN},
	{NULL},
};

static void trusted(int rv, void *user)
{
	struct trusting *t = user;
	struct ava_error err = {0};
	struct verb_answer a;

	if (rv != 0)
		err_set(&err, rv, "it was not kept (%s): ask again", ava_strerror(rv));
	else if ((rv = book_trust(t->hash)) != 0)
		err_set(&err, rv, "%u files are trusted, as many as there can be", BOOK_TRUSTS_MAX);
	if (verb_begin(&a, t->reply, rv, &err)) {
		jw_object(&a.w, NULL);
		jw_str(&a.w, "name", t->name);
		jw_str(&a.w, "path", t->path);
		jw_str(&a.w, "hash", t->hash);
		jw_bool(&a.w, "trusted", true);
		verb_send(&a, 200);
	}
	trusting_free(t);
}

/* Writes hash, file and person of a trust into an open object. */
static void write_trust(struct jw *w, const struct trusting *t, const char *user)
{
	jw_str(w, "hash", t->hash);
	jw_str(w, t->what, t->name);
	jw_str(w, "path", t->path);
	jw_str(w, "by", user ? user : "");
	verb_time(w, "at", clock_wall_ms());
	jw_end(w);
}

static int commit_trust(struct verb_call *v, struct trusting *t, struct ava_error *err)
{
	struct draft *d = draft_new(&v->core->book);
	struct buf *line = d ? draft_part(d, DRAFT_MESSAGES, TRUSTED_FILE) : NULL, b;
	struct jw w;

	if (!line) {
		draft_free(d);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	jw_init(&w, line);
	jw_object(&w, NULL);
	write_trust(&w, t, v->caller->user);
	buf_addc(line, '\n');
	buf_init(&b, 64u << 10);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "key", "roles/trusted");
	jw_object(&w, "value");
	write_trust(&w, t, v->caller->user);
	jw_end(&w);
	core_event(v->core, d, EVENT_StateWrite, "", v->caller->user ? v->caller->user : "", &b);
	return draft_commit(d, JOURNAL_NOW, trusted, t, err);
}

/* `shown`: the hash of what was shown. */
static int begin_trust(struct verb_call *v, const struct book_entry *e, const char *shown,
		       struct ava_error *err)
{
	const struct book *b = book_of(v);
	struct trusting *t;
	int rv;

	if (!e->it)
		return err_set(err, AVA_EINVAL, "%s", e->why);
	if (!shown || strcmp(shown, entry_hash(b, e)) != 0)
		return err_set(err, AVA_EINVAL,
			       "%.300s is not what was shown (its SHA-256 is %s): read it again",
			       e->path, entry_hash(b, e));
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(err, AVA_ENOMEM, "out of memory");
	t->reply = v->reply;
	t->what = b->one;
	t->name = strdup(entry_name(b, e));
	t->path = strdup(e->path);
	snprintf(t->hash, sizeof(t->hash), "%s", shown);
	rv = t->name && t->path ? commit_trust(v, t, err)
				: err_set(err, AVA_ENOMEM, "out of memory");
	if (rv != 0)
		trusting_free(t);
	return rv;
}

static void verb_trust(struct verb_call *v)
{
	struct roles_args args = {0};
	struct ava_error err = {0};
	struct book_list l = {0};
	int rv;

	if (!verbs_roles_look(v, &args, &l))
		return;
	rv = l.n == 1 ? begin_trust(v, &l.items[0], args.hash, &err)
		      : err_set(&err, AVA_EINVAL,
				"%.300s is no %s, but a folder of them: they are trusted one by "
				"one",
				args.path, l.book->one);
	book_list_free(&l);
	if (rv != 0)
		verb_fail(v->reply, rv, &err);
}

int core_load_trust(struct core *c, struct ava_error *err)
{
	const char *line;
	char *data = NULL;
	size_t len = 0, at = 0, n;
	int rv = logbook_read(c->root_fd, TRUSTED_FILE, TRUSTED_MAX, &data, &len, err);

	while (rv == 0 && jsonl_next(data, len, &at, &line, &n) == 1) {
		json_t *o = json_parse(line, n, NULL);

		if (book_trust(json_str(o, "hash")) == AVA_EINVAL)
			core_log(c, TRUSTED_FILE " has a line without a hash: it is left out");
		json_decref(o);
	}
	free(data);
	if (rv != 0 && rv != AVA_ENOENT && rv != AVA_ENOMEM)
		core_log(c, "%s: no project is trusted until it can be read", err->text);
	return rv == AVA_ENOMEM ? rv : 0;
}

const struct verb verbs_about_roles[] = {
	{"GET", "/api/v1/roles", verb_roles, roles_args, false},
	{"GET", "/api/v1/roles/{id}", verb_role, roles_args, false},
	{"POST", "/api/v1/roles/check", verb_check, check_args, false},
	{"POST", "/api/v1/roles/trust", verb_trust, trust_args, true},
	{"GET", "/api/v1/skills", verb_roles, roles_args, false},
	{"GET", "/api/v1/skills/{id}", verb_role, roles_args, false},
	{"POST", "/api/v1/skills/check", verb_check, check_args, false},
	{"POST", "/api/v1/skills/trust", verb_trust, trust_args, true},
	{NULL},
};
