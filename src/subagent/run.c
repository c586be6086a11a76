/* The part common to all runs, the supervisor's subagents and the conversations of ava/talk.c:
 * paths, status and use of limits, turn of the loop, working folder, and the end in memory.
 *
 * Happy path: an effect is done, run_wake lets the machine go on in this turn of the loop,
 * run_release frees a run that has ended once nothing points to it. What can fail: files that
 * cannot be read, and a working folder that is gone. Nothing here calls another part of a run. */
#include "subagent/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/position.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/utf8.h"
#include "subagent/proof.h"

/* ---- turn of the loop, activity, working folder, end in memory */

void run_wake(struct run *r)
{
	os_defer(r->sup->loop, &r->wake);
}

/* The activity is one line of whole, visible characters: a model writes parts of it, and every
 * door shows it. */
bool run_proof(struct run *r, const struct proof *p)
{
	struct proof *own = proof_copy(p);

	if (!own)
		return false;
	free(r->proof);
	r->proof = own;
	return true;
}

void run_activity(struct run *r, const char *text)
{
	struct buf line;
	size_t n = 0;

	while (text[n] >= ' ' && text[n] <= '~')
		n++;
	if (!text[n]) {
		snprintf(r->activity, sizeof(r->activity), "%s", text);
		return;
	}
	buf_init(&line, 4 * strlen(text) + 1);
	(void)utf8_plain(&line, text, strlen(text));
	n = MIN(line.len, sizeof(r->activity) - 1);
	while (n > 0 && n < line.len && ((unsigned char)line.data[n] & 0xc0) == 0x80)
		n--;
	for (size_t i = 0; i < n; i++)
		r->activity[i] = line.data[i] == '\n' || line.data[i] == '\t' ? ' ' : line.data[i];
	r->activity[n] = '\0';
	buf_fini(&line);
}

int run_open_folder(struct run *r, struct ava_error *err)
{
	const char *path = r->tools.env.copy ? r->tools.env.copy : r->spec->cwd;

	if (!r->spec->cwd[0] || r->tools.env.cwd_fd >= 0)
		return 0;
	r->tools.env.cwd_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->tools.env.cwd_fd < 0)
		return err_set(err, errno == EMFILE || errno == ENFILE ? AVA_EBUSY : AVA_ENOENT,
			       "the working folder %s cannot be opened any more (%s): start from "
			       "one that is there",
			       r->spec->cwd, strerror(errno));
	return 0;
}

void run_tool_done(struct run *r)
{
	if (r->tools.running == 0 && r->end.tools_done)
		r->end.tools_done(r);
}

void run_release(struct run *r)
{
	if (r->busy > 0 || !r->end.done || !outbox_empty(&r->rec.outbox))
		return;
	r->unused(r);
}

/* ---- files of a run */

void run_messages_path(const struct run *r, char out[LOGBOOK_PATH])
{
	if (r->place)
		snprintf(out, LOGBOOK_PATH, "%s", r->place->messages);
	else
		logbook_messages_path(r->id.text, out);
}

int run_messages_read(const struct run *r, size_t *from, char **file, size_t *len,
		      struct ava_error *err)
{
	char path[LOGBOOK_PATH];

	run_messages_path(r, path);
	return logbook_read_from(r->rec.outbox.lb->root_fd, path, from, 256u << 20, file, len, err);
}

ssize_t run_messages_cached(const struct run *r, char text[RUN_AT_ONCE_MAX])
{
	char path[LOGBOOK_PATH];

	run_messages_path(r, path);
	return r->rec.request_bytes > RUN_AT_ONCE_MAX / 2
		       ? -1
		       : logbook_read_cached(r->rec.outbox.lb->root_fd, path, text,
					     RUN_AT_ONCE_MAX);
}

void run_artifacts_path(const struct run *r, char out[LOGBOOK_PATH])
{
	if (r->place)
		snprintf(out, LOGBOOK_PATH, "%s", r->place->artifacts);
	else
		snprintf(out, LOGBOOK_PATH, "runs/%s/artifacts", r->id.text);
}

void run_artifact_path(const struct run *r, const char *call, const char *type,
		       char out[RUN_ARTIFACT_PATH])
{
	char folder[LOGBOOK_PATH];

	run_artifacts_path(r, folder);
	snprintf(out, RUN_ARTIFACT_PATH, "%s/%.15s.%.8s", folder, call, type);
}

/* ---- status and use of limits */

bool pause_rests(const struct run *r)
{
	return r->agent.paused && (r->pause.resting || r->agent.state == AGENT_QUEUED ||
				   r->agent.state == AGENT_WAITING);
}

void pause_words(const struct run *r, char *out, size_t size)
{
	char until[CLOCK_SOON] = "";

	if (r->pause.until_ms < PAUSE_NO_END)
		clock_local_soon(r->pause.until_ms, clock_wall_ms(), until);
	snprintf(out, size, "%s%s%s", pause_rests(r) ? "paused" : "pausing at the end of its turn",
		 until[0] ? " until " : "", until);
}

bool park_waits(const struct run *r)
{
	return r->agent.state == AGENT_WAITING && r->park.until_ms > 0 &&
	       (r->agent.over == AGENT_WAITS || r->spec->on_quota != QUOTA_ASK);
}

enum ava_status run_status(const struct run *r)
{
	if (r->end.done)
		return r->agent.status;
	if (!r->durable)
		return AVA_STARTING;
	if (pause_rests(r))
		return AVA_PAUSED;
	if (r->agent.state == AGENT_WAITING)
		return park_waits(r) ? AVA_PARKED : AVA_WAITING;
	if (r->agent.state != AGENT_QUEUED)
		return AVA_RUNNING;
	return r->blocked ? AVA_BLOCKED : AVA_QUEUED;
}

int64_t run_elapsed_ms(const struct run *r)
{
	if (r->end.wall_ms)
		return r->end.used_ms;
	return r->started_wall_ms ? agent_used_ms(&r->agent, clock_mono_ms()) : 0;
}

int64_t run_cost(const struct run *r)
{
	const struct agent_totals *t = &r->agent.at.totals;

	return t->uncosted_calls && t->cost_microusd == 0 ? -1 : t->cost_microusd;
}

int run_estimated(const struct run *r)
{
	return r->spec->model->dialect->answer ? 0 : r->agent.at.totals.estimated_calls;
}
