/* The state of an agent machine (agent/agent.h), for all that look at it: limits,
 * notices, compaction, questions. Only agent.c moves it. */
#ifndef AGENT_MACHINE_H
#define AGENT_MACHINE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ava.h>
#include "agent/io.h"
#include "agent/repeat.h"
#include "agent/spec.h"
#include "agent/turn.h"

enum agent_state {
	AGENT_QUEUED,
	AGENT_CALLING,
	AGENT_SAVING,
	AGENT_TOOLS,
	AGENT_WAITING,
	AGENT_DONE,
	AGENT_NSTATES
};

/* Where a machine stands, as plain data: all that it must not forget between two
 * processes (agent/position.h). */
struct agent_position {
	struct agent_totals totals;
	int64_t used_ms;             /* of its time, before the slot it has or wants */
	int64_t measured_input;      /* of the last call that had a reply */
	int64_t new_bytes;           /* in the request since that call */
	int64_t compact_floor;       /* no room is made before the input is that large */
	int32_t iteration;           /* of the last call */
	int32_t turn_from;           /* the one before this turn of a conversation */
	uint16_t warned, shares;     /* told of: bit sets of agent_resource, agent_share */
	uint8_t odd_replies, pauses; /* empty or a call as text; TURN_STOP_PAUSE; each in a row */
	uint8_t halvings, repairs;   /* of the request; of the output */
	bool nudged, force_submit;
	bool again;              /* the last attempt of this call failed, the next one is due */
	bool wrapping;           /* the next reply is the last, whatever it says */
	bool overflowed;         /* the request was too large, and no room is made yet */
	struct repeats *repeats; /* calls made before; owned by the agent; NULL: none */
};

struct agent {
	const struct agent_io *io;
	const struct agent_spec *spec;
	void *world;       /* the world's run */
	struct turn *turn; /* owned; NULL while a model is called */
	struct agent_position at;
	int64_t started_ms;      /* when the slot was had, less at.used_ms; -1: not yet */
	int64_t deadline_ms;     /* monotonic; INT64_MAX: not yet, or its clock stands still */
	int64_t ask_until_ms;    /* of the question that is open; monotonic */
	uint8_t state, over;     /* only agent_move writes it; resource a person may raise, + 1 */
	uint8_t saves;           /* awaited */
	uint16_t asking, steers; /* the call a person is asked about, 0: none; untold messages */
	bool slot_wanted, have_slot;
	bool asked;       /* a model call is under way or its reply waits */
	bool compacting;  /* room is being made */
	bool reply_saved; /* `turn` was written by save_reply, or stands in the record */
	bool replayed;    /* `turn` is of the record: agent_resume_reply */
	bool reply_ready, cancelled, ending;
	bool ask_given, ask_yes; /* its answer is here, as the call's output; it may start */
	bool steered;            /* a text that would be the end waits for what people said */
	int reply_code;          /* < 0: the call failed for good */
	unsigned answered;       /* calls of the turn that have a result */
	enum ava_status status;  /* set when ending */
	const char *misfit;      /* of a text's output: what is wrong; in the turn's arena */
	char stop_reason[24];
	char reply_error[224], reply_class[32]; /* sentence for reply_code, and its class */
};
static_assert(sizeof(struct agent) <= 512, "ten thousand of these wait at once");

#endif
