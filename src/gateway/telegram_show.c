/* What people are shown: notices (ava/delivery.h), once each and in order, and cards, which are
 * edited as what they show changes; and how it goes out: a line of calls for each chat, one at a
 * time, at the pace that the service allows. People are few enough that all of their lines together
 * are within what the service allows a bot.
 *
 *   a notice ─► its verb ─► its text ─► the chat's line ─► told, settled with the state
 *   a card that is due ─► its verb ─► other words? ─► an edit ─► due again, or done with
 *
 * What can fail: a verb (the notice says less; the card is looked at later), memory likewise; the
 * service, see enum tg_verdict. A call that was not taken stays the first of its line; one that
 * never will be is dropped, and the notice it was of is given up. An outage drops nothing: a call
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
#include "base/id.h"
#include "base/siphash.h"
#include "codec/format_of.h"
#include "codec/utf8.h"

#define OUTS_MAX    64    /* that wait for a chat */
#define PARTS_MAX   3     /* a longer text is a document */
#define FAILS_MAX   5     /* of the service at one call, before words are tried */
#define AGAIN_MAX   3     /* and behind words that were taken */
#define SLOW_RUN_MS 60000 /* its line changes less often then */
#define SLOW_EDITS  5

struct out { /* a call that waits for its turn */
	struct list node;
	const char *method;
	char boundary[TG_NONCE_LEN + 1]; /* of the parts of a form; "": it is JSON */
	struct buf body;
	char nonce[TG_NONCE_LEN + 1]; /* of its card; "": none */
	bool last;                    /* its card is done with after this */
	uint64_t lsn;                 /* a part of this notice; 0: of none */
	bool ends;                    /* its last one */
	int tries;                    /* that the service failed at; below 0: it may for ever */
};

/* ---- what goes out */

static void free_out(struct out *o)
{
	list_del(&o->node);
	buf_fini(&o->body);
	free(o);
}

void tg_line_clear(struct tg_chat *l)
{
	while (!list_empty(&l->outs))
		free_out(LIST_FIRST(&l->outs, struct out, node));
	tg_call_fini(&l->send);
	l->nouts = 0;
	l->telling = 0;
	l->told = false;
	l->reason[0] = '\0';
}

/* A call at the end of its line. `args` is *taken*; NULL: no memory. NULL: there is no room. */
static struct out *add_out(struct telegram *t, const char *method, int64_t chat, json_t *args)
{
	struct tg_chat *l = tg_chat(&t->kept, chat);
	struct out *o = l && l->nouts < OUTS_MAX ? calloc(1, sizeof(*o)) : NULL;

	if (o) {
		o->method = method;
		list_init(&o->node);
		buf_init(&o->body, TG_TEXT_BYTES + 8192);
		if (!args || json_dump(&o->body, args) != 0) {
			free_out(o);
			o = NULL;
		}
	}
	json_decref(args);
	if (!o)
		return NULL;
	list_add(&l->outs, &o->node);
	l->nouts++;
	tg_wake(t);
	return o;
}

/* Previews would fetch what stands in it. `markup` is *taken*; NULL: none. */
static json_t *text_args(int64_t chat, const char *s, size_t len, json_t *markup)
{
	return json_pack("{s:I,s:o,s:{s:b},s:o*}", "chat_id", (json_int_t)chat, "text",
			 json_stringn_nocheck(s, len), "link_preview_options", "is_disabled", 1,
			 "reply_markup", markup);
}

