/* Messages and presses of people: the update in hand. An update becomes a verb, whose answer is
 * told; the request id is the update's, so that a repeated update is carried out once.
 *
 *   whose is it? ─► command ─► verb ─► its answer as text ─┐
 *        │          reply to a card ─► confirm, or steer ──┼─► over: kept, then the next one
 *        │          anything else ─► said in a session ────┤
 *        │          a button ─► confirm, steer, cancel ────┘
 *        └─ nobody's: passed over, but for a code while one is open
 *
 * What can fail: the disk, when the verb says so: then the update is taken up again later. Every
 * other error is told to the person. */
#include "gateway/door_inside.h"

#include <ava.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/delivery.h"
#include "ava/ops.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/words.h"
#include "codec/utf8.h"
#include "subagent/order.h"

#define CODE_TRIES 5
#define TRIES      3 /* of an update that fails though the disk is well */

/* Messages of one text: seconds between two by their dates; how long the next one is waited for,
 * and asked for. (Telegram shortens answers to who asks the same twice within half a second.) */
#define SPLIT_GAP_S   2
#define SPLIT_WAIT_MS 2000
#define SPLIT_ASK_MS  900

/* ---- the update in hand */

/* The update is done; the next one begins when this is on disk. */
static void hand_over(struct door *d)
{
	struct door_chat *c = door_chat(&d->kept, d->hand.chat);

	/* Mark the first update last: updates of others between the parts stay unconfirmed. */
	for (unsigned i = 0; i < d->hand.nparts; i++)
		door_see(&d->kept, d->hand.parts[i], clock_wall_ms());
	door_see(&d->kept, d->hand.update, clock_wall_ms());
	if (c && !d->wire->numbers)
		c->count = MAX(c->count, d->hand.order);
	d->at++;
	d->hand.busy = false;
	d->dirty = true;
	door_wake(d);
}

/* An update could not be kept: try it again later, unconfirmed to the service. False, after TRIES
 * with a healthy disk: the person gets the error, and the next update its turn. */
static bool hand_later(struct door *d, const struct door_asking *a)
{
	struct door_hand *h = &d->hand;

	if (a->reads || (a->status != 503 && a->status != 507) ||
	    (a->status == 503 && h->tries >= TRIES && !core_service(d->core)->problem[0]))
		return false;
	if (h->tries == 0 && h->pressed)
		door_answer_press(d, a->why);
	if (h->tries++ == 0)
		door_say(d, h->chat, NULL, "%s. I try it again by myself.", a->why);
	h->busy = false;
	h->due_ms = door_now(d) + DOOR_DISK_MS;
	door_wake(d);
	return true;
}

/* Look at this card, and at those of its run, as soon as they may be edited. */
static void look_again(struct door *d, const char *chat, const char *id)
{
	size_t len = strcspn(id, ":");

	for (size_t i = 0; i < DOOR_CARDS_MAX; i++) {
		struct door_card *c = &d->kept.cards[i];

		if (strcmp(c->chat, chat) == 0 && strncmp(c->id, id, len) == 0)
			c->due_ms = c->free_ms;
	}
}

/* A button's toast disappears: send its text as a message, too. */
static void hand_answered(struct door *d, const struct door_asking *a)
{
	const struct door_card *c = door_card_with(&d->kept, a->nonce, strlen(a->nonce));
	struct buf text;

	if (hand_later(d, a))
		return;
	if (d->hand.pressed && d->hand.tries == 0)
		door_answer_press(d, a->status < 300 ? "" : a->why);
	if (c)
		look_again(d, a->chat, c->id);
	buf_init(&text, DOOR_TEXT_BYTES);
	if (a->status >= 300)
		buf_adds(&text, a->why);
	else if (a->text)
		a->text(&text, a->answer);
	door_put_text(d, a->chat, &text, 0, NULL);
	buf_fini(&text);
	hand_over(d);
}

/* ---- what is said */

static void say_it(struct door *d);

/* A verb for the person of the update in hand. */
static struct door_asking hand_asking(const struct door *d,
				      void (*then)(struct door *d, const struct door_asking *a))
{
	struct door_asking a = {.then = then};

	memcpy(a.chat, d->hand.chat, sizeof(a.chat));
	return a;
}

