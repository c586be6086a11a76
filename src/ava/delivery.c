/* Open notices, and the verbs of clients. Events are read from the feed, as by any reader: after
 * they are durable and readable, and without anybody waiting. A notice stays open until every
 * channel that wants it is done with it, and that is on disk: delivery.json says up to which
 * lsn all notices are settled but for spans of each channel, in which all are open, and those
 * still to come behind younger events. It leaves out the channels in notice.closing. A notice that
 * one too many makes give way is not written: a start gives up the same ones.
 *
 * What can fail: the disk, when an acknowledgement is written (the caller hears of it, and the
 * notice stays open); the files, when the cursor fell behind the feed (opened again a second
 * later); memory (a notice that cannot be held is in the logs, and the next start finds it
 * there). */
#include "ava/delivery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/state.h"
#include "ava/talk.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/words.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "journal/read.h"

#define TEXT_CHARS 2000

#define STATE         "delivery.json"
#define STATE_MAX     ((size_t)4 << 20)
#define STATE_VERSION 2
#define LOST_MS       86400000LL /* age of events taken as open when the state cannot be read */
#define TURN_EVENTS   256        /* events read in one turn of the loop */
#define AGAIN_MS      1000

/* ---- an Item as a notice: which are told later, to whom, and how many of a kind in a summary */

static const struct delivery_wish {
	enum item_kind kind;
	bool by_ava;            /* of Ava; else of a run, or of no matter whom */
	bool alert;             /* of a budget; by Ava: of a standing order */
	bool chats_only;        /* a terminal sees it in the stream of its conversation */
	const char *one, *many; /* in a summary */
} wishes[] = {
	{ITEM_result, false, false, false, "run finished", "runs finished"},
	{ITEM_failed, false, false, false, "run finished", "runs finished"},
	{ITEM_said, true, false, false, "message", "messages"},
	{ITEM_proposed, false, false, false, "proposal waits", "proposals wait"},
	{ITEM_asked, false, false, false, "run asks you", "runs ask you"},
	{ITEM_expired, false, false, false, "proposal expired", "proposals expired"},
	{ITEM_noted, false, true, false, "budget alert", "budget alerts"},
	{ITEM_noted, true, true, false, "notice of an order", "notices of orders"},
	{ITEM_failed, true, false, true, "", ""},
	{ITEM_noted, true, false, true, "", ""},
	{ITEM_noted, false, false, true, "", ""},
	{ITEM_started, false, false, true, "", ""},
};

/* NULL: the Item is no notice. Of Asks that expire only a quote's is: a run goes on or ends. */
static const struct delivery_wish *delivery_wish_of(const struct item *it)
{
	if (it->kind == ITEM_expired && it->run[0])
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
		if (wishes[i].kind == it->kind && wishes[i].by_ava == it->by_ava &&
		    wishes[i].alert == it->alert)
			return &wishes[i];
	return NULL;
}

static void notice_free(struct notice *it)
{
	free(it->json);
	free(it);
}

/* ---- the index: by time, by channel, by conversation, and those with an Ask */

static struct notice *notice_in(struct list *n, unsigned k)
{
	return CONTAINER_OF(n, struct notice, in[k]);
}

/* In list `k`, the first notice behind this one's place, or the list's head. */
static struct list *notice_place(struct list *head, unsigned k, uint64_t lsn)
{
	struct list *at = head;

	while (at->prev != head && notice_in(at->prev, k)->item.lsn > lsn)
		at = at->prev;
	return at;
}

static struct notice *find_item(struct delivery *d, uint64_t lsn)
{
	struct list *at = notice_place(&d->notices, NOTICE_ALL, lsn)->prev;
	struct notice *it = notice_in(at, NOTICE_ALL);

	return at != &d->notices && it->item.lsn == lsn ? it : NULL;
}

/* The channels of which something behind the notice before `at` is settled. */
static unsigned *cuts_at(struct delivery *d, struct list *at, unsigned k)
{
	return at == &d->queues[k] ? &d->cuts : &notice_in(at, k)->cuts;
}

static struct delivery_talk *told_of(const struct delivery *d, const char *session)
{
	struct session *s = strmap_get(&d->core->session_by_id, session);

	return s ? &s->told : NULL;
}

