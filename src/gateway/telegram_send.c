/* What goes out: a line of calls for each chat, one at a time, at the pace that the service allows,
 * in order. A text is cut into messages, or is a document. People are few enough that all of their
 * lines together are within what the service allows a bot.
 *
 * What can fail: see enum tg_verdict. A call that was not taken stays the first of its line; one
 * that never will be is dropped, and the notice it was of is given up. An outage drops nothing: a
 * call that the service fails at is given up only where it takes a line of words before it. */
#include "gateway/telegram_door.h"

#include <ava.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/state.h"
#include "base/id.h"
#include "codec/utf8.h"

#define OUTS_MAX  64 /* that wait for a chat */
#define PARTS_MAX 3  /* a longer text is a document */
#define FAILS_MAX 5  /* of the service at one call, before others are tried */
#define AGAIN_MAX 3  /* and behind one that was taken */

/* ---- what goes out */

void tg_out_free(struct tg_out *o)
{
	list_del(&o->node);
	buf_fini(&o->body);
	free(o);
}

void tg_line_clear(struct tg_chat *l)
{
	while (!list_empty(&l->outs))
		tg_out_free(LIST_FIRST(&l->outs, struct tg_out, node));
	tg_call_fini(&l->send);
	l->nouts = 0;
	l->telling = 0;
	l->told = false;
	l->reason[0] = '\0';
}

struct tg_out *tg_out(struct telegram *t, const char *method, int64_t chat, json_t *args)
{
	struct tg_chat *l = tg_chat(&t->kept, chat);
	struct tg_out *o = l && l->nouts < OUTS_MAX ? calloc(1, sizeof(*o)) : NULL;

	if (o) {
		o->method = method;
		list_init(&o->node);
		buf_init(&o->body, TG_TEXT_BYTES + 8192);
		if (!args || json_dump(&o->body, args) != 0) {
			tg_out_free(o);
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
json_t *tg_text_args(int64_t chat, const char *s, size_t len, json_t *markup)
{
	return json_pack("{s:I,s:o,s:{s:b},s:o*}", "chat_id", (json_int_t)chat, "text",
			 json_stringn_nocheck(s, len), "link_preview_options", "is_disabled", 1,
			 "reply_markup", markup);
}

/* `call` that asks yes or no has buttons too, which is when its card has a hash. */
json_t *tg_buttons(const struct tg_card *c)
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
static void put_first(struct tg_chat *l, struct tg_out *o)
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
	struct tg_out *o =
		tg_out(t, "answerCallbackQuery", t->hand.chat,
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
	struct tg_out *o =
		tg_out(t, "sendMessage", chat,
		       tg_text_args(chat, s, len, ends && card ? tg_buttons(card) : NULL));

	if (!o)
		return false;
	if (ends && card)
		snprintf(o->nonce, sizeof(o->nonce), "%s", card->nonce);
	o->lsn = lsn;
	o->ends = ends;
	return true;
}

bool tg_put_document(struct telegram *t, int64_t chat, const struct buf *text, uint64_t lsn,
		     bool ends)
{
	const char *s = text->data;
	struct tg_out *o = tg_out(t, "sendDocument", chat, json_object());

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
	tg_out_free(o);
	return false;
}

bool tg_is_blank(const char *s, size_t len)
{
	return strspn(s, " \t\n") >= len;
}

size_t tg_last_part(const char *s, size_t len, size_t *parts)
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
	last = tg_last_part(s, len, &parts);
	if (parts > PARTS_MAX) {
		whole = tg_put_document(t, chat, text, lsn, !card);
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

/* ---- sending */

void tg_drop_parts(struct tg_chat *l, uint64_t lsn)
{
	LIST_EACH (&l->outs, n, tmp) {
		struct tg_out *o = LIST_ENTRY(n, struct tg_out, node);

		if (lsn == 0 || o->lsn != lsn)
			continue;
		tg_out_free(o);
		l->nouts--;
	}
}

static void sent_well(struct telegram *t, struct tg_chat *l, const struct tg_out *o,
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

static void sent_in_vain(struct telegram *t, struct tg_chat *l, const struct tg_out *o,
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
		tg_drop_parts(l, o->lsn);
		tg_give_up(t, l, why);
	}
}

static const char not_taken[] =
	"For a while Telegram did not take what comes next. If it does not come, "
	"it stands in `ava chat` on a terminal.";

/* The service failed at it, and not at words before it: it never takes it. */
static bool fails_for_good(struct telegram *t, struct tg_chat *l, struct tg_out *o)
{
	struct tg_out *words;

	if (++o->tries == FAILS_MAX) {
		words = tg_out(t, "sendMessage", l->id,
			       tg_text_args(l->id, not_taken, strlen(not_taken), NULL));
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
	struct tg_out *o = LIST_FIRST(&l->outs, struct tg_out, node);
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
	tg_out_free(o);
	t->news |= l->nouts == 0;
}

static void send_out(struct telegram *t, struct tg_chat *l, const struct tg_out *o)
{
	struct ava_error err = {0};
	struct buf copy;

	buf_init(&copy, o->body.max);
	buf_add(&copy, o->body.data, o->body.len);
	l->send.done = sent;
	l->send.user = t;
	if (tg_call(t->api, &l->send, o->method, &copy, o->boundary[0] ? o->boundary : NULL,
		    &err) != 0)
		l->next_ms = tg_now(t) + TG_BACKOFF_MS;
}

void tg_send_next(struct telegram *t, int64_t *next_ms)
{
	/* Nothing is said before what it tells of is on disk. */
	if (t->dirty || t->saving)
		return;
	for (size_t i = 0; i < TG_CHATS_MAX; i++) {
		struct tg_chat *l = &t->kept.chats[i];

		if (l->id == 0 || l->blocked || list_empty(&l->outs) || l->send.busy)
			continue;
		if (l->next_ms <= tg_now(t))
			send_out(t, l, LIST_FIRST(&l->outs, struct tg_out, node));
		if (!l->send.busy)
			*next_ms = MIN(*next_ms, l->next_ms);
	}
}
