/* The Messages form: the wire form of the Anthropic service, which the offline
 * model speaks too. Encoders for what the runtime says, a reader without a
 * tree, and the check that runs before a request leaves. Pure. */
#ifndef PROVIDER_WIRE_H
#define PROVIDER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/dialect.h"

#define WIRE_ID_MAX 128u   /* bytes of a call's id in the Messages form */
#define CHAT_ID_MAX 32768u /* in chat completions, where proxies hide signatures in it */

/* ---- encoders; see struct dialect. 0, AVA_ENOMEM, AVA_ETOOBIG; AVA_EINVAL
 * for what the service would refuse (an empty text). */
int wire_head(struct buf *out, const struct dialect_spec *spec);
int wire_tail(struct buf *out, const struct model *m, bool thinking,
	      const struct agent_infer *call);
int wire_user(struct buf *out, const char *text, size_t len);
int wire_results(struct buf *out, const struct turn *t, const char *const *notices,
		 unsigned nnotices);
/* The assistant line of text and calls of `t` (wire_id, name, args; a call
 * whose args are NULL is sent with {}). Nothing when there is neither. */
int wire_assistant(struct buf *out, const struct turn *t);

/* wire_head with a cache mark on the system prompt. */
int wire_write_head(struct buf *out, const struct dialect_spec *spec, bool mark);
/* The same of OpenAI's forms, up to where a system message may stand. `flat`: of responses. */
void openai_begin(struct jw *w, struct buf *out, const struct dialect_spec *spec, bool flat);

/* Nothing in it but spaces and line ends: a service refuses such a text. */
bool wire_blank(const char *s, size_t len);
bool wire_raw_blank(struct slice raw); /* the same of a raw string */
/* May stand in the id of a call, and in the name of a tool. */
bool wire_id_char(unsigned char c);
/* c->wire_id: `id` of at most `max` bytes where it is one that `may` be sent back and no call
 * before it in `t` has it; else call_<tag>_<n>. 0 or AVA_ENOMEM. */
int wire_call_id(struct turn *t, struct turn_call *c, const char *id, size_t max,
		 bool (*may)(unsigned char ch), const char *tag);

/* ---- see struct dialect */
enum line_kind wire_line_kind(const char *line, size_t len);
/* A line whose first member is that is a message, in whichever form. */
bool wire_is_message(struct slice key);

/* ---- check; see struct dialect. */
int wire_check(const char *lines, size_t len, struct ava_error *err);
/* The same, but an assistant message may stand last or beside another one: a
 * reply that the service paused, and went on with. */
int wire_check_paused(const char *lines, size_t len, struct ava_error *err);
int wire_check_chat(const char *lines, size_t len, struct ava_error *err);
int wire_check_items(const char *lines, size_t len, struct ava_error *err);

/* ---- results and open_calls; see struct dialect. All forms. */

/* A result of chat completions or of responses cannot say that it is an error, so its
 * text begins with this. */
#define WIRE_CHAT_ERROR "Error: "

int wire_each_result(const char *lines, size_t len,
		     int (*each)(size_t k, const char *text, size_t len, bool is_error, void *user),
		     void *user, struct ava_error *err);
int wire_open_calls(const char *lines, size_t len, struct turn *t, struct ava_error *err);

/* ---- reader: messages of all forms and their blocks in order. An item of responses is
 * a message. */

enum wire_role { WIRE_USER, WIRE_ASSISTANT, WIRE_TOOL };

enum wire_block_type { WIRE_TEXT, WIRE_TOOL_USE, WIRE_TOOL_RESULT, WIRE_OTHER };

struct wire_block {
	enum wire_block_type type;
	struct slice id;    /* of tool_use, or the one a tool_result answers; raw */
	struct slice name;  /* tool_use; raw */
	struct slice input; /* tool_use; JSON, or a raw string that holds it: */
	bool input_string;
	struct slice text; /* raw; of a tool_result: its content, or the first text in it */
	bool is_error;
};

struct wire_reader {
	struct jscan w;
	enum wire_role role;     /* of the current message */
	unsigned messages;       /* begun so far; the current one is messages - 1 */
	unsigned blocks;         /* of the current message, begun so far */
	bool in_body;            /* a "]" ends them; else the end of the text does */
	bool open;               /* inside a message */
	bool ended;              /* its content was read to its end */
	bool item;               /* it is an item of responses */
	bool goes_on;            /* with the reply that the item before is of */
	bool chat;               /* it is one of chat completions, or an item; then: */
	struct wire_block whole; /* its text or result, or what the item is */
	struct jscan parts;      /* its calls, or the texts of an item */
	bool held;               /* `whole` was not given yet */
};

/* `lines`: message texts joined by commas. */
void wire_reader_init(struct wire_reader *r, const char *lines, size_t len);
/* 1: a message, *user: it is not the model's; 0: the end; AVA_EINVAL. What was left
 * of the message before is skipped. */
int wire_message(struct wire_reader *r, bool *user);
int wire_block(struct wire_reader *r, struct wire_block *b); /* 1, 0, AVA_EINVAL */

#endif
