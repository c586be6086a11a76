/* Rows of the catalog to bytes and back; see catalog.h.
 *
 * One table lists a row's fields in their order on disk; writing and reading go through it. A
 * start reads every row, a listing thousands: a line is copied once and taken apart in place,
 * strings end where their closing quotes stood. A line in any other form was not written here:
 * AVA_ECORRUPT, the reader reports it and goes on with the next line. */
#include "journal/catalog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "journal/files.h"

#define WINDOW_BYTES   ((size_t)1 << 20)
#define CENTS_DECIMALS 4 /* decimals of micro-USD written as cents */

static const char *const kind_names[] = {[CATALOG_SPAWN] = "spawn", [CATALOG_END] = "end"};

enum field_type {
	FIELD_END,
	FIELD_SHOWN, /* fields from here on are only in rows that have a task */
	FIELD_KIND,
	FIELD_STATUS,
	FIELD_TEXT,
	FIELD_GROUP, /* a text that is left out when empty */
	FIELD_TIME,  /* a time; "" stands for -1 */
	FIELD_COUNT,
	FIELD_SOME,    /* a count that is left out when 0 */
	FIELD_NUMBER,  /* a number that may be negative: a limit not resolved yet */
	FIELD_TOKENS,  /* input + output; the reader skips the field */
	FIELD_CENTS,   /* micro-USD, written as cents */
	FIELD_LIMIT,   /* a limit in micro-USD, as cents; null stands for -1 */
	FIELD_SECONDS, /* ms, written as seconds */
};

#define AT(member) offsetof(struct catalog_row, member)

static const struct catalog_field {
	const char *key; /* key of the member, with the punctuation before its value */
	enum field_type type;
	size_t at;
} fields[] = {
	{"{\"row\":", FIELD_KIND, AT(kind)},
	{",\"lsn\":", FIELD_COUNT, AT(lsn)},
	{",\"id\":", FIELD_TEXT, AT(id)},
	{",\"traceId\":", FIELD_TEXT, AT(trace_id)},
	{",\"sessionId\":", FIELD_TEXT, AT(session_id)},
	{",\"userId\":", FIELD_TEXT, AT(user_id)},
	{",\"role\":", FIELD_TEXT, AT(role)},
	{",\"model\":", FIELD_TEXT, AT(model)},
	{",\"status\":", FIELD_STATUS, AT(status)},
	{",\"requestId\":", FIELD_TEXT, AT(request_id)},
	{",\"origin\":", FIELD_TEXT, AT(origin)},
	{",\"groupId\":", FIELD_GROUP, AT(group_id)},
	{",\"groupIndex\":", FIELD_SOME, AT(group_index)},
	{",\"tags\":", FIELD_GROUP, AT(tags)},
	{",\"cwd\":", FIELD_GROUP, AT(cwd)},
	{",\"order\":", FIELD_GROUP, AT(order)},
	{",\"spawnLsn\":", FIELD_SOME, AT(spawn_lsn)},
	{",\"startedAt\":", FIELD_TIME, AT(started_ms)},
	{",\"endedAt\":", FIELD_TIME, AT(ended_ms)},
	{",\"bytes\":", FIELD_COUNT, AT(bytes)},
	{",\"types\":", FIELD_COUNT, AT(types)},
	{",\"totals\":{\"inputTokens\":", FIELD_COUNT, AT(totals.input_tokens)},
	{",\"outputTokens\":", FIELD_COUNT, AT(totals.output_tokens)},
	{",\"tokens\":", FIELD_TOKENS, 0},
	{",\"costCents\":", FIELD_CENTS, AT(totals.cost_microusd)},
	{",\"durationMs\":", FIELD_COUNT, AT(totals.duration_ms)},
	{",\"calls\":", FIELD_COUNT, AT(totals.calls)},
	{",\"uncostedCalls\":", FIELD_COUNT, AT(totals.uncosted_calls)},
	{",\"failedCalls\":", FIELD_COUNT, AT(totals.failed_calls)},
	{",\"estimatedCalls\":", FIELD_SOME, AT(totals.estimated_calls)},
	{"}", FIELD_SHOWN, 0},
	{",\"shown\":{\"task\":", FIELD_TEXT, AT(shown.task)},
	{",\"cwd\":", FIELD_TEXT, AT(shown.cwd)},
	{",\"stopReason\":", FIELD_TEXT, AT(shown.stop_reason)},
	{",\"iterations\":", FIELD_NUMBER, AT(shown.iterations)},
	{",\"limits\":{\"seconds\":", FIELD_SECONDS, AT(shown.limit_ms)},
	{",\"costCents\":", FIELD_LIMIT, AT(shown.limit_microusd)},
	{",\"tokens\":", FIELD_NUMBER, AT(shown.limit_tokens)},
	{",\"iterations\":", FIELD_NUMBER, AT(shown.limit_iterations)},
	{"}}", FIELD_END, 0},
};

