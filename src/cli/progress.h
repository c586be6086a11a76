/* Status lines of a run, the same words in every channel. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PROGRESS_FIRST_MS 30000 /* "still working" comes first after this */
#define PROGRESS_NEXT_MS  60000 /* and then after this */

struct progress {
	FILE *f;
	char role[48];      /* as shown: "WebCrawler" */
	char activity[256]; /* the last one, cut */
	bool chat;          /* in a conversation: its commands are named */
	bool live;          /* the last row is a status line that is written over */
	size_t shown;       /* its columns that stand there now */
};

void progress_init(struct progress *p, FILE *f, const char *role);
void progress_spawning(const struct progress *p, const char *run);
/* An event line of the run: an Activity is shown. */
void progress_event(struct progress *p, const char *type, const char *line, size_t len);
void progress_still_working(struct progress *p);

/* On a terminal that can: "WebCrawler running (45s, 12k tokens)..." of a status
 * object, over the one before. It has no line end and no escapes, and goes away
 * before anything else is printed (progress_clear). */
void progress_live(struct progress *p, const json_t *status);
void progress_clear(struct progress *p);

/* The last line of a run, from its result. */
void progress_end(FILE *f, const char *role, const json_t *result);
/* "WebCrawler running (45s, 12k tokens)" and what it does, from a status. */
void progress_status(FILE *f, const json_t *status);

/* The subagents of a conversation as its terminal knows them, by their events.
 * Pure: the time is given. */

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
