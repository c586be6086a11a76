/* The conversation of a run with its model, for people: GET /runs/{id}/messages. The
 * lines of messages.jsonl (doc/MESSAGES.md) become messages of one shape, whatever the dialect.
 *
 * A message belongs to a call of the model: the first one that it was input of, or the one that it
 * is the reply of. Calls are counted by the authors of the lines: a user's message behind a
 * reply is for the next call, and so is one behind a user's, since an empty reply has no line; a
 * reply behind a reply is another call, which went on with a paused one. Where a run goes on from
 * another one, the lines of that one are of call 0, as the names of its calls are (c0.3).
 *
 * The file is read line by line on a thread of the pool; no more than a line and the answer are in
 * memory. What can fail: the file is gone; a line that cannot be read is counted, and named. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/others.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "journal/files.h"
#include "provider/chat_request.h"
#include "provider/head.h"
#include "provider/wire.h"

#define SHOWN_BYTES  ((size_t)64 << 10) /* of a text */
#define ANSWER_BYTES ((size_t)8 << 20)  /* no message is begun beyond */
#define TEXT_BYTES   ((size_t)512 << 20)

#define PRUNED "run %s has no messages: they were pruned, or it has only just begun"

struct transcript_ask {
	int64_t turn;  /* only messages of this call; -1: of all */
	int64_t after; /* only lines behind this one */
	int64_t limit; /* messages, at the most */
};

struct transcript {
	struct transcript_ask ask;
	int root_fd;                  /* with the files */
	const struct redact *secrets; /* *borrowed*; NULL: none are known */
	struct jw *w;                 /* inside of the array that gets the messages */

	int64_t line, turn;  /* number of the newest line, from 1; call that its message is of */
	int64_t shown, last; /* messages written; line of the newest one */
	int64_t unreadable, unreadable_first; /* lines; number of the first one */
	bool more;                            /* the answer is full, and lines follow */
	bool earlier;            /* the lines are of the run that this one goes on from */
	enum wire_role role;     /* author of the newest message */
	unsigned calls, results; /* since the newest reply began: what they are named by, with */
	int64_t replied;         /* the call of the model that it is the reply of */
	struct buf parts;        /* of the message that is being written */
	struct jw p;
};

/* ---- parts of a message */

static void transcript_part(struct transcript *t, const char *kind)
{
	jw_object(&t->p, NULL);
	jw_str(&t->p, "kind", kind);
}

/* Ends a part with a text as people may see it, without its first bytes. `raw`: escaped as in
 * JSON. */
static void transcript_text(struct transcript *t, struct slice raw, bool escaped, size_t skip)
{
	struct buf b[3]; /* the text; without secrets; as it is shown */
	size_t keep;

	for (size_t i = 0; i < ARRAY_LEN(b); i++)
		buf_init(&b[i], TEXT_BYTES);
	(void)(escaped ? jscan_text(&b[0], raw) : buf_add(&b[0], raw.s, raw.len));
	buf_drop(&b[0], MIN(skip, b[0].len));
	(void)redact_text(t->secrets, &b[1], b[0].data, b[0].len);
	keep = MIN(b[1].len, SHOWN_BYTES);
	while (keep > 0 && keep < b[1].len && ((unsigned char)b[1].data[keep] & 0xc0) == 0x80)
		keep--;
	(void)utf8_terminal(&b[2], b[1].data, keep, true);
	jw_strn(&t->p, "text", b[2].data ? b[2].data : "", b[2].len);
	if (keep < b[1].len)
		jw_bool(&t->p, "cut", true);
	jw_end(&t->p);
	for (size_t i = 0; i < ARRAY_LEN(b); i++) {
		t->parts.failed |= buf_check(&b[i]) != 0;
		buf_fini(&b[i]);
	}
}

