/* Room in a conversation (agent/limit.h): what is removed from messages.jsonl,
 * as amendment lines that say so for good. Pure: bytes of the file in, lines out;
 * the same for the daemon and for worlds that are simulated. */
#ifndef PROVIDER_CONTEXT_H
#define PROVIDER_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/limit.h"
#include "agent/position.h"
#include "base/buf.h"
#include "provider/wire.h"

struct ava_error;
struct dialect;

struct context_ask {
	const struct dialect *dialect;
	int root_fd; /* for the head (provider/head.h) */
	struct agent_compact want;
	const struct repeats *repeats;
	/* Gives our name of the run's k-th call, counted from 0. */
	struct call_ref (*name)(size_t k, void *user);
	void *user;
};

struct context_edit {
	struct buf lines;   /* lines to append, each with \n; empty: nothing can be removed */
	bool cut;           /* true: the edit cuts lines out; false: it replaces results */
	struct buf request; /* the request's head and lines after the edit */
	struct agent_compacted bytes;
	struct call_ref *removed; /* the calls whose results were removed; owned */
	size_t nremoved;
	struct call_ref *fetched; /* removed results that the model had asked for again; owned */
	size_t nfetched;
	unsigned summary_lines;
};

/* Make an edit. `file`: messages.jsonl, or from its newest cut on. The edit was tried: the request
 * with it is smaller and passes the dialect's check. AVA_ECORRUPT, AVA_EINVAL, AVA_ETOOBIG,
 * AVA_ENOMEM: append nothing. context_edit_fini is due in any case. */
int context_edit(struct context_edit *e, const struct context_ask *ask, const char *file,
		 size_t len, struct ava_error *err);
void context_edit_fini(struct context_edit *e);

/* ---- a conversation taken apart: slices of the text that was read */

struct said_line {
	struct slice raw; /* the whole message */
	enum wire_role role;
	bool user;         /* the service does not count it as the model's */
	bool item;         /* responses: the line holds all items of a reply */
	struct slice text; /* the first text in the message; raw string */
	struct slice last; /* the last text in the message; raw string */
	unsigned texts;
};

struct said_call {
	struct slice id, name; /* raw strings */
	struct slice args;     /* JSON, or a raw string that holds it */
	size_t line;
	bool answered;
	size_t result_line;
	struct slice result; /* raw string */
	bool is_error;
};

struct conversation {
	struct said_line *lines; /* owned */
	struct said_call *calls; /* owned; in the order in which they were made */
	size_t nlines, ncalls;
	size_t cap_lines, cap_calls;
};

/* Take a conversation apart. `lines`: messages joined by commas; *borrowed as long as the result*.
 * AVA_EINVAL: it is none, AVA_ENOMEM. conversation_fini is due in any case. */
int conversation_read(struct conversation *c, const char *lines, size_t len, struct ava_error *err);
void conversation_fini(struct conversation *c);

#endif
