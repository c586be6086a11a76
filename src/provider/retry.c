/* When a call may go, and what becomes of one that failed.
 *
 * The policy makes one decision a failure, from its class, the headers and how long the call
 * has been failing. The first wait is at least half a second and at most one and a half;
 * each later one is drawn between the base and three times the last, up to a minute, so that
 * runs that failed together come back apart. What the service asks for is kept and never
 * shortened; a little is added for the same reason.
 *
 * The gate stands at the end of the room. Headers are other people's text: what cannot be
 * read as a time counts as absent. Nothing here can fail. */
#include "provider/retry.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/util.h"
#include "base/words.h"
#include "provider/provider_url.h"
#include "provider/told.h"

#define TOLD_JITTER_MS 1000 /* most that is added to a wait the service asks for */
#define TRYING_MS      3000 /* shortest wait whose length is told */
#define FALLBACK_TRIES 3
#define FALLBACK_PART  60 /* share of the horizon: a sixtieth */

const struct retry_policy retry_default = {
	.base_ms = 500,
	.cap_ms = 60000,
	.told_max_ms = 600000,
	.park_ms = 120000,
	.horizon_ms = 1800000,
	.broken_max = 5,
};

/* For a conversation: the person sees the failure and can ask again. */
const struct retry_policy retry_talk = {
	.base_ms = 500,
	.cap_ms = 10000,
	.told_max_ms = 60000,
	.park_ms = 60000,
	.horizon_ms = 60000,
	.broken_max = 5,
};

/* ---- the wait that a service asks for */

int64_t retry_asked(const struct retry_failure *f, int64_t wall_ms)
{
	int64_t ms = f->after_ms != NULL ? told_wait_in(f->after_ms, 1, wall_ms) : -1;
	int64_t now = f->date != NULL ? told_date(f->date) : -1;

	if (ms < 0 && f->after != NULL) { /* a date is by the service's clock: ours may be wrong */
		int64_t at = told_date(f->after);

		ms = at >= 0 ? MAX(at - (now >= 0 ? now : wall_ms), 0)
			     : told_wait(f->after, wall_ms);
	}
	return ms < 0 && f->reset_ms > 0 ? f->reset_ms : ms;
}

/* ---- the decision */

/* Failures of an overloaded service, for which the gate slows down. */
static bool retry_congested(enum reply_class cls)
{
	return cls == REPLY_RATE_LIMIT || cls == REPLY_OVERLOADED;
}

static bool is_broken(enum reply_class cls)
{
	return cls == REPLY_TRUNCATED || cls == REPLY_PROTOCOL || cls == REPLY_WALL;
}

/* Another model may answer where this one fails: the sentence names models.fallback. */
static bool retry_elsewhere(const struct retry_failure *f)
{
	return retry_congested(f->cls) || f->cls == REPLY_SERVER || f->cls == REPLY_NETWORK ||
	       f->cls == REPLY_TIMEOUT || f->cls == REPLY_TRUNCATED;
}

static bool worth_it(const struct retry_failure *f)
{
	if (f->cls == REPLY_OTHER)
		return f->status == 408 || f->status == 409 || f->status == 429 || f->status >= 500;
	return retry_elsewhere(f) || is_broken(f->cls);
}

static int64_t own_wait(struct retry *r, const struct retry_policy *p, uint64_t chance)
{
	int64_t top = MAX(r->last_ms, p->base_ms) * 3;

	r->last_ms = MIN(p->cap_ms, p->base_ms + (int64_t)(chance % (uint64_t)(top - p->base_ms)));
	return r->last_ms;
}

/* Does the run's time end before the wait does? */
static bool retry_late(const struct retry_when *w, int64_t wait_ms)
{
	return w->deadline_ms != INT64_MAX && w->mono_ms + wait_ms >= w->deadline_ms;
}

