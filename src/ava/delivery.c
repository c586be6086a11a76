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

#define TITLE_MAX      1200
#define QUESTION_SHOWN 150 /* characters of a question in the title */

/* ---- an event as a notice: title and text for people, ids for programs. Text of models and tools
 * is data: it is cut, and characters that move a cursor or turn a line around become visible text
 * here, once, for all channels. */

static const struct {
	const char *type, *text; /* the notice's event, and the event's member with the text */
	const char *one, *many;  /* words of a summary, for one notice and for many */
} kinds[ITEM_NKINDS] = {
	[ITEM_RESULT] = {"SubagentComplete", "summary", "run finished", "runs finished"},
	[ITEM_MESSAGE] = {"AssistantMessage", "text", "message", "messages"},
	/* SpawnProposed has its text in "config". */
	[ITEM_PROPOSAL] = {"SpawnProposed", "task", "proposal waits", "proposals wait"},
	[ITEM_QUESTION] = {"Waiting", "question", "run asks you", "runs ask you"},
	[ITEM_EXPIRED] = {"SpawnExpired", "", "proposal expired", "proposals expired"},
	/* A terminal gets no notices of these two, so they have no words for a summary. */
	[ITEM_FAILED] = {"Error", "message", "", ""},
	[ITEM_SPAWN] = {"SubagentSpawn", "task", "", ""},
};

static int delivery_kind_of(const char *type)
{
	for (int i = 0; i < ITEM_NKINDS; i++)
		if (strcmp(kinds[i].type, type) == 0)
			return i;
	return -1;
}

void item_free(struct item *it)
{
	list_del(&it->node);
	free(it->json);
	free(it);
}

static void make_title(const struct item *it, const json_t *event, char out[TITLE_MAX])
{
	const json_t *c = json_object_get(event, "content");
	const char *question = json_str(c, "question");
	char run[100], asked[4 * QUESTION_SHOWN + 1];

	snprintf(run, sizeof(run), "%.30s (%.60s)", json_str(c, "subagentId"),
		 json_str(event, "traceId"));
	switch (it->kind) {
	case ITEM_RESULT:
		snprintf(out, TITLE_MAX, WORDS_HAS_ENDED(run, words_status(json_str(c, "status"))));
		return;
	case ITEM_PROPOSAL:
		snprintf(out, TITLE_MAX, WORDS_WAITS(it->key, ""));
		return;
	case ITEM_EXPIRED:
		snprintf(out, TITLE_MAX, WORDS_EXPIRED(it->key));
		return;
	case ITEM_QUESTION:
		snprintf(asked, sizeof(asked), "%.*s",
			 (int)utf8_prefix(question, strlen(question), QUESTION_SHOWN), question);
		snprintf(out, TITLE_MAX, WORDS_ASKS("", run, asked));
		return;
	case ITEM_FAILED:
		snprintf(out, TITLE_MAX,
			 WORDS_CANNOT(json_str(c, "class"), json_str(c, "message")));
		return;
	default:
		snprintf(out, TITLE_MAX, "Ava");
	}
}

/* Writes how the question can be answered. */
static void delivery_write_question(struct jw *w, const json_t *c)
{
	const json_t *choices = json_object_get(c, "choices");
	struct buf b;

	jw_str(w, "call_id", json_str(c, "callId"));
	jw_str(w, "kind", json_str(c, "kind"));
	buf_init(&b, 1u << 17);
	if (json_array_size(choices) > 0 && json_dump(&b, choices) == 0)
		jw_raw(w, "choices", b.data, b.len);
	buf_fini(&b);
}

static void delivery_write_item(struct jw *w, const struct item *it, const json_t *event)
{
	const json_t *c = json_object_get(event, "content");
	const json_t *of = it->kind == ITEM_PROPOSAL ? json_object_get(c, "config") : c;
	const char *text = json_str(of, kinds[it->kind].text);
	size_t len = strlen(text), keep = utf8_prefix(text, len, EVENT_PREVIEW_CHARS);
	char title[TITLE_MAX];
	struct buf clean;

	make_title(it, event, title);
	jw_object(w, NULL);
	jw_int(w, "lsn", (int64_t)it->lsn);
	jw_str(w, "type", kinds[it->kind].type);
	jw_str(w, "time", json_str(event, "timestamp"));
	jw_str(w, "session_id", it->session);
	jw_str(w, "run_id", json_str(c, "subagentId"));
	jw_str(w, "trace_id", json_str(event, "traceId"));
	jw_str(w, "proposal_id", it->kind == ITEM_QUESTION ? "" : it->key);
	if (it->kind == ITEM_QUESTION)
		delivery_write_question(w, c);
	jw_str(w, "status", it->kind == ITEM_RESULT ? json_str(c, "status") : "");
	buf_init(&clean, 1u << 16);
	(void)utf8_terminal(&clean, title, strlen(title), false);
	jw_strn(w, "title", clean.data ? clean.data : "", clean.len);
	buf_reset(&clean);
	(void)utf8_terminal(&clean, text, keep, true);
	jw_strn(w, "text", clean.data ? clean.data : "", clean.len);
	if (keep < len || json_get_bool(c, "cut", false))
		jw_bool(w, "cut", true);
	jw_end(w);
	if (buf_check(&clean) != 0)
		w->out->failed = true;
	buf_fini(&clean);
}

