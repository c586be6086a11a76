/* Bounded growing byte buffer; see buf.h.
 *
 * Memory doubles up to the bound. The first append that fails is remembered
 * and every later one is refused, so that a buffer never has a hole in its
 * middle; buf_reset makes it usable again. */
#include "base/buf.h"

#include <ava.h>
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define BUF_LEAST 64

void buf_init(struct buf *b, size_t max)
{
	assert(max < SIZE_MAX / 4); /* so that sums below cannot wrap */
	*b = (struct buf){.max = max};
}

void buf_fini(struct buf *b)
{
	free(b->data);
	*b = (struct buf){.max = b->max};
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	b->error = 0;
	if (b->data != NULL)
		b->data[0] = '\0';
}

static int fail_with(struct buf *b, int code)
{
	if (!b->failed) {
		b->failed = true;
		b->error = code;
	}
	return b->error;
}

static int buf_grow(struct buf *b, size_t len)
{
	size_t need, cap = MAX(b->cap, (size_t)BUF_LEAST);
	char *data;

	if (b->failed)
		return b->error;
	if (len > b->max - b->len)
		return fail_with(b, AVA_ETOOBIG);
	need = b->len + len + 1;
	while (cap < need)
		cap *= 2;
	cap = MIN(cap, b->max + 1);
	data = realloc(b->data, cap);
	if (data == NULL)
		return fail_with(b, AVA_ENOMEM);
	data[b->len] = '\0';
	b->data = data;
	b->cap = cap;
	return 0;
}

char *buf_reserve(struct buf *b, size_t len)
{
	if (b->failed)
		return NULL;
	/* cap counts the NUL, so cap - len - 1 bytes are free. */
	if (b->cap - b->len <= len && buf_grow(b, len) != 0)
		return NULL;
	return b->data + b->len;
}

int buf_add(struct buf *b, const void *data, size_t len)
{
	char *at = buf_reserve(b, len);

	if (at == NULL)
		return b->error;
	if (len != 0)
		memcpy(at, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int buf_adds(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_addc(struct buf *b, char c)
{
	return buf_add(b, &c, 1);
}

int buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
	size_t room;
	va_list again;
	char *at = buf_reserve(b, 0);
	int n;

	if (at == NULL)
		return b->error;
	va_copy(again, ap);
	room = b->cap - b->len;
	n = vsnprintf(at, room, fmt, ap);
	if (n >= 0 && (size_t)n >= room) {
		at[0] = '\0';
		at = buf_reserve(b, (size_t)n);
		if (at != NULL)
			n = vsnprintf(at, (size_t)n + 1, fmt, again);
	}
	va_end(again);
	if (at == NULL)
		return b->error;
	if (n < 0) { /* only for a string of over INT_MAX bytes */
		at[0] = '\0';
		return fail_with(b, AVA_ETOOBIG);
	}
	b->len += (size_t)n;
	return 0;
}

int buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int rv;

	va_start(ap, fmt);
	rv = buf_vaddf(b, fmt, ap);
	va_end(ap);
	return rv;
}

void buf_drop(struct buf *b, size_t len)
{
	assert(len <= b->len);
	if (len == 0)
		return;
	memmove(b->data, b->data + len, b->len - len + 1);
	b->len -= len;
}

int buf_check(const struct buf *b)
{
	return b->failed ? b->error : 0;
}

char *buf_take(struct buf *b, size_t *len)
{
	char *data;

	if (len != NULL)
		*len = 0;
	if (b->failed || buf_reserve(b, 0) == NULL)
		return NULL;
	data = b->data;
	if (len != NULL)
		*len = b->len;
	*b = (struct buf){.max = b->max};
	return data;
}

/* `array` is the address of a pointer of any type; memcpy avoids aliasing it. */
bool array_room(void *array, size_t *cap, size_t need, size_t size)
{
	size_t more = MAX(*cap, (size_t)4);
	void *items;

	if (need <= *cap)
		return true;
	while (more < need)
		more *= 2;
	memcpy(&items, array, sizeof(items));
	items = realloc(items, more * size);
	if (items == NULL) {
		errno = ENOMEM;
		return false;
	}
	memcpy(array, &items, sizeof(items));
	*cap = more;
	return true;
}