void retry_decide(struct retry *r, const struct retry_policy *p, const struct retry_failure *f,
		  const struct retry_when *w, struct retry_plan *out)
{
	int64_t asked = retry_asked(f, w->wall_ms);
	bool told_yes = f->should_retry != NULL && strcasecmp(f->should_retry, "true") == 0;

	*out = (struct retry_plan){.verdict = RETRY_AGAIN, .told = asked > 0};
	if (r->failures == 0)
		r->since_ms = w->mono_ms;
	r->failures += r->failures < UINT16_MAX;
	r->broken += is_broken(f->cls) && r->broken < UINT16_MAX;
	if (out->told)
		out->wait_ms = asked +
			       (int64_t)(w->chance % (uint64_t)MIN(asked / 10 + 1, TOLD_JITTER_MS));
	out->parks = out->told && retry_congested(f->cls) && !f->never &&
		     (out->wait_ms > p->park_ms || retry_late(w, out->wait_ms));
	if (f->should_retry != NULL && strcasecmp(f->should_retry, "false") == 0)
		out->verdict = RETRY_TOLD_NOT;
	else if (f->never || (!told_yes && !worth_it(f)))
		out->verdict = RETRY_FINAL;
	else if (r->broken >= p->broken_max && is_broken(f->cls))
		out->verdict = RETRY_BROKEN;
	if (out->verdict != RETRY_AGAIN)
		return;
	if (!out->told)
		out->wait_ms = own_wait(r, p, w->chance);
	if (asked > p->told_max_ms)
		out->verdict = RETRY_TOO_LONG;
	else if (w->mono_ms + out->wait_ms - r->since_ms > p->horizon_ms)
		out->verdict = RETRY_HORIZON;
	else if (retry_late(w, out->wait_ms))
		out->verdict = RETRY_LATE;
}

int64_t retry_fallback_ms(const struct retry_policy *p)
{
	return p->horizon_ms / FALLBACK_PART;
}

bool retry_fallback_due(const struct retry *r, const struct retry_policy *p,
			const struct retry_failure *f, const struct retry_plan *plan,
			int64_t now_ms)
{
	if (!retry_elsewhere(f))
		return false;
	if (plan->verdict != RETRY_AGAIN)
		return true;
	if (plan->told && plan->wait_ms >= retry_fallback_ms(p))
		return true;
	return r->failures >= FALLBACK_TRIES &&
	       now_ms + plan->wait_ms - r->since_ms >= retry_fallback_ms(p);
}

/* ---- words */

static const char *retry_once_more(const struct retry_words *w)
{
	return w->talk ? "say it again" : "run again";
}

static void after_tries(const struct retry *r, const struct retry_plan *plan,
			const struct retry_words *w, int64_t now_ms, char *out, size_t size)
{
	switch (plan->verdict) {
	case RETRY_TOO_LONG:
		snprintf(out, size, "until %s: %s then, or", w->back, retry_once_more(w));
		return;
	case RETRY_LATE:
		snprintf(out, size,
			 "and the %s's time ends before the next attempt, in %" PRId64 " s: %s, or",
			 w->talk ? "turn" : "run", (plan->wait_ms + 999) / 1000,
			 w->talk ? "raise ava.timeout" : "allow more time");
		return;
	case RETRY_TOLD_NOT:
		snprintf(out, size, "and says not to try again: %s later, or", retry_once_more(w));
		return;
	case RETRY_AGAIN:
	case RETRY_FINAL:
	case RETRY_HORIZON:
	case RETRY_BROKEN:
		break;
	}
	snprintf(out, size, "after %u attempt%s in %" PRId64 " s: %s later, or", r->failures,
		 WORDS_S(r->failures), (now_ms - r->since_ms) / 1000, retry_once_more(w));
}

/* $P the service, $S its status, $M the model, $K the variable of the key, $U the address,
 * $V its variable, $C the window, $N what came, $T what was tried, $A that nobody answers, $R how
 * to ask again. The part before " $T" or ":" says what is wrong. */
static const char *const sentences[REPLY_NCLASSES] = {
	[REPLY_OK] = "$P fails $T set models.fallback",
	[REPLY_RATE_LIMIT] = "$P limits the rate of requests $T set models.fallback",
	[REPLY_OVERLOADED] = "$P is overloaded $T set models.fallback",
	[REPLY_SERVER] = "$P fails $T set models.fallback",
	[REPLY_NETWORK] = "$P cannot be reached $T look at this machine's network",
	[REPLY_TIMEOUT] = "$P did not answer in time $T choose another model",
	[REPLY_TRUNCATED] = "$P broke off its replies $T set models.fallback",
	[REPLY_PROTOCOL] = "what answers at $U does not speak as $P does: check the address",
	[REPLY_AUTH] = "$P refused the key ($S): set a valid $K, then $R",
	[REPLY_BILLING] = "$P says that the account cannot pay ($S): add credit, then $R",
	[REPLY_BAD_REQUEST] = "$P refused the request ($S)",
	[REPLY_OVERFLOW] = ("the conversation of $N tokens does not fit into the context of $M "
			    "($C tokens): give it less, or use a model with more"),
	[REPLY_TOO_LARGE] = "the request is too large for $P ($S): give the run less",
	[REPLY_NOT_FOUND] = "$P does not know $M ($S): choose another model",
	[REPLY_ADDRESS] = "$P is not at $U ($S): set $V to its address",
	[REPLY_WALL] = ("a page stands in front of $P ($S): open $U in a browser, or ask who runs "
			"this network"),
	[REPLY_REFUSED] = "$P does not allow this request ($S): change the task",
	[REPLY_OTHER] = "$P fails $T set models.fallback",
};