/* Begin a conversation that does not exist yet, with the id kept on disk, so that the same update
 * after a crash goes to the same conversation. When its file is gone that fails, and the next
 * message begins another one. */
static void hand_said(struct door *d, const struct door_asking *a)
{
	struct door_chat *c = door_chat(&d->kept, a->chat);
	struct door_asking gone = *a, begun = hand_asking(d, hand_said);

	if (a->status == 201) {
		say_it(d);
	} else if (a->status == 404 && c && !d->hand.anew) {
		d->hand.anew = true;
		door_ask(d, &begun, "POST",
			 json_pack("{s:s,s:s}", "session_id", c->session, "cwd", c->cwd),
			 DOOR_API "/sessions");
	} else if (a->status == 409 && c && d->hand.anew) {
		door_new_session(c);
		gone.why = "This conversation cannot go on: its file is gone. Say it again, and a "
			   "new one begins.";
		hand_answered(d, &gone);
	} else {
		hand_answered(d, a);
	}
}

/* The Ask above their words, if nothing stands between but runs at work; `out` "": none. */
static void hand_shown(const struct door *d, const struct door_chat *chat, char out[ITEM_ASK])
{
	int64_t order = chat->said;

	out[0] = '\0';
	for (size_t i = 0; i < DOOR_CARDS_MAX; i++) {
		const struct door_card *c = &d->kept.cards[i];

		if (strcmp(c->chat, chat->id) != 0 || c->order <= order ||
		    c->order >= d->hand.order || id_is_run(c->id))
			continue;
		memcpy(out, c->id, sizeof(c->id));
		order = c->order;
	}
}

static bool hand_is(const char *text, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(text, name, len) == 0;
}

static json_t *hand_request_id(const struct door *d)
{
	char id[DOOR_USER_MAX];

	door_user(d, d->hand.update, id);
	return json_string(id);
}

static void say_it(struct door *d)
{
	const struct door_chat *c = door_chat(&d->kept, d->hand.chat);
	struct door_asking a = hand_asking(d, hand_said);
	char shown[ITEM_ASK];

	if (!c) { /* unpaired meanwhile */
		hand_over(d);
		return;
	}
	hand_shown(d, c, shown);
	door_ask(d, &a, "POST",
		 json_pack("{s:s,s:o,s:s}", "text", d->hand.text, "request_id", hand_request_id(d),
			   "shown", shown),
		 DOOR_API "/sessions/%s/messages", c->session);
}

/* ---- answers to cards */

static void text_steered(struct buf *out, const json_t *answer)
{
	const char *run = json_str(answer, "run");

	if (*run)
		buf_addf(out, WORDS_HAS_ANSWER(run));
	else
		buf_addf(out, WORDS_READS_LATER(json_str(answer, "subagent_id")));
}

/* An answer to a card. The hash confirms only what was shown. */
static void answer_card(struct door *d, const struct door_card *c, const char *text, size_t len)
{
	struct door_asking a = hand_asking(d, hand_answered);
	json_t *body = json_pack("{s:s%,s:o,s:s*}", "text", text, len, "request_id",
				 hand_request_id(d), "hash", c->hash[0] ? c->hash : NULL);

	memcpy(a.nonce, c->nonce, sizeof(a.nonce));
	a.text = c->id[0] == 'S' ? text_steered : NULL; /* another card shows the outcome */
	if (id_is_run(c->id))
		door_ask(d, &a, "POST", body, DOOR_API "/runs/%s/steer", c->id);
	else
		door_ask(d, &a, "POST", body, DOOR_API "/asks/%s", c->id);
}

/* ---- buttons */

static void ask_for_change(struct door *d, const struct door_card *quote)
{
	char id[ITEM_ASK];

	memcpy(id, quote->id, sizeof(id)); /* the array moves */
	door_answer_press(d, "");
	door_say(d, d->hand.chat, door_card_new(&d->kept, d->hand.chat, id),
		 "What of %s shall be otherwise? Reply to this message, for example: only 2 "
		 "minutes; or: yes, but at most $0.20",
		 id);
	hand_over(d);
}

