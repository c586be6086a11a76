/* A chunk of a log's block index; query_index.h.
 *
 * Happy path: the head rules a chunk out by time and kind, the hashes of ids
 * by who is in it; then a block by time and kind, and last a line by its kind
 * and its number. Nothing here says that a line is wanted: what is selected is
 * read and asked like any other line, so that a hash that fits by chance costs
 * a look.
 *
 * What can fail: bytes that pass their checksum and still make no sense (a
 * start behind the end) are AVA_ECORRUPT; the chunk is read whole then. */
#include "journal/query_index.h"

#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/le.h"
#include "base/util.h"

#define MAGIC "chnk"

#define SIZES_AT  4
#define TIMES_AT  72
#define COUNTS_AT 120
#define CRCS_AT   248
#define MODELS_AT 276
#define CRC_AT    (QUERY_INDEX_HEAD - 4)
#define OPAQUE    1u

#define MODEL_FRONT 8 /* bytes: kind, length of the name, 0, how many */

/* ---- heads and blocks */

bool query_index_head_get(const unsigned char *p, struct query_index_head *h)
{
	if (memcmp(p, MAGIC, 4) != 0 || get32(p + CRC_AT) != crc32c(0, p, CRC_AT))
		return false;
	*h = (struct query_index_head){
		.bytes = get32(p + SIZES_AT),
		.at = get64(p + 8),
		.crc = get32(p + 16),
		.lines = get32(p + 20),
		.blocks = get32(p + 24),
		.whos = get32(p + 28),
		.opaque = (get32(p + 32) & OPAQUE) != 0,
		.kinds = get32(p + 36),
	};
	for (int i = 0; i < 4; i++)
		h->sums[i] = get64(p + 40 + 8 * i);
	memcpy(h->earliest, p + TIMES_AT, CLOCK_ISO_LEN);
	memcpy(h->latest, p + TIMES_AT + CLOCK_ISO_LEN, CLOCK_ISO_LEN);
	for (int i = 0; i < QUERY_INDEX_KINDS; i++)
		h->counts[i] = get32(p + COUNTS_AT + 4 * i);
	for (int i = 0; i < QUERY_INDEX_NPARTS; i++)
		h->part_crc[i] = get32(p + CRCS_AT + 4 * i);
	h->models = get32(p + MODELS_AT);
	return h->bytes > 0 && h->whos <= UINT16_MAX && h->blocks <= h->lines &&
	       h->lines <= h->bytes;
}

void query_index_head_put(unsigned char *p, const struct query_index_head *h)
{
	memset(p, 0, QUERY_INDEX_HEAD);
	memcpy(p, MAGIC, 4);
	put32(p + SIZES_AT, h->bytes);
	put64(p + 8, h->at);
	put32(p + 16, h->crc);
	put32(p + 20, h->lines);
	put32(p + 24, h->blocks);
	put32(p + 28, h->whos);
	put32(p + 32, h->opaque ? OPAQUE : 0);
	put32(p + 36, h->kinds);
	for (int i = 0; i < 4; i++)
		put64(p + 40 + 8 * i, h->sums[i]);
	memcpy(p + TIMES_AT, h->earliest, CLOCK_ISO_LEN);
	memcpy(p + TIMES_AT + CLOCK_ISO_LEN, h->latest, CLOCK_ISO_LEN);
	for (int i = 0; i < QUERY_INDEX_KINDS; i++)
		put32(p + COUNTS_AT + 4 * i, h->counts[i]);
	for (int i = 0; i < QUERY_INDEX_NPARTS; i++)
		put32(p + CRCS_AT + 4 * i, h->part_crc[i]);
	put32(p + MODELS_AT, h->models);
	put32(p + CRC_AT, crc32c(0, p, CRC_AT));
}

static size_t copies(const struct query_index_head *h)
{
	return (size_t)h->counts[EVENT_SubagentSpawn] + h->counts[EVENT_SubagentComplete];
}

