/* Messages to people: notices (ava/delivery.h), once each and in order, and cards, which are edited
 * when their run or proposal changes. Each chat has a line of calls, sent one at a time at the pace
 * that the service allows; people are so few that all lines together stay within its limit.
 *
 *   a notice ─► its verb ─► its text ─► the chat's line ─► told, settled with the state
 *   a card that is due ─► its verb ─► other words? ─► an edit ─► due again, or done with
 *
 * What can fail: a verb (the notice says less; the card is looked at later), memory likewise; the
 * service, see enum door_verdict. A call that was not taken stays the first of its line; a refused
 * call is dropped, and its notice given up. An outage drops nothing: a call
 * that the service fails at is given up only where it takes a line of words before it. */
#include "gateway/door_inside.h"

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

#define OUTS_MAX    64    /* calls that wait for a chat */
#define FAILS_MAX   5     /* failures of the service at a call before words are tried */
#define AGAIN_MAX   3     /* failures after words were taken */
#define SLOW_RUN_MS 60000 /* a longer run's line is edited less often */
#define SLOW_EDITS  5
#define QUICK_MS    2000 /* an answer within it needs no sign before */
#define TYPING_MS   4500 /* services keep one for 5 s */

struct show_out { /* a call that waits for its turn */
	struct list node;
	enum door_op op;
	struct door_request request;
	char nonce[DOOR_NONCE_LEN + 1]; /* the card's; "": none */
	char key[80];                   /* the call's own name */
	char *words;                    /* a document's first words; owned; NULL: none */
	bool last;                      /* the card is dropped after this call */
	uint64_t lsn;                   /* the notice this is a part of; 0: none */
	bool ends;                      /* the notice's last part */
	int tries; /* failures of the service at it; below 0: without a limit */
};

/* ---- what goes out */

static void free_out(struct door_chat *l, struct show_out *o)
{
	list_del(&o->node);
	l->nouts--;
	buf_fini(&o->request.body);
	free(o->words);
	free(o);
}

void door_told_over(struct door_chat *l)
{
	json_decref(l->notice);
	l->notice = NULL;
	l->telling = 0;
	l->told = false;
	l->reason[0] = '\0';
}

void door_line_clear(struct door_chat *l)
{
	while (l->nouts > 0)
		free_out(l, LIST_FIRST(&l->outs, struct show_out, node));
	door_call_fini(&l->send);
	door_told_over(l);
}

/* A name for the next call of a chat: of a notice or of an answer it is the same when that is told
 * again. */
static void name_call(struct door *d, struct door_chat *l, uint64_t lsn, bool answers, char out[80])
{
	char id[DOOR_USER_MAX], nonce[DOOR_NONCE_LEN + 1];

	door_nonce(nonce);
	door_user(d, d->hand.update, id);
	if (lsn > 0)
		snprintf(out, 80, "ava-%" PRIu64 "-%u", lsn, l->nparts++);
	else if (answers && d->hand.busy && strcmp(d->hand.chat, l->id) == 0)
		snprintf(out, 80, "ava-%s-%u", id, d->hand.nsent++);
	else
		snprintf(out, 80, "ava-%s", nonce);
}

/* A call at the end of its line, `l` NULL: they are unpaired. NULL: there is no room, or the
 * service has nothing of the kind. */
static struct show_out *add_out(struct door *d, struct door_chat *l, const struct door_task *like,
				uint64_t lsn)
{
	struct show_out *o = l && l->nouts < OUTS_MAX ? calloc(1, sizeof(*o)) : NULL;
	struct door_task task = *like;

	if (!o)
		return NULL;
	o->op = task.op;
	o->lsn = lsn;
	name_call(d, l, lsn, task.op == DOOR_SEND || task.op == DOOR_FILE, o->key);
	task.key = o->key;
	task.lsn = lsn;
	task.kept = &d->kept;
	task.room = task.room ? task.room : l->room;
	buf_init(&o->request.body, DOOR_TEXT_BYTES + 8192);
	list_add(&l->outs, &o->node);
	l->nouts++;
	if (d->wire->encode(&task, &o->request) && buf_check(&o->request.body) == 0) {
		door_wake(d);
		return o;
	}
	free_out(l, o);
	return NULL;
}

