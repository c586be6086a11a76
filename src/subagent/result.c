/* One object, keys in the order of the design. Cost is null when a call's
 * price was unknown and nothing else is known. It is written in the commit
 * that ends the run, so it is there exactly when the run has ended. */
#include "subagent/result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codec/json.h"
#include "subagent/run.h"

static void write_evidence(struct jw *w, const struct run *r, const struct evidence *e)
{
	jw_object(w, "evidence");
	jw_object(w, "tools");
	for (unsigned i = 0; i < r->spec->agent.ntools; i++)
		if (r->tools.counts[i])
			jw_int(w, r->spec->tools[i]->name, r->tools.counts[i]);
	jw_end(w);
	jw_int(w, "bytes_read", r->tools.bytes_read);
	jw_int(w, "citations_checked", e ? e->checked : 0);
	jw_int(w, "citations_failed", e ? e->failed : 0);
	jw_end(w);
}

/* The model's own, then what the runtime has to add. */
static void write_caveats(struct jw *w, const struct run *r, const struct agent_end *end)
{
	const char *own = end->caveats ? end->caveats : "[]";
	char text[600];
	struct buf all;
	json_t *list;

	snprintf(text, sizeof(text), "%s was overloaded: %s went on in its place",
		 r->call.first_model ? r->call.first_model : "", r->spec->model->id);
	list = r->call.first_model ? json_parse(own, strlen(own), NULL) : NULL;
	buf_init(&all, 1u << 20);
	if (list && json_array_append_new(list, json_string(text)) == 0 &&
	    json_dump(&all, list) == 0)
		jw_raw(w, "caveats", all.data, all.len);
	else
		jw_raw(w, "caveats", own, strlen(own));
	buf_fini(&all);
	json_decref(list);
}

int result_encode(struct buf *out, const struct run *r, const struct agent_end *end,
		  const struct evidence *e)
{
	const struct agent_totals *t = &r->agent.at.totals;
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
	write_caveats(&w, r, end);
	jw_str(&w, "error", end->error);
	jw_int(&w, "tokens_used", t->input + t->output);
	if (run_cost(r) < 0)
		jw_null(&w, "cost_cents");
	else
		jw_fixed(&w, "cost_cents", run_cost(r), 4);
	jw_fixed(&w, "duration_seconds", run_elapsed_ms(r), 3);
	jw_int(&w, "iterations", r->agent.at.iteration);
	jw_str(&w, "model", r->spec->model->id);
	jw_str(&w, "trace_id", r->trace.text);
	if (e && buf_check(&e->citations) == 0 && e->citations.len)
		jw_raw(&w, "citations", e->citations.data, e->citations.len);
	else
		jw_raw(&w, "citations", "[]", 2);
	write_evidence(&w, r, e);
	jw_bool(&w, "partial", end->partial);
	jw_bool(&w, "unverified", end->unverified);
	jw_array(&w, "artifacts");
	if (r->tools.artifacts.len)
		jw_raw(&w, NULL, r->tools.artifacts.data, r->tools.artifacts.len);
	jw_end(&w);
	jw_end(&w);
	buf_addc(out, '\n');
	return buf_check(out);
}
