/* A chunk of a log's block index: which of its lines can be wanted, told
 * without reading them. Pure: bytes in memory. doc/QUERY.md, "The index". */
#ifndef JOURNAL_QUERY_INDEX_H
#define JOURNAL_QUERY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "journal/query.h"

#define QUERY_INDEX_CHUNK ((size_t)4 << 20)  /* bytes in which its lines begin */
#define QUERY_INDEX_BLOCK ((size_t)64 << 10) /* the same, of a block, at the most */
#define QUERY_INDEX_HEAD  304                /* bytes of a head */
#define QUERY_INDEX_OTHER 31                 /* names that are not known, and the last kind */
#define QUERY_INDEX_KINDS 32
_Static_assert(EVENT_NKINDS <= QUERY_INDEX_KINDS, "a bit for each kind");

enum query_index_part {
	QUERY_INDEX_BLOCKS,  /* where each begins, its kinds and times: 64 bytes */
	QUERY_INDEX_WHOS,    /* four hashes for each different agent, session, trace, user */
	QUERY_INDEX_NUMBERS, /* which of those a line is of: 2 bytes; none when there is one */
	QUERY_INDEX_KIND,    /* of each line: 1 byte */
	QUERY_INDEX_STARTS,  /* of each line in its block: 2 bytes */
	QUERY_INDEX_MODELS,  /* events and what they cost, for each kind and model */
	QUERY_INDEX_COPIES,  /* of each that may stand in two logs: model, lsn */
	QUERY_INDEX_NPARTS
};

struct query_index_head {
	uint64_t at;         /* in the log, of its first line */
	uint32_t bytes, crc; /* of the log's; their CRC32C */
	uint32_t lines, blocks, whos;
	bool opaque;      /* no parts: all of it is looked at, whatever is asked */
	uint32_t kinds;   /* bit per kind */
	uint64_t sums[4]; /* of InferEnd: input, output, micro-USD, without a price */
	char earliest[CLOCK_ISO_LEN], latest[CLOCK_ISO_LEN];
	uint32_t counts[QUERY_INDEX_KINDS];
	uint32_t part_crc[QUERY_INDEX_NPARTS]; /* STARTS: 0, each block has its own */
	uint32_t models;                       /* bytes of that part; 0: they are too many */
};

/* The first QUERY_INDEX_HEAD bytes of a chunk. False: they are none. */
bool query_index_head_get(const unsigned char *bytes, struct query_index_head *h);
void query_index_head_put(unsigned char *bytes, const struct query_index_head *h);
/* Bytes of a part, and of a chunk in all. */
size_t query_index_part_size(const struct query_index_head *h, enum query_index_part part);
size_t query_index_size(const struct query_index_head *h);

struct query_index_block {
	uint32_t at, first; /* byte in the chunk, line in the chunk */
	uint32_t kinds, starts_crc;
	char earliest[CLOCK_ISO_LEN], latest[CLOCK_ISO_LEN];
};
#define QUERY_INDEX_BLOCK_SIZE 64
void query_index_block_get(const unsigned char *bytes, struct query_index_block *b);
void query_index_block_put(unsigned char *bytes, const struct query_index_block *b);

struct query_index_model {
	unsigned kind;    /* QUERY_INDEX_OTHER: the last, and any that is not known */
	const char *name; /* in the part; "" where a line has none */
	size_t len;
	uint32_t count;
	uint64_t sums[4]; /* as of a head; of other kinds 0 */
};
#define QUERY_INDEX_MODEL_MAX (8 + 32 + UINT8_MAX) /* bytes of one */
/* Of a run's spawn and its end: they stand in its log and in the day's. */
#define QUERY_INDEX_COPIED                                                                         \
	(UINT64_C(1) << EVENT_SubagentSpawn | UINT64_C(1) << EVENT_SubagentComplete)
struct query_index_copy {
	uint32_t model; /* which of the part MODELS, from 0 */
	uint64_t lsn;
};
#define QUERY_INDEX_COPY_SIZE 10
/* The next of a part that is checked; *at from 0. False: there are no more. */
bool query_index_model_next(const unsigned char *part, size_t len, size_t *at,
			    struct query_index_model *m);
size_t query_index_model_put(unsigned char *bytes, const struct query_index_model *m); /* size */
void query_index_copy_get(const unsigned char *bytes, struct query_index_copy *c);
void query_index_copy_put(unsigned char *bytes, const struct query_index_copy *c);

/* agent, session, trace, user: as they stand in the line. */
#define QUERY_INDEX_WHO_SIZE 16
uint32_t query_index_hash(const char *id, size_t len);

/* Which parts the question needs of this chunk: bit per part; 0: none, since
 * all of it (*all) or nothing of it is to be looked at. */
unsigned query_index_needs(const struct query_index_head *h, const struct query *q, bool *all);

/* Bytes of the chunk in which wanted lines can be, in order, each from a
 * line's begin to a line's end. Zero-initialised is empty; free(v). */
struct query_stretches {
	struct query_stretch {
		uint32_t from, to;
	} * v;
	size_t n, cap;
};
int query_stretches_add(struct query_stretches *s, uint32_t from, uint32_t to); /* 0, AVA_ENOMEM */

/* `parts` of those that query_index_needs named, already checked by their
 * CRC32C (STARTS is checked here); others NULL. Replaces what is in *out. 0,
 * AVA_ENOMEM, or AVA_ECORRUPT: the chunk is not as it was written. */
int query_index_select(const struct query_index_head *h,
		       const unsigned char *const parts[QUERY_INDEX_NPARTS], const struct query *q,
		       struct query_stretches *out);

#endif
