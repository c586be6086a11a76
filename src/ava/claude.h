/* Subagents of Claude Code, as its hooks report them (doc/CLAUDE-CODE.md): changes of their cards
 * are written into the daily log and told to watchers, and folders are kept small. Sessions, cards
 * and tasks are read from Claude Code's files on request. */
#ifndef AVA_CLAUDE_H
#define AVA_CLAUDE_H

struct ava_error;
struct core;

/* Watches the folder of Claude Code, at once or when it appears. A watch that fails is logged in
 * avad.log, and work goes on without it. Sets claude of core_service. AVA_ENOMEM. */
int claude_open(struct core *c, struct ava_error *err);
/* May be called without claude_open. All jobs must have ended. */
void claude_close(struct core *c);

#endif
