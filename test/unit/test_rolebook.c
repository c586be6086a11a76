/* Folders of roles: what is found from where, what comes first, who is trusted, what an edit
 * does, and what a bad file does to the others: nothing. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spec_rig.h"

#include <ava.h>
#include "base/error.h"
#include "base/settings.h"
#include "codec/json.h"
#include "subagent/rolebook.h"

static char root[512];

static const char *below(const char *path)
{
	static char full[8][1024];
	static unsigned i;
	char *out = full[i++ % 8];

	snprintf(out, 1024, "%s/%s", root, path);
	return out;
}

static void folders(const char *path)
{
	char full[1024];

	snprintf(full, sizeof(full), "%s", below(path));
	for (char *s = full + strlen(root) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		mkdir(full, 0700);
	}
	mkdir(full, 0700);
}

static void put(const char *path, const char *name, const char *more, const char *text)
{
	char file[2048];

	snprintf(file, sizeof(file), "---\nname: %s\ndescription: For %s\n%s---\n%s\n", name, name,
		 more, text);
	unit_write(below(path), file, strlen(file));
}

static int set_up(void **state)
{
	snprintf(root, sizeof(root), "%s", unit_tmpdir());
	folders("home/.claude/agents");
	folders("config/ava/agents");
	folders("home/work/.claude/agents");
	folders("home/work/src/deep");
	folders("home/work/.git");
	setenv("HOME", below("home"), 1);
	setenv("XDG_CONFIG_HOME", below("config"), 1);
	return 0;
}

static int tear_down(void **state)
{
	unit_rmdir(root);
	return 0;
}

/* The name's instructions as they are seen from `cwd`; "" and the code: it cannot be used. */
static int text_of(const char *name, const char *cwd, char out[1024])
{
	struct ava_error err = {0};
	const struct role *r = role_find(name, cwd, &err);

	snprintf(out, 1024, "%s", r ? r->instructions : err.text);
	role_release(r);
	return r ? 0 : err.code;
}

static void trust(const char *path)
{
	struct ava_error err = {0};
	struct book_list l;

	assert_int_equal(book_look(&book_of_roles, path, &l, &err), 0);
	assert_int_equal(l.n, 1);
	assert_int_equal(book_trust(l.items[0].role->hash), 0);
	book_list_free(&l);
}

/* Project, user, claude; what nobody trusts hides nothing. */
TEST(order)
{
	char text[1024];

	put("home/.claude/agents/a.md", "order-x", "", "claude");
	assert_int_equal(text_of("order_x", below("home/work"), text), 0);
	assert_string_equal(text, "claude");
	put("config/ava/agents/a.md", "order-x", "", "user");
	assert_int_equal(text_of("order-x", below("home/work"), text), 0);
	assert_string_equal(text, "user");
	put("home/work/.claude/agents/a.md", "order_x", "", "project");
	assert_int_equal(text_of("OrderX", below("home/work"), text), 0);
	assert_string_equal(text, "user");
	trust(below("home/work/.claude/agents/a.md"));
	assert_int_equal(text_of("order-x", below("home/work/src/deep"), text), 0);
	assert_string_equal(text, "project");
	assert_int_equal(text_of("order-x", below("home"), text), 0); /* no project */
	assert_string_equal(text, "user");
	assert_int_equal(text_of("code-reviewer", below("home/work"), text), 0);
}

TEST(untrusted)
{
	char text[1024];

	put("home/work/.claude/agents/u.md", "untrusted", "", "first");
	assert_int_equal(text_of("untrusted", below("home/work"), text), AVA_EDENIED);
	assert_non_null(strstr(text, "not trusted: read it, then: ava roles trust"));
	trust(below("home/work/.claude/agents/u.md"));
	assert_int_equal(text_of("untrusted", below("home/work"), text), 0);
	/* Other bytes, another question. */
	put("home/work/.claude/agents/u.md", "untrusted", "", "other");
	assert_int_equal(text_of("untrusted", below("home/work"), text), AVA_EDENIED);
	assert_int_equal(book_trust("../x"), AVA_EINVAL);
	assert_int_equal(book_trust(""), AVA_EINVAL);
}

