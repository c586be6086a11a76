/* Groups of runs: runs that were confirmed together, with one budget, one deadline, and a
 * line in the log when they begin (Fork) and when the last has ended (Join). A group is in memory
 * while one of its runs is.
 *
 * A group has no record of its own. Each run's spec names its group, with budget and deadline;
 * the catalog's rows name the group, so that at the next start the cost of ended runs is known
 * before the others go on. Those that wait for others: blocked.c.
 *
 * The deadline counts from the first start, while avad runs: after a restart the time that the
 * newest position of its runs tells, and the time behind it, is taken off. What can fail is
 * memory. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "codec/json.h"
#include "journal/catalog.h"
#include "os/loop.h"
#include "subagent/run.h"

#define CONTENT_MAX (256u << 10)
#define ZEROS       "0000000000000000000000000000000000000000000000000000000000000000"

/* ---- life */

static struct group *group_get(struct supervisor *s, const char *id)
{
	struct group *g = strmap_get(&s->groups, id);

	if (g)
		return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->sup = s;
	snprintf(g->id, sizeof(g->id), "%s", id);
	g->size = SPEC_GROUP_MAX;
	budget_init(&g->money, BUDGET_NO_LIMIT);
	if (strmap_put(&s->groups, g->id, g) == 0)
		return g;
	free(g);
	return NULL;
}

static void group_free(struct group *g)
{
	strmap_del(&g->sup->groups, g->id);
	os_timer_free(g->timer);
	free(g->members);
	free(g);
}

static struct group_member *group_find(struct group *g, const char *run)
{
	for (unsigned i = 0; i < g->nmembers; i++)
		if (strcmp(g->members[i].id, run) == 0)
			return &g->members[i];
	return NULL;
}

static struct group_member *group_add(struct group *g, int number, const char *run,
				      const char *trace)
{
	struct group_member *m = group_find(g, run);

	if (m || (int)g->nmembers >= g->size || !ARRAY_ROOM(g->members, g->cap, g->nmembers + 1))
		return m;
	m = &g->members[g->nmembers++];
	*m = (struct group_member){0};
	m->number = number;
	snprintf(m->id, sizeof(m->id), "%s", run);
	snprintf(m->trace, sizeof(m->trace), "%s", trace);
	return m;
}

int group_enter(struct run *r)
{
	const struct spec_group *spec = &r->spec->group;
	struct group *g;

	if (!spec->id[0])
		return 0;
	g = group_get(r->sup, spec->id);
	if (!g)
		return AVA_ENOMEM;
	g->size = spec->size;
	g->chain = spec->chain;
	g->time_ms = spec->time_ms;
	if (spec->cost_microusd >= 0)
		g->money.limit = spec->cost_microusd;
	if (!ARRAY_ROOM(g->members, g->cap, (size_t)spec->size)) {
		if (g->nruns == 0)
			group_free(g);
		return AVA_ENOMEM;
	}
	if (!group_add(g, spec->index, r->id.text, r->trace.text))
		return 0; /* the group is full: a fork of one of its runs runs alone */
	g->nruns++;
	r->group = g;
	r->call.hold.group = &g->money;
	return 0;
}

void group_leave(struct run *r)
{
	struct group *g = r->group;
	struct group_member *m;

	if (!g)
		return;
	if (!r->durable && strcmp(g->members[g->nmembers - 1].id, r->id.text) == 0)
		g->nmembers--; /* the spawn failed: no member */
	if ((m = group_find(g, r->id.text)) != NULL)
		m->log = NULL;
	r->group = NULL;
	r->call.hold.group = NULL;
	if (--g->nruns == 0)
		group_free(g);
}

/* ---- references */

static const struct group_member *group_named(const struct group *g, const char *ref, size_t len)
{
	int number = 0, used = 0;
	bool is_number = sscanf(ref, "sibling:%d%n", &number, &used) == 1 && (size_t)used == len;

	for (unsigned i = 0; i < g->nmembers; i++) {
		const struct group_member *m = &g->members[i];

		if (is_number ? m->number == number
			      : strlen(m->id) == len && strncmp(m->id, ref, len) == 0)
			return m;
	}
	return NULL;
}

