/* Sentences, their context, and the words behind the codes. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"

TEST(set)
{
	struct ava_error err;

	assert_int_equal(err_set(&err, AVA_EINVAL, "limit %d\nis bad", 3), AVA_EINVAL);
	assert_int_equal(err.code, AVA_EINVAL);
	assert_string_equal(err.text, "limit 3 is bad"); /* one line */
	assert_int_equal(err_set(NULL, AVA_EIO, "nobody listens"), AVA_EIO);
}

TEST(set_from_itself)
{
	struct ava_error err = {.text = "inner"};

	err_set(&err, AVA_EIO, "outer (%s)", err.text);
	assert_string_equal(err.text, "outer (inner)");
}

TEST(errno_texts)
{
	static const struct {
		int number, code;
	} cases[] = {
		{ENOSPC, AVA_EFULL},  {EDQUOT, AVA_EFULL},   {ENOENT, AVA_ENOENT},
		{ENOMEM, AVA_ENOMEM}, {EACCES, AVA_EDENIED}, {EPERM, AVA_EDENIED},
		{EROFS, AVA_EDENIED}, {EIO, AVA_EIO},        {EBADF, AVA_EIO},
	};
	struct ava_error err;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		errno = cases[i].number;
		assert_int_equal(err_sys(&err, "open %s", "x"), cases[i].code);
		assert_int_equal(err.code, cases[i].code);
		assert_int_equal(errno, cases[i].number); /* kept for the caller */
		assert_memory_equal(err.text, "open x: ", 8);
		errno = cases[i].number;
		assert_int_equal(err_sys(NULL, "x"), cases[i].code);
	}
	errno = ENOENT;
	err_sys(&err, "open x");
	assert_string_equal(err.text, "open x: No such file or directory");
}

TEST(wrap)
{
	struct ava_error err = {0};

	err_set(&err, AVA_ENOENT, "gone");
	assert_int_equal(err_wrap(&err, AVA_ECORRUPT, "view %d", 7), AVA_ECORRUPT);
	assert_string_equal(err.text, "view 7: gone");
	assert_int_equal(err.code, AVA_ECORRUPT);
	err = (struct ava_error){0};
	err_wrap(&err, AVA_EBUSY, "root");
	assert_string_equal(err.text, "root: in use"); /* nothing was there */
	assert_int_equal(err_wrap(NULL, AVA_EBUSY, "root"), AVA_EBUSY);
}

TEST(long_is_cut)
{
	char text[1000];
	struct ava_error err;

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_set(&err, AVA_EIO, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	err_wrap(&err, AVA_EIO, "b");
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_memory_equal(err.text, "b: aaa", 6);
}

/* Wherever the cut falls, no half of a character stays. */
TEST(cut_between_characters)
{
	char text[1200];
	struct ava_error err;

	for (size_t ascii = 0; ascii < 4; ascii++) {
		memset(text, 'x', ascii);
		for (size_t at = ascii; at < sizeof(text) - 4; at += 4)
			memcpy(text + at, "\xf0\x9f\xa6\xa6", 5);
		err_set(&err, AVA_EIO, "%s", text);
		assert_int_equal((strlen(err.text) - ascii) % 4, 0);
		assert_true(strlen(err.text) + 8 > sizeof(err.text));
	}
}

TEST(words)
{
	assert_string_equal(err_word(AVA_ENOENT), "not_found");
	assert_string_equal(err_word(-999), "internal");
	assert_string_equal(ava_strerror(AVA_OK), "no error");
	assert_string_equal(ava_strerror(AVA_EUNKNOWN), "the outcome is unknown: ask again");
	assert_string_equal(ava_strerror(5), "unknown error");
	assert_string_equal(ava_status_name(AVA_STARTING), "starting");
	assert_string_equal(ava_status_name(AVA_ERROR), "error");
	assert_string_equal(ava_status_name((enum ava_status)99), "unknown");
	assert_string_equal(ava_version(), AVA_VERSION);
}