void delivery_insert(struct delivery *d, struct notice *it)
{
	uint64_t lsn = it->item.lsn;

	it->talk = told_of(d, it->item.session);
	for (unsigned k = 0; k < NOTICE_LISTS; k++)
		list_init(&it->in[k]);
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++) {
		struct list *at = notice_place(&d->queues[k], k, lsn);

		if (!(it->open & 1u << k))
			continue;
		it->cuts |= *cuts_at(d, at, k) & 1u << k;
		if (at == &d->queues[k])
			d->cuts &= ~(1u << k);
		list_insert(at, &it->in[k]);
		d->open[k]++;
		if (it->talk)
			it->talk->open[k]++;
	}
	list_insert(notice_place(&d->notices, NOTICE_ALL, lsn), &it->in[NOTICE_ALL]);
	if (it->talk)
		list_insert(notice_place(&it->talk->notices, NOTICE_TALK, lsn),
			    &it->in[NOTICE_TALK]);
	if (it->item.kind == ITEM_proposed || it->item.kind == ITEM_asked)
		list_add(&d->asks, &it->in[NOTICE_ASK]);
	d->nnotices++;
}

void delivery_settle(struct delivery *d, struct notice *it, unsigned channels)
{
	channels &= it->open;
	it->open &= ~channels;
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++) {
		if (!(channels & 1u << k))
			continue;
		*cuts_at(d, it->in[k].next, k) |= 1u << k;
		list_del(&it->in[k]);
		d->open[k]--;
		if (it->talk)
			it->talk->open[k]--;
		if (d->channels[k] && d->channels[k]->item == it)
			d->channels[k]->item = NULL;
	}
	if (it->open)
		return;
	for (unsigned k = DELIVERY_NCHANNELS; k < NOTICE_LISTS; k++)
		list_del(&it->in[k]);
	d->nnotices--;
	notice_free(it);
}

static void delivery_answered(struct delivery *d, const char *ask)
{
	LIST_EACH (&d->asks, n, tmp)
		if (strcmp(notice_in(n, NOTICE_ASK)->item.ask, ask) == 0)
			delivery_settle(d, notice_in(n, NOTICE_ASK), ~0u);
}

/* Makes a notice of a log line, with all channels closed; an Item that closes an Ask settles that
 * Ask's notice. 0; AVA_ENOENT: no notice; AVA_ENOMEM. */
static int notice_make(struct delivery *d, const char *line, size_t len, struct notice **out)
{
	struct item item;
	struct buf json;
	int rv;

	if (!item_stays(line, len))
		return AVA_ENOENT;
	buf_init(&json, 1u << 20);
	rv = item_make(&item, &json, line, len, TEXT_CHARS, d->core->redact);
	if (rv == 0 && (item.kind == ITEM_answered || item.kind == ITEM_expired))
		delivery_answered(d, item.ask);
	if (rv == 0 && !delivery_wish_of(&item))
		rv = AVA_ENOENT;
	if (rv == 0) {
		*out = calloc(1, sizeof(**out));
		rv = *out ? 0 : AVA_ENOMEM;
	}
	if (rv == 0) {
		(*out)->item = item;
		(*out)->cover = item.lsn;
		(*out)->json = buf_take(&json, NULL);
	}
	buf_fini(&json);
	return rv;
}

/* ---- delivery.json */

/* Appends to a text "90004-90310 90312": spans of lsn in which all notices are open. */
static void put_lsns(struct buf *b, uint64_t from, uint64_t to)
{
	buf_addf(b, "%s%llu", b->len > 0 && b->data[b->len - 1] == '"' ? "" : " ",
		 (unsigned long long)from);
	if (to > from)
		buf_addf(b, "-%llu", (unsigned long long)to);
}

static void put_late(uint64_t lsn, void *b)
{
	put_lsns(b, lsn, lsn);
}

static void put_open(struct jw *w, struct delivery *d, unsigned k)
{
	uint64_t from = 0, to = 0;

	if (d->open[k] == 0 && !d->channels[k])
		return;
	jw_raw(w, channel_table[k].name, "\"", 1);
	LIST_EACH (&d->queues[k], n, tmp) {
		const struct notice *it = notice_in(n, k);
		bool open = it->item.lsn > 0 && !(it->closing & 1u << k);

		if (from > 0 && (!open || (it->cuts & 1u << k))) {
			put_lsns(w->out, from, to);
			from = 0;
		}
		if (open) {
			to = it->item.lsn;
			from = from > 0 ? from : to;
		}
	}
	if (from > 0)
		put_lsns(w->out, from, to);
	buf_addc(w->out, '"');
}

