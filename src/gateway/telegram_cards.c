/* What people are shown: notices (ava/delivery.h), once each and in order, and cards, which are
 * edited as what they show changes.
 *
 *   a notice ─► its verb ─► its text ─► the chat's line ─► told, settled with the state
 *   a card that is due ─► its verb ─► other words? ─► an edit ─► due again, or done with
 *
 * What can fail: a verb (the notice says less; the card is looked at later), memory likewise. */
#include "gateway/telegram_door.h"

#include <ava.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/delivery.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/siphash.h"
#include "codec/format_of.h"
#include "codec/utf8.h"

#define SLOW_RUN_MS 60000 /* its line changes less often then */
#define SLOW_EDITS  5

/* ---- notices */

void tg_give_up(struct telegram *t, struct tg_chat *l, const char *reason)
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
	tg_drop_parts(l, l->telling);
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
		tg_give_up(t, l, "it has no text");
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
	else if (l && !tg_put_document(t, a->chat, &text, a->lsn, true))
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
			tg_give_up(t, l, status == 200 ? "it is answered" : why);
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

/* The card says this now, in what was its last message; `last`: for good, so without its buttons.
 */
static void put_card(struct telegram *t, struct tg_card *c, const struct buf *text, bool last)
{
	uint64_t hash = siphash(1, 2, text->data, text->len, 1, 3);
	size_t parts, at = tg_last_part(text->data, text->len, &parts);
	struct tg_out *o;
	json_t *args;

	if (buf_check(text) != 0 || (hash == c->shown && !last))
		return;
	args = tg_text_args(c->chat, text->data + at, text->len - at, last ? NULL : tg_buttons(c));
	if (c->message)
		json_object_set_new(args, "message_id", json_integer(c->message));
	o = tg_out(t, c->message ? "editMessageText" : "sendMessage", c->chat, args);
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
		tg_out(t, "editMessageReplyMarkup", c->chat,
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

/* Nothing is made before it can go out: it is of then, and what is said goes before it. */
void tg_show_next(struct telegram *t, int64_t *next_ms)
{
	bool news = t->news;

	t->news = false;
	for (size_t i = 0; i < TG_CHATS_MAX; i++) {
		struct tg_chat *l = &t->kept.chats[i];

		if (l->id == 0 || l->blocked || l->nouts > 0)
			continue;
		if (l->next_ms > tg_now(t)) {
			*next_ms = MIN(*next_ms, l->next_ms);
			t->news |= news;
			continue;
		}
		if (news && l->telling == 0)
			begin_notice(t, l);
		if (l->nouts == 0)
			look_at_card(t, l, next_ms);
	}
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
