/* See door_state.h. Written whole each time, from plain data; read once, at a start.
 *
 * What can fail: the file, which a person may have changed. A member that is not as it must be is
 * left out, so that no damage lets anybody in. */
#include "gateway/door_state.h"

#include <ava.h>
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
#define RESET_MS    (6 * 86400000LL) /* a week without updates, less the doubt of a clock */

void door_state_file(const struct door_state *s, char out[64])
{
	snprintf(out, 64, "%.50s.json", s->name);
}

bool door_is_number(const char *id)
{
	size_t len = strlen(id);

	return len > 0 && len <= 16 && strspn(id, "0123456789") == len &&
	       strtoll(id, NULL, 10) < INT64_C(1) << 52;
}

/* ---- reading */

/* Into `out`; false: it is longer, or no text. */
static bool state_take(const json_t *o, const char *key, char *out, size_t size)
{
	const char *s = json_get_str(o, key);

	return s && (size_t)snprintf(out, size, "%s", s) < size;
}

/* An id, of which a number is above 0; 0 and "" are none. */
static bool state_take_id(const struct door_state *s, const json_t *v, char out[DOOR_ID_MAX])
{
	int64_t n = json_is_integer(v) ? json_integer_value(v) : -1;

	out[0] = '\0';
	if (s->numbers && n > 0)
		snprintf(out, DOOR_ID_MAX, "%lld", (long long)n);
	if (s->numbers)
		return n >= 0;
	return json_is_string(v) && json_string_length(v) < DOOR_ID_MAX &&
	       snprintf(out, DOOR_ID_MAX, "%s", json_string_value(v)) >= 0;
}

static void take_chat(struct door_state *s, const json_t *o)
{
	struct door_chat *place = door_free_chat(s), c = {.said = json_get_int(o, "said", 0),
							  .count = json_get_int(o, "count", 0)};

	if (!place || !state_take_id(s, json_object_get(o, "id"), c.id) || !c.id[0] ||
	    door_chat(s, c.id) || !state_take(o, "name", c.name, sizeof(c.name)) ||
	    !state_take(o, "cwd", c.cwd, sizeof(c.cwd)) ||
	    !state_take(o, "session", c.session, sizeof(c.session)))
		return;
	if (s->numbers && c.said > 0)
		snprintf(c.own, sizeof(c.own), "%lld", (long long)c.said);
	memcpy(c.room, c.id, sizeof(c.room));
	if (s->numbers || (state_take(o, "room", c.room, sizeof(c.room)) &&
			   state_take(o, "own", c.own, sizeof(c.own))))
		*place = c;
}

static void take_card(struct door_state *s, size_t i, const json_t *o)
{
	struct door_card c = {.until_ms = json_get_int(o, "until", 0),
			      .order = json_get_int(o, "order", 0)};

	if (i < DOOR_CARDS_MAX && state_take_id(s, json_object_get(o, "chat"), c.chat) &&
	    door_chat(s, c.chat) && state_take_id(s, json_object_get(o, "message"), c.message) &&
	    state_take(o, "nonce", c.nonce, sizeof(c.nonce)) && strlen(c.nonce) == DOOR_NONCE_LEN &&
	    state_take(o, "id", c.id, sizeof(c.id)) &&
	    state_take(o, "hash", c.hash, sizeof(c.hash)) &&
	    state_take(o, "labels", c.labels, sizeof(c.labels))) {
		if (s->numbers)
			c.order = strtoll(c.message, NULL, 10);
		s->cards[i] = c;
	}
}

static void take_seen(struct door_state *s, const json_t *v)
{
	char id[DOOR_ID_MAX];

	if (s->nseen < DOOR_SEEN_MAX && state_take_id(s, v, id) &&
	    (s->numbers ? door_is_number(id) : id[0] != '\0'))
		memcpy(s->seen[s->nseen++], id, sizeof(id));
}

