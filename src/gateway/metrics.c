/* GET /metrics in the text form of Prometheus
 * (https://prometheus.io/docs/instrumenting/exposition_formats). Figures of this moment and
 * counters since the daemon began; nothing is asked of the disk. */
#include "gateway/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "ava/state.h"
#include "base/buf.h"
#include "base/clock.h"

static void metric(struct buf *b, const char *name, const char *type, const char *help,
		   double value)
{
	buf_addf(b, "# HELP ava_%s %s\n# TYPE ava_%s %s\nava_%s %.15g\n", name, help, name, type,
		 name, value);
}

int metrics_write(struct core *c, unsigned streams, struct buf *b)
{
	struct spend today = supervisor_spend(&c->sup);
	struct ava_error err;
	struct journal_stats js;

	journal_stats(c->journal, &js);
	buf_addf(b,
		 "# HELP ava_build_info Version of the daemon\n# TYPE ava_build_info gauge\n"
		 "ava_build_info{version=\"%s\"} 1\n",
		 ava_version());
	metric(b, "healthy", "gauge", "1 when new work is taken", core_ready(c, &err) == 0);
	metric(b, "uptime_seconds", "gauge", "Since the daemon began",
	       (double)(clock_mono_ms() - c->started_ms) / 1000);
	metric(b, "runs_live", "gauge", "Runs that have not ended", (double)c->sup.nlive);
	metric(b, "runs_queued", "gauge", "Runs that wait for a slot", (double)c->sup.nwaiting);
	metric(b, "runs_total", "counter", "Runs of this data root", (double)c->sup.total);
	metric(b, "slots", "gauge", "Runs that may work at once", (double)c->settings.runs_max);
	metric(b, "slots_used", "gauge", "Of them those that do", (double)c->sup.slots_used);
	metric(b, "proposals_pending", "gauge", "Quotes without an answer", c->npending);
	metric(b, "today_cost_usd", "gauge", "Cost since local midnight",
	       (double)today.microusd / 1e6);
	metric(b, "today_tokens", "gauge", "Tokens since local midnight", (double)today.tokens);
	metric(b, "today_runs", "gauge", "Runs since local midnight", (double)today.runs);
	metric(b, "journal_lsn", "counter", "Newest event that can be read",
	       (double)logbook_shown(&c->book));
	metric(b, "journal_commits_total", "counter", "Commits since the start",
	       (double)js.commits);
	metric(b, "journal_flushes_total", "counter", "Flushes since the start",
	       (double)js.flushes);
	metric(b, "journal_queued_bytes", "gauge", "Waiting for the disk", (double)js.queued_bytes);
	metric(b, "journal_held_commits", "gauge", "Waiting for a file that cannot be written",
	       (double)js.held_commits);
	metric(b, "loop_gaps_total", "counter", "Turns of the loop over 20 ms",
	       (double)os_loop_gaps(c->loop));
	metric(b, "event_streams", "gauge", "Open event streams", streams);
	return buf_check(b);
}