/* Parts of a JSON string, or of the texts of a list of objects; false: there is none. */
static bool transcript_value(struct transcript *t, const char *kind, struct slice v)
{
	static const char *const keys[] = {"text", "summary", "content"};
	struct slice o;
	struct jscan s;
	bool any = v.len > 2 && v.s[0] == '"';

	if (any) {
		transcript_part(t, kind);
		transcript_text(t, (struct slice){v.s + 1, v.len - 2}, true, 0);
	}
	jscan_init(&s, v.s, v.len);
	if (v.len > 0 && v.s[0] == '[' && jscan_array(&s))
		while (jscan_item(&s) && jscan_skip(&s, &o))
			for (size_t i = 0; i < ARRAY_LEN(keys); i++)
				any |= transcript_value(t, kind, jscan_member(o.s, o.len, keys[i]));
	return any;
}

static void transcript_call_id(struct transcript *t, unsigned n)
{
	char id[40];

	snprintf(id, sizeof(id), "c%lld.%u", (long long)t->replied, n);
	jw_str(&t->p, "call_id", id);
}

/* Arguments are an object; what is none, or too long, is a text. */
static void transcript_call(struct transcript *t, const struct wire_block *b)
{
	struct buf args, clean;

	buf_init(&args, SHOWN_BYTES);
	buf_init(&clean, TEXT_BYTES);
	transcript_part(t, "call");
	jw_raw(&t->p, "name", b->name.s - 1, b->name.len + 2); /* as it stands, in its quotes */
	transcript_call_id(t, ++t->calls);
	(void)(b->input_string ? jscan_text(&args, b->input)
			       : buf_add(&args, b->input.s, b->input.len));
	if (buf_check(&args) == 0 && args.len > 0 && args.data[0] == '{' &&
	    jscan_is_json(args.data, args.len) &&
	    redact_json(t->secrets, &clean, args.data, args.len) >= 0) {
		jw_raw(&t->p, "args", clean.data, clean.len);
		jw_end(&t->p);
	} else {
		transcript_text(t, b->input, b->input_string, 0);
	}
	buf_fini(&args);
	buf_fini(&clean);
}

static void transcript_block(struct transcript *t, const struct wire_reader *r,
			     const struct wire_block *b, size_t bytes)
{
	bool marked = r->chat && jscan_begins(b->text.s, b->text.len, WIRE_CHAT_ERROR);
	char text[120];

	if (b->type == WIRE_TOOL_USE && b->name.len > 0) {
		transcript_call(t, b);
	} else if (b->type == WIRE_TOOL_RESULT) {
		transcript_part(t, "result");
		transcript_call_id(t, ++t->results);
		if (marked || b->is_error)
			jw_bool(&t->p, "failed", true);
		transcript_text(t, b->text, true, marked ? strlen(WIRE_CHAT_ERROR) : 0);
	} else if (b->type == WIRE_TEXT || b->text.len > 0) {
		transcript_part(t, b->type == WIRE_TEXT ? "text" : "thinking");
		transcript_text(t, b->text, true, 0);
	} else if (!transcript_value(t, "thinking", b->thought)) {
		snprintf(text, sizeof(text), "%.*s: %zu bytes that are no text.",
			 (int)MIN(b->name.len, 60), b->name.s, bytes);
		transcript_part(t, "note");
		jw_str(&t->p, "text", text);
		jw_end(&t->p);
	}
}

/* ---- messages */

/* Writes the message of the parts where it is asked for; false: the answer is complete. */
static bool transcript_end(struct transcript *t, const char *role)
{
	int64_t turn = t->turn == 0 && !t->earlier ? 1 : t->turn;

	jw_end(&t->p);
	if (t->parts.len == 2 || t->line <= t->ask.after ||
	    (t->ask.turn >= 0 && turn != t->ask.turn))
		return t->ask.turn < 0 || t->turn <= t->ask.turn;
	t->more = t->shown == t->ask.limit || t->w->out->len > ANSWER_BYTES;
	if (t->more)
		return false;
	jw_object(t->w, NULL);
	jw_int(t->w, "n", t->line);
	jw_int(t->w, "turn", turn);
	jw_str(t->w, "role", role);
	jw_raw(t->w, "parts", t->parts.data, t->parts.len);
	jw_end(t->w);
	t->w->out->failed |= buf_check(&t->parts) != 0;
	t->shown++;
	t->last = t->line;
	return true;
}

static bool transcript_unreadable(struct transcript *t)
{
	if (t->unreadable++ == 0)
		t->unreadable_first = t->line;
	return true;
}

