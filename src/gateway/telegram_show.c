/* Messages to people: notices (ava/delivery.h), once each and in order, and cards, which are edited
 * when their run or proposal changes. Each chat has a line of calls, sent one at a time at the pace
 * that the service allows; people are so few that all lines together stay within a bot's limit.
 *
 *   a notice ─► its verb ─► its text ─► the chat's line ─► told, settled with the state
 *   a card that is due ─► its verb ─► other words? ─► an edit ─► due again, or done with
 *
 * What can fail: a verb (the notice says less; the card is looked at later), memory likewise; the
 * service, see enum tg_verdict. A call that was not taken stays the first of its line; a refused
 * call is dropped, and its notice given up. An outage drops nothing: a call
 * that the service fails at is given up only where it takes a line of words before it. */
#include "gateway/telegram_door.h"

#include <ava.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/delivery.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/siphash.h"
#include "codec/format_of.h"
#include "codec/utf8.h"

#define OUTS_MAX    64    /* calls that wait for a chat */
#define PARTS_MAX   3     /* messages of a text; a longer one is a document */
#define FAILS_MAX   5     /* failures of the service at a call before words are tried */
#define AGAIN_MAX   3     /* failures allowed once words were taken */
#define SLOW_RUN_MS 60000 /* the line of a run that takes longer is edited less often */
#define SLOW_EDITS  5
#define QUICK_MS    2000 /* an answer that comes sooner needs no "typing" before */
#define TYPING_MS   4500 /* Telegram shows "typing" for 5 s */

struct telegram_show_out { /* a call that waits for its turn */
	struct list node;
	const char *method;
	char boundary[TG_NONCE_LEN + 1]; /* between the parts of a form; "": the body is JSON */
	struct buf body;
	char nonce[TG_NONCE_LEN + 1]; /* nonce of the card; "": no card */
	bool last;                    /* the card is dropped after this call */
	uint64_t lsn;                 /* lsn of the notice that this is a part of; 0: none */
	bool ends;                    /* this is the notice's last part */
	int tries;                    /* failures of the service at this call; below 0: no limit */
};

/* ---- what goes out */

static void free_out(struct tg_chat *l, struct telegram_show_out *o)
{
	list_del(&o->node);
	l->nouts--;
	buf_fini(&o->body);
	free(o);
}

void tg_told_over(struct tg_chat *l)
{
	json_decref(l->notice);
	l->notice = NULL;
	l->telling = 0;
	l->told = false;
	l->reason[0] = '\0';
}

void tg_line_clear(struct tg_chat *l)
{
	while (l->nouts > 0)
		free_out(l, LIST_FIRST(&l->outs, struct telegram_show_out, node));
	tg_call_fini(&l->send);
	tg_told_over(l);
}

/* A call at the end of its line, NULL: they are unpaired. `args` is *taken*; NULL: no memory.
 * NULL: there is no room. */
static struct telegram_show_out *add_out(struct telegram *t, struct tg_chat *l, const char *method,
					 json_t *args)
{
	struct telegram_show_out *o =
		args && l && l->nouts < OUTS_MAX ? calloc(1, sizeof(*o)) : NULL;

	if (o) {
		o->method = method;
		buf_init(&o->body, TG_TEXT_BYTES + 8192);
		list_add(&l->outs, &o->node);
		l->nouts++;
		tg_wake(t);
	}
	if (o && json_dump(&o->body, args) != 0) {
		free_out(l, o);
		o = NULL;
	}
	json_decref(args);
	return o;
}

/* Previews would fetch what stands in it. `markup` is *taken*; NULL: none. */
static json_t *text_args(int64_t chat, const char *s, size_t len, json_t *markup)
{
	return json_pack("{s:I,s:o,s:{s:b},s:o*}", "chat_id", (json_int_t)chat, "text",
			 json_stringn_nocheck(s, len), "link_preview_options", "is_disabled", 1,
			 "reply_markup", markup);
}

/* A question that wants a yes or no has buttons too, which is when its card has a hash. */
static json_t *buttons_of(const struct tg_card *c)
{
	const struct tg_kind *kind = &tg_kinds[c->kind];
	size_t n = c->kind == TG_QUESTION && !c->hash[0] ? 0 : strlen(kind->letters);
	json_t *row;

	if (c->kind == TG_CHANGE)
		return json_pack("{s:b}", "force_reply", 1);
	row = json_array();
	for (size_t i = 0; i < n; i++) {
		char data[TG_NONCE_LEN + 8];

		snprintf(data, sizeof(data), "v1:%s:%c", c->nonce, kind->letters[i]);
		json_array_append_new(row, json_pack("{s:s,s:s}", "text", kind->labels[i],
						     "callback_data", data));
	}
	return json_pack("{s:[o]}", "inline_keyboard", row);
}