static struct show_out *add_text(struct door *d, struct door_chat *l, const char *text)
{
	const struct door_task task = {.op = DOOR_SEND, .text = text, .len = strlen(text)};

	return add_out(d, l, &task, 0);
}

/* Put a call first in its line, behind the call being sent. */
static void put_first(struct door_chat *l, struct show_out *o)
{
	list_del(&o->node);
	list_add_front(l->send.busy ? l->outs.next : &l->outs, &o->node);
}

/* A press is always answered, before all else, or the button turns for ever. */
void door_answer_press(struct door *d, const char *text)
{
	struct door_chat *l = door_chat(&d->kept, d->hand.chat);
	struct door_task task = {.op = DOOR_TOAST,
				 .message = d->hand.callback,
				 .text = text,
				 .len = utf8_prefix(text, strlen(text), 190)};
	struct show_out *o = d->wire->keys ? NULL : add_out(d, l, &task, 0);

	if (o)
		put_first(l, o);
}

void door_put_room(struct door *d, enum door_op op, const char *room, const char *text)
{
	const struct door_task task = {
		.op = op, .room = room, .text = text, .len = text ? strlen(text) : 0};

	add_out(d, &d->lobby, &task, 0);
}

/* ---- a text in messages, or as a document */

/* Send a long text as a document; its first line is the caption. */
static struct show_out *put_document(struct door *d, struct door_chat *l, const struct buf *text,
				     uint64_t lsn)
{
	const struct door_task task = {.op = DOOR_FILE, .text = text->data, .len = text->len};
	struct show_out *o = add_out(d, l, &task, lsn);

	if (o)
		o->words = strndup(text->data, door_cut(text->data, strcspn(text->data, "\n"),
							d->wire->caption_units));
	return o;
}

/* Whether a text has no visible character, which services refuse. */
static bool show_is_blank(const char *s, size_t len)
{
	char seen[8];

	return utf8_seen(seen, sizeof(seen), s, len) == 0;
}

/* Count the messages of a text; returns where the last one begins. */
static size_t last_part(const struct door *d, const char *s, size_t len, size_t *parts)
{
	size_t at = 0, n = 0;

	*parts = 0;
	for (; at + n < len; ++*parts) {
		at += n;
		n = door_cut(s + at, len - at, d->wire->units);
	}
	return at;
}

/* Say how much of an Ask is not in messages, and how to see it. */
static bool put_hidden(struct door *d, struct door_chat *l, size_t chars,
		       const struct door_card *card, uint64_t lsn)
{
	char text[200];
	struct door_task task = {.op = DOOR_SEND, .text = text};

	snprintf(text, sizeof(text), WORDS_HIDDEN(chars, card->id));
	task.len = strlen(text);
	return add_out(d, l, &task, lsn) != NULL;
}

bool door_put_text(struct door *d, const char *chat, const struct buf *text, uint64_t lsn,
		   const struct door_card *card)
{
	struct door_chat *l = door_chat(&d->kept, chat);
	const char *s = text->data ? text->data : "";
	size_t len = text->len, at = 0, last, parts, n, max = d->wire->parts_max;
	struct show_out *o = NULL;

	while (len > 0 && strchr(" \t\n", s[len - 1]))
		len--;
	last = last_part(d, s, len, &parts);
	if (!l || buf_check(text) != 0)
		return false;
	for (size_t i = 0; at < len; at += n, i++) {
		struct door_task task = {.op = DOOR_SEND, .text = s + at, .literal = card != NULL};

		if (parts > max && i == (card ? max - 1 : 0)) {
			o = put_document(d, l, text, lsn);
			if (!o ||
			    (card && !put_hidden(d, l, utf8_count(s + at, last - at), card, lsn)))
				return false;
			if (!card)
				break;
			at = last;
			task.text = s + at;
		}
		n = door_cut(s + at, len - at, d->wire->units);
		if (show_is_blank(s + at, n))
			continue; /* services refuse those */
		task.len = n;
		task.card = at + n == len ? card : NULL;
		o = add_out(d, l, &task, lsn);
		if (!o)
			return false;
	}
	if (!o)
		return true;
	o->ends = true;
	if (card)
		snprintf(o->nonce, sizeof(o->nonce), "%s", card->nonce);
	return true;
}

