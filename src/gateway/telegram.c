/* See telegram.h.
 *
 *   getUpdates ─► an update ─► a verb ─► telegram.json ─► the next one, at last getUpdates again
 *   notices (ava/delivery.h), cards ─► a chat's line ─► sendMessage ─► telegram.json, delivery.json
 *
 * Updates are carried out one at a time. The service is told that it may forget one (by the
 * offset of the next getUpdates) only when its effect and then our state are on disk. One that
 * comes again after a crash has the request id that it had, so that the verb gives the answer it
 * gave; a press of a button finds what it asks for answered. A notice is settled in the commit
 * that keeps its card, when its last message was taken: a crash in between repeats the notice, with
 * the same id, and never loses it.
 *
 * Cards are not kept up to date by events: a due card (a quote, the line of a run) asks its verb
 * for the present state, and is edited when its text would differ. So a restart has nothing to
 * catch up with.
 *
 * What can fail: the service, in the ways of enum tg_verdict; the disk (the update waits); memory
 * (later); a person who blocks the bot (nothing is sent until they write). A stranger gets no
 * answer and has no effect but tries at a code, while one is open. */
#include "gateway/telegram.h"

#include <ava.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/delivery.h"
#include "ava/ops.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "gateway/telegram_door.h"

#define UPDATES_MAX 40 /* updates in an answer: all parts of a text fit */

static const char *const state_names[DOOR_NSTATES] = {"starting", "serving", "not listening",
						      "closed"};

void tg_wake(void *user)
{
	struct telegram *t = user;

	os_defer(t->core->loop, &t->pump);
}

int64_t tg_now(const struct telegram *t)
{
	return os_now_ms(t->core->loop);
}

/* ---- how the door is */

void tg_log(struct telegram *t, const char *fmt, ...)
{
	char line[600] = "telegram: ";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + strlen(line), sizeof(line) - strlen(line), fmt, ap);
	va_end(ap);
	t->log(line, t->log_user);
}

/* "": there is none. */
static void problem(struct telegram *t, const char *why)
{
	if (strcmp(t->problem, why) != 0 && why[0])
		tg_log(t, "%s", why);
	snprintf(t->problem, sizeof(t->problem), "%.300s", why);
}

void tg_close(struct telegram *t, enum tg_door state, const char *why)
{
	t->state = state;
	problem(t, why);
}

static void write_state(struct jw *w, void *user)
{
	const struct telegram *t = user;

	jw_str(w, "state", state_names[t->state]);
	jw_str(w, "bot", t->name);
	jw_str(w, "problem", t->problem);
	jw_array(w, "paired");
	for (size_t i = 0; i < TG_CHATS_MAX; i++) {
		const struct tg_chat *c = &t->kept.chats[i];

		if (c->id == 0)
			continue;
		jw_object(w, NULL);
		jw_int(w, "id", c->id);
		jw_str(w, "name", c->name);
		jw_str(w, "cwd", c->cwd);
		jw_str(w, "session_id", c->session);
		jw_bool(w, "blocked", c->blocked);
		jw_end(w);
	}
	jw_end(w);
}

static void tell_state(struct telegram *t, struct verb_reply *reply, const struct ava_error *err,
		       const char *code)
{
	struct verb_answer a;

	if (!verb_begin(&a, reply, err->code, err))
		return;
	jw_object(&a.w, NULL);
	write_state(&a.w, t);
	if (code) {
		jw_str(&a.w, "code", code);
		jw_int(&a.w, "seconds", TG_CODE_MS / 1000);
	}
	verb_send(&a, 200);
}

/* ---- the state, on disk */

static struct tg_chat *line_told(struct telegram *t)
{
	for (size_t i = 0; i < TG_CHATS_MAX; i++)
		if (t->kept.chats[i].told)
			return &t->kept.chats[i];
	return NULL;
}

