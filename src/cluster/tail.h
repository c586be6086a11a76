/* What other machines of the cluster write, line by line, for who follows all logs: each line once,
 * in the order of its machine. Asked for every READER_POLL ms. Loop thread only. */
#ifndef CLUSTER_TAIL_H
#define CLUSTER_TAIL_H

#include <stddef.h>

struct ava_error;
struct buf;
struct os_loop;
struct reader;
struct tailing;

#define TAIL_PLACE 4096 /* bytes of a place, with its NUL */

struct tail_line {                  /* borrowed until the next call */
	const char *machine, *line; /* the name; the line without its end */
	size_t len;
};

/* `place`: as tail_place wrote it, *copied*: what comes behind; "": what is written from now on.
 * `wake` is called when tail_next may give more, never from here. AVA_EINVAL: the place;
 * AVA_ENOMEM. */
int tail_open(struct tailing **t, struct reader *r, struct os_loop *loop, const char *place,
	      void (*wake)(void *user), void *user, struct ava_error *err);
/* 1: a line; 0: none now; -2: memory ran out: open another one behind the place. */
int tail_next(struct tailing *t, struct tail_line *out);
/* Adds the place behind the last line that was given: of each machine a blank, the beginning of its
 * id, the tick, and the lines of that one. */
void tail_place(const struct tailing *t, struct buf *out);
void tail_close(struct tailing *t); /* before reader_close; NULL is fine */

#endif