/* ---- writing */

static void catalog_put_text(struct buf *out, const char *s)
{
	json_escape(out, s != NULL ? s : "", s != NULL ? strlen(s) : 0);
}

static void put_value(struct buf *out, const struct catalog_field *f, const struct catalog_row *row)
{
	const void *at = (const char *)row + f->at;
	char iso[CLOCK_ISO_LEN + 1] = "";

	switch (f->type) {
	case FIELD_KIND:
		catalog_put_text(out, kind_names[row->kind]);
		break;
	case FIELD_STATUS:
		catalog_put_text(out, ava_status_name(row->status));
		break;
	case FIELD_TEXT:
	case FIELD_GROUP:
		catalog_put_text(out, *(const char *const *)at);
		break;
	case FIELD_TIME:
		if (*(const int64_t *)at >= 0)
			clock_iso(*(const int64_t *)at, iso);
		catalog_put_text(out, iso);
		break;
	case FIELD_COUNT:
	case FIELD_SOME:
	case FIELD_NUMBER:
		json_add_int(out, *(const int64_t *)at);
		break;
	case FIELD_TOKENS:
		json_add_int(out, row->totals.input_tokens + row->totals.output_tokens);
		break;
	case FIELD_LIMIT:
		if (*(const int64_t *)at < 0) {
			buf_adds(out, "null");
			break;
		}
		/* fall through */
	case FIELD_CENTS:
		json_add_fixed(out, *(const int64_t *)at, CENTS_DECIMALS);
		break;
	case FIELD_SECONDS:
		json_add_fixed(out, *(const int64_t *)at, 3);
		break;
	case FIELD_SHOWN:
	case FIELD_END:
		break;
	}
}

int catalog_encode(struct buf *out, const struct catalog_row *row)
{
	for (const struct catalog_field *f = fields;; f++) {
		const void *at = (const char *)row + f->at;
		const char *text = f->type == FIELD_GROUP ? *(const char *const *)at : NULL;

		if ((f->type == FIELD_GROUP && (text == NULL || text[0] == '\0')) ||
		    (f->type == FIELD_SOME && *(const int64_t *)at == 0))
			continue;
		buf_adds(out, f->key);
		put_value(out, f, row);
		if (f->type == FIELD_END || (f->type == FIELD_SHOWN && row->shown.task == NULL))
			break;
	}
	buf_adds(out, "}\n");
	return buf_check(out);
}

/* ---- reading */

struct cursor {
	char *at, *end;
};

static bool take_literal(struct cursor *c, const char *text)
{
	size_t len = strlen(text);

	if ((size_t)(c->end - c->at) < len || memcmp(c->at, text, len) != 0)
		return false;
	c->at += len;
	return true;
}

/* Read digits behind those already in *n, at most `most`. Returns their number; 0 also on
 * overflow. */