/* To press a button is to say its label. */
static void press(struct door *d, const struct door_card *c, const char *label, size_t len)
{
	struct door_asking a = hand_asking(d, hand_answered);

	memcpy(a.nonce, c->nonce, sizeof(a.nonce));
	if (id_is_run(c->id))
		door_ask(d, &a, "POST", json_object(), DOOR_API "/runs/%s/cancel", c->id);
	else if (c->id[0] == 'P' && hand_is(label, len, DOOR_LABEL_CHANGE))
		ask_for_change(d, c);
	else
		answer_card(d, c, label, len);
}

/* The button of a card that is this message of this chat and still good. */
static void take_press(struct door *d, const struct door_said *said)
{
	size_t len = 0;
	const struct door_card *c =
		d->wire->keys ? door_card_at(&d->kept, d->hand.chat, said->message)
			      : door_card_with(&d->kept, said->nonce, strlen(said->nonce));
	const char *label = c ? door_card_button(c, said->index, &len) : NULL;

	d->hand.pressed = true;
	memcpy(d->hand.callback, said->callback, sizeof(d->hand.callback));
	if (label && strcmp(c->chat, d->hand.chat) == 0 && clock_wall_ms() < c->until_ms &&
	    (!c->message[0] || strcmp(c->message, said->message) == 0)) {
		press(d, c, label, len);
		return;
	}
	if (d->wire->keys)
		door_say(d, d->hand.chat, NULL, "This button is not good any more.");
	else
		door_answer_press(d, "This button is not good any more.");
	hand_over(d);
}

/* ---- commands */

struct door_command {
	const char *name, *method, *path, *args; /* the last two with the id */
	char id;                                 /* 'S': a run has to be named, 'O': an order */
	void (*text)(struct buf *out, const json_t *answer);
};
static const struct door_command commands[] = {
	{"/runs", "GET", DOOR_API "/runs", "{\"all\":true,\"limit\":10}", 0, door_text_runs},
	{"/status", "GET", DOOR_API "/runs/%s", "{}", 'S', door_text_run},
	{"/status", "GET", DOOR_API "/health", "{}", 0, door_text_health},
	{"/result", "GET", DOOR_API "/runs/%s/result", "{}", 'S', door_text_result},
	{"/cancel", "POST", DOOR_API "/runs/%s/cancel", "{}", 'S', door_text_run},
	{"/pause", "POST", DOOR_API "/runs/%s/pause", "{}", 'S', door_text_run},
	{"/unpause", "POST", DOOR_API "/runs/%s/unpause", "{}", 'S', door_text_run},
	{"/logs", "GET", DOOR_API "/logs", "{\"run\":\"%s\",\"limit\":15}", 'S', door_text_logs},
	{"/cost", "GET", DOOR_API "/health", "{}", 0, door_text_cost},
	{"/orders", "GET", DOOR_API "/orders", "{}", 0, door_text_orders},
	{"/pause", "POST", DOOR_API "/orders/%s/pause", "{}", 'O', door_text_order},
	{"/unpause", "POST", DOOR_API "/orders/%s/unpause", "{}", 'O', door_text_order},
	{"/remove", "POST", DOOR_API "/orders/%s/rm", "{}", 'O', door_text_order},
};

static void take_command(struct door *d)
{
	struct door_asking a = hand_asking(d, hand_answered);
	size_t len = strcspn(d->hand.text, " \t\n@");
	const char *arg = d->hand.text + strcspn(d->hand.text, " \t\n");
	struct door_chat *chat = door_chat(&d->kept, d->hand.chat);
	char nameless = 0, run[24], args[100];

	arg += strspn(arg, " \t\n");
	snprintf(run, sizeof(run), "%.*s", (int)strcspn(arg, " \t\n"), arg);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		const struct door_command *c = &commands[i];

		if (!hand_is(d->hand.text, len, c->name))
			continue;
		nameless = c->id;
		if (c->id && !(c->id == 'S' ? id_is_run(run) : order_is_id(run)))
			continue;
		a.text = c->text;
		snprintf(args, sizeof(args), c->args, run);
		door_ask(d, &a, c->method, json_parse(args, strlen(args), NULL), c->path, run);
		return;
	}
	if (hand_is(d->hand.text, len, "/new") && chat) {
		door_new_session(chat);
		door_say(d, d->hand.chat, NULL, "What you say next begins a new conversation.");
	} else if (nameless) {
		door_say(d, d->hand.chat, NULL,
			 nameless == 'S' ? "Name the run: %.*s S-7f3a2b. /runs lists them."
					 : "Name the order: %.*s O-5d09c41e. /orders lists them.",
			 (int)len, d->hand.text);
	} else {
		door_say(d, d->hand.chat, NULL, "%s", door_text_help);
	}
	hand_over(d);
}

