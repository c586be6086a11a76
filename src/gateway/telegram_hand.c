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
#include "gateway/telegram_door.h"

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

#define CODE_TRIES 5
#define TRIES      3 /* tries of an update that fails while the disk is well */

/* Messages of one text: what clients cut at, in UTF-16 units; seconds between two by their dates;
 * how long the next one is waited for, and asked for. (The service shortens answers to who asks the
 * same twice within half a second.) */
#define SPLIT_AT      ((size_t)4096)
#define SPLIT_UNITS   (SPLIT_AT / 2)
#define SPLIT_GAP_S   2
#define SPLIT_WAIT_MS 2000
#define SPLIT_ASK_MS  900

/* ---- the update in hand */

/* The update is done; the next one begins when this is on disk. */
static void hand_over(struct telegram *t)
{
	/* Mark the first update last: updates of others between the parts stay unconfirmed. */
	for (unsigned i = 0; i < t->hand.nparts; i++)
		tg_see(&t->kept, t->hand.parts[i], clock_wall_ms());
	tg_see(&t->kept, t->hand.update, clock_wall_ms());
	t->at++;
	t->hand.busy = false;
	t->dirty = true;
	tg_wake(t);
}

/* An update could not be kept: try it again later, unconfirmed to the service. False, after TRIES
 * with a healthy disk: the person gets the error, and the next update its turn. */
static bool hand_later(struct telegram *t, const struct tg_asking *a)
{
	struct tg_hand *h = &t->hand;

	if (a->reads || (a->status != 503 && a->status != 507) ||
	    (a->status == 503 && h->tries >= TRIES && !core_service(t->core)->problem[0]))
		return false;
	if (h->tries == 0 && h->callback[0])
		tg_answer_press(t, a->why);
	if (h->tries++ == 0)
		tg_say(t, h->chat, NULL, "%s. I try it again by myself.", a->why);
	h->busy = false;
	h->due_ms = tg_now(t) + TG_DISK_MS;
	tg_wake(t);
	return true;
}

/* Look at the cards of this proposal or run as soon as they may be edited. */
static void look_again(struct telegram *t, int64_t chat, const char *id)
{
	for (size_t i = 0; i < TG_CARDS_MAX; i++) {
		struct tg_card *c = &t->kept.cards[i];

		if (c->chat == chat && strcmp(c->id, id) == 0)
			c->due_ms = c->free_ms;
	}
}

/* A button's toast disappears: send its text as a message, too. */
static void hand_answered(struct telegram *t, const struct tg_asking *a)
{
	const struct tg_card *c = tg_card_with(&t->kept, a->nonce, strlen(a->nonce));
	struct buf text;

	if (hand_later(t, a))
		return;
	if (t->hand.callback[0] && t->hand.tries == 0)
		tg_answer_press(t, a->status < 300 ? "" : a->why);
	if (c)
		look_again(t, a->chat, c->id);
	buf_init(&text, TG_TEXT_BYTES);
	if (a->status >= 300)
		buf_adds(&text, a->why);
	else if (a->text)
		a->text(&text, a->answer);
	tg_put_text(t, a->chat, &text, 0, NULL);
	buf_fini(&text);
	hand_over(t);
}

/* ---- what is said */

static void say_it(struct telegram *t);

/* Begin a conversation that does not exist yet, with the id kept on disk, so that the same update
 * after a crash goes to the same conversation. When its file is gone that fails, and the next
 * message begins another one. */
static void telegram_hand_said(struct telegram *t, const struct tg_asking *a)
{
	struct tg_chat *c = tg_chat(&t->kept, a->chat);
	struct tg_asking gone = *a, begun = {.then = telegram_hand_said, .chat = a->chat};

	if (a->status == 201) {
		say_it(t);
	} else if (a->status == 404 && c && !t->hand.anew) {
		t->hand.anew = true;
		tg_ask(t, &begun, "POST",
		       json_pack("{s:s,s:s}", "session_id", c->session, "cwd", c->cwd),
		       TG_API "/sessions");
	} else if (a->status == 409 && c && t->hand.anew) {
		tg_new_session(c);
		gone.why = "This conversation cannot go on: its file is gone. Say it again, and a "
			   "new one begins.";
		hand_answered(t, &gone);
	} else {
		hand_answered(t, a);
	}
}

