/* A run ends once. Open calls are closed (an InferEnd for a model call that was cut, a
 * result for each tool call), then the claims of the result are checked against the
 * conversation on a pool thread, and everything of the end goes in one commit: Exhausted, Error,
 * result.json, SubagentComplete in both logs, the catalog's end row. A crash before that commit
 * leaves a run that did not end; after it, one that did. There is nothing between. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/envelope.h"
#include "agent/limit.h"
#include "agent/position.h"
#include "agent/tool.h"
#include "base/clock.h"
#include "base/sys.h"
#include "base/util.h"
#include "base/words.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "event/event.h"
#include "provider/dialect.h"
#include "provider/messages.h"
#include "subagent/evidence.h"
#include "subagent/proof.h"
#include "subagent/record.h"
#include "subagent/rights.h"
#include "subagent/run.h"

#define LOG_MAX       ((size_t)256 << 20)
#define TOOLS_WAIT_MS 5000 /* longest wait for tools, as one may hang in the disk */

struct end_job {
	struct os_work work;
	struct run *run;
	struct arena mem;
	struct agent_end end; /* strings in `mem` */
	struct evidence evidence;
	struct run_changes *changes; /* changes in the copy of the project; NULL: no copy */
	struct buf artifacts;        /* kept files as JSON; empty: none */
	int64_t needs;          /* of the limit that ended it, for its first call; 0: unknown */
	bool waits;             /* stopped tools are still at work */
	struct os_timer *timer; /* bounds that wait: TOOLS_WAIT_MS */
};

static void ending_free(struct run *r)
{
	if (!r->end.job)
		return;
	os_timer_free(r->end.job->timer);
	buf_fini(&r->end.job->evidence.citations);
	copying_free(r->end.job->changes);
	buf_fini(&r->end.job->artifacts);
	arena_fini(&r->end.job->mem);
	free(r->end.job);
	r->end.job = NULL;
}

/* ---- closing open calls */

void ending_close(struct run *r, struct draft *d, const char *stop_reason)
{
	struct turn *t = r->agent.turn;
	struct buf line;

	pause_close(r, d);
	person_close(r, d);
	for (unsigned i = 0; t && r->rec.turn_open && i < t->ncalls; i++) {
		if (!t->calls[i].recorded)
			record_tool_result(d, r, &t->calls[i]);
		t->calls[i].recorded = true;
	}
	if (t && r->rec.turn_open) { /* the conversation stays valid for a fork or a resume */
		buf_init(&line, 32u << 20);
		if (r->spec->model->dialect->encode_results(&line, t, NULL, 0) == 0)
			commit_lines(r, line.data, line.len);
		buf_fini(&line);
		r->rec.turn_open = false;
	}
	infer_close_cut(r, d, r->end.interrupted ? "interrupted" : "cancelled", stop_reason);
	money_settle(r);
}

/* ---- result.json: written in the commit that ends the run, so it is there exactly
 * when the run has ended. Cost is null when a price was unknown. */

/* The first caveat: the run looked nothing up, or had no money for a call (*needed). NULL: no such
 * caveat. */
static const char *looked_at_nothing(const struct run *r, const struct agent_end *end,
				     int64_t *needed, struct ava_error *why)
{
	const struct agent_spec *s = &r->spec->agent;

	if (r->agent.at.totals.calls == 0 && end->exhausted != NULL &&
	    spec_pays(r->spec, r->agent.at.new_bytes, needed, why) != 0)
		return why->text;
	if ((end->status != AVA_SUCCESS && end->status != AVA_NO_RESULT) || !limit_can_look(s))
		return NULL;
	for (unsigned i = 0; i < s->ntools; i++)
		if (r->tools.counts[i] > 0 && !(s->tools[i]->flags & TOOL_ENDS))
			return NULL;
	return r->agent.at.totals.tool_calls <= (strcmp(end->stop_reason, "submitted") == 0)
		       ? "no tool was called: nothing of this was looked up"
		       : "no call of a tool succeeded: nothing of this was looked up";
}

