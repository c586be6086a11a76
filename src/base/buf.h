/* Bounded growing byte buffer. The bound is given at init, so that no input
 * can grow one without end. After a failed append the buffer keeps what it
 * had and `failed` stays set until buf_reset, so that a run of appends needs
 * one check at its end (buf_check). */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdarg.h>

struct buf {
	char *data; /* NUL-terminated when not NULL; owned */
	size_t len; /* without the NUL */
	size_t cap;
	size_t max;  /* most bytes allowed */
	bool failed; /* an append did not fit, or memory ran out */
	int error;   /* AVA_ENOMEM or AVA_ETOOBIG; 0 while not failed */
};

void buf_init(struct buf *b, size_t max);
void buf_fini(struct buf *b);
void buf_reset(struct buf *b); /* make it empty; keeps the memory */

/* Append to the buffer: 0, AVA_ENOMEM or AVA_ETOOBIG. */
int buf_add(struct buf *b, const void *data, size_t len);
int buf_adds(struct buf *b, const char *s);
int buf_addc(struct buf *b, char c);
int buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_vaddf(struct buf *b, const char *fmt, va_list ap);
/* Make room for `len` more bytes; returns where they go, NULL when they do not fit. The caller adds
 * the used number to b->len (and keeps data[len] = 0). */
char *buf_reserve(struct buf *b, size_t len);
void buf_drop(struct buf *b, size_t len); /* remove `len` bytes from the front */

/* 0, or the error of the first append that failed. */
int buf_check(const struct buf *b);

/* The caller owns the returned NUL-terminated bytes (free()); the buffer is
 * empty again. NULL when the buffer failed; an empty buffer gives "". */
char *buf_take(struct buf *b, size_t *len);

/* Room for `need` items of an array that grows by doubling; `cap` (size_t) is its present room.
 * False: no memory (see errno), and nothing has changed. */
#define ARRAY_ROOM(array, cap, need) array_room(&(array), &(cap), need, sizeof(*(array)))
bool array_room(void *array, size_t *cap, size_t need, size_t size);

#endif