/* `call` that asks yes or no has buttons too, which is when its card has a hash. */
static json_t *buttons_of(const struct tg_card *c)
{
	static const char *const names[TG_NKINDS][3] = {
		{"Yes", "No", "Change"}, {NULL}, {"Cancel"}, {"Yes", "No"}};
	json_t *row = json_array();

	if (c->kind == TG_CHANGE) {
		json_decref(row);
		return json_pack("{s:b}", "force_reply", 1);
	}
	for (size_t i = 0; tg_letters[c->kind][i] && (c->kind != TG_QUESTION || c->hash[0]); i++) {
		char data[TG_NONCE_LEN + 8];

		snprintf(data, sizeof(data), "v1:%s:%c", c->nonce, tg_letters[c->kind][i]);
		json_array_append_new(row, json_pack("{s:s,s:s}", "text", names[c->kind][i],
						     "callback_data", data));
	}
	return json_pack("{s:[o]}", "inline_keyboard", row);
}

/* Before all else but what is on its way. */
static void put_first(struct tg_chat *l, struct out *o)
{
	list_del(&o->node);
	if (l->send.busy)
		list_add_front(l->outs.next, &o->node);
	else
		list_add_front(&l->outs, &o->node);
}

/* A press is always answered, before all else, or the button turns for ever. */
void tg_answer_press(struct telegram *t, const char *text)
{
	struct out *o =
		add_out(t, "answerCallbackQuery", t->hand.chat,
			json_pack("{s:s,s:o,s:b}", "callback_query_id", t->hand.callback, "text",
				  json_stringn_nocheck(text, utf8_prefix(text, strlen(text), 190)),
				  "show_alert", text[0] != '\0'));

	if (o)
		put_first(tg_chat(&t->kept, t->hand.chat), o);
}

/* ---- a text in messages, or as a document */

static bool put_message(struct telegram *t, int64_t chat, const char *s, size_t len, bool ends,
			uint64_t lsn, const struct tg_card *card)
{
	struct out *o = add_out(t, "sendMessage", chat,
				text_args(chat, s, len, ends && card ? buttons_of(card) : NULL));

	if (!o)
		return false;
	if (ends && card)
		snprintf(o->nonce, sizeof(o->nonce), "%s", card->nonce);
	o->lsn = lsn;
	o->ends = ends;
	return true;
}

/* Its first line is what stands below the document. */
static bool put_document(struct telegram *t, int64_t chat, const struct buf *text, uint64_t lsn,
			 bool ends)
{
	const char *s = text->data;
	struct out *o = add_out(t, "sendDocument", chat, json_object());

	if (!o)
		return false;
	tg_nonce(o->boundary);
	o->lsn = lsn;
	o->ends = ends;
	buf_reset(&o->body);
	buf_addf(&o->body,
		 "--%s\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n%" PRId64 "\r\n"
		 "--%s\r\nContent-Disposition: form-data; name=\"caption\"\r\n\r\n",
		 o->boundary, chat, o->boundary);
	buf_add(&o->body, s, tg_cut(s, strcspn(s, "\n"), TG_CAPTION_UNITS));
	buf_addf(&o->body,
		 "\r\n--%s\r\nContent-Disposition: form-data; name=\"document\"; "
		 "filename=\"ava-%" PRIu64 ".txt\"\r\nContent-Type: text/plain; "
		 "charset=utf-8\r\n\r\n",
		 o->boundary, lsn);
	buf_add(&o->body, s, text->len);
	buf_addf(&o->body, "\r\n--%s--\r\n", o->boundary);
	if (buf_check(&o->body) == 0)
		return true;
	tg_chat(&t->kept, chat)->nouts--;
	free_out(o);
	return false;
}

bool tg_is_blank(const char *s, size_t len)
{
	return strspn(s, " \t\n") >= len;
}

/* Where the last message of a text begins that is cut into `parts`. */
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
	const char *s = text->data ? text->data : "";
	size_t len = text->len, at = 0, last, parts, n;
	bool whole = buf_check(text) == 0;

	while (len > 0 && strchr(" \t\n", s[len - 1]))
		len--;
	last = last_part(s, len, &parts);
	if (parts > PARTS_MAX) {
		whole = put_document(t, chat, text, lsn, !card);
		at = card ? last : len;
	}
	for (; at < len; at += n) {
		n = tg_cut(s + at, len - at, TG_TEXT_UNITS);
		if (whole && !tg_is_blank(s + at, n))
			whole = put_message(t, chat, s + at, n, at + n >= len, lsn, card);
	}
	return whole;
}