/* A change by the runtime, in a sentence. */
__attribute__((format(printf, 2, 3))) static bool transcript_note(struct transcript *t,
								  const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	transcript_part(t, "note");
	transcript_text(t, (struct slice){text, strlen(text)}, false, 0);
	return transcript_end(t, "note");
}

/* Counts the call that the message belongs to. */
static void transcript_count(struct transcript *t, const struct wire_reader *r)
{
	bool reply = r->role == WIRE_ASSISTANT, follows = t->role == WIRE_ASSISTANT;
	bool next = reply ? follows && !r->item : t->role != WIRE_TOOL;

	t->turn += next && !t->earlier;
	if (reply && (!follows || next) && !t->earlier) {
		t->calls = t->results = 0;
		t->replied = t->turn;
	}
	t->role = r->role;
}

static bool transcript_message(struct transcript *t, const char *line, size_t len)
{
	bool user, results = false;
	struct wire_reader r;
	struct wire_block b;
	const char *from;
	int more;

	wire_reader_init(&r, line, len);
	if (wire_message(&r, &user) != 1)
		return transcript_unreadable(t);
	transcript_count(t, &r);
	if (jscan_begins(line, len, CHAT_BRIDGE))
		return transcript_note(t, "The reply was empty.");
	if (r.chat && !r.item)
		(void)transcript_value(t, "thinking", r.whole.thought);
	while (from = r.w.at, (more = wire_block(&r, &b)) == 1) {
		results |= b.type == WIRE_TOOL_RESULT;
		transcript_block(t, &r, &b,
				 r.chat ? len : (size_t)(r.w.at - from) - (*from == ','));
	}
	if (more < 0 || wire_message(&r, &user) != 0)
		return transcript_unreadable(t);
	return transcript_end(t, t->role == WIRE_ASSISTANT ? "assistant"
				 : results                 ? "tool"
							   : "user");
}

/* The first line: what every request begins with. Its end is open, maybe behind the system
 * message of chat completions. */
static bool transcript_head(struct transcript *t, struct slice spec)
{
	static const char *const keys[] = {"system", "instructions", "messages"};
	struct slice raw = jscan_member(spec.s, spec.len, "head");
	struct hash_sha256 prefix;
	struct buf head;

	t->earlier = jscan_member(spec.s, spec.len, "resumedFrom").len > 0;
	buf_init(&head, TEXT_BYTES);
	if (raw.len > 2 &&
	    head_add(&head, t->root_fd, (struct slice){raw.s + 1, raw.len - 2}, &prefix, NULL) != 0)
		return transcript_unreadable(t);
	if (head.len > 0 && head.data[head.len - 1] == ',')
		head.len--;
	buf_adds(&head, "]}");
	for (size_t i = 0; i < ARRAY_LEN(keys) && buf_check(&head) == 0; i++)
		(void)transcript_value(t, "text", jscan_member(head.data, head.len, keys[i]));
	buf_fini(&head);
	return transcript_end(t, "system");
}

/* A line between the messages; `key` is its kind. */
static bool transcript_amendment(struct transcript *t, struct slice key, struct slice v)
{
	struct slice model = jscan_member(v.s, v.len, "model");
	struct slice id = jscan_member(v.s, v.len, "callId");
	long calls = slice_number(jscan_member(v.s, v.len, "calls"), 0);

	if (slice_is(key, "replace"))
		return transcript_note(
			t, "The result of %.*s is shortened from here on, to make room.",
			id.len > 2 ? (int)MIN(id.len - 2, 40) : 0, id.s + 1);
	if (slice_is(key, "cut"))
		return transcript_note(t,
				       "To make room, a summary takes the place of all before; so "
				       "far it leaves out %ld call%s.",
				       calls, calls == 1 ? "" : "s");
	if (slice_is(key, "spec") && model.len > 2)
		return transcript_note(t, "From here on the model is %.*s.",
				       (int)MIN(model.len - 2, 200), model.s + 1);
	if (slice_is(key, "spec") && !jscan_begins(v.s, v.len, "{\"head\":"))
		return transcript_note(t, "Requests are made in another way from here on: %.*s",
				       (int)MIN(v.len, 200), v.s);
	if (t->earlier && jscan_member(v.s, v.len, "resumed").len > 0) {
		t->earlier = false;
		t->role = WIRE_USER;
		t->calls = t->results = 0;
	}
	return slice_is(key, "mark") || slice_is(key, "spec") ? true : transcript_unreadable(t);
}