/* The attempts of a channel stand under its name behind a point; those of the command under none.
 */
static const char *attempts_key(unsigned k)
{
	return 1u << k == DELIVERY_DESKTOP ? "attempts.desktop"
	       : 1u << k == DELIVERY_URL   ? "attempts.url"
					   : "attempts";
}

static void put_attempts(struct jw *w, struct delivery *d, unsigned k)
{
	bool open = 1u << k == DELIVERY_NOTIFY; /* the others only when there are any */
	char lsn[24];

	if (open)
		jw_object(w, attempts_key(k));
	LIST_EACH (&d->queues[k], n, tmp) {
		const struct notice *it = notice_in(n, k);

		if (it->tries[k].attempts == 0 || it->closing & 1u << k)
			continue;
		if (!open)
			jw_object(w, attempts_key(k));
		open = true;
		snprintf(lsn, sizeof(lsn), "%llu", (unsigned long long)it->item.lsn);
		jw_int(w, lsn, it->tries[k].attempts);
	}
	if (open)
		jw_end(w);
}

static void put_state(struct delivery *d, struct draft *dr)
{
	uint64_t upto = MAX(MIN(d->seen, logbook_shown(&d->core->book)), d->settled);
	struct buf *b = draft_part(dr, DRAFT_PUT, STATE);
	struct jw w;

	if (!b) /* without memory the commit fails */
		return;
	jw_init(&w, b);
	jw_object(&w, NULL);
	jw_int(&w, "version", STATE_VERSION);
	jw_int(&w, "lsn", (int64_t)upto);
	jw_object(&w, "open");
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		put_open(&w, d, k);
	jw_end(&w);
	/* An event still to come: if it is a notice, it is open for every channel that wants it. */
	jw_raw(&w, "late", "\"", 1);
	ops_events_late(d->core, d->cursor, upto, put_late, b);
	buf_addc(b, '"');
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		if (DELIVERY_OWN & 1u << k)
			put_attempts(&w, d, k);
	jw_end(&w);
	buf_addc(b, '\n');
}

struct draft *delivery_draft(struct delivery *d)
{
	struct draft *dr = draft_new(&d->core->book);

	if (dr)
		put_state(d, dr);
	return dr;
}

int delivery_commit(struct draft *dr, void (*done)(int rv, void *user), void *user)
{
	return dr ? draft_commit(dr, JOURNAL_RIDE, done, user, NULL) : AVA_ENOMEM;
}

/* ---- bounds */

/* The oldest notice of a channel in the conversation. */
static struct notice *oldest_of(struct delivery_talk *t, unsigned k)
{
	LIST_EACH (&t->notices, n, tmp)
		if (notice_in(n, NOTICE_TALK)->open & 1u << k)
			return notice_in(n, NOTICE_TALK);
	return NULL;
}

/* `full` has the bounds of which it was told that they are reached: once, until a tenth is free
 * again. A start tells nothing, and what is nearly full then has been told before. */
static void keep_bound(struct delivery *d, struct notice *it, unsigned k, bool live)
{
	struct delivery_talk *t = it->talk;
	bool talk = channel_table[k].talk;
	unsigned n = talk ? t->open[k] : d->open[k], max = channel_table[k].max;
	unsigned *full = talk ? &t->full : &d->full, bit = 1u << k;
	struct draft *dr;

	if (n < max - max / 10)
		*full &= ~bit;
	else if (!live)
		*full |= bit;
	if (n <= max)
		return;
	it = talk ? oldest_of(t, k) : notice_in(d->queues[k].next, k);
	dr = *full & bit ? NULL : draft_new(&d->core->book);
	if (dr) {
		channel_tell(d, dr, bit, it, 0, channel_table[k].full);
		(void)delivery_commit(dr, NULL, NULL);
	}
	*full |= bit;
	if (d->channels[k])
		d->channels[k]->given_up++;
	delivery_settle(d, it, bit);
}