/* Answer an unpairing: it is on disk, or may not last. */
static void unpaired(struct telegram *t, int rv)
{
	struct ava_error err = {0};

	if (rv != 0)
		err_set(&err, rv, "it could not be saved (%s): ask again", ava_strerror(rv));
	tell_state(t, t->unpairing, &err, NULL);
	t->unpairing = NULL;
}

static void telegram_saved(int rv, void *user)
{
	struct tg_saving *s = user;
	struct telegram *t = s->t;
	struct tg_chat *l = t ? line_told(t) : NULL;

	if (!t) {
		free(s);
		return;
	}
	s->busy = false;
	if (s->lsn > 0)
		delivery_shown(t->core, s->lsn, rv == 0);
	if (l && l->telling == s->lsn && rv == 0)
		tg_told_over(l);
	if (rv != 0) {
		t->dirty = true;
		t->save_due_ms = tg_now(t) + TG_DISK_MS;
	}
	if (t->unpairing && (rv != 0 || !t->dirty))
		unpaired(t, rv);
	tg_wake(t);
}

/* Write a changed state to disk, and settle a notice that was told in the same commit. */
static void save(struct telegram *t)
{
	struct tg_chat *l = line_told(t);
	struct draft *d;
	struct buf *part;
	int rv;

	if ((!t->dirty && !l) || t->saving->busy || tg_now(t) < t->save_due_ms)
		return;
	t->saving->busy = true;
	t->saving->lsn = 0;
	t->dirty = false;
	d = draft_new(&t->core->book);
	part = d ? draft_part(d, DRAFT_PUT, TG_STATE) : NULL;
	if (part)
		tg_state_write(&t->kept, part);
	if (d && l) {
		if (delivery_showing(t->core, d, l->telling, l->reason[0] ? l->reason : NULL))
			t->saving->lsn = l->telling;
		else /* the notice was answered already */
			tg_told_over(l);
	}
	rv = d ? draft_commit(d, JOURNAL_NOW, telegram_saved, t->saving, NULL) : AVA_ENOMEM;
	if (rv != 0)
		telegram_saved(rv, t->saving);
}

/* ---- verbs */

static void telegram_answered(struct verb_reply *reply, int status, const struct buf *json,
			      const struct ava_error *err)
{
	struct tg_asking *a = CONTAINER_OF(reply, struct tg_asking, reply);
	json_t *answer = a->t && json ? json_parse(json->data, json->len, NULL) : NULL;

	list_del(&a->node);
	a->status = answer || !json ? status : 500;
	a->answer = answer;
	a->why = !json    ? err->text
		 : answer ? json_str(json_object_get(answer, "error"), "message")
			  : "out of memory";
	if (a->t)
		a->then(a->t, a);
	json_decref(answer);
	free(a);
}

void tg_ask(struct telegram *t, const struct tg_asking *like, const char *method, json_t *args,
	    const char *path_fmt, ...)
{
	struct caller caller = {.channel = "telegram", .trust = CALLER_OWNER};
	struct tg_asking *a = malloc(sizeof(*a)), failed = *like;
	char path[200], id[64], allowed[64];
	const struct verb *verb;
	va_list ap;

	va_start(ap, path_fmt);
	vsnprintf(path, sizeof(path), path_fmt, ap);
	va_end(ap);
	verb = verbs_find(method, path, id, allowed);
	if (!a || !verb) {
		free(a);
		failed.status = verb ? 500 : 404;
		failed.why = verb ? "out of memory" : "there is no such thing";
		like->then(t, &failed);
	} else {
		*a = *like;
		a->reply = (struct verb_reply){.done = telegram_answered};
		a->t = t;
		a->reads = strcmp(method, "GET") == 0;
		list_add(&t->askings, &a->node);
		snprintf(a->user, sizeof(a->user), DELIVERY_TELEGRAM_USER "%" PRId64, a->chat);
		caller.user = a->user;
		verbs_call(t->core, verb, &caller, id, args, &a->reply);
	}
	json_decref(args);
}

