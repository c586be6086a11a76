/* What goes out: a line of calls for each chat, one call at a time in all, at the pace that the
 * service allows, in order. A text is cut into messages, or is a document.
 *
 * What can fail: see enum tg_verdict. A call that was not taken stays the first of its line; one
 * that never will be is dropped, and the notice it was of is given up. */
#include "gateway/telegram_door.h"

#include <ava.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/state.h"
#include "base/id.h"
#include "codec/utf8.h"

#define OUTS_MAX  64 /* that wait for a chat */
#define PARTS_MAX 3  /* a longer text is a document */

/* ---- what goes out */

void tg_out_free(struct tg_out *o)
{
	list_del(&o->node);
	buf_fini(&o->body);
	free(o);
}

void tg_line_clear(struct tg_line *l)
{
	while (!list_empty(&l->outs))
		tg_out_free(LIST_FIRST(&l->outs, struct tg_out, node));
	l->nouts = 0;
	l->telling = 0;
	l->told = false;
	l->reason[0] = '\0';
}

/* A call with a JSON object that has begun in *w. NULL: no memory. */
struct tg_out *tg_out_new(const char *method, int64_t chat, struct jw *w)
{
	struct tg_out *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	list_init(&o->node);
	snprintf(o->method, sizeof(o->method), "%s", method);
	o->chat = chat;
	buf_init(&o->body, TG_TEXT_BYTES + 4096);
	jw_init(w, &o->body);
	jw_object(w, NULL);
	return o;
}

bool tg_out_put(struct telegram *t, struct tg_out *o)
{
	struct tg_line *l = tg_line(t, o->chat);

	if (buf_check(&o->body) != 0 || (o->chat != 0 && (!l || l->nouts >= OUTS_MAX))) {
		tg_out_free(o);
		return false;
	}
	list_add(l ? &l->outs : &t->urgent, &o->node);
	if (l)
		l->nouts++;
	tg_wake(t);
	return true;
}

/* The text of a message. Previews would fetch what stands in it. */
void tg_write_text(struct jw *w, const char *s, size_t len)
{
	jw_strn(w, "text", s, len);
	jw_object(w, "link_preview_options");
	jw_bool(w, "is_disabled", true);
	jw_end(w);
}

static void write_button(struct jw *w, const struct tg_card *c, const char *text, char letter)
{
	char data[TG_NONCE_LEN + 8];

	snprintf(data, sizeof(data), "v1:%s:%c", c->nonce, letter);
	jw_object(w, NULL);
	jw_str(w, "text", text);
	jw_str(w, "callback_data", data);
	jw_end(w);
}

/* `call` that asks yes or no has buttons too, which is when its card has a hash. */
void tg_write_buttons(struct jw *w, const struct tg_card *c)
{
	bool asks = c->kind == TG_QUOTE || (c->kind == TG_QUESTION && c->hash[0]);

	jw_object(w, "reply_markup");
	if (c->kind == TG_CHANGE) {
		jw_bool(w, "force_reply", true);
	} else {
		jw_array(w, "inline_keyboard");
		jw_array(w, NULL);
		if (asks) {
			write_button(w, c, "Yes", 'y');
			write_button(w, c, "No", 'n');
		}
		if (c->kind == TG_QUOTE)
			write_button(w, c, "Change", 'c');
		if (c->kind == TG_RUN)
			write_button(w, c, "Cancel", 'x');
		jw_end(w);
		jw_end(w);
	}
	jw_end(w);
}

/* A press is always answered, else the button turns for ever. */
void tg_answer_press(struct telegram *t, const char *callback, const char *text)
{
	struct jw w;
	struct tg_out *o = tg_out_new("answerCallbackQuery", 0, &w);

	if (!o)
		return;
	jw_str(&w, "callback_query_id", callback);
	jw_strn(&w, "text", text, utf8_prefix(text, strlen(text), 190));
	jw_bool(&w, "show_alert", text[0] != '\0');
	jw_end(&w);
	tg_out_put(t, o);
}

/* ---- a text in messages, or as a document */

