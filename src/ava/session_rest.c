/* Conversations that have nothing to do leave memory, but for those used last:
 * what is said in one of the others brings it back from its files, as after a
 * stop. A conversation stays while it has a turn, an input, a subagent, or
 * something on its way to the disk. Nothing here can fail. */
#include <stdlib.h>
#include <string.h>

#include "ava/talk.h"

#define RESTING_MAX 64

static bool at_rest(const struct talk *t)
{
	return !t->busy && !t->answering && !t->pump.queued && list_empty(&t->inputs) &&
	       list_empty(&t->saying) && list_empty(&t->watches) && t->run.busy == 0 &&
	       !t->run.wake.queued && !t->run.end.abandoned && outbox_empty(&t->run.rec.outbox);
}

static void leave(struct talk *t)
{
	struct session *s = t->session;
	char *model = strdup(t->run.spec->model->id);

	/* It is shown, and a conversation without a word yet begins with it. */
	if (model) {
		free(s->model);
		s->model = model;
	}
	s->cost_microusd += t->cost_microusd + t->run.agent.totals.cost_microusd;
	s->tokens += t->tokens + t->run.agent.totals.input + t->run.agent.totals.output;
	talk_free(t);
}

static void rest(struct os_task *task)
{
	struct core *c = CONTAINER_OF(task, struct core, rest);
	unsigned n = 0;

	/* The last used stand at the end. */
	LIST_EACH (&c->talks, node, tmp)
		n += at_rest(LIST_ENTRY(node, struct talk, node));
	LIST_EACH (&c->talks, node, tmp) {
		struct talk *t = LIST_ENTRY(node, struct talk, node);

		if (n <= c->resting_max)
			return;
		if (at_rest(t)) {
			leave(t);
			n--;
		}
	}
}

void session_rest_init(struct core *c)
{
	c->resting_max = RESTING_MAX;
	os_task_init(&c->rest, rest);
}

void session_rest_fini(struct core *c)
{
	os_defer_cancel(c->loop, &c->rest);
}

void session_rest(struct core *c)
{
	os_defer(c->loop, &c->rest);
}

void session_used(struct session *s)
{
	struct talk *t = s->talk;

	list_del(&t->node);
	list_add(&s->core->talks, &t->node);
	session_rest(s->core);
}
