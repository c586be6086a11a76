/* Growth, the bound, and what is left after a failed append. */
#include "unit.h"

#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

TEST(append)
{
	struct buf b;
	size_t len;
	char *s;

	buf_init(&b, 1000);
	assert_null(b.data); /* nothing is allocated before it is needed */
	assert_int_equal(buf_adds(&b, "one "), 0);
	assert_int_equal(buf_add(&b, "t\0o", 3), 0);
	assert_int_equal(buf_addc(&b, ' '), 0);
	assert_int_equal(buf_addf(&b, "%d-%s", 3, "three"), 0);
	assert_int_equal(b.len, 15);
	assert_memory_equal(b.data, "one t\0o 3-three", 16);
	s = buf_take(&b, &len);
	assert_int_equal(len, 15);
	assert_int_equal(s[15], '\0');
	free(s);
	assert_int_equal(b.len, 0);
	assert_int_equal(buf_adds(&b, "again"), 0);
	assert_string_equal(b.data, "again");
	buf_fini(&b);
}

TEST(grows_by_one)
{
	TEST_BUF(b, 5000);

	for (int i = 0; i < 5000; i++)
		assert_int_equal(buf_addc(&b, (char)('a' + i % 26)), 0);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(b.data[i], 'a' + i % 26);
	assert_true(b.cap <= 5001);
	assert_int_equal(buf_addc(&b, 'x'), AVA_ETOOBIG);
}

/* The append that does not fit changes nothing, and none comes after it. */
TEST(bound)
{
	struct buf b;

	buf_init(&b, 8);
	assert_int_equal(buf_adds(&b, "12345678"), 0);
	assert_int_equal(buf_check(&b), 0);
	assert_int_equal(buf_addf(&b, "%d", 9), AVA_ETOOBIG);
	buf_reset(&b);
	assert_int_equal(buf_addf(&b, "%s", "12345678"), 0);
	assert_string_equal(b.data, "12345678");
	assert_int_equal(buf_addf(&b, "%s", "123456789"), AVA_ETOOBIG);
	buf_reset(&b);
	assert_int_equal(buf_adds(&b, "1234"), 0);
	assert_int_equal(buf_adds(&b, "56789"), AVA_ETOOBIG);
	assert_string_equal(b.data, "1234");
	assert_true(b.failed);
	assert_int_equal(buf_addc(&b, '5'), AVA_ETOOBIG);
	assert_null(buf_reserve(&b, 0));
	assert_null(buf_take(&b, NULL));
	assert_int_equal(buf_check(&b), AVA_ETOOBIG);
	buf_reset(&b);
	assert_int_equal(buf_check(&b), 0);
	assert_int_equal(buf_addc(&b, '5'), 0);
	assert_string_equal(b.data, "5");
	buf_fini(&b);
}

/* vsnprintf is given more room than is used, never more than the bound. */
TEST(printf_at_the_edge)
{
	struct buf b;

	for (size_t before = 0; before < 80; before++) {
		buf_init(&b, 100);
		for (size_t i = 0; i < before; i++)
			buf_addc(&b, 'a');
		assert_int_equal(buf_addf(&b, "%*s", (int)(100 - before), "z"), 0);
		assert_int_equal(b.len, 100);
		assert_int_equal(b.data[99], 'z');
		buf_fini(&b);
		buf_init(&b, 100);
		for (size_t i = 0; i < before; i++)
			buf_addc(&b, 'a');
		assert_int_equal(buf_addf(&b, "%*s", (int)(101 - before), "z"), AVA_ETOOBIG);
		assert_int_equal(b.len, before);
		if (before > 0)
			assert_int_equal(strlen(b.data), before);
		buf_fini(&b);
	}
}

TEST(reserve_and_drop)
{
	TEST_BUF(b, 100);
	char *at;

	at = buf_reserve(&b, 10);
	assert_non_null(at);
	memcpy(at, "0123456789", 11);
	b.len += 10;
	buf_drop(&b, 0);
	buf_drop(&b, 4);
	assert_string_equal(b.data, "456789");
	buf_drop(&b, 6);
	assert_string_equal(b.data, "");
	assert_null(buf_reserve(&b, 101));
}

TEST(empty_take)
{
	struct buf b;
	size_t len = 7;
	char *s;

	buf_init(&b, 0);
	s = buf_take(&b, &len);
	assert_string_equal(s, "");
	assert_int_equal(len, 0);
	free(s);
	assert_int_equal(buf_addc(&b, 'x'), AVA_ETOOBIG);
	buf_fini(&b);
}

static void out_of_memory(long k)
{
	TEST_BUF(b, 4096);
	int first = 0, rv;

	for (int i = 0; i < 1000; i++) {
		rv = buf_addf(&b, "%d,", i % 10);
		if (first == 0)
			first = rv;
		assert_int_equal(rv, first);
	}
	assert_int_equal(buf_check(&b), first);
	assert_true(first == 0 || first == AVA_ENOMEM);
	assert_true(first != 0 || b.len == 2000);
}

TEST(out_of_memory)
{
	FAULT_LOOP(k, out_of_memory(k));
}