/* The sentence for a service on this machine or network that does not listen; false: no such
 * case. */
static bool retry_nobody(enum reply_class cls, const struct retry_words *w, char *out, size_t size)
{
	if (cls != REPLY_NETWORK || strncmp(w->error->text, "cannot connect", 14) != 0 ||
	    (strcmp(w->provider, "local") != 0 && !provider_url_is_near(w->base_url)))
		return false;
	snprintf(out, size, "nothing answers at %s: is your model server running?", w->base_url);
	return true;
}

void retry_wait(enum reply_class cls, const struct retry_words *w, int64_t wait_ms, char *out,
		size_t size)
{
	char why[PROVIDER_URL_MAX + 80] = "";

	/* The text of any other failure is the service's: not shown here. */
	if (!retry_nobody(cls, w, why, sizeof(why)) &&
	    (cls == REPLY_NETWORK || cls == REPLY_TIMEOUT))
		snprintf(why, sizeof(why), "%s", w->error->text);
	snprintf(out, size,
		 WORDS_RETRY((wait_ms + 999) / 1000, w->provider, reply_class_word(cls), why));
}

/* Append `upto` bytes of a sentence, filled in. */
static void retry_fill(struct buf *all, const char *s, size_t upto, const struct retry_words *w,
		       const char *tries, const char *nobody)
{
	char status[16], context[24], came[24];
	const char *const words[] = {w->provider, status,      w->model,          w->key_name,
				     w->base_url, w->url_name, context,           came,
				     tries,       nobody,      retry_once_more(w)};
	static const char letters[] = "PSMKUVCNTAR";

	snprintf(status, sizeof(status), "%d", w->status);
	snprintf(context, sizeof(context), "%" PRId64,
		 w->error->window > 0 ? w->error->window : w->context);
	snprintf(came, sizeof(came), "%" PRId64,
		 w->error->prompt > 0 ? w->error->prompt : w->prompt);
	for (const char *end = s + upto; s < end; s++) {
		if (*s == '$')
			buf_adds(all, words[strchr(letters, *++s) - letters]);
		else
			buf_addc(all, *s);
	}
}

void retry_trying(enum reply_class cls, const struct retry_words *w, int64_t wait_ms, char *out,
		  size_t size)
{
	char nobody[PROVIDER_URL_MAX + 80];
	bool near = retry_nobody(cls, w, nobody, sizeof(nobody));
	const char *s = near ? nobody : sentences[cls], *tries = strstr(s, " $T");
	struct buf all;

	buf_init(&all, 4096);
	retry_fill(&all, s,
		   near            ? (size_t)(strrchr(s, ':') - s)
		   : tries != NULL ? (size_t)(tries - s)
				   : strcspn(s, ":(") - (strchr(s, '(') != NULL),
		   w, "", "");
	if (wait_ms < TRYING_MS)
		buf_adds(&all, WORDS_TRYING);
	else
		buf_addf(&all, WORDS_TRYING_IN((wait_ms + 999) / 1000));
	format_cut(out, size, all.data != NULL ? all.data : "");
	buf_fini(&all);
}

