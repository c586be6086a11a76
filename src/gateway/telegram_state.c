/* See telegram_state.h. Written whole each time, from plain data; read once, at a start.
 *
 * What can fail: the file, which a person may have changed. A member that is not as it must be is
 * left out, so that no damage lets anybody in. */
#include "gateway/telegram_state.h"

#include <ava.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"

#define STATE_BYTES ((size_t)256 << 10)
#define VERSION     1
#define RESET_MS    (6 * 86400000LL) /* a week without updates renews ids; less a day of doubt */

/* ---- reading */

/* Into `out`; false: it is longer, or no text. */
static bool telegram_state_take(const json_t *o, const char *key, char *out, size_t size)
{
	const char *s = json_get_str(o, key);

	return s && (size_t)snprintf(out, size, "%s", s) < size;
}

static void take_chat(struct tg_state *s, const json_t *o)
{
	struct tg_chat c = {.id = json_get_int(o, "id", 0), .said = json_get_int(o, "said", 0)};
	struct tg_chat *place = tg_free_chat(s);

	if (place && c.id > 0 && !tg_chat(s, c.id) &&
	    telegram_state_take(o, "name", c.name, sizeof(c.name)) &&
	    telegram_state_take(o, "cwd", c.cwd, sizeof(c.cwd)) &&
	    telegram_state_take(o, "session", c.session, sizeof(c.session)))
		*place = c;
	if (place)
		snprintf(place->ask, sizeof(place->ask), "%s", json_str(o, "ask"));
}

static void take_card(struct tg_state *s, size_t i, const json_t *o)
{
	struct tg_card c = {.chat = json_get_int(o, "chat", 0),
			    .message = json_get_int(o, "message", 0),
			    .until_ms = json_get_int(o, "until", 0)};
	const char *kind = json_str(o, "kind");

	while (c.kind < TG_NKINDS && strcmp(tg_kinds[c.kind].name, kind) != 0)
		c.kind++;
	if (i < TG_CARDS_MAX && c.kind < TG_NKINDS && tg_chat(s, c.chat) &&
	    telegram_state_take(o, "nonce", c.nonce, sizeof(c.nonce)) &&
	    strlen(c.nonce) == TG_NONCE_LEN && telegram_state_take(o, "id", c.id, sizeof(c.id)) &&
	    telegram_state_take(o, "call", c.call, sizeof(c.call)) &&
	    telegram_state_take(o, "hash", c.hash, sizeof(c.hash)))
		s->cards[i] = c;
}

int tg_state_load(struct tg_state *s, int root_fd, int64_t bot, struct ava_error *err)
{
	char *text = NULL;
	size_t len = 0, i;
	json_t *doc, *v;
	int rv = sys_read_file(root_fd, TG_STATE, STATE_BYTES, &text, &len, err);

	*s = (struct tg_state){.bot = bot};
	if (rv == AVA_ENOENT)
		return 0;
	doc = rv == 0 ? json_parse(text, len, err) : NULL;
	free(text);
	if (!doc)
		return err_wrap(err, err->code, TG_STATE " cannot be read, nobody is paired");
	if (json_get_int(doc, "version", 0) != VERSION) {
		json_decref(doc);
		return err_set(err, AVA_EFORMAT,
			       TG_STATE " was written by another ava: use that one, or remove it");
	}
	if (json_get_int(doc, "bot", 0) == bot) {
		s->newest_ms = json_get_int(doc, "newest", 0);
		json_array_foreach(json_object_get(doc, "seen"), i, v)
		{
			int64_t id = json_is_integer(v) ? json_integer_value(v) : -1;

			if (s->nseen < TG_SEEN_MAX && tg_is_update(id))
				s->seen[s->nseen++] = id;
		}
		json_array_foreach(json_object_get(doc, "chats"), i, v) take_chat(s, v);
		json_array_foreach(json_object_get(doc, "cards"), i, v) take_card(s, i, v);
	}
	json_decref(doc);
	return 0;
}

/* ---- writing */

static void telegram_state_write_card(struct jw *w, const struct tg_card *c)
{
	jw_object(w, NULL);
	jw_str(w, "kind", tg_kinds[c->kind].name);
	jw_int(w, "chat", c->chat);
	jw_int(w, "message", c->message);
	jw_str(w, "nonce", c->nonce);
	jw_str(w, "id", c->id);
	jw_str(w, "call", c->call);
	jw_str(w, "hash", c->hash);
	jw_int(w, "until", c->until_ms);
	jw_end(w);
}