int door_state_load(struct door_state *s, int root_fd, const char *name, bool numbers,
		    const char *account, struct ava_error *err)
{
	char *text = NULL, file[64], whose[DOOR_ID_MAX];
	size_t len = 0, i;
	json_t *doc, *v;
	int rv;

	memset(s, 0, sizeof(*s));
	s->name = name;
	s->numbers = numbers;
	snprintf(s->account, sizeof(s->account), "%s", account);
	door_state_file(s, file);
	rv = sys_read_file(root_fd, file, STATE_BYTES, &text, &len, err);
	if (rv == AVA_ENOENT)
		return 0;
	doc = rv == 0 ? json_parse(text, len, err) : NULL;
	free(text);
	if (!doc)
		return err_wrap(err, err->code, "%s cannot be read, nobody is paired", file);
	if (json_get_int(doc, "version", 0) != VERSION) {
		json_decref(doc);
		return err_set(err, AVA_EFORMAT,
			       "%s was written by another ava: use that one, or remove it", file);
	}
	if (state_take_id(s, json_object_get(doc, "bot"), whose) &&
	    (!account[0] || strcmp(whose, account) == 0)) {
		memcpy(s->account, whose, sizeof(whose));
		s->newest_ms = json_get_int(doc, "newest", 0);
		(void)state_take(doc, "since", s->since, sizeof(s->since));
		json_array_foreach(json_object_get(doc, "seen"), i, v) take_seen(s, v);
		json_array_foreach(json_object_get(doc, "chats"), i, v) take_chat(s, v);
		json_array_foreach(json_object_get(doc, "cards"), i, v) take_card(s, i, v);
	}
	json_decref(doc);
	return 0;
}

/* ---- writing */

static void write_id(const struct door_state *s, struct jw *w, const char *key, const char *id)
{
	if (s->numbers)
		jw_int(w, key, strtoll(id, NULL, 10));
	else
		jw_str(w, key, id);
}

static void state_write_chat(const struct door_state *s, struct jw *w, const struct door_chat *c)
{
	jw_object(w, NULL);
	write_id(s, w, "id", c->id);
	jw_str(w, "name", c->name);
	jw_str(w, "cwd", c->cwd);
	jw_str(w, "session", c->session);
	jw_int(w, "said", c->said);
	if (!s->numbers) {
		jw_str(w, "room", c->room);
		jw_int(w, "count", c->count);
		jw_str(w, "own", c->own);
	}
	jw_end(w);
}

static void state_write_card(const struct door_state *s, struct jw *w, const struct door_card *c)
{
	jw_object(w, NULL);
	write_id(s, w, "chat", c->chat);
	write_id(s, w, "message", c->message);
	if (!s->numbers)
		jw_int(w, "order", c->order);
	jw_str(w, "nonce", c->nonce);
	jw_str(w, "id", c->id);
	jw_str(w, "hash", c->hash);
	jw_str(w, "labels", c->labels);
	jw_int(w, "until", c->until_ms);
	jw_end(w);
}

void door_state_write(const struct door_state *s, struct buf *out)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_int(&w, "version", VERSION);
	write_id(s, &w, "bot", s->account);
	jw_int(&w, "newest", s->newest_ms);
	if (!s->numbers)
		jw_str(&w, "since", s->since);
	jw_array(&w, "seen");
	for (unsigned i = 0; i < s->nseen; i++)
		write_id(s, &w, NULL, s->seen[i]);
	jw_end(&w);
	jw_array(&w, "chats");
	for (size_t i = 0; i < DOOR_CHATS_MAX; i++)
		if (s->chats[i].id[0])
			state_write_chat(s, &w, &s->chats[i]);
	jw_end(&w);
	jw_array(&w, "cards");
	for (size_t i = 0; i < DOOR_CARDS_MAX; i++)
		if (s->cards[i].chat[0])
			state_write_card(s, &w, &s->cards[i]);
	jw_end(&w);
	jw_end(&w);
	buf_addc(out, '\n');
}

/* ---- updates */

bool door_seen(const struct door_state *s, const char *update)
{
	for (unsigned i = 0; i < s->nseen; i++)
		if (strcmp(s->seen[i], update) == 0)
			return true;
	return false;
}

