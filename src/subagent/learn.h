/* Facts that a server tells of its models before they are called: which there are, the window that
 * it really has, how many calls it works at, whether the template has tools. Asked once for a
 * server and model, and again after a while; nobody waits longer than LEARN_MS. What comes of it,
 * and what refusals taught, goes to provider/learned.h and its file. Loop thread.
 */
#ifndef SUBAGENT_LEARN_H
#define SUBAGENT_LEARN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "codec/json.h"
#include "provider/learned.h"

struct learner;
struct model;
struct os_loop;

#define LEARN_MS       1000
#define LEARN_AGAIN_MS 600000
#define LEARN_SOON_MS  1000 /* where nobody answered, or several models are there */

/* Facts are kept below `root_fd`, which outlives it. NULL: no memory. */
struct learner *learner_new(struct os_loop *loop, int root_fd);
/* Requests that wait go on; nothing is asked any more. NULL is fine. */
void learner_stop(struct learner *l);
void learner_free(struct learner *l); /* NULL is fine */

struct learn_ticket { /* the caller's */
	struct list node;
	void (*go)(struct learn_ticket *t); /* from the loop, once: then it may ask again */
};
/* false: there is nothing to wait for: its service is known, or was asked. */
bool learn_ask(struct learner *l, const struct model *m, struct learn_ticket *t);

/* What a refusal of `m`, or its count, told. */
void learn_told(struct learner *l, const struct model *m, const struct learned *told,
		const char *from);
/* learned_count of a call of `m`. */
bool learn_counted(struct learner *l, const struct model *m, int64_t bytes, int64_t tokens,
		   bool called, char *text, size_t size);

/* What the answers of a server tell of the model `name`. `answers` as they are asked for (learn.c);
 * NULL: none came. */
#define LEARN_QUESTIONS 5
struct learned learn_facts(json_t *const answers[LEARN_QUESTIONS], const char *name);

#endif
