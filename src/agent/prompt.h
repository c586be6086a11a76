/* The system prompt of a subagent: the template of its role's words, then the
 * runtime's operating text as a part of its own, which no role can remove.
 * The same input gives the same bytes. */
#ifndef AGENT_PROMPT_H
#define AGENT_PROMPT_H

struct agent_limits;
struct buf;
struct tool;

struct prompt {
	const char *role;           /* "CodeReviewer" */
	const char *task, *context; /* context "" when none */
	const char *schema;         /* of the output, JSON; NULL: none is asked for */
	const struct tool *const *tools;
	unsigned ntools;
	const struct agent_limits *limits;
};

/* Returns buf_check(out). Everything is borrowed during the call. */
int prompt_system(struct buf *out, const struct prompt *p);
/* The operating text alone, static; its hash stands in the spec. */
const char *prompt_operating_text(void);

#endif
