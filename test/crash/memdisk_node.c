/* The nodes of a disk in memory; see memdisk_node.h.
 *
 * A file's bytes are shared between copies of a disk until one writes to
 * them. Each node keeps, beside what is, what would be there after a power
 * cut: the content of the last sync, and the names of the last sync of a
 * folder with the changes made since. */
#include "memdisk_node.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes */

struct bytes *bytes_new(void)
{
	struct bytes *b = calloc(1, sizeof(*b));

	assert(b != NULL);
	b->refs = 1;
	return b;
}

struct bytes *bytes_get(struct bytes *b)
{
	if (b != NULL)
		b->refs++;
	return b;
}

void bytes_put(struct bytes *b)
{
	if (b == NULL || --b->refs > 0)
		return;
	free(b->data);
	free(b);
}

struct bytes *bytes_copy(const struct bytes *b, size_t room)
{
	struct bytes *c = bytes_new();

	c->cap = b->len > room ? b->len : room;
	c->len = b->len;
	c->data = calloc(1, c->cap + 1);
	assert(c->data != NULL);
	if (b->len > 0)
		memcpy(c->data, b->data, b->len);
	return c;
}

/* To be written to by this node alone, `size` bytes long at the least. */
struct bytes *node_own(struct node *n, size_t size)
{
	struct bytes *b = n->now;

	if (b->refs > 1) {
		n->now = bytes_copy(b, size);
		bytes_put(b);
		b = n->now;
	}
	if (size > b->cap) {
		b->cap = size > b->cap * 2 ? size : b->cap * 2;
		b->data = realloc(b->data, b->cap + 1);
		assert(b->data != NULL);
	}
	if (size > b->len) {
		memset(b->data + b->len, 0, size - b->len);
		b->len = size;
	}
	return b;
}

/* ---- nodes */

struct node *node_new(struct node **all, ino_t ino, bool dir)
{
	struct node *n = calloc(1, sizeof(*n));

	assert(n != NULL);
	n->ino = ino;
	n->dir = dir;
	n->lock_fd = -1;
	n->now = dir ? NULL : bytes_new();
	n->next = *all;
	*all = n;
	return n;
}

void entries_free(struct entry *e, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(e[i].name);
	free(e);
}

void node_free(struct node *n)
{
	bytes_put(n->now);
	bytes_put(n->synced);
	free(n->dirty);
	entries_free(n->entries, n->nentries);
	entries_free(n->was, n->nwas);
	free(n->changes);
	free(n);
}

struct entry *entries_copy(const struct entry *e, size_t n)
{
	struct entry *c = calloc(n + 1, sizeof(*c));

	assert(c != NULL);
	for (size_t i = 0; i < n; i++) {
		c[i].name = strdup(e[i].name);
		c[i].node = e[i].node;
	}
	return c;
}

struct entry *entry_find(const struct node *dir, const char *name, size_t len)
{
	for (size_t i = 0; i < dir->nentries; i++)
		if (strncmp(dir->entries[i].name, name, len) == 0 &&
		    dir->entries[i].name[len] == '\0')
			return &dir->entries[i];
	return NULL;
}

static void set_entry(struct entry **list, size_t *n, const char *name, struct node *node)
{
	for (size_t i = 0; i < *n; i++) {
		if (strcmp((*list)[i].name, name) != 0)
			continue;
		if (node != NULL) {
			(*list)[i].node = node;
			return;
		}
		free((*list)[i].name);
		(*list)[i] = (*list)[--*n];
		return;
	}
	if (node == NULL)
		return;
	*list = realloc(*list, (*n + 1) * sizeof(**list));
	assert(*list != NULL);
	(*list)[*n].name = strdup(name);
	(*list)[(*n)++].node = node;
}

void entry_change(struct node *dir, const char *name, struct node *node)
{
	struct change *c;

	set_entry(&dir->entries, &dir->nentries, name, node);
	dir->changes = realloc(dir->changes, (dir->nchanges + 1) * sizeof(*c));
	assert(dir->changes != NULL);
	c = &dir->changes[dir->nchanges++];
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->node = node;
	c->joined = false;
}

void node_sync(struct node *n)
{
	if (n->dir) {
		entries_free(n->was, n->nwas);
		n->was = entries_copy(n->entries, n->nentries);
		n->nwas = n->nentries;
		n->nchanges = 0;
		return;
	}
	bytes_put(n->synced);
	n->synced = bytes_get(n->now);
	free(n->dirty);
	n->dirty = NULL;
	n->dirty_pages = 0;
}

void node_dirty(struct node *n, size_t from, size_t to)
{
	size_t pages = to / MEMDISK_PAGE + 1;

	if (pages > n->dirty_pages) {
		n->dirty = realloc(n->dirty, pages);
		assert(n->dirty != NULL);
		memset(n->dirty + n->dirty_pages, 0, pages - n->dirty_pages);
		n->dirty_pages = pages;
	}
	for (size_t p = from / MEMDISK_PAGE; p * MEMDISK_PAGE < to; p++)
		n->dirty[p] = 1;
}