void door_say(struct door *d, const char *chat, const struct door_card *card, const char *fmt, ...)
{
	struct buf text;
	va_list ap;

	buf_init(&text, 1u << 16);
	va_start(ap, fmt);
	buf_vaddf(&text, fmt, ap);
	va_end(ap);
	(void)door_put_text(d, chat, &text, 0, card);
	buf_fini(&text);
}

/* ---- notices */

static void drop_parts(struct door_chat *l) /* of the notice being told */
{
	LIST_EACH (&l->outs, n, tmp) {
		struct show_out *o = LIST_ENTRY(n, struct show_out, node);

		if (o->lsn > 0)
			free_out(l, o);
	}
}

/* The message of an Ask that is answered stays, and was shown behind those above it: a plain yes
 * means none of them. */
static void drop_card(struct door *d, struct door_card *c)
{
	struct door_chat *l = door_chat(&d->kept, c->chat);

	if (l && !id_is_run(c->id))
		l->said = MAX(l->said, c->order);
	door_card_drop(&d->kept, c);
	d->dirty = true;
}

static void show_give_up(struct door *d, struct door_chat *l, const char *reason)
{
	snprintf(l->reason, sizeof(l->reason), "%.190s", reason);
	l->told = true;
	door_wake(d);
}

/* A text of a notice that is being told; NULL when it is not any more. */
static struct door_chat *telling(struct door *d, const struct door_asking *a)
{
	struct door_chat *l = door_chat(&d->kept, a->chat);

	return l && l->telling == a->lsn && !l->told ? l : NULL;
}

/* The notice is told later. */
static void tell_later(struct door *d, struct door_chat *l)
{
	drop_parts(l);
	door_told_over(l);
	l->send.next_ms = door_now(d) + DOOR_PAUSE_MS;
	door_wake(d);
}

static void show_tell(struct door *d, struct door_chat *l, const struct buf *text,
		      const struct door_card *card)
{
	if (buf_check(text) == 0 && show_is_blank(text->data ? text->data : "", text->len))
		show_give_up(d, l, "it has no text");
	else if (!door_put_text(d, l->id, text, l->telling, card))
		tell_later(d, l);
}

/* Send a result as a document only if it is too long for Ava's words: she tells of it herself, and
 * the run's card has the end. */
static void told_result(struct door *d, const struct door_asking *a)
{
	struct door_chat *l = telling(d, a);
	struct buf text;
	struct show_out *o;

	if (!l)
		return;
	buf_init(&text, DOOR_TEXT_BYTES);
	if (a->status == 200)
		door_text_result(&text, a->answer);
	if (buf_check(&text) != 0 || door_cut(text.data, text.len, d->wire->units) == text.len) {
		l->told = true;
	} else if ((o = put_document(d, l, &text, a->lsn))) {
		o->ends = true;
	} else {
		tell_later(d, l);
	}
	buf_fini(&text);
	door_wake(d);
}

static void tell_words(struct door *d, struct door_chat *l, const char *words, const char *more)
{
	struct buf text;

	buf_init(&text, DOOR_TEXT_BYTES);
	format_barred(&text, words, strlen(words), false);
	buf_adds(&text, more);
	show_tell(d, l, &text, NULL);
	buf_fini(&text);
}

