/* Conversations and the prompt cache.
 *
 * A conversation keeps a 64-bit hash of each message it saw, not the text. Two
 * conversations may begin with the same message: a request belongs to the one
 * it extends. A request of one message goes to the conversation whose request
 * of one message was not answered (a retry), else it begins one. The oldest
 * conversation is forgotten at 65,536. Out of memory ends the program. */
#include "convo.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "signature.h"

#define CONVOS_MAX  65536
#define BUCKETS     65536
#define CACHE_SLOTS (1u << 18)
#define CACHE_MS    300000
#define LOOK_BACK   20
#define BLOCKS_MAX  4096

struct cache_slot {
	uint64_t hash;
	int64_t ready_ms, end_ms;
};

struct convos {
	struct list all;
	struct convo *bucket[BUCKETS];
	unsigned count;
	uint32_t made;
	struct cache_slot *cache;
	struct buf scratch;
};

struct convos *convos_new(void)
{
	struct convos *c = calloc(1, sizeof *c);

	assert(c != NULL);
	list_init(&c->all);
	c->cache = calloc(CACHE_SLOTS, sizeof *c->cache);
	assert(c->cache != NULL);
	buf_init(&c->scratch, 1u << 27);
	return c;
}

static void convo_drop(struct convos *c, struct convo *x)
{
	struct convo **at = &c->bucket[x->key % BUCKETS];

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	list_del(&x->node);
	free(x->hashes);
	free(x);
	c->count--;
}

void convos_free(struct convos *c)
{
	while (!list_empty(&c->all))
		convo_drop(c, CONTAINER_OF(c->all.next, struct convo, node));
	buf_fini(&c->scratch);
	free(c->cache);
	free(c);
}

static void forget_one(struct convos *c)
{
	for (struct list *n = c->all.next; n != &c->all; n = n->next) {
		struct convo *x = CONTAINER_OF(n, struct convo, node);

		if (x->active > 0)
			continue;
		convo_drop(c, x);
		return;
	}
}

unsigned convos_count(const struct convos *c)
{
	return c->count;
}

uint64_t fingerprint_add(uint64_t print, const char *s, size_t len)
{
	return hash_bytes(print * 31 + 7, s, len);
}

/* Copy a block's bytes without its cache_control member and its comma. */
static void strip_block(const struct tape *t, uint32_t block, struct buf *out)
{
	const struct tape_node *x = &t->nodes[block];
	uint32_t mark =
		tape_kind(t, block) == TAPE_OBJECT ? tape_get(t, block, "cache_control") : 0;
	size_t from, to;

	if (mark == 0) {
		buf_add(out, t->text + x->start, x->end - x->start);
		return;
	}
	from = t->nodes[mark - 1].start;
	to = t->nodes[mark].end;
	if (t->text[from - 1] == ',')
		from--;
	else if (t->text[to] == ',')
		to++;
	buf_add(out, t->text + x->start, from - x->start);
	buf_add(out, t->text + to, x->end - to);
}

/* The text of a list that holds one block of text and nothing else; 0: no such. A
 * service takes the list and the plain text for the same content, and a mark
 * needs the list. */
static uint32_t lone_text(const struct tape *t, uint32_t list)
{
	const struct tape_node *x = &t->nodes[list];
	uint32_t block = list + 1, text, members;

	if (x->count != 1 || tape_kind(t, block) != TAPE_OBJECT)
		return 0;
	text = tape_get(t, block, "text");
	members = 2 + (tape_get(t, block, "cache_control") != 0);
	return text != 0 && tape_kind(t, text) == TAPE_STRING &&
			       tape_is(t, tape_get(t, block, "type"), "text") &&
			       t->nodes[block].count == members
		       ? text
		       : 0;
}

static void strip_list(const struct tape *t, uint32_t list, struct buf *out)
{
	uint32_t at = t->nodes[list].start;

	TAPE_EACH(t, i, list)
	{
		buf_add(out, t->text + at, t->nodes[i].start - at);
		strip_block(t, i, out);
		at = t->nodes[i].end;
	}
	buf_add(out, t->text + at, t->nodes[list].end - at);
}

