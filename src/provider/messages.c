/* Reading messages.jsonl: two passes over the bytes, no tree. The first finds
 * the head that counts (a later spec line may bring another) and the results
 * that were replaced; the second copies message lines as they stand, putting
 * a replacement exactly where the old content stood. A torn last line is left
 * out and reported; everything else that is odd is AVA_ECORRUPT. */
#include "provider/messages.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "codec/jscan.h"
#include "provider/head.h"
#include "provider/wire.h"

#define MACHINE_NEWEST 1
#define REPLACES_MAX   65536u

struct replace {
	struct slice wire_id, content; /* raw JSON strings */
};

struct messages_reading {
	struct slice head; /* the name in the newest line that has one */
	struct replace *replaces;
	size_t nreplaces, cap;
	size_t line;       /* number of the line, from 1 */
	struct slice cut;  /* lines that the newest cut holds: the inside of an array */
	size_t after;      /* offset behind the cut */
	size_t after_line; /* number of the line at `after` */
	struct ava_error *err;
};

static int corrupt(const struct messages_reading *r, const char *what)
{
	return err_set(r->err, AVA_ECORRUPT, "messages.jsonl line %zu: %s", r->line, what);
}

static int messages_read_spec(struct messages_reading *r, struct jscan *w)
{
	struct slice key, value;

	jscan_object(w);
	while (jscan_key(w, &key)) {
		if (slice_is(key, "head") && jscan_peek(w) == '"') {
			jscan_string(w, &r->head);
			continue;
		}
		jscan_skip(w, &value);
		if (slice_is(key, "machine") && !w->failed &&
		    slice_number(value, MACHINE_NEWEST + 1) > MACHINE_NEWEST)
			return err_set(
				r->err, AVA_EFORMAT,
				"messages.jsonl line %zu: written by a newer ava (machine %.*s)",
				r->line, (int)(value.len < 20 ? value.len : 20), value.s);
	}
	return w->failed ? corrupt(r, "not a spec") : 0;
}

static int add_replace(struct messages_reading *r, const struct replace *p)
{
	if (r->nreplaces == REPLACES_MAX)
		return err_set(r->err, AVA_ETOOBIG,
			       "messages.jsonl line %zu: too many replaced results", r->line);
	if (!ARRAY_ROOM(r->replaces, r->cap, r->nreplaces + 1))
		return err_set(r->err, AVA_ENOMEM, "out of memory");
	r->replaces[r->nreplaces++] = *p;
	return 0;
}

static int read_replace(struct messages_reading *r, struct jscan *w)
{
	struct replace p = {{NULL, 0}, {NULL, 0}};
	struct slice key;

	jscan_object(w);
	while (jscan_key(w, &key)) {
		if (slice_is(key, "wireId"))
			jscan_string(w, &p.wire_id);
		else if (slice_is(key, "content"))
			jscan_string(w, &p.content);
		else
			jscan_skip(w, NULL);
	}
	if (w->failed || p.wire_id.s == NULL || p.content.s == NULL)
		return corrupt(r, "a replace needs wireId and content");
	return add_replace(r, &p);
}

/* The inside of an array that was skipped. */
static struct slice inside(struct slice array)
{
	return array.len >= 2 && array.s[0] == '[' ? (struct slice){array.s + 1, array.len - 2}
						   : (struct slice){NULL, 0};
}

/* A cut replaces all lines before it by its own. */
static int read_cut(struct messages_reading *r, struct jscan *w, struct messages_info *info)
{
	struct slice key, value, line;
	struct jscan lines;

	info->lines = info->calls = info->task_len = 0;
	r->cut = info->ledger = (struct slice){NULL, 0};
	r->nreplaces = 0;
	info->cut = info->replied = true;
	jscan_object(w);
	while (jscan_key(w, &key)) {
		if (slice_is(key, "head") && jscan_peek(w) == '"') {
			jscan_string(w, &r->head);
			continue;
		}
		if (!jscan_skip(w, &value))
			break;
		if (slice_is(key, "lines"))
			r->cut = inside(value);
		else if (slice_is(key, "ledger"))
			info->ledger = inside(value);
		else if (slice_is(key, "calls"))
			info->calls = (size_t)slice_number(value, 0);
		else if (slice_is(key, "task"))
			info->task_len = (size_t)slice_number(value, 0);
	}
	if (w->failed || r->cut.s == NULL)
		return corrupt(r, "a cut needs its lines");
	jscan_list(&lines, r->cut.s, r->cut.len);
	while (jscan_next(&lines, &line))
		info->lines++;
	return lines.failed || info->lines == 0 ? corrupt(r, "a cut needs its lines") : 0;
}