/* The model's caveats and the runtime's: looked_at_nothing first, the others last. */
static void result_caveats(struct jw *w, const struct run *r, const struct agent_end *end,
			   const json_t *changed)
{
	const char *own = end->caveats ? end->caveats : "[]";
	const char *no_patch = copying_failed(r->end.job->changes);
	json_t *list = json_parse(own, strlen(own), NULL);
	struct ava_error why = {0};
	int64_t needed = 0;
	const char *first = looked_at_nothing(r, end, &needed, &why);
	size_t n = json_array_size(list);
	struct buf all;

	if (first)
		json_array_insert_new(list, 0, json_string(first));
	if (r->call.first_model)
		json_array_append_new(list,
				      json_sprintf("%s did not answer: %s went on in its place",
						   r->call.first_model, r->spec->model->id));
	if (r->call.doubt)
		json_array_append_new(list, json_string(r->call.doubt));
	proof_caveats(r->spec->agent.check, r->proof,
		      end->status == AVA_SUCCESS || end->status == AVA_UNPROVEN, changed, list);
	if (no_patch)
		json_array_append_new(
			list, json_sprintf("its changes could not be made into a patch (%s): they "
					   "stand in " COPY_TREE " of the data root",
					   no_patch, r->id.text));
	buf_init(&all, 1u << 20);
	if (json_array_size(list) > n && json_dump(&all, list) == 0)
		jw_raw(w, "caveats", all.data, all.len);
	else
		jw_raw(w, "caveats", own, strlen(own));
	buf_fini(&all);
	json_decref(list);
	r->end.job->needs = needed;
	if (needed > 0)
		jw_fixed(w, "needs", needed, words_limit(ava_status_name(end->status))->decimals);
}

static int result_encode(struct buf *out, const struct run *r, const struct agent_end *end,
			 const struct evidence *e)
{
	const struct buf *artifacts = &r->end.job->artifacts;
	const struct agent_totals *t = &r->agent.at.totals;
	json_t *changed = copying_paths(r->end.job->changes);
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "subagent_id", r->id.text);
	jw_str(&w, "status", ava_status_name(end->status));
	jw_str(&w, "stop_reason", end->stop_reason);
	jw_str(&w, "summary", end->summary ? end->summary : "");
	if (end->output)
		jw_raw(&w, "output", end->output, end->output_len);
	else
		jw_null(&w, "output");
	jw_fixed(&w, "confidence", (int64_t)lround(end->confidence * 1000), 3);
	result_caveats(&w, r, end, changed);
	jw_str(&w, "error", end->error);
	jw_int(&w, "tokens_used", t->input + t->output);
	if (run_cost(r) < 0)
		jw_null(&w, "cost_cents");
	else
		jw_fixed(&w, "cost_cents", run_cost(r), 4);
	if (run_estimated(r) > 0)
		jw_bool(&w, "estimated", true);
	jw_fixed(&w, "duration_seconds", run_elapsed_ms(r), 3);
	jw_int(&w, "iterations", r->agent.at.iteration);
	jw_str(&w, "model", r->spec->model->id);
	jw_str(&w, "trace_id", r->trace.text);
	if (buf_check(&e->citations) == 0 && e->citations.len)
		jw_raw(&w, "citations", e->citations.data, e->citations.len);
	else
		jw_raw(&w, "citations", "[]", 2);
	jw_object(&w, "evidence");
	jw_object(&w, "tools");
	for (unsigned i = 0; i < r->spec->agent.ntools; i++)
		if (r->tools.counts[i])
			jw_int(&w, r->spec->tools[i]->name, r->tools.counts[i]);
	jw_end(&w);
	jw_int(&w, "bytes_read", r->tools.bytes_read);
	jw_int(&w, "citations_checked", e->checked);
	jw_int(&w, "citations_failed", e->failed);
	jw_end(&w);
	jw_bool(&w, "partial", end->partial);
	jw_bool(&w, "unverified", end->unverified);
	rights_write(&w, "rights", r->spec->rights);
	if (artifacts->len > 0 && buf_check(artifacts) == 0)
		jw_raw(&w, "artifacts", artifacts->data, artifacts->len);
	else
		jw_raw(&w, "artifacts", "[]", 2);
	copying_result(r, r->end.job->changes, &w);
	proof_result(&w, r->spec->agent.check, r->proof, end->status == AVA_SUCCESS, changed);
	json_decref(changed);
	blocked_write(r, &w);
	if (r->spec->group.name[0])
		jw_str(&w, "name", r->spec->group.name);
	jw_end(&w);
	buf_addc(out, '\n');
	return buf_check(out);
}

