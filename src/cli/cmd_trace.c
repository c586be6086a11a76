/* ava trace S-id|NAME: what a run did, as a tree or as one JSON object
 * (traceId, parentId, startTime, endTime, events). From the files alone.
 *
 * A name is looked up in the catalog. Broken lines are named on stderr and
 * make the command end with 1; the rest is still shown. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "cli/cli.h"
#include "cli/root.h"
#include "cli/term.h"
#include "cli/tracetree.h"
#include "codec/json.h"
#include "journal/read.h"

static struct {
	bool json;
} o;

static const struct opt opts[] = {
	{.name = "json",
	 .type = OPT_FLAG,
	 .help = "the trace as one JSON object",
	 .field = offsetof(__typeof__(o), json)},
};

static bool looks_like_name(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && len < sizeof(((struct trace_name *)0)->text) && s[0] != '-' &&
	       strchr(s, '-') != NULL && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static int find_run(const char *root, const char *name, struct run_id *run, struct ava_error *err)
{
	int fd, rv;

	if (id_is_run(name)) {
		snprintf(run->text, sizeof(run->text), "%s", name);
		return 0;
	}
	if (!looks_like_name(name))
		return err_set(err, AVA_EINVAL,
			       "\"%.60s\" is neither the id of a run (S-7f3a2b) nor the name of a "
			       "trace (brave-otter)",
			       name);
	fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "data root %s", root);
	rv = read_find_trace(fd, name, run, err);
	close(fd);
	return rv;
}

/* Every event to `each`; broken lines are told. 0 or a code. */
static int each_event(const struct ava_log_query *q, bool *broken,
		      int (*each)(const struct ava_log_event *e, void *user, struct ava_error *err),
		      void *user, struct ava_error *err)
{
	struct ava_log_event e;
	struct ava_log *log;
	int rv = ava_log_open(&log, q, err);

	if (rv != 0)
		return rv;
	while ((rv = ava_log_next(log, &e, err)) != 0) {
		if (rv == 1)
			rv = each(&e, user, err);
		if (rv == AVA_ECORRUPT) {
			*broken = true;
			cli_error(CLI_FAILED, "%s", err->text);
		} else if (rv < 0) {
			break;
		}
	}
	ava_log_close(log);
	return rv;
}

static int to_tree(const struct ava_log_event *e, void *user, struct ava_error *err)
{
	int rv = tracetree_add(user, e->line, e->len, err);

	return rv == 0 ? 0 : err_wrap(err, rv, "%s:%llu", e->file, (unsigned long long)e->offset);
}

static int print_tree(const struct ava_log_query *q, bool *broken, struct ava_error *err)
{
	struct tracetree *t = tracetree_new();
	int rv;

	if (t == NULL)
		return err_set(err, AVA_ENOMEM, "no memory");
	rv = each_event(q, broken, to_tree, t, err);
	if (rv == 0)
		tracetree_print(t, stdout);
	tracetree_free(t);
	return rv;
}

/* The JSON form is written as it is read: events stay the bytes they are. */
struct json_out {
	const char *end; /* when the run ended, "" while it has not */
	bool begun;
};

static int to_end(const struct ava_log_event *e, void *user, struct ava_error *err)
{
	json_t *v = json_parse(e->line, e->len, err);
	const char *at = json_get_str(v, "timestamp");

	if (v == NULL)
		return AVA_ECORRUPT;
	snprintf(user, 32, "%s", at != NULL ? at : "");
	json_decref(v);
	return 0;
}

static void put_head(struct jw *w, const json_t *event, const char *end)
{
	const json_t *content = json_object_get(event, "content");
	const json_t *meta = json_object_get(event, "metadata");
	const char *parent = json_get_str(content, "resumedFrom");

	if (parent == NULL || parent[0] == '\0')
		parent = json_get_str(meta, "parentAgentId");
	jw_object(w, NULL);
	jw_str(w, "traceId", json_get_str(event, "traceId"));
	jw_str(w, "parentId", parent);
	jw_str(w, "startTime", json_get_str(event, "timestamp"));
	jw_str(w, "endTime", end[0] != '\0' ? end : NULL);
}

static int begin_json(struct json_out *out, const struct ava_log_event *e, struct ava_error *err)
{
	json_t *event = json_parse(e->line, e->len, err);
	struct buf head;
	struct jw w;

	if (event == NULL)
		return AVA_ECORRUPT;
	buf_init(&head, 65536);
	jw_init(&w, &head);
	put_head(&w, event, out->end);
	json_decref(event);
	if (buf_check(&head) == 0)
		term_bytes(stdout, head.data, head.len); /* without its closing brace */
	fputs(",\"events\":[", stdout);
	buf_fini(&head);
	out->begun = true;
	return 0;
}

static int to_json(const struct ava_log_event *e, void *user, struct ava_error *err)
{
	struct json_out *out = user;
	bool first = !out->begun;
	int rv = first ? begin_json(out, e, err) : 0;

	if (rv != 0)
		return rv;
	if (!first)
		putchar(',');
	term_bytes(stdout, e->line, e->len);
	return 0;
}

static int print_json(const struct ava_log_query *q, bool *broken, struct ava_error *err)
{
	struct ava_log_query last = *q;
	char end[32] = "";
	struct json_out out = {.end = end};
	bool ignored = false; /* told by the second reading */
	int rv;

	last.types = "SubagentComplete";
	last.last = 1;
	rv = each_event(&last, &ignored, to_end, end, err);
	if (rv == 0)
		rv = each_event(q, broken, to_json, &out, err);
	if (out.begun)
		fputs("]}\n", stdout);
	return rv;
}

static int trace_run(int argc, char **argv)
{
	char root[ROOT_PATH_MAX];
	struct ava_log_query q = {.root = root};
	struct ava_error err;
	struct run_id run;
	bool broken = false;
	int rv = root_prepare(root, &err);

	if (rv == 0)
		rv = find_run(root, argv[0], &run, &err);
	q.run = run.text;
	if (rv == 0)
		rv = o.json ? print_json(&q, &broken, &err) : print_tree(&q, &broken, &err);
	if (rv != 0)
		return cli_fail(&err);
	return broken ? CLI_FAILED : CLI_DONE;
}

const struct command cmd_trace = {
	.name = "trace",
	.args = "S-id|NAME",
	.min_args = 1,
	.max_args = 1,
	.summary = "show what a run did, turn by turn",
	.detail = "Needs no daemon. A NAME such as brave-otter is the trace's human name.\n",
	.opts = opts,
	.nopts = ARRAY_LEN(opts),
	.values = &o,
	.run = trace_run,
};
