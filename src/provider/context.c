/* From the file to the request, from that to lines, calls and results, from
 * these to a plan (agent/limit.c), and from the plan to amendment lines.
 *
 * A result that goes leaves a marker in its place: how large it was and how to
 * get it back; one that nobody has read leaves its beginning, too. A span that goes leaves a ledger
 * behind the task, in its line: the newest calls with what they were asked and the first line of
 * what came, what the model and people said, and how many calls there were before. A cut holds all
 * that the request consists of from then on, so nobody reads what is before.
 *
 * Markers and ledger are runtime text in user-role places; what they quote from
 * models and tools is escaped as notices are. At the end the outcome is tried:
 * an edit that would make the conversation invalid is none. */
#include "provider/context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/limit.h"
#include "agent/prompt.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "provider/dialect.h"
#include "provider/messages.h"
#include "provider/wire.h"

#define REQUEST_MAX       (256u << 20)
#define ARGS_SHOWN        80  /* characters of a call's arguments in the ledger */
#define RESULT_SHOWN      48  /* characters of a result's first line */
#define SAID_SHOWN        160 /* characters of what the model said beside its calls */
#define PEOPLE_SHOWN      2000
#define REMOVED_TOO_OFTEN 3
#define MARK              "[ava] "

struct work {
	struct context_edit *e;
	const struct context_ask *ask;
	struct messages_info info;
	struct buf body; /* the request before the edit */
	struct conversation c;
	struct compact_line *lines;
	struct compact_result *results; /* the result of each call */
	struct compact_plan plan;
	struct ava_error *err;
};

void context_edit_fini(struct context_edit *e)
{
	buf_fini(&e->lines);
	buf_fini(&e->request);
	free(e->removed);
	free(e->fetched);
	e->removed = e->fetched = NULL;
}

static int context_no_memory(struct work *w)
{
	return err_set(w->err, AVA_ENOMEM, "out of memory for making room in the conversation");
}

/* Mark a buffer as failed: memory for its contents ran out. */
static void spoil(struct buf *out)
{
	out->failed = true;
	out->error = AVA_ENOMEM;
}

/* ---- reading: a result belongs to the call of its id in the last assistant message; a result
 * without such a call is left alone */

void conversation_fini(struct conversation *c)
{
	free(c->lines);
	free(c->calls);
	*c = (struct conversation){0};
}

/* Give a result to its call, searched from the end, where the last assistant message's calls
 * are. */
static void context_add_result(struct conversation *c, struct slice id, struct slice text,
			       bool is_error)
{
	for (size_t i = c->ncalls; i > 0; i--) {
		struct said_call *k = &c->calls[i - 1];

		if (k->line != c->calls[c->ncalls - 1].line)
			return; /* calls of earlier replies may have the same id */
		if (k->answered || k->id.len != id.len || memcmp(k->id.s, id.s, id.len) != 0)
			continue;
		k->answered = true;
		k->result_line = c->nlines - 1;
		k->result = text;
		k->is_error = is_error;
		return;
	}
}

static int read_blocks(struct conversation *c, struct slice raw)
{
	struct said_line *l = c->nlines > 0 ? &c->lines[c->nlines - 1] : NULL;
	bool user = false;
	struct wire_reader r;
	struct wire_block b;
	int rv;

	wire_reader_init(&r, raw.s, raw.len);
	rv = wire_message(&r, &user);
	/* Items of one reply count as one line: they are only removed together. */
	if (rv == 1 && r.item && !user && l != NULL && l->item && !l->user) {
		l->raw.len = (size_t)(raw.s + raw.len - l->raw.s);
	} else {
		if (!ARRAY_ROOM(c->lines, c->cap_lines, c->nlines + 1))
			return AVA_ENOMEM;
		l = &c->lines[c->nlines++];
		*l = (struct said_line){.raw = raw, .text = {"", 0}, .last = {"", 0}};
	}
	l->user = user;
	l->item = r.item;
	l->role = r.role;
	while (rv == 1 && (rv = wire_block(&r, &b)) == 1) {
		if (b.type == WIRE_TEXT) {
			if (l->texts++ == 0)
				l->text = b.text;
			l->last = b.text;
		}
		if (b.type == WIRE_TOOL_RESULT)
			context_add_result(c, b.id, b.text, b.is_error);
		if (b.type != WIRE_TOOL_USE)
			continue;
		if (!ARRAY_ROOM(c->calls, c->cap_calls, c->ncalls + 1))
			return AVA_ENOMEM;
		c->calls[c->ncalls++] = (struct said_call){
			.id = b.id,
			.name = b.name,
			.args = b.input,
			.result = {"", 0},
			.line = c->nlines - 1,
		};
	}
	return rv;
}