size_t query_index_part_size(const struct query_index_head *h, enum query_index_part part)
{
	if (h->opaque)
		return 0;
	switch (part) {
	case QUERY_INDEX_BLOCKS:
		return (size_t)h->blocks * QUERY_INDEX_BLOCK_SIZE;
	case QUERY_INDEX_WHOS:
		return (size_t)h->whos * QUERY_INDEX_WHO_SIZE;
	case QUERY_INDEX_KIND:
		return h->lines;
	case QUERY_INDEX_NUMBERS:
		return h->whos > 1 ? (size_t)h->lines * 2 : 0;
	case QUERY_INDEX_STARTS:
		return (size_t)h->lines * 2;
	case QUERY_INDEX_MODELS:
		return h->models;
	case QUERY_INDEX_COPIES:
		return h->models > 0 ? copies(h) * QUERY_INDEX_COPY_SIZE : 0;
	case QUERY_INDEX_NPARTS:
		break;
	}
	return 0;
}

size_t query_index_size(const struct query_index_head *h)
{
	size_t size = QUERY_INDEX_HEAD;

	for (int i = 0; i < QUERY_INDEX_NPARTS; i++)
		size += query_index_part_size(h, (enum query_index_part)i);
	return size;
}

void query_index_block_get(const unsigned char *p, struct query_index_block *b)
{
	b->at = get32(p);
	b->first = get32(p + 4);
	b->kinds = get32(p + 8);
	b->starts_crc = get32(p + 12);
	memcpy(b->earliest, p + 16, CLOCK_ISO_LEN);
	memcpy(b->latest, p + 16 + CLOCK_ISO_LEN, CLOCK_ISO_LEN);
}

void query_index_block_put(unsigned char *p, const struct query_index_block *b)
{
	put32(p, b->at);
	put32(p + 4, b->first);
	put32(p + 8, b->kinds);
	put32(p + 12, b->starts_crc);
	memcpy(p + 16, b->earliest, CLOCK_ISO_LEN);
	memcpy(p + 16 + CLOCK_ISO_LEN, b->latest, CLOCK_ISO_LEN);
}

/* Only answers of a model cost something. */
static size_t model_front(unsigned kind)
{
	return kind == EVENT_InferEnd ? MODEL_FRONT + 32 : MODEL_FRONT;
}

bool query_index_model_next(const unsigned char *part, size_t len, size_t *at,
			    struct query_index_model *m)
{
	const unsigned char *p = part + *at;

	size_t front;

	if (len - *at < MODEL_FRONT)
		return false;
	front = model_front(p[0]);
	if (len - *at < front + p[1])
		return false;
	*m = (struct query_index_model){
		.kind = p[0],
		.name = (const char *)p + front,
		.len = p[1],
		.count = get32(p + 4),
	};
	for (int i = 0; i < 4 && front > MODEL_FRONT; i++)
		m->sums[i] = get64(p + MODEL_FRONT + 8 * i);
	*at += front + m->len;
	return true;
}

size_t query_index_model_put(unsigned char *p, const struct query_index_model *m)
{
	size_t front = model_front(m->kind);

	p[0] = (unsigned char)m->kind;
	p[1] = (unsigned char)m->len;
	p[2] = p[3] = 0;
	put32(p + 4, m->count);
	for (int i = 0; i < 4 && front > MODEL_FRONT; i++)
		put64(p + MODEL_FRONT + 8 * i, m->sums[i]);
	memcpy(p + front, m->name, m->len);
	return front + m->len;
}

void query_index_copy_get(const unsigned char *p, struct query_index_copy *c)
{
	*c = (struct query_index_copy){get16(p), get64(p + 2)};
}

void query_index_copy_put(unsigned char *p, const struct query_index_copy *c)
{
	p[0] = (unsigned char)c->model;
	p[1] = (unsigned char)(c->model >> 8);
	put64(p + 2, c->lsn);
}