/* ---- listening */

static void polled(struct tg_call *call, const struct tg_answer *a)
{
	struct telegram *t = call->user;

	tg_wake(t);
	if (a->verdict == TG_CONFLICT || a->verdict == TG_REVOKED) {
		tg_close(t, a->verdict == TG_CONFLICT ? DOOR_DEAF : DOOR_CLOSED, a->why);
		return;
	}
	problem(t, a->why);
	if (a->verdict != TG_OK)
		return;
	if (t->state == DOOR_STARTING) {
		snprintf(t->name, sizeof(t->name), "%s", json_str(a->result, "username"));
		t->state = DOOR_SERVING;
		return;
	}
	t->updates = json_incref((json_t *)a->result);
	t->at = 0;
}

static void listen_on(struct telegram *t, int64_t *next_ms)
{
	int64_t offset = tg_offset(&t->kept, clock_wall_ms()), now = tg_now(t);
	bool starting = t->state == DOOR_STARTING;
	struct buf body;
	json_t *args;

	if (t->poll.busy || t->updates || t->hand.busy || !tg_kept(t) || t->state > DOOR_SERVING)
		return;
	/* A service that answers polls at once, or with old updates, is not asked without a
	 * pause. */
	if (t->asked == offset)
		t->poll.next_ms = MAX(t->poll.next_ms, t->poll_began_ms + TG_PAUSE_MS);
	if (now < t->poll.next_ms) {
		*next_ms = MIN(*next_ms, t->poll.next_ms);
		return;
	}
	t->poll_began_ms = now;
	t->asked = starting ? -1 : offset;
	args = starting ? json_object()
			: json_pack("{s:I,s:i,s:i,s:[ss]}", "offset", (json_int_t)offset, "timeout",
				    t->split.until_ms > 0 ? 0 : TG_POLL_S, "limit", UPDATES_MAX,
				    "allowed_updates", "message", "callback_query");
	buf_init(&body, 4096);
	if (!args || json_dump(&body, args) != 0)
		body.failed = true;
	if (!tg_call(t->api, &t->poll, starting ? "getMe" : "getUpdates", &body, ""))
		*next_ms = MIN(*next_ms, t->poll.next_ms);
	json_decref(args);
	buf_fini(&body);
}

/* ---- the next step */

static void telegram_pump(struct os_task *task)
{
	struct telegram *t = CONTAINER_OF(task, struct telegram, pump);
	int64_t next = INT64_MAX, now = tg_now(t);

	save(t);
	if (t->state != DOOR_CLOSED) {
		tg_take_updates(t);
		save(t);
		listen_on(t, &next);
		tg_show(t, &next);
	}
	if (t->save_due_ms > now && (t->dirty || line_told(t)))
		next = MIN(next, t->save_due_ms);
	if (t->hand.due_ms > now)
		next = MIN(next, t->hand.due_ms);
	if (next != INT64_MAX)
		os_timer_set(t->timer, MAX(next - now, INT64_C(0)));
}

/* ---- the verb */

static int unpair(struct telegram *t, int64_t id, struct ava_error *err)
{
	struct tg_chat *c = tg_chat(&t->kept, id);

	/* A person unpaired just now may still be paired on disk. */
	if (!c && !tg_kept(t)) {
		tg_wake(t); /* write the state again at once */
		return 0;
	}
	if (!c)
		return err_set(err, AVA_ENOENT,
			       "nobody with the id %" PRId64 " is paired: ava telegram lists them",
			       id);
	tg_line_clear(c);
	for (size_t i = TG_CARDS_MAX; i-- > 0;)
		if (t->kept.cards[i].chat == id)
			tg_card_drop(&t->kept, &t->kept.cards[i]);
	*c = (struct tg_chat){0};
	list_init(&c->outs);
	t->dirty = true;
	tg_wake(t);
	return 0;
}

