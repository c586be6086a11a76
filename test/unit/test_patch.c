/* Patches: what is written is read back and leads from the one state to the other, what does
 * not fit is named, and no text that somebody made up is taken for one of ours. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/util.h"
#include "codec/patch.h"

static struct patch_side side(const char *text)
{
	return text ? (struct patch_side){text, strlen(text), true, false}
		    : (struct patch_side){NULL, 0, false, false};
}

/* The patch from `old` to `now`, read back. */
static struct patch made(const char *old, const char *now)
{
	struct patch_side a = side(old), b = side(now);
	struct ava_error err = {0};
	struct patch p;
	TEST_BUF(out, PATCH_MAX);

	assert_int_equal(patch_add(&out, "src/a.c", &a, &b), 1);
	if (patch_read(&p, out.data, out.len, &err) != 0)
		fail_msg("%s in:\n%s", err.text, out.data);
	assert_int_equal(p.n, 1);
	assert_string_equal(p.files[0].path, "src/a.c");
	return p;
}

/* What it makes of `now`: a value of patch_fit; with `want` what comes of it. */
static int tried(const struct patch *p, const char *now, const char *want, struct patch_clash *why)
{
	struct patch_side s = side(now);
	struct patch_clash ignored;
	TEST_BUF(out, PATCH_FILE_MAX);
	int fit;

	fit = patch_try(&p->files[0], &s, &out, why ? why : &ignored);
	if (want) {
		assert_int_equal(fit, PATCH_FITS);
		assert_string_equal(out.data ? out.data : "", want);
	}
	return fit;
}

