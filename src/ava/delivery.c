/* What is open, and the verbs of clients. Events are taken in from the feed, as
 * any reader takes them: after they are durable and readable, and without
 * anybody waiting for it. A notice stays in the list until every channel that
 * wants it has a row in the ledger that settles it.
 *
 * What can fail: the disk, when an acknowledgement is written (it is answered
 * with that, and the notice stays open); the files, when the feed was left
 * behind (taken up again a second later); memory (a notice that cannot be held
 * is in the logs, and the next start finds it there). */
#include "ava/delivery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/delivery_state.h"
#include "base/clock.h"
#include "base/error.h"
#include "codec/json.h"

#define TURN_EVENTS 256 /* taken in at once */
#define AGAIN_MS    1000
#define TRIM_MS     50 /* about as long as a commit takes */

static const char *const channel_names[DELIVERY_NCHANNELS] = {"terminal", "notify"};

const char *delivery_channel_name(unsigned channel)
{
	return channel_names[channel == DELIVERY_NOTIFY];
}

unsigned delivery_channel(const char *name)
{
	for (unsigned i = 0; i < DELIVERY_NCHANNELS; i++)
		if (strcmp(channel_names[i], name) == 0)
			return 1u << i;
	return 0;
}

/* ---- the list */

void delivery_insert(struct delivery *d, struct item *it)
{
	struct list *at = d->items.prev;

	while (at != &d->items && LIST_ENTRY(at, struct item, node)->lsn > it->lsn)
		at = at->prev;
	list_insert(at->next, &it->node);
	d->nitems++;
}

struct item *delivery_find(struct delivery *d, uint64_t lsn)
{
	LIST_EACH (&d->items, n, tmp) {
		struct item *it = LIST_ENTRY(n, struct item, node);

		if (it->lsn == lsn)
			return it;
	}
	return NULL;
}

void delivery_settle(struct delivery *d, struct item *it, unsigned channels)
{
	it->open &= ~channels;
	if ((channels & DELIVERY_NOTIFY) && d->notify)
		notify_forget(d, it);
	if (it->open)
		return;
	d->nitems--;
	item_free(it);
}

void delivery_answered(struct delivery *d, const char *key)
{
	LIST_EACH (&d->items, n, tmp) {
		struct item *it = LIST_ENTRY(n, struct item, node);

		if ((it->kind == ITEM_PROPOSAL || it->kind == ITEM_QUESTION) &&
		    strcmp(it->key, key) == 0)
			delivery_settle(d, it, ~0u);
	}
}

static bool is_for(const struct item *it, const char *session, unsigned channel)
{
	return (it->open & channel) && (!session || strcmp(it->session, session) == 0);
}

/* `oldest` may be NULL. */
static unsigned count(const struct delivery *d, const char *session, unsigned channel,
		      struct item **oldest)
{
	unsigned n = 0;

	LIST_EACH (&d->items, at, tmp) {
		struct item *it = LIST_ENTRY(at, struct item, node);

		if (is_for(it, session, channel) && n++ == 0 && oldest)
			*oldest = it;
	}
	return n;
}

/* ---- bounds */

int delivery_give_up(struct delivery *d, unsigned channel, const struct item *it,
		     const char *reason, void (*done)(int rv, void *user), void *user)
{
	struct draft *dr = draft_new(&d->core->book);
	struct buf b;
	struct jw w;

	if (!dr)
		return AVA_ENOMEM;
	ledger_settled(d, dr, "gave_up", channel, &it->lsn, 1);
	buf_init(&b, 65536);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "customType", "delivery.gave_up");
	jw_object(&w, "data");
	jw_str(&w, "channel", delivery_channel_name(channel));
	jw_int(&w, "lsn", (int64_t)it->lsn);
	jw_int(&w, "attempts", it->attempts);
	jw_str(&w, "reason", reason);
	jw_end(&w);
	jw_end(&w);
	core_event(d->core, dr, EVENT_Custom, it->session, "", &b);
	return draft_commit(dr, JOURNAL_RIDE, done, user, NULL);
}