/* Tell a message whole; as far as the notice has it if its Item cannot be read. */
static void told_message(struct door *d, const struct door_asking *a)
{
	const json_t *item = json_array_get(json_object_get(a->answer, "items"), 0);
	struct door_chat *l = telling(d, a);

	if (l && a->status == 409) { /* many questions are being answered */
		tell_later(d, l);
	} else if (l) {
		if (json_get_int(item, "lsn", 0) != (int64_t)a->lsn)
			item = l->notice;
		tell_words(d, l, json_str(item, "text"),
			   json_get_bool(item, "cut", false) ? "...\n" WORDS_CUT : "");
	}
}

static void show_look_at(struct door *d, struct door_chat *l, const struct door_card *c,
			 uint64_t lsn);

/* Tell a notice by a card, a message that is edited later. */
static void tell_card(struct door *d, struct door_chat *l, const char *id)
{
	struct door_card *c = door_card_of(&d->kept, l->id, id);

	if (!c || c->message[0])
		c = door_card_new(&d->kept, l->id, id);
	c->until_ms = clock_wall_ms() + DOOR_BUTTONS_MS;
	show_look_at(d, l, c, l->telling);
}

static void begin_notice(struct door *d, struct door_chat *l)
{
	struct door_asking a = {0};
	const struct notice *it;
	const char *run;
	char user[DOOR_USER_MAX];

	memcpy(a.chat, l->id, sizeof(a.chat));
	door_user(d, l->id, user);
	it = delivery_next(d->core, d->index, user);
	l->notice = it ? json_parse(it->json, strlen(it->json), NULL) : NULL;
	if (!l->notice)
		return;
	a.lsn = l->telling = it->item.lsn;
	l->nparts = 0;
	run = json_str(l->notice, "run");
	switch (it->item.kind) {
	case ITEM_started:
		tell_card(d, l, run);
		return;
	case ITEM_proposed:
	case ITEM_asked:
		tell_card(d, l, it->item.ask);
		return;
	case ITEM_failed:
		if (it->item.by_ava)
			break;
		/* fallthrough */
	case ITEM_result:
		if (it->item.ask[0]) { /* changes wait: the card has them, and Ava tells the rest */
			tell_card(d, l, it->item.ask);
			return;
		}
		a.then = told_result;
		door_ask(d, &a, "GET", NULL, DOOR_API "/runs/%s/result", run);
		return;
	case ITEM_said:
		a.then = told_message;
		if (it->item.ask[0])
			tell_card(d, l, it->item.ask);
		else if (json_get_bool(l->notice, "cut", false))
			door_ask(d, &a, "GET",
				 json_pack("{s:I,s:i}", "after", (json_int_t)a.lsn - 1, "limit", 1),
				 DOOR_API "/items");
		else
			tell_words(d, l, json_str(l->notice, "text"), "");
		return;
	case ITEM_expired:
	case ITEM_noted:
	case ITEM_doing:
	case ITEM_answered:
	case ITEM_NKINDS:
		break;
	}
	tell_words(d, l, json_str(l->notice, "title"), "");
}

/* ---- cards: what stands in a message is looked at when it is due */

static uint64_t hash_of(const struct buf *text)
{
	return siphash(1, 2, text->data, text->len, 1, 3);
}

static bool is_open(const struct door_card *c, const json_t *answer)
{
	if (id_is_run(c->id))
		return !json_str(answer, "ended_at")[0];
	return strcmp(json_str(answer, "state"), "open") == 0;
}

/* Send the card's message, for the notice being told. */
static void send_card(struct door *d, struct door_chat *l, struct door_card *c,
		      const struct door_asking *a)
{
	bool open = is_open(c, a->answer);
	struct buf text;

	if (!open && !id_is_run(c->id)) {
		show_give_up(d, l, "it is answered");
		drop_card(d, c);
		return;
	}
	if (!id_is_run(c->id)) {
		snprintf(c->hash, sizeof(c->hash), "%s", json_str(a->answer, "hash"));
		c->until_ms = json_time(json_object_get(a->answer, "until"));
	}
	buf_init(&text, DOOR_TEXT_BYTES);
	door_text_card(&text, c, a->answer);
	/* The service may have had the text before, in other words: the next look writes it anew.
	 */
	show_tell(d, l, &text, open || d->wire->once ? c : NULL);
	c->shown = d->wire->once ? 0 : hash_of(&text);
	buf_fini(&text);
	if (!open && !d->wire->once)
		drop_card(d, c);
}

