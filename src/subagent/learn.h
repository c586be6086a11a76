/* Facts that a server tells of its models before they are called: which there are, the window that
 * it really has, how many calls it works at, whether the template has tools. Asked once for a
 * server and model, and again after a while; no request waits longer than LEARN_MS. Answers, and
 * facts from refusals, go to provider/learned.h and its file. Loop thread. */
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
#define LEARN_SOON_MS  1000 /* the wait after no answer, or where there are several models */

/* Facts are kept below `root_fd`, which outlives the learner. NULL: no memory. */
struct learner *learner_new(struct os_loop *loop, int root_fd);
/* Let waiting requests go on and ask nothing any more. NULL is fine. */
void learner_stop(struct learner *l);
void learner_free(struct learner *l); /* NULL is fine */

struct learn_ticket { /* in the caller's memory */
	struct list node;
	void (*go)(struct learn_ticket *t); /* from the loop, once; may ask again */
};
/* false: nothing to wait for: the service is known, or was asked. */
bool learn_ask(struct learner *l, const struct model *m, struct learn_ticket *t);

/* Note facts about `m` from a refusal or a count. */
void learn_told(struct learner *l, const struct model *m, const struct learned *told,
		const char *from);
/* learned_count for a call of `m`, where the service needs no key. true: tell the person `text`. */
bool learn_counted(struct learner *l, const struct model *m, int64_t bytes, int64_t tokens,
		   bool called, char *text, size_t size);

/* The facts about the model `name` in a server's answers, in the order of the questions (learn.c);
 * NULL: no answer came. */
#define LEARN_QUESTIONS 5
struct learned learn_facts(json_t *const answers[LEARN_QUESTIONS], const char *name);

#endif
