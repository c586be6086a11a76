/* Where a run stands, read from its record: its log says what was asked, answered
 * and used, its messages what the model was told (doc/DESIGN.md, "How a run is
 * carried on"). Then it goes on in this process as if nothing had been. */
#ifndef SUBAGENT_CARRY_H
#define SUBAGENT_CARRY_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/past.h"
#include "base/buf.h"
#include "event/event.h"
#include "provider/messages.h"

struct draft;
struct run;
struct ava_error;

struct carried_call { /* of the last reply */
	char id[16];
	bool answered, success, cut;
	bool ran; /* its tool gave the answer; `tool` and `print` say more */
	const struct tool *tool;
	struct repeat_print print;
	/* A person was asked about it: what became of that, with the text in
	 * `output`, while it has no result of its own. */
	bool decided, approval, has_text;
	enum agent_asked how;
	struct buf output; /* as the event shows it; cut: its beginning */
	char error_class[32];
};

struct carry {
	struct run *run;
	struct agent_past past;
	struct carried_call calls[TURN_MAX_CALLS];
	unsigned ncalls;
	bool started;       /* it has called a model */
	bool replied;       /* the last call has a reply, from which nothing followed yet */
	bool clocked;       /* its log says what it used of its time */
	bool told;          /* why the model is asked again, since the last reply */
	bool worded;        /* the last reply has a text */
	bool edited;        /* room was made in the conversation since the last reply */
	bool counted;       /* the last reply's calls are in past.repeats */
	bool older;         /* written by a version that did not say all that a run remembers */
	char overflow[224]; /* past.overflow */
	struct agent_limits limits; /* as the log said last */
	enum turn_stop stop;
	int64_t held_ms, held_from_ms;       /* until the next attempt; since when, wall */
	int64_t failing_from_ms, failing_ms; /* used time at the first failure and now; -1: none */
	int64_t last_ms;                     /* of the newest event, wall */
	unsigned foreign;                    /* lines that are no events of this run */
};

/* ---- carry_person.c: what passed between the run and people */
int carry_waiting(struct carry *c, const json_t *content);
int carry_steering(struct carry *c, const json_t *content);
/* What a person decided becomes the call's result, or leave to start. AVA_ENOMEM. */
int carry_decided(const struct carried_call *k, struct turn *t, struct turn_call *to);

/* ---- carry_memory.c: what the machine remembers of earlier turns */
void carry_print(struct carry *c, struct carried_call *k, const json_t *content);
/* The results of the last reply are given. AVA_ENOMEM. */
int carry_turn(struct carry *c);
void carry_removed(struct carry *c, const json_t *content); /* of a ContextEdit */
int carry_room(struct carry *c, const json_t *value);
int carry_last(struct carry *c, const json_t *value);
void carry_overflow(struct carry *c, const char *sentence);
void carry_custom(struct carry *c, const json_t *content);
void carry_raised(struct carry *c, const json_t *content); /* of a Limit */
void carry_shared(struct carry *c, const json_t *content);
void carry_forget(struct carry *c);

struct carry *carry_new(struct run *r);
void carry_free(struct carry *c);

/* Its log. AVA_ECORRUPT: it was changed. */
int carry_log(struct carry *c, struct ava_error *err);
/* After the log. `file`: messages.jsonl; `body`, `info`: what messages_request made
 * of it. The machine stands where the record ends, and what a stop cut off is closed
 * in the record. AVA_ECORRUPT: log and messages do not fit together. */
int carry_machine(struct carry *c, const char *file, size_t len, const struct buf *body,
		  const struct messages_info *info, struct ava_error *err);

/* In the first draft after it: that it goes on, and the call that was cut. */
void carry_note(struct run *r, struct draft *d);

#endif