/* Hash of a message, a system text or a list of tools, cache marks aside. */
static uint64_t hash_value(struct convos *c, const struct tape *t, uint32_t node)
{
	size_t len;
	const char *raw = tape_raw(t, node, &len), *words;
	uint32_t list = node, text;

	if (node == 0)
		return 0;
	if (tape_kind(t, node) == TAPE_OBJECT)
		list = tape_get(t, node, "content");
	if (list == 0 || tape_kind(t, list) != TAPE_ARRAY)
		return hash_bytes(1, raw, len);
	text = list != node ? lone_text(t, list) : 0;
	if (text == 0 && memmem(raw, len, "\"cache_control\"", 15) == NULL)
		return hash_bytes(1, raw, len);
	buf_reset(&c->scratch);
	buf_add(&c->scratch, raw, t->nodes[list].start - t->nodes[node].start);
	if (text != 0) {
		words = tape_raw(t, text, &len);
		buf_add(&c->scratch, words, len);
	} else {
		strip_list(t, list, &c->scratch);
	}
	buf_add(&c->scratch, t->text + t->nodes[list].end, t->nodes[node].end - t->nodes[list].end);
	return hash_bytes(1, c->scratch.data, c->scratch.len);
}

/* ---- finding ---- */

static uint64_t *hash_messages(struct convos *c, const struct ask *a)
{
	uint64_t *hashes = malloc((a->nmessages + 1) * sizeof *hashes);
	uint32_t n = 0;

	assert(hashes != NULL);
	TAPE_EACH(a->t, i, a->messages)
	hashes[n++] = hash_value(c, a->t, i);
	return hashes;
}

/* The first message that the person wrote; the system message of chat
 * completions is the same in every run of a role. */
static uint32_t first_user(const struct ask *a)
{
	TAPE_EACH(a->t, i, a->messages)
	if (tape_is(a->t, tape_get(a->t, i, "role"), "user"))
		return i;
	return a->messages + 1;
}

static uint64_t ask_key(struct convos *c, const struct ask *a)
{
	return hash_value(c, a->t, first_user(a)) ^ (a->service == SERVICE_ANTHROPIC);
}

static uint32_t same_length(const struct convo *x, const uint64_t *hashes, uint32_t n)
{
	uint32_t k = 0;

	while (k < x->n && k < n && x->hashes[k] == hashes[k])
		k++;
	return k;
}

/* A first request may be the newest one again; else it is a twin of it. */
static bool may_repeat(const struct convo *x)
{
	return !x->answered && x->active == 0;
}

/* Ids, names and thinking of an assistant message, as the renderers do it. */
static uint64_t fingerprint(const struct ask *a, uint32_t message)
{
	uint32_t content = tape_get(a->t, message, "content");
	uint32_t calls = tape_get(a->t, message, "tool_calls");
	uint64_t print = 1;
	size_t len;
	const char *raw;

	if (calls != 0 && tape_kind(a->t, calls) == TAPE_ARRAY)
		TAPE_EACH(a->t, i, calls)
		{
			uint32_t id = tape_get(a->t, i, "id");

			if (id == 0)
				continue;
			raw = tape_raw(a->t, id, &len);
			print = fingerprint_add(print, raw + 1, len - 2);
		}
	if (content == 0 || tape_kind(a->t, content) != TAPE_ARRAY)
		return print;
	TAPE_EACH(a->t, i, content)
	{
		uint32_t id = tape_get(a->t, i, "id");
		uint32_t sign = tape_get(a->t, i, "signature");

		if (tape_is(a->t, tape_get(a->t, i, "type"), "redacted_thinking"))
			sign = tape_get(a->t, i, "data");
		if (sign != 0)
			id = sign;
		if (id == 0)
			continue;
		raw = tape_raw(a->t, id, &len);
		print = fingerprint_add(print, raw + 1, len - 2);
	}
	return print;
}

