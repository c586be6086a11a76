/* Open-addressing hash map and set of name fingerprints; see map.h.
 *
 * Hashes are SipHash-1-3 under a key drawn when the first slot array is made,
 * so that names chosen by others (imported traces, clients' ids) cannot be
 * chosen to collide. Tables are at most three quarters full, removed slots
 * counted, so that a probe always meets an empty one. Only growing can fail,
 * and then nothing has changed. */
#include "base/strmap.h"

#include <ava.h>
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/siphash.h"

#define MAP_LEAST 16

struct strmap_slot {
	uint64_t hash;
	const char *key; /* NULL: never used; `removed`: free again */
	void *value;
};

/* A new seed for each table without asking the kernel each time: the secret is drawn once, and
 * nobody sees a seed. */
static uint64_t fresh_seed(void)
{
	static _Atomic uint64_t drawn, count;
	uint64_t z = atomic_load_explicit(&drawn, memory_order_relaxed);

	while (z == 0) {
		uint64_t none = 0;

		id_random(&z, sizeof(z));
		if (z != 0 && !atomic_compare_exchange_strong(&drawn, &none, z))
			z = none;
	}
	z += 0x9e3779b97f4a7c15u * (atomic_fetch_add(&count, 1) + 1);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static const char removed[] = "";

static uint64_t hash_key(uint64_t seed, const char *key)
{
	return siphash(seed, seed * 0x9e3779b97f4a7c15u, key, strlen(key), 1, 3);
}

void strmap_init(struct strmap *m)
{
	*m = (struct strmap){0};
}

void strmap_fini(struct strmap *m)
{
	free(m->slots);
	strmap_init(m);
}

/* The slot that holds `key`, or NULL. */
static struct strmap_slot *strmap_find(const struct strmap *m, const char *key, uint64_t hash)
{
	size_t i;

	if (m->cap == 0)
		return NULL;
	for (i = hash & (m->cap - 1); m->slots[i].key != NULL; i = (i + 1) & (m->cap - 1)) {
		struct strmap_slot *s = &m->slots[i];

		if (s->key != removed && s->hash == hash && strcmp(s->key, key) == 0)
			return s;
	}
	return NULL;
}

void *strmap_get(const struct strmap *m, const char *key)
{
	struct strmap_slot *s = strmap_find(m, key, hash_key(m->seed, key));

	return s != NULL ? s->value : NULL;
}

static void strmap_place(struct strmap *m, struct strmap_slot slot)
{
	size_t i = slot.hash & (m->cap - 1);

	while (m->slots[i].key != NULL)
		i = (i + 1) & (m->cap - 1);
	m->slots[i] = slot;
	m->used++;
}

/* Make room for one more; removed slots are dropped on the way. */
static int strmap_make_room(struct strmap *m)
{
	struct strmap next = *m;

	if (m->cap != 0 && (m->used + 1) * 4 <= m->cap * 3)
		return 0;
	if (m->cap == 0)
		next.seed = fresh_seed();
	next.cap = MAP_LEAST;
	while (next.cap < m->count * 2 + 2)
		next.cap *= 2;
	next.used = 0;
	next.slots = calloc(next.cap, sizeof(*next.slots));
	if (next.slots == NULL)
		return AVA_ENOMEM;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].key != NULL && m->slots[i].key != removed)
			strmap_place(&next, m->slots[i]);
	free(m->slots);
	*m = next;
	return 0;
}

int strmap_put(struct strmap *m, const char *key, void *value)
{
	int rv;

	assert(value != NULL); /* NULL is how strmap_get says "absent" */
	if (strmap_get(m, key) != NULL)
		return AVA_EEXIST;
	rv = strmap_make_room(m);
	if (rv != 0)
		return rv;
	strmap_place(m, (struct strmap_slot){hash_key(m->seed, key), key, value});
	m->count++;
	return 0;
}

void *strmap_del(struct strmap *m, const char *key)
{
	struct strmap_slot *s = strmap_find(m, key, hash_key(m->seed, key));
	void *value;

	if (s == NULL)
		return NULL;
	value = s->value;
	*s = (struct strmap_slot){.key = removed};
	m->count--;
	return value;
}

void *strmap_next(const struct strmap *m, size_t *at)
{
	while (*at < m->cap) {
		const struct strmap_slot *s = &m->slots[(*at)++];

		if (s->key != NULL && s->key != removed)
			return s->value;
	}
	return NULL;
}

/* ---- nameset: 0 marks an empty slot, so that no fingerprint is 0 */

static uint64_t fingerprint(const struct nameset *s, const char *name)
{
	uint64_t h = hash_key(s->seed, name);

	return h != 0 ? h : 1;
}

void nameset_fini(struct nameset *s)
{
	free(s->slots);
	*s = (struct nameset){0};
}

static size_t nameset_at(const struct nameset *s, uint64_t print)
{
	size_t i = print & (s->cap - 1);

	while (s->slots[i] != 0 && s->slots[i] != print)
		i = (i + 1) & (s->cap - 1);
	return i;
}

static int nameset_grow(struct nameset *s)
{
	struct nameset next = *s;

	if (s->cap != 0 && (s->count + 1) * 4 <= s->cap * 3)
		return 0;
	if (s->cap == 0)
		next.seed = fresh_seed();
	next.cap = s->cap != 0 ? s->cap * 2 : 64;
	next.slots = calloc(next.cap, sizeof(*next.slots));
	if (next.slots == NULL)
		return AVA_ENOMEM;
	for (size_t i = 0; i < s->cap; i++)
		if (s->slots[i] != 0)
			next.slots[nameset_at(&next, s->slots[i])] = s->slots[i];
	free(s->slots);
	*s = next;
	return 0;
}

int nameset_add(struct nameset *s, const char *name)
{
	int rv = nameset_grow(s);
	uint64_t print;
	size_t at;

	if (rv != 0)
		return rv;
	print = fingerprint(s, name);
	at = nameset_at(s, print);
	if (s->slots[at] == 0)
		s->count++;
	s->slots[at] = print;
	return 0;
}

int nameset_has(const struct nameset *s, const char *name)
{
	if (s->count == 0)
		return 0;
	return s->slots[nameset_at(s, fingerprint(s, name))] != 0;
}
