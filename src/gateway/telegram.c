/* See telegram.h.
 *
 * Happy path: POST /bot<token>/<method> with a JSON object, answered {"ok":true,"result":…}.
 * What can fail: the way to the service (later), and errors of the service, by `description` and
 * status. 400 "message is not modified" is a success. A wrong token is 401 or 404.
 * An answer that is no JSON is a proxy's, whatever its status: later. */
#include "gateway/door_wire.h"

#include <ava.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/util.h"
#include "codec/json.h"

#define TOKEN_NAME  "TELEGRAM_BOT_TOKEN"
#define OWN_URL     "https://api.telegram.org" /* without telegram.url */
#define TOKEN_MAX   200
#define UPDATES_MAX 40 /* updates in an answer: all parts of a text fit */
#define BAD_TOKEN                                                                                  \
	"the token is not good any more: write the bot's new one into the file env and restart "   \
	"the daemon"

/* ---- who we are */

static int telegram_access(struct door_access *out, const char *url, struct ava_error *err)
{
	const char *token = door_secret(TOKEN_NAME, err);
	size_t digits = token ? strspn(token, "0123456789") : 0, len = token ? strlen(token) : 0;

	if (!token)
		return err->code ? err->code : AVA_ENOENT;
	for (size_t i = digits + 1; i < len; i++)
		if (!isalnum((unsigned char)token[i]) && token[i] != '_' && token[i] != '-')
			len = 0;
	if (digits == 0 || digits > 16 || len >= TOKEN_MAX || len < digits + 20 ||
	    token[digits] != ':')
		return err_set(err, AVA_EINVAL,
			       TOKEN_NAME
			       " is no token of a bot (digits, a colon, letters): copy it again "
			       "from @BotFather");
	snprintf(out->url, sizeof(out->url), "%s", *url ? url : OWN_URL);
	snprintf(out->prefix, sizeof(out->prefix), "/bot%s/", token);
	snprintf(out->account, sizeof(out->account), "%" PRId64, (int64_t)strtoll(token, NULL, 10));
	return 0;
}

/* The token tells our id; here is the name that people see. */
static void telegram_who(const json_t *result, char id[DOOR_ID_MAX], char name[64])
{
	id[0] = '\0';
	snprintf(name, 64, "%s", json_str(result, "username"));
}

/* ---- answers */

static const struct telegram_meaning {
	int status; /* 0: any other of 400 to 499 */
	enum door_verdict verdict;
	const char *what;
} meanings[] = {
	{429, DOOR_SLOW, "Telegram asks to wait"},
	{401, DOOR_REVOKED, BAD_TOKEN},
	{404, DOOR_REVOKED, BAD_TOKEN},
	{403, DOOR_BLOCKED, "the person has blocked the bot"},
	{409, DOOR_CONFLICT,
	 "another program reads what is said to this bot: stop it, or give ava a bot of its own, "
	 "then run `ava telegram listen`"},
	{0, DOOR_REFUSED, "Telegram refuses it"},
};

static void telegram_judge(int status, const char *body, size_t len, json_t **doc,
			   struct door_answer *out)
{
	const struct telegram_meaning *m = meanings;
	const char *told;
	char what[60];
	int64_t after_s;

	*out = (struct door_answer){.verdict = DOOR_OK};
	*doc = json_read_others(body, len, NULL);
	told = json_str(*doc, "description");
	after_s = json_get_int(json_object_get(*doc, "parameters"), "retry_after", 0);
	if (status == 200 && json_get_bool(*doc, "ok", false)) {
		out->result = json_object_get(*doc, "result");
	} else if (status == 400 && strstr(told, "message is not modified")) {
		out->result = NULL;
	} else if (!*doc || status < 400 || status >= 500) {
		snprintf(what, sizeof(what), "Telegram answers %d%s", status,
			 *doc ? "" : ", and not in JSON");
		door_answer_why(out, DOOR_LATER, what, told);
	} else {
		while (m->status != 0 && m->status != status)
			m++;
		door_answer_why(out, m->verdict, m->what, m->verdict == DOOR_REVOKED ? "" : told);
		if (m->verdict == DOOR_SLOW)
			door_answer_slow(out, MIN(MAX(after_s, INT64_C(0)), INT64_C(86400)) * 1000);
	}
}