/* The quote or question above their words, if nothing stands between but runs at work; `out` "":
 * none. */
static void hand_shown(const struct telegram *t, const struct tg_chat *chat, char out[48])
{
	int64_t message = chat->said;

	snprintf(out, 48, "%s", message < t->hand.message ? chat->ask : "");
	for (size_t i = 0; i < TG_CARDS_MAX; i++) {
		const struct tg_card *c = &t->kept.cards[i];

		if (c->chat != t->hand.chat || c->message <= message ||
		    c->message >= t->hand.message || c->kind == TG_RUN)
			continue;
		snprintf(out, 48, c->kind == TG_QUESTION ? "%s:%s" : "%s", c->id, c->call);
		message = c->message;
	}
}

static json_t *telegram_hand_request_id(const struct telegram *t)
{
	return json_sprintf(DELIVERY_TELEGRAM_USER "%" PRId64, t->hand.update);
}

static void say_it(struct telegram *t)
{
	const struct tg_chat *c = tg_chat(&t->kept, t->hand.chat);
	struct tg_asking a = {.then = telegram_hand_said, .chat = t->hand.chat};
	char shown[48];

	if (!c) { /* unpaired meanwhile */
		hand_over(t);
		return;
	}
	hand_shown(t, c, shown);
	tg_ask(t, &a, "POST",
	       json_pack("{s:s,s:o,s:s}", "text", t->hand.text, "request_id",
			 telegram_hand_request_id(t), "shown", shown),
	       TG_API "/sessions/%s/messages", c->session);
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

/* A reply to a card. The hash confirms only the proposal that was shown. */
static void answer_card(struct telegram *t, const struct tg_card *c, const char *text)
{
	struct tg_asking a = {.then = hand_answered, .chat = c->chat};
	bool quote = c->kind == TG_QUOTE || c->kind == TG_CHANGE;
	json_t *body =
		json_pack("{s:s,s:o,s:s*}", "text", text, "request_id", telegram_hand_request_id(t),
			  "hash", c->kind == TG_QUOTE ? c->hash : NULL);

	memcpy(a.nonce, c->nonce, sizeof(a.nonce));
	a.text = quote ? NULL : text_steered; /* a quote's card shows the outcome */
	if (c->kind == TG_RUN)
		tg_ask(t, &a, "POST", body, TG_API "/runs/%s/steer", c->id);
	else
		tg_ask(t, &a, "POST", body, TG_API "/asks/%s%s%s", c->id, quote ? "" : ":",
		       quote ? "" : c->call);
}

/* ---- buttons */

static void ask_for_change(struct telegram *t, const struct tg_card *quote)
{
	char id[24];

	snprintf(id, sizeof(id), "%s", quote->id); /* a new card moves the array that has `quote` */
	tg_answer_press(t, "");
	tg_say(t, t->hand.chat, tg_card_new(&t->kept, t->hand.chat, TG_CHANGE, id),
	       "What of %s shall be otherwise? Reply to this message, for example: only 2 "
	       "minutes; or: yes, but at most $0.20",
	       id);
	hand_over(t);
}

static void press(struct telegram *t, const struct tg_card *c, char button)
{
	struct tg_asking a = {.then = hand_answered, .chat = c->chat};

	memcpy(a.nonce, c->nonce, sizeof(a.nonce));
	if (button == 'c')
		ask_for_change(t, c);
	else if (button == 'x')
		tg_ask(t, &a, "POST", json_object(), TG_API "/runs/%s/cancel", c->id);
	else
		answer_card(t, c, button == 'y' ? "yes" : "no");
}

/* "v1:" nonce ":" letter, of a card that is this message of this chat and still good. */
static void take_press(struct telegram *t, const json_t *q)
{
	const char *data = json_str(q, "data");
	const json_t *m = json_object_get(q, "message");
	const struct tg_card *c = NULL;

	snprintf(t->hand.callback, sizeof(t->hand.callback), "%s", json_str(q, "id"));
	if (strlen(data) == TG_NONCE_LEN + 5 && strncmp(data, "v1:", 3) == 0 &&
	    data[TG_NONCE_LEN + 3] == ':')
		c = tg_card_with(&t->kept, data + 3, TG_NONCE_LEN);
	if (c && c->chat == t->hand.chat && clock_wall_ms() < c->until_ms &&
	    (c->message == 0 || c->message == json_get_int(m, "message_id", 0)) &&
	    strchr(tg_kinds[c->kind].letters, data[TG_NONCE_LEN + 4])) {
		press(t, c, data[TG_NONCE_LEN + 4]);
		return;
	}
	tg_answer_press(t, "This button is not good any more.");
	hand_over(t);
}

/* ---- commands */

struct tg_command {
	const char *name, *method, *path, *args; /* path, args: formats for the run's id */
	bool run;                                /* the command needs a run's name */
	void (*text)(struct buf *out, const json_t *answer);
};
static const struct tg_command commands[] = {
	{"/runs", "GET", TG_API "/runs", "{\"all\":true,\"limit\":10}", false, tg_text_runs},
	{"/status", "GET", TG_API "/runs/%s", "{}", true, tg_text_run},
	{"/status", "GET", TG_API "/health", "{}", false, tg_text_health},
	{"/result", "GET", TG_API "/runs/%s/result", "{}", true, tg_text_result},
	{"/cancel", "POST", TG_API "/runs/%s/cancel", "{}", true, tg_text_run},
	{"/logs", "GET", TG_API "/logs", "{\"run\":\"%s\",\"limit\":15}", true, tg_text_logs},
	{"/cost", "GET", TG_API "/health", "{}", false, tg_text_cost},
};

static bool is_command(const char *text, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(text, name, len) == 0;
}

static void take_command(struct telegram *t)
{
	struct tg_asking a = {.then = hand_answered, .chat = t->hand.chat};
	size_t len = strcspn(t->hand.text, " \t\n@");
	const char *arg = t->hand.text + strcspn(t->hand.text, " \t\n");
	struct tg_chat *chat = tg_chat(&t->kept, t->hand.chat);
	bool nameless = false;
	char run[24], args[100];

	arg += strspn(arg, " \t\n");
	snprintf(run, sizeof(run), "%.*s", (int)strcspn(arg, " \t\n"), arg);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		const struct tg_command *c = &commands[i];

		if (!is_command(t->hand.text, len, c->name))
			continue;
		nameless = c->run && !id_is_run(run);
		if (nameless)
			continue;
		a.text = c->text;
		snprintf(args, sizeof(args), c->args, run);
		tg_ask(t, &a, c->method, json_parse(args, strlen(args), NULL), c->path, run);
		return;
	}
	if (is_command(t->hand.text, len, "/new") && chat) {
		tg_new_session(chat);
		tg_say(t, t->hand.chat, NULL, "What you say next begins a new conversation.");
	} else if (nameless) {
		tg_say(t, t->hand.chat, NULL, "Name the run: %.*s S-7f3a2b. /runs lists them.",
		       (int)len, t->hand.text);
	} else {
		tg_say(t, t->hand.chat, NULL, "%s", tg_text_help);
	}
	hand_over(t);
}