static void given_up(int rv, void *user)
{
	struct delivery *d = user;

	if (rv != 0)
		core_log(d->core, "a notice that was given up may be told again: %s",
			 ava_strerror(rv));
}

/* The oldest makes room; that it did is written, but not waited for. */
static void drop_oldest(struct delivery *d, unsigned channel, struct item *it, const char *why)
{
	int rv = delivery_give_up(d, channel, it, why, given_up, d);

	if (rv != 0)
		given_up(rv, d);
	delivery_settle(d, it, channel);
}

static void keep_bounds(struct delivery *d, const struct item *fresh)
{
	struct item *oldest = NULL;

	if ((fresh->open & DELIVERY_TERMINAL) &&
	    count(d, fresh->session, DELIVERY_TERMINAL, &oldest) > DELIVERY_SESSION_MAX)
		drop_oldest(d, DELIVERY_TERMINAL, oldest, "too many wait for this conversation");
	if (d->notify && count(d, NULL, DELIVERY_NOTIFY, &oldest) > DELIVERY_NOTIFY_MAX)
		drop_oldest(d, DELIVERY_NOTIFY, oldest, "too many wait for the command");
	while (d->nitems > DELIVERY_MAX) {
		oldest = LIST_FIRST(&d->items, struct item, node);
		for (unsigned bit = 1; bit < 1u << DELIVERY_NCHANNELS; bit <<= 1)
			if (oldest->open & bit & ~(oldest->open - 1)) {
				drop_oldest(d, bit, oldest, "too many wait");
				break;
			}
	}
}

/* ---- taking in */

static void take_notice(struct delivery *d, const char *type, const struct op_event *e)
{
	struct item *it;

	if (item_from_event(&it, type, e->line, e->line_len) != 0)
		return;
	if (it->session[0] && strmap_get(&d->core->session_by_id, it->session))
		it->open |= DELIVERY_TERMINAL;
	if (d->notify)
		it->open |= DELIVERY_NOTIFY;
	if (!it->open || delivery_find(d, it->lsn)) {
		item_free(it);
		return;
	}
	if (it->lsn < d->seen)
		it->cover = d->seen + 1;
	delivery_insert(d, it);
	keep_bounds(d, it);
}

static void take(struct delivery *d, const struct op_event *e)
{
	char type[40], key[ITEM_KEY];

	if (e->type_len < sizeof(type)) {
		snprintf(type, sizeof(type), "%.*s", (int)e->type_len, e->type);
		if (item_answers(type, e->line, e->line_len, key))
			delivery_answered(d, key);
		take_notice(d, type, e);
	}
	d->seen = MAX(d->seen, e->lsn);
}

static void wake(void *user)
{
	struct delivery *d = user;

	os_defer(d->core->loop, &d->pump);
}

/* True: there is more. */
static bool take_some(struct delivery *d)
{
	struct op_event e;
	int rv = 0, n = 0;

	while (d->cursor && n++ < TURN_EVENTS && (rv = ops_events_next(d->cursor, &e)) == 1)
		take(d, &e);
	if (rv == -2) {
		ops_events_close(d->cursor);
		d->cursor = NULL;
		os_timer_set(d->again, AGAIN_MS);
	}
	return rv == 1;
}

static void pump(struct os_task *t)
{
	struct delivery *d = CONTAINER_OF(t, struct delivery, pump);

	if (take_some(d))
		os_timer_set(d->again, 0);
	else if (!ledger_trim(d))
		os_timer_set(d->again, TRIM_MS);
	if (d->notify)
		notify_pump(d);
}

static void again(void *user)
{
	struct delivery *d = user;

	if (!d->cursor)
		d->cursor = ops_events_open(d->core, NULL, d->seen, wake, d, NULL);
	if (!d->cursor)
		os_timer_set(d->again, AGAIN_MS);
	pump(&d->pump);
}

/* ---- what a client has not seen */

