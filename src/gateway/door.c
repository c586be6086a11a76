/* See door.h.
 *
 *   a poll ─► an update ─► a verb ─► <name>.json ─► the next one, at last the poll again
 *   notices (ava/delivery.h), cards ─► a chat's line ─► a call ─► <name>.json, delivery.json
 *
 * Updates are carried out one at a time. The service is told that it may forget one (by where the
 * next poll goes on) only when its effect and then our state are on disk. One that
 * comes again after a crash has the request id that it had, so that the verb gives the answer it
 * gave; a press of a button finds what it asks for answered. A notice is settled in the commit
 * that keeps its card, when its last message was taken: a crash in between repeats the notice, with
 * the same id, and never loses it.
 *
 * Cards are not kept up to date by events: a due card (a quote, the line of a run) asks its verb
 * for the present state, and is edited when its text would differ. So a restart has nothing to
 * catch up with.
 *
 * In a cluster one machine listens for all, and the others send only (door_cluster.c).
 *
 * What can fail: the service, in the ways of enum door_verdict; the disk (the update waits); memory
 * (later); a person who blocks us (nothing is sent until they write). A stranger gets no
 * answer and has no effect but tries at a code, while one is open. */
#include "gateway/door.h"

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
#include "base/hash.h"
#include "gateway/door_inside.h"
#include "gateway/door_wire.h"

static const char *const mode_names[DOOR_NMODES] = {"starting", "serving", "not listening",
						    "closed"};

void door_wake(void *user)
{
	struct door *d = user;

	os_defer(d->core->loop, &d->pump);
}

int64_t door_now(const struct door *d)
{
	return os_now_ms(d->core->loop);
}

/* ---- how the door is */

void door_log(struct door *d, const char *fmt, ...)
{
	char line[600];
	va_list ap;

	snprintf(line, sizeof(line), "%s: ", d->wire->name);
	va_start(ap, fmt);
	vsnprintf(line + strlen(line), sizeof(line) - strlen(line), fmt, ap);
	va_end(ap);
	d->log(line, d->log_user);
}

/* "": there is none. */
static void problem(struct door *d, const char *why)
{
	if (strcmp(d->problem, why) != 0 && why[0])
		door_log(d, "%s", why);
	snprintf(d->problem, sizeof(d->problem), "%.300s", why);
}

void door_close(struct door *d, enum door_mode mode, const char *why)
{
	d->mode = mode;
	problem(d, why);
}

static void write_state(struct jw *w, void *user)
{
	const struct door *d = user;

	jw_str(w, "state",
	       d->mode == DOOR_SERVING && !door_listens(d) ? "elsewhere" : mode_names[d->mode]);
	if (core_service(d->core)->cluster)
		jw_str(w, "machine", d->here.machine);
	jw_str(w, "bot", d->name);
	jw_str(w, "problem", d->problem);
	jw_array(w, "paired");
	for (size_t i = 0; i < DOOR_CHATS_MAX; i++) {
		const struct door_chat *c = &d->kept.chats[i];

		if (!c->id[0])
			continue;
		jw_object(w, NULL);
		if (d->wire->numbers)
			jw_int(w, "id", strtoll(c->id, NULL, 10));
		else
			jw_str(w, "id", c->id);
		jw_str(w, "name", c->name);
		jw_str(w, "cwd", c->cwd);
		jw_str(w, "session_id", c->session);
		jw_bool(w, "blocked", c->blocked);
		jw_end(w);
	}
	jw_end(w);
}

static void tell_state(struct door *d, struct verb_reply *reply, const struct ava_error *err,
		       const char *code)
{
	struct verb_answer a;

	if (!verb_begin(&a, reply, err->code, err))
		return;
	jw_object(&a.w, NULL);
	write_state(&a.w, d);
	if (code) {
		jw_str(&a.w, "code", code);
		jw_int(&a.w, "seconds", DOOR_CODE_MS / 1000);
	}
	verb_send(&a, 200);
}

/* ---- the state, on disk */

static struct door_chat *line_told(struct door *d)
{
	for (size_t i = 0; i < DOOR_CHATS_MAX; i++)
		if (d->kept.chats[i].told)
			return &d->kept.chats[i];
	return NULL;
}

/* Answer an unpairing: it is on disk, or may not last. */
static void unpaired(struct door *d, int rv)
{
	struct ava_error err = {0};

	if (rv != 0)
		err_set(&err, rv, "it could not be saved (%s): ask again", ava_strerror(rv));
	tell_state(d, d->unpairing, &err, NULL);
	d->unpairing = NULL;
}

