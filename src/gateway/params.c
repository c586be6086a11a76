/* A table of names; values are read digit by digit, so that "1x", " 1", "-1"
 * and "1e9" are errors and not something near. The first thing that is wrong
 * is named. */
#include "gateway/params.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "net/http_server.h"

static const struct {
	const char *name;
	enum params_name bit;
} names[] = {
	{"all", PARAMS_ALL},     {"limit", PARAMS_LIMIT},     {"wait", PARAMS_WAIT},
	{"after", PARAMS_AFTER}, {"session", PARAMS_SESSION}, {"channel", PARAMS_CHANNEL},
};

/* Digits alone, at most INT64_MAX; *end behind them. */
static bool digits(const char *s, const char **end, uint64_t *out)
{
	uint64_t n = 0;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++) {
		if (n > (INT64_MAX - 9) / 10)
			return false;
		n = n * 10 + (uint64_t)(*s - '0');
	}
	*out = n;
	*end = s;
	return true;
}

static int read_number(const char *name, const char *value, uint64_t least, uint64_t most,
		       uint64_t *out, struct ava_error *err)
{
	const char *end;

	if (digits(value, &end, out) && *end == '\0' && *out >= least && *out <= most)
		return 0;
	return err_set(err, AVA_EINVAL,
		       "%s is \"%.40s\"; it must be a whole number from %llu to %llu", name, value,
		       (unsigned long long)least, (unsigned long long)most);
}

/* "2", "0.5" or "7200"; parts of a millisecond are dropped. */
static int read_seconds(const char *value, int64_t *ms, struct ava_error *err)
{
	const char *at = value;
	uint64_t whole, part = 0;
	unsigned unit = 100;

	if (!digits(value, &at, &whole))
		goto fail;
	if (*at == '.') {
		if (at[1] == '\0')
			goto fail;
		for (at++; *at >= '0' && *at <= '9'; at++, unit /= 10)
			part += (uint64_t)(*at - '0') * unit;
	}
	if (*at != '\0')
		goto fail;
	*ms = whole >= PARAMS_WAIT_MAX_MS / 1000 ? PARAMS_WAIT_MAX_MS
						 : (int64_t)(whole * 1000 + part);
	return 0;

fail:
	return err_set(err, AVA_EINVAL, "wait is \"%.40s\"; it must be a number of seconds", value);
}

static int read_flag(const char *value, bool *out, struct ava_error *err)
{
	*out = *value == '\0' || strcmp(value, "1") == 0 || strcmp(value, "true") == 0;
	if (*out || strcmp(value, "0") == 0 || strcmp(value, "false") == 0)
		return 0;
	return err_set(err, AVA_EINVAL, "all is \"%.40s\"; it must be 1 or 0", value);
}

struct reading {
	struct params *out;
	struct ava_error *err;
	unsigned takes, seen;
};

static int unknown(const struct reading *r, const char *name)
{
	char known[64] = "";
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (r->takes & names[i].bit)
			n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "",
					      names[i].name);
	return err_set(r->err, AVA_EINVAL, "unknown argument %.60s: this path takes %s", name,
		       n ? known : "none");
}

static int each(const char *name, const char *value, void *user)
{
	struct reading *r = user;
	struct params *out = r->out;
	uint64_t n = 0;
	size_t i = 0;
	int rv;

	while (i < ARRAY_LEN(names) &&
	       (!(r->takes & names[i].bit) || strcmp(name, names[i].name) != 0))
		i++;
	if (i == ARRAY_LEN(names))
		return unknown(r, name);
	if (r->seen & names[i].bit)
		return err_set(r->err, AVA_EINVAL, "%s is given twice", name);
	r->seen |= names[i].bit;
	switch (names[i].bit) {
	case PARAMS_ALL:
		return read_flag(value, &out->all, r->err);
	case PARAMS_LIMIT:
		rv = read_number(name, value, 1, PARAMS_LIMIT_MAX, &n, r->err);
		if (rv == 0)
			out->limit = (size_t)n;
		return rv;
	case PARAMS_WAIT:
		return read_seconds(value, &out->wait_ms, r->err);
	case PARAMS_AFTER:
		out->has_after = true;
		return read_number(name, value, 0, INT64_MAX - 1, &out->after, r->err);
	case PARAMS_CHANNEL:
		if (strlen(value) >= sizeof(out->channel))
			return err_set(r->err, AVA_EINVAL, "channel is no name of a channel");
		snprintf(out->channel, sizeof(out->channel), "%s", value);
		return 0;
	case PARAMS_SESSION:
		if (strlen(value) >= sizeof(out->session))
			return err_set(r->err, AVA_EINVAL, "session is no id of a session");
		snprintf(out->session, sizeof(out->session), "%s", value);
		return 0;
	case PARAMS_OWN: /* has no name of its own */
		break;
	}
	return 0;
}

int params_read(const struct http_request *req, unsigned takes, struct params *out,
		struct ava_error *err)
{
	struct reading r = {.out = out, .err = err, .takes = takes};
	const char *last;
	int rv;

	*out = (struct params){.limit = 100};
	rv = http_query_each(req, each, &r);
	last = takes & PARAMS_AFTER ? http_header(req, "Last-Event-ID") : NULL;
	if (rv != 0 || !last || !*last)
		return rv;
	/* A browser that reconnects asks for the address it began with and adds
	 * the field: the field is the newer one. */
	out->has_after = true;
	return read_number("Last-Event-ID", last, 0, INT64_MAX - 1, &out->after, err);
}
