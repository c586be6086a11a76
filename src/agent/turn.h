/* A turn: a model's answer and the results of its calls. Lives from the reply to the next
 * request, in one arena; no run holds a turn while it waits for a model. */
#ifndef AGENT_TURN_H
#define AGENT_TURN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct tool;

/* Tokens of a call, counted as billed; `input` is all input, cache read and write too. */
struct usage {
	int64_t input, output, cache_read, cache_write, reasoning;
	int64_t cost_microusd; /* the provider's own figure; -1: none given */
	bool estimated;        /* counted by us (bytes / 4), not measured */
	int64_t window;        /* tokens to which the service silently cut the request; 0: uncut */
	int64_t told; /* input as the service counted it, even if not believed; 0: not given */
};

enum turn_stop {
	TURN_STOP_END,    /* the model was done */
	TURN_STOP_TOOLS,  /* calls follow; a hint only: calls decide */
	TURN_STOP_LENGTH, /* max output reached */
	TURN_STOP_REFUSAL,
	TURN_STOP_OTHER,
	TURN_STOP_REPEATED, /* we stopped the reply: it repeated itself */
	TURN_STOP_PAUSE,    /* the service paused its own work: ask again with the reply as it is */
};

struct turn_call {
	char id[16];         /* our id, "c3.1": iteration 3, call 1; set by the machine */
	const char *wire_id; /* the provider's id, as in the wire line */
	const char *name;    /* valid UTF-8, at most 128 bytes */
	const char *args;    /* JSON object text, at most 256 KB; NULL: not an object */
	size_t args_len;
	const char *args_error;  /* when args is NULL: a sentence for the model */
	const struct tool *tool; /* set by the machine; NULL: unknown or not allowed */

	/* The answer: set by the world for a tool that ran, by the machine
	 * for one that did not. In the turn's arena. */
	bool answered, success;
	bool started;            /* the call was given to tool_start */
	bool ran;                /* the call was answered by its tool, in this process or before */
	bool approved;           /* a person said yes to the call (agent_spec.ask_before) */
	bool recorded;           /* the call's ToolResult event was written; set by the world */
	bool unstarted;          /* the reply ended the run: certainly not given to its tool */
	const char *error_class; /* static: "", "unknown_tool", "bad_arguments",
				  * "not_found", "denied", "too_big", "io",
				  * "timeout", "cancelled", "interrupted", "limit",
				  * "steered", "bad_output", "check" */
	const char *output;      /* valid UTF-8, redacted, capped for the model */
	size_t output_len;
	int64_t full_bytes;           /* bytes of the output before the cap */
	const char *artifact;         /* path of the full output; NULL: not kept */
	int64_t started_ms, ended_ms; /* monotonic */
};

struct turn {
	struct arena mem;
	const char *text, *thinking; /* "" when none; NUL-terminated */
	size_t text_len, thinking_len;
	struct turn_call *calls;
	unsigned ncalls; /* at most TURN_MAX_CALLS */
	struct usage usage;
	enum turn_stop stop;
	const char *request_id; /* the provider's id of the request; "": none */
	const char *served;     /* model that answered, by the provider's account; "" if unknown */
	bool trimmed;           /* the turn is a copy by ask_trim */
	bool forced;            /* the request asked for a result alone, after the run had looked */
	bool written;           /* the calls were written in the reply's text */
	bool odd;               /* the model is asked again: the reply's text is for nobody */
	/* The assistant message as it goes into messages.jsonl: one or several
	 * JSON texts without newlines inside, joined by \n. Provider blocks are
	 * byte-identical. Empty for an empty reply, which is never stored. */
	const char *wire;
	size_t wire_len;
};

#define TURN_MAX_CALLS 256
#define TURN_MAX_BYTES (32u << 20)

/* Model-written values stand inside events and result.json, which are read to a depth of 64. */
#define REPLY_DEPTH_MAX 56
bool reply_shallow(const json_t *v, unsigned depth); /* `v` is not nested deeper than `depth` */

struct turn *turn_new(void);    /* NULL: out of memory */
void turn_free(struct turn *t); /* NULL is fine */

#endif