TEST(both_ways)
{
	static const char *const cases[][2] = {
		{"one\n", "two\n"},
		{"a\nb\nc\n", "a\nB\nc\n"},
		{"a\nb\nc", "a\nb\nc\n"},
		{"a\nb\nc\n", "a\nb\nc"},
		{"a\nb", "a\nc"},
		{"", "a\n"},
		{"a\n", ""},
		{"x\r\ny\r\n", "x\r\nz\r\n"},
		{"+\n-\n@@ -1,1 +1,1 @@\n", "-\n+\n\\ No newline at end of file\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n",
		 "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\nx\n11\n12\n13\n14\n15\n16\n17\n18\n19\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct patch p = made(cases[i][0], cases[i][1]);

		tried(&p, cases[i][0], cases[i][1], NULL);
		assert_int_equal(tried(&p, cases[i][1], NULL, NULL), PATCH_DONE);
		patch_fini(&p);
	}
}

/* The exact text, which git reads; the ids are those of `git hash-object`. */
TEST(form)
{
	struct patch_side old = side("one\ntwo\n"), now = side("one\n2");
	TEST_BUF(out, PATCH_MAX);

	assert_int_equal(patch_add(&out, "a b.c", &old, &now), 1);
	assert_string_equal(out.data, "diff --git a/a b.c b/a b.c\n"
				      "index 814f4a422927b82f5f8a43f8fab6d3839e3983f2.."
				      "4ed879660e192d17f92ff3aee607b3d367fa922d 100644\n"
				      "--- a/a b.c\t\n"
				      "+++ b/a b.c\t\n"
				      "@@ -1,2 +1,2 @@\n"
				      " one\n"
				      "-two\n"
				      "+2\n"
				      "\\ No newline at end of file\n");
}

/* 300 random pairs, with many equal lines, so that places are ambiguous. */
TEST(random)
{
	unsigned seed = 20261124;
	char text[2][2000];

	for (int round = 0; round < 300; round++) {
		struct patch p;

		for (int k = 0; k < 2; k++) {
			size_t len = 0;
			int lines = rand_r(&seed) % 60;

			for (int i = 0; i < lines; i++)
				len += (size_t)snprintf(text[k] + len, sizeof(text[k]) - len,
							"%d\n", rand_r(&seed) % 5);
			text[k][len] = '\0';
			if (len > 0 && rand_r(&seed) % 4 == 0)
				text[k][len - 1] = '\0';
		}
		if (strcmp(text[0], text[1]) == 0)
			continue;
		p = made(text[0], text[1]);
		tried(&p, text[0], text[1], NULL);
		assert_int_equal(tried(&p, text[1], NULL, NULL), PATCH_DONE);
		patch_fini(&p);
	}
}

/* More lines differ than are compared one by one: the whole middle is exchanged. */
TEST(many_edits)
{
	char *text[2];

	for (int k = 0; k < 2; k++) {
		text[k] = calloc(1, 100000);
		for (int i = 0, n = 0; i < 4000; i++)
			n += sprintf(text[k] + n, "%d\n", i == 0 || i == 3999 ? i : i * 2 + k);
	}
	struct patch p = made(text[0], text[1]);
	tried(&p, text[0], text[1], NULL);
	assert_int_equal(p.files[0].added, 3998);
	patch_fini(&p);
	free(text[0]);
	free(text[1]);
}

#define TEN "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"

TEST(changed_meanwhile)
{
	struct patch p = made(TEN, "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n"), q;
	struct patch_clash why;

	/* Elsewhere: it fits, also when it has moved; and it is seen to be in already. */
	tried(&p, "0\n0\n" TEN "11\n", "0\n0\n1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n", NULL);
	assert_int_equal(tried(&p, "0\n1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n", NULL, NULL),
			 PATCH_DONE);
	/* Near it: a clash that names the hunk and the line. */
	assert_int_equal(tried(&p, "1\n2\n3\nvier\n5\n6\n7\n8\n9\n10\n", NULL, &why),
			 PATCH_CLASHES);
	assert_int_equal(why.hunk, 1);
	assert_int_equal(why.line, 2);
	/* At two places, and at neither of them by its number. */
	assert_int_equal(tried(&p, "x\n" TEN TEN, NULL, &why), PATCH_CLASHES);
	assert_string_equal(why.what, "its lines stand at several places");
	assert_int_equal(tried(&p, "\xff\n" TEN, NULL, &why), PATCH_CLASHES);
	assert_int_equal(tried(&p, NULL, NULL, &why), PATCH_CLASHES);
	assert_string_equal(why.what, "is not there any more");
	patch_fini(&p);
	/* With and without it its lines are there: nobody can tell. */
	q = made("a\na\na\na\na\na\na\na\n", "a\na\na\na\na\na\na\na\na\n");
	assert_int_equal(tried(&q, "a\na\na\na\na\na\na\na\na\na\nb\n", NULL, &why), PATCH_CLASHES);
	assert_int_equal(why.hunk, 0);
	patch_fini(&q);
}

TEST(new_and_gone)
{
	struct patch p = made(NULL, "new\n"), q = made("old\n", NULL), e = made(NULL, "");
	struct patch_clash why;

	assert_true(p.files[0].is_new);
	tried(&p, NULL, "new\n", NULL);
	assert_int_equal(tried(&p, "new\n", NULL, NULL), PATCH_DONE);
	assert_int_equal(tried(&p, "other\n", NULL, &why), PATCH_CLASHES);
	assert_true(q.files[0].is_gone);
	tried(&q, "old\n", "", NULL);
	assert_int_equal(tried(&q, NULL, NULL, NULL), PATCH_DONE);
	assert_int_equal(tried(&q, "other\n", NULL, &why), PATCH_CLASHES);
	tried(&e, NULL, "", NULL);
	assert_int_equal(tried(&e, "", NULL, NULL), PATCH_DONE);
	patch_fini(&p);
	patch_fini(&q);
	patch_fini(&e);
}

TEST(modes)
{
	struct patch_side old = side("x\n"), now = side("x\n");
	struct patch_clash why;
	struct patch p;
	TEST_BUF(out, PATCH_MAX);

	now.exec = true;
	assert_int_equal(patch_add(&out, "run", &old, &now), 1);
	assert_string_equal(out.data, "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n");
	assert_int_equal(patch_read(&p, out.data, out.len, NULL), 0);
	assert_true(p.files[0].exec && p.files[0].chmod);
	assert_int_equal(patch_try(&p.files[0], &old, &out, &why), PATCH_FITS);
	assert_string_equal(out.data, "x\n");
	assert_int_equal(patch_try(&p.files[0], &now, &out, &why), PATCH_DONE);
	patch_fini(&p);
	buf_reset(&out);
	assert_int_equal(patch_add(&out, "run", &old, &old), 0);
	assert_int_equal(out.len, 0);
}

TEST(names)
{
	static const char *const bad[] = {"",      "/a",   "a/",   "a//b", "../a", "a/../b", ".",
					  "a/./b", "a\nb", "a\"b", "a\\b", "a/..", "\xff"};
	static const char *const good[] = {"a", "a/b c", "..a", "a..", "ä/ö", "a/.b"};
	static const char *const kept[] = {".git",
					   ".git/hooks/pre-commit",
					   "sub/.git/config",
					   ".gitmodules",
					   ".env",
					   ".env.local",
					   ".envrc",
					   "deep/er/.bashrc",
					   ".vscode/tasks.json",
					   "x/.claude/a/b",
					   ".GIT/config",
					   ".Env",
					   ".mcp.json",
					   ".zshenv",
					   ".idea/x",
					   ".codex/c",
					   ".profile",
					   ".bash_profile",
					   ".zshrc",
					   ".zprofile",
					   ".ripgreprc",
					   ".gitconfig"};
	static const char *const free_ones[] = {".gitignore",  ".github/workflows/a.yml",
						"git",         "a.env",
						"src/profile", ".gitattributes"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (patch_path_ok(bad[i]))
			fail_msg("%s is taken", bad[i]);
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (!patch_path_ok(good[i]))
			fail_msg("%s is not taken", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (!patch_protected(kept[i]))
			fail_msg("%s is not protected", kept[i]);
	for (size_t i = 0; i < ARRAY_LEN(free_ones); i++)
		if (patch_protected(free_ones[i]))
			fail_msg("%s is protected", free_ones[i]);
}

TEST(what_programs_and_agents_obey)
{
	static const char *const obeyed[] = {".github/workflows/x.yml",
					     "sub/.husky/pre-commit",
					     ".vimrc",
					     "CLAUDE.md",
					     "a/agents.md",
					     "Gemini.md",
					     "x.mcp.json",
					     "AGENTS.override.md",
					     "SKILL.md",
					     "sitecustomize.py",
					     "mise.toml",
					     "p.code-workspace",
					     ".ava/roles/x.md",
					     ".clinerules",
					     ".npmrc",
					     "claude.local.md"};
	static const char *const not_obeyed[] = {"src/agent.c", "agents/list.py", "README.md",
						 "a.b/c",       "claude.py",      "mcp.json.c",
						 "x..y"};

	for (size_t i = 0; i < ARRAY_LEN(obeyed); i++)
		if (!patch_obeyed(obeyed[i]))
			fail_msg("%s is not", obeyed[i]);
	for (size_t i = 0; i < ARRAY_LEN(not_obeyed); i++)
		if (patch_obeyed(not_obeyed[i]))
			fail_msg("%s is", not_obeyed[i]);
}

/* Cut at every byte, and with every byte changed, fuzz_patch reads and tries one. */
TEST(no_patches)
{
	static const struct {
		const char *text;
		unsigned line;
	} none[] = {
		{"@@ -1 +1 @@\n", 1},
		{"# words\ndiff --git a/../x b/../x\n", 2},
		{"diff --git a/x b/x\nindex 1..2\n", 2},
		{"diff --git a/x b/x\n@@ -1,1 +1,1 @@\n-a\n+b\n@@ -9,1 +9,1 @@\n-a\n*b\n", 7},
	};

	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		struct ava_error err = {0};
		struct patch p;
		char want[80];

		assert_int_equal(patch_read(&p, none[i].text, strlen(none[i].text), &err),
				 AVA_ECORRUPT);
		snprintf(want, sizeof(want), "line %u is none of a patch that ava made",
			 none[i].line);
		assert_string_equal(err.text, want);
	}
}

TEST(memory)
{
	struct patch_side old = side(TEN), now = side("1\n2\n");
	struct patch_clash why;
	struct patch p;

	FAULT_LOOP(k, {
		struct buf out;
		int rv;

		buf_init(&out, PATCH_MAX);
		rv = patch_add(&out, "a", &old, &now);
		assert_true(rv == 1 || rv == AVA_ENOMEM);
		buf_fini(&out);
	});
	p = made(TEN, "1\n2\n");
	FAULT_LOOP(k, {
		struct buf out;
		int rv;

		buf_init(&out, PATCH_MAX);
		rv = patch_try(&p.files[0], &old, &out, &why);
		assert_true(rv == PATCH_FITS || rv == AVA_ENOMEM);
		buf_fini(&out);
	});
	patch_fini(&p);
}