/* The key of a question; false: no question. */
static bool make_key(char key[ITEM_KEY], const char *run, const char *call)
{
	return run[0] && call[0] && snprintf(key, ITEM_KEY, "%s:%s", run, call) < ITEM_KEY;
}

/* Fills the fields beside the text. false: the event lacks some. */
static bool delivery_fill(struct item *it, const json_t *event)
{
	const json_t *c = json_object_get(event, "content");
	const char *proposal = json_str(c, "proposalId"), *session = json_str(event, "sessionId");
	const char *time = json_str(event, "timestamp");
	int64_t lsn = json_get_int(event, "lsn", 0);
	bool wants_id = it->kind == ITEM_PROPOSAL || it->kind == ITEM_EXPIRED;

	if (lsn <= 0 ||
	    (it->kind == ITEM_FAILED && strcmp(json_str(event, "agentId"), "ava") != 0) ||
	    (wants_id && !id_is_proposal(proposal)) || strlen(session) >= sizeof(it->session) ||
	    (it->kind == ITEM_QUESTION &&
	     !make_key(it->key, json_str(c, "subagentId"), json_str(c, "callId"))))
		return false;
	it->lsn = it->cover = (uint64_t)lsn;
	it->wall_ms = MAX(clock_parse_iso(time, strlen(time)), 0);
	snprintf(it->session, sizeof(it->session), "%s", session);
	snprintf(it->user, sizeof(it->user), "%s", json_str(event, "userId"));
	if (wants_id)
		snprintf(it->key, sizeof(it->key), "%s", proposal);
	return true;
}

static int delivery_make(struct item **out, int kind, const json_t *event)
{
	struct item *it = calloc(1, sizeof(*it));
	struct buf b;
	struct jw w;
	int rv = AVA_ENOENT;

	if (!it)
		return AVA_ENOMEM;
	list_init(&it->node);
	it->kind = (enum item_kind)kind;
	buf_init(&b, 1u << 18);
	if (delivery_fill(it, event)) {
		jw_init(&w, &b);
		delivery_write_item(&w, it, event);
		it->json = buf_take(&b, NULL);
		rv = it->json ? 0 : AVA_ENOMEM;
	}
	buf_fini(&b);
	if (rv == 0)
		*out = it;
	else
		item_free(it);
	return rv;
}

static bool is_asked(const json_t *event)
{
	return strcmp(json_str(json_object_get(event, "content"), "state"), "asked") == 0;
}

int item_from_event(struct item **out, const char *type, const char *line, size_t len)
{
	int kind = delivery_kind_of(type), rv;
	json_t *event;

	if (kind < 0)
		return AVA_ENOENT;
	event = json_parse(line, len, NULL);
	rv = !event || (kind == ITEM_QUESTION && !is_asked(event))
		     ? AVA_ENOENT
		     : delivery_make(out, kind, event);
	json_decref(event);
	return rv;
}

bool item_answers(const char *type, const char *line, size_t len, char key[ITEM_KEY])
{
	bool waiting = strcmp(type, "Waiting") == 0, answers;
	const json_t *c;
	json_t *event;

	if (!waiting && strcmp(type, "SpawnConfirmed") != 0 && strcmp(type, "SpawnRejected") != 0 &&
	    strcmp(type, "SpawnExpired") != 0)
		return false;
	event = json_parse(line, len, NULL);
	c = json_object_get(event, "content");
	if (waiting)
		answers = !is_asked(event) &&
			  make_key(key, json_str(c, "subagentId"), json_str(c, "callId"));
	else
		answers = snprintf(key, ITEM_KEY, "%s", json_str(c, "proposalId")) > 0;
	json_decref(event);
	return answers;
}

