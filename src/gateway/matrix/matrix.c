/* See matrix.h.
 *
 *   GET  sync?since=…                          what was said, in the order of the server
 *   PUT  rooms/R/send/m.room.message/KEY       a message, or by m.replace other words in one
 *   PUT  rooms/R/send/m.reaction/KEY           a button; whoever reacts with the same key presses
 * it
 *
 * KEY is the call's own name (door_task.key): the server makes one event of all calls of a name, so
 * that a message after a kill is the message before it. What is ours comes back in the sync, and
 * says what stood above a person's words.
 *
 * What can fail: the way to the server, and its errors, by `errcode` and status; an answer that is
 * no JSON is a proxy's: later. An encrypted room, and one with more people than one, is left with a
 * sentence. */
#include "gateway/door_wire.h"

#include <ava.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/settings.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "gateway/matrix/html.h"

#define TOKEN_NAME "MATRIX_ACCESS_TOKEN"
#define API        "client/v3/"
#define HTML_MAX   8000 /* bytes of a text; an event has 64 KB at the most, and an edit it twice */
#define TYPING_MS  5000
#define BAD_TOKEN                                                                                  \
	"the token is not good any more: write a new one into the file env and restart the daemon"

/* Timeline: what is said, pressed, and who comes; with lazy_load_members rooms tell how many are in
 * them. 100 is the most that Synapse gives. */
static const char filter[] =
	"{\"presence\":{\"types\":[]},\"account_data\":{\"types\":[]},\"room\":{\"ephemeral\":{"
	"\"types\":[]},\"account_data\":{\"types\":[]},\"state\":{\"types\":[\"m.room.encryption\"]"
	",\"lazy_load_members\":true},\"timeline\":{\"limit\":100,\"types\":[\"m.room.message\","
	"\"m.reaction\",\"m.room.encrypted\",\"m.room.encryption\",\"m.room.member\"]}}}";

static const char encrypted[] =
	"This room is encrypted, which I cannot read: make a room without encryption and invite me "
	"there.";
static const char crowded[] =
	"I speak with one person alone: make a room with nobody else in it and invite me there.";

#define KEY "\xef\xb8\x8f\xe2\x83\xa3" /* behind a digit */

/* ---- who we are */

static int matrix_access(struct door_access *out, const char *url, struct ava_error *err)
{
	const char *token = door_secret(TOKEN_NAME, err);
	size_t len = token ? strlen(token) : 0;

	if (!token)
		return err->code ? err->code : AVA_ENOENT;
	if (len < 8 || len > 400 || utf8_seen((char[8]){0}, 8, token, len) == 0 ||
	    strpbrk(token, " \t"))
		return err_set(err, AVA_EINVAL, TOKEN_NAME " is no access token: copy it again");
	if (!*url)
		return err_set(err, AVA_EINVAL,
			       "there is " TOKEN_NAME
			       " and no matrix.homeserver in config.yaml: write the address of the "
			       "server there");
	snprintf(out->url, sizeof(out->url), "%s", url);
	snprintf(out->prefix, sizeof(out->prefix), "/_matrix/");
	snprintf(out->header, sizeof(out->header), "Authorization: Bearer %s", token);
	return 0;
}

static void take_id(char out[DOOR_ID_MAX], const char *id)
{
	if ((size_t)snprintf(out, DOOR_ID_MAX, "%s", id) >= DOOR_ID_MAX)
		out[0] = '\0'; /* none that the protocol allows */
}

static void matrix_who(const json_t *result, char id[DOOR_ID_MAX], char name[64])
{
	take_id(id, json_str(result, "user_id"));
	snprintf(name, 64, "%s", id);
}

/* ---- answers */

static const struct matrix_meaning {
	const char *errcode; /* NULL: any other one */
	enum door_verdict verdict;
	const char *what;
} meanings[] = {
	{"M_LIMIT_EXCEEDED", DOOR_SLOW, "the server asks to wait"},
	{"M_UNKNOWN_TOKEN", DOOR_REVOKED, BAD_TOKEN},
	{"M_MISSING_TOKEN", DOOR_REVOKED, BAD_TOKEN},
	{"M_USER_DEACTIVATED", DOOR_REVOKED, BAD_TOKEN},
	{"M_FORBIDDEN", DOOR_BLOCKED, "we are not in the room any more"},
	{"M_DUPLICATE_ANNOTATION", DOOR_OK, ""},
	{"M_UNRECOGNIZED", DOOR_LATER, "this is no server of Matrix"},
	{NULL, DOOR_REFUSED, "the server refuses it"},
};