void tg_say(struct telegram *t, int64_t chat, const char *fmt, ...)
{
	struct buf text;
	va_list ap;

	buf_init(&text, 1u << 16);
	va_start(ap, fmt);
	buf_vaddf(&text, fmt, ap);
	va_end(ap);
	(void)tg_put_text(t, chat, &text, 0, NULL);
	buf_fini(&text);
}

/* ---- notices */

static void drop_parts(struct tg_chat *l) /* of the one that is being told */
{
	LIST_EACH (&l->outs, n, tmp) {
		struct out *o = LIST_ENTRY(n, struct out, node);

		if (o->lsn == 0)
			continue;
		free_out(o);
		l->nouts--;
	}
}

static void give_up(struct telegram *t, struct tg_chat *l, const char *reason)
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
	tg_told_over(t, l);
	l->next_ms = tg_now(t) + TG_BACKOFF_MS;
}

static void tell(struct telegram *t, const struct tg_asking *a, const struct buf *text,
		 const struct tg_card *card)
{
	struct tg_chat *l = telling(t, a);

	if (!l)
		return;
	if (buf_check(text) == 0 && tg_is_blank(text->data ? text->data : "", text->len))
		give_up(t, l, "it has no text");
	else if (!tg_put_text(t, a->chat, text, a->lsn, card))
		tell_later(t, l);
}

/* Ava tells of it herself, and the run's card how it ended: only what is too long for her words is
 * sent as well. */
static void told_result(struct telegram *t, const struct tg_asking *a, int status,
			const json_t *answer, const char *why)
{
	struct tg_chat *l = telling(t, a);
	struct buf text;

	buf_init(&text, TG_TEXT_BYTES);
	if (status == 200)
		tg_text_result(&text, answer);
	if (l && (buf_check(&text) != 0 || tg_cut(text.data, text.len, TG_TEXT_UNITS) == text.len))
		l->told = true;
	else if (l && !put_document(t, a->chat, &text, a->lsn, true))
		tell_later(t, l);
	buf_fini(&text);
	tg_wake(t);
}

/* The event has more of it than the notice, which is told where that cannot be read. */
static void told_message(struct telegram *t, const struct tg_asking *a, int status,
			 const json_t *answer, const char *why)
{
	const json_t *event = json_array_get(json_object_get(answer, "events"), 0);
	const char *s = json_str(json_object_get(event, "content"), "text");
	const struct item *it = delivery_next(t->core, a->user);
	struct tg_chat *l = telling(t, a);
	json_t *notice;
	struct buf text;

	if (!l || !it || it->lsn != a->lsn ||
	    status == 409) { /* many questions are being answered */
		if (l)
			tell_later(t, l);
		return;
	}
	notice = json_parse(it->json, strlen(it->json), NULL);
	buf_init(&text, TG_TEXT_BYTES);
	if (status == 200 && *s)
		(void)utf8_terminal(&text, s, strlen(s), true);
	else
		buf_addf(&text, "%s...\n\n%s", json_str(notice, "text"), status == 200 ? "" : why);
	tell(t, a, &text, NULL);
	buf_fini(&text);
	json_decref(notice);
}

