/* The secret of the MCP door: made once, kept, made anew; what carries its seal and what does not.
 */
#include "unit.h"

#include <ava.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/mcp_secret.h"

static char folder[] = "/tmp/ava-secret.XXXXXX";
static int root_fd;

static int make(void **state)
{
	assert_non_null(mkdtemp(folder));
	root_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return root_fd < 0;
}

static int clean(void **state)
{
	unlinkat(root_fd, "mcp.json", 0);
	close(root_fd);
	return rmdir(folder);
}

TEST(token)
{
	struct mcp_secret a = {.root_fd = root_fd}, b = {.root_fd = root_fd};
	char field[100], old[100];
	struct ava_error err = {0};
	struct stat st;

	assert_false(mcp_secret_allows(&a, "Bearer "));
	assert_int_equal(faccessat(root_fd, "mcp.json", F_OK, 0), -1);
	assert_int_equal(mcp_secret_have(&a, false, &err), 0);
	assert_int_equal(fstatat(root_fd, "mcp.json", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	snprintf(field, sizeof(field), "Bearer %s", a.token);
	assert_true(mcp_secret_allows(&b, field)); /* after a restart */
	field[0] = 'b';
	assert_true(mcp_secret_allows(&b, field)); /* the name of a scheme has no case (RFC 9110) */
	field[0] = 'B';
	assert_false(mcp_secret_allows(&b, NULL));
	assert_false(mcp_secret_allows(&b, a.token));
	assert_false(mcp_secret_allows(&b, "Bearer "));
	assert_false(mcp_secret_allows(&b, "Bearer 0"));
	field[70] ^= 1;
	assert_false(mcp_secret_allows(&b, field));
	field[70] ^= 1;
	memcpy(old, field, sizeof(old));
	assert_int_equal(mcp_secret_have(&b, true, &err), 0);
	assert_false(mcp_secret_allows(&b, old));
}

/* HMAC-SHA-256 of nothing under a key of zeros, as others compute it. */
TEST(seal)
{
	struct mcp_secret s = {.root_fd = root_fd, .known = true}, other;
	char seal[MCP_SEAL_LEN + 1];

	mcp_secret_seal(&s, "", seal);
	assert_string_equal(seal, "b613679a0814d9ec772f95d778c35fc5");
	assert_true(mcp_secret_is_seal(&s, "", seal));
	assert_false(mcp_secret_is_seal(&s, "a", seal));
	assert_false(mcp_secret_is_seal(&s, "", ""));
	other = s;
	other.key[31] = 1;
	assert_false(mcp_secret_is_seal(&other, "", seal));
}

TEST(kept)
{
	struct mcp_secret a = {.root_fd = root_fd}, b = {.root_fd = root_fd};
	char seal[MCP_SEAL_LEN + 1];
	struct ava_error err = {0};
	int fd;

	assert_int_equal(mcp_secret_have(&a, false, &err), 0);
	mcp_secret_seal(&a, "task S-7f3a2b", seal);
	assert_int_equal(mcp_secret_have(&b, true, &err), 0); /* a new token is no new key */
	assert_true(mcp_secret_is_seal(&b, "task S-7f3a2b", seal));
	fd = openat(root_fd, "mcp.json", O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "{torn", 5), 5);
	close(fd);
	b = (struct mcp_secret){.root_fd = root_fd};
	assert_false(mcp_secret_allows(&b, "Bearer x"));
	b.root_fd = -1; /* the disk takes nothing: nothing is sealed by what would be forgotten */
	assert_int_equal(mcp_secret_have(&b, false, &err), AVA_EIO);
	assert_false(b.known);
	b.root_fd = root_fd;
	assert_int_equal(mcp_secret_have(&b, false, &err), 0);
	assert_false(mcp_secret_is_seal(&b, "task S-7f3a2b", seal));
}

/* What cannot be read may be whole: it is not written over. */
TEST(not_to_be_read)
{
	struct mcp_secret s = {.root_fd = root_fd};
	struct ava_error err = {0};
	struct stat st;

	unlinkat(root_fd, "mcp.json", 0);
	assert_int_equal(symlinkat("mcp.json", root_fd, "mcp.json"), 0);
	assert_int_equal(mcp_secret_have(&s, false, &err), AVA_EIO);
	assert_non_null(strstr(err.text, "mcp.json"));
	assert_int_equal(mcp_secret_have(&s, true, &err), AVA_EIO);
	assert_false(mcp_secret_allows(&s, "Bearer x"));
	assert_int_equal(fstatat(root_fd, "mcp.json", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(st.st_mode));
}

UNIT_GROUP(.first = make, .last = clean);