static unsigned take_digits(struct cursor *c, bool negative, unsigned most, int64_t *n)
{
	unsigned count = 0;

	for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++, count++) {
		int digit = negative ? '0' - *c->at : *c->at - '0';

		if (count == most || __builtin_mul_overflow(*n, 10, n) ||
		    __builtin_add_overflow(*n, digit, n))
			return 0;
	}
	return count;
}

/* A number as it is printed: no leading zero, and with `decimals` a point with 1 to `decimals`
 * digits behind it: "2.35". */
static bool catalog_take_number(struct cursor *c, unsigned decimals, int64_t *out)
{
	bool negative = take_literal(c, "-");
	const char *from = c->at;
	unsigned n;

	*out = 0;
	n = take_digits(c, negative, UINT_MAX, out);
	if (n == 0 || (*from == '0' && n > 1) || decimals == 0)
		return n > 0 && (*from != '0' || n == 1);
	n = take_literal(c, ".") ? take_digits(c, negative, decimals, out) : 0;
	for (unsigned i = n; n > 0 && i < decimals; i++)
		if (__builtin_mul_overflow(*out, 10, out))
			return false;
	return n > 0;
}

/* Decode an escape as json_escape writes it, beginning behind the backslash at c->at, to *to;
 * the result is never longer. */
static bool take_escape(struct cursor *c, char **to)
{
	static const char letters[] = "\"\\nrtbf", means[] = "\"\\\n\r\t\b\f";
	const char *letter = c->at < c->end && *c->at != '\0' ? strchr(letters, *c->at) : NULL;
	unsigned code = 0;

	if (letter != NULL) {
		*(*to)++ = means[letter - letters];
		c->at++;
		return true;
	}
	if (c->end - c->at < 5 || *c->at++ != 'u')
		return false;
	for (int i = 0; i < 4; i++, c->at++) {
		if ((*c->at < '0' || *c->at > '9') && (*c->at < 'a' || *c->at > 'f'))
			return false;
		code = code << 4 | (unsigned)(*c->at <= '9' ? *c->at - '0' : *c->at - 'a' + 10);
	}
	if (code == 0 || (code >= 0xd800 && code <= 0xdfff))
		return false;
	if (code >= 0x800)
		*(*to)++ = (char)(0xe0 | code >> 12);
	if (code >= 0x80)
		*(*to)++ = (char)(code >= 0x800 ? 0x80 | (code >> 6 & 0x3f) : 0xc0 | code >> 6);
	*(*to)++ = (char)(code >= 0x80 ? 0x80 | (code & 0x3f) : code);
	return true;
}

/* A quoted string; its closing quote becomes the terminating zero. */
static bool catalog_take_text(struct cursor *c, const char **out)
{
	char *to = c->at + 1;

	if (!take_literal(c, "\""))
		return false;
	*out = to;
	while (c->at < c->end && *c->at != '"') {
		if ((unsigned char)*c->at < 0x20)
			return false;
		if (*c->at != '\\')
			*to++ = *c->at++;
		else if (c->at++, !take_escape(c, &to))
			return false;
	}
	if (c->at == c->end)
		return false;
	c->at++;
	*to = '\0';
	return true;
}

static bool take_named(struct cursor *c, enum field_type type, struct catalog_row *row)
{
	const char *s;

	if (!catalog_take_text(c, &s))
		return false;
	for (unsigned i = 0; type == FIELD_KIND && i < ARRAY_LEN(kind_names); i++)
		if (strcmp(s, kind_names[i]) == 0) {
			row->kind = (enum catalog_kind)i;
			return true;
		}
	for (unsigned i = 0; type == FIELD_STATUS && i < AVA_NSTATUSES; i++)
		if (strcmp(s, ava_status_name((enum ava_status)i)) == 0) {
			row->status = (enum ava_status)i;
			return true;
		}
	return false;
}

static bool catalog_take_value(struct cursor *c, const struct catalog_field *f,
			       struct catalog_row *row)
{
	void *at = (char *)row + f->at;
	int64_t sum;
	const char *s;