/* ---- pairing */

static void try_code(struct telegram *t, int64_t id, const json_t *from, const char *text)
{
	struct tg_chat *c = tg_free_chat(&t->kept);
	struct buf name;

	if (strncmp(text, "/start ", 7) == 0)
		text += 7;
	if (!t->code[0] || tg_now(t) >= t->code_until_ms || strlen(text) != TG_CODE_DIGITS ||
	    strspn(text, "0123456789") != TG_CODE_DIGITS)
		return;
	if (strcmp(text, t->code) != 0 || !c) {
		if (++t->tries >= CODE_TRIES || !c)
			t->code[0] = '\0';
		return;
	}
	t->code[0] = '\0';
	c->id = id;
	buf_init(&name, 4096);
	(void)utf8_terminal(&name, json_str(from, "first_name"),
			    strlen(json_str(from, "first_name")), false);
	if (name.data)
		snprintf(c->name, sizeof(c->name), "%.*s",
			 (int)utf8_prefix(name.data, name.len, TG_NAME_MAX / 4 - 1), name.data);
	buf_fini(&name);
	snprintf(c->cwd, sizeof(c->cwd), "%s", t->code_cwd);
	tg_new_session(c);
	tg_say(t, id, NULL, "Paired. %s%s\n\n%s",
	       c->cwd[0] ? "I look for files in " : "I see no files.", c->cwd, tg_text_help);
}