static void told_quote(struct telegram *t, const struct tg_asking *a, int status,
		       const json_t *answer, const char *why)
{
	const char *id = json_str(answer, "proposal_id"), *until = json_str(answer, "expires_at");
	struct tg_chat *l = telling(t, a);
	struct tg_card *c;
	struct buf text;

	if (!l || status != 200 || strcmp(json_str(answer, "state"), "pending") != 0) {
		if (l)
			give_up(t, l, status == 200 ? "it is answered" : why);
		return;
	}
	c = tg_card_of(&t->kept, a->chat, TG_QUOTE, id);
	if (!c)
		c = tg_card_new(&t->kept, a->chat, TG_QUOTE, id);
	snprintf(c->hash, sizeof(c->hash), "%s", json_str(answer, "config_hash"));
	c->until_ms = clock_parse_iso(until, strlen(until));
	c->due_ms = INT64_MAX; /* until it is there */
	buf_init(&text, TG_TEXT_BYTES);
	tg_text_quote(&text, answer);
	tell(t, a, &text, c);
	buf_fini(&text);
}

static void tell_question(struct telegram *t, const struct tg_asking *a, const json_t *notice)
{
	const char *run = json_str(notice, "run_id");
	struct tg_card *c = tg_card_of(&t->kept, a->chat, TG_QUESTION, run);
	struct buf text;

	/* A run asks one thing at a time: what it asked before is answered. */
	if (!c || c->message != 0)
		c = tg_card_new(&t->kept, a->chat, TG_QUESTION, run);
	snprintf(c->call, sizeof(c->call), "%s", json_str(notice, "call_id"));
	if (strcmp(json_str(notice, "kind"), "approval") == 0)
		snprintf(c->hash, sizeof(c->hash), "%s", c->call);
	c->until_ms = clock_wall_ms() + TG_BUTTONS_MS;
	c->due_ms = INT64_MAX;
	buf_init(&text, TG_TEXT_BYTES);
	tg_text_question(&text, notice);
	tell(t, a, &text, c);
	buf_fini(&text);
}

static void begin_notice(struct telegram *t, struct tg_chat *l)
{
	struct tg_asking a = {.chat = l->id};
	const struct item *it;
	json_t *notice;
	struct buf text;

	snprintf(a.user, sizeof(a.user), DELIVERY_TELEGRAM_USER "%" PRId64, l->id);
	it = delivery_next(t->core, a.user);
	notice = it ? json_parse(it->json, strlen(it->json), NULL) : NULL;
	if (!notice)
		return;
	a.lsn = l->telling = it->lsn;
	if (it->kind == ITEM_RESULT) {
		a.then = told_result;
		tg_ask(t, &a, "GET", NULL, TG_API "/runs/%s/result", json_str(notice, "run_id"));
	} else if (it->kind == ITEM_PROPOSAL) {
		a.then = told_quote;
		tg_ask(t, &a, "GET", NULL, TG_API "/proposals/%s", it->key);
	} else if (it->kind == ITEM_QUESTION) {
		tell_question(t, &a, notice);
	} else if (json_get_bool(notice, "cut", false)) {
		a.then = told_message;
		tg_ask(t, &a, "GET",
		       json_pack("{s:I,s:i,s:s}", "after", (json_int_t)a.lsn - 1, "limit", 1,
				 "type", "AssistantMessage"),
		       TG_API "/logs");
	} else {
		buf_init(&text, TG_TEXT_BYTES);
		buf_adds(&text, json_str(notice, it->kind == ITEM_MESSAGE ? "text" : "title"));
		tell(t, &a, &text, NULL);
		buf_fini(&text);
	}
	json_decref(notice);
}

/* ---- cards: what stands in a message is looked at when it is due */

/* The card says this now, at the end of it; `last`: for good, so without its buttons. */
static void put_card(struct telegram *t, struct tg_card *c, const struct buf *text, bool last)
{
	uint64_t hash = siphash(1, 2, text->data, text->len, 1, 3);
	size_t parts, at = last_part(text->data, text->len, &parts);
	struct out *o;
	json_t *args;

	if (buf_check(text) != 0 || (hash == c->shown && !last))
		return;
	args = text_args(c->chat, text->data + at, text->len - at, last ? NULL : buttons_of(c));
	if (c->message)
		json_object_set_new(args, "message_id", json_integer(c->message));
	o = add_out(t, c->message ? "editMessageText" : "sendMessage", c->chat, args);
	if (!o)
		return;
	o->last = last;
	snprintf(o->nonce, sizeof(o->nonce), "%s", c->nonce);
	c->shown = hash;
	c->due_ms = INT64_MAX; /* until this has gone out */
}