struct node *node_copy(struct node **all, const struct node *n)
{
	struct node *c = calloc(1, sizeof(*c));

	assert(c != NULL);
	*c = (struct node){.ino = n->ino, .dir = n->dir, .lock_fd = -1};
	c->now = bytes_get(n->now);
	c->synced = bytes_get(n->synced);
	c->dirty_pages = n->dirty_pages;
	if (n->dirty_pages > 0) {
		c->dirty = malloc(n->dirty_pages);
		memcpy(c->dirty, n->dirty, n->dirty_pages);
	}
	c->entries = entries_copy(n->entries, n->nentries);
	c->nentries = n->nentries;
	c->was = entries_copy(n->was, n->nwas);
	c->nwas = n->nwas;
	c->nchanges = n->nchanges;
	if (n->nchanges > 0) {
		c->changes = malloc(n->nchanges * sizeof(*c->changes));
		memcpy(c->changes, n->changes, n->nchanges * sizeof(*c->changes));
	}
	c->next = *all;
	*all = c;
	return c;
}

/* A file on its way through a power cut. */
struct loss {
	struct node *n;
	struct bytes *mix;       /* what will be there */
	const struct bytes *old; /* the last sync; NULL: none */
	size_t old_len, len;
	uint32_t (*pick)(uint32_t, void *);
	void *user;
};

static void take_old(struct loss *l, size_t from, size_t to)
{
	for (size_t i = from; i < to && i < l->mix->cap; i++)
		l->mix->data[i] = i < l->old_len ? l->old->data[i] : 0;
}

/* New or old content in units of `unit` bytes; where the last new one ends. */
static size_t lose_units(struct loss *l, size_t unit)
{
	size_t kept_to = 0;

	for (size_t p = 0; p < l->n->dirty_pages; p++) {
		if (l->n->dirty[p] == 0)
			continue;
		for (size_t from = p * MEMDISK_PAGE; from < (p + 1) * MEMDISK_PAGE; from += unit) {
			size_t to = from + unit;

			if (l->pick(2, l->user) == 0) {
				take_old(l, from, to);
				continue;
			}
			kept_to = to < l->n->now->len ? to : l->n->now->len;
			l->len = kept_to > l->len ? kept_to : l->len;
		}
	}
	return kept_to;
}

/* The size is that of the last unit that is new, or the old one; without any
 * order it may be the new one too, with zeros in what is not there. */
static void node_lose_bytes(struct node *n, enum memdisk_order order,
			    uint32_t (*pick)(uint32_t, void *), void *user)
{
	size_t old_len = n->synced != NULL ? n->synced->len : 0, end, cut;
	struct loss l = {.n = n,
			 .mix = bytes_copy(n->now, old_len),
			 .old = n->synced,
			 .old_len = old_len,
			 .len = old_len,
			 .pick = pick,
			 .user = user};

	end = lose_units(&l, order == MEMDISK_UNORDERED ? MEMDISK_SECTOR : MEMDISK_PAGE);
	if (order == MEMDISK_TORN && end > 0) {
		cut = (end - 1) / MEMDISK_SECTOR * MEMDISK_SECTOR;
		take_old(&l, cut + pick((uint32_t)(end - cut), user), end);
	}
	if ((order == MEMDISK_UNORDERED || (n->now->len < old_len && l.len == old_len)) &&
	    pick(2, user) == 1)
		l.len = n->now->len; /* the new size got through */
	l.mix->len = l.len < l.mix->cap ? l.len : l.mix->cap;
	bytes_put(n->now);
	n->now = l.mix;
}

void node_lose(struct node *n, enum memdisk_order order, uint32_t (*pick)(uint32_t, void *),
	       void *user)
{
	size_t kept = n->nchanges;
	bool take = true;

	if (!n->dir) {
		if (n->dirty_pages > 0)
			node_lose_bytes(n, order, pick, user);
		return;
	}
	if (order != MEMDISK_UNORDERED)
		kept = pick((uint32_t)n->nchanges + 1, user);
	if (kept > 0 && kept < n->nchanges && n->changes[kept - 1].joined)
		kept++;
	entries_free(n->entries, n->nentries);
	n->entries = entries_copy(n->was, n->nwas);
	n->nentries = n->nwas;
	for (size_t i = 0; i < kept; i++) {
		if (order == MEMDISK_UNORDERED && (i == 0 || !n->changes[i - 1].joined))
			take = pick(2, user) == 1;
		if (take)
			set_entry(&n->entries, &n->nentries, n->changes[i].name,
				  n->changes[i].node);
	}
}