/* A notice of the conversation or of all may be given up for the one that was taken in. */
static void keep_bounds(struct delivery *d, struct notice *fresh, bool live)
{
	unsigned open = fresh->open;

	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		if (open & 1u << k)
			keep_bound(d, fresh, k, live);
	while (d->nnotices > DELIVERY_MAX)
		delivery_settle(d, notice_in(d->notices.next, NOTICE_ALL), ~0u);
}

/* ---- taking in */

/* The channel of the door whose user this is; 0: none. */
static unsigned door_of(const char *user)
{
	for (unsigned i = 0; i < DOORS_N; i++) {
		const char *name = channel_table[delivery_bit(DELIVERY_DOOR) + i].name;
		size_t len = strlen(name);

		if (strncmp(user, name, len) == 0 && user[len] == ':')
			return DELIVERY_DOOR << i;
	}
	return 0;
}

/* `set`: of the channels that are called, those that were set when the event came. */
static unsigned wanted_by(const struct delivery *d, const struct notice *it, unsigned set)
{
	bool known = told_of(d, it->item.session);
	unsigned chats = known ? door_of(it->item.user) : 0;
	bool ended = (it->item.kind == ITEM_result || it->item.kind == ITEM_failed) &&
		     id_is_run(it->item.run);

	if (delivery_wish_of(&it->item)->chats_only)
		return chats;
	set &= d->called & (DELIVERY_OWN | (ended ? DELIVERY_OTEL : 0));
	return (known ? DELIVERY_TERMINAL : 0) | chats | set;
}

static void delivery_take(struct delivery *d, const struct op_event *e)
{
	struct notice *it;

	d->seen = MAX(d->seen, e->lsn);
	if (notice_make(d, e->line, e->line_len, &it) != 0)
		return;
	it->open = wanted_by(d, it, ~0u);
	if (!it->open || find_item(d, it->item.lsn)) {
		notice_free(it);
		return;
	}
	if (it->item.lsn < d->seen)
		it->cover = d->seen + 1;
	delivery_insert(d, it);
	for (unsigned i = 0; i < DOORS_N; i++)
		if ((it->open & DELIVERY_DOOR << i) && d->watchers[i].fresh)
			d->watchers[i].fresh(d->watchers[i].user);
	keep_bounds(d, it, true);
}

static void delivery_wake(void *user)
{
	struct delivery *d = user;

	os_defer(d->core->loop, &d->pump);
}

/* true: more events can be read. */
static bool take_some(struct delivery *d)
{
	struct op_event e;
	int rv = 0, n = 0;

	while (d->cursor && n++ < TURN_EVENTS && (rv = ops_events_next(d->cursor, &e)) == 1)
		delivery_take(d, &e);
	if (rv == -2) {
		ops_events_close(d->cursor);
		d->cursor = NULL;
		os_timer_set(d->again, AGAIN_MS);
	}
	return rv == 1;
}

static void delivery_pump(struct os_task *t)
{
	struct delivery *d = CONTAINER_OF(t, struct delivery, pump);

	if (take_some(d))
		os_timer_set(d->again, 0);
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		if (d->channels[k])
			channel_pump(d->channels[k]);
}

static void delivery_again(void *user)
{
	struct delivery *d = user;

	if (!d->cursor)
		d->cursor = ops_events_open(d->core, NULL, d->seen, delivery_wake, d, NULL);
	if (!d->cursor)
		os_timer_set(d->again, AGAIN_MS);
	delivery_pump(&d->pump);
}

/* ---- unseen notices */

static int delivery_check(struct delivery *d, const char *session, const char *channel,
			  struct ava_error *err)
{
	if (!told_of(d, session))
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

/* Writes one line; "" without notices. Kinds of one word count together. */
static void summarize(char *out, size_t size, const struct delivery_talk *t)
{
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
		const char *one = wishes[i].one;
		unsigned count = 0;

		if (!*one || (i > 0 && strcmp(one, wishes[i - 1].one) == 0))
			continue;
		LIST_EACH (&t->notices, n, tmp) {
			const struct notice *it = notice_in(n, NOTICE_TALK);

			count += (it->open & DELIVERY_TERMINAL) &&
				 strcmp(delivery_wish_of(&it->item)->one, one) == 0;
		}
		if (count > 0)
			len += (size_t)snprintf(out + len, size - len, "%s%u %s",
						len > 0 ? ", " : "", count,
						count == 1 ? one : wishes[i].many);
	}
	if (len > 0)
		snprintf(out + len, size - len, " while you were away");
}

