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
	void (*log)(const char *line, void *user); /* takes a line for avad.log; or NULL */
	void *log_user;
	/* Words of notify.exec, each with its NUL, then an empty one; NULL or "": none; *copied* */
	const char *notify;
	/* notify.url, its form, and the secret that signs; NULL or "": none; *copied* */
	const char *notify_url, *notify_format, *notify_secret;
	/* URL and headers of a collector; NULL or "": traces are not pushed; *copied* */
	const char *otel, *otel_headers;
	/* The database of a cluster (cluster/cluster.h), and the listener to its loss, called with
	 * log_user; NULL or "": none; *copied* */
	const char *cluster;
	const char *cluster_read; /* the same, for reading; NULL or "": `cluster`; *copied* */
	const char *cluster_name; /* of this machine; NULL or "": that of the host; *copied* */
	const char
		*cluster_folders; /* words as in notify, "site=/srv/site"; NULL: none; *copied* */
	void (*fenced)(const char *why, void *user);
	const struct pages_options
		*pages;         /* web access of tools (tool/pages.h); NULL: none; *copied* */
	struct mcp_client *mcp; /* tool/mcp.h; NULL: none; borrowed for the core's life */
	uint64_t segment_bytes; /* size of the journal's segments; 0: 16 MB */
};

/* Recovers, writes LogOpen (and Recovered), ends or requeues the runs that a
 * crash left, then serves. */
int core_open(struct core **c, const struct core_options *o, struct ava_error *err);
/* Recovery alone: redoes what a crash left and writes LogOpen and Recovered, since the next start
 * finds a clean root and cannot tell. Leaves runs as they are; does not write to a clean root.
 * `report` (initialised) gets one JSON object. */
int core_recover(const struct core_options *o, struct buf *report, struct ava_error *err);
/* The journal alone, for work on a root that nobody serves. */
int core_open_bare(struct core **c, const struct core_options *o, struct ava_error *err);
void core_close_bare(struct core *c);

/* Gives no more slots: runs accepted from now on wait for the next start. */
void core_hold(struct core *c);
/* Gives no more slots, commits, closes. The next start carries on runs that did not end. */
void core_close(struct core *c);

/* Does nothing keep a daemon up: no run, no job, no pending proposal, no part at work? */
bool core_idle(const struct core *c);

#endif
