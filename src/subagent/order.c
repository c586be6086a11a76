/* The plan of a standing order, as data and in words. The canonical text stands in the spec
 * (spec.order); whoever needs a time reads it anew, which is rare: at a quote and at a fire.
 *
 * What can fail: a calendar, a zone or a figure that cannot be read; the sentence says what may
 * stand there. */
#include "subagent/order.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/id.h"
#include "base/util.h"
#include "base/words.h"
#include "codec/json.h"
#include "subagent/spec.h"

static const char *const overlaps[] = {"skip", "queue"};
static const char *const misses[] = {"once", "skip", "all"};

const char *order_overlap_name(enum order_overlap o)
{
	return overlaps[o];
}

const char *order_missed_name(enum order_missed m)
{
	return misses[m];
}

/* ---- reading */

bool order_is_id(const char *s)
{
	size_t n = strncmp(s, "O-", 2) == 0 ? strspn(s + 2, "0123456789abcdef") : 0;

	return n >= 6 && n < ORDER_ID - 2 && s[2 + n] == '\0';
}

static int order_word(const json_t *o, const char *key, const char *const words[], size_t n,
		      struct ava_error *err)
{
	const char *word = json_get_str(o, key);
	char list[64] = "";

	if (!word && !json_object_get(o, key))
		return 0;
	for (size_t i = 0; i < n; i++) {
		size_t at = strlen(list);

		if (word && strcmp(word, words[i]) == 0)
			return (int)i;
		snprintf(list + at, sizeof(list) - at, "%s%s",
			 i == 0       ? ""
			 : i + 1 == n ? " or "
				      : ", ",
			 words[i]);
	}
	return err_set(err, AVA_EINVAL, "%s of an order is %s", key, list);
}

static int order_cents(const json_t *o, const char *key, int64_t *out, struct ava_error *err)
{
	const json_t *v = json_object_get(o, key);

	*out = json_get_fixed(o, key, 4, -1);
	if (!v || (json_is_number(v) && *out > 0))
		return 0;
	return err_set(err, AVA_EINVAL, "%s of an order must be above 0 cents", key);
}

static int order_time(const json_t *o, const char *key, int64_t otherwise, int64_t *out,
		      struct ava_error *err)
{
	int64_t ms = json_time(json_object_get(o, key));

	*out = ms >= 0 ? ms : otherwise;
	if (ms >= 0 || !json_object_get(o, key))
		return 0;
	return err_set(err, AVA_EINVAL,
		       "%s of an order must be a time such as 2027-01-01T00:00:00.000Z", key);
}

static int order_unknown(const json_t *o, struct ava_error *err)
{
	static const char known[] =
		"id from when zone day_cents month_cents until count overlap missed";
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)o, key, v) if (!list_has(known, ' ', key)) return err_set(
		err, AVA_EINVAL,
		"an order has no \"%.40s\": there are when, zone, day_cents, "
		"month_cents, until, count, overlap and missed",
		key);
	return 0;
}

static int order_members(const json_t *o, struct order_plan *p, struct ava_error *err)
{
	const char *id = json_get_str(o, "id"), *when = json_str(o, "when");
	const json_t *count = json_object_get(o, "count"), *zone = json_object_get(o, "zone");
	unsigned char raw[4];
	int overlap = order_word(o, "overlap", overlaps, ARRAY_LEN(overlaps), err);
	int missed =
		overlap < 0 ? overlap : order_word(o, "missed", misses, ARRAY_LEN(misses), err);

	if (missed < 0 || order_cents(o, "day_cents", &p->day_microusd, err) != 0 ||
	    order_cents(o, "month_cents", &p->month_microusd, err) != 0 ||
	    order_time(o, "from", clock_wall_ms(), &p->from_ms, err) != 0 ||
	    order_time(o, "until", ORDER_NEVER, &p->until_ms, err) != 0)
		return AVA_EINVAL;
	p->overlap = (enum order_overlap)overlap;
	p->missed = (enum order_missed)missed;
	p->count = json_get_int(o, "count", 0);
	if (count && p->count < 1)
		return err_set(err, AVA_EINVAL, "count of an order must be 1 or more");
	if (!*when || strlen(when) > CALENDAR_TEXT)
		return err_set(
			err, AVA_EINVAL,
			"say when: \"*/15 8-18 * * 1-5\", \"@daily\", \"Mon 08:00\", \"every "
			"2h\" or \"at 2026-12-01 08:00\"");
	if (zone && !json_is_string(zone))
		return err_set(err, AVA_EINVAL, "zone of an order is a name as Europe/Berlin");
	snprintf(p->when, sizeof(p->when), "%s", when);
	id_random(raw, sizeof(raw));
	if (json_object_get(o, "id") && !(id && order_is_id(id)))
		return err_set(err, AVA_EINVAL, "%.40s is no id of an order", id ? id : "that");
	if (id)
		snprintf(p->id, sizeof(p->id), "%s", id);
	else
		snprintf(p->id, sizeof(p->id), "O-%02x%02x%02x%02x", raw[0], raw[1], raw[2],
			 raw[3]);
	return 0;
}

int order_read(const json_t *o, struct order_plan *out, struct ava_error *err)
{
	struct order_plan p = {.calendar = NULL};
	int rv;

	if (!json_is_object(o))
		return err_set(err, AVA_EINVAL, "an order is an object with \"when\"");
	if (order_unknown(o, err) != 0 || order_members(o, &p, err) != 0)
		return AVA_EINVAL;
	rv = calendar_parse(p.when, json_str(o, "zone"), p.from_ms, &p.calendar, err);
	if (rv == 0 && !calendar_waits(p.calendar) && order_next(&p, p.from_ms) == ORDER_NEVER) {
		rv = err_set(err, AVA_EINVAL, "no run would be due before the order ends (until)");
		order_fini(&p);
	}
	if (rv == 0)
		*out = p;
	return rv;
}

