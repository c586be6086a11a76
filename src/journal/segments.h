/* The files of wal/: numbered, filled ahead, used again.
 *
 * Spare segments are zero-filled by the helper thread, so that syncing them
 * later changes no metadata; released ones become spare under a new, higher
 * number. A file is in use when its header says the number in its name. */
#ifndef JOURNAL_SEGMENTS_H
#define JOURNAL_SEGMENTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENTS_SPARE 16 /* kept at the most */
#define SEGMENTS_AHEAD 2  /* kept filled */
#define SEGMENTS_NAME  24 /* "0000000000000001.seg" */

struct segments_live {
	uint64_t seq;
	bool filled; /* every block was written once: worth using again */
};

struct segments {
	int walfd;
	uint64_t bytes;     /* of one */
	_Atomic bool hurry; /* fill without rests */
	pthread_mutex_t lock;
	uint64_t next_seq; /* never given to a file */
	uint64_t taken;    /* the highest in use; spare ones are above it */
	uint64_t spare[SEGMENTS_SPARE];
	unsigned nspare;
	struct segments_live *live; /* in use, not released; ascending */
	size_t nlive, caplive;
};

void segments_name(uint64_t seq, char out[SEGMENTS_NAME]);
/* The number in a file name; 0 when it is none. */
uint64_t segments_number(const char *name);

/* `next_seq` is above every number in the folder. */
int segments_init(struct segments *s, int walfd, uint64_t bytes, uint64_t next_seq);
void segments_fini(struct segments *s);
/* No segment is begun below `seq`. */
void segments_above(struct segments *s, uint64_t seq);
/* At start, in ascending order: those in use, needed or not (a release
 * follows), then those that are not. Only one whose header is good may become
 * a spare: by its old number it shows that what it holds is old. */
int segments_add_live(struct segments *s, uint64_t seq, bool has_header);
void segments_add_spare(struct segments *s, uint64_t seq);

/* The journal's thread: the next segment, open for writing. *filled: it was
 * filled ahead; else it was made just now. -1 and errno. */
int segments_take(struct segments *s, uint64_t *seq, bool *filled);
bool segments_have_spare(struct segments *s);

/* Helper thread. Fill spare ones until there are SEGMENTS_AHEAD; one a call.
 * 1: more to do, 0: done, -1 and errno. */
int segments_prepare(struct segments *s);
/* As long as what was just written took: half of the disk is the others'. */
void segments_rest(int64_t took_us);
/* Those numbered below `before` are released. */
void segments_release(struct segments *s, uint64_t before);

#endif