#define STATE       "delivery.json"
#define STATE_MAX   ((size_t)4 << 20)
#define LOST_MS     86400000LL /* age of events taken as open when the state cannot be read */
#define TURN_EVENTS 256        /* events read in one turn of the loop */
#define AGAIN_MS    1000

/* Names by bit. */
static const char *const channel_names[DELIVERY_NCHANNELS] = {"terminal", "notify", "telegram"};

/* ---- the list */

static void insert_item(struct delivery *d, struct item *it)
{
	struct list *at = d->items.prev;

	while (at != &d->items && LIST_ENTRY(at, struct item, node)->lsn > it->lsn)
		at = at->prev;
	list_insert(at->next, &it->node);
	d->nitems++;
}

static struct item *find_item(struct delivery *d, uint64_t lsn)
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

static void delivery_answered(struct delivery *d, const char *key)
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
static unsigned delivery_count(const struct delivery *d, const char *session, unsigned channel,
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

/* ---- delivery.json */

static void put_open(struct jw *w, uint64_t lsn, unsigned open, unsigned attempts)
{
	jw_object(w, NULL);
	jw_int(w, "lsn", (int64_t)lsn);
	jw_array(w, "channels");
	for (unsigned k = 0; k < DELIVERY_NCHANNELS; k++)
		if (open & 1u << k)
			jw_str(w, NULL, channel_names[k]);
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
	jw_bool(&w, "notify", d->notify != NULL);
	if (d->pushed > 0)
		jw_int(&w, "pushed", (int64_t)d->pushed);
	jw_array(&w, "open");
	LIST_EACH (&d->items, n, tmp) {
		const struct item *it = LIST_ENTRY(n, struct item, node);

		if (it->open & ~it->closing)
			put_open(&w, it->lsn, it->open & ~it->closing, it->attempts);
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

void delivery_gave_up(struct delivery *d, struct draft *dr, unsigned channel, const struct item *it,
		      const char *reason)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 65536);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "customType", "delivery.gave_up");
	jw_object(&w, "data");
	jw_str(&w, "channel", channel_names[__builtin_ctz(channel)]);
	jw_int(&w, "lsn", (int64_t)it->lsn);
	jw_int(&w, "attempts", it->attempts);
	jw_str(&w, "reason", reason);
	jw_end(&w);
	jw_end(&w);
	core_event(d->core, dr, EVENT_Custom, it->session, "", &b);
}

static void dropped(int rv, void *user)
{
	if (rv != 0)
		core_log(user,
			 "what was settled of notices was not written (%s): they may be told again",
			 ava_strerror(rv));
}

/* Gives up the oldest notice; the commit is not waited for. */
static void drop_oldest(struct delivery *d, unsigned channel, struct item *it, const char *why)
{
	struct draft *dr;

	it->closing |= channel;
	dr = delivery_draft(d);
	if (dr)
		delivery_gave_up(d, dr, channel, it, why);
	(void)delivery_commit(dr, dropped, d->core);
	delivery_settle(d, it, channel);
}

static void keep_bounds(struct delivery *d, const struct item *fresh)
{
	static const unsigned talks[] = {DELIVERY_TERMINAL, DELIVERY_TELEGRAM};
	struct item *oldest = NULL;

	for (size_t i = 0; i < ARRAY_LEN(talks); i++)
		if ((fresh->open & talks[i]) &&
		    delivery_count(d, fresh->session, talks[i], &oldest) > DELIVERY_SESSION_MAX)
			drop_oldest(d, talks[i], oldest, "too many wait for this conversation");
	if (d->notify && delivery_count(d, NULL, DELIVERY_NOTIFY, &oldest) > DELIVERY_NOTIFY_MAX)
		drop_oldest(d, DELIVERY_NOTIFY, oldest, "too many wait for the command");
	while (d->nitems > DELIVERY_MAX) {
		oldest = LIST_FIRST(&d->items, struct item, node);
		drop_oldest(d, oldest->open & ~(oldest->open - 1), oldest, "too many wait");
	}
}

/* ---- taking in */

/* `notify`: a command was set when the event came. */
static unsigned wanted_by(const struct delivery *d, const struct item *it, bool notify)
{
	bool known = it->session[0] && strmap_get(&d->core->session_by_id, it->session);
	bool chat = strncmp(it->user, DELIVERY_TELEGRAM_USER, strlen(DELIVERY_TELEGRAM_USER)) == 0;
	unsigned chats = known && chat ? DELIVERY_TELEGRAM : 0;

	if (it->kind == ITEM_FAILED || it->kind == ITEM_SPAWN)
		return chats;
	return (known ? DELIVERY_TERMINAL : 0) | chats |
	       (d->notify && notify ? DELIVERY_NOTIFY : 0);
}

