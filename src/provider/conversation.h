/* A conversation taken apart: its messages, and the calls in them with their
 * results, in both wire forms. Slices of the text that was read. Pure. */
#ifndef PROVIDER_CONVERSATION_H
#define PROVIDER_CONVERSATION_H

#include <stdbool.h>
#include <stddef.h>

#include "provider/jscan.h"

struct ava_error;

enum said_role { SAID_USER, SAID_ASSISTANT, SAID_TOOL };

struct said_line {
	struct slice raw; /* the whole message */
	enum said_role role;
	bool user;         /* as the service sees it: not the model's */
	struct slice text; /* the first text in it; raw string */
	struct slice last; /* the last one; raw */
	unsigned texts;
};

struct said_call {
	struct slice id, name; /* raw strings */
	struct slice args;     /* JSON; a raw string of it when `args_string` */
	bool args_string;
	size_t line;
	bool answered;
	size_t result_line;
	struct slice result; /* raw string */
	bool is_error;
};

struct conversation {
	struct said_line *lines; /* owned */
	struct said_call *calls; /* owned; in the order in which they were made */
	size_t nlines, ncalls;
	size_t cap_lines, cap_calls;
};

/* `lines`: messages joined by commas; *borrowed as long as the result*.
 * AVA_EINVAL: it is none, AVA_ENOMEM. After it conversation_fini is due. */
int conversation_read(struct conversation *c, const char *lines, size_t len, struct ava_error *err);
void conversation_fini(struct conversation *c);

#endif