	switch (f->type) {
	case FIELD_KIND:
	case FIELD_STATUS:
		return take_named(c, f->type, row);
	case FIELD_TEXT:
	case FIELD_GROUP:
		return catalog_take_text(c, at);
	case FIELD_TIME:
		if (!catalog_take_text(c, &s))
			return false;
		*(int64_t *)at = s[0] == '\0' ? -1 : clock_parse_iso(s, strlen(s));
		return s[0] == '\0' || *(int64_t *)at >= 0;
	case FIELD_COUNT:
	case FIELD_SOME:
		return catalog_take_number(c, 0, at) && *(int64_t *)at >= 0;
	case FIELD_TOKENS:
		return catalog_take_number(c, 0, &sum);
	case FIELD_LIMIT:
		if (take_literal(c, "null")) {
			*(int64_t *)at = -1;
			return true;
		}
		/* fall through */
	case FIELD_CENTS:
		return catalog_take_number(c, CENTS_DECIMALS, at) && *(int64_t *)at >= 0;
	case FIELD_NUMBER:
		return catalog_take_number(c, 0, at);
	case FIELD_SECONDS:
		return catalog_take_number(c, 3, at);
	case FIELD_SHOWN:
	case FIELD_END:
		break;
	}
	return true;
}

static bool catalog_take_row(struct cursor *c, struct catalog_row *row)
{
	for (const struct catalog_field *f = fields;; f++) {
		if (!take_literal(c, f->key)) {
			if (f->type == FIELD_GROUP)
				*(const char **)((char *)row + f->at) = "";
			else if (f->type != FIELD_SOME)
				return false;
			continue;
		}
		if (!catalog_take_value(c, f, row))
			return false;
		if (f->type == FIELD_END || (f->type == FIELD_SHOWN && c->end - c->at == 1))
			return take_literal(c, "}") && c->at == c->end;
	}
}