/* The same of the items of a reply, from the n-th on. */
static uint64_t fingerprint_items(const struct ask *a, uint32_t n)
{
	uint64_t print = 1;
	size_t len;

	TAPE_EACH(a->t, i, a->messages)
	{
		uint32_t word;
		const char *raw;

		if (n > 0) {
			n--;
			continue;
		}
		if (!item_is_reply(a, i))
			break;
		word = tape_get(a->t, i, "encrypted_content");
		if (word == 0)
			word = tape_get(a->t, i, "call_id");
		if (word == 0)
			continue;
		raw = tape_raw(a->t, word, &len);
		print = fingerprint_add(print, raw + 1, len - 2);
	}
	return print;
}

/* Does what was sent as the newest reply stand behind the messages it answered? */
enum sent { SENT_NOT, SENT_UNKNOWN, SENT_THERE };
static enum sent sent_stands(const struct ask *a, const struct convo *x)
{
	uint32_t n = 0;

	if (x->sent == 0 || !x->answered || a->nmessages <= x->n)
		return SENT_UNKNOWN;
	if (a->items)
		return fingerprint_items(a, x->n) == x->sent ? SENT_THERE : SENT_NOT;
	TAPE_EACH(a->t, i, a->messages)
	if (n++ == x->n)
		return fingerprint(a, i) == x->sent ? SENT_THERE : SENT_NOT;
	return SENT_UNKNOWN;
}

/* Twins have the same messages so far; the reply tells them apart. */
static bool better(const struct ask *a, const struct convo *x, const struct convo *than,
		   const uint64_t *hashes)
{
	uint32_t n = same_length(x, hashes, a->nmessages);
	uint32_t m = same_length(than, hashes, a->nmessages);

	return n > m || (n == m && sent_stands(a, x) > sent_stands(a, than));
}

/* Of its first n tools; *count: how many there are. */
static uint64_t hash_tools(struct convos *c, const struct ask *a, uint32_t n, uint32_t *count)
{
	uint64_t h = 0;

	*count = 0;
	if (a->tools == 0 || tape_kind(a->t, a->tools) != TAPE_ARRAY)
		return 0;
	TAPE_EACH(a->t, i, a->tools)
	if ((*count)++ < n)
		h = h * 31 + hash_value(c, a->t, i);
	return h;
}

/* To one's own server tools may come later, behind the others: what it has read of them holds. */
static bool same_head(struct convos *c, const struct ask *a, const struct convo *x, uint64_t head)
{
	uint32_t count;

	return x->head == head ||
	       (a->service == SERVICE_LOCAL && x->ntools > 0 &&
		hash_tools(c, a, x->ntools, &count) == x->tools && count > x->ntools);
}

/* The conversation that the request extends, or goes on with from earlier. */
static struct convo *extended(struct convos *c, const struct ask *a, uint64_t key, uint64_t head,
			      const uint64_t *hashes, uint32_t *best, bool *head_same)
{
	struct convo *found = NULL;

	for (struct convo *x = c->bucket[key % BUCKETS]; x != NULL; x = x->next) {
		uint32_t k;

		if (x->key != key)
			continue;
		k = same_length(x, hashes, a->nmessages);
		if (same_head(c, a, x, head) &&
		    (k == x->n || k == a->nmessages || (x->odd && k + 1 == x->n)) &&
		    (a->nassistant > 0 || may_repeat(x)) &&
		    (found == NULL || better(a, x, found, hashes)))
			found = x;
		if (k >= *best) {
			*best = k;
			*head_same = same_head(c, a, x, head);
		}
	}
	return found;
}

static bool read_directive(const struct ask *a, struct plan *p, const struct rules *rules,
			   struct verdict *v)
{
	const char *plus = strchr(a->model, '+'), *at, *end;
	uint32_t content = tape_get(a->t, first_user(a), "content");
	char why[128];
	struct buf b;
	bool good = true;