/* ---- calls */

static json_int_t number_of(const char *id)
{
	return strtoll(id, NULL, 10);
}

/* Previews would fetch what stands in it. `markup` is *taken*; NULL: none. */
static json_t *telegram_text(const struct door_task *t, json_t *markup)
{
	return json_pack("{s:I,s:o,s:{s:b},s:o*}", "chat_id", number_of(t->room), "text",
			 json_stringn_nocheck(t->text, t->len), "link_preview_options",
			 "is_disabled", 1, "reply_markup", markup);
}

/* One below the other, so that long labels can be read. */
static json_t *buttons_of(const struct door_card *c)
{
	const char *label;
	json_t *rows;
	size_t len;

	if (!c)
		return NULL;
	if (!c->labels[0]) /* words are wanted */
		return json_pack("{s:b}", "force_reply", 1);
	rows = json_array();
	for (size_t i = 0; (label = door_card_button(c, i, &len)); i++)
		json_array_append_new(
			rows, json_pack("[{s:o,s:o}]", "text", json_stringn_nocheck(label, len),
					"callback_data", json_sprintf("v1:%s:%zu", c->nonce, i)));
	return json_pack("{s:o}", "inline_keyboard", rows);
}

static void telegram_document(const struct door_task *t, struct door_request *r)
{
	char boundary[DOOR_NONCE_LEN + 1];

	door_nonce(boundary);
	snprintf(r->type, sizeof(r->type), "multipart/form-data; boundary=%s", boundary);
	buf_addf(&r->body,
		 "--%s\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n%s\r\n"
		 "--%s\r\nContent-Disposition: form-data; name=\"caption\"\r\n\r\n",
		 boundary, t->room, boundary);
	buf_add(&r->body, t->text,
		door_cut(t->text, strcspn(t->text, "\n"), door_wire_telegram.caption_units));
	buf_addf(&r->body,
		 "\r\n--%s\r\nContent-Disposition: form-data; name=\"document\"; "
		 "filename=\"ava-%" PRIu64 ".txt\"\r\nContent-Type: text/plain; "
		 "charset=utf-8\r\n\r\n",
		 boundary, t->lsn);
	buf_add(&r->body, t->text, t->len);
	buf_addf(&r->body, "\r\n--%s--\r\n", boundary);
}

/* Arguments of a call; NULL: no memory. */
static json_t *telegram_args(const struct door_task *t)
{
	json_t *args;

	switch (t->op) {
	case DOOR_WHO:
		return json_object();
	case DOOR_POLL:
		return json_pack("{s:I,s:i,s:i,s:[ss]}", "offset",
				 (json_int_t)door_offset(t->kept, clock_wall_ms()), "timeout",
				 t->wait_s, "limit", UPDATES_MAX, "allowed_updates", "message",
				 "callback_query");
	case DOOR_SEND:
		return telegram_text(t, buttons_of(t->card));
	case DOOR_EDIT:
		args = telegram_text(t, buttons_of(t->card));
		json_object_set_new(args, "message_id", json_integer(number_of(t->message)));
		return args;
	case DOOR_BARE:
		return json_pack("{s:I,s:I}", "chat_id", number_of(t->room), "message_id",
				 number_of(t->message));
	case DOOR_TOAST:
		return json_pack("{s:s,s:o,s:b}", "callback_query_id", t->message, "text",
				 json_stringn_nocheck(t->text, t->len), "show_alert", t->len > 0);
	default:
		return json_pack("{s:I,s:s}", "chat_id", number_of(t->room), "action", "typing");
	}
}