static void delivery_take_notice(struct delivery *d, const char *type, const struct op_event *e)
{
	struct item *it;

	if (item_from_event(&it, type, e->line, e->line_len) != 0)
		return;
	it->open = wanted_by(d, it, true);
	if (!it->open || find_item(d, it->lsn)) {
		item_free(it);
		return;
	}
	if (it->lsn < d->seen)
		it->cover = d->seen + 1;
	insert_item(d, it);
	if ((it->open & DELIVERY_TELEGRAM) && d->watch)
		d->watch(d->watch_user);
	keep_bounds(d, it);
}

static void delivery_take(struct delivery *d, const struct op_event *e)
{
	char type[40], key[ITEM_KEY];

	if (e->type_len < sizeof(type)) {
		snprintf(type, sizeof(type), "%.*s", (int)e->type_len, e->type);
		if (item_answers(type, e->line, e->line_len, key))
			delivery_answered(d, key);
		delivery_take_notice(d, type, e);
	}
	d->seen = MAX(d->seen, e->lsn);
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
	if (d->notify)
		notify_pump(d);
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

/* Writes one line; "" without notices. */
static void summarize(char *out, size_t size, const unsigned by_kind[ITEM_NKINDS])
{
	size_t len = 0;

	for (int i = 0; i < ITEM_NKINDS; i++)
		if (by_kind[i] > 0)
			len += (size_t)snprintf(out + len, size - len, "%s%u %s",
						len > 0 ? ", " : "", by_kind[i],
						by_kind[i] == 1 ? kinds[i].one : kinds[i].many);
	if (len > 0)
		snprintf(out + len, size - len, " while you were away");
}

int ops_unseen(struct core *c, const char *session, const char *channel, struct jw *w,
	       struct ava_error *err)
{
	struct delivery *d = c->delivery;
	unsigned by_kind[ITEM_NKINDS] = {0};
	char summary[200] = "";
	uint64_t newest = 0;
	int rv = delivery_check(d, session, channel, err);

	if (rv != 0)
		return rv;
	LIST_EACH (&d->items, n, tmp) {
		struct item *it = LIST_ENTRY(n, struct item, node);

		if (is_for(it, session, DELIVERY_TERMINAL)) {
			by_kind[it->kind]++;
			newest = it->lsn;
		}
	}
	summarize(summary, sizeof(summary), by_kind);
	jw_object(w, NULL);
	jw_str(w, "session_id", session);
	jw_str(w, "channel", channel);
	jw_str(w, "summary", summary);
	jw_int(w, "lsn", (int64_t)newest);
	jw_array(w, "items");
	LIST_EACH (&d->items, n, tmp) {
		struct item *it = LIST_ENTRY(n, struct item, node);

		if (is_for(it, session, DELIVERY_TERMINAL)) {
			it->cover = it->lsn;
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

	LIST_EACH (&a->d->items, at, tmp) {
		struct item *it = LIST_ENTRY(at, struct item, node);

		if (!is_for(it, a->session, DELIVERY_TERMINAL) ||
		    (a->lsn < it->cover && a->lsn != it->lsn))
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

/* ---- the door of a messenger */

void delivery_watch(struct core *c, void (*fresh)(void *user), void *user)
{
	c->delivery->watch = fresh;
	c->delivery->watch_user = user;
}

void delivery_talked(struct core *c)
{
	if (c->delivery && c->delivery->watch)
		c->delivery->watch(c->delivery->watch_user);
}

const struct item *delivery_next(struct core *c, const char *user)
{
	const struct item *spawn = NULL, *quote = NULL;
	const struct session *s;

	while (take_some(c->delivery))
		;
	LIST_EACH (&c->delivery->items, n, tmp) {
		const struct item *it = LIST_ENTRY(n, struct item, node);

		if (!(it->open & ~it->closing & DELIVERY_TELEGRAM) || strcmp(it->user, user) != 0)
			continue;
		if (it->kind == ITEM_SPAWN)
			spawn = spawn ? spawn : it;
		else if (it->kind != ITEM_PROPOSAL)
			return it;
		/* A quote waits for the words with which Ava introduces it. */
		s = strmap_get(&c->session_by_id, it->session);
		if (it->kind == ITEM_PROPOSAL && !quote && !(s && s->talk && s->talk->busy))
			quote = it;
	}
	return quote ? quote : spawn;
}

bool delivery_showing(struct core *c, struct draft *dr, uint64_t lsn, const char *reason)
{
	struct item *it = find_item(c->delivery, lsn);

	if (!it)
		return false;
	it->closing |= DELIVERY_TELEGRAM | (reason ? 0 : DELIVERY_TERMINAL);
	put_state(c->delivery, dr);
	if (reason)
		delivery_gave_up(c->delivery, dr, DELIVERY_TELEGRAM, it, reason);
	return true;
}

void delivery_shown(struct core *c, uint64_t lsn, bool written)
{
	struct item *it = find_item(c->delivery, lsn);

	if (it && written)
		delivery_settle(c->delivery, it, it->closing & ~DELIVERY_NOTIFY);
	else if (it)
		it->closing &= ~(DELIVERY_TELEGRAM | DELIVERY_TERMINAL);
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
	bool notify, no_memory;
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
			    strcmp(json_string_value(v), channel_names[k]) == 0)
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
	char key[ITEM_KEY];
	struct item *it = NULL;
	int64_t attempts = 0;
	unsigned wanted;
	int rv;

	if (item_answers(e->type, e->line, e->len, key))
		delivery_answered(d, key);
	if (e->time_ms < r->from_ms)
		return;
	rv = item_from_event(&it, e->type, e->line, e->len);
	r->no_memory = r->no_memory || rv == AVA_ENOMEM;
	if (rv != 0)
		return;
	wanted = wanted_by(d, it, r->notify);
	it->open = it->lsn > r->lsn ? wanted : wanted & still_open(r, it->lsn, &attempts);
	it->attempts = (unsigned)MIN(MAX(attempts, INT64_C(0)), INT64_C(1000000));
	if (it->open)
		insert_item(d, it);
	else
		item_free(it);
}

static void read_logs(struct delivery_reading *r)
{
	const json_t *open = json_object_get(r->state, "open"), *v;
	struct ava_log_query q = {
		.root = r->d->core->root,
		.types = "AssistantMessage,SubagentComplete,SpawnProposed,SpawnConfirmed,"
			 "SpawnRejected,SpawnExpired,Waiting,Error,SubagentSpawn",
		.after = r->lsn,
	};
	struct ava_log_event e;
	struct ava_log *log;
	size_t i;
	int rv;

	json_array_foreach(open, i, v) q.after =
		MIN(q.after, (uint64_t)json_get_int(v, "lsn", INT64_MAX) - 1);
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
		.d = d, .notify = true, .from_ms = clock_wall_ms() - DELIVERY_AGE_MS};
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
		r.notify = json_get_bool(r.state, "notify", false);
		d->pushed = (uint64_t)json_get_int(r.state, "pushed", 0);
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

int delivery_open(struct core *c, const char *notify, struct ava_error *err)
{
	struct delivery *d = calloc(1, sizeof(*d));
	int rv;

	if (!d)
		return err_set(err, AVA_ENOMEM, "out of memory");
	c->delivery = d;
	d->core = c;
	d->seen = journal_lsn(c->journal, 0) - 1;
	list_init(&d->items);
	os_task_init(&d->pump, delivery_pump);
	d->again = os_timer_new(c->loop, delivery_again, d);
	if (!d->again)
		return err_set(err, AVA_ENOMEM, "out of memory");
	d->cursor = ops_events_open(c, NULL, UINT64_MAX, delivery_wake, d, err);
	if (!d->cursor)
		return err->code;
	rv = notify ? notify_open(d, notify, err) : 0;
	if (rv == 0)
		rv = delivery_read_state(d, err);
	if (rv != 0)
		return rv;
	if (d->nitems > DELIVERY_MAX)
		core_log(c, "%u notices were never acknowledged: the oldest are given up",
			 d->nitems);
	while (d->nitems > DELIVERY_MAX)
		delivery_settle(d, LIST_FIRST(&d->items, struct item, node), ~0u);
	/* Write delivery.json once now: every lsn not listed as open counts as settled. */
	rv = delivery_commit(delivery_draft(d), dropped, c);
	delivery_wake(d);
	return rv == 0 ? 0 : err_set(err, rv, "out of memory");
}

bool delivery_idle(const struct core *c)
{
	const struct delivery *d = c->delivery;

	return !d || !d->notify || delivery_count(d, NULL, DELIVERY_NOTIFY, NULL) == 0;
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
