/* A disk in memory from outside, as a person reads and writes it; memdisk.h.
 * These never fail on purpose: plans and limits are for the journal's calls. */
#include "memdisk.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memdisk_disk.h"

const char *memdisk_read(struct memdisk *d, const char *path, size_t *len)
{
	struct node *n;

	pthread_mutex_lock(&memdisk_lock);
	n = memdisk_lookup(d, AT_FDCWD, path);
	if (n == NULL || n->dir) {
		pthread_mutex_unlock(&memdisk_lock);
		return NULL;
	}
	node_own(n, n->now->len);
	if (n->now->data == NULL)
		n->now->data = calloc(1, 1);
	n->now->data[n->now->len] = '\0';
	*len = n->now->len;
	pthread_mutex_unlock(&memdisk_lock);
	return (const char *)n->now->data;
}

void memdisk_write(struct memdisk *d, const char *path, const void *bytes, size_t len)
{
	struct node *n, *dir;
	const char *last;

	pthread_mutex_lock(&memdisk_lock);
	n = memdisk_lookup(d, AT_FDCWD, path);
	if (n == NULL) {
		dir = memdisk_walk_to(d->root, path, &last);
		assert(dir != NULL);
		n = node_new(&d->nodes, ++d->next_ino, false);
		entry_change(dir, last, n);
	}
	memdisk_resize(d, n, 0);
	memdisk_node_write(d, n, bytes, len, 0);
	pthread_mutex_unlock(&memdisk_lock);
}

void memdisk_poke(struct memdisk *d, const char *path, size_t at, unsigned char flip)
{
	struct node *n;

	pthread_mutex_lock(&memdisk_lock);
	n = memdisk_lookup(d, AT_FDCWD, path);
	assert(n != NULL && at < n->now->len);
	node_own(n, n->now->len)->data[at] ^= flip;
	pthread_mutex_unlock(&memdisk_lock);
}

void memdisk_cut(struct memdisk *d, const char *path, size_t len)
{
	struct node *n;

	pthread_mutex_lock(&memdisk_lock);
	n = memdisk_lookup(d, AT_FDCWD, path);
	assert(n != NULL && len <= n->now->len);
	memdisk_resize(d, n, len);
	pthread_mutex_unlock(&memdisk_lock);
}

void memdisk_remove(struct memdisk *d, const char *path)
{
	const char *last;
	struct node *dir;

	pthread_mutex_lock(&memdisk_lock);
	dir = memdisk_walk_to(d->root, path, &last);
	if (dir != NULL) {
		memdisk_give_back(d, dir, last);
		entry_change(dir, last, NULL);
	}
	pthread_mutex_unlock(&memdisk_lock);
}

static void walk_files(const struct node *dir, const char *prefix,
		       void (*file)(const char *, const char *, size_t, void *), void *user)
{
	char path[1024];

	for (size_t i = 0; i < dir->nentries; i++) {
		const struct node *n = dir->entries[i].node;

		snprintf(path, sizeof(path), "%s/%s", prefix, dir->entries[i].name);
		if (n->dir)
			walk_files(n, path, file, user);
		else
			file(path, (const char *)n->now->data, n->now->len, user);
	}
}

void memdisk_walk(struct memdisk *d,
		  void (*file)(const char *path, const char *bytes, size_t len, void *user),
		  void *user)
{
	walk_files(d->root, "", file, user);
}
