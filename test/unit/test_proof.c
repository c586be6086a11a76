/* Checks of results: what may be asked for, what is confirmed, and which files a command runs. */
#include "spec_rig.h"

#include <ava.h>
#include <string.h>

#include "base/settings.h"
#include "subagent/proof.h"

TEST(files_that_a_command_runs)
{
	static const struct {
		const char *command, *path;
		bool runs;
	} rows[] = {
		{"./check.sh", "check.sh", true},
		{"sh ./check.sh --all", "check.sh", true},
		{"bash -c \"a && ./scripts/check.sh\"", "scripts/check.sh", true},
		{"cd sub && ./check.sh", "sub/check.sh", true},
		{"./check.sh", "recheck.sh", false},
		{"./check.sh", "check.sh.md", false},
		{"run tests/", "tests/deep/a.txt", true},
		{"make test", "Makefile", true},
		{"make test", "sub/Makefile", true},
		{"make test", "test/a.c", true},
		{"make test", "src/a.c", false},
		{"remake test-all", "Makefile", false},
		{"/usr/bin/make", "Makefile", true},
		{"npm test", "package.json", true},
		{"npm test", "src/a.test.ts", true},
		{"npm test", "Makefile", false},
		{"cargo test", "Cargo.toml", true},
		{"CI=1 python3 -m pytest -q", "pyproject.toml", true},
		{"pytest", "pkg/test_a.py", true},
		{"true", "test/a.c", false},
		{"/home/p/repo/check.sh", "check.sh", true},
		{"cd sub && ../check.sh", "check.sh", true},
		{"\"$PWD/check.sh\"", "check.sh", true},
		{"/home/p/recheck.sh", "check.sh", false},
		{"sh test*.sh", "test_a.sh", true},
		{"sh test*.sh", "sub/test_a.sh", true},
		{"sh t?st.sh", "test.sh", true},
		{"for t in ./[a-c]*; do sh $t; done", "check.sh", true},
		{"for t in ./[a-c]*; do sh $t; done", "dig.sh", false},
		{"bash -c 'sh test{1,2}.sh'", "test2.sh", true},
		{"sh {a,b}{1,2}.sh,x", "b1.sh", true},
		{"sh te*/all", "tests/all", true},
		{"sh te*/all", "tests/all.sh", false},
		{"sh dir*", "dir1/deep/a.sh", true},
		{"${HERE}/check.sh", "check.sh", true},
		{"for t in *; do sh $t; done", "a", true},
		{"\"${PYTHON:-python3}\" -V", "a", false},
		{"${TESTS}*.sh", "a.sh", true},
		{"{ true; }", "a", false},
		{"echo {}", "a", false},
		{"", "a", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (proof_runs(rows[i].command, rows[i].path) != rows[i].runs)
			fail_msg("%s, %s", rows[i].command, rows[i].path);
}

static void proof_refused(const char *role, const char *cwd, const char *check, int64_t rounds,
			  const char *sentence)
{
	struct op_spawn s = spawn_usual("look", cwd);
	struct ava_error err = {0};
	struct run_spec *r = NULL;
	struct settings set;

	settings_defaults(&set);
	s.role = role;
	s.check = check;
	s.check_rounds = rounds;
	assert_int_equal(spec_build(&r, &s, &set, NULL, NULL, &err), AVA_EINVAL);
	if (!strstr(err.text, sentence))
		fail_msg("%s", err.text);
}

TEST(refused)
{
	proof_refused("researcher", "/tmp", "true", 2, "role researcher may run none here");
	proof_refused("code_reviewer", "/tmp", "true", 11, "0 to 10");
	proof_refused("code_reviewer", "/tmp", "true", -2, "0 to 10");
	proof_refused("code_reviewer", "/tmp", "a\nb", 2, "one line");
	proof_refused("code_reviewer", "/tmp", "  ", 2, "1 to 1000 bytes");
}

/* A check is part of what is confirmed and comes back from it; without one nothing changes. */
TEST(confirmed)
{
	struct op_spawn s = spawn_usual("look", "/tmp");
	struct run_spec *r, *again;
	struct settings set;
	char hash[HASH_HEX_LEN + 1];

	settings_defaults(&set);
	r = spec_built(&s, &set);
	assert_null(r->agent.check);
	assert_null(strstr(r->config, "\"check\""));
	memcpy(hash, r->hash, sizeof(hash));
	spec_free(r);
	s.check = "make test";
	s.check_rounds = AVA_DEFAULT;
	r = spec_built(&s, &set);
	assert_non_null(strstr(r->config, "\"check\":{\"command\":\"make test\",\"rounds\":2}"));
	assert_string_not_equal(r->hash, hash);
	memcpy(hash, r->hash, sizeof(hash));
	again = spec_again(r);
	assert_string_equal(again->hash, hash);
	assert_string_equal(again->agent.check, "make test");
	assert_int_equal(again->agent.check_rounds, 2);
	spec_free(again);
	spec_free(r);
	s.check_rounds = 0;
	r = spec_built(&s, &set);
	assert_int_equal(r->agent.check_rounds, 0);
	assert_string_not_equal(r->hash, hash);
	spec_free(r);
}
