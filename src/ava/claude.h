/* Subagents of Claude Code, as its hooks tell of them (doc/CLAUDE-CODE.md): what changes on their
 * cards is written into the daily log and told to whoever watches, and folders are kept small.
 * Their sessions, cards and tasks are read from its files when they are asked for. */
#ifndef AVA_CLAUDE_H
#define AVA_CLAUDE_H

struct ava_error;
struct core;

/* Watches the folder of Claude Code, from now on or as soon as it is there. What cannot be
 * watched is told in avad.log and does without. Sets claude of core_service. AVA_ENOMEM. */
int claude_open(struct core *c, struct ava_error *err);
/* Where it was not opened that is fine. No job of it is at work any more. */
void claude_close(struct core *c);

#endif