int tg_pair(struct telegram *t, const char *cwd, struct ava_error *err)
{
	uint64_t n;

	if (t->state != DOOR_SERVING)
		return err_set(err, AVA_EBUSY, "the bot cannot be used now: %s",
			       t->problem[0] ? t->problem : "ask again in a moment");
	if (!tg_free_chat(&t->kept))
		return err_set(err, AVA_EBUSY,
			       "%d people are paired, which is all there may be: ava telegram "
			       "unpair ID makes room",
			       TG_CHATS_MAX);
	id_random(&n, sizeof(n));
	snprintf(t->code, sizeof(t->code), "%08" PRIu64, n % 100000000);
	snprintf(t->code_cwd, sizeof(t->code_cwd), "%s", cwd ? cwd : "");
	t->code_until_ms = tg_now(t) + TG_CODE_MS;
	t->tries = 0;
	return 0;
}

/* ---- updates */

/* The person who wrote a message; 0: none. Forwards and messages by way of bots are words of
 * others, and count as nobody's. */
static int64_t whose(const json_t *m, const json_t *from)
{
	const json_t *chat = json_object_get(m, "chat");
	int64_t id = json_get_int(from, "id", 0);
	bool own = id > 0 && !json_get_bool(from, "is_bot", false) &&
		   json_get_int(chat, "id", 0) == id &&
		   strcmp(json_str(chat, "type"), "private") == 0 &&
		   !json_object_get(m, "forward_origin") && !json_object_get(m, "forward_date") &&
		   !json_object_get(m, "via_bot") && !json_object_get(m, "sender_chat");

	return own ? id : 0;
}

static int64_t replied_to(const json_t *m)
{
	return json_get_int(json_object_get(m, "reply_to_message"), "message_id", 0);
}

/* Whether the text of `m` may go on in the next message. */
static bool split_may_follow(const json_t *m)
{
	const char *text = json_str(m, "text");

	return tg_cut(text, strlen(text), SPLIT_UNITS) < strlen(text);
}

static bool split_follows(const json_t *m, const json_t *before)
{
	int64_t gap = json_get_int(m, "date", 0) - json_get_int(before, "date", 0);

	return json_get_str(m, "text") && gap >= 0 && gap <= SPLIT_GAP_S &&
	       (replied_to(m) == 0 || replied_to(m) == replied_to(before));
}

/* Join the message at hand and the messages that go on with its text, noted as its parts. A
 * client that cuts between words loses the blank; one that cuts at its limit does not. Returns
 * whether another part may still come. */
static bool split_gather(struct telegram *t, const json_t *m, struct buf *text)
{
	struct tg_hand *h = &t->hand;
	bool more = split_may_follow(m);

	buf_adds(text, json_str(m, "text"));
	for (size_t i = t->at + 1; more && h->nparts < TG_PARTS_MAX; i++) {
		const json_t *u = json_array_get(t->updates, i),
			     *next = json_object_get(u, "message");
		size_t len = strlen(json_str(m, "text"));

		if (!u)
			return true;
		if (whose(next, json_object_get(next, "from")) != h->chat)
			continue;
		if (!split_follows(next, m))
			return false;
		if (tg_cut(json_str(m, "text"), len, SPLIT_AT - 1) == len)
			buf_addc(text, '\n');
		buf_adds(text, json_str(next, "text"));
		h->parts[h->nparts++] = json_get_int(u, "update_id", -1);
		m = next;
		more = split_may_follow(m);
	}
	return false;
}