int group_reference(const struct run *r, const char *ref, char out[128], struct ava_error *err)
{
	const struct spec_group *own = &r->spec->group;
	const struct group *g = r->group;
	const char *call = strstr(ref, ":c");
	const struct group_member *m;
	struct call_ref at;

	if (!g || (!own->share && after_none(&own->after)))
		return err_set(err, AVA_EDENIED, "this run may not read what others have found");
	m = group_named(g, ref, call ? (size_t)(call - ref) : strlen(ref));
	if (!m)
		return err_set(err, AVA_EINVAL, "the group of this run has no %.40s", ref);
	if (!own->share && !after_has(&own->after, m->number))
		return err_set(err, AVA_EDENIED,
			       "this run may read what those before it have found, "
			       "and not %.40s",
			       ref);
	if (!call) {
		snprintf(out, 128, "runs/%s/result.json", m->id);
		return 0;
	}
	if (!call_ref_read(call + 1, &at))
		return err_set(err, AVA_EINVAL, "%.20s is no call", call + 1);
	snprintf(out, 128, "runs/%s/artifacts/c%d.%u.txt", m->id, (int)at.iteration, at.n);
	return 0;
}

/* ---- the deadline */

/* Ends all runs at work as timed out: the machine looks at its deadline first. */
static void group_time_is_up(void *user)
{
	struct group *g = user;

	g->expired = true;
	LIST_EACH (&g->sup->live, n, tmp) {
		struct run *r = LIST_ENTRY(n, struct run, node);

		if (r->group != g || r->end.abandoned)
			continue;
		r->agent.deadline_ms = clock_mono_ms();
		run_wake(r);
	}
}

void group_run_starts(struct run *r)
{
	struct group *g = r->group;
	int64_t from, used;

	if (g && g->expired)
		r->agent.deadline_ms = clock_mono_ms();
	if (!g || g->running)
		return;
	g->running = true;
	if (g->begun_wall_ms == 0)
		g->begun_wall_ms = clock_wall_ms();
	/* Time used before this process: the newest position's, and the wall time from there to
	 * the newest event. Time between two processes does not count. */
	from = g->noted_wall_ms > 0 ? g->noted_wall_ms : g->begun_wall_ms;
	used = g->noted_ms + MAX(g->seen_wall_ms - from, 0);
	g->started_ms = clock_mono_ms() - used;
	if (g->time_ms <= 0)
		return;
	g->timer = os_timer_new(g->sup->loop, group_time_is_up, g);
	if (g->timer)
		os_timer_set(g->timer, MAX(g->time_ms - used, 0));
}

int64_t group_used_ms(const struct group *g)
{
	if (g->time_ms <= 0 || !g->running)
		return 0;
	return g->waits ? g->used_ms : clock_mono_ms() - g->started_ms;
}

void group_waits(struct run *r)
{
	struct group *g = r->group;
	bool waits = g && g->running;

	LIST_EACH (&r->sup->live, n, tmp) {
		const struct run *o = LIST_ENTRY(n, struct run, node);

		waits = waits && (o->group != g || o->park.until_ms > 0 || o->blocked ||
				  pause_rests(o) || o->agent.ending);
	}
	if (!g || !g->timer || waits == g->waits)
		return;
	g->used_ms = group_used_ms(g);
	g->waits = waits;
	g->started_ms = clock_mono_ms() - g->used_ms;
	if (waits)
		os_timer_stop(g->timer);
	else
		os_timer_set(g->timer, MAX(g->time_ms - g->used_ms, 0));
}

/* ---- events of a group, in Ava's daily log */

/* Fills in the heads of the members, which are known only when Join is written. */
static void join_number(char *rest, size_t len, void *user)
{
	const struct group *g = user;
	char *at = rest, *end = rest + len;

	for (unsigned i = 0; i < g->nmembers; i++) {
		at = memmem(at, (size_t)(end - at), ",\"head\":\"", 9);
		if (!at)
			return;
		at += 9;
		if (*at == '"')
			continue;
		if (g->members[i].log)
			run_log_hex(g->members[i].log, at);
		else
			memcpy(at, g->members[i].head, HASH_HEX_LEN);
	}
}

static void group_write_in_day(struct run *r, struct draft *d, enum event_kind kind,
			       const struct buf *content)
{
	struct draft_where where = {.day = true,
				    .number = kind == EVENT_Join ? join_number : NULL,
				    .number_user = r->group};
	struct event_meta meta = EVENT_META_NONE;
	struct event_head head = {
		.kind = kind,
		.agent_id = "ava",
		.session_id = r->spec->session_id,
		.trace_id = "",
		.user_id = r->spec->user_id,
	};

	(void)draft_event(d, &where, &head, content, &meta);
}