static bool telegram_encode(const struct door_task *t, struct door_request *r)
{
	static const char *const methods[] = {
		[DOOR_WHO] = "getMe",
		[DOOR_POLL] = "getUpdates",
		[DOOR_SEND] = "sendMessage",
		[DOOR_EDIT] = "editMessageText",
		[DOOR_BARE] = "editMessageReplyMarkup",
		[DOOR_FILE] = "sendDocument",
		[DOOR_TOAST] = "answerCallbackQuery",
		[DOOR_TYPING] = "sendChatAction",
	};
	json_t *args;

	if (t->op >= ARRAY_LEN(methods))
		return false;
	snprintf(r->path, sizeof(r->path), "%s", methods[t->op]);
	if (t->op == DOOR_FILE) {
		telegram_document(t, r);
		return true;
	}
	args = telegram_args(t);
	if (!args || json_dump(&r->body, args) != 0)
		r->body.failed = true;
	json_decref(args);
	return true;
}

static void telegram_made(const json_t *result, char message[DOOR_ID_MAX])
{
	int64_t id = json_get_int(result, "message_id", 0);

	message[0] = '\0';
	if (id > 0)
		snprintf(message, DOOR_ID_MAX, "%" PRId64, id);
}

/* ---- updates */

static json_t *telegram_updates(const json_t *result, char since[DOOR_ID_MAX])
{
	since[0] = '\0';
	return json_incref((json_t *)result);
}

static void telegram_id(char out[DOOR_ID_MAX], int64_t id)
{
	out[0] = '\0';
	if (id > 0)
		snprintf(out, DOOR_ID_MAX, "%" PRId64, id);
}

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

static void telegram_read(const json_t *u, const struct door_state *kept, struct door_said *out)
{
	const json_t *q = json_object_get(u, "callback_query");
	const json_t *m = json_object_get(q ? q : u, "message");
	const json_t *from = json_object_get(q ? q : m, "from");
	const json_t *before = json_object_get(m, "reply_to_message");
	const char *data = json_str(q, "data");

	(void)kept;
	snprintf(out->id, sizeof(out->id), "%" PRId64, json_get_int(u, "update_id", -1));
	if (!door_is_number(out->id))
		out->id[0] = '\0';
	telegram_id(out->person, whose(m, from));
	memcpy(out->room, out->person, sizeof(out->room));
	if (!out->person[0])
		return;
	out->kind = q ? DOOR_PRESS : DOOR_TEXT;
	out->name = json_str(from, "first_name");
	telegram_id(out->message, json_get_int(m, "message_id", 0));
	telegram_id(out->reply_to, json_get_int(before, "message_id", 0));
	out->text = json_get_str(m, "text");
	out->caption = json_get_str(m, "caption");
	out->date_s = json_get_int(m, "date", 0);
	snprintf(out->callback, sizeof(out->callback), "%s", json_str(q, "id"));
	/* "v1:" nonce ":" digit */
	if (strlen(data) == DOOR_NONCE_LEN + 5 && strncmp(data, "v1:", 3) == 0 &&
	    data[DOOR_NONCE_LEN + 3] == ':') {
		memcpy(out->nonce, data + 3, DOOR_NONCE_LEN);
		out->index = (unsigned char)data[DOOR_NONCE_LEN + 4] - (unsigned)'0';
	}
}

static int64_t telegram_pace(const struct settings *s)
{
	return s->telegram_pace_ms;
}

static int64_t telegram_edit(const struct settings *s)
{
	return s->telegram_edit_ms;
}

const struct door_wire door_wire_telegram = {
	.name = "telegram",
	.title = "Telegram",
	.units = 4096,
	.caption_units = 1024,
	.parts_max = 3,
	.split_units = 4096,
	.numbers = true,
	.pace_ms = telegram_pace,
	.edit_ms = telegram_edit,
	.access = telegram_access,
	.encode = telegram_encode,
	.judge = telegram_judge,
	.who = telegram_who,
	.updates = telegram_updates,
	.read = telegram_read,
	.made = telegram_made,
};
