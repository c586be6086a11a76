/* See otel.h; doc/TRACE.md, "Metrics and logs".
 *
 * Happy path: a timer comes, all counters are written as sums since the process began, and sent.
 * Nothing is kept for later: the next push has all that a lost one had. What was counted since the
 * last one is lost to the collector when the process ends; the log has it. What can fail: the
 * collector in every way, told once in avad.log until it answers again; memory (the next time). */
#include "ava/otel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ava/core.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/util.h"
#include "codec/json.h"
#include "subagent/tally.h"

#define BODY_MAX   (4u << 20)
#define CUMULATIVE 2
/* Bounds of the histogram that the conventions name; longer calls are one bucket there. */
#define OTEL_BOUNDS 14

struct otel_metrics {
	struct core *core;
	struct otel_sender *sender;
	struct os_timer *timer;
	int64_t began_ms;  /* wall */
	char instance[33]; /* tells this process from others */
	bool busy, failing;
	struct jw w;
};

/* ---- writing */

static void point_nano(struct jw *w, const char *key, int64_t ms)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64 "000000", ms);
	jw_str(w, key, text);
}

static void point_count(struct jw *w, const char *key, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n); /* 64 bits are strings */
	jw_str(w, key, text);
}

static void point_begin(struct otel_metrics *m)
{
	jw_object(&m->w, NULL);
	point_nano(&m->w, "startTimeUnixNano", m->began_ms);
	point_nano(&m->w, "timeUnixNano", MAX(clock_wall_ms(), m->began_ms));
	jw_array(&m->w, "attributes");
}

/* `kind`: "sum" of what only grows, or "histogram". Its points follow. */
static void measure_begin(struct otel_metrics *m, const char *name, const char *unit,
			  const char *kind)
{
	jw_object(&m->w, NULL);
	jw_str(&m->w, "name", name);
	jw_str(&m->w, "unit", unit);
	jw_object(&m->w, kind);
	jw_int(&m->w, "aggregationTemporality", CUMULATIVE);
	if (kind[0] == 's')
		jw_bool(&m->w, "isMonotonic", true);
	jw_array(&m->w, "dataPoints");
}

static void jw_ends(struct jw *w, int n)
{
	while (n-- > 0)
		jw_end(w);
}

static void put_took(struct otel_metrics *m, const struct tally_model *of)
{
	int64_t n = 0, over = 0;

	for (unsigned i = 0; i <= TALLY_BOUNDS; i++) {
		n += of->took[i];
		over += i >= OTEL_BOUNDS ? of->took[i] : 0;
	}
	point_count(&m->w, "count", n);
	jw_fixed(&m->w, "sum", of->ms, 3);
	jw_array(&m->w, "bucketCounts");
	for (unsigned i = 0; i < OTEL_BOUNDS; i++)
		point_count(&m->w, NULL, of->took[i]);
	point_count(&m->w, NULL, over);
	jw_end(&m->w);
	jw_array(&m->w, "explicitBounds");
	for (unsigned i = 0; i < OTEL_BOUNDS; i++)
		jw_fixed(&m->w, NULL, tally_bound_ms(i), 3);
	jw_end(&m->w);
}

/* A measure with a point for each model: its calls, its money, or the tokens of the kinds from
 * `first` to `last`. */
static void put_models(struct otel_metrics *m, const char *name, const char *unit, int first,
		       int last)
{
	const struct tally *t = m->core->sup.tally;
	bool took = unit[0] == 's', money = unit[1] == 'U';

	measure_begin(m, name, unit, took ? "histogram" : "sum");
	for (unsigned i = t->nmodels < TALLY_MODELS; i < t->nmodels; i++) {
		int64_t n = 0;

		point_begin(m);
		otlp_put_str(&m->w, "gen_ai.operation.name", "chat");
		(void)otlp_put_model(&m->w, t->models[i].name);
		jw_end(&m->w);
		for (int k = first; k <= last; k++)
			n = sum_to_max(n, t->models[i].tokens[k]);
		if (took)
			put_took(m, &t->models[i]);
		else if (money)
			jw_fixed(&m->w, "asDouble", t->models[i].microusd, 6);
		else
			point_count(&m->w, "asInt", n);
		jw_end(&m->w);
	}
	jw_ends(&m->w, 3);
}