static void matrix_judge(int status, const char *body, size_t len, json_t **doc,
			 struct door_answer *out)
{
	const struct matrix_meaning *m = meanings;
	const char *errcode;
	int64_t after_ms;
	char what[60];

	*out = (struct door_answer){.verdict = DOOR_OK};
	*doc = json_read_others(body, len, NULL);
	errcode = json_str(*doc, "errcode");
	if (status == 200 && json_is_object(*doc)) {
		out->result = *doc;
	} else if (!errcode[0] || status < 400 || status >= 500) {
		snprintf(what, sizeof(what), "the server answers %d%s", status,
			 *doc ? "" : ", and not in JSON");
		door_answer_why(out, DOOR_LATER, what, json_str(*doc, "error"));
	} else {
		while (m->errcode && strcmp(m->errcode, errcode) != 0)
			m++;
		if (m->verdict != DOOR_OK)
			door_answer_why(out, m->verdict, m->what,
					m->verdict == DOOR_REVOKED ? "" : json_str(*doc, "error"));
		after_ms = json_get_int(*doc, "retry_after_ms", 0);
		if (m->verdict == DOOR_SLOW)
			door_answer_slow(out, after_ms);
	}
}

/* ---- calls */

/* Percent-encode `s`, an id or JSON. */
static void add_escaped(struct door_request *r, const char *s)
{
	size_t at = strlen(r->path);

	for (; *s && at + 4 < sizeof(r->path); s++) {
		bool plain = strchr(
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", *s);

		at += (size_t)snprintf(r->path + at, sizeof(r->path) - at, plain ? "%c" : "%%%02X",
				       (unsigned char)*s);
	}
}

static void add_path(struct door_request *r, const char *s)
{
	size_t at = strlen(r->path);

	snprintf(r->path + at, sizeof(r->path) - at, "%s", s);
}

/* <API>rooms/<room>/<what>, and <key> behind it; "": none. */
static void room_path(struct door_request *r, const char *room, const char *what, const char *key)
{
	add_path(r, API "rooms/");
	add_escaped(r, room);
	add_path(r, what);
	add_escaped(r, key);
}

/* The words of a message, and its buttons below them. */
static void add_words(struct buf *out, const struct door_task *t)
{
	const char *label;
	size_t len;

	buf_add(out, t->text, t->len);
	for (size_t i = 0; t->card && (label = door_card_button(t->card, i, &len)); i++)
		buf_addf(out, "%s%zu" KEY " %.*s", i == 0 ? "\n\n" : "   ", i + 1, (int)len, label);
}

static json_t *matrix_words(const struct door_task *t)
{
	struct buf text, html;
	json_t *content;

	buf_init(&text, 1u << 17);
	buf_init(&html, 1u << 18);
	add_words(&text, t);
	content = json_pack("{s:s,s:o}", "msgtype", "m.text", "body",
			    json_stringn_nocheck(text.data ? text.data : "", text.len));
	if (!t->literal && text.len <= HTML_MAX && matrix_html(&html, text.data, text.len) &&
	    buf_check(&html) == 0) {
		json_object_set_new(content, "format", json_string("org.matrix.custom.html"));
		json_object_set_new(content, "formatted_body",
				    json_stringn_nocheck(html.data, html.len));
	}
	buf_fini(&text);
	buf_fini(&html);
	return content;
}

/* An edit has the words twice: for clients that do not know of edits only their beginning. */
static json_t *matrix_edited(const struct door_task *t)
{
	json_t *content = matrix_words(t), *edit;
	size_t len = utf8_prefix(t->text, t->len, 200);

	edit = json_pack("{s:s,s:o,s:{s:s,s:s}}", "msgtype", "m.text", "body",
			 json_sprintf("* %.*s", (int)len, t->text), "m.relates_to", "rel_type",
			 "m.replace", "event_id", t->message);
	json_object_set_new(edit, "m.new_content", content);
	return edit;
}

static json_t *matrix_file(const struct door_task *t)
{
	char name[40];

	snprintf(name, sizeof(name), "ava-%" PRIu64 ".txt", t->lsn);
	return json_pack("{s:s,s:o,s:s,s:s,s:{s:s}}", "msgtype", "m.file", "body",
			 json_stringn_nocheck(t->text, t->len), "filename", name, "url", t->message,
			 "info", "mimetype", "text/plain");
}

static json_t *matrix_key(const struct door_task *t)
{
	return json_pack("{s:{s:s,s:s,s:o}}", "m.relates_to", "rel_type", "m.annotation",
			 "event_id", t->message, "key", json_sprintf("%u" KEY, t->index + 1));
}

static void encode_poll(const struct door_task *t, struct door_request *r)
{
	r->method = "GET";
	snprintf(r->path, sizeof(r->path),
		 API "sync?timeout=%d&filter=", t->kept->since[0] ? t->wait_s * 1000 : 0);
	add_escaped(r, filter);
	if (t->kept->since[0])
		add_path(r, "&since=");
	add_escaped(r, t->kept->since);
}

/* The body; NULL: no memory, or none. */
static json_t *encode_args(const struct door_task *t, struct door_request *r)
{
	r->method = "PUT";
	switch (t->op) {
	case DOOR_SEND:
		room_path(r, t->room, "/send/m.room.message/", t->key);
		return matrix_words(t);
	case DOOR_EDIT:
		room_path(r, t->room, "/send/m.room.message/", t->key);
		return matrix_edited(t);
	case DOOR_FILE:
		room_path(r, t->room, "/send/m.room.message/", t->key);
		return matrix_file(t);
	case DOOR_KEY:
		room_path(r, t->room, "/send/m.reaction/", t->key);
		return matrix_key(t);
	case DOOR_TYPING:
		room_path(r, t->room, "/typing/", t->kept->account);
		return json_pack("{s:b,s:i}", "typing", 1, "timeout", TYPING_MS);
	case DOOR_JOIN:
		r->method = NULL;
		room_path(r, t->room, "/join", "");
		return json_object();
	default:
		r->method = NULL;
		room_path(r, t->room, "/leave", "");
		return json_object();
	}
}

static bool matrix_encode(const struct door_task *t, struct door_request *r)
{
	json_t *args;

	r->path[0] = '\0';
	r->type[0] = '\0';
	if (t->op == DOOR_BARE || t->op == DOOR_TOAST)
		return false;
	if (t->op == DOOR_WHO) {
		r->method = "GET";
		add_path(r, API "account/whoami");
		return true;
	}
	if (t->op == DOOR_POLL) {
		encode_poll(t, r);
		return true;
	}
	if (t->op == DOOR_FILE && !t->message) {
		snprintf(r->path, sizeof(r->path), "media/v3/upload?filename=ava-%" PRIu64 ".txt",
			 t->lsn);
		snprintf(r->type, sizeof(r->type), "text/plain; charset=utf-8");
		buf_add(&r->body, t->text, t->len);
		return true;
	}
	args = encode_args(t, r);
	if (!args || json_dump(&r->body, args) != 0)
		r->body.failed = true;
	json_decref(args);
	return true;
}

static void matrix_made(const json_t *result, char message[DOOR_ID_MAX])
{
	const char *event = json_str(result, "event_id");

	take_id(message, event[0] ? event : json_str(result, "content_uri"));
}

/* ---- updates: {"room","event"} each, and {"room","away"} for a room that we leave */

static void add_update(json_t *out, const char *room, const char *key, json_t *value)
{
	json_array_append_new(out, json_pack("{s:s,s:O}", "room", room, key, value));
}

/* An invite has an id of its own for each answer that tells of it. */
static void add_invite(json_t *out, const char *room, const json_t *invite, const char *since)
{
	json_t *event;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(invite, "invite_state"), "events"), i,
			   event)
	{
		if (strcmp(json_str(event, "type"), "m.room.member") != 0 ||
		    strcmp(json_str(json_object_get(event, "content"), "membership"), "invite") !=
			    0)
			continue;
		json_object_set_new(event, "event_id", json_sprintf("%.100s%.150s", since, room));
		add_update(out, room, "event", event);
	}
}

