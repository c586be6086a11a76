/* The subagents of a conversation as its terminal knows them, by their events.
 * Pure: the time is given. */
#ifndef CLI_CHAT_RUNS_H
#define CLI_CHAT_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHAT_RUNS_MAX 256 /* the oldest ended ones are forgotten */

struct chat_run {
	char id[24], role[48]; /* as shown: "WebCrawler" */
	char activity[256];    /* the last one; "" */
	bool live;
	int64_t still_ms; /* when "still working" is due */
};

struct chat_runs {
	struct chat_run run[CHAT_RUNS_MAX];
	size_t n;
};

/* A run that began or is known to be at work. NULL: as many are live as can be
 * kept; it is shown without "still working". */
struct chat_run *chat_runs_begin(struct chat_runs *r, const char *id, const char *role,
				 int64_t now_ms);
struct chat_run *chat_runs_find(struct chat_runs *r, const char *id);
/* The next run of which "still working" is due, its time set anew; else NULL. */
struct chat_run *chat_runs_due(struct chat_runs *r, int64_t now_ms);
/* When the next one is due; -1: none. */
int64_t chat_runs_next(const struct chat_runs *r);

#endif
