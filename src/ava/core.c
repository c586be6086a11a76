/* Services for all parts of the runtime: avad.log, events of Ava's own, ids of requests, work off
 * the loop, and the check for room for new work. Nothing here calls a part; life.c opens and closes
 * them. */
#include "ava/core.h"

#include <stdlib.h>
#include <string.h>

#include "ava/job.h"
#include "ava/others.h"
#include "ava/patches.h"
#include "ava/proposal.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "cluster/cluster.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "subagent/run.h"

void core_log(struct core *c, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	if (!c->log)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	c->log(line, c->log_user);
}

/* ---- request ids */

int core_check_request(const struct core *c, const char *id, struct ava_error *err)
{
	struct buf clean;
	int found = 0;

	if (!id)
		return 0;
	if (strlen(id) > REQUEST_ID_MAX || !utf8_valid(id, strlen(id)))
		return err_set(err, AVA_EINVAL, "request_id must be UTF-8, at most %d bytes",
			       REQUEST_ID_MAX);
	buf_init(&clean, 4 * REQUEST_ID_MAX);
	if (c->redact)
		found = redact_text(c->redact, &clean, id, strlen(id));
	buf_fini(&clean);
	if (found != 0)
		return err_set(err, AVA_EDENIED, "request_id holds a key: take another one");
	return 0;
}

int core_known(const struct core *c, const char *run, struct ava_error *err)
{
	const struct reader_run *other;

	if (!id_is_run(run))
		return err_set(err, AVA_EINVAL, "%.40s is not a run id (S- and hex digits)", run);
	if (nameset_has(&c->sup.names, run))
		return 0;
	other = c->service.reader ? reader_find(c->service.reader, run) : NULL;
	if (other)
		return err_set(err, AVA_EUNSUPPORTED, OTHERS_ONLY, run, other->machine);
	return err_set(err, AVA_ENOENT, "there is no run %s (ava ps -a lists them)", run);
}

struct request *core_request(struct core *c, const char *id)
{
	return id && *id ? strmap_get(&c->requests, id) : NULL;
}

static void core_forget_request(struct core *c, struct request *r)
{
	strmap_del(&c->requests, r->id);
	list_del(&r->node);
	c->nrequests--;
	free(r);
}

void core_forget(struct core *c, const char *id)
{
	struct request *r = core_request(c, id);

	if (r)
		core_forget_request(c, r);
}

int core_remember(struct core *c, const char *id, int64_t at_ms, const char *proposal,
		  const char *run, const char *trace)
{
	int64_t now = clock_wall_ms();
	struct request *r = core_request(c, id), *oldest;

	if (!id || !*id || at_ms < now - REQUEST_AGE_MS)
		return 0;
	if (!r) {
		r = calloc(1, sizeof(*r) + strlen(id) + 1);
		if (!r)
			return AVA_ENOMEM;
		memcpy(r->id, id, strlen(id) + 1);
		if (strmap_put(&c->requests, r->id, r) != 0) {
			free(r);
			return AVA_ENOMEM;
		}
		list_add(&c->request_order, &r->node);
		c->nrequests++;
		r->lsn = journal_lsn(c->journal, 0);
	}
	r->at_ms = at_ms;
	if (*proposal)
		snprintf(r->proposal, sizeof(r->proposal), "%s", proposal);
	if (*run) {
		snprintf(r->run, sizeof(r->run), "%s", run);
		snprintf(r->trace, sizeof(r->trace), "%s", trace);
	}
	while ((oldest = LIST_FIRST(&c->request_order, struct request, node)) && oldest != r &&
	       (c->nrequests > REQUESTS_MAX || oldest->at_ms < now - REQUEST_AGE_MS))
		core_forget_request(c, oldest);
	return 0;
}

/* Quotes in memory, patches that wait, runs that may yet propose one, and answers to requests that
 * no run's row remembers. */