/* Whether the rest of the text at hand is waited for. Its parts stay unconfirmed, so all come again
 * with the next answer. */
static bool split_waits(struct telegram *t)
{
	const struct tg_hand *h = &t->hand;
	struct tg_split *s = &t->split;

	if (s->update != h->update || s->nparts != h->nparts || s->until_ms == 0)
		*s = (struct tg_split){h->update, h->nparts, tg_now(t) + SPLIT_WAIT_MS};
	if (tg_now(t) >= s->until_ms)
		return false;
	json_decref(t->updates);
	t->updates = NULL;
	t->poll.next_ms = MAX(t->poll.next_ms, tg_now(t) + SPLIT_ASK_MS);
	return true;
}

/* False: the rest of its text is waited for. */
static bool begin_update(struct telegram *t, int64_t id, int64_t chat, const json_t *m,
			 const json_t *q)
{
	const struct tg_card *card = tg_card_at(&t->kept, chat, replied_to(m));
	const char *caption = json_get_str(m, "caption");
	struct tg_hand *h = &t->hand;
	struct buf text;

	free(h->text);
	*h = (struct tg_hand){.update = id,
			      .chat = chat,
			      .message = json_get_int(m, "message_id", 0),
			      .tries = h->update == id ? h->tries : 0};
	buf_init(&text, TG_TEXT_BYTES);
	if (!q && json_get_str(m, "text")) {
		if (split_gather(t, m, &text) && split_waits(t)) {
			buf_fini(&text);
			return false;
		}
	} else if (!q && caption) {
		buf_addf(&text, "%s\n[with a picture or file that Ava cannot read]", caption);
	}
	t->split = (struct tg_split){0};
	h->busy = true;
	h->text = text.len > 0 ? buf_take(&text, NULL) : NULL;
	buf_fini(&text);
	if (q) {
		take_press(t, q);
	} else if (!h->text) {
		tg_say(t, chat, NULL, "I read text only.");
		hand_over(t);
	} else if (h->text[0] == '/') {
		take_command(t);
	} else if (card) {
		answer_card(t, card, h->text);
	} else {
		say_it(t);
	}
	return true;
}

/* False: earlier updates must be on disk first, or the rest of the text has to come. */
static bool take_update(struct telegram *t, int64_t id, const json_t *u)
{
	const json_t *q = json_object_get(u, "callback_query");
	const json_t *m = json_object_get(q ? q : u, "message");
	const json_t *from = json_object_get(q ? q : m, "from");
	int64_t who = whose(m, from);
	struct tg_chat *l = tg_chat(&t->kept, who);

	if (l && !tg_kept(t))
		return false;
	if (l) {
		l->blocked = false; /* a person who writes has unblocked the bot */
		return begin_update(t, id, who, m, q);
	}
	if (who != 0 && !q)
		try_code(t, who, from, json_str(m, "text"));
	tg_see(&t->kept, id, clock_wall_ms());
	t->at++;
	t->dirty = true;
	return true;
}

void tg_take_updates(struct telegram *t)
{
	while (t->updates && !t->hand.busy && tg_now(t) >= t->hand.due_ms) {
		const json_t *u = json_array_get(t->updates, t->at);
		int64_t id = json_get_int(u, "update_id", -1);

		if (!u) {
			json_decref(t->updates);
			t->updates = NULL;
		} else if (!tg_is_update(id) || tg_seen(&t->kept, id)) {
			/* A part behind other updates is confirmed once those are. */
			if (tg_is_update(id) && id == tg_offset(&t->kept, clock_wall_ms())) {
				tg_see(&t->kept, id, clock_wall_ms());
				t->dirty = true;
			}
			t->at++;
		} else if (!take_update(t, id, u)) {
			return;
		}
	}
}