/* Edit the card's message, the last one of its text; `last`: for good, so without buttons. */
static void edit_card(struct door *d, struct door_chat *l, struct door_card *c,
		      const struct buf *text, bool last)
{
	size_t parts, at = last_part(d, text->data, text->len, &parts);
	const struct door_task task = {.op = DOOR_EDIT,
				       .literal = true,
				       .message = c->message,
				       .text = text->data + at,
				       .len = text->len - at,
				       .card = last ? NULL : c};
	uint64_t hash = hash_of(text);
	struct show_out *o;

	if (buf_check(text) != 0 || (hash == c->shown && !last))
		return;
	o = add_out(d, l, &task, 0);
	if (!o)
		return;
	o->last = last;
	snprintf(o->nonce, sizeof(o->nonce), "%s", c->nonce);
	c->shown = hash;
}

/* Show the present state in a card, or drop it. */
static void renew_card(struct door *d, struct door_chat *l, struct door_card *c,
		       const struct door_asking *a)
{
	bool open = is_open(c, a->answer), run = id_is_run(c->id);
	struct buf text;

	if (!c->message[0] || !(run || c->labels[0])) { /* not sent yet; or only asks for words */
		if (!open)
			drop_card(d, c);
	} else if (run || !open) {
		buf_init(&text, DOOR_TEXT_BYTES);
		door_text_card(&text, c, a->answer);
		edit_card(d, l, c, &text, !open);
		buf_fini(&text);
	}
}

/* The Ask is gone or answered: its message stays, the buttons go. */
static void end_card(struct door *d, struct door_chat *l, struct door_card *c)
{
	const struct door_task bare = {.op = DOOR_BARE, .message = c->message};

	if (l && c->message[0] && c->labels[0])
		add_out(d, l, &bare, 0);
	drop_card(d, c);
}

static void card_looked_at(struct door *d, const struct door_asking *a)
{
	struct door_card *c = door_card_with(&d->kept, a->nonce, strlen(a->nonce));
	struct door_chat *l = door_chat(&d->kept, a->chat),
			 *told = a->lsn > 0 ? telling(d, a) : NULL;
	int64_t edit_ms = d->wire->edit_ms(&d->core->settings);
	bool slow = json_get_fixed(a->answer, "elapsed_seconds", 3, 0) > SLOW_RUN_MS;

	door_wake(d);
	if (l)
		l->looking = false;
	if (c)
		c->due_ms = door_now(d) + (slow ? SLOW_EDITS * edit_ms : edit_ms);
	if (told && a->status == 404)
		show_give_up(d, told, a->why);
	else if (told && (!c || a->status != 200))
		tell_later(d, told);
	if (c && a->status == 404)
		end_card(d, l, c);
	else if (c && l && a->status == 200)
		(told ? send_card : renew_card)(d, l, c, a);
}

static void show_look_at(struct door *d, struct door_chat *l, const struct door_card *c,
			 uint64_t lsn)
{
	struct door_asking a = {.then = card_looked_at, .lsn = lsn};

	l->looking = true;
	memcpy(a.chat, l->id, sizeof(a.chat));
	memcpy(a.nonce, c->nonce, sizeof(a.nonce));
	door_ask(d, &a, "GET", NULL, id_is_run(c->id) ? DOOR_API "/runs/%s" : DOOR_API "/asks/%s",
		 c->id);
}

