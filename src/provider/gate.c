/* A ticket is in one place: in the queue, behind the leader of its head, or
 * inside with a permit. Everything that lets others go happens in gate_next,
 * which the caller asks after each event and when the time it was told comes.
 *
 * What can go wrong with such a thing is a permit that is never given back or
 * a follower that nobody wakes: every way out (gate_end, gate_leave) ends in
 * ticket_out, and a head is forgotten only when nobody follows it. */
#include "provider/gate.h"

#include <assert.h>
#include <string.h>

#include "base/util.h"
#include "provider/retry.h"

void gate_init(struct gate *g, struct gate_circuit *c)
{
	*g = (struct gate){.circuit = c, .limit = GATE_MAX, .step = GATE_LEAST};
	list_init(&g->queue);
	for (size_t i = 0; i < GATE_HEADS; i++)
		list_init(&g->heads[i].followers);
}

void gate_fini(struct gate *g)
{
	assert(g->queued == 0 && g->follow == 0 && g->held == 0);
}

static void enqueue(struct gate *g, struct gate_ticket *t, bool front)
{
	t->place = GATE_QUEUED;
	g->queued++;
	if (front)
		list_add_front(&g->queue, &t->node);
	else
		list_add(&g->queue, &t->node);
}

/* ---- heads */

static struct gate_head *head_find(struct gate *g, uint64_t head)
{
	for (size_t i = 0; i < GATE_HEADS; i++)
		if (g->heads[i].head == head)
			return &g->heads[i];
	return NULL;
}

/* A place for a new head: a free one, else the one used longest ago. */
static struct gate_head *head_place(struct gate *g)
{
	struct gate_head *best = NULL;

	for (size_t i = 0; i < GATE_HEADS; i++) {
		struct gate_head *h = &g->heads[i];

		if (h->head == 0)
			return h;
		if (h->leader == NULL && (!best || h->warm_until_ms < best->warm_until_ms))
			best = h;
	}
	return best;
}

/* In front: they came before whoever was queued meanwhile. */
static void head_release(struct gate *g, struct gate_head *h)
{
	while (!list_empty(&h->followers)) {
		struct gate_ticket *t = LIST_ENTRY(h->followers.prev, struct gate_ticket, node);

		list_del(&t->node);
		g->follow--;
		enqueue(g, t, true);
	}
	if (h->leader)
		h->leader->leads = false;
	h->leader = NULL;
}

static void head_lead(struct gate_head *h, struct gate_ticket *t)
{
	h->leader = t;
	h->lead_until_ms = INT64_MAX;
	t->leads = true;
}

/* The leader went without an answer: the next one leads. */
static void head_orphaned(struct gate *g, struct gate_head *h)
{
	struct gate_ticket *t = LIST_FIRST(&h->followers, struct gate_ticket, node);

	h->leader->leads = false;
	h->leader = NULL;
	if (!t) {
		h->head = 0;
		return;
	}
	list_del(&t->node);
	g->follow--;
	head_lead(h, t);
	enqueue(g, t, true);
}

/* Does it have to wait for another one with its head? */
static bool head_follows(struct gate *g, struct gate_ticket *t, int64_t now_ms)
{
	struct gate_head *h = head_find(g, t->head);

	if (h && h->leader) {
		t->place = GATE_FOLLOWS;
		g->follow++;
		list_add(&h->followers, &t->node);
		return true;
	}
	if (h && now_ms < h->warm_until_ms)
		return false;
	if (!h)
		h = head_place(g);
	if (h) {
		h->head = t->head;
		h->warm_until_ms = 0;
		head_lead(h, t);
	}
	return false;
}

/* Leaders that let the others wait for too long. */
static void heads_expire(struct gate *g, int64_t now_ms, int64_t *again_ms)
{
	for (size_t i = 0; g->follow > 0 && i < GATE_HEADS; i++) {
		struct gate_head *h = &g->heads[i];

		if (!h->leader || list_empty(&h->followers))
			continue;
		if (now_ms < h->lead_until_ms) {
			*again_ms = MIN(*again_ms, h->lead_until_ms);
			continue;
		}
		head_release(g, h);
		h->head = 0;
	}
}

/* ---- asking and going */

void gate_want(struct gate *g, struct gate_ticket *t, uint64_t head, int64_t now_ms)
{
	assert(t->place == GATE_OUT);
	*t = (struct gate_ticket){.gate = g, .head = head};
	list_init(&t->node);
	if (head == 0 || !head_follows(g, t, now_ms))
		enqueue(g, t, false);
}

/* Out of every place; the caller's alone again. */
static void ticket_out(struct gate_ticket *t)
{
	struct gate *g = t->gate;
	struct gate_head *h = t->leads ? head_find(g, t->head) : NULL;

	if (t->place == GATE_QUEUED)
		g->queued--;
	else if (t->place == GATE_FOLLOWS)
		g->follow--;
	else
		g->held--;
	list_del(&t->node);
	if (t->probe)
		g->probing = false;
	if (t->circuit_probe)
		g->circuit->probing = false;
	if (h)
		head_orphaned(g, h);
	t->gate = NULL;
	t->place = GATE_OUT;
	t->leads = t->probe = t->circuit_probe = false;
}