/* ---- the last commit */

static void ending_ended(int rv, void *user)
{
	struct run *r = user;

	size_t files = r->end.job ? copying_files(r->end.job->changes) : 0;

	if (rv == 0 && files > 0 && r->sup->on_patch)
		r->sup->on_patch(r, files, r->sup->session_user);
	if (r->end.job)
		copying_remove(r, r->end.job->changes);
	blocked_end_saved(r);
	world_saved(rv, r);
}

/* A sentence for people when the model left none. */
static const char *default_summary(struct end_job *j)
{
	const struct agent_totals *t = &j->run->agent.at.totals;
	int replies = t->calls - t->failed_calls - j->run->call.stopped;
	const struct agent_end *e = &j->end;
	const struct words_limit *l = words_limit(ava_status_name(e->status));

	if (e->error)
		return e->error;
	if (l)
		return arena_fmt(&j->mem,
				 WORDS_LIMIT_SUMMARY(
					 l->what, words_amount(WORDS_LIMIT_REPLIES, replies).text));
	return e->status == AVA_CANCELLED ? WORDS_CANCELLED_SUMMARY : WORDS_NO_SUMMARY;
}

static void ending_commit(void *user)
{
	struct run *r = user;
	struct end_job *j = r->end.job;
	struct draft *d = commit_draft(r);
	struct buf result;
	char path[LOGBOOK_PATH], hash[HASH_HEX_LEN + 1] = "";
	struct buf *b;
	int rv;

	if (!j->end.summary || !*j->end.summary)
		j->end.summary = default_summary(j);
	r->end.wall_ms = clock_wall_ms();
	r->end.used_ms = agent_used_ms(&r->agent, clock_mono_ms());
	if (d) {
		copying_put(r, d, j->changes);
		buf_init(&result, 16u << 20);
		rv = result_encode(&result, r, &j->end, &j->evidence);
		if (rv == 0) {
			logbook_result_path(r->id.text, path);
			b = draft_part(d, DRAFT_PUT, path);
			if (b)
				buf_add(b, result.data, result.len);
			hash_sha256_hex(result.data, result.len, hash);
		} else if (rv == AVA_ENOMEM) {
			d->failed = true; /* a run must not end without result.json */
		}
		buf_fini(&result);
		record_complete(d, r,
				&(struct record_end){.status = j->end.status,
						     .stop_reason = j->end.stop_reason,
						     .summary = j->end.summary,
						     .result_hash = hash,
						     .error = j->end.error,
						     .error_class = j->end.error_class,
						     .needs = j->needs,
						     .files = copying_files(j->changes),
						     .citations = j->evidence.checked,
						     .not_found = j->evidence.failed});
		record_session_end(d, r, j->end.status, j->end.summary);
		group_run_ends(r, d, j->end.status);
		logbook_run_path(r->id.text, path);
		draft_part(d, DRAFT_DROP, path);
		run_messages_path(r, path);
		draft_part(d, DRAFT_DROP, path);
	}
	r->end.begun = true;
	commit_flush(r, JOURNAL_NOW, ending_ended);
}

/* ---- checking the claims of the result */

static void check_claims(struct end_job *j, const char *file, size_t len)
{
	struct buf body;

	buf_init(&body, 256u << 20);
	if (messages_said(&body, file, len, NULL) == 0)
		evidence_collect(&j->evidence, j->run->spec->model->dialect,
				 body.data ? body.data : "", body.len, j->end.output,
				 j->end.output_len, j->end.summary);
	buf_fini(&body);
}

/* The text of the newest reply in the log (a preview, redacted), for an end without a summary: a
 * limit or a cancel during a call finds no reply in memory. Nothing when the log cannot be read.
 * Blocks on the disk. */
static void last_words(int root_fd, const char *run, struct buf *out)
{
	char path[LOGBOOK_PATH], *data = NULL;
	size_t len = 0, at = 0, n;
	const char *line;

	logbook_run_path(run, path);
	if (logbook_read(root_fd, path, LOG_MAX, &data, &len, NULL) != 0)
		return;
	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		struct event_view v;
		json_t *content;
		const char *text;

		if (event_view(line, n, &v) != 0 || v.kind != EVENT_InferEnd)
			continue;
		content = json_parse(v.content.s, v.content.len, NULL);
		text = json_get_str(content, "responsePreview");
		if (text && *text) {
			buf_reset(out);
			buf_adds(out, text);
		}
		json_decref(content);
	}
	free(data);
}

