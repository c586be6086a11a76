/* How the mock answers: times, sizes, tool calls, quirks (in every reply of a
 * conversation) and faults (counted). A plan is text, the same on the command
 * line, in a rule, in a model's name behind '+', and in the first user message
 * as [[mock …]]:
 *
 *	turns=4 latency=500 chunks=20 fault=529x5 fault=cut:300@2 quirk=crlf
 *
 * Later words win; faults and quirks add up. doc/MOCK.md has the list. */
#ifndef MOCK_PLAN_H
#define MOCK_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tape.h"

/* Clang-format would put each on a line of its own. */
/* clang-format off */
enum quirk {
	QUIRK_INDEX0 = 1 << 0, QUIRK_NO_INDEX = 1 << 1, QUIRK_NO_IDS = 1 << 2, QUIRK_ARGS_OBJECT = 1 << 3,
	QUIRK_REDACTED = 1 << 4, QUIRK_SEALED = 1 << 5, QUIRK_REASONING_CONTENT = 1 << 6, QUIRK_OMITTED = 1 << 7,
};

enum fault_kind {
	FAULT_NONE,
	/* of the connection */
	FAULT_RESET, FAULT_CLOSE, FAULT_STALL_HEAD, FAULT_STALL_FIRST, FAULT_STALL, FAULT_CUT,
	FAULT_EOF, FAULT_NO_END, FAULT_COMMENTS,
	/* another answer */
	FAULT_STATUS, FAULT_QUOTA, FAULT_OVERFLOW, FAULT_HTML500, FAULT_HTML200, FAULT_JSON200, FAULT_EMPTY200,
	/* odd replies */
	FAULT_ERROR, FAULT_HALF_TOOL, FAULT_REFUSAL, FAULT_PAUSE, FAULT_EMPTY, FAULT_WINDOW,
	FAULT_MAX_TOKENS, FAULT_CALLS, FAULT_DUP_IDS, FAULT_BAD_ARGS, FAULT_ARGS_CONCAT, FAULT_LONG_NAME,
	FAULT_BAD_NAME, FAULT_UNKNOWN_TOOL, FAULT_BAD_UTF8, FAULT_SURROGATE, FAULT_NUL,
	FAULT_BIG, FAULT_DEEP, FAULT_BAD_JSON, FAULT_TEXT_CALL, FAULT_NO_SUBMIT,
};
/* clang-format on */

struct fault {
	enum fault_kind kind;
	int32_t arg;   /* bytes, events, calls, a status; odd text: 1 in arguments */
	int32_t turn;  /* only in this turn; -1: in any */
	int32_t times; /* -1: always */
	/* FAULT_STATUS: what its headers say; -1: header absent */
	int32_t retry_after, retry_date, retry_ms, should_retry;
};

#define PLAN_FAULTS 6
struct plan {
	int64_t latency_ms;    /* from request to the last chunk */
	int64_t first_ms;      /* to the first chunk; -1: latency / chunks */
	unsigned chunks;       /* writes a reply is sent in */
	unsigned turns;        /* replies with tool calls before the last one */
	unsigned calls;        /* tool calls in each */
	bool thinking;         /* think even where not asked to (OpenAI) */
	bool prefix;           /* ask that each request extends the one before */
	int64_t window;        /* tokens; 0: the model's */
	int64_t output_tokens; /* to report; 0: counted */
	uint32_t quirks;
	unsigned nfaults;
	struct fault faults[PLAN_FAULTS];
	char tool[72];    /* "" the first that is not submit_result */
	char args[512];   /* JSON object; %t is the turn, from 1; "" from the schema */
	char text[512];   /* of replies */
	char submit[512]; /* arguments of submit_result; "" a summary */
	char script[400]; /* file that says every reply; "" none */
	char stop[40];    /* stop reason to claim; "" the right one */
};

void plan_default(struct plan *p);
/* Words of `text` into *p; false: `why` names the word that is wrong. */
bool plan_parse(struct plan *p, const char *text, size_t len, char *why, size_t size);
const char *fault_name(enum fault_kind kind);

/* Rules: {"rules":[{"model":"*haiku*","first":"words","play":"turns=1 …"}]}.
 * `first`: some text of the first user message. Each matching rule adds. */
struct rules;
struct rules *rules_read(const char *json, size_t len, char *why, size_t size);
void rules_free(struct rules *r); /* NULL is fine */
void rules_apply(const struct rules *r, const char *model, const char *first, size_t len,
		 struct plan *p);

#endif