int ops_unseen(struct core *c, const char *session, const char *channel, struct jw *w,
	       struct ava_error *err)
{
	const struct delivery_talk *t = told_of(c->delivery, session);
	char summary[200] = "";
	uint64_t newest = 0;
	int rv = delivery_check(c->delivery, session, channel, err);

	if (rv != 0)
		return rv;
	LIST_EACH (&t->notices, n, tmp)
		if (notice_in(n, NOTICE_TALK)->open & DELIVERY_TERMINAL)
			newest = notice_in(n, NOTICE_TALK)->item.lsn;
	summarize(summary, sizeof(summary), t);
	jw_object(w, NULL);
	jw_str(w, "session_id", session);
	jw_str(w, "channel", channel);
	jw_str(w, "summary", summary);
	jw_int(w, "lsn", (int64_t)newest);
	jw_array(w, "items");
	LIST_EACH (&t->notices, n, tmp) {
		struct notice *it = notice_in(n, NOTICE_TALK);

		if (it->open & DELIVERY_TERMINAL) {
			it->cover = it->item.lsn;
			jw_raw(w, NULL, it->json, strlen(it->json));
		}
	}
	jw_end(w);
	jw_end(w);
	return 0;
}

/* ---- acknowledging */

struct acking {
	struct delivery *d;
	struct delivery_talk *talk;
	uint64_t lsn;
	op_acked_fn done;
	void *user;
	unsigned n;
};

enum ack_step { ACK_BEGINS, ACK_WRITTEN, ACK_FAILED };

/* Returns how many notices the acknowledgement covers. */
static unsigned ack_each(struct acking *a, enum ack_step step)
{
	unsigned n = 0;

	LIST_EACH (&a->talk->notices, at, tmp) {
		struct notice *it = notice_in(at, NOTICE_TALK);

		if (!(it->open & DELIVERY_TERMINAL) ||
		    (a->lsn < it->cover && a->lsn != it->item.lsn))
			continue;
		n++;
		if (step == ACK_BEGINS)
			it->closing |= DELIVERY_TERMINAL;
		else if (step == ACK_FAILED)
			it->closing &= ~DELIVERY_TERMINAL;
		else if (it->closing & DELIVERY_TERMINAL)
			delivery_settle(a->d, it, DELIVERY_TERMINAL);
	}
	return n;
}

static void acked(int rv, void *user)
{
	struct acking *a = user;
	struct ava_error err = {0};

	ack_each(a, rv == 0 ? ACK_WRITTEN : ACK_FAILED);
	if (rv != 0)
		err_set(&err, rv, "the acknowledgement could not be saved (%s): send it again",
			ava_strerror(rv));
	a->talk->acking--;
	a->done(rv, rv == 0 ? a->n : 0,
		rv == 0 ? a->talk->open[delivery_bit(DELIVERY_TERMINAL)] : 0, rv == 0 ? NULL : &err,
		a->user);
	free(a);
}

void ops_ack(struct core *c, const char *session, const char *channel, uint64_t lsn,
	     op_acked_fn done, void *user)
{
	struct delivery *d = c->delivery;
	struct ava_error err = {0};
	struct acking *a = NULL;
	int rv = delivery_check(d, session, channel, &err);

	if (rv == 0 && lsn >= journal_lsn(c->journal, 0))
		rv = err_set(&err, AVA_EINVAL, "lsn is %llu; no event has that number yet",
			     (unsigned long long)lsn);
	if (rv == 0 && !(a = calloc(1, sizeof(*a))))
		rv = err_set(&err, AVA_ENOMEM, "out of memory");
	if (rv != 0) {
		done(rv, 0, 0, &err, user);
		return;
	}
	*a = (struct acking){
		.d = d, .talk = told_of(d, session), .lsn = lsn, .done = done, .user = user};
	a->talk->acking++;
	a->n = ack_each(a, ACK_BEGINS);
	rv = a->n > 0 ? delivery_commit(delivery_draft(d), acked, a) : 0;
	if (a->n == 0 || rv != 0)
		acked(rv, a);
}

/* ---- the doors of messengers */

