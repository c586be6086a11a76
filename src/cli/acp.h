/* A conversation in an editor that speaks the Agent Client Protocol (ACP, version 1): its
 * Items become messages for the editor, one a line on stdout, and the person's words go to the
 * daemon. The daemon has all state; here stands only the part that the editor was told.
 * One thread. */
#ifndef CLI_ACP_H
#define CLI_ACP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "cli/acp_send.h"
#include "cli/dialog.h"
#include "codec/jsonrpc.h"

struct ava_error;

#define ACP_SESSIONS_MAX 256
#define ACP_NOT_FOUND    (-32002)

/* From a prompt to its answer. */
struct acp_turn {
	json_t *prompt;      /* the request's id, owned; NULL: no turn is under way */
	struct buf streamed; /* Ava's text under way, as far as frames have brought it */
	size_t shown;        /* bytes of `streamed` sent to the editor */
	unsigned speaks;     /* id of Ava's message under way */
	bool cut;            /* frames of that message are missing: the Item has all of it */
	bool cancelled;      /* the turn is to end as cancelled */
	char *failed;        /* why Ava could not answer; owned */
	int64_t look_ms;     /* when the daemon is asked whether the turn is over */
	int64_t asked;       /* id of our request to the editor; 0: none */
	bool form;           /* `asked` shows a form, else options */
	char ask[ITEM_ASK];  /* the Ask that `asked` shows */
	char hash[80];       /* of the Ask as it was shown */
	char words[256];     /* beginning of the last answer's words */
};

struct acp_session {
	struct list node;
	struct acp *a;
	struct dialog d;      /* followed while a turn is under way, or notices are shown */
	json_t *title;        /* as the editor was told; owned */
	bool wait;            /* a turn lasts until its subagents have ended */
	const char *remark;   /* said with the next turn; static; NULL: none */
	char shown[ITEM_ASK]; /* the Ask that was shown last, nothing behind it; "": none */
	json_t *calls;        /* ids of tool calls that the editor has, and that have not ended */
	json_t *plan;         /* subagents: entries of the editor's plan, by run */
	const char *talking;  /* kind of the text sent last, part of `message`; static */
	unsigned message, messages; /* the last text's id; ids given so far */
	struct acp_turn turn;
};

/* ---- the life of a conversation */

/* As dialog_open; `cwd` is *copied*. `again` shows the conversation so far, else notices not seen
 * yet come with the next turn. NULL: err. */
struct acp_session *acp_open(struct acp *a, const char *id, const char *cwd, const char *model,
			     bool again, struct ava_error *err);
struct acp_session *acp_find(const struct acp *a, const char *id); /* NULL: none */
/* Ends the conversation's turn, too. */
void acp_free(struct acp_session *s);

/* Send the editor an update with these members, in json_pack's format. */
void acp_update(struct acp_session *s, const char *kind, const char *format, ...);
/* The conversation's settings that a person can choose, with today's values. */
json_t *acp_options(struct acp_session *s);

/* ---- its turns */

/* The turn that `id` (*copied*) asks for begins; it is answered when it is over. One that is
 * under way ends as cancelled. */
void acp_prompt(struct acp_session *s, const json_t *id, const char *text);
/* Take an answer of the editor; ignored unless it is to turn.asked. */
void acp_answer(struct acp_session *s, const struct rpc *m);
/* The turn under way, if there is one, ends as cancelled, when the daemon has said its last words;
 * subagents go on. */
void acp_stop(struct acp_session *s);
/* Takes in news that has come, and does due work. */
void acp_step(struct acp_session *s);
int64_t acp_next(const struct acp_session *s); /* clock_mono_ms; -1: never */

#endif
