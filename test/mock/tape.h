/* One strict pass over a JSON text: a flat list of its values ("tape") that
 * borrows the text. No tree, no copies: a request of 20 KB costs some 20 us.
 * Refused: everything RFC 8259 refuses, bad UTF-8, lone surrogates, a member
 * named twice, more than 64 levels. */
#ifndef MOCK_TAPE_H
#define MOCK_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum tape_kind {
	TAPE_NULL,
	TAPE_FALSE,
	TAPE_TRUE,
	TAPE_NUMBER,
	TAPE_STRING,
	TAPE_ARRAY,
	TAPE_OBJECT,
};

struct tape_node {
	uint32_t start, end; /* its bytes in the text, quotes and brackets too */
	uint32_t next;       /* node behind this value and all inside it */
	uint32_t count;      /* elements or members */
	uint8_t kind;
	bool escaped; /* a string with backslashes */
};

/* Node 0 is the whole text, so 0 also means "none". In an object a key (a
 * string) and its value take turns. */
struct tape {
	const char *text; /* borrowed until the next tape_read */
	size_t len, at;
	struct tape_node *nodes;
	uint32_t n, cap;
	unsigned depth;
	char error[128]; /* what was wrong, when tape_read failed */
};

void tape_init(struct tape *t);
void tape_fini(struct tape *t);
/* False: t->error says why, t->at where. The memory is used again. */
bool tape_read(struct tape *t, const char *text, size_t len);

/* ---- reading; `node` is of the kind that the name says, or the answer is none */
uint32_t tape_get(const struct tape *t, uint32_t object, const char *key);
enum tape_kind tape_kind(const struct tape *t, uint32_t node);
bool tape_is(const struct tape *t, uint32_t node, const char *text); /* a string of these bytes */
/* Content of a string, unescaped, added to `out`; nothing for other kinds. */
void tape_text(const struct tape *t, uint32_t node, struct buf *out);
/* The same into a fixed place, cut to it. Returns `out`. */
char *tape_copy(const struct tape *t, uint32_t node, char *out, size_t size);
bool tape_int(const struct tape *t, uint32_t node, int64_t *out); /* whole numbers only */
bool tape_real(const struct tape *t, uint32_t node, double *out);
const char *tape_raw(const struct tape *t, uint32_t node, size_t *len);

#define TAPE_EACH(t, i, container)                                                                 \
	for (uint32_t i = (container) + 1; i < (t)->nodes[container].next; i = (t)->nodes[i].next)
/* Keys of an object; the value is i + 1. */
#define TAPE_EACH_KEY(t, i, object)                                                                \
	for (uint32_t i = (object) + 1; i < (t)->nodes[object].next; i = (t)->nodes[i + 1].next)

#endif