/* ---- pairing */

static bool code_is_open(const struct door *d)
{
	return d->code[0] && door_now(d) < d->code_until_ms;
}

static void try_code(struct door *d, const struct door_said *said)
{
	struct door_chat *c = door_free_chat(&d->kept);
	const char *text = said->text ? said->text : "";
	struct buf name;

	if (strncmp(text, "/start ", 7) == 0)
		text += 7;
	if (!code_is_open(d) || strlen(text) != DOOR_CODE_DIGITS ||
	    strspn(text, "0123456789") != DOOR_CODE_DIGITS)
		return;
	if (strcmp(text, d->code) != 0 || !c) {
		if (++d->tries >= CODE_TRIES || !c)
			d->code[0] = '\0';
		return;
	}
	d->code[0] = '\0';
	memcpy(c->id, said->person, sizeof(c->id));
	memcpy(c->room, said->room, sizeof(c->room));
	buf_init(&name, 4096);
	(void)utf8_terminal(&name, said->name, strlen(said->name), false);
	if (name.data)
		snprintf(c->name, sizeof(c->name), "%.*s",
			 (int)utf8_prefix(name.data, name.len, DOOR_NAME_MAX / 4 - 1), name.data);
	buf_fini(&name);
	snprintf(c->cwd, sizeof(c->cwd), "%s", d->code_cwd);
	door_new_session(c);
	door_say(d, c->id, NULL, "Paired. %s%s\n\n%s",
		 c->cwd[0] ? "I look for files in " : "I see no files.", c->cwd, door_text_help);
}

int door_pair(struct door *d, const char *cwd, struct ava_error *err)
{
	uint64_t n;

	if (d->mode != DOOR_SERVING)
		return err_set(err, AVA_EBUSY, "%s cannot be used now: %s", d->wire->title,
			       d->problem[0] ? d->problem : "ask again in a moment");
	if (!door_free_chat(&d->kept))
		return err_set(err, AVA_EBUSY,
			       "%d people are paired, which is all there may be: ava %s unpair ID "
			       "makes room",
			       DOOR_CHATS_MAX, d->wire->name);
	id_random(&n, sizeof(n));
	snprintf(d->code, sizeof(d->code), "%08" PRIu64, n % 100000000);
	snprintf(d->code_cwd, sizeof(d->code_cwd), "%s", cwd ? cwd : "");
	d->code_until_ms = door_now(d) + DOOR_CODE_MS;
	d->tries = 0;
	return 0;
}

/* ---- updates */

static struct door_said said_at(const struct door *d, size_t i)
{
	struct door_said said = {.kind = DOOR_NOTHING, .name = ""};

	d->wire->read(json_array_get(d->updates, i), &d->kept, &said);
	return said;
}

/* Whether the text of `m` may go on in the next message. */
static bool split_may_follow(const struct door *d, const char *text)
{
	size_t units = d->wire->split_units;

	return units > 0 && door_cut(text, strlen(text), units / 2) < strlen(text);
}

static bool split_follows(const struct door_said *m, const struct door_said *before)
{
	int64_t gap = m->date_s - before->date_s;

	return m->kind == DOOR_TEXT && m->text && gap >= 0 && gap <= SPLIT_GAP_S &&
	       (!m->reply_to[0] || strcmp(m->reply_to, before->reply_to) == 0);
}