void tg_state_write(const struct tg_state *s, struct buf *out)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_int(&w, "version", VERSION);
	jw_int(&w, "bot", s->bot);
	jw_int(&w, "newest", s->newest_ms);
	jw_array(&w, "seen");
	for (unsigned i = 0; i < s->nseen; i++)
		jw_int(&w, NULL, s->seen[i]);
	jw_end(&w);
	jw_array(&w, "chats");
	for (size_t i = 0; i < TG_CHATS_MAX; i++) {
		const struct tg_chat *c = &s->chats[i];

		if (c->id == 0)
			continue;
		jw_object(&w, NULL);
		jw_int(&w, "id", c->id);
		jw_str(&w, "name", c->name);
		jw_str(&w, "cwd", c->cwd);
		jw_str(&w, "session", c->session);
		jw_int(&w, "said", c->said);
		jw_str(&w, "ask", c->ask);
		jw_end(&w);
	}
	jw_end(&w);
	jw_array(&w, "cards");
	for (size_t i = 0; i < TG_CARDS_MAX; i++)
		if (s->cards[i].chat != 0)
			telegram_state_write_card(&w, &s->cards[i]);
	jw_end(&w);
	jw_end(&w);
	buf_addc(out, '\n');
}

/* ---- updates */

bool tg_seen(const struct tg_state *s, int64_t update)
{
	for (unsigned i = 0; i < s->nseen; i++)
		if (s->seen[i] == update)
			return true;
	return false;
}

void tg_see(struct tg_state *s, int64_t update, int64_t wall_ms)
{
	if (tg_offset(s, wall_ms) == 0)
		s->nseen = 0; /* the ids are from before Telegram began anew */
	if (s->nseen == TG_SEEN_MAX)
		memmove(s->seen, s->seen + 1, --s->nseen * sizeof(s->seen[0]));
	s->seen[s->nseen++] = update;
	s->newest_ms = wall_ms;
}

int64_t tg_offset(const struct tg_state *s, int64_t wall_ms)
{
	return s->nseen > 0 && wall_ms - s->newest_ms < RESET_MS ? s->seen[s->nseen - 1] + 1 : 0;
}

/* ---- chats and cards */

struct tg_chat *tg_chat(struct tg_state *s, int64_t id)
{
	for (size_t i = 0; i < TG_CHATS_MAX; i++)
		if (id != 0 && s->chats[i].id == id)
			return &s->chats[i];
	return NULL;
}

struct tg_chat *tg_free_chat(struct tg_state *s)
{
	for (size_t i = 0; i < TG_CHATS_MAX; i++)
		if (s->chats[i].id == 0)
			return &s->chats[i];
	return NULL;
}

void tg_new_session(struct tg_chat *c)
{
	snprintf(c->session, sizeof(c->session), "%s", id_session().text);
}

void tg_nonce(char out[TG_NONCE_LEN + 1])
{
	unsigned char random[TG_NONCE_LEN / 2];

	id_random(random, sizeof(random));
	hash_hex(random, sizeof(random), out);
}

struct tg_card *tg_card_new(struct tg_state *s, int64_t chat, enum tg_card_kind kind,
			    const char *id)
{
	struct tg_card *c = &s->cards[TG_CARDS_MAX - 1];

	/* Cards stand in the order of their making: the first is the oldest. */
	if (c->chat != 0)
		memmove(s->cards, s->cards + 1, (TG_CARDS_MAX - 1) * sizeof(*c));
	else
		while (c > s->cards && c[-1].chat == 0)
			c--;
	*c = (struct tg_card){.chat = chat, .kind = kind};
	snprintf(c->id, sizeof(c->id), "%s", id);
	tg_nonce(c->nonce);
	return c;
}

void tg_card_drop(struct tg_state *s, struct tg_card *c)
{
	struct tg_card *last = &s->cards[TG_CARDS_MAX - 1];

	memmove(c, c + 1, (size_t)(last - c) * sizeof(*c));
	*last = (struct tg_card){0};
}

struct tg_card *tg_card_of(struct tg_state *s, int64_t chat, enum tg_card_kind kind, const char *id)
{
	for (size_t i = 0; i < TG_CARDS_MAX; i++)
		if (s->cards[i].chat == chat && s->cards[i].kind == kind &&
		    strcmp(s->cards[i].id, id) == 0)
			return &s->cards[i];
	return NULL;
}

struct tg_card *tg_card_at(struct tg_state *s, int64_t chat, int64_t message)
{
	for (size_t i = 0; i < TG_CARDS_MAX; i++)
		if (s->cards[i].chat == chat && message > 0 && s->cards[i].message == message)
			return &s->cards[i];
	return NULL;
}

struct tg_card *tg_card_with(struct tg_state *s, const char *nonce, size_t len)
{
	for (size_t i = 0; i < TG_CARDS_MAX; i++)
		if (s->cards[i].chat != 0 && len == TG_NONCE_LEN &&
		    memcmp(s->cards[i].nonce, nonce, len) == 0)
			return &s->cards[i];
	return NULL;
}