	buf_init(&b, 1u << 26);
	tape_text(a->t, content, &b);
	if (content != 0 && tape_kind(a->t, content) == TAPE_ARRAY)
		TAPE_EACH(a->t, i, content)
	tape_text(a->t, tape_get(a->t, i, "text"), &b);
	rules_apply(rules, a->model, b.len ? b.data : "", b.len, p);
	if (plus != NULL)
		good = plan_parse(p, plus, strlen(plus), why, sizeof why);
	at = b.len ? strstr(b.data, "[[mock ") : NULL;
	for (const char *next = at; next != NULL; next = strstr(at + 1, "[[mock "))
		at = next; /* the last: a task stands behind its context, which may tell another's
			    */
	end = at ? strstr(at, "]]") : NULL;
	if (good && end != NULL)
		good = plan_parse(p, at + 7, (size_t)(end - at - 7), why, sizeof why);
	buf_fini(&b);
	return good || verdict_set(v, 400, "invalid_request_error", "mock: %s", why);
}

static struct convo *begin(struct convos *c, const struct ask *a, uint64_t key,
			   const struct plan *base, const struct rules *rules, struct verdict *v)
{
	struct convo *x = calloc(1, sizeof *x);

	assert(x != NULL);
	x->plan = *base;
	if (!read_directive(a, &x->plan, rules, v)) {
		free(x);
		return NULL;
	}
	if (c->count == CONVOS_MAX)
		forget_one(c);
	x->key = key;
	x->id = ++c->made;
	x->next = c->bucket[key % BUCKETS];
	c->bucket[key % BUCKETS] = x;
	list_add(&c->all, &x->node);
	c->count++;
	return x;
}

static bool check_sent(const struct ask *a, const struct convo *x, struct verdict *v)
{
	return sent_stands(a, x) != SENT_NOT ||
	       verdict_set(
		       v, 400, "invalid_request_error",
		       "mock: messages.%u is not the reply that was sent: ids of calls or thinking "
		       "differ, or some are missing",
		       x->n);
}

struct convo *convo_find(struct convos *c, struct ask *a, const struct plan *base,
			 const struct rules *rules, struct verdict *v)
{
	uint64_t key = ask_key(c, a);
	uint64_t head = hash_value(c, a->t, a->tools) * 3 + hash_value(c, a->t, a->system);
	uint64_t *hashes = hash_messages(c, a);
	uint32_t best = 0;
	bool head_same = false;
	struct convo *x = extended(c, a, key, head, hashes, &best, &head_same);

	if (x == NULL && best > 0 && a->nassistant > 0 && base->prefix) {
		verdict_set(
			v, 400, "invalid_request_error",
			head_same ? "mock: messages.%u differs from what this conversation sent "
				    "before: a request must extend the one before it"
				  : "mock: tools or system differ from what this conversation sent "
				    "before (%u messages are the same)",
			best);
	} else if (x == NULL) {
		x = begin(c, a, key, base, rules, v);
	}
	if (x == NULL || (base->prefix && !check_sent(a, x, v))) {
		free(hashes);
		return NULL;
	}
	free(x->hashes);
	x->hashes = hashes;
	x->n = a->nmessages;
	x->head = head;
	x->tools = hash_tools(c, a, UINT32_MAX, &x->ntools);
	x->requests++;
	x->answered = x->odd = false;
	if (x->plan.window > 0)
		a->window = x->plan.window;
	return x;
}

/* ---- the prompt cache ---- */

static bool cache_has(const struct convos *c, uint64_t hash, int64_t now_ms)
{
	const struct cache_slot *s = &c->cache[hash % CACHE_SLOTS];

	return s->hash == hash && s->ready_ms <= now_ms && s->end_ms > now_ms;
}

/* A use renews the entry. */
static void cache_put(struct convos *c, uint64_t hash, int64_t now_ms, int64_t ready_ms)
{
	struct cache_slot *s = &c->cache[hash % CACHE_SLOTS];

	if (s->hash != hash || s->end_ms <= now_ms)
		*s = (struct cache_slot){.hash = hash, .ready_ms = ready_ms};
	s->end_ms = now_ms + CACHE_MS;
}

