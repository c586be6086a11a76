/* An event as one line for people: [14:05:30] ToolCall web_search {"query": "…"} */
#ifndef CLI_LOGTEXT_H
#define CLI_LOGTEXT_H

#include <ava.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"

/* Text of one event without its time; raw: the caller makes it safe for a
 * terminal. `event` is the parsed line. Returns buf_check(out). */
int logtext_event(struct buf *out, const json_t *event);

/* Printing a log: puts a line with the date where the day changes, unless it
 * is today's. Zero-initialised at the start. */
struct logtext {
	char date[16];       /* the last date shown or assumed */
	bool agents;         /* name the run that an event is of */
	const char *machine; /* and the machine that it comes from; NULL: this one */
	bool own;            /* show the runtime's own notes, too */
};
/* Kinds of events shown when `own` is not set, as a query names them; static. */
const char *logtext_types(void);
/* 0, or a code when memory ran out or the line is not JSON inside. */
int logtext_print(struct logtext *l, FILE *f, const char *line, size_t len, int64_t time_ms,
		  struct ava_error *err);

/* The arguments of a call, cut the same way; nothing for NULL. */
int logtext_args(struct buf *out, const json_t *args, size_t max_chars);

#endif