static void add_room(json_t *out, const char *room, const json_t *joined, const char *since)
{
	static const char *const parts[] = {"state", "timeline"};
	const json_t *summary = json_object_get(joined, "summary");
	json_t *event;
	size_t i;

	if (json_get_int(summary, "m.joined_member_count", 0) > 2)
		json_array_append_new(out, json_pack("{s:s,s:s,s:s+}", "room", room, "away",
						     crowded, "id", since, room));
	for (size_t k = 0; k < ARRAY_LEN(parts); k++)
		json_array_foreach(json_object_get(json_object_get(joined, parts[k]), "events"), i,
				   event) add_update(out, room, "event", event);
	if (json_get_bool(json_object_get(joined, "timeline"), "limited", false))
		json_array_append_new(out, json_pack("{s:s,s:b,s:s+}", "room", room, "gap", 1, "id",
						     since, room));
}

static json_t *matrix_updates(const json_t *result, char since[DOOR_ID_MAX])
{
	const json_t *rooms = json_object_get(result, "rooms");
	json_t *out = json_array(), *v;
	const char *room;

	take_id(since, json_str(result, "next_batch"));
	json_object_foreach(json_object_get(rooms, "invite"), room, v)
		add_invite(out, room, v, since);
	json_object_foreach(json_object_get(rooms, "join"), room, v) add_room(out, room, v, since);
	return out;
}

