/* The nodes of a disk in memory, apart from the calls on them; memdisk.h. */
#ifndef CRASH_MEMDISK_NODE_H
#define CRASH_MEMDISK_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMDISK_PAGE   4096
#define MEMDISK_SECTOR 512
#define MEMDISK_NAME   256

/* What a power cut may do to what was not synced. */
enum memdisk_order {
	/* As a journalled file system: a folder's changes are there up to some
	 * point (a rename is one), pages of a file one by one. */
	MEMDISK_ORDERED,
	/* No order at all: each change of a folder for itself,
	 * sectors of a file one by one, its size old or new. */
	MEMDISK_UNORDERED,
	/* As the first, and the last sector that got through is cut in its middle. */
	MEMDISK_TORN,
};

struct bytes {
	unsigned refs;
	size_t len, cap;
	unsigned char *data;
};

struct change {
	char name[MEMDISK_NAME];
	struct node *node; /* NULL: removed */
	bool joined;       /* with the next: a rename inside one folder */
};

struct entry {
	char *name;
	struct node *node;
};

struct node {
	struct node *next; /* all of the disk */
	struct node *copy; /* in a clone that is being made */
	ino_t ino;
	bool dir, mark;
	struct bytes *now, *synced; /* files */
	unsigned char *dirty;       /* bit per page written since */
	size_t dirty_pages;
	struct entry *entries, *was; /* folders: now; at the last sync */
	size_t nentries, nwas;
	struct change *changes; /* since */
	size_t nchanges;
	int lock_fd; /* flock, -1: free */
};

struct bytes *bytes_new(void);
struct bytes *bytes_get(struct bytes *b);
void bytes_put(struct bytes *b);
struct bytes *bytes_copy(const struct bytes *b, size_t room);

struct node *node_new(struct node **all, ino_t ino, bool dir);
struct node *node_copy(struct node **all, const struct node *n);
void node_free(struct node *n);
/* The bytes of a file, to be written to by it alone, `size` long at the least. */
struct bytes *node_own(struct node *n, size_t size);
void node_dirty(struct node *n, size_t from, size_t to);
void node_sync(struct node *n);
/* As the power cut leaves it; see memdisk_power_cut. */
void node_lose(struct node *n, enum memdisk_order order, uint32_t (*pick)(uint32_t, void *),
	       void *user);

struct entry *entry_find(const struct node *dir, const char *name, size_t len);
/* `node` NULL removes. */
void entry_change(struct node *dir, const char *name, struct node *node);
struct entry *entries_copy(const struct entry *e, size_t n);
void entries_free(struct entry *e, size_t n);

#endif