void door_see(struct door_state *s, const char *update, int64_t wall_ms)
{
	if (s->numbers && door_offset(s, wall_ms) == 0)
		s->nseen = 0; /* ids of another life */
	if (s->nseen == DOOR_SEEN_MAX)
		memmove(s->seen, s->seen + 1, --s->nseen * sizeof(s->seen[0]));
	snprintf(s->seen[s->nseen++], DOOR_ID_MAX, "%s", update);
	s->newest_ms = wall_ms;
}

int64_t door_offset(const struct door_state *s, int64_t wall_ms)
{
	return s->nseen > 0 && wall_ms - s->newest_ms < RESET_MS
		       ? strtoll(s->seen[s->nseen - 1], NULL, 10) + 1
		       : 0;
}

/* ---- chats and cards */

struct door_chat *door_chat(struct door_state *s, const char *id)
{
	for (size_t i = 0; i < DOOR_CHATS_MAX; i++)
		if (id[0] && strcmp(s->chats[i].id, id) == 0)
			return &s->chats[i];
	return NULL;
}

struct door_chat *door_free_chat(struct door_state *s)
{
	for (size_t i = 0; i < DOOR_CHATS_MAX; i++)
		if (!s->chats[i].id[0])
			return &s->chats[i];
	return NULL;
}

void door_new_session(struct door_chat *c)
{
	snprintf(c->session, sizeof(c->session), "%s", id_session().text);
}

void door_nonce(char out[DOOR_NONCE_LEN + 1])
{
	unsigned char random[DOOR_NONCE_LEN / 2];

	id_random(random, sizeof(random));
	hash_hex(random, sizeof(random), out);
}

struct door_card *door_card_new(struct door_state *s, const char *chat, const char *id)
{
	struct door_card *c = &s->cards[DOOR_CARDS_MAX - 1];

	/* In order of their making, so that the first is the oldest. */
	if (c->chat[0])
		memmove(s->cards, s->cards + 1, (DOOR_CARDS_MAX - 1) * sizeof(*c));
	else
		while (c > s->cards && !c[-1].chat[0])
			c--;
	*c = (struct door_card){0};
	snprintf(c->chat, sizeof(c->chat), "%s", chat);
	snprintf(c->id, sizeof(c->id), "%s", id);
	door_nonce(c->nonce);
	return c;
}

void door_card_drop(struct door_state *s, struct door_card *c)
{
	struct door_card *last = &s->cards[DOOR_CARDS_MAX - 1];

	memmove(c, c + 1, (size_t)(last - c) * sizeof(*c));
	*last = (struct door_card){0};
}

struct door_card *door_card_of(struct door_state *s, const char *chat, const char *id)
{
	for (size_t i = 0; i < DOOR_CARDS_MAX; i++)
		if (strcmp(s->cards[i].chat, chat) == 0 && strcmp(s->cards[i].id, id) == 0)
			return &s->cards[i];
	return NULL;
}

struct door_card *door_card_at(struct door_state *s, const char *chat, const char *message)
{
	for (size_t i = 0; i < DOOR_CARDS_MAX; i++)
		if (message[0] && strcmp(s->cards[i].chat, chat) == 0 &&
		    strcmp(s->cards[i].message, message) == 0)
			return &s->cards[i];
	return NULL;
}

struct door_card *door_card_with(struct door_state *s, const char *nonce, size_t len)
{
	for (size_t i = 0; i < DOOR_CARDS_MAX; i++)
		if (s->cards[i].chat[0] && len == DOOR_NONCE_LEN &&
		    memcmp(s->cards[i].nonce, nonce, len) == 0)
			return &s->cards[i];
	return NULL;
}

const char *door_card_button(const struct door_card *c, size_t index, size_t *len)
{
	const char *label = c->labels;

	*len = strcspn(label, "\n");
	for (; index > 0 && *label; index--) {
		label += *len + (label[*len] == '\n');
		*len = strcspn(label, "\n");
	}
	return *len > 0 ? label : NULL;
}