uint32_t query_index_hash(const char *id, size_t len)
{
	return crc32c(0, id, len);
}

/* ---- asking */

static bool has_ids(const struct query *q)
{
	return q->agent.len > 0 || q->session.len > 0 || q->user.len > 0;
}

static bool has_times(const struct query *q)
{
	return q->since[0] != '\0' || q->until[0] != '\0';
}

/* Can a line between these times be wanted? As query_line compares them. */
static bool in_time(const struct query *q, const char *earliest, const char *latest)
{
	if (q->since[0] != '\0' && memcmp(latest, q->since, CLOCK_ISO_LEN) < 0)
		return false;
	return q->until[0] == '\0' || memcmp(earliest, q->until, CLOCK_ISO_LEN) < 0;
}

unsigned query_index_needs(const struct query_index_head *h, const struct query *q, bool *all)
{
	bool some_kinds = q->types != 0 && (h->kinds & ~q->types) != 0;
	unsigned needs = 1u << QUERY_INDEX_BLOCKS;

	*all = h->opaque;
	if (h->opaque || !in_time(q, h->earliest, h->latest) ||
	    (q->types != 0 && (h->kinds & q->types) == 0))
		return 0;
	if (some_kinds)
		needs |= 1u << QUERY_INDEX_KIND | 1u << QUERY_INDEX_STARTS;
	if (has_ids(q))
		needs |= 1u << QUERY_INDEX_WHOS;
	if (has_ids(q) && h->whos > 1)
		needs |= 1u << QUERY_INDEX_NUMBERS | 1u << QUERY_INDEX_STARTS;
	*all = !some_kinds && !has_ids(q) && !has_times(q);
	return *all ? 0 : needs;
}

int query_stretches_add(struct query_stretches *s, uint32_t from, uint32_t to)
{
	struct query_stretch *grown;
	size_t cap = s->cap == 0 ? 64 : s->cap * 2;

	if (s->n > 0 && s->v[s->n - 1].to == from) {
		s->v[s->n - 1].to = to;
		return 0;
	}
	if (s->n == s->cap) {
		grown = realloc(s->v, cap * sizeof(*grown));
		if (grown == NULL)
			return AVA_ENOMEM;
		s->v = grown;
		s->cap = cap;
	}
	s->v[s->n++] = (struct query_stretch){from, to};
	return 0;
}

struct select {
	const struct query_index_head *h;
	const struct query *q;
	const unsigned char *numbers, *kinds, *starts; /* NULL: any */
	unsigned char *mine; /* a byte for each who, and up to `mask`: is it asked for? */
	uint32_t mask;
	struct query_stretches *out;
};

static bool is_hash(const struct query_id *id, uint32_t hash, const unsigned char *a,
		    const unsigned char *b)
{
	return id->len == 0 || get32(a) == hash || (b != NULL && get32(b) == hash);
}

/* How many of the whos are asked for. */
static size_t mark_mine(struct select *s, const unsigned char *whos)
{
	const struct query *q = s->q;
	uint32_t agent = query_index_hash(q->agent.text, q->agent.len);
	uint32_t session = query_index_hash(q->session.text, q->session.len);
	uint32_t user = query_index_hash(q->user.text, q->user.len);
	size_t n = 0;

	for (uint32_t i = 0; i < s->h->whos; i++) {
		const unsigned char *w = whos + (size_t)i * QUERY_INDEX_WHO_SIZE;

		s->mine[i] = is_hash(&q->agent, agent, w, w + 8) &&
			     is_hash(&q->session, session, w + 4, NULL) &&
			     is_hash(&q->user, user, w + 12, NULL);
		n += s->mine[i];
	}
	return n;
}

static bool is_wanted(const struct select *s, uint32_t line)
{
	if (s->kinds != NULL && (s->kinds[line] >= QUERY_INDEX_KINDS ||
				 (s->q->types & (UINT64_C(1) << s->kinds[line])) == 0))
		return false;
	if (s->numbers == NULL)
		return true;
	return s->mine[get16(s->numbers + 2 * (size_t)line) & s->mask] != 0;
}