static int check(struct delivery *d, const char *session, const char *channel,
		 struct ava_error *err)
{
	if (!strmap_get(&d->core->session_by_id, session))
		return err_set(err, AVA_ENOENT,
			       "there is no session %.60s (ava sessions lists them)", session);
	if (strcmp(channel, "terminal") != 0)
		return err_set(err, AVA_EINVAL,
			       "channel is \"%.40s\"; it must be terminal: the others acknowledge "
			       "by themselves",
			       channel);
	while (take_some(d))
		;
	return 0;
}

static void add_words(char *out, size_t size, unsigned n, const char *one, const char *many)
{
	size_t len = strlen(out);

	if (n == 1)
		snprintf(out + len, size - len, "%s1 %s", len ? ", " : "", one);
	else if (n > 1)
		snprintf(out + len, size - len, "%s%u %s", len ? ", " : "", n, many);
}

static void summarize(struct op_unseen *u, const unsigned by_kind[ITEM_NKINDS])
{
	size_t size = sizeof(u->summary);

	add_words(u->summary, size, by_kind[ITEM_RESULT], "run finished", "runs finished");
	add_words(u->summary, size, by_kind[ITEM_MESSAGE], "message", "messages");
	add_words(u->summary, size, by_kind[ITEM_PROPOSAL], "proposal waits", "proposals wait");
	add_words(u->summary, size, by_kind[ITEM_QUESTION], "run asks you", "runs ask you");
	add_words(u->summary, size, by_kind[ITEM_EXPIRED], "proposal expired", "proposals expired");
	if (u->summary[0]) {
		size_t len = strlen(u->summary);

		snprintf(u->summary + len, size - len, " while you were away");
	}
}

int ops_unseen(struct core *c, const char *session, const char *channel,
	       void (*head)(const struct op_unseen *u, void *user),
	       void (*each)(const char *json, size_t len, void *user), void *user,
	       struct ava_error *err)
{
	struct delivery *d = c->delivery;
	struct op_unseen u = {.session = session, .channel = channel};
	unsigned by_kind[ITEM_NKINDS] = {0};
	int rv = check(d, session, channel, err);

	if (rv != 0)
		return rv;
	LIST_EACH (&d->items, n, tmp) {
		struct item *it = LIST_ENTRY(n, struct item, node);

		if (!is_for(it, session, DELIVERY_TERMINAL))
			continue;
		by_kind[it->kind]++;
		u.lsn = it->lsn;
		u.n++;
	}
	summarize(&u, by_kind);
	head(&u, user);
	LIST_EACH (&d->items, n, tmp) {
		struct item *it = LIST_ENTRY(n, struct item, node);

		if (is_for(it, session, DELIVERY_TERMINAL)) {
			it->cover = it->lsn;
			each(it->json, strlen(it->json), user);
		}
	}
	return 0;
}

/* ---- acknowledging */

struct acking {
	struct delivery *d;
	char session[64];
	op_acked_fn done;
	void *user;
	unsigned n;
	uint64_t lsns[DELIVERY_SESSION_MAX + 1];
};

static void acked(int rv, void *user)
{
	struct acking *a = user;
	struct ava_error err = {0};

	for (unsigned i = 0; rv == 0 && i < a->n; i++) {
		struct item *it = delivery_find(a->d, a->lsns[i]);

		if (it)
			delivery_settle(a->d, it, DELIVERY_TERMINAL);
	}
	if (rv == 0 && a->n > 0)
		wake(a->d);
	if (rv == 0)
		a->done(0, a->n, count(a->d, a->session, DELIVERY_TERMINAL, NULL), NULL, a->user);
	else
		a->done(rv, 0, 0,
			(err_set(&err, rv,
				 "the acknowledgement could not be saved (%s): send it again",
				 ava_strerror(rv)),
			 &err),
			a->user);
	free(a);
}

static void collect(struct acking *a, uint64_t lsn)
{
	LIST_EACH (&a->d->items, n, tmp) {
		const struct item *it = LIST_ENTRY(n, struct item, node);

		if (is_for(it, a->session, DELIVERY_TERMINAL) &&
		    (lsn >= it->cover || lsn == it->lsn) && a->n < ARRAY_LEN(a->lsns))
			a->lsns[a->n++] = it->lsn;
	}
}