static void group_write_event(struct run *r, struct draft *d, enum event_kind kind)
{
	struct group *g = r->group;
	struct buf b;
	struct jw w;

	buf_init(&b, CONTENT_MAX);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "groupId", g->id);
	jw_int(&w, "branchCount", g->nmembers);
	jw_array(&w, "branchIds");
	for (unsigned i = 0; i < g->nmembers; i++) {
		const struct group_member *m = &g->members[i];

		jw_object(&w, NULL);
		jw_str(&w, "subagentId", m->id);
		jw_str(&w, "traceId", m->trace);
		if (kind == EVENT_Join) {
			jw_str(&w, "status", ava_status_name(m->status));
			jw_str(&w, "head", m->log ? ZEROS : m->head);
		}
		jw_end(&w);
	}
	jw_end(&w);
	jw_end(&w);
	group_write_in_day(r, d, kind, &b);
	buf_fini(&b);
}

void group_fork(struct run *r, struct draft *d)
{
	if (r->group)
		group_write_event(r, d, EVENT_Fork);
}

/* ---- ends */

void group_run_ends(struct run *r, struct draft *d, enum ava_status status)
{
	struct group *g = r->group;
	struct group_member *m = g ? group_find(g, r->id.text) : NULL;
	unsigned ended = 0;

	if (!m)
		return;
	m->ended = true;
	m->status = status;
	m->log = &r->rec.log;
	for (unsigned i = 0; i < g->nmembers; i++)
		ended += g->members[i].ended;
	if (ended == g->nmembers)
		group_write_event(r, d, EVENT_Join);
	else
		group_waits(r); /* the remaining runs may all be parked */
}

void group_end_saved(struct run *r)
{
	struct group_member *m = r->group ? group_find(r->group, r->id.text) : NULL;

	if (!m || !m->log)
		return;
	run_log_hex(m->log, m->head);
	m->log = NULL;
}

/* ---- the next start */

int group_restore(struct supervisor *s, const struct catalog_row *row)
{
	struct group *g = row->group_id[0] ? group_get(s, row->group_id) : NULL;
	struct group_member *m;

	if (!g)
		return row->group_id[0] ? AVA_ENOMEM : 0;
	m = group_add(g, (int)row->group_index, row->id, row->trace_id);
	if (row->kind == CATALOG_SPAWN && g->begun_wall_ms == 0)
		g->begun_wall_ms = row->started_ms;
	if (row->kind != CATALOG_END || !m || m->ended)
		return 0;
	m->ended = true;
	m->status = row->status;
	g->seen_wall_ms = MAX(g->seen_wall_ms, row->ended_ms);
	g->money.spent += row->totals.cost_microusd;
	return 0;
}

void group_seen(struct run *r, int64_t wall_ms)
{
	if (r->group)
		r->group->seen_wall_ms = MAX(r->group->seen_wall_ms, wall_ms);
}

void group_noted(struct run *r, int64_t used_ms, int64_t wall_ms)
{
	struct group *g = r->group;

	if (!g || used_ms < g->noted_ms)
		return;
	g->noted_ms = used_ms;
	g->noted_wall_ms = wall_ms;
}

static void groups_forget(struct supervisor *s, bool all)
{
	struct group *g;
	size_t at = 0;

	while ((g = strmap_next(&s->groups, &at)) != NULL) {
		if (!all && g->nruns > 0)
			continue;
		group_free(g);
	}
}

void group_restored(struct supervisor *s, const char *id)
{
	if (!id)
		groups_forget(s, false);
	/* Start each clock again: the used time is known only when all runs are restored. */
	LIST_EACH (&s->live, n, tmp) {
		struct run *r = LIST_ENTRY(n, struct run, node);

		if (!r->group || (id && strcmp(r->group->id, id) != 0))
			continue;
		os_timer_free(r->group->timer);
		r->group->timer = NULL;
		r->group->running = false;
		group_run_starts(r);
	}
}

void groups_fini(struct supervisor *s)
{
	groups_forget(s, true);
	strmap_fini(&s->groups);
}
