/* The retry policy: one decision a failure, from its class, the headers and
 * how long the call has been failing. The first wait is at least half a second
 * and at most one and a half; each later one is drawn between the base and
 * three times the last, up to a minute, so that runs that failed together come
 * back apart. What the service asks for is kept and never shortened; a little
 * is added for the same reason.
 *
 * Headers are other people's text: what cannot be read as a time counts as
 * absent. Nothing here can fail. */
#include "provider/retry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define TOLD_JITTER_MS 1000 /* added to what the service asks for, at most */
#define FALLBACK_TRIES 3
#define FALLBACK_PART  60 /* of the horizon */
#define YEAR_LEAST     1970
#define YEAR_MOST      9999
#define ASKED_MOST_MS  INT64_C(1000000000000)

const struct retry_policy retry_default = {
	.base_ms = 500,
	.cap_ms = 60000,
	.told_max_ms = 600000,
	.horizon_ms = 1800000,
	.broken_max = 5,
};

/* ---- times in headers */

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* `n` digits (n 0: any number) as a number; NULL when they are not there. */
static const char *digits(const char *s, int n, int64_t *out)
{
	int i = 0;

	for (*out = 0; digit(s[i]) && (n == 0 || i < n) && i < 15; i++)
		*out = *out * 10 + (s[i] - '0');
	return i > 0 && (n == 0 || i == n) ? s + i : NULL;
}

static const char *literal(const char *s, const char *text)
{
	size_t n = strlen(text);

	return s != NULL && strncmp(s, text, n) == 0 ? s + n : NULL;
}

static const char *month(const char *s, int64_t *out)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (int i = 0; s != NULL && i < 12; i++)
		if (strncmp(s, names + 3 * i, 3) == 0) {
			*out = i + 1;
			return s + 3;
		}
	return NULL;
}

static const char *time_of_day(const char *s, int64_t *seconds)
{
	int64_t h = 0, m = 0, sec = 0;

	s = s != NULL ? digits(s, 2, &h) : NULL;
	s = literal(s, ":");
	s = s != NULL ? digits(s, 2, &m) : NULL;
	s = literal(s, ":");
	s = s != NULL ? digits(s, 2, &sec) : NULL;
	if (s == NULL || h > 23 || m > 59 || sec > 60)
		return NULL;
	*seconds = h * 3600 + m * 60 + sec;
	return s;
}