static int begin_ack(struct acking *a, struct ava_error *err)
{
	struct draft *dr = draft_new(&a->d->core->book);

	if (!dr)
		return err_set(err, AVA_ENOMEM, "out of memory");
	ledger_settled(a->d, dr, "ack", DELIVERY_TERMINAL, a->lsns, a->n);
	return draft_commit(dr, JOURNAL_RIDE, acked, a, err);
}

void ops_ack(struct core *c, const char *session, const char *channel, uint64_t lsn,
	     op_acked_fn done, void *user)
{
	struct delivery *d = c->delivery;
	struct ava_error err = {0};
	struct acking *a = NULL;
	int rv = check(d, session, channel, &err);

	if (rv == 0 && lsn >= journal_lsn(c->journal, 0))
		rv = err_set(&err, AVA_EINVAL, "lsn is %llu; no event has that number yet",
			     (unsigned long long)lsn);
	if (rv == 0) {
		a = calloc(1, sizeof(*a));
		rv = a ? 0 : err_set(&err, AVA_ENOMEM, "out of memory");
	}
	if (rv == 0) {
		a->d = d;
		a->done = done;
		a->user = user;
		snprintf(a->session, sizeof(a->session), "%s", session);
		collect(a, lsn);
		if (a->n == 0) {
			acked(0, a);
			return;
		}
		rv = begin_ack(a, &err);
	}
	if (rv != 0) {
		free(a);
		done(rv, 0, 0, &err, user);
	}
}

/* ---- life */

static void forget_oldest(struct delivery *d)
{
	if (d->nitems > DELIVERY_MAX)
		core_log(d->core, "%u notices were never acknowledged: the oldest are given up",
			 d->nitems);
	while (d->nitems > DELIVERY_MAX)
		delivery_settle(d, LIST_FIRST(&d->items, struct item, node), ~0u);
}

int delivery_open(struct core *c, const char *notify, struct ava_error *err)
{
	struct delivery *d = calloc(1, sizeof(*d));
	int rv;

	if (!d)
		return err_set(err, AVA_ENOMEM, "out of memory");
	c->delivery = d;
	d->core = c;
	d->seen = journal_lsn(c->journal, 0) - 1;
	d->trim_bytes = DELIVERY_TRIM_BYTES;
	list_init(&d->items);
	os_task_init(&d->pump, pump);
	d->again = os_timer_new(c->loop, again, d);
	if (!d->again)
		return err_set(err, AVA_ENOMEM, "out of memory");
	d->cursor = ops_events_open(c, NULL, UINT64_MAX, wake, d, err);
	if (!d->cursor)
		return err->code;
	rv = notify ? notify_open(d, notify, err) : 0;
	if (rv == 0)
		rv = ledger_read(d, err);
	if (rv != 0)
		return rv;
	forget_oldest(d);
	ledger_begin(d, journal_lsn(c->journal, 0));
	wake(d);
	return 0;
}

bool delivery_idle(const struct core *c)
{
	const struct delivery *d = c->delivery;

	return !d || !d->notify || count(d, NULL, DELIVERY_NOTIFY, NULL) == 0;
}

void delivery_quiesce(struct core *c)
{
	struct delivery *d = c->delivery;

	if (!d)
		return;
	os_defer_cancel(c->loop, &d->pump);
	if (d->again)
		os_timer_stop(d->again);
	if (d->cursor)
		ops_events_close(d->cursor);
	d->cursor = NULL;
	if (d->notify)
		notify_stop(d);
}

void delivery_close(struct core *c)
{
	struct delivery *d = c->delivery;

	if (!d)
		return;
	delivery_quiesce(c);
	while (!list_empty(&d->items))
		item_free(LIST_FIRST(&d->items, struct item, node));
	if (d->notify)
		notify_close(d);
	os_timer_free(d->again);
	free(d);
	c->delivery = NULL;
}