void order_fini(struct order_plan *p)
{
	calendar_free(p->calendar);
	p->calendar = NULL;
}

int64_t order_next(const struct order_plan *p, int64_t after_ms)
{
	int64_t due = calendar_next(p->calendar, MAX(after_ms, p->from_ms));

	return due <= p->until_ms ? due : ORDER_NEVER;
}

/* ---- writing */

static void order_members_write(struct jw *w, const struct order_plan *p)
{
	jw_str(w, "id", p->id);
	jw_time(w, "from", p->from_ms);
	jw_str(w, "when", p->when);
	jw_str(w, "zone", calendar_zone(p->calendar));
	if (p->day_microusd >= 0)
		jw_fixed(w, "day_cents", p->day_microusd, 4);
	if (p->month_microusd >= 0)
		jw_fixed(w, "month_cents", p->month_microusd, 4);
	if (p->until_ms != ORDER_NEVER)
		jw_time(w, "until", p->until_ms);
	if (p->count > 0)
		jw_int(w, "count", p->count);
	jw_str(w, "overlap", overlaps[p->overlap]);
	jw_str(w, "missed", misses[p->missed]);
}

void order_write(struct jw *w, const char *key, const struct order_plan *p)
{
	jw_object(w, key);
	order_members_write(w, p);
	jw_end(w);
}

int order_keep(struct run_spec *s, const struct order_plan *p)
{
	struct buf b;
	struct jw w;
	json_t *o = NULL;
	int rv = AVA_ENOMEM;

	buf_init(&b, ORDER_TEXT);
	jw_init(&w, &b);
	order_write(&w, NULL, p);
	if (buf_check(&b) == 0)
		o = json_parse(b.data, b.len, NULL);
	if (o)
		rv = spec_keep_order(s, o);
	json_decref(o);
	buf_fini(&b);
	return rv;
}

/* The plan of a spec; false: it has none, or memory is short. */
static bool order_plan_of(const struct run_spec *s, struct order_plan *p)
{
	json_t *o = s->order.id[0] ? json_parse(s->order.plan, strlen(s->order.plan), NULL) : NULL;
	bool is = o && order_read(o, p, NULL) == 0;

	json_decref(o);
	return is;
}

void order_quote_text(struct buf *out, const struct run_spec *s)
{
	int64_t due = clock_wall_ms();
	struct order_plan p;
	char stamp[CALENDAR_STAMP];
	size_t when;

	if (!order_plan_of(s, &p))
		return;
	buf_addf(out, WORDS_ORDER(p.id));
	when = out->len;
	calendar_text(p.calendar, out);
	if (buf_check(out) == 0 && strncmp(out->data + when, p.when, strlen(p.when)) != 0)
		buf_addf(out, WORDS_ORDER_WHEN(p.when));
	for (int i = 0; i < 3 && (due = order_next(&p, due)) != ORDER_NEVER; i++) {
		calendar_stamp(p.calendar, due, stamp);
		buf_addf(out, "%s%s", i == 0 ? WORDS_ORDER_NEXT : ", ", stamp);
	}
	buf_adds(out, WORDS_ORDER_TAKES);
	buf_adds(out, s->agent.price.input < 0
			      ? WORDS_QUOTE_THEIRS
			      : format_money_limit(s->agent.limits.cost_microusd).text);
	if (p.day_microusd >= 0)
		buf_addf(out, WORDS_ORDER_DAY(format_money_limit(p.day_microusd).text));
	if (p.month_microusd >= 0)
		buf_addf(out, WORDS_ORDER_MONTH(format_money_limit(p.month_microusd).text));
	if (p.day_microusd < 0 && p.month_microusd < 0)
		buf_adds(out, WORDS_ORDER_NO_MONEY);
	buf_adds(out, WORDS_ORDER_ENDS);
	if (p.until_ms != ORDER_NEVER) {
		calendar_stamp(p.calendar, p.until_ms, stamp);
		buf_addf(out, WORDS_ORDER_UNTIL(stamp));
	}
	if (p.count > 0)
		buf_addf(out, WORDS_ORDER_COUNT(p.until_ms != ORDER_NEVER ? ", or " : "", p.count));
	if (p.count == 0 && p.until_ms == ORDER_NEVER)
		buf_adds(out, due == ORDER_NEVER && !calendar_waits(p.calendar)
				      ? WORDS_ORDER_NO_MORE
				      : WORDS_ORDER_NO_END);
	buf_adds(out, p.overlap == ORDER_OVERLAP_QUEUE ? WORDS_ORDER_QUEUE : WORDS_ORDER_SKIP);
	buf_adds(out, p.missed == ORDER_MISSED_ONCE   ? WORDS_ORDER_ONCE
		      : p.missed == ORDER_MISSED_SKIP ? WORDS_ORDER_MISSED_SKIP
						      : WORDS_ORDER_ALL);
	order_fini(&p);
}

void order_quote_write(struct jw *w, const struct run_spec *s)
{
	int64_t due = clock_wall_ms();
	struct order_plan p;

	if (!order_plan_of(s, &p))
		return;
	jw_object(w, "order");
	order_members_write(w, &p);
	jw_array(w, "next");
	for (int i = 0; i < 3 && (due = order_next(&p, due)) != ORDER_NEVER; i++)
		jw_time(w, NULL, due);
	jw_end(w);
	jw_end(w);
	order_fini(&p);
}