/* Most lines are not: eight at a time, as long as there is none. */
static uint32_t next_wanted(const struct select *s, uint32_t line, uint32_t end)
{
	for (; s->numbers != NULL && end - line >= 8; line += 8) {
		const unsigned char *p = s->numbers + 2 * (size_t)line;
		unsigned any = 0;

		for (int i = 0; i < 8; i++)
			any |= s->mine[get16(p + 2 * i) & s->mask];
		if (any != 0)
			break;
	}
	while (line < end && !is_wanted(s, line))
		line++;
	return line;
}

/* Lines [b->first, end) of a block whose last byte is before `to`. */
static int select_lines(const struct select *s, const struct query_index_block *b, uint32_t end,
			uint32_t to)
{
	const unsigned char *starts = s->starts;
	uint32_t line = next_wanted(s, b->first, end), last = b->at;
	bool checked = false;
	int rv = 0;

	for (; line < end && rv == 0; line = next_wanted(s, line + 1, end)) {
		uint32_t from, upto;

		if (!checked && crc32c(0, starts + 2 * (size_t)b->first,
				       2 * (size_t)(end - b->first)) != b->starts_crc)
			return AVA_ECORRUPT;
		checked = true;
		from = b->at + get16(starts + 2 * (size_t)line);
		upto = line + 1 < end ? b->at + get16(starts + 2 * (size_t)line + 2) : to;
		if (from < last || from >= upto || upto > to)
			return AVA_ECORRUPT;
		last = upto;
		rv = query_stretches_add(s->out, from, upto);
	}
	return rv;
}

static int select_block(const struct select *s, const unsigned char *blocks, uint32_t i)
{
	const struct query_index_head *h = s->h;
	struct query_index_block b, next = {.at = h->bytes, .first = h->lines};

	query_index_block_get(blocks + (size_t)i * QUERY_INDEX_BLOCK_SIZE, &b);
	if (i + 1 < h->blocks)
		query_index_block_get(blocks + (size_t)(i + 1) * QUERY_INDEX_BLOCK_SIZE, &next);
	if (b.at >= next.at || next.at > h->bytes || b.first >= next.first || next.first > h->lines)
		return AVA_ECORRUPT;
	if (!in_time(s->q, b.earliest, b.latest) ||
	    (s->q->types != 0 && (b.kinds & s->q->types) == 0))
		return 0;
	if (s->starts == NULL)
		return query_stretches_add(s->out, b.at, next.at);
	return select_lines(s, &b, next.first, next.at);
}

int query_index_select(const struct query_index_head *h,
		       const unsigned char *const parts[QUERY_INDEX_NPARTS], const struct query *q,
		       struct query_stretches *out)
{
	struct select s = {.h = h,
			   .q = q,
			   .numbers = parts[QUERY_INDEX_NUMBERS],
			   .kinds = parts[QUERY_INDEX_KIND],
			   .starts = parts[QUERY_INDEX_STARTS],
			   .out = out};
	size_t mine = 1;
	int rv = 0;

	out->n = 0;
	if (parts[QUERY_INDEX_WHOS] != NULL) {
		while (s.mask + 1 < h->whos)
			s.mask = s.mask * 2 + 1;
		s.mine = malloc((size_t)s.mask + 1);
		if (s.mine == NULL)
			return AVA_ENOMEM;
		memset(s.mine, 1, (size_t)s.mask + 1); /* numbers nobody has are looked at */
		mine = mark_mine(&s, parts[QUERY_INDEX_WHOS]);
	}
	for (uint32_t i = 0; mine > 0 && i < h->blocks && rv == 0; i++)
		rv = select_block(&s, parts[QUERY_INDEX_BLOCKS], i);
	free(s.mine);
	if (rv != 0)
		out->n = 0;
	return rv;
}