int catalog_parse(const char *line, size_t len, struct catalog_row *row, struct ava_error *err)
{
	char *copy = malloc(len + 1);
	struct cursor c;

	*row = (struct catalog_row){0};
	if (copy == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	c = (struct cursor){copy, copy + len};
	memcpy(copy, line, len);
	row->owned = copy;
	if (utf8_valid(line, len) && catalog_take_row(&c, row))
		return 0;
	catalog_row_fini(row);
	return err_set(err, AVA_ECORRUPT, "catalog row: a field is missing or of another type");
}

void catalog_row_fini(struct catalog_row *row)
{
	free(row->owned);
	*row = (struct catalog_row){0};
}

/* ---- the file */

struct catalog_walk {
	const char *must;
	catalog_fn fn;
	void *user;
};

static int each_line(const struct catalog_walk *w, const char *line, size_t len)
{
	struct catalog_row row;
	int rv;

	if (w->must != NULL && memmem(line, len, w->must, strlen(w->must)) == NULL)
		return 0;
	rv = catalog_parse(line, len, &row, NULL);
	if (rv == 0 || rv == AVA_ECORRUPT)
		rv = w->fn(rv == 0 ? &row : NULL, w->user);
	catalog_row_fini(&row);
	return rv;
}

/* Lines of the file from *place on, which moves behind the last whole one, through a moving window,
 * since the file may be larger than memory. A line longer than a window is reported as no row. */
static int each_window(const struct catalog_walk *w, int fd, uint64_t *place, uint64_t size,
		       char *data, struct ava_error *err)
{
	const char *line;
	size_t have = 0, at, n;
	bool whole = true; /* the window begins at the beginning of a line */
	int rv = 0;

	for (uint64_t from = *place; from < size;) {
		ssize_t got = sys->pread(fd, data + have, MIN(WINDOW_BYTES - have, size - from),
					 (off_t)from);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? err_sys(err, "read it") : 0;
		from += (uint64_t)got;
		have += (size_t)got;
		for (at = 0; rv == 0 && jsonl_next(data, have, &at, &line, &n) == 1; whole = true)
			rv = each_line(w, whole ? line : "", whole ? n : 0);
		if (rv != 0)
			return rv;
		have -= at;
		*place = from - have;
		memmove(data, data + at, have);
		if (have == WINDOW_BYTES) {
			whole = false;
			have = 0;
		}
	}
	return 0;
}

static int64_t catalog_mtime(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* CRC32C of what stands before a place; false: it cannot be read. */
static bool catalog_before(int fd, uint64_t at, uint64_t *crc)
{
	char data[CATALOG_LOOK];
	size_t len = (size_t)MIN(at, (uint64_t)sizeof(data));

	if (sys_read_all(fd, data, len, (off_t)(at - len)) != 0)
		return false;
	*crc = crc32c(0, data, len);
	return true;
}

int catalog_open(int rootfd, unsigned part, struct ava_error *err)
{
	char path[FILES_BUF];
	int fd = files_open(rootfd, files_part_name(CATALOG_PATH, part, path), O_RDONLY);
	struct stat st;

	if (fd < 0 && errno != ELOOP && errno != ENXIO && errno != EACCES)
		return err_sys(err, "%s", path);
	if (fd >= 0 && sys->fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	if (fd >= 0)
		sys->close(fd);
	return err_set(err, AVA_ECORRUPT,
		       "%s is not a regular file: move what stands there away, then restart ava",
		       path);
}

bool catalog_holds(int rootfd, const struct catalog_place *place, bool rested)
{
	int fd = place->part > 0 ? catalog_open(rootfd, (unsigned)place->part, NULL) : -1;
	uint64_t crc;
	struct stat st;
	bool holds = fd >= 0 && sys->fstat(fd, &st) == 0 && st.st_ino == place->inode &&
		     (uint64_t)st.st_size >= place->at && catalog_before(fd, place->at, &crc) &&
		     crc == place->crc;

	if (holds && rested && (uint64_t)st.st_size == place->at)
		holds = catalog_mtime(&st) == place->mtime_ns;
	files_close(&fd);
	return holds;
}

int catalog_each(int rootfd, struct catalog_place *from, const char *must, catalog_fn fn,
		 void *user, struct ava_error *err)
{
	struct catalog_walk w = {must, fn, user};
	struct catalog_place place = from != NULL ? *from : (struct catalog_place){0};
	char *data = malloc(WINDOW_BYTES);
	struct ava_error replaced = {0};
	struct stat st;
	int rv = 0, fd;

	if (data == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	for (unsigned part = MAX((unsigned)place.part, 1u); rv == 0; part++) {
		struct ava_error own = {0};

		fd = catalog_open(rootfd, part, &own);
		if (fd == AVA_ENOENT && part > 1)
			break;
		/* A person removed or replaced this part: the parts behind it still count. */
		if (fd == AVA_ENOENT || fd == AVA_ECORRUPT) {
			replaced = fd == AVA_ECORRUPT && part == 1 ? own : replaced;
			continue;
		}
		replaced = (struct ava_error){0};
		if (fd < 0) {
			rv = err_set(err, fd, "%s", own.text);
			break;
		}
		if (part != place.part)
			place = (struct catalog_place){.part = part};
		rv = sys->fstat(fd, &st) != 0
			     ? err_sys(err, "read it")
			     : each_window(&w, fd, &place.at, (uint64_t)st.st_size, data, err);
		if (rv == 0 && from != NULL && catalog_before(fd, place.at, &place.crc)) {
			place.inode = st.st_ino;
			place.mtime_ns = catalog_mtime(&st);
			*from = place;
		}
		sys->close(fd);
	}
	free(data);
	if (rv == 0 && replaced.code != 0)
		rv = err_set(err, replaced.code, "%s", replaced.text);
	return rv;
}
