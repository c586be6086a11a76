/* Verbs about the results of a run: they hand out files that its result names, and its patch, and
 * note that `ava apply` wrote it in the person's own process. The answer to the Ask of a patch is
 * in verbs_asks.c.
 *
 * What can fail: a run that is at work, has no such file, or whose files are gone. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/others.h"
#include "ava/patches.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "codec/json.h"
#include "codec/patch.h"
#include "tool/root.h"

/* ---- GET /runs/{id}/artifact, on a pool thread */

#define ARTIFACT_MAX (64u << 20)

static const struct arg artifact_args[] = {{"path", ARG_SAID, 0, .most = 4095}, {NULL}};

static bool changes_names(const json_t *result, const char *path)
{
	const json_t *each;
	size_t i;

	json_array_foreach(json_object_get(result, "artifacts"), i,
			   each) if (strcmp(json_str(each, "path"), path) == 0 &&
				     !json_object_get(each, "more")) return true;
	return false;
}

/* Commands of the run may have replaced a file by a link: links out of the run's folder are not
 * followed. */
static int read_artifact(int run_fd, const char *path, struct buf *out, struct ava_error *err)
{
	const struct root root = {.fd = run_fd, .cwd = "the folder of the run"};
	struct stat st;
	int fd = root_open_file(&root, path, &st, err), rv = 0;
	char *into;
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	if (st.st_size > ARTIFACT_MAX)
		rv = err_set(err, AVA_ETOOBIG, "it has over %u MB: it is to be read where it lies",
			     ARTIFACT_MAX >> 20);
	while (rv == 0 && n > 0) {
		into = buf_reserve(out, 65536);
		n = into ? read(fd, into, 65536) : 0;
		if (n < 0)
			rv = err_sys(err, "read %.300s", path);
		else if (into)
			out->len += (size_t)n;
	}
	close(fd);
	return rv;
}

static int artifact_work(struct verb_work *work, struct ava_error *err)
{
	const char *path = json_str(work->args, "path");
	int root_fd = others_root(work, NULL), run_fd, rv;
	char folder[LOGBOOK_PATH], *text = NULL;
	size_t len, n = (size_t)snprintf(folder, sizeof(folder), "runs/%s/", work->id);
	json_t *result;

	rv = ended_result(root_fd, work->id, &text, &len, err);
	if (rv != 0)
		return rv;
	result = json_parse(text, len, NULL);
	if (strncmp(path, folder, n) != 0 || !changes_names(result, path)) {
		rv = err_set(err, AVA_ENOENT, "%s leaves no such file: its result names them all",
			     work->id);
	} else {
		run_fd = openat(root_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		rv = run_fd < 0 ? err_sys(err, "%.100s", folder)
				: read_artifact(run_fd, path + n, &work->answer.b, err);
		if (run_fd >= 0)
			close(run_fd);
	}
	json_decref(result);
	free(text);
	return rv;
}

static void verb_artifact(struct verb_call *v)
{
	struct verb_work w = {.work = artifact_work, .answer.reply = v->reply};
	const char *path = "";

	if (!verb_args(v, &path))
		return;
	buf_init(&w.answer.b, ARTIFACT_MAX + 131072);
	others_work(v, v->id, &w, 0);
}

/* ---- GET /runs/{id}/patch, on a pool thread */

static int patch_work(struct verb_work *work, struct ava_error *err)
{
	struct jw *w = &work->answer.w;
	struct patch_file_text t;
	struct buf about;
	int rv = patch_text_read(others_root(work, NULL), work->id, &t, err);

	if (rv == 0) {
		jw_object(w, NULL);
		jw_str(w, "subagent_id", work->id);
		jw_str(w, "cwd", t.ended.status.cwd);
		jw_str(w, "hash", t.hash);
		buf_init(&about, 1u << 20);
		if (json_dump(&about, t.about) == 0)
			jw_raw(w, "about", about.data, about.len);
		buf_fini(&about);
		jw_strn(w, "patch", t.text, t.len);
	}
	patch_text_fini(&t);
	return rv;
}

static void verb_patch(struct verb_call *v)
{
	struct ava_error err = {0};

	if (!verb_args(v, NULL))
		return;
	if (supervisor_find(&v->core->sup, v->id)) {
		verb_fail(v->reply,
			  err_set(&err, AVA_EBUSY,
				  "%s has not ended: its changes can be had when it has (ava wait "
				  "%s)",
				  v->id, v->id),
			  &err);
		return;
	}
	others_work(v, v->id, &(struct verb_work){.work = patch_work}, 0);
}

/* ---- POST /runs/{id}/applied */

struct applied_args {
	const char *cwd, *hash, *branch, *commit;
	int64_t files, there;
};
static const struct arg applied_args[] = {
	{"cwd", ARG_SAID, offsetof(struct applied_args, cwd), .most = 4095},
	{"hash", ARG_SAID, offsetof(struct applied_args, hash), .most = HASH_HEX_LEN},
	{"files", ARG_COUNT, offsetof(struct applied_args, files), 0, PATCH_FILES_MAX},
	{"already_there", ARG_COUNT, offsetof(struct applied_args, there), 0, PATCH_FILES_MAX},
	{"branch", ARG_SAID, offsetof(struct applied_args, branch), .most = 255},
	{"commit", ARG_SAID, offsetof(struct applied_args, commit), .most = HASH_HEX_LEN},
	{NULL},
};

static void verb_applied(struct verb_call *v)
{
	struct applied_args args = {0};
	const struct patch_offer *o = patches_find(v->core, v->id);
	char session[64];
	struct ava_error err = {0};
	json_t *content;
	struct buf b;
	struct jw w;
	int rv = 0;

	if (!verb_body(v) || !verb_args(v, &args))
		return;
	if (!id_is_run(v->id) || !args.cwd || !args.hash || strlen(args.hash) != HASH_HEX_LEN)
		rv = err_set(&err, AVA_EINVAL,
			     "a run, cwd and hash (of the patch, SHA-256) must be given");
	buf_init(&b, 65536);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "customType", "applied");
	jw_object(&w, "data");
	jw_str(&w, "subagentId", v->id);
	jw_str(&w, "origin", v->caller->channel);
	jw_str(&w, "cwd", args.cwd);
	jw_str(&w, "patchHash", args.hash);
	jw_int(&w, "files", args.files);
	jw_int(&w, "alreadyThere", args.there);
	if (args.branch)
		jw_str(&w, "branch", args.branch);
	if (args.commit)
		jw_str(&w, "commit", args.commit);
	jw_end(&w);
	jw_end(&w);
	snprintf(session, sizeof(session), "%s", o ? o->session : ""); /* the offer goes */
	content = rv == 0 && buf_check(&b) == 0 ? json_parse(b.data, b.len, NULL) : NULL;
	patches_told(v->core, content);
	json_decref(content);
	verb_record(v, rv, session, &b, &err);
}

const struct verb verbs_about_changes[] = {
	{"GET", "/api/v1/runs/{id}/artifact", verb_artifact, artifact_args, .bytes = true},
	{"GET", "/api/v1/runs/{id}/patch", verb_patch, NULL, false},
	{"POST", "/api/v1/runs/{id}/applied", verb_applied, applied_args, false,
	 .where = VERB_AT_RUN},
	{NULL},
};