static void door_saved(int rv, void *user)
{
	struct door_saving *s = user;
	struct door *d = s->d;
	struct door_chat *l = d ? line_told(d) : NULL;

	if (!d) {
		free(s);
		return;
	}
	s->busy = false;
	if (s->lsn > 0)
		delivery_shown(d->core, d->index, s->lsn, rv == 0);
	if (l && l->telling == s->lsn && rv == 0)
		door_told_over(l);
	if (rv != 0) {
		d->dirty = true;
		d->save_due_ms = door_now(d) + DOOR_DISK_MS;
	}
	if (d->unpairing && (rv != 0 || !d->dirty))
		unpaired(d, rv);
	door_wake(d);
}

/* Write a changed state to disk, and settle a notice that was told in the same commit. */
static void save(struct door *d)
{
	struct door_chat *l = line_told(d);
	struct draft *draft;
	struct buf *part;
	char file[64];
	int rv;

	if ((!d->dirty && !l) || d->saving->busy || door_now(d) < d->save_due_ms)
		return;
	d->saving->busy = true;
	d->saving->lsn = 0;
	d->dirty = false;
	draft = draft_new(&d->core->book);
	door_state_file(&d->kept, file);
	part = draft ? draft_part(draft, DRAFT_PUT, file) : NULL;
	if (part)
		door_state_write(&d->kept, part);
	if (draft && l) {
		if (delivery_showing(d->core, draft, d->index, l->telling,
				     l->reason[0] ? l->reason : NULL))
			d->saving->lsn = l->telling;
		else /* the notice was answered meanwhile */
			door_told_over(l);
	}
	rv = draft ? draft_commit(draft, JOURNAL_NOW, door_saved, d->saving, NULL) : AVA_ENOMEM;
	if (rv != 0)
		door_saved(rv, d->saving);
}

/* ---- verbs */

static void door_answered(struct verb_reply *reply, int status, const struct buf *json,
			  const struct ava_error *err)
{
	struct door_asking *a = CONTAINER_OF(reply, struct door_asking, reply);
	json_t *answer = a->d && json ? json_parse(json->data, json->len, NULL) : NULL;

	list_del(&a->node);
	a->status = answer || !json ? status : 500;
	a->answer = answer;
	a->why = !json    ? err->text
		 : answer ? json_str(json_object_get(answer, "error"), "message")
			  : "out of memory";
	if (a->d)
		a->then(a->d, a);
	json_decref(answer);
	free(a);
}

void door_user(const struct door *d, const char *id, char out[DOOR_USER_MAX])
{
	char hex[HASH_HEX_LEN + 1];

	if (snprintf(out, DOOR_USER_MAX, "%s:%s", d->wire->name, id) < DOOR_USER_MAX)
		return;
	hash_sha256_hex(id, strlen(id), hex);
	snprintf(out, DOOR_USER_MAX, "%s:%.32s", d->wire->name, hex);
}

void door_ask(struct door *d, const struct door_asking *like, const char *method, json_t *args,
	      const char *path_fmt, ...)
{
	struct caller caller = {.channel = d->wire->name, .trust = CALLER_OWNER};
	struct door_asking *a = malloc(sizeof(*a)), failed = *like;
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
		like->then(d, &failed);
	} else {
		*a = *like;
		a->reply = (struct verb_reply){.done = door_answered};
		a->d = d;
		a->reads = strcmp(method, "GET") == 0;
		list_add(&d->askings, &a->node);
		door_user(d, a->chat, a->user);
		caller.user = a->user;
		verbs_call(d->core, verb, &caller, id, args, &a->reply);
	}
	json_decref(args);
}

/* ---- listening */

/* The account is known: of the machines of a cluster that have it one listens. */
static void door_want(struct door *d)
{
	snprintf(d->here.name, sizeof(d->here.name), "%s:%s", d->wire->name, d->kept.account);
	cluster_door_want(core_service(d->core)->cluster, &d->here);
}

/* Take the service's word for who we are. Where it is somebody else than the state was kept for,
 * nobody is paired. */
static void named(struct door *d, const json_t *result)
{
	struct door_state *s = &d->kept;
	char id[DOOR_ID_MAX];

	d->wire->who(result, id, d->name);
	d->mode = DOOR_SERVING;
	if (!id[0] || strcmp(id, s->account) == 0) {
		door_want(d);
		return;
	}
	for (size_t i = 0; s->account[0] && i < DOOR_CHATS_MAX; i++) {
		door_line_clear(&s->chats[i]);
		s->chats[i] = (struct door_chat){0};
		list_init(&s->chats[i].outs);
	}
	if (s->account[0]) {
		memset(s->cards, 0, sizeof(s->cards));
		s->nseen = 0;
		s->since[0] = '\0';
	}
	memcpy(s->account, id, sizeof(id));
	d->dirty = true;
	door_want(d);
}

