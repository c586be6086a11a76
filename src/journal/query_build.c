/* Making a chunk of a log's block index; query_build.h.
 *
 * Happy path: each line is taken apart once; its kind, its start in the block
 * and the number of its agent, session, trace and user go into columns. Those
 * four stand side by side in a line, so that one look into a hash table finds
 * the number.
 *
 * What can fail: memory. A line that some question would report as broken, or
 * whose kind is written with an escape, makes the chunk opaque: it is then
 * read whole whatever is asked, and says itself what is wrong with it. */
#include "journal/query_build.h"

#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/le.h"
#include "base/util.h"
#include "journal/query_index.h"

#define MODELS_MAX 256 /* kinds and models together */

struct build {
	struct query_index_head head;
	unsigned char *columns; /* owned: the three below */
	unsigned char *numbers, *kinds, *starts;
	struct buf blocks, whos, model_rows, copies;
	size_t block_size;              /* bytes in which its lines begin */
	struct query_index_block block; /* the one lines are added to */
	uint32_t *slots;                /* owned: number + 1; 0: free */
	size_t nslots;                  /* a power of two; more than numbers by half */
	struct slice {
		const char *s;
		size_t len;
	} * names; /* owned; of each number */
	struct query_index_model models[MODELS_MAX];
	size_t nmodels;
	bool many; /* more models than that, or a longer name */
};

static void widen(char earliest[CLOCK_ISO_LEN], char latest[CLOCK_ISO_LEN], const char *time)
{
	if (earliest[0] == '\0' || memcmp(time, earliest, CLOCK_ISO_LEN) < 0)
		memcpy(earliest, time, CLOCK_ISO_LEN);
	if (latest[0] == '\0' || memcmp(time, latest, CLOCK_ISO_LEN) > 0)
		memcpy(latest, time, CLOCK_ISO_LEN);
}

static void end_block(struct build *b)
{
	unsigned char bytes[QUERY_INDEX_BLOCK_SIZE];
	uint32_t lines = b->head.lines - b->block.first;

	if (lines == 0)
		return;
	b->block.starts_crc = crc32c(0, b->starts + 2 * (size_t)b->block.first, 2 * (size_t)lines);
	query_index_block_put(bytes, &b->block);
	buf_add(&b->blocks, bytes, sizeof(bytes));
	widen(b->head.earliest, b->head.latest, b->block.earliest);
	widen(b->head.earliest, b->head.latest, b->block.latest);
	b->head.kinds |= b->block.kinds;
	b->head.blocks++;
}

/* False: there are too many. */
static bool number_of(struct build *b, const struct event_view *v, uint32_t *number)
{
	const char *s = v->agent_id.s;
	size_t len = (size_t)(v->user_id.s + v->user_id.len - s), at;
	unsigned char who[QUERY_INDEX_WHO_SIZE];

	for (at = crc32c(0, s, len) & (b->nslots - 1); b->slots[at] != 0;
	     at = (at + 1) & (b->nslots - 1)) {
		const struct slice *name = &b->names[b->slots[at] - 1];

		if (name->len == len && memcmp(name->s, s, len) == 0) {
			*number = b->slots[at] - 1;
			return true;
		}
	}
	if (b->head.whos == UINT16_MAX)
		return false;
	put32(who, query_index_hash(v->agent_id.s, v->agent_id.len));
	put32(who + 4, query_index_hash(v->session_id.s, v->session_id.len));
	put32(who + 8, query_index_hash(v->trace_id.s, v->trace_id.len));
	put32(who + 12, query_index_hash(v->user_id.s, v->user_id.len));
	buf_add(&b->whos, who, sizeof(who));
	*number = b->head.whos;
	b->names[b->head.whos] = (struct slice){s, len};
	b->slots[at] = ++b->head.whos;
	return true;
}

static const char *meta(const struct event_view *v, const char *key, size_t len)
{
	const char *at = memmem(v->metadata.s, v->metadata.len, key, len);

	return at != NULL ? at + len : NULL;
}

