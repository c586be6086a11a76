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
/* Its name in the code, its word, its bit. */
#define QUIRKS(X) \
	X(INDEX0, "index0", 0) X(NO_INDEX, "no-index", 1) X(NO_IDS, "no-ids", 2) \
	X(ARGS_OBJECT, "args-object", 3) X(REDACTED, "redacted", 4) X(SEALED, "sealed", 5) \
	X(REASONING_CONTENT, "reasoning-content", 6) X(OMITTED, "omitted", 7)
/* The same of faults, with what :ARG is when none is given. */
#define FAULTS(X) \
	/* of the connection */ \
	X(RESET, "reset", 0) X(CLOSE, "close", 0) X(STALL_HEAD, "stall-head", 0) \
	X(STALL_FIRST, "stall-first", 0) X(STALL, "stall", 400) X(CUT, "cut", 400) \
	X(EOF, "eof", 400) X(NO_END, "no-end", 0) X(COMMENTS, "comments", 0) \
	/* another answer */ \
	X(QUOTA, "quota", 0) X(OVERFLOW, "overflow", 0) X(HTML500, "html500", 0) \
	X(HTML200, "html200", 0) X(JSON200, "json200", 0) X(EMPTY200, "empty200", 0) \
	/* odd replies */ \
	X(ERROR, "error", 4) X(HALF_TOOL, "half-tool", 0) X(REFUSAL, "refusal", 0) \
	X(PAUSE, "pause", 0) X(EMPTY, "empty", 0) X(WINDOW, "window", 0) \
	X(MAX_TOKENS, "max-tokens", 0) X(CALLS, "calls", 200) X(DUP_IDS, "dup-ids", 0) \
	X(BAD_ARGS, "bad-args", 0) X(ARGS_CONCAT, "args-concat", 0) \
	X(LONG_NAME, "long-name", 10240) X(BAD_NAME, "bad-name", 0) \
	X(UNKNOWN_TOOL, "unknown-tool", 0) X(BAD_UTF8, "bad-utf8", 0) \
	X(SURROGATE, "surrogate", 0) X(NUL, "nul", 0) X(BIG, "big", 1 << 20) \
	X(DEEP, "deep", 200) X(BAD_JSON, "bad-json", 4) X(TEXT_CALL, "text-call", 0) \
	X(NO_SUBMIT, "no-submit", 0)
#define QUIRK_ENUM(name, word, bit) QUIRK_##name = 1 << bit,
#define FAULT_ENUM(name, word, arg) FAULT_##name,
enum quirk { QUIRKS(QUIRK_ENUM) };
enum fault_kind { FAULT_NONE, FAULT_STATUS, FAULTS(FAULT_ENUM) };
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