int conversation_read(struct conversation *c, const char *lines, size_t len, struct ava_error *err)
{
	struct slice raw;
	struct jscan w;
	int rv = 0;

	*c = (struct conversation){0};
	jscan_list(&w, lines, len);
	while (rv == 0 && jscan_next(&w, &raw))
		rv = read_blocks(c, raw);
	if (rv == AVA_ENOMEM)
		return err_set(err, rv, "out of memory");
	if (rv != 0 || w.failed)
		return err_set(err, AVA_EINVAL, "message %zu cannot be read", c->nlines);
	return 0;
}

static struct call_ref name_of(const struct work *w, size_t call)
{
	return w->ask->name(w->info.calls + call, w->ask->user);
}

static int context_take_apart(struct work *w, const char *file, size_t len)
{
	int rv = messages_request(&w->body, file, len, w->ask->root_fd, &w->info, w->err);

	if (rv == 0)
		rv = conversation_read(&w->c, w->body.data + w->info.head_len,
				       w->body.len - w->info.head_len, w->err);
	if (rv != 0)
		return rv;
	w->lines = calloc(w->c.nlines + 1, sizeof(*w->lines));
	w->results = calloc(w->c.ncalls + 1, sizeof(*w->results));
	if (w->lines == NULL || w->results == NULL)
		return context_no_memory(w);
	for (size_t i = 0; i < w->c.nlines; i++) {
		w->lines[i].bytes = (int64_t)w->c.lines[i].raw.len + 1;
		w->lines[i].assistant = !w->c.lines[i].user;
	}
	for (size_t i = 0; i < w->c.ncalls; i++) {
		const struct said_call *k = &w->c.calls[i];
		struct compact_result *r = &w->results[i];
		unsigned removed;

		r->line = k->result_line;
		r->bytes = (int64_t)k->result.len;
		r->fixed = !k->answered || jscan_begins(k->result.s, k->result.len, MARK);
		r->fetched = repeat_fetched(w->ask->repeats, name_of(w, i), &removed);
	}
	return 0;
}

/* ---- what goes is written down */

static void note_removed(struct work *w, size_t call, unsigned *times)
{
	struct call_ref at = name_of(w, call);
	bool fetched = repeat_fetched(w->ask->repeats, at, times);

	w->e->removed[w->e->nremoved++] = at;
	if (fetched)
		w->e->fetched[w->e->nfetched++] = at;
}

/* Longest prefix of a raw string that ends with a whole character; at most `most` bytes. */
static size_t whole_part(struct slice raw, size_t most)
{
	size_t n = 0, step;

	for (; n < raw.len; n += step) {
		const char *s = raw.s + n;

		step = s[0] != '\\' ? utf8_prefix(s, raw.len - n, 1) : s[1] != 'u' ? 2 : 6;
		if (step == 6 && (s[2] | 32) == 'd' && raw.len - n >= 12 && s[6] == '\\')
			step = 12; /* a surrogate pair is two escapes */
		if (n + step > most)
			break;
	}
	return n;
}