/* Put a call first in its line, behind the call being sent. */
static void put_first(struct tg_chat *l, struct telegram_show_out *o)
{
	list_del(&o->node);
	list_add_front(l->send.busy ? l->outs.next : &l->outs, &o->node);
}

/* A press is always answered, before all else, or the button turns for ever. */
void tg_answer_press(struct telegram *t, const char *text)
{
	struct tg_chat *l = tg_chat(&t->kept, t->hand.chat);
	size_t len = utf8_prefix(text, strlen(text), 190);
	struct telegram_show_out *o =
		add_out(t, l, "answerCallbackQuery",
			json_pack("{s:s,s:o,s:b}", "callback_query_id", t->hand.callback, "text",
				  json_stringn_nocheck(text, len), "show_alert", len > 0));

	if (o)
		put_first(l, o);
}

/* ---- a text in messages, or as a document */

/* Send a long text as a document; its first line is the caption. */
static struct telegram_show_out *put_document(struct telegram *t, struct tg_chat *l,
					      const struct buf *text, uint64_t lsn)
{
	const char *s = text->data;
	struct telegram_show_out *o = add_out(t, l, "sendDocument", json_object());

	if (!o)
		return NULL;
	o->lsn = lsn;
	tg_nonce(o->boundary);
	buf_reset(&o->body);
	buf_addf(&o->body,
		 "--%s\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n%" PRId64 "\r\n"
		 "--%s\r\nContent-Disposition: form-data; name=\"caption\"\r\n\r\n",
		 o->boundary, l->id, o->boundary);
	buf_add(&o->body, s, tg_cut(s, strcspn(s, "\n"), TG_CAPTION_UNITS));
	buf_addf(&o->body,
		 "\r\n--%s\r\nContent-Disposition: form-data; name=\"document\"; "
		 "filename=\"ava-%" PRIu64 ".txt\"\r\nContent-Type: text/plain; "
		 "charset=utf-8\r\n\r\n",
		 o->boundary, lsn);
	buf_add(&o->body, s, text->len);
	buf_addf(&o->body, "\r\n--%s--\r\n", o->boundary);
	if (buf_check(&o->body) == 0)
		return o;
	free_out(l, o);
	return NULL;
}

/* Whether a text has no visible character, which the service refuses. */
static bool telegram_show_is_blank(const char *s, size_t len)
{
	char seen[8];

	return utf8_seen(seen, sizeof(seen), s, len) == 0;
}

/* Count the messages of a text; returns where the last one begins. */
static size_t last_part(const char *s, size_t len, size_t *parts)
{
	size_t at = 0, n = 0;

	*parts = 0;
	for (; at + n < len; ++*parts) {
		at += n;
		n = tg_cut(s + at, len - at, TG_TEXT_UNITS);
	}
	return at;
}

bool tg_put_text(struct telegram *t, int64_t chat, const struct buf *text, uint64_t lsn,
		 const struct tg_card *card)
{
	struct tg_chat *l = tg_chat(&t->kept, chat);
	const char *s = text->data ? text->data : "";
	size_t len = text->len, at = 0, last, parts, n;
	struct telegram_show_out *o = NULL;

	while (len > 0 && strchr(" \t\n", s[len - 1]))
		len--;
	last = last_part(s, len, &parts);
	if (!l || buf_check(text) != 0)
		return false;
	if (parts > PARTS_MAX) {
		o = put_document(t, l, text, lsn);
		if (!o)
			return false;
		at = card ? last : len;
	}
	for (; at < len; at += n) {
		n = tg_cut(s + at, len - at, TG_TEXT_UNITS);
		if (telegram_show_is_blank(s + at, n))
			continue; /* Telegram refuses blank messages */
		o = add_out(t, l, "sendMessage",
			    text_args(chat, s + at, n,
				      card && at + n == len ? buttons_of(card) : NULL));
		if (!o)
			return false;
		o->lsn = lsn;
	}
	if (!o)
		return true;
	o->ends = true;
	if (card)
		snprintf(o->nonce, sizeof(o->nonce), "%s", card->nonce);
	return true;
}

