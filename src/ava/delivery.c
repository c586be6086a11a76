/* Open notices, and the verbs of clients. Events are read from the feed, as by any reader: after
 * they are durable and readable, and without anybody waiting. A notice stays in the list until
 * every channel that wants it is done with it, and that is on disk: delivery.json says up to which
 * lsn all notices are settled but for those it names, which are open or still to come behind
 * younger events. It is written whole, without the channels in item.closing.
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

#define TEXT_CHARS 2000

#define STATE       "delivery.json"
#define STATE_MAX   ((size_t)4 << 20)
#define LOST_MS     86400000LL /* age of events taken as open when the state cannot be read */
#define TURN_EVENTS 256        /* events read in one turn of the loop */
#define AGAIN_MS    1000

/* By bit. */
static const struct {
	const char *name;
	bool talk; /* the bound is a conversation's */
	unsigned max;
	const char *who; /* for whom too many wait */
} delivery_channels[DELIVERY_NCHANNELS] = {
	{"terminal", true, DELIVERY_SESSION_MAX, "this conversation"},
	{"notify", false, DELIVERY_NOTIFY_MAX, "the command"},
	{"otel", false, DELIVERY_OTEL_MAX, "the collector"},
#define X(door, ...) {#door, true, DELIVERY_SESSION_MAX, "this conversation"},
	DOORS(X)
#undef X
};

/* ---- an Item as a notice: which are told later, to whom, and how many of a kind in a summary */

static const struct delivery_wish {
	enum item_kind kind;
	bool by_ava;            /* of Ava; else of a run, or of no matter whom */
	bool chats_only;        /* a terminal sees it in the stream of its conversation */
	const char *one, *many; /* in a summary */
} wishes[] = {
	{ITEM_result, false, false, "run finished", "runs finished"},
	{ITEM_failed, false, false, "run finished", "runs finished"},
	{ITEM_said, true, false, "message", "messages"},
	{ITEM_proposed, false, false, "proposal waits", "proposals wait"},
	{ITEM_asked, false, false, "run asks you", "runs ask you"},
	{ITEM_expired, false, false, "proposal expired", "proposals expired"},
	{ITEM_failed, true, true, "", ""},
	{ITEM_noted, true, true, "", ""},
	{ITEM_noted, false, true, "", ""},
	{ITEM_started, false, true, "", ""},
};

/* NULL: the Item is no notice. Of Asks that expire only a quote's is: a run goes on or ends. */
static const struct delivery_wish *delivery_wish_of(const struct item *it)
{
	if (it->kind == ITEM_expired && it->run[0])
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
		if (wishes[i].kind == it->kind && wishes[i].by_ava == it->by_ava)
			return &wishes[i];
	return NULL;
}

static void notice_free(struct notice *it)
{
	list_del(&it->node);
	free(it->json);
	free(it);
}

/* ---- the list */

void delivery_insert(struct delivery *d, struct notice *it)
{
	struct list *at = d->notices.prev;

	while (at != &d->notices && LIST_ENTRY(at, struct notice, node)->item.lsn > it->item.lsn)
		at = at->prev;
	list_insert(at->next, &it->node);
	d->nnotices++;
}

static struct notice *find_item(struct delivery *d, uint64_t lsn)
{
	LIST_EACH (&d->notices, n, tmp) {
		struct notice *it = LIST_ENTRY(n, struct notice, node);

		if (it->item.lsn == lsn)
			return it;
	}
	return NULL;
}

void delivery_settle(struct delivery *d, struct notice *it, unsigned channels)
{
	it->open &= ~channels;
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		if ((channels & 1u << k) && d->channels[k] && d->channels[k]->item == it)
			d->channels[k]->item = NULL;
	if (it->open)
		return;
	d->nnotices--;
	notice_free(it);
}

static void delivery_answered(struct delivery *d, const char *ask)
{
	LIST_EACH (&d->notices, n, tmp) {
		struct notice *it = LIST_ENTRY(n, struct notice, node);

		if ((it->item.kind == ITEM_proposed || it->item.kind == ITEM_asked) &&
		    strcmp(it->item.ask, ask) == 0)
			delivery_settle(d, it, ~0u);
	}
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
		list_init(&(*out)->node);
		(*out)->item = item;
		(*out)->cover = item.lsn;
		(*out)->json = buf_take(&json, NULL);
	}
	buf_fini(&json);
	return rv;
}