static void write_marker(struct work *w, struct buf *out, size_t call)
{
	const struct compact_result *r = &w->results[call];
	struct slice raw = w->c.calls[call].result;
	struct call_ref at = name_of(w, call);
	unsigned times;

	note_removed(w, call, &times);
	if (r->keep > 0) {
		raw.len = whole_part(raw, (size_t)r->keep);
		if (jscan_text(out, raw) != 0)
			spoil(out);
		buf_addf(out,
			 "\n" MARK "Cut here to make room: these are the first %zu of %" PRId64
			 " bytes. The rest: read_result with call_id c%d.%u, by lines or by "
			 "search.",
			 raw.len, r->bytes, (int)at.iteration, at.n);
		return;
	}
	if (times + 1 < REMOVED_TOO_OFTEN) {
		buf_addf(out,
			 MARK "The result of c%d.%u (%" PRId64
			      " bytes) was taken out to make room. If you need it again: "
			      "read_result with call_id c%d.%u, by lines or by search.",
			 (int)at.iteration, at.n, w->results[call].bytes, (int)at.iteration, at.n);
		return;
	}
	buf_addf(out,
		 MARK "The result of c%d.%u was taken out to make room, for the %uth time. Do not "
		      "fetch it again: go on, or submit what you have with a caveat.",
		 (int)at.iteration, at.n, times + 1);
}

static void write_replaces(struct work *w)
{
	struct buf marker;
	char id[32];
	struct jw j;

	buf_init(&marker, REQUEST_MAX);
	for (size_t i = 0; i < w->c.ncalls; i++) {
		struct call_ref at;

		if (!w->results[i].go)
			continue;
		buf_reset(&marker);
		write_marker(w, &marker, i);
		if (buf_check(&marker) != 0)
			spoil(&w->e->lines);
		at = name_of(w, i);
		snprintf(id, sizeof(id), "c%d.%u", (int)at.iteration, at.n);
		jw_init(&j, &w->e->lines);
		jw_object(&j, NULL);
		jw_object(&j, "replace");
		jw_str(&j, "callId", id);
		buf_adds(&w->e->lines, ",\"wireId\":\""); /* a raw string, not escaped again */
		buf_add(&w->e->lines, w->c.calls[i].id.s, w->c.calls[i].id.len);
		buf_addc(&w->e->lines, '"');
		jw_str(&j, "content", marker.data);
		jw_end(&j);
		jw_end(&j);
		buf_addc(&w->e->lines, '\n');
	}
	buf_fini(&marker);
}

/* ---- the ledger: its entries as JSON strings joined by commas */

/* Text of a raw string on one line, at most `chars` characters. The code that prints it escapes it
 * as notices are. */
static void add_shown(struct buf *out, struct slice raw, size_t chars)
{
	size_t take = MIN(raw.len, chars * 12), kept;
	struct buf text;

	while (take < raw.len && take > 0 && raw.s[take - 1] == '\\')
		take--; /* do not end in half an escape */
	buf_init(&text, take + 1);
	if (jscan_text(&text, (struct slice){raw.s, take}) != 0)
		spoil(out);
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.data[i] < ' ')
			text.data[i] = ' ';
	kept = text.len > 0 ? utf8_prefix(text.data, text.len, chars) : 0;
	notice_escape(out, kept > 0 ? text.data : "", kept);
	if (kept < text.len || raw.len > chars * 12)
		buf_adds(out, "…");
	buf_fini(&text);
}

/* The first line that has letters or digits. */
static struct slice first_line(struct slice raw)
{
	struct slice line = raw;
	size_t at = 0;

	while (at < raw.len) {
		size_t end = at;
		bool words = false;

		while (end + 1 < raw.len && !(raw.s[end] == '\\' && raw.s[end + 1] == 'n')) {
			unsigned char ch = (unsigned char)raw.s[end];

			words = words || ch >= 0x80 || (ch >= '0' && ch <= '9') ||
				((ch | 32) >= 'a' && (ch | 32) <= 'z' &&
				 (end == 0 || raw.s[end - 1] != '\\'));
			end += raw.s[end] == '\\' ? 2u : 1u;
		}
		line = (struct slice){raw.s + at, MIN(end + 1, raw.len) - at};
		if (end + 1 < raw.len)
			line.len = end - at;
		if (words)
			return line;
		at = end + 2;
	}
	return line;
}

