/* read_result: lines of the full output of an earlier call of this run, which
 * the conversation may hold only in part, or no more. By range, or those that
 * hold a text. */
#include <ava.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "tool/job.h"
#include "tool/lines.h"
#include "tool/table.h"

#define LINES_DEFAULT 2000
#define PIECE_MAX     2000 /* bytes; a longer line is shown as several */
#define BODY_MAX      (TOOL_OUTPUT_MAX - (2u << 10))

struct wish {
	const char *id, *search;
	int64_t first, last;
};

static int wish_of(struct wish *w, const json_t *args, struct ava_error *err)
{
	int rv = job_arg_str(args, "call_id", &w->id, err);

	if (rv == 0)
		rv = job_arg_str(args, "search", &w->search, err);
	if (rv != 0)
		return rv;
	if (w->id == NULL || w->id[0] == '\0')
		return err_set(err, AVA_EINVAL, "call_id is empty: name an earlier call, as c3.1");
	if (w->search != NULL && w->search[0] == '\0')
		w->search = NULL;
	w->first = json_get_int(args, "first_line", 1);
	w->last = json_get_int(args, "last_line", 0);
	if (w->last == 0 && (w->search != NULL || w->first > INT64_MAX - LINES_DEFAULT))
		w->last = INT64_MAX;
	else if (w->last == 0)
		w->last = w->first + LINES_DEFAULT - 1;
	if (w->first < 1 || w->last < w->first)
		return err_set(err, AVA_EINVAL,
			       "last_line %lld comes before first_line %lld: lines count from 1",
			       (long long)w->last, (long long)w->first);
	return 0;
}

static void found(const struct wish *w, const struct lines *l, struct buf *out)
{
	buf_addf(out, "result of %s: %lld of %lld lines hold ", w->id, (long long)l->shown,
		 (long long)lines_total(l));
	job_quote(out, w->search);
	buf_addc(out, '\n');
	if (l->shown != 0)
		buf_add(out, l->body.data, l->body.len);
	if (l->full)
		buf_addf(out, "(there are more: first_line %lld)\n", (long long)l->to + 1);
}

static int answer(const struct wish *w, struct lines *l, struct buf *out, struct ava_error *err)
{
	int64_t total;

	if (lines_end(l) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	total = lines_total(l);
	if (w->first > total && w->first > 1)
		return err_set(err, AVA_EINVAL,
			       "the result of %s has %lld lines: first_line %lld is behind its end",
			       w->id, (long long)total, (long long)w->first);
	if (w->search != NULL) {
		found(w, l, out);
		return buf_check(out);
	}
	buf_addf(out, "result of %s (lines %lld-%lld of %lld)\n", w->id, (long long)l->from,
		 (long long)l->to, (long long)total);
	buf_add(out, l->body.data, l->body.len);
	if (l->to < total)
		buf_addf(out, "(it goes on: first_line %lld)\n", (long long)l->to + 1);
	return buf_check(out);
}

/* Some tools answer with one endless line: without line breaks of our own
 * what is far inside could not be asked for. */
static void feed(struct lines *l, const char *data, size_t len)
{
	while (len != 0) {
		const char *nl = memchr(data, '\n', len);
		size_t n = nl != NULL ? (size_t)(nl - data) : len;

		if (n > PIECE_MAX) {
			n = PIECE_MAX;
			while (n > PIECE_MAX - 3 && ((unsigned char)data[n] & 0xc0) == 0x80)
				n--;
			nl = NULL;
		}
		lines_feed(l, data, n);
		if (nl != NULL || n < len)
			lines_feed(l, "\n", 1);
		n += nl != NULL;
		data += n;
		len -= n;
	}
}

static int run(struct tool_call *c, struct ava_error *err)
{
	struct wish w;
	struct lines l;
	struct buf full;
	int rv = wish_of(&w, c->args, err);

	if (rv != 0)
		return rv;
	buf_init(&full, TOOL_FULL_MAX);
	rv = c->env->fetch_result(c->env, w.id, &full, err);
	if (rv == AVA_ENOENT)
		err_set(err, rv,
			"no call %.40s with a result in this run: use the id of an earlier call as "
			"its result or a marker names it, as c3.1",
			w.id);
	if (rv == 0) {
		lines_init(&l, w.first, w.last, w.search, BODY_MAX);
		feed(&l, full.data, full.len);
		rv = answer(&w, &l, &c->out, err);
		lines_fini(&l);
	}
	buf_fini(&full);
	return rv;
}

static void start(struct tool_call *c)
{
	job_start(c, run);
}

static void activity(const json_t *args, struct buf *out)
{
	const char *id = json_get_str(args, "call_id");

	buf_adds(out, "Reading the result of ");
	if (id != NULL)
		job_name(out, id);
}

const struct tool tool_read_result = {
	.name = "read_result",
	.description = "Read the output of one of your earlier tool calls again, where it was cut "
		       "or a marker "
		       "stands in its place. Give a range of lines, or a text to get only the "
		       "lines that hold "
		       "it. Use it instead of calling the same tool again. Lines over 2,000 bytes "
		       "are given as several. It knows no files: for "
		       "these use "
		       "read_file.",
	.schema =
		"{\"type\":\"object\",\"properties\":{"
		"\"call_id\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64,"
		"\"description\":\"The id of the call, as c3.1.\"},"
		"\"first_line\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"Line of the "
		"output, from 1; default 1.\"},"
		"\"last_line\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"Default: "
		"2,000 "
		"lines from first_line, with search to the end.\"},"
		"\"search\":{\"type\":\"string\",\"maxLength\":1000,\"description\":\"Only lines "
		"that "
		"hold this text.\"}},"
		"\"required\":[\"call_id\"],\"additionalProperties\":false}",
	.flags = TOOL_REPEATABLE,
	.start = start,
	.activity = activity,
};