static void polled(struct door_call *call, const struct door_answer *a)
{
	struct door *d = call->user;

	door_wake(d);
	if (d->mode == DOOR_SERVING && !door_listens(d))
		return;
	if (a->verdict == DOOR_CONFLICT || a->verdict == DOOR_REVOKED) {
		door_close(d, a->verdict == DOOR_CONFLICT ? DOOR_DEAF : DOOR_CLOSED, a->why);
		return;
	}
	problem(d, a->why);
	if (a->verdict != DOOR_OK)
		return;
	if (d->mode == DOOR_STARTING) {
		named(d, a->result);
		return;
	}
	d->updates = d->wire->updates(a->result, d->since);
	d->at = 0;
}

static void listen_on(struct door *d, int64_t *next_ms)
{
	bool starting = d->mode == DOOR_STARTING;
	struct door_task task = {.op = starting ? DOOR_WHO : DOOR_POLL,
				 .kept = &d->kept,
				 .wait_s = d->split.until_ms > 0 ? 0 : DOOR_POLL_S};
	struct door_request r = {0};
	char from[DOOR_ID_MAX];
	int64_t now = door_now(d);

	if (d->poll.busy || d->updates || d->hand.busy || !door_kept(d) || d->mode > DOOR_SERVING ||
	    (!starting && !door_listens(d)))
		return;
	if (d->wire->numbers)
		snprintf(from, sizeof(from), "%" PRId64, door_offset(&d->kept, clock_wall_ms()));
	else
		memcpy(from, d->kept.since, sizeof(from));
	/* A service that answers polls at once, or with old updates, is not asked without a
	 * pause. */
	if (strcmp(d->asked, from) == 0)
		d->poll.next_ms = MAX(d->poll.next_ms, d->poll_began_ms + DOOR_PAUSE_MS);
	if (now < d->poll.next_ms) {
		*next_ms = MIN(*next_ms, d->poll.next_ms);
		return;
	}
	d->poll_began_ms = now;
	snprintf(d->asked, sizeof(d->asked), "%s", starting ? "?" : from);
	buf_init(&r.body, 4096);
	if (!d->wire->encode(&task, &r))
		r.body.failed = true;
	if (!door_call(d->line, &d->poll, &r))
		*next_ms = MIN(*next_ms, d->poll.next_ms);
	buf_fini(&r.body);
}

/* ---- the next step */

static void door_pump(struct os_task *task)
{
	struct door *d = CONTAINER_OF(task, struct door, pump);
	int64_t next = INT64_MAX, now = door_now(d);

	save(d);
	if (d->mode != DOOR_CLOSED) {
		if (door_listens(d))
			door_take_updates(d);
		save(d);
		listen_on(d, &next);
		door_show(d, &next);
	}
	if (d->save_due_ms > now && (d->dirty || line_told(d)))
		next = MIN(next, d->save_due_ms);
	if (d->hand.due_ms > now)
		next = MIN(next, d->hand.due_ms);
	if (next != INT64_MAX)
		os_timer_set(d->timer, MAX(next - now, INT64_C(0)));
}

/* ---- the verb */

void door_unpair(struct door *d, struct door_chat *c)
{
	door_line_clear(c);
	for (size_t i = DOOR_CARDS_MAX; i-- > 0;)
		if (strcmp(d->kept.cards[i].chat, c->id) == 0)
			door_card_drop(&d->kept, &d->kept.cards[i]);
	*c = (struct door_chat){0};
	list_init(&c->outs);
	d->dirty = true;
	door_wake(d);
}

static int unpair(struct door *d, const char *id, struct ava_error *err)
{
	struct door_chat *c = door_chat(&d->kept, id);

	/* A person unpaired just now may still be paired on disk. */
	if (!c && !door_kept(d)) {
		door_wake(d); /* write again now */
		return 0;
	}
	if (!c)
		return err_set(err, AVA_ENOENT,
			       "nobody with the id %.200s is paired: ava %s lists them", id,
			       d->wire->name);
	door_unpair(d, c);
	return 0;
}

static int refuse_elsewhere(const struct door *d, struct ava_error *err)
{
	if (!d->here.machine[0])
		return err_set(err, AVA_EBUSY,
			       "no machine of the cluster listens to %s yet: ask again in a moment",
			       d->wire->title);
	return err_set(err, AVA_EBUSY, "machine %s listens to %s for all of the cluster: ask there",
		       d->here.machine, d->wire->title);
}

