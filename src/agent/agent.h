/* The agent machine: one run from its slot to its end. Pure: all it can do is
 * ask its io (agent/io.h), all it knows is in this struct, so that the same
 * code runs live, after a crash and in the simulated world.
 *
 *   QUEUED ──► CALLING ──► SAVING ──► TOOLS ──┐──► WAITING ──► QUEUED
 *                 ▲  └────────(rides)────►┘    │
 *                 └───────────────────────────┘
 *   every state ──► SAVING (its end) ──► DONE
 *
 * A state says what the agent waits for: a slot, a reply, the disk, its
 * tools, a person. SAVING is passed only where a tool is not repeatable, or at
 * the end. WAITING has no slot and its clock stands still. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ava.h>
#include "agent/io.h"
#include "agent/spec.h"
#include "agent/notice.h"
#include "agent/prompt.h"
#include "agent/repeat.h"
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

struct agent {
	const struct agent_io *io;
	const struct agent_spec *spec;
	void *world;       /* the world's run */
	struct turn *turn; /* owned; NULL while a model is called */
	struct agent_totals totals;
	int64_t started_ms;           /* when the slot was had, less used_ms; -1: not yet */
	int64_t deadline_ms;          /* monotonic; INT64_MAX: not yet, or its clock stands still */
	int64_t used_ms;              /* of its time, before the slot it has or wants */
	int64_t ask_until_ms;         /* of the question that is open; monotonic */
	int64_t measured_input;       /* of the last call */
	int64_t new_bytes;            /* added to the request since that call */
	int64_t compact_floor;        /* no room is made before the input is that large */
	struct repeats *repeats;      /* calls made before; owned; NULL: none */
	int32_t iteration, turn_from; /* of the last call; before this turn of a conversation */
	uint16_t warned, shares;      /* told of: bit sets of agent_resource, agent_share */
	uint8_t state, over; /* only agent_move writes it; resource a person may raise, + 1 */
	uint8_t odd_replies, pauses; /* empty or a call as text; TURN_STOP_PAUSE; each in a row */
	uint8_t saves, halvings, repairs; /* awaited saves; of the request; of the output */
	uint16_t asking, steers; /* the call a person is asked about, 0: none; untold messages */
	bool slot_wanted, have_slot;
	bool again; /* the last attempt of this call failed, the next one is due */
	bool asked; /* a model call is under way or its reply waits */
	bool compacting, overflowed, wrapping; /* room is being made; the request was too large;
						* the next reply is the last, whatever it says */
	bool reply_saved; /* `turn` was written by save_reply, or stands in the record */
	bool replayed;    /* `turn` is of the record: agent_resume_reply */
	bool reply_ready, cancelled, ending, nudged, force_submit;
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

/* `request_bytes` = head and first lines of the first request. */
void agent_init(struct agent *a, const struct agent_io *io, const struct agent_spec *spec,
		void *world, int64_t request_bytes);
void agent_fini(struct agent *a);
/* Go on as far as possible. Called by the world after it stored something. */
void agent_run(struct agent *a);

/* What arrives. Each only stores; the world calls agent_run afterwards. */
void agent_on_slot(struct agent *a);
/* rv 0: `t` *taken*. rv < 0: t is NULL, `class` and `sentence` *copied*. */
void agent_on_reply(struct agent *a, int rv, struct turn *t, const char *error_class,
		    const char *sentence);
/* The attempt failed; again, limits allowing: -> io->infer, same iteration. */
void agent_on_again(struct agent *a);
/* The same, it is too large: again with less, or the end by `sentence` (*copied*). */
void agent_on_overflow(struct agent *a, const char *sentence);
void agent_on_compacted(struct agent *a, int rv, const struct agent_compacted *d);
void agent_on_saved(struct agent *a);
void agent_on_tool(struct agent *a, unsigned call); /* a->turn->calls[call] is answered */
/* The question that is open (a->asking) is answered; `text` *copied*. `yes`: of
 * an approval, the call may start. AVA_ENOMEM: it is still open. */
int agent_on_answer(struct agent *a, const char *text, bool yes);
/* A person said something, it is durable: the next save_results tells it. */
void agent_on_steer(struct agent *a);
void agent_cancel(struct agent *a); /* final; nothing starts after it */
/* DONE: another turn of the same conversation, with the spec's limits for itself:
 * totals begin anew (whoever wants their sum adds them up before), iterations go
 * on being numbered. */
void agent_next(struct agent *a, int64_t new_bytes);
/* Before a first agent_run: the last reply's calls come first. `t` *taken*. */
void agent_resume(struct agent *a, struct turn *t);
/* Instead of a first agent_run: a stop of the runtime cut the run off, only its
 * end is left to write. `t`: the calls that were open, *taken*; NULL: none. */
void agent_interrupted(struct agent *a, struct turn *t, const char *sentence);
/* Count what an attempt without a reply is charged, before agent_on_again or the
 * failure; the cost from the price is written back. */
void agent_charge(struct agent *a, struct usage *u);

/* It ends by submit_result; else by an answer in words. */
bool agent_can_submit(const struct agent *a);
const char *agent_state_name(enum agent_state s);

#endif