/* The one that has waited longest, so that many runs take turns. */
static void look_at_card(struct door *d, struct door_chat *l, int64_t *next_ms)
{
	const struct door_card *c = NULL;

	for (size_t i = 0; i < DOOR_CARDS_MAX; i++) {
		const struct door_card *other = &d->kept.cards[i];

		if (strcmp(other->chat, l->id) == 0 && (!c || other->due_ms < c->due_ms))
			c = other;
	}
	if (c && c->due_ms <= door_now(d))
		show_look_at(d, l, c, 0);
	else if (c)
		*next_ms = MIN(*next_ms, c->due_ms);
}

/* ---- sending */

/* Buttons that we put below a message ourselves; whoever presses one presses ours. */
static void add_keys(struct door *d, struct door_chat *l, const struct door_card *c)
{
	struct door_task task = {.op = DOOR_KEY, .message = c->message, .card = c};
	size_t len;

	for (; door_card_button(c, task.index, &len); task.index++)
		add_out(d, l, &task, 0);
}

/* The card's message is there. */
static void card_sent(struct door *d, struct door_chat *l, struct door_card *c, const char *message)
{
	c->free_ms = door_now(d) + d->wire->edit_ms(&d->core->settings);
	c->due_ms = MAX(c->due_ms, c->free_ms);
	if (!message[0] || strcmp(c->message, message) == 0)
		return;
	memcpy(c->message, message, DOOR_ID_MAX);
	d->dirty = true;
	if (d->wire->numbers)
		c->order = strtoll(message, NULL, 10);
	else if (strcmp(l->own, message) == 0) /* the service told of it before it answered */
		c->order = l->said--;
	if (d->wire->keys)
		add_keys(d, l, c);
}

/* A message that is no card is there. Where the door counts messages, it is the newest when the
 * service tells of it. */
static void words_sent(struct door *d, struct door_chat *l, const char *message)
{
	if (!d->wire->numbers || strtoll(message, NULL, 10) <= l->said)
		return;
	l->said = strtoll(message, NULL, 10);
	memcpy(l->own, message, DOOR_ID_MAX);
	d->dirty = true;
}

static void sent_well(struct door *d, struct door_chat *l, const struct show_out *o,
		      const json_t *result)
{
	struct door_card *c = door_card_with(&d->kept, o->nonce, strlen(o->nonce));
	char message[DOOR_ID_MAX] = "";

	if (o->op == DOOR_SEND || o->op == DOOR_FILE)
		d->wire->made(result, message);
	if (!c && message[0])
		words_sent(d, l, message);
	if (c && o->last)
		drop_card(d, c);
	else if (c)
		card_sent(d, l, c, message);
	l->told |= o->ends && o->lsn > 0;
}

static void sent_in_vain(struct door *d, struct door_chat *l, const struct show_out *o,
			 const char *why)
{
	struct door_card *c = door_card_with(&d->kept, o->nonce, strlen(o->nonce));

	door_log(d, "%s: %s", o->request.path, why);
	if (c) /* the card's message was removed */
		drop_card(d, c);
	if (o->lsn > 0) {
		drop_parts(l);
		show_give_up(d, l, why);
	}
}

/* The service failed at it, and not at words before it: it never takes it. */
static bool fails_for_good(struct door *d, struct door_chat *l, struct show_out *o)
{
	struct show_out *words;
	char text[200];

	if (++o->tries == FAILS_MAX) {
		snprintf(text, sizeof(text),
			 "For a while %s did not take what comes next. If it does not come, it "
			 "stands in `ava chat` on a terminal.",
			 d->wire->title);
		words = add_text(d, l, text);
		o->tries -= !words;
		if (words) {
			words->tries = INT_MIN;
			put_first(l, words);
		}
	}
	return o->tries >= FAILS_MAX + AGAIN_MAX;
}

