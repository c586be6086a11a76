/* The editor, and what goes to it: messages (codec/jsonrpc.h), and the texts in them. A message is
 * *taken*, and may be NULL: memory ran out, and nothing is written. What gives a text gives NULL
 * then. */
#ifndef CLI_ACP_SEND_H
#define CLI_ACP_SEND_H

#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct client;

#define ACP_TEXT_MAX    ((size_t)4 << 20) /* bytes of a line of the editor's, and of a text */
#define ACP_TITLE_CHARS 120
#define ACP_ASK_CHARS   2000 /* there are editors that show of what is asked the title alone */

/* The editor. */
struct acp {
	struct client *c;                     /* for requests; NULL after a lost connection */
	const volatile sig_atomic_t *stopped; /* a signal has come */
	bool begun;                           /* it has initialised */
	bool forms, notices;  /* it can ask by a form; it shows notices between two turns */
	bool gone;            /* it reads nothing any more */
	int64_t next_id;      /* of our requests to it */
	struct list sessions; /* struct acp_session */
	size_t nsessions;
};

/* Each as json_shown has it, since it is of models and files. A title is in one line; one that is
 * cut says so. `chars` are at most ACP_ASK_CHARS. */
json_t *acp_title(const char *text, size_t chars);
json_t *acp_block(const char *text);
/* "content" of a tool call; NULL also where it has none. */
json_t *acp_content(const char *text);

void acp_send(struct acp *a, json_t *message);

/* true: one of them is ready. false: it is `until_ms` (clock_mono_ms; INT64_MAX: never), or a
 * signal has come, also just before. */
bool acp_wait(const struct acp *a, struct pollfd *fds, nfds_t n, int64_t until_ms);

#endif