#define META(v, key) meta(v, "\"" key "\":", sizeof(key) + 2)

static uint64_t whole_number(const char *s)
{
	uint64_t n = 0;

	for (; s != NULL && *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
			return 0;
	return n;
}

/* Decimal cents with four decimals at the most. */
static uint64_t microusd(const char *s)
{
	uint64_t n = whole_number(s);
	unsigned scale = 1000;

	s += strspn(s, "0123456789");
	if (__builtin_mul_overflow(n, 10000, &n))
		return 0;
	if (*s++ != '.')
		return n;
	for (; *s >= '0' && *s <= '9' && scale > 0; s++, scale /= 10)
		n += (uint64_t)(*s - '0') * scale;
	return n;
}

void query_cost(const struct event_view *v, struct query_cost *out)
{
	const char *cost = META(v, "costCents");

	out->sums[0] = whole_number(META(v, "inputTokens"));
	out->sums[1] = whole_number(META(v, "outputTokens"));
	out->sums[2] = cost != NULL ? microusd(cost) : 0;
	out->sums[3] = cost == NULL;
}

void query_model(const struct event_view *v, const char **name, size_t *len)
{
	const char *at = META(v, "modelId");

	*name = "";
	*len = 0;
	if (at == NULL || *at != '"')
		return;
	*name = at + 1;
	*len = strcspn(*name, "\"\n"); /* a model's name needs no escape */
}

static struct query_index_model *model_of(struct build *b, const struct event_view *v,
					  unsigned kind)
{
	struct query_index_model *m;
	const char *name;
	size_t len;

	query_model(v, &name, &len);
	for (m = b->models; m < b->models + b->nmodels; m++)
		if (m->kind == kind && m->len == len && memcmp(m->name, name, len) == 0)
			return m;
	if (b->nmodels == MODELS_MAX || len > UINT8_MAX)
		return NULL;
	b->nmodels++;
	*m = (struct query_index_model){.kind = kind, .name = name, .len = len};
	return m;
}

static void add_copy(struct build *b, uint32_t model, uint64_t lsn)
{
	unsigned char bytes[QUERY_INDEX_COPY_SIZE];

	query_index_copy_put(bytes, &(struct query_index_copy){model, lsn});
	buf_add(&b->copies, bytes, sizeof(bytes));
}

static void add_model(struct build *b, const struct event_view *v, unsigned kind)
{
	struct query_index_model *m = model_of(b, v, kind);
	struct query_cost cost = {0};

	b->head.counts[kind]++;
	if (kind == EVENT_InferEnd)
		query_cost(v, &cost);
	for (int i = 0; i < 4; i++)
		b->head.sums[i] += cost.sums[i];
	if (m == NULL) {
		b->many = true;
		return;
	}
	m->count++;
	for (int i = 0; i < 4; i++)
		m->sums[i] += cost.sums[i];
	if ((QUERY_INDEX_COPIED & UINT64_C(1) << kind) != 0)
		add_copy(b, (uint32_t)(m - b->models), v->lsn);
}

/* False: the chunk is opaque. */
static bool add_line(struct build *b, const char *line, size_t len, size_t at)
{
	uint32_t i = b->head.lines, number;
	struct event_view v;
	unsigned kind;

	if (event_view(line, len, &v) != 0 || memchr(v.type.s, '\\', v.type.len) != NULL ||
	    !number_of(b, &v, &number))
		return false;
	if (i == 0 || at - b->block.at >= b->block_size) {
		end_block(b);
		b->block = (struct query_index_block){.at = (uint32_t)at, .first = i};
	}
	kind = v.kind >= 0 ? (unsigned)v.kind : QUERY_INDEX_OTHER;
	b->kinds[i] = (unsigned char)kind;
	put16(b->numbers + 2 * (size_t)i, number);
	put16(b->starts + 2 * (size_t)i, at - b->block.at);
	b->block.kinds |= 1u << kind;
	widen(b->block.earliest, b->block.latest, line + sizeof("{\"timestamp\":\"") - 1);
	add_model(b, &v, kind);
	b->head.lines++;
	return true;
}

static int init(struct build *b, const char *data, size_t len)
{
	size_t lines = 0;

	for (const char *p = data; (p = memchr(p, '\n', (size_t)(data + len - p))) != NULL; p++)
		lines++;
	buf_init(&b->blocks, len + QUERY_INDEX_BLOCK_SIZE);
	buf_init(&b->model_rows, (size_t)MODELS_MAX * QUERY_INDEX_MODEL_MAX);
	buf_init(&b->copies, len);
	buf_init(&b->whos, (size_t)UINT16_MAX * QUERY_INDEX_WHO_SIZE);
	for (b->nslots = 64; b->nslots < 2 * MIN(lines, (size_t)UINT16_MAX);)
		b->nslots *= 2;
	b->columns = malloc(lines * 5 + 1);
	b->slots = calloc(b->nslots, sizeof(*b->slots));
	b->names = malloc((MIN(lines, (size_t)UINT16_MAX) + 1) * sizeof(*b->names));
	if (b->columns == NULL || b->slots == NULL || b->names == NULL)
		return AVA_ENOMEM;
	b->numbers = b->columns;
	b->starts = b->columns + lines * 2;
	b->kinds = b->columns + lines * 4;
	return 0;
}

static void put_models(struct build *b)
{
	unsigned char row[QUERY_INDEX_MODEL_MAX];

	for (size_t i = 0; i < b->nmodels && !b->many; i++)
		buf_add(&b->model_rows, row, query_index_model_put(row, &b->models[i]));
	b->head.models = (uint32_t)b->model_rows.len;
}

/* The head, then the parts in their order. */
static int put(struct build *b, struct buf *out)
{
	struct query_index_head *h = &b->head;
	const void *parts[QUERY_INDEX_NPARTS] = {b->blocks.data, b->whos.data, b->numbers,
						 b->kinds,       b->starts,    b->model_rows.data,
						 b->copies.data};
	unsigned char bytes[QUERY_INDEX_HEAD];
	size_t before = out->len;

	for (int i = 0; i < QUERY_INDEX_NPARTS; i++)
		if (i != QUERY_INDEX_STARTS)
			h->part_crc[i] = crc32c(0, parts[i],
						query_index_part_size(h, (enum query_index_part)i));
	query_index_head_put(bytes, h);
	buf_add(out, bytes, sizeof(bytes));
	for (int i = 0; i < QUERY_INDEX_NPARTS; i++)
		if (query_index_part_size(h, (enum query_index_part)i) > 0)
			buf_add(out, parts[i], query_index_part_size(h, (enum query_index_part)i));
	if (buf_check(out) == 0)
		return 0;
	out->len = before;
	return AVA_ENOMEM;
}

int query_build(struct buf *out, const char *data, size_t len, uint64_t at, size_t block)
{
	struct build b = {.head = {.at = at, .bytes = (uint32_t)len, .crc = crc32c(0, data, len)},
			  .block_size = block};
	bool fine = true;
	int rv = init(&b, data, len);

	for (size_t from = 0, to; rv == 0 && fine && from < len; from = to) {
		to = (size_t)((const char *)memchr(data + from, '\n', len - from) + 1 - data);
		fine = add_line(&b, data + from, to - 1 - from, from);
	}
	if (rv == 0 && fine) {
		end_block(&b);
		put_models(&b);
	}
	if (!fine)
		b.head = (struct query_index_head){
			.at = at, .bytes = (uint32_t)len, .crc = b.head.crc, .opaque = true};
	if (rv == 0)
		rv = buf_check(&b.blocks) != 0 || buf_check(&b.whos) != 0 ||
				     buf_check(&b.model_rows) != 0 || buf_check(&b.copies) != 0
			     ? AVA_ENOMEM
			     : put(&b, out);
	buf_fini(&b.blocks);
	buf_fini(&b.whos);
	buf_fini(&b.model_rows);
	buf_fini(&b.copies);
	free(b.columns);
	free(b.slots);
	free(b.names);
	return rv;
}