/* An edit of the same size in the same second is seen, and so is that it is gone; who holds
 * the role keeps what it had. */
TEST(edit)
{
	struct ava_error err = {0};
	const struct role *held;
	char text[1024];

	put("config/ava/agents/e.md", "edited", "", "one");
	held = role_find("edited", "", &err);
	assert_string_equal(held->instructions, "one");
	put("config/ava/agents/e.md", "edited", "", "two");
	assert_int_equal(text_of("edited", "", text), 0);
	assert_string_equal(text, "two");
	unlink(below("config/ava/agents/e.md"));
	assert_int_equal(text_of("edited", "", text), AVA_EINVAL);
	assert_non_null(strstr(text, "unknown role edited: there are web_crawler, code_reviewer"));
	assert_non_null(
		strstr(text, "/ava/agents/<name>.md (doc/ROLES.md)")); /* and how to add one */
	assert_string_equal(held->instructions, "one");
	role_release(held);
}

/* One that cannot be read is named, with why; the rest is there. */
TEST(bad_files)
{
	static const struct {
		const char *path, *bytes, *why;
	} bad[] = {
		{"config/ava/agents/1.md", "no front matter", "1.md:1: there is no front matter"},
		{"config/ava/agents/2.md", "---\nname: b\ntools: [\n---\nx\n", "2.md:"},
		{"config/ava/agents/sub/3.md", "---\nname: code-reviewer\ndescription: x\n---\nx\n",
		 "3.md:2: the name code_reviewer"},
		{"config/ava/agents/5.md", "\xff\xfe", "5.md:1: this is no UTF-8"},
	};
	struct book_list l;
	char text[1024];
	unsigned found = 0;

	folders("config/ava/agents/sub");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		unit_write(below(bad[i].path), bad[i].bytes, strlen(bad[i].bytes));
	assert_int_equal(mkfifo(below("config/ava/agents/4.md"), 0600), 0);
	assert_int_equal(symlink("nowhere", below("config/ava/agents/6.md")), 0);
	put("config/ava/agents/good.md", "good", "", "good");
	put("config/ava/agents/twice.md", "Good", "", "twice");
	put("config/ava/agents/open.md", "open", "", "open");
	chmod(below("config/ava/agents/open.md"), 0606);
	assert_int_equal(book_list(&book_of_roles, "", &l), 0);
	for (size_t i = 0; i < l.n; i++) {
		for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
			found += l.items[i].why && strstr(l.items[i].why, bad[k].why) != NULL;
		found += l.items[i].why && strstr(l.items[i].why, "4.md") != NULL;
		found += l.items[i].why && strstr(l.items[i].why, "chmod o-w") != NULL;
		found += l.items[i].why && strstr(l.items[i].why, "comes before it") != NULL;
	}
	book_list_free(&l);
	assert_int_equal(found, 7);
	assert_int_equal(text_of("good", "", text), 0);
	assert_string_equal(text, "good");
	assert_int_equal(text_of("open", "", text), AVA_EDENIED);
}

TEST(many)
{
	struct book_list l;
	char path[64], name[32];

	for (unsigned i = 0; i < BOOK_ITEMS_MAX + 20; i++) {
		snprintf(path, sizeof(path), "home/.claude/agents/m%03u.md", i);
		snprintf(name, sizeof(name), "many-%03u", i);
		put(path, name, "", "x");
	}
	assert_int_equal(book_list(&book_of_roles, "", &l), 0);
	assert_int_equal(l.n, 4 + BOOK_ITEMS_MAX + 1);
	assert_non_null(strstr(l.items[l.n - 1].why, "more than the 256 role files"));
	book_list_free(&l);
}

