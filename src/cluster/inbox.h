/* What one machine of a cluster has to say to another: a verb for a run or an Ask travels as a row
 * of ava_inbox to whoever has that run when it looks, and the answer comes back in the same row.
 * Open Asks are rows of ava_ask, so that each machine lists those of all. What a verb or an Ask is
 * nobody here knows. Loop thread only; called while no part is being closed. */
#ifndef CLUSTER_INBOX_H
#define CLUSTER_INBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct ava_error;
struct cluster;

#define INBOX_MS      250   /* between two looks at what came */
#define INBOX_WAIT_MS 10000 /* an answer is waited for; its row waits for a day */

/* ---- verbs */

struct inbox_verb {      /* *borrowed for the call* */
	const char *id;  /* one row, and one answer, for all who say it; NULL: a new one */
	const char *run; /* whose machine it is for; "": the one that has the Ask `name` */
	/* A request id, which is for the machine that was asked with it first in a day, whatever it
	 * is for else; NULL or "": none. */
	const char *claim;
	const char *name; /* what it is about */
	const char *verb;
	const char *body; /* JSON */
	bool live;        /* only for a run at work: its machine is there, and it has not ended */
};

/* rv 0: `answer` (*borrowed until this returns*), with the status of HTTP and the code of an error,
 * which 0 has none of. AVA_ENOENT: no other machine has it, do it here. AVA_EIO: the database is
 * away, or nobody answered in time, and the sentence says that it is kept. AVA_ENOMEM,
 * AVA_ECANCELED. Exactly once, maybe from here. */
struct inbox_answer {
	int status, code;
	const char *text; /* JSON, or the sentence of an error */
	size_t len;
};
typedef void (*inbox_fn)(int rv, const struct inbox_answer *a, const struct ava_error *err,
			 void *user);
void inbox_send(struct cluster *c, const struct inbox_verb *v, inbox_fn done, void *user);

/* Answers a verb that `call` was given. `text` is *copied*. */
void inbox_answer(struct cluster *c, const char *id, const struct inbox_answer *a);

/* ---- Asks of others: each with its machine, the oldest first; `text` is its JSON object. */
struct inbox_ask {
	const char *id, *machine, *text;
	size_t len;
};
/* rv not 0: they could not be asked for within a second, and `err` says why. Once, maybe from here.
 */
typedef void (*inbox_asks_fn)(int rv, const struct inbox_ask *asks, unsigned n,
			      const struct ava_error *err, void *user);
/* `session` NULL: of all. */
void inbox_asks(struct cluster *c, const char *session, inbox_asks_fn done, void *user);

/* ---- the machine that is asked */
struct inbox_hooks {
	/* A verb that came, until it is answered once; after a crash of this machine or of the one
	 * before it comes again. False: the run is still on its way here, later. */
	bool (*call)(const struct inbox_verb *v, void *user);
	/* Names each open Ask of this machine by inbox_open. */
	void (*asks)(void *user);
	void *user;
};
void inbox_serve(struct cluster *c, const struct inbox_hooks *hooks); /* *copied* */
/* For the hook `asks`. An Ask with another version is another one. Not NULL: its JSON object is to
 * be written there, before the next one is named. */
struct buf *inbox_open(struct cluster *c, const char *id, const char *run, const char *session,
		       int64_t version);

#endif
