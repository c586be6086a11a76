/* What mcp.json says becomes servers: what is a secret in it is known as one, whole; without memory
 * it is that which is told. What is wrong in it: test/cli/test_mcp_servers.sh. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/env.h"
#include "codec/redact.h"
#include "tool/mcp_conf.h"

static char path[400];

static const char *const env[] = {"HOME=/", "PASSPHRASE=the heron fishes at dawn", NULL};

#define FILE_TEXT                                                                                  \
	"{\"mcpServers\":{"                                                                        \
	"\"notes\":{\"command\":\"sh\",\"args\":[\"-c\",\"${MODE:-quiet}\"],\"env\":{"             \
	"\"A\":\"${PASSPHRASE}\",\"NOTES_PASSWORD\":\"otter likes cold water\",\"B\":\"plain\"},"  \
	"\"ava\":{\"read\":[\"/usr\"],\"idle\":7}},"                                               \
	"\"web\":{\"url\":\"https://h.example?k=1#x\",\"headers\":{"                               \
	"\"Authorization\":\"Bearer abcdefgh-12345\"},\"ava\":{\"private\":false}},"               \
	"\"deep\":{\"url\":\"https://h.example:8/a/b?c\"}}}"

TEST(secrets)
{
	static const char *const secrets[] = {"the heron fishes at dawn", "otter likes cold water",
					      "abcdefgh-12345"};
	struct redact *redact = redact_new();
	struct ava_error err = {0};
	struct mcp_confs c;
	struct buf out;

	assert_int_equal(mcp_confs_read(&c, path, redact, &err), 0);
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		buf_init(&out, 1000);
		assert_int_equal(redact_text(redact, &out, secrets[i], strlen(secrets[i])), 1);
		assert_string_equal(out.data, "[redacted]");
		buf_fini(&out);
	}
	assert_false(redact_has_known(redact, "plain Bearer quiet", 18));
	arena_fini(&c.mem);
	redact_free(redact);
}

TEST(servers)
{
	struct ava_error err = {0};
	struct mcp_confs c;

	assert_int_equal(mcp_confs_read(&c, path, NULL, &err), 0);
	assert_int_equal(c.n, 3);
	assert_string_equal(c.v[0].argv[2], "quiet");
	assert_null(c.v[0].argv[3]);
	assert_string_equal(c.v[0].env[0], "A=the heron fishes at dawn");
	assert_string_equal(c.v[0].reads[0], "/usr");
	assert_int_equal(c.v[0].idle_ms, 7000);
	assert_int_equal(c.v[0].call_ms, 60000);
	assert_string_equal(c.v[1].url, "https://h.example");
	assert_string_equal(c.v[1].path, "/?k=1");
	assert_string_equal(c.v[2].url, "https://h.example:8");
	assert_string_equal(c.v[2].path, "/a/b?c");
	arena_fini(&c.mem);
}

TEST(no_memory)
{
	FAULT_LOOP(k, {
		struct ava_error err = {0};
		struct mcp_confs c;
		int rv = mcp_confs_read(&c, path, NULL, &err);

		if (rv != 0 && rv != AVA_ENOMEM)
			fail_msg("%ld: %s", k, err.text);
		arena_fini(&c.mem);
	});
}

static const char *folder;

static int first(void **state)
{
	folder = unit_tmpdir();
	snprintf(path, sizeof(path), "%s/mcp.json", folder);
	unit_write(path, FILE_TEXT, strlen(FILE_TEXT));
	assert_int_equal(env_only(env, NULL), 0);
	return 0;
}

static int last(void **state)
{
	env_process();
	unit_rmdir(folder);
	return 0;
}

UNIT_GROUP(.first = first, .last = last);
