/* The sentences of the offline Ava. All append to `out`. */
#ifndef PROVIDER_OFFLINE_TELL_H
#define PROVIDER_OFFLINE_TELL_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "provider/offline_heard.h"

#define TELL_LABEL      "(offline model) "
#define TELL_SHALL_STOP "Shall I stop it?"

void tell_task(struct buf *out, const char *task); /* the task in quotes, cut */

/* Tell a notice line of the runtime as one sentence for the person; nothing where that has been
 * said. */
void tell_notice(struct buf *out, const char *line);
/* Tell a result.json. */
void tell_result(struct buf *out, const char *json);
/* Tell the part of a result.json that is asked for. */
void tell_about(struct buf *out, const char *json, enum topic topic);
/* Tell, from lines as read_ava_logs gives them, how the run ended, which tools it called, what
 * failed. AVA_ENOMEM. */
int tell_log(struct arena *mem, struct buf *out, const char *text, const char *run);
/* Tell the rows of memory_search; returns how many, and the id of the last one. */
unsigned tell_known(struct buf *out, const char *rows, char id[24]);
void tell_noted(struct buf *out, const char *json); /* tell what memory_write returned */
/* Tell what a run with these tools can change or send; NULL: unknown. */
void tell_reach(struct buf *out, const json_t *tools);
/* Tell a row of list_subagents, by what is asked of the run. */
void tell_run(struct buf *out, const json_t *run, enum topic topic);
struct tell_quote { /* a proposal of this conversation */
	const char *id, *task, *role;
	const json_t *quote; /* as spawn_subagent returned it */
	const json_t *runs;  /* the runs of a group's quote; else NULL */
	unsigned nruns, number;
	bool open;
};
void tell_tasks(struct buf *out, const struct tell_quote *q); /* all its tasks, in quotes */
/* Tell a quote that waits, by what is asked of it. */
void tell_quote(struct buf *out, const struct tell_quote *q, enum topic topic);
/* Answer small talk, and requests that cannot be met; nothing for other topics. */
void tell_small(struct buf *out, enum topic topic);
/* Tell what subagent_status returned; tell_today: what ava_status returned. */
void tell_status(struct buf *out, const json_t *status);
void tell_today(struct buf *out, const json_t *us);

#endif