/* The second call of a document that takes two stands in the place of the first. */
static bool goes_on(struct door *d, struct door_chat *l, struct show_out *o, const json_t *result)
{
	char message[DOOR_ID_MAX] = "", *words = o->words;
	struct door_task task = {.op = DOOR_FILE,
				 .room = l->room,
				 .message = message,
				 .text = words,
				 .key = o->key,
				 .lsn = o->lsn};

	if (!d->wire->uploads || !words)
		return false;
	d->wire->made(result, message);
	task.len = strlen(words);
	buf_reset(&o->request.body);
	if (d->wire->encode(&task, &o->request) && buf_check(&o->request.body) == 0) {
		o->words = NULL;
		free(words);
		return true;
	}
	show_give_up(d, l, "out of memory");
	return false;
}

static void sent(struct door_call *call, const struct door_answer *a)
{
	struct door_chat *l = CONTAINER_OF(call, struct door_chat, send);
	struct show_out *o = LIST_FIRST(&l->outs, struct show_out, node);
	struct door *d = call->user;

	door_wake(d);
	call->next_ms = MAX(call->next_ms, door_now(d) + d->wire->pace_ms(&d->core->settings));
	if (a->verdict == DOOR_REVOKED)
		door_close(d, DOOR_CLOSED, a->why);
	if (a->verdict == DOOR_BLOCKED && l != &d->lobby) {
		door_line_clear(l);
		l->blocked = true;
		return;
	}
	if (a->verdict > DOOR_LATER ||
	    (a->verdict == DOOR_LATER && (call->http.status < 500 || !fails_for_good(d, l, o))) ||
	    (a->verdict == DOOR_OK && goes_on(d, l, o, a->result)))
		return;
	list_del(&o->node);
	if (a->verdict == DOOR_OK)
		sent_well(d, l, o, a->result);
	else
		sent_in_vain(d, l, o, a->why);
	free_out(l, o);
}

static void send_out(struct door *d, struct door_chat *l)
{
	const struct show_out *o = LIST_FIRST(&l->outs, struct show_out, node);

	l->send.done = sent;
	l->send.user = d;
	if (!door_call(d->line, &l->send, &o->request))
		door_wake(d);
}

/* While Ava is at it their client says so; what keeps her from it is a message. */
static void show_typing(struct door *d, struct door_chat *l, int64_t *next_ms)
{
	const struct door_task typing = {.op = DOOR_TYPING};
	struct op_session s;

	if (!l->session[0] || ops_session(d->core, l->session, &s, NULL) != 0 || !s.busy) {
		l->typing_ms = 0;
		l->troubled = false;
		return;
	}
	if (s.trouble && !l->troubled)
		l->troubled = add_text(d, l, s.trouble);
	if (l->typing_ms == 0) {
		l->typing_ms = door_now(d) + QUICK_MS;
	} else if (l->typing_ms <= door_now(d)) {
		add_out(d, l, &typing, 0);
		l->typing_ms = door_now(d) + TYPING_MS;
	}
	*next_ms = MIN(*next_ms, l->typing_ms);
}

/* Calls are made only when they can be sent, so that their content is current and notices go before
 * cards; and they are sent only when the state they tell of is on disk. */
void door_show(struct door *d, int64_t *next_ms)
{
	for (size_t i = 0; i <= DOOR_CHATS_MAX; i++) {
		bool lobby = i == DOOR_CHATS_MAX;
		struct door_chat *l = lobby ? &d->lobby : &d->kept.chats[i];

		if ((!l->id[0] && !lobby) || l->blocked || l->send.busy)
			continue;
		if (l->send.next_ms > door_now(d) && (!lobby || l->nouts > 0)) {
			*next_ms = MIN(*next_ms, l->send.next_ms);
			continue;
		}
		if (l->nouts == 0 && !l->looking && l->telling == 0 && !lobby)
			begin_notice(d, l);
		if (l->nouts == 0 && !l->looking && !lobby)
			look_at_card(d, l, next_ms);
		if (l->nouts == 0 && !l->looking && !lobby)
			show_typing(d, l, next_ms);
		if (l->nouts > 0 && door_kept(d))
			send_out(d, l);
	}
}