static bool put_message(struct telegram *t, int64_t chat, const char *s, size_t len, bool ends,
			uint64_t lsn, const struct tg_card *card)
{
	struct jw w;
	struct tg_out *o = tg_out_new("sendMessage", chat, &w);

	if (!o)
		return false;
	jw_int(&w, "chat_id", chat);
	tg_write_text(&w, s, len);
	if (ends && card) {
		tg_write_buttons(&w, card);
		snprintf(o->nonce, sizeof(o->nonce), "%s", card->nonce);
	}
	jw_end(&w);
	o->lsn = lsn;
	o->ends = ends;
	return tg_out_put(t, o);
}

static void put_field(struct buf *b, const char *boundary, const char *name, const char *value,
		      size_t len)
{
	buf_addf(b, "--%s\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n", boundary, name);
	buf_add(b, value, len);
	buf_adds(b, "\r\n");
}

bool tg_put_document(struct telegram *t, int64_t chat, const struct buf *text, uint64_t lsn)
{
	const char *s = text->data;
	size_t line = strcspn(s, "\n");
	struct jw w;
	struct tg_out *o = tg_out_new("sendDocument", chat, &w);
	unsigned char random[TG_NONCE_LEN / 2];
	char id[24];

	if (!o)
		return false;
	id_random(random, sizeof(random));
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(o->boundary + 2 * i, 3, "%02x", random[i]);
	snprintf(id, sizeof(id), "%" PRId64, chat);
	buf_reset(&o->body);
	put_field(&o->body, o->boundary, "chat_id", id, strlen(id));
	put_field(&o->body, o->boundary, "caption", s, tg_cut(s, line, TG_CAPTION_UNITS));
	buf_addf(&o->body,
		 "--%s\r\nContent-Disposition: form-data; name=\"document\"; "
		 "filename=\"ava-%" PRIu64 ".txt\"\r\nContent-Type: text/plain; "
		 "charset=utf-8\r\n\r\n",
		 o->boundary, lsn);
	buf_add(&o->body, s, text->len);
	buf_addf(&o->body, "\r\n--%s--\r\n", o->boundary);
	o->lsn = lsn;
	o->ends = true;
	return tg_out_put(t, o);
}

bool tg_is_blank(const char *s, size_t len)
{
	return strspn(s, " \t\n") >= len;
}

