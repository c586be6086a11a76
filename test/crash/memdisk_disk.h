/* The insides of a disk in memory, shared by memdisk.c and memdisk_person.c. */
#ifndef CRASH_MEMDISK_DISK_H
#define CRASH_MEMDISK_DISK_H

#include <pthread.h>

#include "memdisk.h"

#define FDS      4096
#define FD_FIRST 100000 /* so that a real descriptor is never meant */
#define DEVICE   42

struct open_file {
	struct node *node;
	int flags;
};

struct memdisk {
	struct node *nodes, *root;
	ino_t next_ino;
	struct open_file fds[FDS];
	uint64_t calls;
	long fail_at; /* -1: not armed */
	enum memdisk_fault how;
	int error;
	bool failed;
	char fail_name[64];
	enum memdisk_what what;
	size_t limit, used;
	struct memdisk_plan plan;
	void (*watch)(struct memdisk *d, void *user);
	void *watch_user;
};

/* One for all disks, because the journal has threads. What is declared below
 * is called with it held. */
extern pthread_mutex_t memdisk_lock;

ssize_t memdisk_node_write(struct memdisk *d, struct node *n, const void *buf, size_t len,
			   size_t at);
/* The folder `path` is in and its last name; NULL and errno. */
struct node *memdisk_walk_to(struct node *dir, const char *path, const char **last);
struct node *memdisk_lookup(struct memdisk *d, int dirfd, const char *path);
void memdisk_resize(struct memdisk *d, struct node *n, size_t len);
/* Before a name goes: a file has one, so its room is free then. */
void memdisk_give_back(struct memdisk *d, const struct node *dir, const char *name);

#endif
