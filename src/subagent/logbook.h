/* What is written where: events into Ava's daily log and into run files, rows
 * into the catalog, lines into messages.jsonl, files. A draft collects them
 * and is committed as one; lines of a draft reach the feed once they are
 * durable and readable. Loop thread only. */
#ifndef SUBAGENT_LOGBOOK_H
#define SUBAGENT_LOGBOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "event/event.h"
#include "journal/catalog.h"
#include "journal/journal.h"
#include "subagent/draft.h"
#include "subagent/feed.h"
#include "subagent/paths.h"

struct os_loop;
struct os_timer;
struct redact;
struct logbook {
	struct journal *journal;
	struct os_loop *loop;
	const struct redact *redact;
	int root_fd;
	struct feed feed;
	char day[11];        /* local date of the daily log in use */
	uint64_t day_seq;    /* of its last event */
	struct list stalled; /* outboxes whose head waits for the disk */
	struct list flying;  /* commits under way (their first drafts), by lsn */
	struct os_timer *retry;
	int64_t retry_ms;
	bool behind, closed; /* its numbers were behind those in the logs; it takes no more */
	void (*touched)(const char *path, void *user); /* lines came to it; may be NULL */
	void *touched_user;
};

/* Opens today's log for counting (its last seq). `journal` is borrowed. */
int logbook_open(struct logbook *lb, struct journal *journal, struct os_loop *loop,
		 const struct redact *redact, int root_fd, struct ava_error *err);
void logbook_close(struct logbook *lb);

/* Every event up to this lsn is on disk, can be read and is in the feed, but what a file
 * that cannot be written holds back for over a second: who looks at the state now and then
 * follows the events behind it misses nothing. */
uint64_t logbook_shown(struct logbook *lb);

#endif