/* Join the message at hand and the messages that go on with its text, noted as its parts. A
 * client that cuts between words loses the blank; one that cuts at its limit does not. Returns
 * whether another part may still come. */
static bool split_gather(struct door *d, const struct door_said *first, struct buf *text)
{
	struct door_said m = *first;
	struct door_hand *h = &d->hand;
	bool more = split_may_follow(d, m.text);

	buf_adds(text, m.text);
	for (size_t i = d->at + 1; more && h->nparts < DOOR_PARTS_MAX; i++) {
		struct door_said next;

		if (i >= json_array_size(d->updates))
			return true;
		next = said_at(d, i);
		if (strcmp(next.person, h->chat) != 0)
			continue;
		if (!split_follows(&next, &m))
			return false;
		if (door_cut(m.text, strlen(m.text), d->wire->split_units - 1) == strlen(m.text))
			buf_addc(text, '\n');
		buf_adds(text, next.text);
		memcpy(h->parts[h->nparts++], next.id, sizeof(next.id));
		m = next;
		more = split_may_follow(d, m.text);
	}
	return false;
}

/* Whether the rest of the text at hand is waited for. Its parts stay unconfirmed, so all come again
 * with the next answer. */
static bool split_waits(struct door *d)
{
	const struct door_hand *h = &d->hand;
	struct door_split *s = &d->split;

	if (strcmp(s->update, h->update) != 0 || s->nparts != h->nparts || s->until_ms == 0) {
		*s = (struct door_split){.nparts = h->nparts,
					 .until_ms = door_now(d) + SPLIT_WAIT_MS};
		memcpy(s->update, h->update, sizeof(s->update));
	}
	if (door_now(d) >= s->until_ms)
		return false;
	json_decref(d->updates);
	d->updates = NULL;
	d->poll.next_ms = MAX(d->poll.next_ms, door_now(d) + SPLIT_ASK_MS);
	return true;
}

/* False: the rest of its text is waited for. */
static bool begin_update(struct door *d, const struct door_said *said)
{
	const struct door_card *card = door_card_at(&d->kept, said->person, said->reply_to);
	struct door_hand *h = &d->hand;
	unsigned tries = strcmp(h->update, said->id) == 0 ? h->tries : 0;
	const struct door_chat *chat = door_chat(&d->kept, said->person);
	struct buf text;

	free(h->text);
	/* An answer of another try is another call: its name goes on counting. */
	*h = (struct door_hand){.tries = tries, .nsent = tries > 0 ? h->nsent : 0};
	memcpy(h->update, said->id, sizeof(h->update));
	memcpy(h->chat, said->person, sizeof(h->chat));
	h->order = d->wire->numbers ? strtoll(said->message, NULL, 10) : chat->count + 1;
	buf_init(&text, DOOR_TEXT_BYTES);
	if (said->kind == DOOR_TEXT && said->text) {
		if (split_gather(d, said, &text) && split_waits(d)) {
			buf_fini(&text);
			return false;
		}
	} else if (said->kind == DOOR_TEXT && said->caption) {
		buf_addf(&text, "%s\n[with a picture or file that Ava cannot read]", said->caption);
	}
	d->split = (struct door_split){0};
	h->busy = true;
	h->text = text.len > 0 ? buf_take(&text, NULL) : NULL;
	buf_fini(&text);
	if (said->kind == DOOR_PRESS) {
		take_press(d, said);
	} else if (!h->text) {
		door_say(d, h->chat, NULL, "I read text only.");
		hand_over(d);
	} else if (h->text[0] == '/') {
		take_command(d);
	} else if (card) {
		answer_card(d, card, h->text, strlen(h->text));
	} else {
		say_it(d);
	}
	return true;
}

/* The update is passed over, or is of no person's. */
static void hand_pass(struct door *d, const struct door_said *said, bool effect)
{
	if (d->wire->numbers || effect) {
		door_see(&d->kept, said->id, clock_wall_ms());
		d->dirty = true;
	}
	d->at++;
}