uint64_t core_settled(const struct core *c)
{
	uint64_t next = c->sup.took_up ? journal_lsn(c->journal, 0) : 1;

	LIST_EACH (&c->proposal_order, n, tmp)
		next = MIN(next, LIST_ENTRY(n, struct proposal, node)->lsn);
	LIST_EACH (&c->patches, n, tmp)
		next = MIN(next, LIST_ENTRY(n, struct patch_offer, node)->lsn);
	LIST_EACH (&c->sup.live, n, tmp) {
		const struct run *r = LIST_ENTRY(n, struct run, node);

		if (copying_wanted(r))
			next = MIN(next, r->rec.log.row > 0 ? r->rec.log.row : 1);
	}
	LIST_EACH (&c->request_order, n, tmp) {
		const struct request *r = LIST_ENTRY(n, struct request, node);

		if (!r->run[0] && id_is_proposal(r->proposal))
			next = MIN(next, r->lsn);
	}
	return next > 0 ? next - 1 : 0;
}

/* ---- events of Ava's own, and room for new work */

void core_event(struct core *c, struct draft *d, enum event_kind kind, const char *session_id,
		const char *user_id, struct buf *content)
{
	struct draft_where where = {.day = true};
	struct event_head head = {.kind = kind,
				  .agent_id = "ava",
				  .session_id = session_id,
				  .trace_id = "",
				  .user_id = user_id};
	struct event_meta meta = EVENT_META_NONE;

	draft_event(d, &where, &head, content, &meta);
	buf_fini(content);
}

int core_tell(struct core *c, const struct core_telling *t, struct buf *content,
	      struct ava_error *err)
{
	struct draft *d = draft_new(&c->book);
	int rv = d ? buf_check(content) : AVA_ENOMEM;

	if (rv == 0) {
		core_event(c, d, t->kind, t->session, t->user, content);
		return draft_commit(d, t->level, t->done, t->arg, err);
	}
	draft_free(d);
	buf_fini(content);
	return err_set(err, rv, "%s", ava_strerror(rv));
}

struct core_service *core_service(struct core *c)
{
	return &c->service;
}

int core_ready(struct core *c, struct ava_error *err)
{
	struct sys_room room;
	int rv = journal_ready(c->journal, err);

	if (rv == 0)
		rv = cluster_ready(c->service.cluster, err);
	if (rv != 0)
		return rv;
	if (sys_room(c->root_fd, &room) != 0 || c->settings.disk_free_min_mb == 0)
		return 0;
	if (room.mb < (uint64_t)c->settings.disk_free_min_mb)
		return err_set(
			err, AVA_EFULL,
			"only %llu MB are free under %s and new work needs %lld: make room, or "
			"lower disk.free_min_mb (AVA_DISK_FREE_MIN_MB)",
			(unsigned long long)room.mb, c->root,
			(long long)c->settings.disk_free_min_mb);
	if (room.inodes < room.few_inodes)
		return err_set(err, AVA_EFULL,
			       "only %llu more files can be made on the disk of %s (df -i): remove "
			       "some, new work needs them",
			       (unsigned long long)room.inodes, c->root);
	return 0;
}

/* ---- work off the loop */

static void core_job_work(struct os_work *w)
{
	struct job *j = w->priv;

	j->run(j);
}

static void core_job_done(struct os_work *w)
{
	struct job *j = w->priv;

	j->core->jobs.n--;
	j->done(j);
}

int job_begin(struct core *c, struct job *j, struct ava_error *err)
{
	if (!c->jobs.stopping && c->jobs.n >= JOBS_MAX)
		return err_set(err, AVA_EBUSY, "%d records are being read: ask again", JOBS_MAX);
	return job_begin_short(c, j, err);
}

int job_begin_short(struct core *c, struct job *j, struct ava_error *err)
{
	if (c->jobs.stopping)
		return err_set(err, AVA_EBUSY, "the runtime stops");
	c->jobs.n++;
	j->core = c;
	j->work = (struct os_work){.work = core_job_work, .done = core_job_done, .priv = j};
	os_work_start(c->loop, &j->work);
	return 0;
}

void jobs_end(struct core *c)
{
	c->jobs.stopping = true;
	while (c->jobs.n > 0)
		os_loop_step(c->loop, 50);
}
