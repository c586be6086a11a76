/* Following events; follow.h.
 *
 * Happy path: one connection is read until its stream ends. When it breaks before, a
 * new one goes on behind the last id seen; the daemon is started again if need be, since
 * what it acknowledged is on disk, and a run that was cut off is ended with its reason
 * when it comes back. The tick is the deadline of the call: the stream is opened anew
 * after it.
 *
 * What can fail: a refusal (no such run), which is told; no daemon for a minute, unless
 * the follower is patient. */
#include "client/follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"

#define GIVE_UP_MS 60000
#define QUIET_MS   45000 /* three heartbeats */
#define PAUSE_MS   100   /* the first; doubled up to PAUSE_MAX */
#define PAUSE_MAX  3000

struct following {
	struct follow *f;
	bool ended; /* the run's last event has been given out */
};

static int on_sse(const struct sse_event *e, void *user)
{
	struct following *g = user;
	int rv = g->f->on_event(e, g->f->user);

	if (rv == 0 && e->id[0] != '\0')
		snprintf(g->f->last_id, sizeof(g->f->last_id), "%s", e->id);
	if (rv == 0 && g->f->of_run && strcmp(e->event, "SubagentComplete") == 0)
		g->ended = true;
	return rv;
}

static int listen_once(struct following *g, struct client *c, struct ava_error *err)
{
	struct follow *f = g->f;
	int rv;

	client_set_quiet(c, QUIET_MS);
	client_set_deadline(c, f->on_tick != NULL ? f->tick_ms : -1);
	client_set_interrupt(c, f->interrupt);
	rv = client_stream_open(c, f->path, f->last_id, on_sse, g, err);
	if (rv == 0 && f->on_open != NULL)
		f->on_open(f->user);
	if (rv == 0)
		rv = client_stream_rest(c, err);
	client_set_deadline(c, -1);
	client_set_interrupt(c, NULL);
	return rv;
}

bool follow_may_come_back(int code)
{
	return code == AVA_ECONNECT || code == AVA_EUNKNOWN || code == AVA_EPROTO ||
	       code == AVA_ETIMEOUT || code == AVA_EIO;
}

static bool is_refusal(const struct follow *f, int code, bool heard)
{
	if (f->patient)
		return code == AVA_EINVAL || code == AVA_EDENIED || code == AVA_EUNSUPPORTED;
	return heard && code != 0 && !follow_may_come_back(code);
}

static bool tick(struct follow *f)
{
	if (f->on_tick == NULL || clock_mono_ms() < f->tick_ms)
		return false;
	f->on_tick(&f->tick_ms, f->user);
	return true;
}

int follow_run(struct follow *f, struct client **c, struct ava_error *err)
{
	int64_t give_up = clock_mono_ms() + GIVE_UP_MS;
	struct following g = {.f = f};
	long pause = PAUSE_MS;

	while (!g.ended) {
		bool stop = f->interrupt != NULL && *f->interrupt && f->on_interrupt == NULL;
		char before[sizeof(f->last_id)];
		bool heard;
		int rv = stop ? err_set(err, AVA_ECANCELED, "interrupted") : 0;

		if (rv == 0 && *c == NULL)
			rv = f->connect(c, f->user, err);
		heard = rv == 0;
		memcpy(before, f->last_id, sizeof(before));
		if (heard)
			rv = listen_once(&g, *c, err);
		if (rv > 0)
			return rv;
		if (rv == AVA_ECANCELED && heard && f->on_interrupt != NULL) {
			*f->interrupt = 0;
			rv = f->on_interrupt(*c, f->user, err);
			if (rv != 0)
				return rv;
			continue;
		}
		if ((rv == 0 && f->of_run) || rv == AVA_ECANCELED)
			return rv; /* without its last event: it had ended before */
		if (strcmp(before, f->last_id) != 0 || rv == 0) {
			give_up = clock_mono_ms() + GIVE_UP_MS;
			pause = PAUSE_MS;
		}
		if (g.ended || (heard && tick(f)))
			continue;
		if (is_refusal(f, rv, heard) ||
		    (!f->patient && !heard && clock_mono_ms() >= give_up))
			return rv;
		if (f->on_lost != NULL)
			f->on_lost(f->user);
		client_close(*c);
		*c = NULL;
		nanosleep(&(struct timespec){pause / 1000, pause % 1000 * 1000000}, NULL);
		pause = MIN(pause * 2, PAUSE_MAX);
	}
	return 0;
}

static int anything(const struct sse_event *e, void *user)
{
	return 1;
}

int follow_news(struct client *c, uint64_t lsn, int64_t until_ms,
		int (*is_news)(const struct sse_event *e, void *user), void *user,
		struct ava_error *err)
{
	char path[64];
	int rv;

	snprintf(path, sizeof(path), "/api/v1/events?after=%" PRIu64, lsn);
	client_set_deadline(c, until_ms);
	rv = client_stream(c, path, NULL, is_news != NULL ? is_news : anything, user, err);
	client_set_deadline(c, -1);
	return rv == 1 || rv == AVA_ETIMEOUT || rv == AVA_ECANCELED ? 0 : rv;
}