void delivery_watch(struct core *c, unsigned door, void (*fresh)(void *user), void *user)
{
	c->delivery->watchers[door] = (struct delivery_watcher){fresh, user};
}

void delivery_talked(struct core *c)
{
	for (unsigned i = 0; c->delivery && i < DOORS_N; i++)
		if (c->delivery->watchers[i].fresh)
			c->delivery->watchers[i].fresh(c->delivery->watchers[i].user);
}

const struct notice *delivery_next(struct core *c, unsigned door, const char *user)
{
	const unsigned k = delivery_bit(DELIVERY_DOOR << door);
	const struct notice *spawn = NULL, *quote = NULL;
	const struct session *s;

	while (take_some(c->delivery))
		;
	LIST_EACH (&c->delivery->queues[k], n, tmp) {
		const struct notice *it = notice_in(n, k);

		if ((it->closing & DELIVERY_DOOR << door) || strcmp(it->item.user, user) != 0)
			continue;
		if (it->item.kind == ITEM_started)
			spawn = spawn ? spawn : it;
		else if (it->item.kind != ITEM_proposed)
			return it;
		/* A quote comes behind the words with which Ava introduces it. */
		s = strmap_get(&c->session_by_id, it->item.session);
		if (it->item.kind == ITEM_proposed && !quote && !(s && s->talk && s->talk->busy))
			quote = it;
	}
	return quote ? quote : spawn;
}

bool delivery_showing(struct core *c, struct draft *dr, unsigned door, uint64_t lsn,
		      const char *reason)
{
	struct notice *it = find_item(c->delivery, lsn);

	if (!it)
		return false;
	it->closing |= DELIVERY_DOOR << door | (reason ? 0 : DELIVERY_TERMINAL);
	put_state(c->delivery, dr);
	if (reason)
		channel_tell(c->delivery, dr, DELIVERY_DOOR << door, it, 0, reason);
	return true;
}

void delivery_shown(struct core *c, unsigned door, uint64_t lsn, bool written)
{
	struct notice *it = find_item(c->delivery, lsn);

	if (it && written)
		delivery_settle(c->delivery, it, it->closing & ~c->delivery->called);
	else if (it)
		it->closing &= ~(DELIVERY_DOOR << door | DELIVERY_TERMINAL);
}

/* ---- verbs. doc/DELIVERY.md says when to ask */

struct seen_args {
	const char *channel;
	int64_t lsn;
};
static const struct arg unseen_args[] = {
	{"channel", ARG_TEXT, offsetof(struct seen_args, channel)},
	{NULL},
};
static const struct arg ack_args[] = {
	{"channel", ARG_TEXT, offsetof(struct seen_args, channel)},
	{"lsn", ARG_COUNT, offsetof(struct seen_args, lsn), 0, INT64_MAX - 1},
	{NULL},
};

static void verb_unseen(struct verb_call *v)
{
	struct seen_args s = {.channel = v->caller->channel};
	struct ava_error err = {0};
	struct verb_answer a;

	if (!verb_begin_args(&a, v, &s))
		return;
	if (ops_unseen(v->core, v->id, s.channel, &a.w, &err) == 0)
		verb_send(&a, 200);
	else
		verb_drop(&a, &err);
}

static void ack_answered(int rv, unsigned acknowledged, unsigned unseen,
			 const struct ava_error *err, void *user)
{
	struct verb_answer a;

	if (!verb_begin(&a, user, rv, err))
		return;
	jw_object(&a.w, NULL);
	jw_int(&a.w, "acknowledged", acknowledged);
	jw_int(&a.w, "unseen", unseen);
	verb_send(&a, 200);
}

static void verb_ack(struct verb_call *v)
{
	struct seen_args s = {.lsn = -1};
	struct ava_error err = {0};

	if (!verb_body(v) || !verb_args(v, &s))
		return;
	if (s.channel && s.lsn >= 0) {
		ops_ack(v->core, v->id, s.channel, (uint64_t)s.lsn, ack_answered, v->reply);
		return;
	}
	err_set(&err, AVA_EINVAL, "channel and lsn are needed");
	verb_fail(v->reply, AVA_EINVAL, &err);
}

const struct verb verbs_about_delivery[] = {
	{"GET", "/api/v1/sessions/{id}/unseen", verb_unseen, unseen_args, false},
	{"POST", "/api/v1/sessions/{id}/ack", verb_ack, ack_args, false},
	{NULL},
};