static void put_rows(struct otel_metrics *m, enum tally_kind kind)
{
	static const struct {
		const char *name, *unit, *of;
	} measures[TALLY_NKINDS] = {
		[TALLY_ENDS] = {"ava.runs.ended", "{run}", "gen_ai.agent.name"},
		[TALLY_ERRORS] = {"ava.model.errors", "{call}", "error.type"},
		[TALLY_TOOLS] = {"ava.tool.calls", "{call}", "gen_ai.tool.name"},
	};
	const struct tally *t = m->core->sup.tally;
	const struct tally_row *row = t->rows[kind];

	measure_begin(m, measures[kind].name, measures[kind].unit, "sum");
	for (; row < t->rows[kind] + t->nrows[kind]; row++) {
		point_begin(m);
		otlp_put_str(&m->w, measures[kind].of, row->name);
		if (kind == TALLY_TOOLS)
			otlp_put_str(&m->w, "ava.tool.success", row->status ? "true" : "false");
		else
			(void)otlp_put_model(&m->w, t->models[row->model].name);
		if (kind == TALLY_ENDS)
			otlp_put_str(&m->w, "ava.run.status",
				     ava_status_name((enum ava_status)row->status));
		jw_end(&m->w);
		point_count(&m->w, "asInt", row->n);
		jw_end(&m->w);
	}
	jw_ends(&m->w, 3);
}

static void metrics_body(struct otel_metrics *m, struct buf *out)
{
	jw_init(&m->w, out);
	otlp_begin(&m->w, OTLP_METRICS, m->instance);
	put_models(m, "gen_ai.client.inference.duration", "s", 0, -1);
	put_models(m, "gen_ai.client.inference.usage.input_tokens", "{token}", TALLY_INPUT,
		   TALLY_CACHE_WRITE);
	put_models(m, "gen_ai.client.inference.usage.cache_read.input_tokens", "{token}",
		   TALLY_CACHE_READ, TALLY_CACHE_READ);
	put_models(m, "gen_ai.client.inference.usage.cache_write.input_tokens", "{token}",
		   TALLY_CACHE_WRITE, TALLY_CACHE_WRITE);
	put_models(m, "gen_ai.client.inference.usage.output_tokens", "{token}", TALLY_OUTPUT,
		   TALLY_REASONING);
	put_models(m, "gen_ai.client.inference.usage.reasoning.output_tokens", "{token}",
		   TALLY_REASONING, TALLY_REASONING);
	put_models(m, "ava.cost", "{USD}", 0, -1);
	for (enum tally_kind kind = 0; kind < TALLY_NKINDS; kind++)
		put_rows(m, kind);
	otlp_end(&m->w);
}

/* ---- pushing */

static void otel_metrics_sent(const struct otel_answer *a, void *user)
{
	struct otel_metrics *m = user;
	bool failed = a->end != CHANNEL_TAKEN || a->rejected > 0;

	m->busy = false;
	if (failed && !m->failing)
		core_log(m->core, "otel: metrics are not taken: %s", a->reason);
	else if (!failed && m->failing)
		core_log(m->core, "otel: metrics are taken again");
	m->failing = failed;
}

static void otel_metrics_due(void *user)
{
	struct otel_metrics *m = user;
	struct buf body;

	os_timer_set(m->timer, m->core->settings.otel_metrics_s * 1000);
	if (m->busy || m->core->sup.tally->nmodels == 0) /* an empty request tells nothing */
		return;
	buf_init(&body, BODY_MAX);
	metrics_body(m, &body);
	m->busy = buf_check(&body) == 0 &&
		  otel_send(m->sender, OTLP_METRICS, &body, otel_metrics_sent, m, NULL) == 0;
	buf_fini(&body);
}

int otel_metrics_open(struct core *c, const struct core_options *o, struct ava_error *err)
{
	const int64_t every_ms = c->settings.otel_metrics_s * 1000;
	unsigned char raw[16];
	struct otel_metrics *m;

	if (every_ms == 0 || o->otel == NULL || o->otel[0] == '\0')
		return 0;
	m = c->delivery->metrics = calloc(1, sizeof(*m));
	if (m == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	m->core = c;
	m->began_ms = clock_wall_ms();
	id_random(raw, sizeof(raw));
	hash_hex(raw, sizeof(raw), m->instance);
	m->sender = otel_sender_new(c->loop, o->otel, o->otel_headers,
				    c->settings.otel_timeout_s * 1000, err);
	if (m->sender == NULL)
		return err_wrap(err, err->code, "otel.endpoint");
	m->timer = os_timer_new(c->loop, otel_metrics_due, m);
	if (m->timer == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	os_timer_set(m->timer, every_ms);
	return 0;
}

void otel_metrics_close(struct core *c)
{
	struct otel_metrics *m = c->delivery != NULL ? c->delivery->metrics : NULL;

	if (m == NULL)
		return;
	c->delivery->metrics = NULL;
	os_timer_free(m->timer);
	otel_sender_free(m->sender);
	free(m);
}
