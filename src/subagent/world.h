/* The real world of a run: agent/io.h over the journal, the models and the
 * tools. Its twin in simulated time is test/sim/world.c. Parts: world.c (slots,
 * timers, records), infer.c (model calls), toolrun.c (tools), ending.c (the
 * result and the last commit). Loop thread only. */
#ifndef SUBAGENT_WORLD_H
#define SUBAGENT_WORLD_H

#include "subagent/run.h"

struct jw;

extern const struct agent_io world_io;

/* The draft that is being written for the run's next commit; NULL: no memory
 * (the run then ends with an error). */
struct draft *world_draft(struct run *r);
/* Commit the open draft. `done` may be NULL. */
void world_flush(struct run *r, enum journal_level level, void (*done)(int rv, void *user));
/* Bytes for messages.jsonl (lines joined by \n, without the last one); they
 * become part of the next request. Returns how many bytes it adds there. */
int64_t world_lines(struct run *r, const char *lines, size_t len);
/* Let the machine go on in this loop turn. */
void world_wake(struct run *r);
void world_activity(struct run *r, const char *text);
/* Free the run once nothing points to it any more. */
void world_release(struct run *r);

/* The working folder, once for all calls: runs that wait for a slot or a person
 * hold none. AVA_ENOENT, AVA_EBUSY (too many files are open). */
int world_open_folder(struct run *r, struct ava_error *err);

/* ---- toolrun.c */
int toolrun_start(struct agent *a, unsigned call);
void toolrun_stop(struct agent *a);
/* Names of the tools at work, into an array that is open. */
void toolrun_names(const struct run *r, struct jw *w);
int toolrun_fetch(struct tool_env *env, const char *call_id, struct buf *out,
		  struct ava_error *err);
/* Before a turn's calls are saved: remember how many there are. */
int toolrun_count(struct run *r, unsigned ncalls);

/* ---- ending.c */
void ending_start(struct agent *a, const struct agent_end *end);
void ending_free(struct run *r);
/* A tool is done: an end that waited for the last one goes on. */
void ending_tools_done(struct run *r);
/* Close what is still open: a result for each call, an InferEnd. */
void ending_close(struct run *r, struct draft *d, const char *stop_reason);
#endif
