/* Following a stream; client/follow.h.
 *
 * Happy path: the first look connects and waits for the stream's begin, each later one takes what
 * its socket has, at most one buffer. The id of each event that was taken is what a new connection
 * goes on behind, so that a frame that was cut comes again, whole.
 *
 * What can fail: the connection breaks, is silent for three heartbeats, or the daemon ends it
 * because it stops: then it is closed, and the next look makes a new one. How often to look is the
 * caller's. */
#include "client/follow.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"

static int follow_on_event(const struct sse_event *e, void *user)
{
	struct follower *f = user;
	int rv = f->on_event(e, f->user);

	if (rv >= 0 && e->id[0] != '\0')
		snprintf(f->last, sizeof(f->last), "%s", e->id);
	return rv;
}

static int follow_join(struct follower *f, struct ava_error *err)
{
	int rv = f->connect(f->user, &f->c, err);

	if (rv != 0)
		return rv;
	if (f->open_ms > 0)
		client_set_deadline(f->c, clock_mono_ms() + f->open_ms);
	rv = client_stream_open(f->c, f->path, f->last, follow_on_event, f, err);
	if (rv < 0)
		return rv;
	client_set_deadline(f->c, -1);
	return 1;
}

int follow_look(struct follower *f, struct ava_error *err)
{
	bool of_run = strncmp(f->path, "/api/v1/runs/", 13) == 0;
	int64_t now = clock_mono_ms();
	int rv;

	if (f->ended)
		return 0;
	rv = f->c == NULL ? follow_join(f, err) : client_stream_take(f->c, err);
	if (rv > 0)
		f->heard_ms = now;
	else if (rv == 0 && now - f->heard_ms >= FOLLOW_QUIET_MS)
		rv = err_set(err, AVA_ECONNECT, "the daemon is silent");
	if (rv >= 0 && client_stream_done(f->c)) {
		f->ended = of_run;
		rv = of_run ? rv : err_set(err, AVA_ECONNECT, "the daemon has ended the stream");
	}
	if (rv < 0 || f->ended)
		follow_close(f);
	return rv;
}

int follow_wait(struct follower *f, int64_t until_ms, struct ava_error *err)
{
	int64_t quiet = f->heard_ms + FOLLOW_QUIET_MS, now = clock_mono_ms();
	int rv;

	if (f->c == NULL || f->ended)
		return 1;
	rv = client_stream_wait(
		f->c, (int)MAX((until_ms < 0 ? quiet : MIN(quiet, until_ms)) - now, 0), err);
	return rv == 0 && (until_ms < 0 || quiet < until_ms) ? 1 : rv;
}

void follow_close(struct follower *f)
{
	client_close(f->c); /* closing takes the socket out of an epoll, too */
	f->c = NULL;
}