/* ---- a start */

struct delivery_reading {
	struct delivery *d;
	uint64_t lsn; /* all notices up to this lsn are settled, but those of `spans` */
	int64_t from_ms;
	const json_t *state;
	unsigned set; /* channels that were called */
	struct delivery_span {
		uint64_t from, to;
	} * spans[DELIVERY_NCHANNELS + 1]; /* by channel; behind them those still to come. Sorted */
	size_t nspans[DELIVERY_NCHANNELS + 1];
	bool no_memory;
};

/* Takes the spans of a text. false: they are none, or not in order. */
static bool read_spans(struct delivery_reading *r, unsigned k, const char *at)
{
	size_t cap = 0, n = 0;
	char *end;

	for (uint64_t last = 0; *at; n++, last = r->spans[k][n - 1].to, at = end + (*end == ' ')) {
		struct delivery_span s = {.from = strtoull(at, &end, 10)};

		s.to = *end == '-' ? strtoull(end + 1, &end, 10) : s.from;
		if (s.from <= last || s.to < s.from || (*end && *end != ' '))
			return false;
		r->no_memory = r->no_memory || !ARRAY_ROOM(r->spans[k], cap, n + 1);
		if (r->no_memory)
			return true;
		r->spans[k][n] = s;
	}
	r->nspans[k] = n;
	return true;
}

static bool in_span(const struct delivery_reading *r, unsigned k, uint64_t lsn)
{
	size_t low = 0, high = r->nspans[k];

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (r->spans[k][mid].to < lsn)
			low = mid + 1;
		else
			high = mid;
	}
	return low < r->nspans[k] && r->spans[k][low].from <= lsn;
}

/* The channels for which a notice of that lsn is open when it wants them. */
static unsigned open_at(const struct delivery_reading *r, uint64_t lsn)
{
	unsigned open = 0;

	if (lsn > r->lsn || in_span(r, DELIVERY_NCHANNELS, lsn))
		return ~0u;
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		open |= in_span(r, k, lsn) ? 1u << k : 0;
	return open;
}

static void take_logged(struct delivery_reading *r, const struct ava_log_event *e)
{
	struct delivery *d = r->d;
	struct notice *it = NULL;
	unsigned open = open_at(r, e->lsn);
	char lsn[24];
	int rv;

	d->cuts |= ~open;
	/* The others may be answers to an Ask. */
	if (!open &&
	    (strcmp(e->type, "SubagentComplete") == 0 || strcmp(e->type, "AssistantMessage") == 0))
		return;
	rv = notice_make(d, e->line, e->len, &it);
	r->no_memory = r->no_memory || rv == AVA_ENOMEM;
	if (rv != 0)
		return;
	it->open = wanted_by(d, it, r->set) & open;
	if (!it->open) {
		notice_free(it);
		return;
	}
	snprintf(lsn, sizeof(lsn), "%llu", (unsigned long long)e->lsn);
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		if (DELIVERY_OWN & 1u << k)
			it->tries[k].attempts = (unsigned)json_get_int(
				json_object_get(r->state, attempts_key(k)), lsn, 0);
	delivery_insert(d, it);
	keep_bounds(d, it, false);
}

static void read_logs(struct delivery_reading *r)
{
#define X(event, ...) #event ","
	static const char types[] = ITEM_EVENTS(X);
#undef X
	char since[CLOCK_ISO_LEN + 1];
	struct ava_log_query q = {
		.root = r->d->core->root,
		.types = types,
		.after = r->lsn,
		.since = since,
	};
	struct ava_log_event e;
	struct ava_log *log;
	int rv;

	for (unsigned k = 0; k <= DELIVERY_NCHANNELS; k++)
		if (r->nspans[k] > 0)
			q.after = MIN(q.after, r->spans[k][0].from - 1);
	clock_iso(r->from_ms, since);
	if (read_open_near(&log, &q, NULL) != 0)
		return; /* no daily log yet */
	while ((rv = ava_log_next(log, &e, NULL)) == 1 || rv == AVA_ECORRUPT)
		if (rv == 1)
			take_logged(r, &e);
	ava_log_close(log);
}

