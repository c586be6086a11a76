/* Heads of requests (provider/head.h) for tests, which write them into their lines as texts. */
#ifndef UNIT_HEADS_H
#define UNIT_HEADS_H

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "provider/head.h"

/* Keeps a head in memory; its name, until the next one is kept. */
static inline const char *heads_name(const char *text, size_t len)
{
	static char name[HASH_HEX_LEN + 1];
	struct hash_sha256 prefix;

	assert_int_equal(head_keep(text, len, name, &prefix), 0);
	return name;
}

/* The lines with the name of each head for its text; free(). */
static inline char *heads_named(const char *lines, size_t *len)
{
	static const char key[] = "\"head\":\"";
	const char *from = lines, *at;
	struct slice raw;
	struct jscan w;
	TEST_BUF(out, 1u << 20);
	TEST_BUF(text, 1u << 20);

	while ((at = strstr(from, key))) {
		at += sizeof(key) - 2;
		jscan_init(&w, at, strlen(at));
		w.last = ':';
		assert_true(jscan_string(&w, &raw));
		buf_reset(&text);
		assert_int_equal(jscan_text(&text, raw), 0);
		buf_add(&out, from, (size_t)(at - from));
		buf_addf(&out, "\"%s\"", heads_name(text.data, text.len));
		from = w.at;
	}
	buf_adds(&out, from);
	*len = out.len;
	return strdup(out.data);
}

/* A golden file of a folder that has its head in heads/. */
static inline void heads_golden(const char *folder, const char *file, size_t len)
{
	char path[200], *text;
	struct slice name;
	size_t at = 0, n;

	while (head_next(file, len, &at, &name)) {
		snprintf(path, sizeof(path), "%s/heads/%.*s", folder, HASH_HEX_LEN, name.s);
		text = unit_read_src(path, &n);
		assert_memory_equal(heads_name(text, n), name.s, HASH_HEX_LEN);
		free(text);
	}
}

#endif