static void entry(struct buf *out, const struct buf *text)
{
	if (out->len > 0)
		buf_addc(out, ',');
	json_escape(out, text->data != NULL ? text->data : "", text->len);
	if (buf_check(text) != 0)
		spoil(out);
}

static void call_entry(struct work *w, struct buf *out, size_t call)
{
	const struct said_call *k = &w->c.calls[call];
	struct call_ref at = name_of(w, call);
	struct buf text;

	buf_init(&text, 16384);
	buf_addf(&text, "c%d.%u ", (int)at.iteration, at.n);
	add_shown(&text, k->name, 64);
	buf_addc(&text, ' ');
	add_shown(&text, k->args, ARGS_SHOWN);
	buf_adds(&text, k->is_error ? " failed: " : ": ");
	if (jscan_begins(k->result.s, k->result.len, MARK))
		buf_adds(&text, "(taken out before)");
	else
		add_shown(&text, first_line(k->result), RESULT_SHOWN);
	entry(out, &text);
	buf_fini(&text);
}

static void said_entry(struct buf *out, const char *who, struct slice said, size_t chars)
{
	struct buf text;

	buf_init(&text, 65536);
	buf_adds(&text, who);
	add_shown(&text, said, chars);
	entry(out, &text);
	buf_fini(&text);
}

/* Words of people stay in the ledger: their messages, and words passed to a run as a notice. The
 * runtime's own notices go: they were about that turn only. */
static void people_entries(struct buf *out, const struct said_line *l)
{
	static const char handed_on[] = MARK "A person says: ";
	const char *at = l->raw.s, *end = l->raw.s + l->raw.len;

	if (l->role != WIRE_USER)
		return;
	if (l->texts > 0 && !jscan_begins(l->last.s, l->last.len, MARK))
		said_entry(out, "a person said: ", l->last, PEOPLE_SHOWN);
	while ((at = memmem(at, (size_t)(end - at), handed_on, sizeof(handed_on) - 1)) != NULL) {
		const char *from = at + sizeof(handed_on) - 1, *to = from;

		/* One line of a string ends at the string's end or at the next \\n. */
		while (to + 1 < end && *to != '"' && !(to[0] == '\\' && to[1] == 'n'))
			to += *to == '\\' ? 2 : 1;
		said_entry(out, "a person said: ", (struct slice){from, (size_t)(to - from)},
			   PEOPLE_SHOWN);
		at = to;
	}
}

static unsigned count_strings(struct slice list)
{
	unsigned n = 0;
	struct jscan w;

	jscan_list(&w, list.s, list.len);
	while (list.len > 0 && jscan_next(&w, NULL))
		n++;
	return n;
}

/* The last `keep` entries of the ledger before. */
static void old_entries(struct work *w, struct buf *out, unsigned keep)
{
	unsigned n = count_strings(w->info.ledger), i = 0;
	struct slice raw;
	struct jscan s;

	jscan_list(&s, w->info.ledger.s, w->info.ledger.len);
	while (n > 0 && jscan_next(&s, &raw))
		if (i++ + keep >= n) {
			if (out->len > 0)
				buf_addc(out, ',');
			buf_add(out, raw.s, raw.len);
		}
}

/* Entries of the removed lines, behind those of earlier cuts. */
static unsigned write_ledger(struct work *w, struct buf *out)
{
	size_t end = 0, call = 0, from;
	unsigned kept;

	while (end < w->c.ncalls && w->c.calls[end].line < w->plan.fold)
		end++;
	from = end > COMPACT_LEDGER ? end - COMPACT_LEDGER : 0;
	kept = COMPACT_LEDGER - (unsigned)(end - from);
	old_entries(w, out, kept);
	for (size_t i = 1; i < w->plan.fold; i++) {
		const struct said_line *l = &w->c.lines[i];
		bool newest = false;

		people_entries(out, l);
		for (; call < end && w->c.calls[call].line < i; call++)
			;
		for (size_t k = call; k < end && w->c.calls[k].line == i; k++)
			newest = newest || k >= from;
		if (l->role == WIRE_ASSISTANT && l->texts > 0 && newest)
			said_entry(out, "you said: ", l->text, SAID_SHOWN);
		for (; call < end && w->c.calls[call].line == i; call++)
			if (call >= from)
				call_entry(w, out, call);
	}
	return count_strings((struct slice){out->data, out->len});
}