/* Days from 1970-01-01 in the calendar of today. */
static int64_t days(int64_t year, int64_t mon, int64_t day)
{
	int64_t y = mon > 2 ? year : year - 1, era = y / 400, of_era = y - era * 400;
	int64_t of_year = (153 * (mon + (mon > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* "06 Nov 1994 08:49:37 GMT", "06-Nov-94 08:49:37 GMT": behind the weekday. */
static const char *date_after_comma(const char *s, int64_t d[4])
{
	const char *sep = " ", *at = digits(s, 2, &d[2]);

	if (at != NULL && *at == '-')
		sep = "-";
	at = month(literal(at, sep), &d[1]);
	at = literal(at, sep);
	if (at == NULL)
		return NULL;
	if (*sep == ' ') {
		at = digits(at, 4, &d[0]);
	} else {
		at = digits(at, 2, &d[0]);
		d[0] += d[0] < 70 ? 2000 : 1900;
	}
	return literal(time_of_day(literal(at, " "), &d[3]), " GMT");
}

/* "Nov  6 08:49:37 1994": behind the weekday. */
static const char *date_of_c(const char *s, int64_t d[4])
{
	const char *at = literal(month(s, &d[1]), " ");

	if (at == NULL)
		return NULL;
	at = *at == ' ' ? digits(at + 1, 1, &d[2]) : digits(at, 2, &d[2]);
	at = literal(time_of_day(literal(at, " "), &d[3]), " ");
	return at != NULL ? digits(at, 4, &d[0]) : NULL;
}

int64_t retry_date(const char *s)
{
	int64_t d[4] = {0}; /* year, month, day, second of the day */
	const char *end;
	size_t name = 0; /* of the weekday, which is not used */

	while ((s[name] | 32) >= 'a' && (s[name] | 32) <= 'z')
		name++;

	if (name < 3)
		return -1;
	if (strncmp(s + name, ", ", 2) == 0)
		end = date_after_comma(s + name + 2, d);
	else
		end = s[name] == ' ' ? date_of_c(s + name + 1, d) : NULL;
	if (end == NULL || *end != 0 || d[0] < YEAR_LEAST || d[0] > YEAR_MOST || d[2] < 1 ||
	    d[2] > 31)
		return -1;
	return (days(d[0], d[1], d[2]) * 86400 + d[3]) * 1000;
}

/* A decimal number times `scale`, whole; -1: it is none. */
static int64_t decimal(const char *s, int64_t scale)
{
	int64_t whole, part = 0, unit = 1;
	const char *at = digits(s, 0, &whole);

	if (at == NULL)
		return -1;
	if (*at == '.')
		for (at++; digit(*at); at++)
			if (unit < scale) {
				unit *= 10;
				part = part * 10 + (*at - '0');
			}
	if (*at != 0)
		return -1;
	return MIN(whole, ASKED_MOST_MS / scale) * scale + part * scale / unit;
}

int64_t retry_asked(const struct retry_failure *f, int64_t wall_ms)
{
	int64_t ms = f->after_ms != NULL ? decimal(f->after_ms, 1) : -1, at, now = -1;

	if (ms < 0 && f->after != NULL)
		ms = decimal(f->after, 1000);
	if (ms >= 0 || f->after == NULL)
		return ms;
	at = retry_date(f->after);
	if (at < 0)
		return -1;
	if (f->date != NULL) /* their clock, where they tell it: ours may be wrong */
		now = retry_date(f->date);
	return MAX(at - (now >= 0 ? now : wall_ms), 0);
}

/* ---- the decision */

bool retry_congested(enum reply_class cls)
{
	return cls == REPLY_RATE_LIMIT || cls == REPLY_OVERLOADED;
}

static bool is_broken(enum reply_class cls)
{
	return cls == REPLY_TRUNCATED || cls == REPLY_PROTOCOL;
}

static bool worth_it(const struct retry_failure *f)
{
	switch (f->cls) {
	case REPLY_RATE_LIMIT:
	case REPLY_OVERLOADED:
	case REPLY_SERVER:
	case REPLY_NETWORK:
	case REPLY_TIMEOUT:
	case REPLY_TRUNCATED:
	case REPLY_PROTOCOL:
		return true;
	case REPLY_OTHER:
		return f->status == 408 || f->status == 409 || f->status == 429 || f->status >= 500;
	case REPLY_OK:
	case REPLY_AUTH:
	case REPLY_BILLING:
	case REPLY_BAD_REQUEST:
	case REPLY_OVERFLOW:
	case REPLY_TOO_LARGE:
	case REPLY_NOT_FOUND:
	case REPLY_REFUSED:
	case REPLY_NCLASSES:
		break;
	}
	return false;
}

static void count(struct retry *r, const struct retry_failure *f, int64_t now_ms)
{
	if (r->failures == 0)
		r->since_ms = now_ms;
	r->failures += r->failures < UINT16_MAX;
	r->overloads += retry_congested(f->cls) && r->overloads < UINT16_MAX;
	r->broken += is_broken(f->cls) && r->broken < UINT16_MAX;
}

static int64_t own_wait(struct retry *r, const struct retry_policy *p, uint64_t chance)
{
	int64_t top = MAX(r->last_ms, p->base_ms) * 3;

	r->last_ms = MIN(p->cap_ms, p->base_ms + (int64_t)(chance % (uint64_t)(top - p->base_ms)));
	return r->last_ms;
}

void retry_decide(struct retry *r, const struct retry_policy *p, const struct retry_failure *f,
		  const struct retry_when *w, struct retry_plan *out)
{
	int64_t asked = retry_asked(f, w->wall_ms);
	bool told_yes = f->should_retry != NULL && strcasecmp(f->should_retry, "true") == 0;

	*out = (struct retry_plan){.verdict = RETRY_AGAIN};
	count(r, f, w->mono_ms);
	if (f->should_retry != NULL && strcasecmp(f->should_retry, "false") == 0)
		out->verdict = RETRY_TOLD_NOT;
	else if (!told_yes && !worth_it(f))
		out->verdict = RETRY_FINAL;
	else if (r->broken >= p->broken_max && is_broken(f->cls))
		out->verdict = RETRY_BROKEN;
	if (out->verdict != RETRY_AGAIN)
		return;
	out->told = asked > 0;
	if (out->told)
		out->wait_ms = asked +
			       (int64_t)(w->chance % (uint64_t)MIN(asked / 10 + 1, TOLD_JITTER_MS));
	else
		out->wait_ms = own_wait(r, p, w->chance);
	if (asked > p->told_max_ms)
		out->verdict = RETRY_TOO_LONG;
	else if (w->mono_ms + out->wait_ms - r->since_ms > p->horizon_ms)
		out->verdict = RETRY_HORIZON;
	else if (w->deadline_ms != INT64_MAX && w->mono_ms + out->wait_ms >= w->deadline_ms)
		out->verdict = RETRY_LATE;
}

int64_t retry_fallback_ms(const struct retry_policy *p)
{
	return p->horizon_ms / FALLBACK_PART;
}

bool retry_fallback_due(const struct retry *r, const struct retry_policy *p,
			const struct retry_failure *f, const struct retry_plan *plan,
			int64_t now_ms)
{
	if (!retry_congested(f->cls))
		return false;
	if (plan->verdict != RETRY_AGAIN)
		return true;
	if (plan->told && plan->wait_ms >= retry_fallback_ms(p))
		return true;
	return r->overloads >= FALLBACK_TRIES &&
	       now_ms + plan->wait_ms - r->since_ms >= retry_fallback_ms(p);
}

/* ---- words */

static void after_tries(const struct retry *r, const struct retry_plan *plan, int64_t now_ms,
			char *out, size_t size)
{
	switch (plan->verdict) {
	case RETRY_TOO_LONG:
		snprintf(out, size, "and asks to wait %" PRId64 " s: run again later, or",
			 plan->wait_ms / 1000);
		return;
	case RETRY_LATE:
		snprintf(out, size,
			 "and the run's time ends before the next attempt, in %" PRId64
			 " s: allow more time, or",
			 (plan->wait_ms + 999) / 1000);
		return;
	case RETRY_TOLD_NOT:
		snprintf(out, size, "and says not to try again: run again later, or");
		return;
	case RETRY_AGAIN:
	case RETRY_FINAL:
	case RETRY_HORIZON:
	case RETRY_BROKEN:
		break;
	}
	snprintf(out, size, "after %u attempt%s in %" PRId64 " s: run again later, or", r->failures,
		 r->failures == 1 ? "" : "s", (now_ms - r->since_ms) / 1000);
}

static const char *trouble(enum reply_class cls)
{
	switch (cls) {
	case REPLY_RATE_LIMIT:
		return "limits the rate of requests";
	case REPLY_OVERLOADED:
		return "is overloaded";
	case REPLY_NETWORK:
		return "cannot be reached";
	case REPLY_TIMEOUT:
		return "did not answer in time";
	case REPLY_TRUNCATED:
		return "broke off its replies";
	case REPLY_OK:
	case REPLY_SERVER:
	case REPLY_PROTOCOL:
	case REPLY_AUTH:
	case REPLY_BILLING:
	case REPLY_BAD_REQUEST:
	case REPLY_OVERFLOW:
	case REPLY_TOO_LARGE:
	case REPLY_NOT_FOUND:
	case REPLY_REFUSED:
	case REPLY_OTHER:
	case REPLY_NCLASSES:
		break;
	}
	return "fails";
}

void retry_sentence(const struct retry *r, const struct retry_plan *plan, enum reply_class cls,
		    const struct retry_words *w, int64_t now_ms, char *out, size_t size)
{
	const char *colon = w->text[0] != 0 ? ": " : "";
	char tries[120];

	switch (cls) {
	case REPLY_AUTH:
		snprintf(out, size, "%s refused the key (%d): set a valid %s, then run again%s%s",
			 w->provider, w->status, w->key_name, colon, w->text);
		return;
	case REPLY_BILLING:
		snprintf(out, size,
			 "%s says that the account cannot pay (%d): add credit, then run again%s%s",
			 w->provider, w->status, colon, w->text);
		return;
	case REPLY_REFUSED:
		snprintf(out, size, "%s does not allow this request (%d): change the task%s%s",
			 w->provider, w->status, colon, w->text);
		return;
	case REPLY_NOT_FOUND:
		snprintf(out, size, "%s does not know %s (%d): choose another model%s%s",
			 w->provider, w->model, w->status, colon, w->text);
		return;
	case REPLY_OVERFLOW:
		snprintf(out, size,
			 "the conversation does not fit into the context of %s (%" PRId64
			 " tokens): give it less, or use a model with more%s%s",
			 w->model, w->context, colon, w->text);
		return;
	case REPLY_TOO_LARGE:
		snprintf(out, size, "the request is too large for %s (%d): give the run less%s%s",
			 w->provider, w->status, colon, w->text);
		return;
	case REPLY_BAD_REQUEST:
		snprintf(out, size, "%s refused the request (%d)%s%s", w->provider, w->status,
			 colon, w->text);
		return;
	case REPLY_PROTOCOL:
		snprintf(out, size,
			 "what answers at %s does not speak as %s does: check the "
			 "address%s%s",
			 w->base_url, w->provider, colon, w->text);
		return;
	case REPLY_OK:
	case REPLY_RATE_LIMIT:
	case REPLY_OVERLOADED:
	case REPLY_SERVER:
	case REPLY_NETWORK:
	case REPLY_TIMEOUT:
	case REPLY_TRUNCATED:
	case REPLY_NCLASSES:
		break;
	case REPLY_OTHER:
		if (w->status != 0)
			break;
		/* Nothing was sent: a certificate that is not trusted. */
		snprintf(out, size, "%s cannot be called%s%s", w->provider, colon, w->text);
		return;
	}
	after_tries(r, plan, now_ms, tries, sizeof(tries));
	snprintf(out, size, "%s %s %s set models.fallback%s%s", w->provider, trouble(cls), tries,
		 colon, w->text);
}