/* ---- The files that a run leaves, as its result names them: outputs of its tools that were kept
 * (runs/S-…/artifacts) and files that commands wrote into its work folder (runs/S-…/work). By
 * pointer: path below the data root, bytes, type; the bytes stay where they are.
 *
 * The work folder is a stranger's: no link, device or FIFO in it is followed, a file's type is
 * what its first bytes say, names are made text, and the list is bounded. Files that cannot be
 * opened are left out. Pool thread. */
#define ARTIFACTS_MAX 200   /* files in a list */
#define LOOKED_MAX    10000 /* entries of work folders that are looked at */
#define DEPTH_MAX     16
#define HEAD_BYTES    512 /* read of a file, for its type */

struct artifacts_listing {
	const struct redact *redact;
	struct jw w;
	unsigned listed, looked;
};

static const char *type_of(const char *head, size_t len)
{
	static const struct {
		const char *magic;
		size_t len;
		const char *type;
	} types[] = {
		{"\x89PNG\r\n\x1a\n", 8, "image/png"},
		{"\xff\xd8\xff", 3, "image/jpeg"},
		{"GIF8", 4, "image/gif"},
		{"%PDF-", 5, "application/pdf"},
		{"PK\x03\x04", 4, "application/zip"},
		{"\x1f\x8b", 2, "application/gzip"},
	};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (len >= types[i].len && memcmp(head, types[i].magic, types[i].len) == 0)
			return types[i].type;
	if (len >= 12 && memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WEBP", 4) == 0)
		return "image/webp";
	/* A character may be cut at the end. */
	for (size_t cut = 0; cut < 4 && cut <= len; cut++)
		if (!memchr(head, 0, len) && utf8_valid(head, len - cut))
			return "text/plain";
	return "application/octet-stream";
}

/* false: the list is full. */
static bool artifacts_add_file(struct artifacts_listing *l, int dir, const char *name,
			       const char *path)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	char head[HEAD_BYTES];
	struct buf text, clean;
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return true;
	n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? pread(fd, head, sizeof(head), 0) : -1;
	close(fd);
	if (n < 0)
		return true;
	if (l->listed++ == ARTIFACTS_MAX)
		return false;
	buf_init(&text, 64u << 10);
	buf_init(&clean, 64u << 10);
	jw_object(&l->w, NULL);
	if (utf8_repair(&text, path, strlen(path)) == 0 &&
	    redact_text(l->redact, &clean, text.data, text.len) >= 0)
		jw_strn(&l->w, "path", clean.data, clean.len);
	jw_int(&l->w, "bytes", st.st_size);
	jw_str(&l->w, "type", type_of(head, (size_t)n));
	jw_end(&l->w);
	buf_fini(&text);
	buf_fini(&clean);
	return true;
}

static int artifacts_by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Hidden names (.cache) are a program's own files, no result. */
static int artifacts_is_shown(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* `fd` is *taken*; `path` has room for PATH_MAX. */
static bool add_folder(struct artifacts_listing *l, int fd, char *path, int depth)
{
	size_t len = strlen(path);
	struct dirent **names = NULL;
	int n = fd >= 0 ? scandirat(fd, ".", &names, artifacts_is_shown, artifacts_by_name) : 0;
	bool room = true;

	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		struct stat st;

		if (!room || l->looked++ >= LOOKED_MAX ||
		    fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    len + strlen(name) + 2 > PATH_MAX)
			continue;
		path[len] = '/';
		memcpy(path + len + 1, name, strlen(name) + 1);
		if (S_ISREG(st.st_mode))
			room = artifacts_add_file(l, fd, name, path);
		else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			room = add_folder(
				l,
				openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
				path, depth + 1);
		path[len] = 0;
	}
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	if (fd >= 0)
		close(fd);
	return room;
}

/* [{"path","bytes","type"},…], at the end {"path":work,"more":true} where there are more; paths
 * are below the data root. `kept`: JSON strings joined by commas; `work`: the run's folder,
 * which need not be there. */
