/* Following a run; stream.h.
 *
 * The daemon's stream ends after the run's last event. When it breaks before,
 * a new connection goes on behind the last lsn seen; the daemon is started
 * again if need be, since what it acknowledged is on disk and a run that was
 * cut off is ended with its reason when it comes back. It gives up after a
 * minute without an answer. The tick is the deadline of the call: the stream
 * is opened anew after it, at most once in thirty seconds. */
#include "cli/stream.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/api.h"

#define GIVE_UP_MS  60000
#define PAUSE_MS    200
#define QUIET_MS    45000 /* three heartbeats */
#define STOP_OFFSET 1000  /* keeps a stop by on_event apart from other values */

static int on_sse(const struct sse_event *e, void *user)
{
	struct stream *s = user;
	int rv = s->on_event(e->event, e->data, e->len, s->user);

	if (e->id[0] != '\0')
		snprintf(s->last_id, sizeof(s->last_id), "%s", e->id);
	if (strcmp(e->event, "SubagentComplete") == 0)
		s->ended = true;
	return rv != 0 ? STOP_OFFSET + rv : 0;
}

static int interrupted(struct stream *s, struct client *c, struct ava_error *err)
{
	if (s->on_interrupt == NULL)
		return err_set(err, AVA_ECANCELED, "interrupted");
	*s->interrupt = 0;
	return s->on_interrupt(c, s->user, err);
}

/* A new connection, while it is not too late. 0, or why not. */
static int reconnect(struct client **c, int64_t give_up, struct ava_error *err)
{
	int rv;

	do {
		client_close(*c);
		*c = NULL;
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
		rv = api_open(true, c, err);
	} while (rv != 0 && clock_mono_ms() < give_up);
	return rv;
}

static bool tick(struct stream *s)
{
	if (s->on_tick == NULL || clock_mono_ms() < s->tick_ms)
		return false;
	s->on_tick(&s->tick_ms, s->user);
	return true;
}

static int listen_once(struct stream *s, struct client *c, struct ava_error *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/api/v1/runs/%s/events", s->run);
	client_set_quiet(c, QUIET_MS);
	client_set_deadline(c, s->on_tick != NULL ? s->tick_ms : -1);
	client_set_interrupt(c, s->interrupt);
	return client_stream(c, path, s->last_id, on_sse, s, err);
}

static bool may_come_back(int rv)
{
	return rv == AVA_ECONNECT || rv == AVA_EUNKNOWN || rv == AVA_EPROTO || rv == AVA_ETIMEOUT ||
	       rv == AVA_EIO;
}

int stream_run(struct stream *s, struct client **c, struct ava_error *err)
{
	int64_t give_up = clock_mono_ms() + GIVE_UP_MS;
	char seen[sizeof(s->last_id)] = "";
	int rv = 0;

	while (!s->ended) {
		rv = listen_once(s, *c, err);
		client_set_deadline(*c, -1);
		client_set_interrupt(*c, NULL);
		if (rv > STOP_OFFSET)
			return rv - STOP_OFFSET;
		if (strcmp(seen, s->last_id) != 0 || rv == 0)
			give_up = clock_mono_ms() + GIVE_UP_MS;
		memcpy(seen, s->last_id, sizeof(seen));
		if (rv == AVA_ECANCELED)
			rv = interrupted(s, *c, err);
		else if (rv == 0 && !s->ended)
			return 0; /* nothing more will come: it had ended before */
		else if (tick(s))
			rv = 0;
		else if (may_come_back(rv))
			rv = reconnect(c, give_up, err);
		if (rv != 0)
			return rv;
	}
	return 0;
}