void tg_say(struct telegram *t, int64_t chat, const struct tg_card *card, const char *fmt, ...)
{
	struct buf text;
	va_list ap;

	buf_init(&text, 1u << 16);
	va_start(ap, fmt);
	buf_vaddf(&text, fmt, ap);
	va_end(ap);
	(void)tg_put_text(t, chat, &text, 0, card);
	buf_fini(&text);
}

/* ---- notices */

static void drop_parts(struct tg_chat *l) /* parts of the notice being told */
{
	LIST_EACH (&l->outs, n, tmp) {
		struct telegram_show_out *o = LIST_ENTRY(n, struct telegram_show_out, node);

		if (o->lsn > 0)
			free_out(l, o);
	}
}

static void drop_card(struct telegram *t, struct tg_card *c)
{
	tg_card_drop(&t->kept, c);
	t->dirty = true;
}

static void telegram_show_give_up(struct telegram *t, struct tg_chat *l, const char *reason)
{
	snprintf(l->reason, sizeof(l->reason), "%.190s", reason);
	l->told = true;
	tg_wake(t);
}

/* A text of a notice that is being told; NULL when it is not any more. */
static struct tg_chat *telling(struct telegram *t, const struct tg_asking *a)
{
	struct tg_chat *l = tg_chat(&t->kept, a->chat);

	return l && l->telling == a->lsn && !l->told ? l : NULL;
}

/* The notice is told later. */
static void tell_later(struct telegram *t, struct tg_chat *l)
{
	drop_parts(l);
	tg_told_over(l);
	l->send.next_ms = tg_now(t) + TG_PAUSE_MS;
	tg_wake(t);
}

static void telegram_show_tell(struct telegram *t, struct tg_chat *l, const struct buf *text,
			       const struct tg_card *card)
{
	if (buf_check(text) == 0 && telegram_show_is_blank(text->data ? text->data : "", text->len))
		telegram_show_give_up(t, l, "it has no text");
	else if (!tg_put_text(t, l->id, text, l->telling, card))
		tell_later(t, l);
}

/* Send a result as a document only if it is too long for Ava's words: she tells of it herself, and
 * the run's card has the end. */
static void told_result(struct telegram *t, const struct tg_asking *a)
{
	struct tg_chat *l = telling(t, a);
	struct buf text;
	struct telegram_show_out *o;

	if (!l)
		return;
	buf_init(&text, TG_TEXT_BYTES);
	if (a->status == 200)
		tg_text_result(&text, a->answer);
	if (buf_check(&text) != 0 || tg_cut(text.data, text.len, TG_TEXT_UNITS) == text.len) {
		l->told = true;
	} else if ((o = put_document(t, l, &text, a->lsn))) {
		o->ends = true;
	} else {
		tell_later(t, l);
	}
	buf_fini(&text);
	tg_wake(t);
}

/* Tell a message from its event, which has more text; from the notice if the event cannot
 * be read. */
static void told_message(struct telegram *t, const struct tg_asking *a)
{
	const json_t *event = json_array_get(json_object_get(a->answer, "events"), 0);
	const char *s = json_str(json_object_get(event, "content"), "text");
	struct tg_chat *l = telling(t, a);
	bool whole = a->status == 200 && *s;
	struct buf text;

	if (!l)
		return;
	if (a->status == 409) { /* many questions are being answered */
		tell_later(t, l);
		return;
	}
	buf_init(&text, TG_TEXT_BYTES);
	s = whole ? s : json_str(l->notice, "text");
	format_barred(&text, s, strlen(s), false);
	if (!whole)
		buf_addf(&text, "...\n\n%s", a->status == 200 ? "" : a->why);
	telegram_show_tell(t, l, &text, NULL);
	buf_fini(&text);
}

static void telegram_show_look_at(struct telegram *t, struct tg_chat *l, const struct tg_card *c,
				  uint64_t lsn);

/* Tell a notice by a card, a message that is edited later. */
static void tell_card(struct telegram *t, struct tg_chat *l, enum tg_card_kind kind, const char *id)
{
	struct tg_card *c = tg_card_of(&t->kept, l->id, kind, id);
	const char *ask = json_str(l->notice, "ask"), *call = ask + strcspn(ask, ":");

	/* A run has a question at a time: an older card's question was answered. */
	if (!c || c->message != 0)
		c = tg_card_new(&t->kept, l->id, kind, id);
	snprintf(c->call, sizeof(c->call), "%s", *call ? call + 1 : "");
	c->hash[0] = '\0';
	if (strcmp(json_str(json_object_get(l->notice, "detail"), "of"), "approval") == 0)
		snprintf(c->hash, sizeof(c->hash), "%s", c->call);
	c->until_ms = clock_wall_ms() + TG_BUTTONS_MS;
	telegram_show_look_at(t, l, c, l->telling);
}