void retry_sentence(const struct retry *r, const struct retry_plan *plan, enum reply_class cls,
		    const struct retry_words *w, int64_t now_ms, char *out, size_t size)
{
	const char *s = sentences[cls];
	char tries[120], nobody[PROVIDER_URL_MAX + 80] = "";
	struct buf all;

	if (cls == REPLY_OTHER && w->status == 0)
		s = "$P cannot be called"; /* nothing was sent: a refused certificate, say */
	else if (retry_nobody(cls, w, nobody, sizeof(nobody)))
		s = "$A";
	else if (cls == REPLY_AUTH && w->talk)
		s = "$P refused the key ($S): set a valid $K, then `ava restart`, and $R";
	else if (w->error->never)
		s = ("a request of $N tokens is more than $P takes of this account ($C): give the "
		     "run less, or use another model");
	after_tries(r, plan, w, now_ms, tries, sizeof(tries));
	buf_init(&all, 4096);
	retry_fill(&all, s, strlen(s), w, tries, nobody);
	if (w->error->text[0] != '\0')
		buf_addf(&all, "%s%s", nobody[0] != '\0' ? " " : ": ", w->error->text);
	format_cut(out, size, all.data != NULL ? all.data : "");
	buf_fini(&all);
}

/* ---- the gate. A ticket is in one place: in the queue, behind the leader of its head, or
 * inside with a permit. Everything that lets others go happens in gate_next,
 * which the caller asks after each event and when the time it was told comes.
 *
 * What can go wrong with such a thing is a permit that is never given back or
 * a follower that nobody wakes: every way out (gate_end, gate_leave) ends in
 * ticket_out, and a head is forgotten only when nobody follows it. */

void gate_init(struct call_gate *g, struct gate_circuit *c)
{
	*g = (struct call_gate){
		.circuit = c,
		.most = GATE_MAX,
		.limit = GATE_MAX,
		.step = GATE_LEAST,
		.patience = GATE_CREDIT,
	};
	list_init(&g->queue);
	for (size_t i = 0; i < GATE_HEADS; i++)
		list_init(&g->heads[i].followers);
}

void gate_fini(struct call_gate *g)
{
	assert(g->queued == 0 && g->follow == 0 && g->held == 0);
}

static void enqueue(struct call_gate *g, struct gate_ticket *t, bool front)
{
	t->place = GATE_QUEUED;
	g->queued++;
	if (front)
		list_add_front(&g->queue, &t->node);
	else
		list_add(&g->queue, &t->node);
}

/* ---- heads */

static struct gate_head *head_find(struct call_gate *g, uint64_t head)
{
	for (size_t i = 0; i < GATE_HEADS; i++)
		if (g->heads[i].head == head)
			return &g->heads[i];
	return NULL;
}

/* A place for a new head: a free one, else the one used longest ago. */
static struct gate_head *head_place(struct call_gate *g)
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

/* Followers go to the front of the queue: they came before the queued ones. */
static void head_release(struct call_gate *g, struct gate_head *h)
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

/* The leader left without an answer: the first follower leads. */
static void head_orphaned(struct call_gate *g, struct gate_head *h)
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

/* Must the ticket wait for another call with the same head? */
static bool head_follows(struct call_gate *g, struct gate_ticket *t, int64_t now_ms)
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

/* Release the followers of leaders that take too long. */
static void heads_expire(struct call_gate *g, int64_t now_ms, int64_t *again_ms)
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

void gate_want(struct call_gate *g, struct gate_ticket *t, uint64_t head, int64_t now_ms)
{
	assert(t->place == GATE_OUT);
	*t = (struct gate_ticket){.gate = g, .head = head};
	list_init(&t->node);
	if (head == 0 || !head_follows(g, t, now_ms))
		enqueue(g, t, false);
}

