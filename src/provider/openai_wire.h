/* The lines of a conversation in the form of chat completions (doc/MESSAGES.md):
 * encoders for what the runtime says, and the readers that struct dialect asks
 * for. A tool message cannot say that it is an error, so its text does: it
 * begins with OPENAI_ERROR. Pure. */
#ifndef PROVIDER_OPENAI_WIRE_H
#define PROVIDER_OPENAI_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "provider/jscan.h"

struct ava_error;
struct buf;
struct turn;

#define OPENAI_ERROR  "Error: "
#define OPENAI_ID_MAX 128u

int openai_user(struct buf *out, const char *text, size_t len);
int openai_results(struct buf *out, const struct turn *t, const char *const *notices,
		   unsigned nnotices);

int openai_check(const char *lines, size_t len, struct ava_error *err);
int openai_each_result(const char *lines, size_t len,
		       int (*each)(size_t k, const char *text, size_t len, bool is_error,
				   void *user),
		       void *user, struct ava_error *err);
int openai_open_calls(const char *lines, size_t len, struct turn *t, struct ava_error *err);

/* A line that is a tool message: the id it answers and its text, raw. */
bool openai_tool_line(const char *line, size_t len, struct slice *id, struct slice *text);

#endif