/* false: the answer is complete. */
static bool transcript_line(struct transcript *t, const char *line, size_t len)
{
	struct slice key, value, more;
	struct jscan s;

	t->line++;
	buf_reset(&t->parts);
	t->parts.max = TEXT_BYTES;
	jw_init(&t->p, &t->parts);
	jw_array(&t->p, NULL);
	jscan_init(&s, line, len);
	if (!jscan_object(&s) || !jscan_key(&s, &key))
		return transcript_unreadable(t);
	if (wire_is_message(key))
		return transcript_message(t, line, len);
	if (!jscan_skip(&s, &value) || jscan_key(&s, &more) || s.failed)
		return transcript_unreadable(t);
	return t->line == 1 ? transcript_head(t, value) : transcript_amendment(t, key, value);
}

/* ---- GET /runs/{id}/messages */

static const struct arg transcript_args[] = {
	{"turn", ARG_COUNT, offsetof(struct transcript_ask, turn), 0, INT32_MAX},
	{"after", ARG_COUNT, offsetof(struct transcript_ask, after), 0, INT64_MAX - 1},
	{"limit", ARG_COUNT, offsetof(struct transcript_ask, limit), 1, 1000},
	{NULL},
};

/* Pool thread: the file and its further parts. A torn last line was never acknowledged. */
static int transcript_work(struct verb_work *w, struct ava_error *err)
{
	const struct transcript_ask *ask = w->own;
	struct jw *out = &w->answer.w;
	struct transcript t = {.ask = *ask,
			       .root_fd = others_root(w, NULL),
			       .secrets = w->job.core->redact,
			       .w = out,
			       .last = ask->after};
	char path[LOGBOOK_PATH], name[FILES_BUF];
	bool goes_on = true;
	int rv = 1, fd;

	logbook_messages_path(w->id, path);
	jw_object(out, NULL);
	jw_array(out, "messages");
	for (unsigned part = 1; rv >= 0 && goes_on; part++) {
		struct loglines lines;
		const char *line;
		size_t len;

		fd = files_open(t.root_fd, files_part_name(path, part, name), O_RDONLY);
		if (fd < 0 && (errno != ENOENT || part == 1))
			rv = errno != ENOENT ? err_sys(err, "%s", name)
					     : err_set(err, AVA_ENOENT, PRUNED, w->id);
		if (fd < 0)
			break;
		loglines_init(&lines, fd, 0, UINT64_MAX);
		while (goes_on && (rv = loglines_next(&lines, &line, &len)) == 1 && !lines.torn)
			goes_on = transcript_line(&t, line ? line : "", line ? len - 1 : 0);
		loglines_fini(&lines);
		files_close(&fd);
		if (rv < 0)
			err_set(err, rv, "%s cannot be read", name);
	}
	jw_end(out);
	jw_int(out, "next", t.last);
	jw_bool(out, "more", t.more);
	if (t.unreadable > 0) {
		jw_int(out, "unreadable", t.unreadable);
		snprintf(name, sizeof(name), "%s, line %lld", path, (long long)t.unreadable_first);
		jw_str(out, "unreadable_first", name);
	}
	buf_fini(&t.parts);
	return MIN(rv, 0);
}

static void verb_transcript(struct verb_call *v)
{
	struct transcript_ask ask = {.turn = -1, .limit = 100};
	struct ava_error err = {0};

	if (!verb_args(v, &ask))
		return;
	if (!others_may(v->core, v->id) && core_known(v->core, v->id, &err) != 0)
		verb_fail(v->reply, err.code, &err);
	else
		others_work(v, v->id, &(struct verb_work){.work = transcript_work, .own = &ask},
			    sizeof(ask));
}

const struct verb verbs_about_messages[] = {
	{"GET", "/api/v1/runs/{id}/messages", verb_transcript, transcript_args, false},
	{NULL},
};