/* What is asked stays, its buttons go. */
static void put_bare(struct telegram *t, struct tg_card *c)
{
	if (c->hash[0])
		add_out(t, "editMessageReplyMarkup", c->chat,
			json_pack("{s:I,s:I}", "chat_id", (json_int_t)c->chat, "message_id",
				  (json_int_t)c->message));
	tg_card_drop(&t->kept, c);
	t->dirty = true;
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

static void card_looked_at(struct telegram *t, const struct tg_asking *a, int status,
			   const json_t *answer, const char *why)
{
	struct tg_card *c = tg_card_with(&t->kept, a->nonce, strlen(a->nonce));
	struct tg_chat *l = tg_chat(&t->kept, a->chat);
	bool open;
	struct buf text;

	if (l)
		l->looking = false;
	tg_wake(t);
	if (!c)
		return;
	c->pause_ms = t->core->settings.telegram_edit_ms;
	if (json_get_fixed(answer, "elapsed_seconds", 3, 0) > SLOW_RUN_MS)
		c->pause_ms *= SLOW_EDITS;
	c->due_ms = tg_now(t) + c->pause_ms;
	open = status == 200 && is_open(c, answer);
	if (status == 404 || (status == 200 && !open && c->kind != TG_RUN &&
			      (c->kind == TG_CHANGE || c->message == 0))) {
		tg_card_drop(&t->kept, c);
		t->dirty = true;
		return;
	}
	if (status != 200 || (open && c->kind != TG_RUN))
		return;
	if (c->kind == TG_QUESTION) {
		put_bare(t, c);
		return;
	}
	buf_init(&text, TG_TEXT_BYTES);
	if (c->kind == TG_RUN)
		tg_text_run(&text, answer);
	else
		tg_text_quote(&text, answer);
	put_card(t, c, &text, !open);
	buf_fini(&text);
}

/* The one that has waited longest, so that many runs take turns. */
static void look_at_card(struct telegram *t, struct tg_chat *l, int64_t *next_ms)
{
	struct tg_asking a = {.then = card_looked_at, .chat = l->id};
	const struct tg_card *c = NULL;

	for (size_t i = 0; i < TG_CARDS_MAX; i++) {
		const struct tg_card *other = &t->kept.cards[i];

		if (other->chat == l->id && (!c || other->due_ms < c->due_ms))
			c = other;
	}
	if (!c || l->looking)
		return;
	if (c->due_ms > tg_now(t)) {
		*next_ms = MIN(*next_ms, c->due_ms);
		return;
	}
	l->looking = true;
	memcpy(a.nonce, c->nonce, sizeof(a.nonce));
	tg_ask(t, &a, "GET", NULL,
	       c->kind == TG_RUN || c->kind == TG_QUESTION ? TG_API "/runs/%s"
							   : TG_API "/proposals/%s",
	       c->id);
}

void tg_cards_due(struct telegram *t, int64_t chat, const char *id)
{
	for (size_t i = 0; i < TG_CARDS_MAX; i++) {
		struct tg_card *c = &t->kept.cards[i];

		if (c->chat != chat || (c->message == 0 && c->kind != TG_RUN))
			continue; /* it comes with its notice */
		if (!id || (strcmp(c->id, id) == 0 && c->due_ms != INT64_MAX))
			c->due_ms = c->free_ms;
	}
	tg_wake(t);
}

void tg_run_card(struct telegram *t, int64_t chat, const char *run)
{
	if (!tg_card_of(&t->kept, chat, TG_RUN, run))
		tg_card_new(&t->kept, chat, TG_RUN, run)->until_ms =
			clock_wall_ms() + TG_BUTTONS_MS;
}

/* ---- sending */

static void sent_well(struct telegram *t, struct tg_chat *l, const struct out *o,
		      const json_t *result)
{
	struct tg_card *c = tg_card_with(&t->kept, o->nonce, strlen(o->nonce));
	int64_t message;

	if (c && o->last) {
		tg_card_drop(&t->kept, c);
		t->dirty = true;
	} else if (c) {
		c->free_ms = tg_now(t) + t->core->settings.telegram_edit_ms;
		c->due_ms = MAX(c->free_ms, tg_now(t) + c->pause_ms);
		message = json_get_int(result, "message_id", c->message);
		t->dirty |= message != c->message;
		c->message = message;
	}
	l->told |= o->ends && o->lsn > 0;
}

static void sent_in_vain(struct telegram *t, struct tg_chat *l, const struct out *o,
			 const char *why)
{
	struct tg_card *c = tg_card_with(&t->kept, o->nonce, strlen(o->nonce));
	char text[400];

	snprintf(text, sizeof(text), "telegram: %s: %s", o->method, why);
	t->log(text, t->log_user);
	if (c) { /* its message was removed */
		tg_card_drop(&t->kept, c);
		t->dirty = true;
	}
	if (o->lsn > 0) {
		drop_parts(l);
		give_up(t, l, why);
	}
}

static const char not_taken[] =
	"For a while Telegram did not take what comes next. If it does not come, "
	"it stands in `ava chat` on a terminal.";

/* The service failed at it, and not at words before it: it never takes it. */
static bool fails_for_good(struct telegram *t, struct tg_chat *l, struct out *o)
{
	struct out *words;

	if (++o->tries == FAILS_MAX) {
		words = add_out(t, "sendMessage", l->id,
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
	struct out *o = LIST_FIRST(&l->outs, struct out, node);
	struct telegram *t = call->user;
	int64_t pace = t->core->settings.telegram_pace_ms;

	tg_wake(t);
	l->pause_ms = a->verdict == TG_LATER ? tg_longer(l->pause_ms) : 0;
	l->next_ms = tg_now(t) + (a->verdict == TG_SLOW ? a->after_ms : MAX(pace, l->pause_ms));
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
	l->nouts--;
	if (a->verdict == TG_OK)
		sent_well(t, l, o, a->result);
	else
		sent_in_vain(t, l, o, a->why);
	free_out(o);
	t->news |= l->nouts == 0;
}

static void send_out(struct telegram *t, struct tg_chat *l)
{
	const struct out *o = LIST_FIRST(&l->outs, struct out, node);
	struct ava_error err = {0};
	struct buf copy;

	buf_init(&copy, o->body.max);
	buf_add(&copy, o->body.data, o->body.len);
	l->send.done = sent;
	l->send.user = t;
	if (tg_call(t->api, &l->send, o->method, &copy, o->boundary[0] ? o->boundary : NULL,
		    &err) == 0)
		return;
	l->next_ms = tg_now(t) + TG_BACKOFF_MS;
	tg_wake(t);
}

/* Nothing is made before it can go out, so that it is of then and what is said goes before cards;
 * and nothing is said before what it tells of is on disk. */
void tg_show(struct telegram *t, int64_t *next_ms)
{
	bool news = t->news;

	t->news = false;
	for (size_t i = 0; i < TG_CHATS_MAX; i++) {
		struct tg_chat *l = &t->kept.chats[i];

		if (l->id == 0 || l->blocked || l->send.busy)
			continue;
		if (l->next_ms > tg_now(t)) {
			*next_ms = MIN(*next_ms, l->next_ms);
			t->news |= news;
			continue;
		}
		if (news && l->telling == 0 && l->nouts == 0)
			begin_notice(t, l);
		if (l->nouts == 0)
			look_at_card(t, l, next_ms);
		if (l->nouts > 0 && !t->dirty && !t->saving)
			send_out(t, l);
	}
}
