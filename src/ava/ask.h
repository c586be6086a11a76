/* An Ask waits for a person (doc/ASKS.md), whoever owns it: a quote, the question of a run, a row
 * of the memory. A struct ask is a view of its owner, made at each look and good until the loop
 * turns. */
#ifndef AVA_ASK_H
#define AVA_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "ava/sessions.h"
#include "base/hash.h"

struct core;
struct jw;
struct patch_file_text;
struct patch_offer;
struct proposal;
struct question;
struct run;
struct talk;

enum ask_kind {
	ASK_QUOTE,    /* P-19c0de */
	ASK_QUESTION, /* of a run's model: S-7f3a2b:c3.1 */
	ASK_APPROVAL, /* a run's call that needs a yes */
	ASK_LIMIT,    /* of a run, that may be raised */
	ASK_QUOTA,    /* of a parked run */
	ASK_NOTE,     /* a row of the memory: M-79ce18 */
	ASK_FORGET,
	ASK_ORDER, /* a quote of a standing order */
	ASK_APPLY, /* the patch of an ended run: S-7f3a2b:patch */
};

struct ask {
	enum ask_kind kind;
	char id[ASK_ID_LEN];
	const char *session;
	int64_t since_ms, until_ms; /* wall */
	struct proposal *proposal;  /* of a quote */
	const struct run *run;      /* of what a run asks */
	const struct question *question;
	struct talk *talk; /* of a question about the memory, which is talk->ask */
	const struct patch_offer *offer;
	const struct patch_file_text *patch; /* what was read of it; NULL: nothing yet */
};

/* The open Ask of that id; "S-7f3a2b" means what that run asks now. false: none is open. */
bool ask_find(struct core *c, const char *id, struct ask *out);
/* All that are open in a conversation (NULL: in all), quotes first and patches last, each the
 * oldest first. */
void ask_each(struct core *c, const char *session, void (*each)(const struct ask *a, void *user),
	      void *user);

/* In any state. */
void ask_of_quote(struct proposal *p, struct ask *out);
void ask_of_patch(const struct patch_offer *o, struct ask *out);

/* ---- verbs_asks.c */
/* Binds an answer to what was shown: of a quote its config's. */
void ask_hash(const struct ask *a, char out[HASH_HEX_LEN + 1]);
void ask_write(struct jw *w, const char *key, const struct ask *a);

#endif