static void tell_words(struct telegram *t, struct tg_chat *l, const char *words)
{
	struct buf text;

	buf_init(&text, TG_TEXT_BYTES);
	format_barred(&text, words, strlen(words), false);
	telegram_show_tell(t, l, &text, NULL);
	buf_fini(&text);
}

static void begin_notice(struct telegram *t, struct tg_chat *l)
{
	struct tg_asking a = {.chat = l->id};
	const struct notice *it;
	const char *run;
	char user[40];

	snprintf(user, sizeof(user), DELIVERY_TELEGRAM_USER "%" PRId64, l->id);
	it = delivery_next(t->core, user);
	l->notice = it ? json_parse(it->json, strlen(it->json), NULL) : NULL;
	if (!l->notice)
		return;
	a.lsn = l->telling = it->item.lsn;
	run = json_str(l->notice, "run");
	switch (it->item.kind) {
	case ITEM_started:
		tell_card(t, l, TG_RUN, run);
		return;
	case ITEM_proposed:
		tell_card(t, l, TG_QUOTE, it->item.ask);
		return;
	case ITEM_asked:
		tell_card(t, l, TG_QUESTION, run);
		return;
	case ITEM_failed:
		if (it->item.by_ava)
			break;
		/* fallthrough */
	case ITEM_result:
		a.then = told_result;
		tg_ask(t, &a, "GET", NULL, TG_API "/runs/%s/result", run);
		return;
	case ITEM_said:
		a.then = told_message;
		if (json_get_bool(l->notice, "cut", false))
			tg_ask(t, &a, "GET",
			       json_pack("{s:I,s:i,s:s}", "after", (json_int_t)a.lsn - 1, "limit",
					 1, "type", "AssistantMessage"),
			       TG_API "/logs");
		else
			tell_words(t, l, json_str(l->notice, "text"));
		return;
	case ITEM_expired:
	case ITEM_noted:
	case ITEM_doing:
	case ITEM_answered:
	case ITEM_NKINDS:
		break;
	}
	tell_words(t, l, json_str(l->notice, "title"));
}

/* ---- cards: what stands in a message is looked at when it is due */

static uint64_t hash_of(const struct buf *text)
{
	return siphash(1, 2, text->data, text->len, 1, 3);
}

static bool is_open(const struct tg_card *c, const json_t *answer)
{
	if (c->kind == TG_RUN)
		return !json_str(answer, "ended_at")[0];
	if (c->kind == TG_QUESTION)
		return strcmp(json_str(json_object_get(answer, "waiting_for"), "call_id"),
			      c->call) == 0;
	return strcmp(json_str(answer, "state"), "pending") == 0;
}

/* Send the card's message, for the notice being told. */
static void send_card(struct telegram *t, struct tg_chat *l, struct tg_card *c,
		      const struct tg_asking *a)
{
	const char *until = json_str(a->answer, "expires_at");
	bool open = is_open(c, a->answer);
	struct buf text;

	if (!open && c->kind != TG_RUN) {
		telegram_show_give_up(t, l, "it is answered");
		drop_card(t, c);
		return;
	}
	if (c->kind == TG_QUOTE) {
		snprintf(c->hash, sizeof(c->hash), "%s", json_str(a->answer, "config_hash"));
		c->until_ms = clock_parse_iso(until, strlen(until));
	}
	buf_init(&text, TG_TEXT_BYTES);
	tg_kinds[c->kind].text(&text, a->answer);
	telegram_show_tell(t, l, &text, open ? c : NULL);
	c->shown = hash_of(&text);
	buf_fini(&text);
	if (!open)
		drop_card(t, c);
}

/* Edit the card's message, the last one of its text; `last`: for good, so without buttons. */
static void edit_card(struct telegram *t, struct tg_chat *l, struct tg_card *c,
		      const struct buf *text, bool last)
{
	size_t parts, at = last_part(text->data, text->len, &parts);
	uint64_t hash = hash_of(text);
	struct telegram_show_out *o;
	json_t *args;

	if (buf_check(text) != 0 || (hash == c->shown && !last))
		return;
	args = text_args(l->id, text->data + at, text->len - at, last ? NULL : buttons_of(c));
	json_object_set_new(args, "message_id", json_integer(c->message));
	o = add_out(t, l, "editMessageText", args);
	if (!o)
		return;
	o->last = last;
	snprintf(o->nonce, sizeof(o->nonce), "%s", c->nonce);
	c->shown = hash;
}

