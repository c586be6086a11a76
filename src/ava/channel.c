/* A channel that the daemon itself calls: a command (notify.c), a collector of traces (otel.c). One
 * notice at a time:
 *
 *   pick ─► its attempt on disk ─► send ─┬─ taken ────► settled on disk
 *    ▲                                   ├─ given up ─► the same, with an event
 *    └───────────────────────────────────┴─ later
 *
 * Attempts are on disk before the call only where the reader is told of them: after a crash it
 * hears that it may have been called before.
 *
 * What can fail: the call, in every way (the channel says what follows); the disk (the same step
 * again later). */
#include <stdio.h>
#include <string.h>

#include "ava/delivery.h"
#include "ava/state.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"

#define DISK_RETRY_MS 5000
#define REASON_CHARS  200

const struct channel_row channel_table[DELIVERY_NCHANNELS] = {
	{"terminal", true, DELIVERY_SESSION_MAX, "too many wait for this conversation"},
	{"notify", false, DELIVERY_NOTIFY_MAX, "too many wait for the command"},
	{"otel", false, DELIVERY_OTEL_MAX, "too many wait for the collector"},
	{"desktop", false, DELIVERY_NOTIFY_MAX, "too many wait for the desktop"},
	{"url", false, DELIVERY_NOTIFY_MAX, "too many wait for notify.url"},
#define X(door, ...) {#door, true, DELIVERY_SESSION_MAX, "too many wait for this conversation"},
	DOORS(X)
#undef X
};

void channel_tell(struct delivery *d, struct draft *dr, unsigned channel, const struct notice *it,
		  int64_t left_out, const char *reason)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 65536);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "customType", left_out > 0 ? "delivery.left_out" : "delivery.gave_up");
	jw_object(&w, "data");
	jw_str(&w, "channel", channel_table[delivery_bit(channel)].name);
	jw_int(&w, "lsn", (int64_t)it->item.lsn);
	if (it->item.run[0])
		jw_str(&w, "subagentId", it->item.run);
	jw_int(&w, "attempts", it->tries[delivery_bit(channel)].attempts);
	if (left_out > 0)
		jw_int(&w, "rejectedSpans", left_out);
	jw_str(&w, "reason", reason);
	jw_end(&w);
	jw_end(&w);
	core_event(d->core, dr, EVENT_Custom, it->item.session, "", &b);
}

static void channel_next(struct channel *ch)
{
	ch->busy = false;
	ch->item = NULL;
	channel_pump(ch);
}

/* ---- the end of a notice */

static void end_written(int rv, void *user)
{
	struct channel *ch = user;

	if (ch->stopped)
		return;
	ch->end_waits = rv != 0;
	if (rv != 0) { /* channel_again repeats this step */
		os_timer_set(ch->timer, DISK_RETRY_MS);
		return;
	}
	if (ch->item)
		delivery_settle(ch->d, ch->item, ch->kind->channel);
	channel_next(ch);
}

static void write_end(struct channel *ch)
{
	struct draft *dr;
	int rv;

	if (!ch->item) { /* settled while the disk was full */
		end_written(0, ch);
		return;
	}
	ch->item->closing |= ch->kind->channel;
	dr = delivery_draft(ch->d);
	if (dr && (ch->left_out > 0 || ch->end == CHANNEL_GIVEN_UP))
		channel_tell(ch->d, dr, ch->kind->channel, ch->item,
			     ch->end == CHANNEL_GIVEN_UP ? 0 : ch->left_out, ch->reason);
	rv = delivery_commit(dr, end_written, ch);
	if (rv != 0)
		end_written(rv, ch);
}

void channel_done(struct channel *ch, enum channel_end end)
{
	if (!ch->item || end == CHANNEL_LATER) {
		channel_next(ch);
		return;
	}
	ch->end = end;
	ch->taken += end == CHANNEL_TAKEN;
	ch->given_up += end == CHANNEL_GIVEN_UP;
	write_end(ch);
}

/* ---- what a failure is called, and when the next attempt is due */

void channel_add_reason(struct channel *ch, const char *text, size_t len)
{
	size_t used = strlen(ch->reason), line = 0;
	struct buf clean, shown;

	while (line < len && text[line] != '\n' && text[line])
		line++;
	buf_init(&clean, 8192);
	buf_init(&shown, 8192);
	if (redact_text(ch->d->core->redact, &clean, text, line) >= 0 && clean.len > 0 &&
	    utf8_terminal(&shown, clean.data, clean.len, false) == 0)
		snprintf(ch->reason + used, sizeof(ch->reason) - used, "%s%.*s", used ? ": " : "",
			 (int)utf8_prefix(shown.data, shown.len, REASON_CHARS), shown.data);
	buf_fini(&clean);
	buf_fini(&shown);
}

int64_t channel_pause_ms(int64_t retry_s, unsigned failures, unsigned times, int64_t max_ms)
{
	int64_t ms = retry_s * 1000;

	for (unsigned i = 1; i < failures && ms < max_ms; i++)
		ms *= times;
	return MIN(ms, max_ms);
}

/* ---- the call */

static void attempt_written(int rv, void *user)
{
	struct channel *ch = user;

	if (ch->stopped)
		return;
	if (rv == 0 && ch->item) {
		ch->kind->send(ch);
		return;
	}
	if (ch->item)
		channel_try(ch)->attempts--;
	if (rv != 0)
		ch->rest_ms = os_now_ms(ch->d->core->loop) + DISK_RETRY_MS;
	channel_next(ch);
}

static void channel_begin(struct channel *ch, struct notice *it)
{
	int rv;

	ch->busy = true;
	ch->item = it;
	if (ch->attempts_max == 0) {
		ch->kind->send(ch);
		return;
	}
	if (channel_try(ch)->attempts >= ch->attempts_max) {
		snprintf(ch->reason, sizeof(ch->reason), "the runtime stopped in its last attempt");
		channel_done(ch, CHANNEL_GIVEN_UP);
		return;
	}
	channel_try(ch)->attempts++;
	rv = delivery_commit(delivery_draft(ch->d), attempt_written, ch);
	if (rv != 0)
		attempt_written(rv, ch);
}

void channel_pump(struct channel *ch)
{
	const unsigned k = delivery_bit(ch->kind->channel);
	int64_t now = os_now_ms(ch->d->core->loop), next = INT64_MAX;

	if (ch->busy || ch->stopped)
		return;
	LIST_EACH (&ch->d->queues[k], at, tmp) {
		struct notice *it = LIST_ENTRY(at, struct notice, in[k]);
		int64_t due = MAX(it->tries[k].due_ms, ch->rest_ms);

		if (due <= now) {
			channel_begin(ch, it);
			return;
		}
		next = MIN(next, due);
	}
	if (next != INT64_MAX)
		os_timer_set(ch->timer, next - now);
}

/* ---- life */

static void channel_again(void *user)
{
	struct channel *ch = user;

	if (ch->end_waits)
		write_end(ch);
	else
		channel_pump(ch);
}

int channel_init(struct channel *ch, struct delivery *d, const struct channel_kind *kind)
{
	ch->d = d;
	ch->kind = kind;
	d->channels[delivery_bit(kind->channel)] = ch;
	d->called |= kind->channel;
	ch->timer = os_timer_new(d->core->loop, channel_again, ch);
	return ch->timer ? 0 : AVA_ENOMEM;
}

void channel_stop(struct channel *ch)
{
	ch->stopped = true;
	if (ch->timer)
		os_timer_stop(ch->timer);
	ch->kind->stop(ch);
}

void channel_free(struct channel *ch)
{
	os_timer_free(ch->timer);
	ch->kind->free(ch);
}