static void door_do(const struct core_pairing *what, struct verb_reply *reply, void *user)
{
	struct door *d = user;
	struct ava_error err = {0};
	bool unpairs = what->unpair && what->unpair[0];

	if ((unpairs || what->pair) && d->mode == DOOR_SERVING && !door_listens(d))
		refuse_elsewhere(d, &err);
	else if (unpairs && d->unpairing)
		err_set(&err, AVA_EBUSY, "another person is being unpaired: ask again");
	else if (unpairs && unpair(d, what->unpair, &err) == 0)
		d->unpairing = reply;
	else if (what->pair)
		door_pair(d, what->cwd, &err);
	if (what->listen && d->mode == DOOR_DEAF) {
		d->mode = DOOR_SERVING;
		problem(d, "");
		door_wake(d);
	}
	if (d->unpairing != reply)
		tell_state(d, reply, &err, what->pair ? d->code : NULL);
}

/* ---- life */

/* Take the state and the line; what is wrong closes the door. */
static void door_begin(struct door *d, const struct door_access *access, struct ava_error *why)
{
	d->kept.name = d->wire->name;
	if (why->code == 0 && door_state_load(&d->kept, d->core->root_fd, d->wire->name,
					      d->wire->numbers, access->account, why) == 0)
		d->line = door_line_new(d->core->loop, access, d->wire->title, d->wire->judge, why);
	if (!d->line)
		door_close(d, DOOR_CLOSED, why->text);
	list_init(&d->lobby.outs);
	for (size_t i = 0; i < DOOR_CHATS_MAX; i++) {
		struct door_chat *c = &d->kept.chats[i];

		list_init(&c->outs);
		if (c->id[0] && !c->session[0]) {
			door_new_session(c);
			d->dirty = true;
		}
	}
	/* The time of the last edits is not known. */
	for (size_t i = 0; i < DOOR_CARDS_MAX; i++)
		d->kept.cards[i].due_ms = d->kept.cards[i].free_ms =
			door_now(d) + d->wire->edit_ms(&d->core->settings);
}

int door_new(struct door **out, const struct door_wire *wire, unsigned index, struct core *core,
	     const char *url, void (*log)(const char *line, void *user), void *user,
	     struct ava_error *err)
{
	struct ava_error why = {0};
	struct door_access access = {0};
	struct door *d;

	*out = NULL;
	if (wire->access(&access, url, &why) != 0 && why.code == 0)
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(err, AVA_ENOMEM, "out of memory");
	d->core = core;
	d->wire = wire;
	d->index = index;
	d->log = log;
	d->log_user = user;
	list_init(&d->askings);
	d->poll.done = polled;
	d->poll.user = d;
	os_task_init(&d->pump, door_pump);
	d->timer = os_timer_new(core->loop, door_wake, d);
	d->saving = calloc(1, sizeof(*d->saving));
	if (!d->timer || !d->saving) {
		os_timer_free(d->timer);
		free(d->saving);
		free(d);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	d->saving->d = d;
	d->here = door_here;
	list_init(&d->here.node);
	door_begin(d, &access, &why);
	explicit_bzero(&access, sizeof(access));
	delivery_watch(core, index, door_wake, d);
	core_service(core)->messengers[index] = (struct core_messenger){door_do, write_state, d};
	*out = d;
	door_wake(d);
	return 0;
}

bool door_serves(const struct door *d)
{
	return d && d->mode != DOOR_CLOSED;
}

void door_free(struct door *d)
{
	if (!d)
		return;
	core_service(d->core)->messengers[d->index] = (struct core_messenger){0};
	cluster_door_drop(&d->here);
	delivery_watch(d->core, d->index, NULL, NULL);
	if (d->unpairing)
		unpaired(d, AVA_EUNKNOWN);
	d->saving->d = NULL; /* a commit under way frees it */
	if (!d->saving->busy)
		free(d->saving);
	LIST_EACH (&d->askings, n, tmp) {
		struct door_asking *a = LIST_ENTRY(n, struct door_asking, node);

		list_del(&a->node);
		a->d = NULL;
		if (a->reply.give_up) {
			a->reply.give_up(&a->reply);
			free(a);
		}
	}
	door_call_fini(&d->poll);
	for (size_t i = 0; i < DOOR_CHATS_MAX; i++)
		door_line_clear(&d->kept.chats[i]);
	door_line_clear(&d->lobby);
	door_line_free(d->line);
	json_decref(d->updates);
	free(d->hand.text);
	os_defer_cancel(d->core->loop, &d->pump);
	os_timer_free(d->timer);
	free(d);
}
