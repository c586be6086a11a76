/* Instructions to a subagent before its first reply, in two parts. The system prompt is the same
 * bytes for all runs of a role: its instructions, then the runtime's operating text as a part of
 * its own, which no role can remove. The parts that differ from run to run (task, context,
 * output schema) are the first user message, the task last: small models answer the text they
 * read last. So runs of a role and a model share all bytes up to the task, and a provider's
 * prompt cache has them. Tools are described in their schemas alone. The same input gives the
 * same bytes. */
#ifndef AGENT_PROMPT_H
#define AGENT_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include "agent/limit.h"

struct buf;

struct prompt {
	const char *task, *context; /* context "": there is none */
	const char *schema;         /* schema of the output, JSON; NULL: any form */
	const char *guide;          /* of the person's files, framed; NULL or "": there is none */
};

/* `role`: "CodeReviewer"; `instructions` "": it has none; `brief`: for a small window. Returns
 * buf_check(out), as prompt_task. Everything is borrowed during the call. */
int prompt_system(struct buf *out, const char *role, const char *instructions, bool brief);
/* The task stands behind the last PROMPT_TASK: no context can put another in its place. */
#define PROMPT_TASK    "## Your Task\n"
#define PROMPT_CONTEXT "## Context from Orchestrator\n"
int prompt_task(struct buf *out, const struct prompt *p);
/* The operating text alone, static; its hash stands in the spec. */
const char *prompt_operating_text(bool brief);

/* ---- Text made by the runtime for the model. It has one form, a line that begins
 * with "[ava] ", and stands in user-role text, or behind the last result in a request
 * of chat completions (provider/openai.c); text of models, tools and
 * pages that imitates the form is escaped where it enters. */

struct buf;

/* Append `text` as one notice line of its own: "[ava] text", without a newline
 * at its end. Newlines inside become spaces. Returns buf_check(out). */
int notice_format(struct buf *out, const char *text);
/* Append `s` with every "[ava]" or "[ava:" (any case, blanks inside the brackets) as "[\ava]" or
 * "[\ava:"; agent/envelope.h has the second form. Twice gives the same as once. Returns
 * buf_check(out). */
int notice_escape(struct buf *out, const char *s, size_t len);

/* Parts of a conversation's notices that the offline model recognises. */
#define NOTICE_RESULT    "Its result follows"
#define NOTICE_ELSEWHERE ", not in this conversation"        /* the notice answers nothing here */
#define NOTICE_TOLD      "told you in earlier conversations" /* memories, not new words */
#define NOTICE_FAILED    "answer could not be carried out: "
#define NOTICE_UNDONE    "Nothing was done: "
#define NOTICE_WAIT      "These wait: "
#define NOTICE_AT_WORK   ": the no was to what was proposed"

/* ---- notices about the model's own replies */

#define ODD_REPLIES_MAX 3 /* odd replies in a row that are asked again, with a changed request */
#define NOTICE_THOUGHT  "the model answered only in its thinking"
#define NOTICE_REPEATED "the model called %.*s with the same arguments and the same result %u times"

/* Is the line one that notice_turn may have said to a run with this task (NULL: none)? */
bool notice_is(const char *task, const char *line, size_t len);
/* Does the line stand word for word in the guidelines or the operating text of all runs? */
bool prompt_says(const char *line, size_t len);
/* All notices for the results of a turn, in its arena; `near`: its own limits that the model is
 * told about. AVA_ENOMEM. */
#define NOTICE_TURN (AGENT_NRESOURCES + AGENT_NSHARES + 5)
int notice_turn(struct agent *a, const char *out[NOTICE_TURN], unsigned *n, unsigned *near);

#endif