/* Show the present state in a card, or drop it. */
static void renew_card(struct telegram *t, struct tg_chat *l, struct tg_card *c,
		       const struct tg_asking *a)
{
	bool open = is_open(c, a->answer);
	struct buf text;

	if (c->message == 0 || c->kind == TG_CHANGE) { /* unsent, or never edited */
		if (!open)
			drop_card(t, c);
	} else if (c->kind == TG_QUESTION && !open) { /* the question stays, its buttons go */
		if (c->hash[0])
			add_out(t, l, "editMessageReplyMarkup",
				json_pack("{s:I,s:I}", "chat_id", (json_int_t)l->id, "message_id",
					  (json_int_t)c->message));
		drop_card(t, c);
	} else if (c->kind == TG_RUN || !open) {
		buf_init(&text, TG_TEXT_BYTES);
		tg_kinds[c->kind].text(&text, a->answer);
		edit_card(t, l, c, &text, !open);
		buf_fini(&text);
	}
}

static void card_looked_at(struct telegram *t, const struct tg_asking *a)
{
	struct tg_card *c = tg_card_with(&t->kept, a->nonce, strlen(a->nonce));
	struct tg_chat *l = tg_chat(&t->kept, a->chat), *told = a->lsn > 0 ? telling(t, a) : NULL;
	int64_t edit_ms = t->core->settings.telegram_edit_ms;
	bool slow = json_get_fixed(a->answer, "elapsed_seconds", 3, 0) > SLOW_RUN_MS;

	tg_wake(t);
	if (l)
		l->looking = false;
	if (c)
		c->due_ms = tg_now(t) + (slow ? SLOW_EDITS * edit_ms : edit_ms);
	if (told && a->status == 404)
		telegram_show_give_up(t, told, a->why);
	else if (told && (!c || a->status != 200))
		tell_later(t, told);
	if (c && a->status == 404)
		drop_card(t, c);
	else if (c && l && a->status == 200)
		(told ? send_card : renew_card)(t, l, c, a);
}

static void telegram_show_look_at(struct telegram *t, struct tg_chat *l, const struct tg_card *c,
				  uint64_t lsn)
{
	struct tg_asking a = {.then = card_looked_at, .chat = l->id, .lsn = lsn};

	l->looking = true;
	memcpy(a.nonce, c->nonce, sizeof(a.nonce));
	tg_ask(t, &a, "GET", NULL, tg_kinds[c->kind].path, c->id);
}

/* The one that has waited longest, so that many runs take turns. */
static void look_at_card(struct telegram *t, struct tg_chat *l, int64_t *next_ms)
{
	const struct tg_card *c = NULL;

	for (size_t i = 0; i < TG_CARDS_MAX; i++) {
		const struct tg_card *other = &t->kept.cards[i];

		if (other->chat == l->id && (!c || other->due_ms < c->due_ms))
			c = other;
	}
	if (c && c->due_ms <= tg_now(t))
		telegram_show_look_at(t, l, c, 0);
	else if (c)
		*next_ms = MIN(*next_ms, c->due_ms);
}

/* ---- sending */

static void sent_well(struct telegram *t, struct tg_chat *l, const struct telegram_show_out *o,
		      const json_t *result)
{
	struct tg_card *c = tg_card_with(&t->kept, o->nonce, strlen(o->nonce));
	int64_t message = json_get_int(result, "message_id", 0);

	if (!c && message > l->said) {
		l->said = message;
		snprintf(l->ask, sizeof(l->ask), "%s",
			 o->lsn > 0 && o->lsn == l->telling ? json_str(l->notice, "ask") : "");
		t->dirty = true;
	}
	if (c && o->last) {
		drop_card(t, c);
	} else if (c) {
		c->free_ms = tg_now(t) + t->core->settings.telegram_edit_ms;
		c->due_ms = MAX(c->due_ms, c->free_ms);
		message = message ? message : c->message;
		t->dirty |= message != c->message;
		c->message = message;
	}
	l->told |= o->ends && o->lsn > 0;
}