static bool is_for(const struct notice *it, const char *session, unsigned channels)
{
	return (it->open & channels) && (!session || strcmp(it->item.session, session) == 0);
}

unsigned delivery_count(const struct delivery *d, const char *session, unsigned channels,
			struct notice **oldest)
{
	unsigned n = 0;

	LIST_EACH (&d->notices, at, tmp) {
		struct notice *it = LIST_ENTRY(at, struct notice, node);

		if (is_for(it, session, channels) && n++ == 0 && oldest)
			*oldest = it;
	}
	return n;
}

/* ---- delivery.json */

static void put_open(struct jw *w, uint64_t lsn, unsigned open, unsigned attempts)
{
	jw_object(w, NULL);
	jw_int(w, "lsn", (int64_t)lsn);
	jw_array(w, "channels");
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		if (open & 1u << k)
			jw_str(w, NULL, delivery_channels[k].name);
	jw_end(w);
	jw_int(w, "attempts", attempts);
	jw_end(w);
}

/* An event still to come: if it is a notice, it is open for every channel that wants it. */
static void put_late(uint64_t lsn, void *w)
{
	put_open(w, lsn, ~0u, 0);
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
	jw_int(&w, "version", 1);
	jw_int(&w, "lsn", (int64_t)upto);
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		if (d->channels[k])
			jw_bool(&w, delivery_channels[k].name, true);
	jw_array(&w, "open");
	LIST_EACH (&d->notices, n, tmp) {
		const struct notice *it = LIST_ENTRY(n, struct notice, node);

		if ((it->open & ~it->closing) && it->item.lsn > 0)
			put_open(&w, it->item.lsn, it->open & ~it->closing,
				 it->tries[delivery_bit(DELIVERY_NOTIFY)].attempts);
	}
	ops_events_late(d->core, d->cursor, upto, put_late, &w);
	jw_end(&w);
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

void delivery_tell(struct delivery *d, struct draft *dr, unsigned channel, const struct notice *it,
		   int64_t left_out, const char *reason)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 65536);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "customType", left_out > 0 ? "delivery.left_out" : "delivery.gave_up");
	jw_object(&w, "data");
	jw_str(&w, "channel", delivery_channels[delivery_bit(channel)].name);
	jw_int(&w, "lsn", (int64_t)it->item.lsn);
	if (it->item.run[0])
		jw_str(&w, "subagentId", it->item.run);
	jw_int(&w, "attempts", it->tries[delivery_bit(channel)].attempts);
	if (left_out > 0)
		jw_int(&w, "rejectedSpans", left_out);
	jw_str(&w, "reason", reason);
	jw_end(&w);
	jw_end(&w);
	core_event(d->core, dr, EVENT_Custom, it->item.session, "", &b);
}

static void dropped(int rv, void *user)
{
	if (rv != 0)
		core_log(user,
			 "what was settled of notices was not written (%s): they may be told again",
			 ava_strerror(rv));
}

/* Gives up the oldest notice; the commit is not waited for. */
static void drop_oldest(struct delivery *d, unsigned channel, struct notice *it, const char *who)
{
	char why[60];
	struct draft *dr;

	snprintf(why, sizeof(why), "too many wait for %s", who);
	it->closing |= channel;
	dr = delivery_draft(d);
	if (dr)
		delivery_tell(d, dr, channel, it, 0, why);
	(void)delivery_commit(dr, dropped, d->core);
	if (d->channels[delivery_bit(channel)])
		d->channels[delivery_bit(channel)]->given_up++;
	delivery_settle(d, it, channel);
}

static void keep_bounds(struct delivery *d, const struct notice *fresh)
{
	struct notice *oldest = NULL;

	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		if ((fresh->open & 1u << k) &&
		    delivery_count(d, delivery_channels[k].talk ? fresh->item.session : NULL,
				   1u << k, &oldest) > delivery_channels[k].max)
			drop_oldest(d, 1u << k, oldest, delivery_channels[k].who);
	while (d->nnotices > DELIVERY_MAX) {
		oldest = LIST_FIRST(&d->notices, struct notice, node);
		drop_oldest(d, oldest->open & ~(oldest->open - 1), oldest, "all");
	}
}

/* ---- taking in */