/* A project's role may ask for less than what holds anyway, a person's own for more. */
TEST(limits)
{
	static const char much[] = "timeout: 5000\nmax_cost_cents: 900\nmax_tokens: 9000000\n"
				   "maxTurns: 500\n";
	static const char little[] = "timeout: 60\nmax_cost_cents: 5\nmax_tokens: 5000\n"
				     "maxTurns: 3\n";
	static const struct {
		const char *path, *name, *more;
		int64_t s, cents, tokens, turns;
	} rows[] = {
		{"home/work/.claude/agents/l1.md", "much-p", much, 600, 50, 100000, 20},
		{"home/work/.claude/agents/l2.md", "little-p", little, 60, 5, 5000, 3},
		{"config/ava/agents/l1.md", "much-u", much, 5000, 900, 9000000, 500},
		{"config/ava/agents/l2.md", "little-u", little, 60, 5, 5000, 3},
	};
	struct settings set;

	settings_defaults(&set);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct op_spawn s = spawn_usual("x", below("home/work"));
		struct ava_error err = {0};
		struct run_spec *r;

		s.role = rows[i].name;
		put(rows[i].path, rows[i].name, rows[i].more, "x");
		trust(below(rows[i].path));
		assert_int_equal(spec_build(&r, &s, &set, "offline", NULL, &err), 0);
		assert_int_equal(r->agent.limits.time_ms, rows[i].s * 1000);
		assert_int_equal(r->agent.limits.cost_microusd, rows[i].cents * 10000);
		assert_int_equal(r->agent.limits.tokens, rows[i].tokens);
		assert_int_equal(r->agent.limits.iterations, rows[i].turns);
		assert_int_equal(r->ngrants, 0);
		spec_free(r);
	}
}

/* What was confirmed comes back from its config, whatever became of the file: the same
 * text, the same hash; runs of one role have one copy. */
TEST(confirmed)
{
	struct op_spawn s = spawn_usual("x", NULL);
	struct run_spec *was, *back, *again, *other;
	struct ava_error err = {0};
	struct settings set;
	json_auto_t *config = NULL;

	s.role = "kept";
	settings_defaults(&set);
	put("config/ava/agents/k.md", "kept", "output_schema: {type: object}\n", "as it was");
	assert_int_equal(spec_build(&was, &s, &set, "offline", NULL, &err), 0);
	assert_string_equal(was->agent.output_schema, "{\"type\":\"object\"}");
	put("config/ava/agents/k.md", "kept", "", "as it is");
	assert_int_equal(spec_build(&other, &s, &set, "offline", NULL, &err), 0);
	assert_string_not_equal(was->hash, other->hash);
	assert_false(role_same(was->role, other->role));
	config = json_parse(was->config, was->config_len, &err);
	spec_free(other);
	spec_free(was);
	unlink(below("config/ava/agents/k.md"));
	assert_int_equal(spec_from_json(&back, config, "", "", "", &err), 0);
	assert_int_equal(spec_from_json(&again, config, "", "", "", &err), 0);
	assert_string_equal(back->role->instructions, "as it was");
	assert_string_equal(back->role->display, "Kept");
	assert_int_equal(back->role->source, ROLE_USER);
	assert_string_equal(back->role->path, below("config/ava/agents/k.md"));
	assert_ptr_equal(back->role, again->role);
	assert_string_equal(back->hash, again->hash);
	spec_free(back);
	spec_free(again);
}

/* A record of before roles were files is as it was, to the hash. */
TEST(old_record)
{
	json_auto_t *config = json_pack("{s:s,s:s,s:s,s:s}", "role", "code_reviewer", "task", "x",
					"model", "offline", "context", "");
	struct ava_error err = {0};
	struct run_spec *r;

	assert_int_equal(spec_from_json(&r, config, "", "", "", &err), 0);
	assert_string_equal(r->role->display, "CodeReviewer");
	assert_string_equal(r->role->summary, "reads a source tree and answers with path:line");
	assert_string_equal(r->role->instructions, "");
	assert_null(strstr(r->config, "roleFile"));
	spec_free(r);
}

TEST(words)
{
	char name[ROLE_NAME_MAX + 1], text[1024];

	assert_true(role_word("reviewer", name));
	assert_string_equal(name, "code_reviewer");
	put("config/ava/agents/w.md", "notes", "", "x");
	put("config/ava/agents/v.md", "db-notes", "", "x");
	assert_int_equal(text_of("notes", "", text), 0);
	assert_true(role_word("notes", name));
	assert_true(role_word("db-notes", name));
	assert_string_equal(name, "db_notes");
	assert_false(role_word("wizard", name));
}

UNIT_GROUP(.before = set_up, .after = tear_down);