/* ---- the cut */

static void summary_text(struct work *w, struct buf *out, struct slice ledger, size_t gone)
{
	struct buf line;
	char text[400];
	struct slice raw;
	struct jscan s;

	snprintf(text, sizeof(text),
		 "To make room, what came here before was taken out: %zu calls. Their results are "
		 "kept: read_result with its call_id gives one again. What was said "
		 "and the last of the calls, with the first line of each result:",
		 gone);
	notice_format(out, text);
	buf_init(&line, REQUEST_MAX);
	jscan_list(&s, ledger.s, ledger.len);
	while (ledger.len > 0 && jscan_peek(&s) != 0 && jscan_item(&s) && jscan_string(&s, &raw)) {
		buf_reset(&line);
		if (jscan_text(&line, raw) == 0)
			notice_format(out, line.data);
		else
			spoil(out);
	}
	buf_fini(&line);
}

/* Write task and summary as the first line; *task: bytes of the task in it. */
static int first_line_of(struct work *w, struct buf *out, struct slice ledger, size_t gone,
			 size_t *task)
{
	struct buf text;
	int rv;

	buf_init(&text, REQUEST_MAX);
	jscan_text(&text, w->c.lines[0].text);
	if (w->info.cut && w->info.task_len < text.len)
		text.len = w->info.task_len; /* leave out the earlier summary */
	*task = text.len;
	buf_adds(&text, "\n\n");
	summary_text(w, &text, ledger, gone);
	rv = buf_check(&text) == 0 ? w->ask->dialect->encode_user(out, text.data, text.len)
				   : context_no_memory(w);
	buf_fini(&text);
	return rv;
}

/* Append text to an open JSON string. */
static void context_add_escaped(struct buf *out, const struct buf *text)
{
	struct buf quoted;

	buf_init(&quoted, 16384);
	if (buf_check(text) == 0 && json_escape(&quoted, text->data, text->len) == 0)
		buf_add(out, quoted.data + 1, quoted.len - 2);
	else
		spoil(out);
	buf_fini(&quoted);
}

/* Copy a line with markers in place of its removed results. */
static void copy_line(struct work *w, struct buf *out, size_t line)
{
	struct slice raw = w->c.lines[line].raw;
	const char *from = raw.s;
	struct buf marker;

	buf_init(&marker, REQUEST_MAX);
	for (size_t i = 0; i < w->c.ncalls; i++) {
		const struct slice *text = &w->c.calls[i].result;

		if (!w->results[i].go || w->results[i].line != line)
			continue;
		buf_reset(&marker);
		write_marker(w, &marker, i);
		buf_add(out, from, (size_t)(text->s - from));
		context_add_escaped(out, &marker);
		from = text->s + text->len;
	}
	buf_add(out, from, (size_t)(raw.s + raw.len - from));
	buf_fini(&marker);
}

