/* Items and Asks (doc/ITEMS.md, doc/ASKS.md), and the status of runs, as lines for people: what
 * terminal, pipe and editor show is made here. */
#ifndef CLI_FACE_H
#define CLI_FACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Nothing is shown of it here: what somebody said and what is proposed have forms of their own. */
bool face_is_silent(const json_t *item);
/* Its lines. `who`: the run, as shown: "Researcher"; `chat`: in a conversation, whose commands are
 * named. */
void face_item(FILE *f, const json_t *item, const char *who, bool chat);
/* The same without the last line's end. *Owned* (free); NULL: no memory. */
char *face_text(const json_t *item, const char *who);
/* The question of a run, of its Item or its Ask. */
void face_question(FILE *f, const json_t *ask, const char *who, bool chat);

/* ---- Status lines of a run, the same words in every channel. */

#define PROGRESS_FIRST_MS 30000 /* "still working" comes first after this */
#define PROGRESS_NEXT_MS  60000 /* and then again after this */

struct progress {
	FILE *f;
	char role[48];      /* as shown: "WebCrawler" */
	char who[80];       /* the role, with the run's id when two of them are at work */
	char activity[256]; /* the run's last activity, cut */
	bool chat;          /* shown in a conversation: lines name its commands */
	bool live;          /* the last row is a status line, which the next output replaces */
	size_t shown;       /* columns of the status line that stand there now */
};

void progress_init(struct progress *p, FILE *f, const char *role);
/* What happens to the run; doing is remembered. */
void progress_item(struct progress *p, const json_t *item);
/* `status`: of the run, as it is now; NULL: not known. */
void progress_still_working(struct progress *p, const json_t *status);

/* On a terminal that can: "WebCrawler running (45s, 12k tokens)..." of a status
 * object, over the one before. It has no line end and no escapes, and goes away
 * before anything else is printed (progress_clear). */
void progress_live(struct progress *p, const json_t *status);
void progress_clear(struct progress *p);

/* The last line of a run, from its result, with what can be done next; `run`: its status, for
 * its limits, or NULL. */
/* `who`: as shown. */
void progress_end(FILE *f, const char *who, const json_t *result, const json_t *run);
/* "WebCrawler running (45s, 12k tokens)" and the run's activity, from a status. */
void progress_status(FILE *f, const json_t *status);

/* "WebCrawler running (45s, 12k tokens, $0.02): Reading …" of a status, shorter where there
 * are less than 60 columns (0: no limit). *Owned* (free); NULL: no memory. */
char *status_line(const json_t *run, size_t columns);

/* The subagents of a conversation as its terminal knows them, by their events.
 * Pure: the time is given. */

#define CHAT_RUNS_MAX 256 /* the oldest ended ones are forgotten */

struct chat_run {
	char id[24];
	struct progress shown;
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
/* The next run whose "still working" is due, with its time set anew; else NULL. */
struct chat_run *chat_runs_due(struct chat_runs *r, int64_t now_ms);
/* When the next "still working" is due; -1: none. */
int64_t chat_runs_next(const struct chat_runs *r);

#endif