static void telegram_do(const struct core_telegram *what, struct verb_reply *reply, void *user)
{
	struct telegram *t = user;
	struct ava_error err = {0};

	if (what->unpair > 0 && t->unpairing)
		err_set(&err, AVA_EBUSY, "another person is being unpaired: ask again");
	else if (what->unpair > 0 && unpair(t, what->unpair, &err) == 0)
		t->unpairing = reply;
	else if (what->pair)
		tg_pair(t, what->cwd, &err);
	if (what->listen && t->state == DOOR_DEAF) {
		t->state = DOOR_SERVING;
		problem(t, "");
		tg_wake(t);
	}
	if (t->unpairing != reply)
		tell_state(t, reply, &err, what->pair ? t->code : NULL);
}

/* ---- life */

int telegram_new(struct telegram **out, struct core *core, const char *url,
		 void (*log)(const char *line, void *user), void *user, struct ava_error *err)
{
	struct core_service *service = core_service(core);
	struct ava_error why = {0};
	struct telegram *t;
	int64_t bot = 0;
	const char *token = tg_token(&bot, &why);

	*out = NULL;
	if (!token && why.code == 0)
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(err, AVA_ENOMEM, "out of memory");
	t->core = core;
	t->log = log;
	t->log_user = user;
	list_init(&t->askings);
	t->poll.done = polled;
	t->poll.user = t;
	os_task_init(&t->pump, telegram_pump);
	t->timer = os_timer_new(core->loop, tg_wake, t);
	t->saving = calloc(1, sizeof(*t->saving));
	if (!t->timer || !t->saving) {
		os_timer_free(t->timer);
		free(t->saving);
		free(t);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	t->saving->t = t;
	if (token && tg_state_load(&t->kept, core->root_fd, bot, &why) == 0)
		t->api = tg_api_new(core->loop, url, token, &why);
	if (!t->api)
		tg_close(t, DOOR_CLOSED, why.text);
	for (size_t i = 0; i < TG_CHATS_MAX; i++) {
		struct tg_chat *c = &t->kept.chats[i];

		list_init(&c->outs);
		if (c->id != 0 && !c->session[0]) {
			tg_new_session(c);
			t->dirty = true;
		}
	}
	/* The time of the last edits is not known. */
	for (size_t i = 0; i < TG_CARDS_MAX; i++)
		t->kept.cards[i].due_ms = t->kept.cards[i].free_ms =
			tg_now(t) + core->settings.telegram_edit_ms;
	delivery_watch(core, tg_wake, t);
	service->telegram = telegram_do;
	service->telegram_state = write_state;
	service->telegram_door = t;
	*out = t;
	tg_wake(t);
	return 0;
}

bool telegram_serves(const struct telegram *t)
{
	return t && t->state != DOOR_CLOSED;
}

void telegram_free(struct telegram *t)
{
	struct core_service *service = t ? core_service(t->core) : NULL;

	if (!t)
		return;
	service->telegram = NULL;
	service->telegram_door = NULL;
	delivery_watch(t->core, NULL, NULL);
	if (t->unpairing)
		unpaired(t, AVA_EUNKNOWN);
	t->saving->t = NULL; /* a commit under way frees it */
	if (!t->saving->busy)
		free(t->saving);
	LIST_EACH (&t->askings, n, tmp) {
		struct tg_asking *a = LIST_ENTRY(n, struct tg_asking, node);

		list_del(&a->node);
		a->t = NULL;
		if (a->reply.give_up) {
			a->reply.give_up(&a->reply);
			free(a);
		}
	}
	tg_call_fini(&t->poll);
	for (size_t i = 0; i < TG_CHATS_MAX; i++)
		tg_line_clear(&t->kept.chats[i]);
	tg_api_free(t->api);
	json_decref(t->updates);
	free(t->hand.text);
	os_defer_cancel(t->core->loop, &t->pump);
	os_timer_free(t->timer);
	free(t);
}