/* false: it cannot be understood. */
static bool read_state(struct delivery_reading *r, json_t *state)
{
	const json_t *open = json_object_get(state, "open");
	const char *text = json_get_str(state, "late");
	int64_t lsn = json_get_int(state, "lsn", -1);
	bool good = text && json_is_object(open) && lsn >= 0 &&
		    json_get_int(state, "version", 0) == STATE_VERSION &&
		    read_spans(r, DELIVERY_NCHANNELS, text);

	for (unsigned k = 0; good && k < DELIVERY_NCHANNELS; k++) {
		text = json_get_str(open, channel_table[k].name);
		r->set |= text ? 1u << k : 0;
		good = !text || read_spans(r, k, text);
	}
	r->state = state;
	r->lsn = good ? (uint64_t)lsn : 0;
	return good;
}

/* Without a state, as in a new root, nothing is open; with an unreadable one the notices of the
 * last day are: rather twice than never. */
static int delivery_read_state(struct delivery *d, struct ava_error *err)
{
	struct delivery_reading r = {.d = d, .from_ms = clock_wall_ms() - DELIVERY_AGE_MS};
	struct ava_error why = {0};
	char *text = NULL;
	size_t len = 0;
	int rv = sys_read_file(d->core->root_fd, STATE, STATE_MAX, &text, &len, &why);
	json_t *state;

	if (rv == AVA_ENOENT)
		return 0;
	state = rv == 0 ? json_parse(text, len, &why) : NULL;
	free(text);
	if (json_get_int(state, "version", 0) > STATE_VERSION) {
		json_decref(state);
		return err_set(err, AVA_EFORMAT, STATE " was written by a newer ava: use that one");
	}
	if (read_state(&r, state)) {
		d->settled = r.lsn;
	} else {
		core_log(d->core, STATE " cannot be read, what it settled may be told again: %s",
			 why.text[0] ? why.text : "it has another form");
		r.from_ms = clock_wall_ms() - LOST_MS;
		r.set = ~0u;
		memset(r.nspans, 0, sizeof(r.nspans));
	}
	read_logs(&r);
	json_decref(state);
	for (unsigned k = 0; k <= DELIVERY_NCHANNELS; k++)
		free(r.spans[k]);
	return r.no_memory ? err_set(err, AVA_ENOMEM, "out of memory") : 0;
}

/* ---- life */

int delivery_open(struct core *c, struct ava_error *err)
{
	struct delivery *d = calloc(1, sizeof(*d));

	if (!d)
		return err_set(err, AVA_ENOMEM, "out of memory");
	c->delivery = d;
	d->core = c;
	d->seen = journal_lsn(c->journal, 0) - 1;
	list_init(&d->notices);
	list_init(&d->asks);
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		list_init(&d->queues[k]);
	os_task_init(&d->pump, delivery_pump);
	d->again = os_timer_new(c->loop, delivery_again, d);
	if (!d->again)
		return err_set(err, AVA_ENOMEM, "out of memory");
	d->cursor = ops_events_open(c, NULL, UINT64_MAX, delivery_wake, d, err);
	return d->cursor ? 0 : err->code;
}

int delivery_begin(struct core *c, struct ava_error *err)
{
	struct delivery *d = c->delivery;
	int rv = delivery_read_state(d, err);

	if (rv != 0)
		return rv;
	/* Write delivery.json once now: every lsn not listed as open counts as settled. */
	rv = delivery_commit(delivery_draft(d), NULL, NULL);
	delivery_wake(d);
	return rv == 0 ? 0 : err_set(err, rv, "out of memory");
}

bool delivery_idle(const struct core *c)
{
	const struct delivery *d = c->delivery;

	for (unsigned k = 0; d && k < DELIVERY_NCHANNELS; k++)
		if ((d->called & 1u << k) && d->open[k] > 0)
			return false;
	return true;
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
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		if (d->channels[k])
			channel_stop(d->channels[k]);
}

void delivery_close(struct core *c)
{
	struct delivery *d = c->delivery;

	if (!d)
		return;
	delivery_quiesce(c);
	while (!list_empty(&d->notices))
		delivery_settle(d, notice_in(d->notices.next, NOTICE_ALL), ~0u);
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		if (d->channels[k])
			channel_free(d->channels[k]);
	os_timer_free(d->again);
	free(d);
	c->delivery = NULL;
}
