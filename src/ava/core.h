/* The runtime of one data root: opens the journal (recovering first), knows
 * runs and proposals, writes Ava's daily log. avad has one; an embedding
 * program may have one too. */
#ifndef AVA_CORE_H
#define AVA_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/settings.h"

struct core;
struct buf;
struct os_loop;
struct redact;
struct mcp_client;
struct pages_options;
struct ava_error;

struct core_options {
	struct os_loop *loop;            /* borrowed for the core's life */
	const char *root;                /* absolute; *copied*; its lock is the caller's */
	const struct settings *settings; /* *copied* */
	const struct redact *redact;     /* borrowed for the core's life */
	const char *model;               /* AVA_MODEL or NULL: forced default; *copied* */
	void (*log)(const char *line, void *user); /* avad.log; may be NULL */
	void *log_user;
	/* notify.exec: its words, each with its NUL, then an empty one; NULL or
	 * "": none. *Copied.* */
	const char *notify;
	/* Of a collector; NULL or "": traces are not pushed. *Copied.* */
	const char *otel, *otel_headers;
	const struct pages_options
		*pages;         /* what tools reach (tool/pages.h); NULL: nothing; *copied* */
	struct mcp_client *mcp; /* tool/mcp.h; NULL: none; borrowed for the core's life */
	uint64_t segment_bytes; /* of the journal; 0: 16 MB */
};

/* Recovers, writes LogOpen (and Recovered), ends or requeues the runs that a
 * crash left, then serves. */
int core_open(struct core **c, const struct core_options *o, struct ava_error *err);
/* Recovery alone: redo what a crash left and write LogOpen and Recovered about
 * it, so that the next start, which finds a clean root, need not know. Runs are
 * left as they are, a clean root is not written to. `report` (initialised)
 * gets one JSON object. */
int core_recover(const struct core_options *o, struct buf *report, struct ava_error *err);
/* The journal alone, for work on a root that nobody serves. */
int core_open_bare(struct core **c, const struct core_options *o, struct ava_error *err);
void core_close_bare(struct core *c);

/* Give no more slots: what is accepted from now on waits for the next start. */
void core_hold(struct core *c);
/* Stop taking slots, commit, close. Runs that are started end as interrupted
 * at the next start; a clean stop says so in the daily log. */
void core_close(struct core *c);

/* Nothing lives that keeps a daemon up: no run, queue or pending proposal. */
bool core_idle(const struct core *c);

#endif