static void sent_in_vain(struct telegram *t, struct tg_chat *l, const struct telegram_show_out *o,
			 const char *why)
{
	struct tg_card *c = tg_card_with(&t->kept, o->nonce, strlen(o->nonce));

	tg_log(t, "%s: %s", o->method, why);
	if (c) /* the card's message was removed */
		drop_card(t, c);
	if (o->lsn > 0) {
		drop_parts(l);
		telegram_show_give_up(t, l, why);
	}
}

static const char not_taken[] =
	"For a while Telegram did not take what comes next. If it does not come, "
	"it stands in `ava chat` on a terminal.";

/* The service failed at it, and not at words before it: it never takes it. */
static bool fails_for_good(struct telegram *t, struct tg_chat *l, struct telegram_show_out *o)
{
	struct telegram_show_out *words;

	if (++o->tries == FAILS_MAX) {
		words = add_out(t, l, "sendMessage",
				text_args(l->id, not_taken, strlen(not_taken), NULL));
		o->tries -= !words;
		if (words) {
			words->tries = INT_MIN;
			put_first(l, words);
		}
	}
	return o->tries >= FAILS_MAX + AGAIN_MAX;
}

static void sent(struct tg_call *call, const struct tg_answer *a)
{
	struct tg_chat *l = CONTAINER_OF(call, struct tg_chat, send);
	struct telegram_show_out *o = LIST_FIRST(&l->outs, struct telegram_show_out, node);
	struct telegram *t = call->user;

	tg_wake(t);
	call->next_ms = MAX(call->next_ms, tg_now(t) + t->core->settings.telegram_pace_ms);
	if (a->verdict == TG_REVOKED)
		tg_close(t, DOOR_CLOSED, a->why);
	if (a->verdict == TG_BLOCKED) {
		tg_line_clear(l);
		l->blocked = true;
	}
	if (a->verdict > TG_LATER || a->verdict == TG_BLOCKED ||
	    (a->verdict == TG_LATER && (call->http.status < 500 || !fails_for_good(t, l, o))))
		return;
	list_del(&o->node);
	if (a->verdict == TG_OK)
		sent_well(t, l, o, a->result);
	else
		sent_in_vain(t, l, o, a->why);
	free_out(l, o);
}

static void send_out(struct telegram *t, struct tg_chat *l)
{
	const struct telegram_show_out *o = LIST_FIRST(&l->outs, struct telegram_show_out, node);

	l->send.done = sent;
	l->send.user = t;
	if (!tg_call(t->api, &l->send, o->method, &o->body, o->boundary))
		tg_wake(t);
}

/* While Ava is at it their client says so; what keeps her from it is a message. */
static void show_typing(struct telegram *t, struct tg_chat *l, int64_t *next_ms)
{
	struct op_session s;

	if (!l->session[0] || ops_session(t->core, l->session, &s, NULL) != 0 || !s.busy) {
		l->typing_ms = 0;
		l->troubled = false;
		return;
	}
	if (s.trouble && !l->troubled)
		l->troubled = add_out(t, l, "sendMessage",
				      text_args(l->id, s.trouble, strlen(s.trouble), NULL));
	if (l->typing_ms == 0) {
		l->typing_ms = tg_now(t) + QUICK_MS;
	} else if (l->typing_ms <= tg_now(t)) {
		add_out(t, l, "sendChatAction",
			json_pack("{s:I,s:s}", "chat_id", (json_int_t)l->id, "action", "typing"));
		l->typing_ms = tg_now(t) + TYPING_MS;
	}
	*next_ms = MIN(*next_ms, l->typing_ms);
}

/* Calls are made only when they can be sent, so that their content is current and notices go before
 * cards; and they are sent only when the state they tell of is on disk. */
void tg_show(struct telegram *t, int64_t *next_ms)
{
	for (size_t i = 0; i < TG_CHATS_MAX; i++) {
		struct tg_chat *l = &t->kept.chats[i];

		if (l->id == 0 || l->blocked || l->send.busy)
			continue;
		if (l->send.next_ms > tg_now(t)) {
			*next_ms = MIN(*next_ms, l->send.next_ms);
			continue;
		}
		if (l->nouts == 0 && !l->looking && l->telling == 0)
			begin_notice(t, l);
		if (l->nouts == 0 && !l->looking)
			look_at_card(t, l, next_ms);
		if (l->nouts == 0 && !l->looking)
			show_typing(t, l, next_ms);
		if (l->nouts > 0 && tg_kept(t))
			send_out(t, l);
	}
}