/* A message of ours, as the service has it in order among those of the chat. */
static void take_own(struct door *d, const struct door_said *said)
{
	for (size_t i = 0; i < DOOR_CHATS_MAX; i++) {
		struct door_chat *l = &d->kept.chats[i];
		struct door_card *c = door_card_at(&d->kept, l->id, said->message);

		if (!l->id[0] || strcmp(l->room, said->room) != 0)
			continue;
		l->count++;
		if (c) {
			c->order = l->count;
		} else {
			l->said = l->count;
			memcpy(l->own, said->message, sizeof(l->own));
		}
	}
	hand_pass(d, said, true);
}

/* Leave a room that is no place to speak in, and say why. */
static void take_away(struct door *d, const struct door_said *said)
{
	if (strcmp(d->left, said->room) != 0) {
		door_put_room(d, DOOR_SEND, said->room, said->text);
		door_put_room(d, DOOR_LEAVE, said->room, NULL);
	}
	memcpy(d->left, said->room, sizeof(d->left));
	hand_pass(d, said, true);
}

/* The service does not tell all that was said since we listened last. */
static void take_gap(struct door *d, const struct door_said *said)
{
	for (size_t i = 0; i < DOOR_CHATS_MAX; i++) {
		const struct door_chat *l = &d->kept.chats[i];

		if (l->id[0] && strcmp(l->room, said->room) == 0)
			door_say(d, l->id, NULL,
				 "More was said here while I was away than I am told: say again "
				 "what still counts.");
	}
	hand_pass(d, said, true);
}

/* A press that names its message alone may be of one that a crash cut off from its record: it has
 * its name when it is told again. */
static bool press_waits(struct door *d, const struct door_chat *l, const struct door_said *said)
{
	char user[DOOR_USER_MAX];

	if (said->kind != DOOR_PRESS || !d->wire->keys ||
	    door_card_at(&d->kept, l->id, said->message))
		return false;
	door_user(d, l->id, user);
	return l->telling > 0 || delivery_next(d->core, d->index, user);
}

/* False: earlier updates must be on disk first, the rest of the text has to come, or what a press
 * is about. */
static bool take_update(struct door *d, const struct door_said *said)
{
	struct door_chat *l = door_chat(&d->kept, said->person);
	bool heard = l || (said->person[0] && code_is_open(d));

	if ((l || said->kind == DOOR_OWN) && !door_kept(d))
		return false;
	if (said->kind == DOOR_OWN) {
		take_own(d, said);
	} else if (said->kind == DOOR_AWAY) {
		take_away(d, said);
	} else if (said->kind == DOOR_GAP) {
		take_gap(d, said);
	} else if (said->kind == DOOR_INVITE && heard) {
		door_put_room(d, DOOR_JOIN, said->room, NULL);
		d->left[0] = '\0';
		hand_pass(d, said, true);
	} else if (l && (said->kind == DOOR_TEXT || said->kind == DOOR_PRESS)) {
		l->blocked = false; /* a person who writes hears us again */
		memcpy(l->room, said->room, sizeof(l->room));
		return !press_waits(d, l, said) && begin_update(d, said);
	} else {
		if (said->kind == DOOR_TEXT && said->person[0])
			try_code(d, said);
		hand_pass(d, said, false);
	}
	return true;
}

void door_take_updates(struct door *d)
{
	while (d->updates && !d->hand.busy && door_now(d) >= d->hand.due_ms) {
		bool ends = d->at >= json_array_size(d->updates);
		struct door_said said = ends ? (struct door_said){0} : said_at(d, d->at);

		if (ends) {
			json_decref(d->updates);
			d->updates = NULL;
			if (d->wire->numbers || !d->since[0] ||
			    strcmp(d->since, d->kept.since) == 0)
				continue;
			memcpy(d->kept.since, d->since, sizeof(d->since));
			d->dirty = true;
		} else if (!said.id[0] || door_seen(&d->kept, said.id)) {
			/* A part that others stood before: now it is confirmed, too. */
			if (said.id[0] && d->wire->numbers &&
			    strtoll(said.id, NULL, 10) == door_offset(&d->kept, clock_wall_ms())) {
				door_see(&d->kept, said.id, clock_wall_ms());
				d->dirty = true;
			}
			d->at++;
		} else if (!take_update(d, &said)) {
			return;
		}
	}
}