/* 'm' message, 's' spec, 'r' replace, 'c' cut, 'k' mark, 0 none of them; `w` is before
 * its value. */
static char line_kind(const char *line, size_t len, struct jscan *w)
{
	struct slice key;

	if (jscan_begins(line, len, "{\"role\":"))
		return 'm';
	jscan_init(w, line, len);
	if (!jscan_object(w) || !jscan_key(w, &key))
		return 0;
	if (wire_is_message(key))
		return 'm';
	if (slice_is(key, "spec"))
		return 's';
	if (slice_is(key, "mark"))
		return 'k';
	if (slice_is(key, "cut"))
		return 'c';
	return slice_is(key, "replace") ? 'r' : 0;
}

static int messages_read_line(struct messages_reading *r, const char *line, size_t len,
			      struct messages_info *info)
{
	struct slice key;
	struct jscan w;
	char kind = line_kind(line, len, &w);
	int rv = 0;

	if (r->line == 1 && kind != 's' && kind != 'c')
		return corrupt(r, "the first line must be the spec");
	switch (kind) {
	case 'm':
		info->lines++;
		info->replied = info->replied || wire_line_kind(line, len) == LINE_REPLY;
		return 0;
	case 's':
		rv = messages_read_spec(r, &w);
		break;
	case 'r':
		rv = read_replace(r, &w);
		break;
	case 'c':
		rv = read_cut(r, &w, info);
		break;
	case 'k': /* a mark is the runtime's and part of no request */
		jscan_skip(&w, NULL);
		break;
	default:
		return corrupt(r, "neither a message nor a spec, a replace, a cut or a mark");
	}
	if (rv == 0 && (jscan_key(&w, &key) || w.failed || jscan_peek(&w) != 0))
		rv = corrupt(r, "more than one object");
	return rv;
}

/* The newest replacement for a result, NULL when it stands. */
static const struct replace *find_replace(const struct messages_reading *r, struct slice id)
{
	for (size_t i = r->nreplaces; i > 0; i--) {
		const struct replace *p = &r->replaces[i - 1];

		if (p->wire_id.len == id.len && memcmp(p->wire_id.s, id.s, id.len) == 0)
			return p;
	}
	return NULL;
}

/* Bytes outside the replaced contents stay as they are. */
static int copy_message(const struct messages_reading *r, struct buf *out, const char *line,
			size_t len)
{
	const char *from = line;
	const struct replace *p;
	struct wire_reader reader;
	struct wire_block b;
	bool user;
	int more;

	if (r->nreplaces == 0)
		return buf_add(out, line, len);
	wire_reader_init(&reader, line, len);
	if (wire_message(&reader, &user) != 1)
		return corrupt(r, "not a message");
	while ((more = wire_block(&reader, &b)) == 1) {
		p = b.type == WIRE_TOOL_RESULT ? find_replace(r, b.id) : NULL;
		if (p == NULL || b.text.s < line || b.text.s > line + len)
			continue;
		buf_add(out, from, (size_t)(b.text.s - from));
		buf_add(out, p->content.s, p->content.len);
		from = b.text.s + b.text.len;
	}
	if (more < 0)
		return corrupt(r, "not a message");
	return buf_add(out, from, (size_t)(line + len - from));
}

static int messages_copy_lines(struct messages_reading *r, struct buf *out, const char *file,
			       size_t len)
{
	const char *line;
	size_t at = r->after, line_len;
	bool first = true;
	struct slice of_cut;
	struct jscan w;
	int rv = 0;

	jscan_list(&w, r->cut.s, r->cut.len);
	while (r->cut.s != NULL && rv == 0 && jscan_next(&w, &of_cut)) {
		if (!first)
			buf_addc(out, ',');
		first = false;
		rv = copy_message(r, out, of_cut.s, of_cut.len);
	}
	for (r->line = r->after_line; rv == 0 && jsonl_next(file, len, &at, &line, &line_len) == 1;
	     r->line++) {
		if (line_kind(line, line_len, &w) != 'm')
			continue;
		if (!first)
			buf_addc(out, ',');
		first = false;
		rv = copy_message(r, out, line, line_len);
	}
	return rv != 0 ? rv : buf_check(out);
}