/* A person's words, without those that a client repeats of the message it answers. */
static const char *own_words(const char *body, bool answers)
{
	const char *s = body;

	while (answers && s[0] == '>' && strchr(s, '\n'))
		s = strchr(s, '\n') + 1;
	return s + (s != body && s[0] == '\n');
}

static void read_message(const json_t *content, struct door_said *out)
{
	const json_t *relates = json_object_get(content, "m.relates_to");
	const json_t *before = json_object_get(relates, "m.in_reply_to");
	const char *type = json_str(content, "msgtype"), *body = json_get_str(content, "body");
	const char *name = json_str(content, "filename");

	if (strcmp(json_str(relates, "rel_type"), "m.replace") == 0 ||
	    strcmp(type, "m.notice") == 0)
		return; /* an edit, or a program's words */
	out->kind = DOOR_TEXT;
	if (!json_get_bool(relates, "is_falling_back", false))
		take_id(out->reply_to, json_str(before, "event_id"));
	if (strcmp(type, "m.text") == 0 || strcmp(type, "m.emote") == 0)
		out->text = body ? own_words(body, before != NULL) : NULL;
	else if (body && name[0] && strcmp(name, body) != 0)
		out->caption = body;
}

/* A reaction with one of our keys presses that button; clients may leave out a mark of it. */
static void read_reaction(const json_t *content, struct door_said *out)
{
	const json_t *relates = json_object_get(content, "m.relates_to");
	const char *key = json_str(relates, "key");

	if (strcmp(json_str(relates, "rel_type"), "m.annotation") != 0 || key[0] < '1' ||
	    key[0] > '9' || !strstr(key, "\xe2\x83\xa3"))
		return;
	out->kind = DOOR_PRESS;
	out->index = (unsigned)(key[0] - '1');
	take_id(out->message, json_str(relates, "event_id"));
}

static void matrix_own(const json_t *content, const char *type, struct door_said *out)
{
	const json_t *relates = json_object_get(content, "m.relates_to");

	if (strcmp(type, "m.room.message") == 0 &&
	    strcmp(json_str(relates, "rel_type"), "m.replace") != 0)
		out->kind = DOOR_OWN;
}

static void matrix_read(const json_t *u, const struct door_state *kept, struct door_said *out)
{
	const json_t *event = json_object_get(u, "event"), *content;
	const char *type = json_str(event, "type"), *sender = json_str(event, "sender");

	take_id(out->room, json_str(u, "room"));
	take_id(out->id, json_str(event ? event : u, event ? "event_id" : "id"));
	content = json_object_get(event, "content");
	take_id(out->message, json_str(event, "event_id"));
	out->date_s = json_get_int(event, "origin_server_ts", 0) / 1000;
	if (!event) {
		out->kind = json_get_str(u, "away") ? DOOR_AWAY : DOOR_GAP;
		out->text = json_get_str(u, "away");
		return;
	}
	if (strcmp(sender, kept->account) == 0) {
		matrix_own(content, type, out);
		return;
	}
	take_id(out->person, sender);
	out->name = sender;
	if (strcmp(type, "m.room.message") == 0) {
		read_message(content, out);
	} else if (strcmp(type, "m.reaction") == 0) {
		read_reaction(content, out);
	} else if (strncmp(type, "m.room.encrypt", 14) == 0) { /* …ed, …ion */
		out->kind = DOOR_AWAY;
		out->text = encrypted;
	} else if (strcmp(json_str(content, "membership"), "invite") == 0 &&
		   strcmp(json_str(event, "state_key"), kept->account) == 0) {
		out->kind = DOOR_INVITE;
	}
}

static int64_t matrix_pace(const struct settings *s)
{
	return s->matrix_pace_ms;
}

static int64_t matrix_edit(const struct settings *s)
{
	return s->matrix_edit_ms;
}

const struct door_wire door_wire_matrix = {
	.name = "matrix",
	.title = "Matrix",
	.units = 8000,
	.caption_units = 1000,
	.parts_max = 3,
	.once = true,
	.uploads = true,
	.keys = true,
	.pace_ms = matrix_pace,
	.edit_ms = matrix_edit,
	.access = matrix_access,
	.encode = matrix_encode,
	.judge = matrix_judge,
	.who = matrix_who,
	.updates = matrix_updates,
	.read = matrix_read,
	.made = matrix_made,
};