/* The channel of the door whose user this is; 0: none. */
static unsigned door_of(const char *user)
{
	for (unsigned i = 0; i < DOORS_N; i++) {
		const char *name = delivery_channels[delivery_bit(DELIVERY_DOOR) + i].name;
		size_t len = strlen(name);

		if (strncmp(user, name, len) == 0 && user[len] == ':')
			return DELIVERY_DOOR << i;
	}
	return 0;
}

/* `set`: of the channels that are called, those that were set when the event came. */
static unsigned wanted_by(const struct delivery *d, const struct notice *it, unsigned set)
{
	bool known = it->item.session[0] && strmap_get(&d->core->session_by_id, it->item.session);
	unsigned chats = known ? door_of(it->item.user) : 0;
	bool ended = (it->item.kind == ITEM_result || it->item.kind == ITEM_failed) &&
		     id_is_run(it->item.run);

	if (delivery_wish_of(&it->item)->chats_only)
		return chats;
	set &= d->called & (DELIVERY_NOTIFY | (ended ? DELIVERY_OTEL : 0));
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
	keep_bounds(d, it);
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

/* Writes one line; "" without notices. Kinds of one word count together. */
static void summarize(char *out, size_t size, const struct delivery *d, const char *session)
{
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
		const char *one = wishes[i].one;
		unsigned count = 0;

		if (!*one || (i > 0 && strcmp(one, wishes[i - 1].one) == 0))
			continue;
		LIST_EACH (&d->notices, n, tmp) {
			const struct notice *it = LIST_ENTRY(n, struct notice, node);

			count += is_for(it, session, DELIVERY_TERMINAL) &&
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
	struct delivery *d = c->delivery;
	char summary[200] = "";
	uint64_t newest = 0;
	int rv = delivery_check(d, session, channel, err);

	if (rv != 0)
		return rv;
	LIST_EACH (&d->notices, n, tmp) {
		struct notice *it = LIST_ENTRY(n, struct notice, node);

		if (is_for(it, session, DELIVERY_TERMINAL))
			newest = it->item.lsn;
	}
	summarize(summary, sizeof(summary), d, session);
	jw_object(w, NULL);
	jw_str(w, "session_id", session);
	jw_str(w, "channel", channel);
	jw_str(w, "summary", summary);
	jw_int(w, "lsn", (int64_t)newest);
	jw_array(w, "items");
	LIST_EACH (&d->notices, n, tmp) {
		struct notice *it = LIST_ENTRY(n, struct notice, node);

		if (is_for(it, session, DELIVERY_TERMINAL)) {
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
	char session[64];
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

	LIST_EACH (&a->d->notices, at, tmp) {
		struct notice *it = LIST_ENTRY(at, struct notice, node);

		if (!is_for(it, a->session, DELIVERY_TERMINAL) ||
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
	a->done(rv, rv == 0 ? a->n : 0,
		rv == 0 ? delivery_count(a->d, a->session, DELIVERY_TERMINAL, NULL) : 0,
		rv == 0 ? NULL : &err, a->user);
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
	*a = (struct acking){.d = d, .lsn = lsn, .done = done, .user = user};
	snprintf(a->session, sizeof(a->session), "%s", session);
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
	const struct notice *spawn = NULL, *quote = NULL;
	const struct session *s;

	while (take_some(c->delivery))
		;
	LIST_EACH (&c->delivery->notices, n, tmp) {
		const struct notice *it = LIST_ENTRY(n, struct notice, node);

		if (!(it->open & ~it->closing & DELIVERY_DOOR << door) ||
		    strcmp(it->item.user, user) != 0)
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
		delivery_tell(c->delivery, dr, DELIVERY_DOOR << door, it, 0, reason);
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
	json_t *state; /* NULL: there is none, or it cannot be read */
	uint64_t lsn;  /* all notices up to this lsn are settled, but those in `state` */
	int64_t from_ms;
	unsigned set; /* channels that were called */
	bool no_memory;
};

static unsigned channels_of(const json_t *open, int64_t *attempts)
{
	const json_t *v;
	unsigned bits = 0;
	size_t i;

	*attempts = json_get_int(open, "attempts", 0);
	json_array_foreach(json_object_get(open, "channels"), i, v)
	{
		for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
			if (json_is_string(v) &&
			    strcmp(json_string_value(v), delivery_channels[k].name) == 0)
				bits |= 1u << k;
	}
	return bits;
}

/* Channels for which `state` has the notice open; 0: settled. */
static unsigned still_open(const struct delivery_reading *r, uint64_t lsn, int64_t *attempts)
{
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(r->state, "open"), i, v)
	{
		if (json_get_int(v, "lsn", -1) == (int64_t)lsn)
			return channels_of(v, attempts);
	}
	return 0;
}

static void take_logged(struct delivery_reading *r, const struct ava_log_event *e)
{
	struct delivery *d = r->d;
	struct notice *it = NULL;
	int64_t attempts = 0;
	unsigned wanted;
	int rv;

	rv = notice_make(d, e->line, e->len, &it);
	r->no_memory = r->no_memory || rv == AVA_ENOMEM;
	if (rv != 0)
		return;
	wanted = wanted_by(d, it, r->set);
	it->open = it->item.lsn > r->lsn ? wanted : wanted & still_open(r, it->item.lsn, &attempts);
	it->tries[delivery_bit(DELIVERY_NOTIFY)].attempts =
		(unsigned)MIN(MAX(attempts, INT64_C(0)), INT64_C(1000000));
	if (it->open)
		delivery_insert(d, it);
	else
		notice_free(it);
}

static void read_logs(struct delivery_reading *r)
{
	const json_t *open = json_object_get(r->state, "open"), *v;
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
	size_t i;
	int rv;

	json_array_foreach(open, i, v) q.after =
		MIN(q.after, (uint64_t)json_get_int(v, "lsn", INT64_MAX) - 1);
	clock_iso(r->from_ms, since);
	if (ava_log_open(&log, &q, NULL) != 0)
		return; /* no daily log yet */
	while ((rv = ava_log_next(log, &e, NULL)) == 1 || rv == AVA_ECORRUPT)
		if (rv == 1)
			take_logged(r, &e);
	ava_log_close(log);
}

/* Without a state, as in a new root, nothing is open; with an unreadable one the notices of the
 * last day are: rather twice than never. */
static int delivery_read_state(struct delivery *d, struct ava_error *err)
{
	struct delivery_reading r = {
		.d = d, .set = ~0u, .from_ms = clock_wall_ms() - DELIVERY_AGE_MS};
	struct ava_error why = {0};
	char *text = NULL;
	size_t len = 0;
	int rv = sys_read_file(d->core->root_fd, STATE, STATE_MAX, &text, &len, &why);

	if (rv == AVA_ENOENT)
		return 0;
	r.state = rv == 0 ? json_parse(text, len, &why) : NULL;
	free(text);
	if (json_get_int(r.state, "version", 1) > 1) {
		json_decref(r.state);
		return err_set(err, AVA_EFORMAT, STATE " was written by a newer ava: use that one");
	}
	if (json_get_int(r.state, "lsn", -1) >= 0) {
		r.lsn = d->settled = (uint64_t)json_get_int(r.state, "lsn", 0);
		for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
			if (!json_get_bool(r.state, delivery_channels[k].name, false))
				r.set &= ~(1u << k);
	} else {
		core_log(d->core, STATE " cannot be read, what it settled may be told again: %s",
			 why.text[0] ? why.text : "it has no lsn");
		r.from_ms = clock_wall_ms() - LOST_MS;
	}
	read_logs(&r);
	json_decref(r.state);
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
	if (d->nnotices > DELIVERY_MAX)
		core_log(c, "%u notices were never acknowledged: the oldest are given up",
			 d->nnotices);
	while (d->nnotices > DELIVERY_MAX)
		delivery_settle(d, LIST_FIRST(&d->notices, struct notice, node), ~0u);
	/* Write delivery.json once now: every lsn not listed as open counts as settled. */
	rv = delivery_commit(delivery_draft(d), dropped, c);
	delivery_wake(d);
	return rv == 0 ? 0 : err_set(err, rv, "out of memory");
}

bool delivery_idle(const struct core *c)
{
	const struct delivery *d = c->delivery;

	return !d || delivery_count(d, NULL, d->called, NULL) == 0;
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
		notice_free(LIST_FIRST(&d->notices, struct notice, node));
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		if (d->channels[k])
			channel_free(d->channels[k]);
	os_timer_free(d->again);
	free(d);
	c->delivery = NULL;
}