bool tg_put_text(struct telegram *t, int64_t chat, const struct buf *text, uint64_t lsn,
		 const struct tg_card *card)
{
	const char *s = text->data ? text->data : "";
	size_t len = text->len, parts = 0, n;
	bool whole = buf_check(text) == 0;

	while (len > 0 && strchr(" \t\n", s[len - 1]))
		len--;
	for (size_t at = 0; at < len; at += tg_cut(s + at, len - at, TG_TEXT_UNITS))
		parts++;
	if (parts > PARTS_MAX && !card)
		return tg_put_document(t, chat, text, lsn);
	if (parts > PARTS_MAX) /* what has buttons is a message; all of it is a command away */
		len = tg_cut(s, len, TG_TEXT_UNITS);
	for (size_t at = 0; at < len; at += n) {
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

/* ---- sending, one call at a time */

void tg_drop_parts(struct tg_line *l, uint64_t lsn)
{
	LIST_EACH (&l->outs, n, tmp) {
		struct tg_out *o = LIST_ENTRY(n, struct tg_out, node);

		if (lsn == 0 || o->lsn != lsn)
			continue;
		tg_out_free(o);
		l->nouts--;
	}
}

static void sent_well(struct telegram *t, struct tg_line *l, const struct tg_out *o,
		      const json_t *result)
{
	struct tg_card *c = tg_card_with(&t->kept, o->nonce, strlen(o->nonce));

	if (c && o->last) {
		tg_card_drop(&t->kept, c);
		t->dirty = true;
	} else if (c) {
		c->due_ms = tg_now(t) + MAX(c->pause_ms, t->core->settings.telegram_edit_ms);
		t->dirty |= !o->edit;
		if (!o->edit)
			c->message = json_get_int(result, "message_id", 0);
	}
	if (o->ends && l && l->telling == o->lsn)
		l->told = true;
}

static void sent_in_vain(struct telegram *t, struct tg_line *l, const struct tg_out *o,
			 const char *why)
{
	struct tg_card *c = tg_card_with(&t->kept, o->nonce, strlen(o->nonce));

	if (o->chat != 0) { /* a press that is too old is nobody's fault */
		char text[400];

		snprintf(text, sizeof(text), "telegram: %s: %s", o->method, why);
		t->log(text, t->log_user);
	}
	if (c) { /* its message was removed */
		tg_card_drop(&t->kept, c);
		t->dirty = true;
	}
	if (o->lsn > 0 && l && l->telling == o->lsn) {
		tg_drop_parts(l, o->lsn);
		tg_give_up(t, l, why);
	}
}

static void put_back(struct telegram *t, struct tg_line *l, struct tg_out *o)
{
	list_add_front(l ? &l->outs : &t->urgent, &o->node);
	if (l)
		l->nouts++;
}

void tg_sent(struct tg_call *call, const struct tg_answer *a)
{
	struct telegram *t = call->user;
	struct tg_out *o = t->flying;
	struct tg_line *l = tg_line(t, o->chat);
	int64_t now = tg_now(t);
	bool again = false;

	t->flying = NULL;
	if (l)
		l->next_ms = now + t->core->settings.telegram_pace_ms;
	t->send_pause_ms = a->verdict != TG_LATER ? 0
						  : MIN(MAX(2 * t->send_pause_ms, TG_BACKOFF_MS),
							(int64_t)TG_BACKOFF_MAX);
	switch (a->verdict) {
	case TG_OK:
		sent_well(t, l, o, a->result);
		break;
	case TG_REFUSED:
		sent_in_vain(t, l, o, a->why);
		break;
	case TG_BLOCKED:
		if (l) {
			tg_line_clear(l);
			l->blocked = true;
		}
		break;
	case TG_SLOW:
		if (l)
			l->next_ms = now + a->after_ms;
		else
			t->send_due_ms = now + a->after_ms;
		again = true;
		break;
	case TG_CONFLICT:
	case TG_LATER:
		t->send_due_ms = now + MAX(t->send_pause_ms, (int64_t)TG_BACKOFF_MS);
		again = true;
		break;
	case TG_REVOKED:
		tg_close(t, DOOR_CLOSED, a->why);
		again = true;
		break;
	}
	if (again && (l || o->chat == 0))
		put_back(t, l, o);
	else
		tg_out_free(o);
	t->news |= l && l->nouts == 0;
	tg_wake(t);
}

static void send_out(struct telegram *t, struct tg_line *l, struct tg_out *o)
{
	struct ava_error err = {0};
	struct buf copy;

	list_del(&o->node);
	if (l)
		l->nouts--;
	buf_init(&copy, o->body.max);
	buf_add(&copy, o->body.data, o->body.len);
	t->flying = o;
	if (tg_call(t->api, &t->send, o->method, &copy, o->boundary[0] ? o->boundary : NULL,
		    &err) == 0)
		return;
	t->flying = NULL;
	t->send_due_ms = tg_now(t) + TG_BACKOFF_MS;
	put_back(t, l, o);
}

void tg_send_next(struct telegram *t, int64_t *next_ms)
{
	int64_t now = tg_now(t);

	/* Nothing is said before what it tells of is on disk. */
	if (t->flying || t->dirty || t->saving)
		return;
	if (now < t->send_due_ms) {
		*next_ms = MIN(*next_ms, t->send_due_ms);
		return;
	}
	if (!list_empty(&t->urgent)) {
		send_out(t, NULL, LIST_FIRST(&t->urgent, struct tg_out, node));
		return;
	}
	for (size_t i = 0; i < TG_CHATS_MAX && !t->flying; i++) {
		struct tg_line *l = &t->lines[i];

		if (t->kept.chats[i].id == 0 || l->blocked || list_empty(&l->outs))
			continue;
		if (l->next_ms <= now)
			send_out(t, l, LIST_FIRST(&l->outs, struct tg_out, node));
		else
			*next_ms = MIN(*next_ms, l->next_ms);
	}
}