static void artifacts_list(struct buf *out, int root_fd, const struct redact *redact,
			   const char *kept, const char *work)
{
	struct artifacts_listing l = {.redact = redact};
	char path[PATH_MAX];
	json_t *list, *v;
	struct buf all;
	size_t i;

	buf_init(&all, 1u << 20);
	buf_addf(&all, "[%s]", kept);
	list = json_parse(all.data ? all.data : "", all.len, NULL);
	jw_init(&l.w, out);
	jw_array(&l.w, NULL);
	json_array_foreach(list, i, v)
		artifacts_add_file(&l, root_fd, json_string_value(v), json_string_value(v));
	snprintf(path, sizeof(path), "%s", work);
	if (!add_folder(&l, openat(root_fd, work, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
			path, 0)) {
		jw_object(&l.w, NULL);
		jw_str(&l.w, "path", work);
		jw_bool(&l.w, "more", true);
		jw_end(&l.w);
	}
	jw_end(&l.w);
	json_decref(list);
	buf_fini(&all);
}

/* Does the run leave files: artifacts or a folder of commands? Its path in `work`. */
static bool has_files(const struct run *r, char work[LOGBOOK_PATH])
{
	struct stat st;

	snprintf(work, LOGBOOK_PATH, RUN_WORK, r->id.text);
	return r->tools.artifacts.len > 0 ||
	       sys->fstatat(r->rec.outbox.lb->root_fd, work, &st, 0) == 0;
}

static void check_work(struct os_work *w)
{
	struct end_job *j = w->priv;
	struct run *r = j->run;
	struct buf body;
	char *file = NULL, work[LOGBOOK_PATH];
	size_t len, from = 0;

	if (!j->end.summary || !*j->end.summary) {
		buf_init(&body, EVENT_PREVIEW_CHARS * 4 + 1);
		last_words(r->rec.outbox.lb->root_fd, r->id.text, &body);
		if (j->end.status != AVA_SUCCESS && body.len > 0)
			j->end.partial = true;
		if (body.len > 0)
			j->end.summary = arena_copy(&j->mem, body.data, body.len);
		buf_fini(&body);
	}
	if (run_messages_read(r, &from, &file, &len, NULL) == 0)
		check_claims(j, file, len);
	free(file);
	if (copying_wanted(r))
		j->changes = copying_look(r);
	if (has_files(r, work))
		artifacts_list(&j->artifacts, r->rec.outbox.lb->root_fd, r->rec.outbox.lb->redact,
			       r->tools.artifacts.len ? r->tools.artifacts.data : "", work);
}

/* Checks without a thread; false: files must be read from the disk. */
static bool check_at_once(struct end_job *j)
{
	struct run *r = j->run;
	char file[RUN_AT_ONCE_MAX], work[LOGBOOK_PATH];
	ssize_t len;

	if (!j->end.summary || !*j->end.summary || copying_wanted(r) || has_files(r, work))
		return false;
	len = run_messages_cached(r, file);
	if (len < 0)
		return false;
	check_claims(j, file, (size_t)len);
	return true;
}

static void check_done(struct os_work *w)
{
	struct end_job *j = w->priv;

	j->run->busy--;
	if (!j->run->end.abandoned)
		ending_commit(j->run);
}

static void check_start(void *user)
{
	struct run *r = user;
	struct end_job *j = r->end.job;

	if (check_at_once(j)) {

		ending_commit(r);
		return;
	}
	r->busy++;
	j->work = (struct os_work){
		.work = check_work, .done = check_done, .priv = j, .order = r->rec.log.row};
	os_work_start(r->sup->loop, &j->work);
}

/* ---- start */

typedef int (*redact_fn)(const struct redact *, struct buf *, const char *, size_t);

/* A copy without secrets; `left_out` where the text cannot be looked through. */
static const char *keep_as(struct end_job *j, const char *s, redact_fn clean_up,
			   const char *left_out)
{
	const char *copy;
	struct buf clean;

	if (!s)
		return NULL;
	buf_init(&clean, 64u << 20);
	if (clean_up(j->run->rec.outbox.lb->redact, &clean, s, strlen(s)) >= 0)
		left_out = clean.data ? clean.data : "";
	copy = arena_copy(&j->mem, left_out, strlen(left_out));
	buf_fini(&clean);
	return copy;
}

static const char *ending_keep(struct end_job *j, const char *s)
{
	return keep_as(j, s, redact_text, "(left out: too large to look for secrets)");
}

static struct end_job *job_new(struct run *r, const struct agent_end *e)
{
	struct end_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->run = r;
	arena_init(&j->mem, 32u << 20);
	buf_init(&j->artifacts, 1u << 20);
	j->end = *e;
	j->end.stop_reason = ending_keep(j, e->stop_reason);
	j->end.exhausted = ending_keep(j, e->exhausted);
	j->end.error = ending_keep(j, e->error);
	j->end.error_class = ending_keep(j, e->error_class);
	j->end.summary = ending_keep(j, e->summary);
	j->end.output = keep_as(j, e->output, redact_json, "null");
	j->end.output_len = j->end.output ? strlen(j->end.output) : 0;
	j->end.caveats = keep_as(j, e->caveats, redact_json, "[]");
	return j;
}

/* The check begins when the outbox is empty: then the conversation is complete on disk. */
static void ending_written(struct run *r)
{
	outbox_drain(&r->rec.outbox, check_start, r);
}

static void tools_late(void *user)
{
	struct run *r = user;

	r->end.job->waits = false;
	ending_written(r);
}

static void ending_tools_done(struct run *r)
{
	if (r->end.job && r->end.job->waits && !r->end.abandoned) {
		os_timer_stop(r->end.job->timer);
		tools_late(r);
	}
}

void ending_begin(struct run *r, struct draft *d, const struct agent_end *e)
{
	ending_close(r, d, e->stop_reason);
	if (e->exhausted)
		record_exhausted(d, r, e->exhausted);
	if (e->error_class)
		record_error(d, r, e->error_class, e->error ? e->error : e->error_class);
}

void ending_start(struct agent *a, const struct agent_end *e)
{
	struct run *r = a->world;
	struct draft *d = commit_draft(r);
	struct end_job *j = job_new(r, e);

	r->end.job = j;
	r->end.tools_done = ending_tools_done;
	r->end.free = ending_free;
	if (!j || !d) { /* without memory the next start ends the run as interrupted */
		r->end.abandoned = true;
		slots_out_of_memory(r);
		ending_free(r);
		return;
	}
	ending_begin(r, d, e);
	/* A run ends when no tool is at work any more. The draft waits with it: closed calls
	 * committed before the end would be half an end for a start in between. */
	if (r->tools.running > 0) {
		j->waits = true;
		j->timer = os_timer_new(r->sup->loop, tools_late, r);
		if (j->timer)
			os_timer_set(j->timer, TOOLS_WAIT_MS);
		return;
	}
	ending_written(r);
}

/* ---- Claims are listed first, then every tool result is searched once, line by line. A claim
 * is good when a line of its path and number is there and holds its quote, or, for a URL, when
 * a block of that URL holds the quote. Other claims are left out and counted. */

#define PATH_MAX_CHARS  512
#define URL_MAX_CHARS   4096
#define QUOTE_MAX_CHARS 400

struct claim {
	char *path, *quote; /* quote NULL: the line alone is claimed */
	bool is_url, good;
	int64_t line;
};

struct claims {
	struct claim all[EVIDENCE_MAX_CITATIONS];
	unsigned n;
};

static void claim_add(struct claims *c, const char *path, size_t path_len, int64_t line,
		      const char *quote, bool is_url)
{
	struct claim *k;

	if (c->n == EVIDENCE_MAX_CITATIONS || path_len == 0 ||
	    path_len > (is_url ? URL_MAX_CHARS : PATH_MAX_CHARS))
		return;
	for (unsigned i = 0; i < c->n; i++)
		if (c->all[i].line == line && strncmp(c->all[i].path, path, path_len) == 0 &&
		    c->all[i].path[path_len] == 0 &&
		    (!quote || (c->all[i].quote && strcmp(quote, c->all[i].quote) == 0)))
			return;
	k = &c->all[c->n];
	*k = (struct claim){.line = line, .is_url = is_url};
	k->path = strndup(path, path_len);
	k->quote = quote && *quote ? strdup(quote) : NULL;
	if (k->path && (!is_url || k->quote))
		c->n++;
	else
		free(k->path);
}

static void claims_from_json(struct claims *c, const json_t *v, int depth)
{
	const char *path = json_get_str(v, "path"), *url = json_get_str(v, "url");
	const char *quote = json_get_str(v, "quote"), *key;
	int64_t line = json_get_int(v, "line", 0);
	const json_t *child;
	size_t i;

	if (depth > 16)
		return;
	if (path && line > 0)
		claim_add(c, path, strlen(path), line, quote, false);
	else if (url && quote && *quote)
		claim_add(c, url, strlen(url), 0, quote, true);
	json_object_foreach((json_t *)v, key, child) claims_from_json(c, child, depth + 1);
	json_array_foreach(v, i, child) claims_from_json(c, child, depth + 1);
}

/* "see src/a.c:12 and …": a path with a dot or slash, a colon, a number; not the port of a URL. */
static void claims_from_text(struct claims *c, const char *s)
{
	for (const char *colon = strchr(s, ':'); colon; colon = strchr(colon + 1, ':')) {
		const char *start = colon;
		char *end;
		long line;

		if (!isdigit((unsigned char)colon[1]))
			continue;
		while (start > s &&
		       (isalnum((unsigned char)start[-1]) || strchr("._-/+@", start[-1])))
			start--;
		line = strtol(colon + 1, &end, 10);
		if (start == colon || line <= 0 || line > 100000000 || strncmp(start, "//", 2) == 0)
			continue;
		if (memchr(start, '.', (size_t)(colon - start)) ||
		    memchr(start, '/', (size_t)(colon - start)))
			claim_add(c, start, (size_t)(colon - start), line, NULL, false);
	}
}

/* Does `text`, the content of the claimed line, hold the quote? A claim without one gets it. */
static bool shows(struct claim *k, const char *text, size_t len)
{
	const char *q = k->quote;
	size_t qlen;

	if (!q) {
		k->quote = strndup(text, MIN(len, (size_t)QUOTE_MAX_CHARS));
		return true;
	}
	q += strspn(q, " \t");
	qlen = strlen(q);
	while (qlen && isspace((unsigned char)q[qlen - 1]))
		qlen--;
	return qlen > 0 && memmem(text, len, q, qlen);
}

/* "path:LINE:text" of searches. */
static void match_search_line(struct claims *c, const char *line, size_t len)
{
	for (unsigned i = 0; i < c->n; i++) {
		struct claim *k = &c->all[i];
		size_t plen = strlen(k->path);
		char number[24];
		int n;

		if (k->good || k->is_url || len <= plen + 2 || memcmp(line, k->path, plen) != 0)
			continue;
		n = snprintf(number, sizeof(number), ":%lld:", (long long)k->line);
		if (len >= plen + (size_t)n && memcmp(line + plen, number, (size_t)n) == 0)
			k->good = shows(k, line + plen + n, len - plen - (size_t)n);
	}
}

/* "LINE\ttext" under the header "path (lines A-B of N)" of read_file. */
static void match_read_line(struct claims *c, const char *path, size_t plen, const char *line,
			    size_t len)
{
	const char *tab = memchr(line, '\t', MIN(len, (size_t)12));
	long number;

	if (!tab)
		return;
	number = strtol(line, NULL, 10);
	for (unsigned i = 0; i < c->n; i++) {
		struct claim *k = &c->all[i];

		if (!k->good && !k->is_url && k->line == number && strlen(k->path) == plen &&
		    memcmp(k->path, path, plen) == 0)
			k->good = shows(k, tab + 1, len - (size_t)(tab + 1 - line));
	}
}

static size_t skip_number(const char *line, size_t len)
{
	size_t n = 0;

	while (n < len && isdigit((unsigned char)line[n]))
		n++;
	return n > 0 && n < len && line[n] == '\t' ? n + 1 : 0;
}

/* Text as a reader sees it: without Markdown's escapes, and with one blank for each run of blanks,
 * since lines are wrapped where the page's were not. */
static size_t as_read(char *to, const char *s, size_t len)
{
	size_t n = 0;

	len = envelope_unescape(to, s, len);
	for (size_t i = 0; i < len; i++) {
		bool blank = isspace((unsigned char)to[i]);

		if (blank && (n == 0 || to[n - 1] == ' '))
			continue;
		to[n++] = blank ? ' ' : to[i];
	}
	return n > 0 && to[n - 1] == ' ' ? n - 1 : n;
}

/* Is the block of this page? A block has two URLs when the page came from another one than was
 * asked for. A fragment (#…) of `url` does not count. */
static bool is_of(const struct envelope *e, const char *url)
{
	size_t n = strcspn(url, "#");

	for (const char *at = e->url, *end = e->url + e->url_len; at < end; at++) {
		const char *stop = memchr(at, ' ', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at);

		if (len == n && memcmp(at, url, n) == 0)
			return true;
		if (len == n + 1 && at[n] == '/' && memcmp(at, url, n) == 0 &&
		    !memchr(url + strlen("https://"), '/', n - MIN(n, strlen("https://"))))
			return true; /* a URL of a bare host may end in a slash */
		at += len;
	}
	return false;
}

/* Looks for quotes of a page or a search result in the block of its URL. */
static int match_block(struct claims *c, const struct envelope *e)
{
	char *text = NULL, quote[QUOTE_MAX_CHARS * 4];
	size_t len = 0, n;

	for (unsigned i = 0; i < c->n; i++) {
		struct claim *k = &c->all[i];

		if (k->good || !k->is_url || strlen(k->quote) > sizeof(quote) || !is_of(e, k->path))
			continue;
		if (!text) {
			text = malloc(e->text_len + 1);
			if (!text)
				return AVA_ENOMEM;
			len = as_read(text, e->text, e->text_len);
		}
		n = as_read(quote, k->quote, strlen(k->quote));
		k->good = n > 0 && memmem(text, len, quote, n);
	}
	free(text);
	return 0;
}

static int match_result(size_t index, const char *text, size_t len, bool is_error, void *user)
{
	struct claims *c = user;
	const char *end = text + len, *header = NULL;
	const char *first_end = memchr(text, '\n', len);
	/* An output of read_result has numbers of its own before the lines. */
	bool again = len > 11 && jscan_begins(text, len, "result of c") &&
		     isdigit((unsigned char)text[11]);
	bool web = false;
	size_t plen = 0, at = 0;
	struct envelope e;

	if (is_error)
		return 0;
	while (envelope_next(text, len, &at, &e)) {
		web = true;
		if (match_block(c, &e) != 0)
			return AVA_ENOMEM;
	}
	if (web) /* lines of a page are no lines of a file */
		return 0;
	if (first_end && !again) {
		header = memmem(text, (size_t)(first_end - text), " (lines ", 8);
		plen = header ? (size_t)(header - text) : 0;
	}
	for (const char *line = text; line < end;) {
		const char *nl = memchr(line, '\n', (size_t)(end - line));
		size_t n = (size_t)((nl ? nl : end) - line);
		size_t skip = again ? skip_number(line, n) : 0;

		if (header)
			match_read_line(c, text, plen, line, n);
		match_search_line(c, line + skip, n - skip);
		line += n + 1;
	}
	return 0;
}

int evidence_collect(struct evidence *e, const struct dialect *d, const char *lines,
		     size_t lines_len, const char *output, size_t output_len, const char *summary)
{
	struct claims *c = calloc(1, sizeof(*c));
	json_t *v;
	struct jw w;

	*e = (struct evidence){0};
	buf_init(&e->citations, 1u << 20);
	if (!c)
		return AVA_ENOMEM;
	v = output ? json_parse(output, output_len, NULL) : NULL;
	if (v)
		claims_from_json(c, v, 0);
	json_decref(v);
	if (summary)
		claims_from_text(c, summary);
	if (c->n > 0)
		(void)d->results(lines, lines_len, match_result, c, NULL);
	jw_init(&w, &e->citations);
	jw_array(&w, NULL);
	for (unsigned i = 0; i < c->n; i++) {
		const struct claim *k = &c->all[i];

		e->checked++;
		if (!k->good) {
			e->failed++;
			continue;
		}
		jw_object(&w, NULL);
		jw_str(&w, k->is_url ? "url" : "path", k->path);
		if (!k->is_url)
			jw_int(&w, "line", k->line);
		jw_str(&w, "quote", k->quote ? k->quote : "");
		jw_end(&w);
	}
	jw_end(&w);
	for (unsigned i = 0; i < c->n; i++) {
		free(c->all[i].path);
		free(c->all[i].quote);
	}
	free(c);
	return buf_check(&e->citations);
}
