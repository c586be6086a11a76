/* The editor, and what goes to it: messages (codec/jsonrpc.h), and the texts in them. A message is
 * *taken*, and may be NULL: memory ran out, and nothing is written. Functions that return a text
 * return NULL then. */
#ifndef CLI_ACP_SEND_H
#define CLI_ACP_SEND_H

#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define ACP_TEXT_MAX    ((size_t)4 << 20) /* bytes of a line of the editor's, and of a text */
#define ACP_TITLE_CHARS 120
#define ACP_ASK_CHARS   2000 /* some editors show only a question's title */

/* The editor. */
struct acp {
	const volatile sig_atomic_t *stopped; /* a signal has come */
	bool begun;                           /* `initialize` was answered */
	bool forms, notices;  /* the editor has forms; shows notices between two turns */
	bool gone;            /* the editor reads nothing any more */
	int64_t next_id;      /* for our requests to the editor */
	struct list sessions; /* struct acp_session */
	size_t nsessions;
};

/* Texts of models and files, each made harmless by json_shown. A title is one line; a cut title
 * says so. `chars` are at most ACP_ASK_CHARS. */
json_t *acp_title(const char *text, size_t chars);
json_t *acp_block(const char *text);
/* "content" of a tool call; NULL: no text, or no memory. */
json_t *acp_content(const char *text);

void acp_send(struct acp *a, json_t *message);

/* true: a descriptor is ready. false: `until_ms` (clock_mono_ms; INT64_MAX: never) has come, or a
 * signal, also just before. */
bool acp_wait(const struct acp *a, struct pollfd *fds, nfds_t n, int64_t until_ms);

#endif
