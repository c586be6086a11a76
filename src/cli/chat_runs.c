/* Subagents at work; chat_runs.h. A table searched from its newest row on; a
 * conversation has few. What can fail: the table is full of live runs; the run
 * goes on all the same. */
#include "cli/chat_runs.h"

#include <stdio.h>
#include <string.h>

#include "cli/format.h"
#include "cli/progress.h"

struct chat_run *chat_runs_find(struct chat_runs *r, const char *id)
{
	for (size_t i = r->n; i > 0; i--)
		if (strcmp(r->run[i - 1].id, id) == 0)
			return &r->run[i - 1];
	return NULL;
}

static bool forget_one(struct chat_runs *r)
{
	for (size_t i = 0; i < r->n; i++) {
		if (r->run[i].live)
			continue;
		memmove(&r->run[i], &r->run[i + 1], (r->n - i - 1) * sizeof(r->run[0]));
		r->n--;
		return true;
	}
	return false;
}

struct chat_run *chat_runs_begin(struct chat_runs *r, const char *id, const char *role,
				 int64_t now_ms)
{
	struct chat_run *run = chat_runs_find(r, id);

	if (run == NULL) {
		if (r->n == CHAT_RUNS_MAX && !forget_one(r))
			return NULL;
		run = &r->run[r->n++];
	}
	*run = (struct chat_run){.live = true, .still_ms = now_ms + PROGRESS_FIRST_MS};
	snprintf(run->id, sizeof(run->id), "%s", id);
	snprintf(run->role, sizeof(run->role), "%s", format_role(role).text);
	return run;
}

struct chat_run *chat_runs_due(struct chat_runs *r, int64_t now_ms)
{
	for (size_t i = 0; i < r->n; i++) {
		if (!r->run[i].live || r->run[i].still_ms > now_ms)
			continue;
		r->run[i].still_ms = now_ms + PROGRESS_NEXT_MS;
		return &r->run[i];
	}
	return NULL;
}

int64_t chat_runs_next(const struct chat_runs *r)
{
	int64_t next = -1;

	for (size_t i = 0; i < r->n; i++)
		if (r->run[i].live && (next < 0 || r->run[i].still_ms < next))
			next = r->run[i].still_ms;
	return next;
}
