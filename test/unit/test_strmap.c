/* The map against a plain array as its model; the set of names. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strmap.h"

#define KEYS 500

static char keys[KEYS][16];

static int make_keys(void **state)
{
	for (int i = 0; i < KEYS; i++)
		snprintf(keys[i], sizeof(keys[i]), "key-%d", i * i);
	return 0;
}

TEST(put_get_del)
{
	struct strmap m;
	int a, b;

	strmap_init(&m);
	assert_null(strmap_get(&m, "x"));
	assert_null(strmap_del(&m, "x"));
	assert_int_equal(strmap_put(&m, "x", &a), 0);
	assert_int_equal(strmap_put(&m, "x", &b), AVA_EEXIST);
	assert_ptr_equal(strmap_get(&m, "x"), &a);
	assert_int_equal(strmap_put(&m, "", &b), 0);
	assert_ptr_equal(strmap_get(&m, ""), &b);
	assert_ptr_equal(strmap_del(&m, "x"), &a);
	assert_null(strmap_get(&m, "x"));
	assert_int_equal(m.count, 1);
	strmap_fini(&m);
}

/* Random puts and deletes; every step agrees with the model. */
TEST(against_model)
{
	bool in[KEYS] = {false};
	size_t count = 0;
	struct strmap m;

	strmap_init(&m);
	srandom(7);
	for (int step = 0; step < 50000; step++) {
		int i = (int)(random() % KEYS);

		if (random() % 2 == 0) {
			assert_int_equal(strmap_put(&m, keys[i], keys[i]), in[i] ? AVA_EEXIST : 0);
			count += !in[i];
			in[i] = true;
		} else {
			assert_ptr_equal(strmap_del(&m, keys[i]), in[i] ? keys[i] : NULL);
			count -= in[i];
			in[i] = false;
		}
		assert_int_equal(m.count, count);
		i = (int)(random() % KEYS);
		assert_ptr_equal(strmap_get(&m, keys[i]), in[i] ? keys[i] : NULL);
	}
	assert_true(m.cap <= 2048); /* removed slots do not pile up */
	strmap_fini(&m);
}

TEST(walk)
{
	bool seen[KEYS] = {false};
	size_t at = 0, n = 0;
	struct strmap m;
	char *k;

	strmap_init(&m);
	assert_null(strmap_next(&m, &at));
	for (int i = 0; i < KEYS; i++)
		strmap_put(&m, keys[i], keys[i]);
	for (int i = 0; i < KEYS; i += 3)
		strmap_del(&m, keys[i]);
	at = 0;
	while ((k = strmap_next(&m, &at)) != NULL) {
		size_t i = (size_t)(k - keys[0]) / sizeof(keys[0]);

		assert_false(seen[i]);
		assert_true(i % 3 != 0);
		seen[i] = true;
		n++;
	}
	assert_int_equal(n, m.count);
	strmap_fini(&m);
}

/* Another map orders the same keys in another way. */
TEST(seeded)
{
	struct strmap m[2];
	size_t at[2] = {0, 0}, differ = 0;

	for (int j = 0; j < 2; j++) {
		strmap_init(&m[j]);
		for (int i = 0; i < KEYS; i++)
			strmap_put(&m[j], keys[i], keys[i]);
	}
	for (int i = 0; i < KEYS; i++)
		differ += strmap_next(&m[0], &at[0]) != strmap_next(&m[1], &at[1]);
	assert_true(differ > KEYS / 2);
	strmap_fini(&m[0]);
	strmap_fini(&m[1]);
}

TEST(nameset)
{
	struct nameset s = {0};
	char name[24];

	assert_int_equal(nameset_has(&s, "S-000000"), 0);
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "S-%06x", i * 7);
		assert_int_equal(nameset_add(&s, name), 0);
		assert_int_equal(nameset_add(&s, name), 0); /* twice is once */
	}
	assert_int_equal(s.count, 20000);
	for (unsigned i = 0; i < 140000; i++) {
		snprintf(name, sizeof(name), "S-%06x", i);
		assert_int_equal(nameset_has(&s, name), i % 7 == 0);
	}
	nameset_fini(&s);
	assert_int_equal(nameset_has(&s, "S-000000"), 0);
}

static void map_without_memory(long k)
{
	struct strmap m;
	size_t put = 0;

	strmap_init(&m);
	for (int i = 0; i < KEYS; i++) {
		int rv = strmap_put(&m, keys[i], keys[i]);

		assert_true(rv == 0 || rv == AVA_ENOMEM);
		put += rv == 0;
		assert_ptr_equal(strmap_get(&m, keys[i]), rv == 0 ? keys[i] : NULL);
	}
	assert_int_equal(m.count, put);
	assert_true(put >= KEYS - 1); /* the next try finds memory again */
	strmap_fini(&m);
}

static void nameset_without_memory(long k)
{
	struct nameset s = {0};
	size_t added = 0;

	for (int i = 0; i < KEYS; i++)
		added += nameset_add(&s, keys[i]) == 0;
	assert_int_equal(s.count, added);
	assert_true(added >= KEYS - 1);
	nameset_fini(&s);
}

TEST(out_of_memory)
{
	FAULT_LOOP(k, map_without_memory(k));
	FAULT_LOOP(k, nameset_without_memory(k));
}

UNIT_GROUP(.first = make_keys);
