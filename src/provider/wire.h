/* The Messages form: the wire form of the Anthropic service, which the offline
 * model speaks too. Encoders for what the runtime says, a reader without a
 * tree, and the check that runs before a request leaves. Pure. */
#ifndef PROVIDER_WIRE_H
#define PROVIDER_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/dialect.h"

#define WIRE_ID_MAX 128u   /* most bytes of a call's id in the Messages form */
#define CHAT_ID_MAX 32768u /* the same in chat completions, where proxies hide signatures in it */

/* ---- encoders; see struct dialect. 0, AVA_ENOMEM, AVA_ETOOBIG; AVA_EINVAL
 * for what the service would refuse (an empty text). */
int wire_head(struct buf *out, const struct dialect_spec *spec);
int wire_tail(struct buf *out, const struct model *m, bool thinking,
	      const struct agent_infer *call);
int wire_user(struct buf *out, const char *text, size_t len);
int wire_results(struct buf *out, const struct turn *t, const char *const *notices,
		 unsigned nnotices);
/* Write the assistant line of text and calls of `t` (wire_id, name, args; {} for NULL args).
 * Nothing when there is neither. */
int wire_assistant(struct buf *out, const struct turn *t);

/* As wire_head, with `mark` a cache mark on the system prompt. */
int wire_write_head(struct buf *out, const struct dialect_spec *spec, bool mark);
/* Write the head of OpenAI's forms, up to where a system message may stand. `flat`: the form of
 * responses. */
void openai_begin(struct jw *w, struct buf *out, const struct dialect_spec *spec, bool flat);

/* Headers of a request: `own` are the dialect's. AVA_EINVAL: no header can hold the key. */
int wire_headers(struct buf *out, const char *own, const char *key_name, const char *key);
/* Is the text only spaces and line ends, which a service refuses? */
bool wire_blank(const char *s, size_t len);
bool wire_raw_blank(struct slice raw); /* as wire_blank, for a raw string */
/* May the character stand in a call's id and a tool's name? */
bool wire_id_char(unsigned char c);
/* Set c->wire_id to `id` where that has 1 to `max` bytes, all of which `may` allows, and no earlier
 * call in `t` has it; else to call_<tag>_<n>. 0 or AVA_ENOMEM. */
int wire_call_id(struct turn *t, struct turn_call *c, const char *id, size_t max,
		 bool (*may)(unsigned char ch), const char *tag);

/* ---- see struct dialect */
enum line_kind wire_line_kind(const char *line, size_t len);
/* Is a line whose first member has this key a message, in any form? */
bool wire_is_message(struct slice key);

/* ---- check; see struct dialect. */
int wire_check(const char *lines, size_t len, struct ava_error *err);
/* As wire_check, but assistant messages may stand last or side by side: a reply that the service
 * paused and continued. */
int wire_check_paused(const char *lines, size_t len, struct ava_error *err);
int wire_check_chat(const char *lines, size_t len, struct ava_error *err);
int wire_check_items(const char *lines, size_t len, struct ava_error *err);

/* ---- results and open_calls; see struct dialect. All forms. */

/* Prefix of an error result's text in chat completions and responses, which have no flag for it. */
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
	struct slice id;    /* id of a tool_use, or of the one that a tool_result answers; raw */
	struct slice name;  /* name of a tool_use; type of a WIRE_OTHER; raw */
	struct slice input; /* arguments of a tool_use; JSON, or a raw string that holds it: */
	bool input_string;
	struct slice text; /* a text, a tool_result's content, or the first text in that; raw */
	/* Thinking: JSON, a string or a list of objects that hold texts. In chat completions it
	 * stands in `whole` of the reader alone, since it may be without a text. */
	struct slice thought;
	bool is_error;
};

struct wire_reader {
	struct jscan w;
	enum wire_role role;     /* role of the current message */
	unsigned messages;       /* messages begun; the current one is messages - 1 */
	unsigned blocks;         /* blocks begun in the current message */
	bool in_body;            /* a "]" ends the messages, not the end of the text */
	bool open;               /* the reader is inside a message */
	bool ended;              /* the message's content was read to its end */
	bool item;               /* the message is an item of responses */
	bool goes_on;            /* the item continues the reply of the item before */
	bool chat;               /* a message of chat completions, or an item; then also: */
	struct wire_block whole; /* the message's text or result, or the item itself */
	struct jscan parts;      /* calls of the message, or texts of the item */
	bool held;               /* `whole` was not returned yet */
};

/* Begin to read `lines`, message texts joined by commas. */
void wire_reader_init(struct wire_reader *r, const char *lines, size_t len);
/* Read the next message. 1: *user: it is not the model's; 0: the end; AVA_EINVAL. Unread blocks of
 * the message before are skipped. */
int wire_message(struct wire_reader *r, bool *user);
int wire_block(struct wire_reader *r, struct wire_block *b); /* 1: *b; 0: no more; AVA_EINVAL */

#endif