/* The prefix as the service sees it: hash and bytes after each block. */
struct prefix {
	uint64_t hash[BLOCKS_MAX];
	int64_t bytes[BLOCKS_MAX];
	bool marked[BLOCKS_MAX];
	unsigned n;
	uint64_t seed; /* of the model: each has a cache of its own */
};

static void prefix_block(struct prefix *p, struct convos *c, const struct tape *t, uint32_t node)
{
	uint64_t before = p->n ? p->hash[p->n - 1] : p->seed;

	if (node == 0 || p->n == BLOCKS_MAX)
		return;
	buf_reset(&c->scratch);
	strip_block(t, node, &c->scratch);
	p->hash[p->n] = hash_bytes(before, c->scratch.data, c->scratch.len);
	p->bytes[p->n] = (p->n ? p->bytes[p->n - 1] : 0) + (int64_t)c->scratch.len;
	p->marked[p->n] =
		tape_kind(t, node) == TAPE_OBJECT && tape_get(t, node, "cache_control") != 0;
	p->n++;
}

static void prefix_list(struct prefix *p, struct convos *c, const struct tape *t, uint32_t node)
{
	if (node == 0 || tape_kind(t, node) != TAPE_ARRAY) {
		prefix_block(p, c, t, node);
		return;
	}
	TAPE_EACH(t, i, node)
	prefix_block(p, c, t, i);
}

static void prefix_read(struct prefix *p, struct convos *c, const struct ask *a)
{
	p->n = 0;
	p->seed = hash_bytes(3, a->model, strcspn(a->model, "+"));
	prefix_list(p, c, a->t, a->tools);
	prefix_list(p, c, a->t, a->system);
	TAPE_EACH(a->t, i, a->messages)
	{
		if (a->service == SERVICE_ANTHROPIC)
			prefix_list(p, c, a->t, tape_get(a->t, i, "content"));
		else
			prefix_block(p, c, a->t, i);
	}
}

/* OpenAI caches without marks, in steps of 128 tokens. */
static struct prompt_tokens tokens_openai(struct convos *c, const struct prefix *p, int64_t total,
					  int64_t now_ms, int64_t ready_ms)
{
	int64_t hit = 0;

	for (unsigned i = 0; i < p->n; i++) {
		int64_t tokens = p->bytes[i] / 4;

		if (tokens < 1024)
			continue;
		if (cache_has(c, p->hash[i], now_ms))
			hit = tokens - tokens % 128;
		cache_put(c, p->hash[i], now_ms, ready_ms);
	}
	hit = MIN(hit, total);
	return (struct prompt_tokens){.input = total - hit, .cache_read = hit};
}

struct prompt_tokens cache_tokens(struct convos *c, const struct ask *a, int64_t now_ms,
				  int64_t ready_ms)
{
	static struct prefix p;
	struct prompt_tokens out = {0};
	int64_t total = (int64_t)a->body_len / 4 + 1, hit = 0, written = 0;

	prefix_read(&p, c, a);
	if (a->service != SERVICE_ANTHROPIC)
		return tokens_openai(c, &p, total, now_ms, ready_ms);
	for (unsigned i = 0; i < p.n; i++) {
		if (!p.marked[i] || p.bytes[i] / 4 < a->facts->cache_min)
			continue;
		for (unsigned k = i + 1; k-- > 0 && i - k < LOOK_BACK;)
			if (cache_has(c, p.hash[k], now_ms)) {
				hit = MAX(hit, p.bytes[k] / 4);
				break;
			}
		written = MAX(written, p.bytes[i] / 4);
	}
	/* Only now: a request does not read what it writes itself. */
	for (unsigned i = 0; i < p.n; i++)
		if (p.marked[i] && p.bytes[i] / 4 >= a->facts->cache_min)
			cache_put(c, p.hash[i], now_ms, ready_ms);
	out.cache_read = MIN(hit, total);
	out.cache_write = MAX(0, MIN(written, total) - out.cache_read);
	out.input = total - out.cache_read - out.cache_write;
	return out;
}