static int write_cut(struct work *w)
{
	struct buf *out = &w->e->lines, ledger, first;
	size_t gone = w->info.calls, task = 0;
	struct jw j;
	int rv;

	buf_init(&ledger, REQUEST_MAX);
	buf_init(&first, REQUEST_MAX);
	for (size_t i = 0; i < w->c.ncalls && w->c.calls[i].line < w->plan.fold; i++) {
		unsigned times;

		w->results[i].go = false;
		gone++;
		if (!w->results[i].fixed)
			note_removed(w, i, &times);
	}
	w->e->summary_lines = write_ledger(w, &ledger);
	rv = buf_check(&ledger) != 0 ? context_no_memory(w) : 0;
	if (rv == 0)
		rv = first_line_of(w, &first, (struct slice){ledger.data, ledger.len}, gone, &task);
	jw_init(&j, out);
	jw_object(&j, NULL);
	jw_object(&j, "cut");
	jw_int(&j, "calls", (int64_t)gone);
	jw_int(&j, "task", (int64_t)task);
	buf_adds(out, ",\"ledger\":[");
	buf_add(out, ledger.data != NULL ? ledger.data : "", ledger.len);
	buf_addc(out, ']');
	jw_strn(&j, "head", w->info.head.s, w->info.head.len);
	buf_adds(out, ",\"lines\":[");
	buf_add(out, first.data != NULL ? first.data : "", first.len);
	for (size_t i = w->plan.fold; i < w->c.nlines; i++) {
		buf_addc(out, ',');
		copy_line(w, out, i);
	}
	buf_adds(out, "]}}\n");
	w->e->cut = true;
	buf_fini(&ledger);
	buf_fini(&first);
	return rv;
}

/* ---- the outcome */

static int try_it(struct work *w, const char *file, size_t len)
{
	struct context_edit *e = w->e;
	struct messages_info info;
	struct buf all, *after = &e->request;
	int rv;

	buf_init(&all, REQUEST_MAX * 2);
	if (!e->cut)
		buf_add(&all, file, len);
	buf_add(&all, e->lines.data, e->lines.len);
	rv = buf_check(&all) != 0
		     ? context_no_memory(w)
		     : messages_request(after, all.data, all.len, w->ask->root_fd, &info, w->err);
	if (rv == 0)
		rv = w->ask->dialect->check(after->data + info.head_len, after->len - info.head_len,
					    w->err);
	e->bytes.bytes_after = (int64_t)after->len;
	if (rv == 0 && after->len >= w->body.len)
		buf_reset(&e->lines); /* the ledger is longer than the results: no gain */
	buf_fini(&all);
	return rv;
}

int context_edit(struct context_edit *e, const struct context_ask *ask, const char *file,
		 size_t len, struct ava_error *err)
{
	const struct agent_compact *want = &ask->want;
	struct work w = {.e = e, .ask = ask, .err = err};
	double per_token;
	int rv;

	*e = (struct context_edit){0};
	buf_init(&e->lines, REQUEST_MAX);
	buf_init(&e->request, REQUEST_MAX);
	buf_init(&w.body, REQUEST_MAX);
	rv = context_take_apart(&w, file, len);
	if (rv != 0)
		goto out;
	e->bytes.bytes_before = e->bytes.bytes_after = (int64_t)w.body.len;
	e->removed = calloc(w.c.ncalls + 1, sizeof(*e->removed));
	e->fetched = calloc(w.c.ncalls + 1, sizeof(*e->fetched));
	if (e->removed == NULL || e->fetched == NULL) {
		rv = context_no_memory(&w);
		goto out;
	}
	per_token = want->tokens > 0 ? (double)w.body.len / (double)want->tokens : 0;
	w.plan.need = (int64_t)(per_token * (double)(want->tokens - want->target));
	w.plan.must = (int64_t)(per_token * (double)(want->tokens - want->most));
	w.plan.newest = want->newest;
	compact_plan(&w.plan, w.lines, w.c.nlines, w.results, w.c.ncalls);
	if (w.plan.freed <= 0)
		goto out;
	if (w.plan.fold > 0)
		rv = write_cut(&w);
	else
		write_replaces(&w);
	if (rv == 0 && buf_check(&e->lines) != 0)
		rv = context_no_memory(&w);
	if (rv == 0)
		rv = try_it(&w, file, len);
out:
	if (rv != 0)
		buf_reset(&e->lines);
	if (e->lines.len == 0) {
		e->nremoved = e->nfetched = 0;
		e->bytes.bytes_after = e->bytes.bytes_before;
	}
	conversation_fini(&w.c);
	free(w.lines);
	free(w.results);
	buf_fini(&w.body);
	return rv;
}