int messages_request(struct buf *out, const char *file, size_t len, int root_fd,
		     struct messages_info *info, struct ava_error *err)
{
	struct messages_reading r = {.err = err, .line = 1, .after_line = 1};
	struct messages_info found = {0};
	const char *line;
	size_t at = 0, line_len;
	int rv = 0, more;

	while (rv == 0 && (more = jsonl_next(file, len, &at, &line, &line_len)) != 0) {
		if (more < 0) {
			found.torn = line_len;
			break;
		}
		bool cut = found.cut;

		found.cut = false;
		rv = messages_read_line(&r, line, line_len, &found);
		r.line++;
		if (found.cut) {
			found.cut_at = (size_t)(line - file);
			r.after = at;
			r.after_line = r.line;
		}
		found.cut = found.cut || cut;
	}
	if (rv == 0 && r.head.s == NULL)
		rv = err_set(err, AVA_ECORRUPT, "messages.jsonl has no spec line with a head");
	found.head = r.head;
	found.head_len = out->len;
	if (rv == 0)
		rv = head_add(out, root_fd, r.head, &found.prefix, err);
	found.head_len = out->len - found.head_len;
	if (rv == 0)
		rv = messages_copy_lines(&r, out, file, len);
	if (rv == AVA_ENOMEM || rv == AVA_ETOOBIG)
		err_set(err, rv, "the request of messages.jsonl does not fit into memory");
	if (info != NULL)
		*info = found;
	free(r.replaces);
	return rv;
}

struct hash_sha256 messages_prefix(const struct buf *request, const struct messages_info *info)
{
	struct hash_sha256 prefix = info->prefix;

	hash_sha256_add(&prefix, request->data + info->head_len, request->len - info->head_len);
	return prefix;
}

int messages_said(struct buf *out, const char *file, size_t len, struct ava_error *err)
{
	struct messages_reading r = {.err = err, .line = 1};
	struct messages_info none = {0};
	const char *line;
	size_t at = 0, line_len;
	bool first = true;
	struct jscan w;
	int rv = 0;

	for (; rv == 0 && jsonl_next(file, len, &at, &line, &line_len) == 1; r.line++) {
		if (line_kind(line, line_len, &w) != 'm')
			continue;
		rv = messages_read_line(&r, line, line_len, &none);
		if (rv == 0 && !first)
			buf_addc(out, ',');
		if (rv == 0)
			buf_add(out, line, line_len);
		first = false;
	}
	free(r.replaces);
	if (rv != 0)
		return rv;
	return buf_check(out) == 0
		       ? 0
		       : err_set(err, buf_check(out), "the conversation does not fit into memory");
}

void messages_hash(struct hash_sha256 *prefix, bool *wordless, const char *lines, size_t len)
{
	for (const char *at = lines, *end = lines + len; len > 0 && at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((nl ? nl : end) - at);

		if (!*wordless)
			hash_sha256_add(prefix, ",", 1);
		*wordless = false;
		hash_sha256_add(prefix, at, n);
		at += n + 1;
	}
}

/* ---- the check of what is new */

/* Checked lines leave no call open: what follows is checked behind a message like the last one. */
#define USER_BEFORE "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"-\"}]}"

/* Are the lines from `from` on right by themselves? An id of a call that stands before may be one
 * that was used already. */
static bool messages_fit(const struct dialect *d, const char *lines, size_t len, size_t from)
{
	struct wire_reader r;
	struct wire_block b;
	struct buf text;
	bool fit, user;

	buf_init(&text, len + sizeof(USER_BEFORE));
	buf_adds(&text, USER_BEFORE);
	buf_add(&text, lines + from, len - from);
	fit = buf_check(&text) == 0 && d->check(text.data, text.len, NULL) == 0;
	wire_reader_init(&r, text.data, fit ? text.len : 0);
	while (fit && wire_message(&r, &user) == 1)
		while (fit && wire_block(&r, &b) == 1)
			fit = b.type != WIRE_TOOL_USE ||
			      memmem(lines, from, b.id.s - 1, b.id.len + 2) == NULL;
	buf_fini(&text);
	return fit;
}

int messages_check(const struct dialect *d, const char *lines, size_t len, size_t *checked,
		   struct ava_error *err)
{
	int rv = 0;

	if (*checked == 0 || *checked > len || !messages_fit(d, lines, len, *checked))
		rv = d->check(lines, len, err);
	*checked = rv == 0 ? len : 0;
	return rv;
}