/* May the first of the queue go? Else *again_ms. */
static bool may_go(struct gate *g, int64_t now_ms, int64_t *again_ms)
{
	if (g->held >= g->limit)
		return false;
	if (g->closed && (g->probing || now_ms < g->open_ms)) {
		if (!g->probing)
			*again_ms = MIN(*again_ms, g->open_ms);
		return false;
	}
	if (!g->closed && g->paced && now_ms < g->pace_ms) {
		*again_ms = MIN(*again_ms, g->pace_ms);
		return false;
	}
	return true;
}

static struct gate_ticket *refuse(struct gate_ticket *t)
{
	ticket_out(t);
	t->refused = true;
	return t;
}

struct gate_ticket *gate_next(struct gate *g, int64_t now_ms, uint64_t chance, int64_t *again_ms)
{
	struct gate_circuit *c = g->circuit;
	struct gate_ticket *t;
	struct gate_head *h;

	*again_ms = INT64_MAX;
	heads_expire(g, now_ms, again_ms);
	t = LIST_FIRST(&g->queue, struct gate_ticket, node);
	if (!t) {
		g->paced = false;
		return NULL;
	}
	if (c->open && (c->probing || now_ms < c->until_ms))
		return refuse(t);
	if (g->limit < GATE_MAX && !g->closed && now_ms - g->cut_ms >= GATE_FORGET_MS) {
		g->limit = GATE_MAX;
		g->paced = false;
	}
	if (!may_go(g, now_ms, again_ms))
		return NULL;
	list_del(&t->node);
	g->queued--;
	g->held++;
	t->place = GATE_IN;
	t->epoch = g->epoch;
	if (g->closed)
		t->probe = g->probing = true;
	if (c->open)
		t->circuit_probe = c->probing = true;
	if (g->paced) {
		uint64_t gap = MAX(GATE_SPREAD_MS / g->limit, 1u);

		g->pace_ms = now_ms + (int64_t)(chance % (2 * gap + 1));
	}
	h = t->leads ? head_find(g, t->head) : NULL;
	if (h)
		h->lead_until_ms = now_ms + GATE_LEAD_MS;
	return t;
}

/* ---- what came of it */

static void circuit_close(struct gate_circuit *c)
{
	*c = (struct gate_circuit){0};
}

static void circuit_refused(struct gate_circuit *c, enum reply_class cls, int64_t now_ms)
{
	c->refusals++;
	c->cls = cls;
	if (c->refusals < CIRCUIT_TRIES || (c->open && now_ms < c->until_ms))
		return;
	c->open_ms = c->open ? MIN(c->open_ms * 2, CIRCUIT_MOST_MS) : CIRCUIT_MS;
	c->open = true;
	c->until_ms = now_ms + c->open_ms;
}

/* A step more each time that as many as are allowed got through, then a step
 * of twice the size; never more than as many again. */
static void grow(struct gate *g)
{
	if (g->limit == GATE_MAX)
		return;
	if (++g->round >= g->limit) {
		g->round = 0;
		g->step = MIN(g->step * 2, g->limit);
	}
	g->credit += g->step;
	g->limit = MIN(g->limit + g->credit / g->limit, GATE_MAX);
	g->credit %= g->limit;
}

void gate_began(struct gate_ticket *t, int64_t now_ms)
{
	struct gate *g = t->gate;
	struct gate_head *h;

	if (t->place != GATE_IN || t->began)
		return;
	t->began = true;
	if (g->circuit->refusals > 0)
		circuit_close(g->circuit);
	t->circuit_probe = false;
	if (t->probe) {
		g->closed = g->probing = t->probe = false;
		g->paced = true;
	}
	if (t->epoch == g->epoch && !g->closed)
		grow(g);
	h = t->head != 0 ? head_find(g, t->head) : NULL;
	if (!h)
		return;
	h->warm_until_ms = now_ms + GATE_WARM_MS;
	if (t->leads)
		head_release(g, h);
}

static void congested(struct gate *g, const struct gate_ticket *t, int64_t wait_ms, int64_t now_ms)
{
	/* A probe only says "not yet"; one of an older epoch was cut for already. */
	if (t->epoch == g->epoch && !t->probe) {
		/* Spread over time few are inside at once, whatever the limit. */
		unsigned most = g->paced ? g->limit : MIN(g->held, g->limit);

		g->limit = MAX(most / 2, GATE_LEAST);
		g->step = MAX(g->limit / 16, GATE_LEAST);
		g->credit = g->round = 0;
		g->epoch++;
	}
	g->cut_ms = now_ms;
	wait_ms = MIN(wait_ms, (int64_t)GATE_CLOSED_MS);
	g->open_ms = g->closed ? MAX(g->open_ms, now_ms + wait_ms) : now_ms + wait_ms;
	g->closed = true;
	g->paced = false;
}

void gate_end(struct gate_ticket *t, enum reply_class cls, int64_t wait_ms, int64_t now_ms)
{
	if (t->place == GATE_OUT)
		return;
	if (t->place == GATE_IN && cls == REPLY_OK)
		gate_began(t, now_ms);
	else if (t->place == GATE_IN && retry_congested(cls))
		congested(t->gate, t, wait_ms, now_ms);
	else if (t->place == GATE_IN && (cls == REPLY_AUTH || cls == REPLY_BILLING))
		circuit_refused(t->gate->circuit, cls, now_ms);
	ticket_out(t);
}

void gate_leave(struct gate_ticket *t)
{
	if (t->place != GATE_OUT)
		ticket_out(t);
}