/* Take a ticket out of queue, head and permit; only its caller has it then. */
static void ticket_out(struct gate_ticket *t)
{
	struct call_gate *g = t->gate;
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

/* May the first of the queue go? Else *again_ms is when to ask again. */
static bool retry_may_go(struct call_gate *g, int64_t now_ms, int64_t *again_ms)
{
	if (g->held >= MIN(g->limit, g->most))
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

static struct gate_ticket *retry_refuse(struct gate_ticket *t)
{
	ticket_out(t);
	t->refused = true;
	return t;
}

struct gate_ticket *gate_send_away(struct call_gate *g)
{
	struct gate_ticket *t = LIST_FIRST(&g->queue, struct gate_ticket, node);

	for (size_t i = 0; t == NULL && g->follow > 0 && i < GATE_HEADS; i++)
		t = LIST_FIRST(&g->heads[i].followers, struct gate_ticket, node);
	return t != NULL ? retry_refuse(t) : NULL;
}

struct gate_ticket *gate_next(struct call_gate *g, int64_t now_ms, uint64_t chance,
			      int64_t *again_ms)
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
		return retry_refuse(t);
	if (g->limit < GATE_MAX && !g->closed && now_ms - g->cut_ms >= GATE_FORGET_MS) {
		g->limit = GATE_MAX;
		g->patience = GATE_CREDIT;
		g->paced = false;
	}
	if (!retry_may_go(g, now_ms, again_ms))
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

/* ---- outcomes */

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

/* Raise the limit by a step each round (`limit` good replies); the step doubles a round, at most to
 * the limit. */
static void retry_grow(struct call_gate *g)
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
	struct call_gate *g = t->gate;
	struct gate_head *h;

	if (t->place != GATE_IN || t->began)
		return;
	t->began = true;
	if (g->circuit->refusals > 0)
		*g->circuit = (struct gate_circuit){0};
	t->circuit_probe = false;
	g->in_a_row = 0;
	if (t->probe) {
		g->closed = g->probing = t->probe = false;
		g->paced = true;
	}
	if (t->epoch == g->epoch && !g->closed) {
		g->patience = MIN(g->patience + 1, GATE_CREDIT);
		retry_grow(g);
	}
	h = t->head != 0 ? head_find(g, t->head) : NULL;
	if (!h)
		return;
	h->warm_until_ms = now_ms + GATE_WARM_MS;
	if (t->leads)
		head_release(g, h);
}

/* Is a refusal a single one, as a service at ease gives now and then? */
static bool retry_stands_alone(struct call_gate *g, const struct gate_ticket *t)
{
	unsigned cost = GATE_REFUSAL * ++g->in_a_row;
	bool alone = !g->closed && t->epoch == g->epoch && cost <= g->patience;

	g->patience = alone ? g->patience - cost : 0;
	return alone;
}

static void gate_cut(struct call_gate *g, unsigned limit)
{
	g->limit = limit;
	g->step = MAX(limit / 16, GATE_LEAST);
	g->credit = g->round = 0;
	g->epoch++;
}

static void congested(struct call_gate *g, const struct gate_ticket *t, int64_t wait_ms,
		      int64_t now_ms)
{
	/* A failed probe only says "not yet", and a call of an older epoch failed by an overload
	 * that the limit was cut for already. */
	if (t->epoch == g->epoch && !t->probe) {
		/* While paced few calls are inside, so the limit counts, not `held`. */
		unsigned most = g->paced ? g->limit : MIN(g->held, g->limit);

		gate_cut(g, MAX(most / 2, GATE_LEAST));
	}
	g->cut_ms = now_ms;
	wait_ms = MIN(wait_ms, (int64_t)GATE_CLOSED_MS);
	g->open_ms = g->closed ? MAX(g->open_ms, now_ms + wait_ms) : now_ms + wait_ms;
	g->closed = true;
	g->paced = false;
}

void gate_back(struct call_gate *g, int64_t now_ms)
{
	gate_cut(g, GATE_LEAST);
	g->cut_ms = g->open_ms = now_ms;
	g->closed = true;
	g->paced = false;
}

static void retry_refused(struct call_gate *g, const struct gate_ticket *t, enum reply_class cls,
			  struct retry_plan *plan, int64_t now_ms)
{
	const int64_t half = GATE_ALONE_MS / 2;
	bool holds_for_all = plan->told && cls == REPLY_RATE_LIMIT;

	if (holds_for_all || !retry_stands_alone(g, t))
		congested(g, t, plan->wait_ms, now_ms);
	else if (!plan->told)
		plan->wait_ms = MIN(plan->wait_ms, half + plan->wait_ms % half);
}

void gate_end(struct gate_ticket *t, enum reply_class cls, struct retry_plan *plan, int64_t now_ms)
{
	if (t->place == GATE_OUT)
		return;
	if (t->place == GATE_IN && cls == REPLY_OK)
		gate_began(t, now_ms);
	else if (t->place == GATE_IN && retry_congested(cls))
		retry_refused(t->gate, t, cls, plan, now_ms);
	else if (t->place == GATE_IN && (cls == REPLY_AUTH || cls == REPLY_BILLING))
		circuit_refused(t->gate->circuit, cls, now_ms);
	ticket_out(t);
}

void gate_leave(struct gate_ticket *t)
{
	if (t->place != GATE_OUT)
		ticket_out(t);
}
