/* The judge of a world of machines. It reads what the database has in the end, line by line, and
 * compares it with what people were told and what was seen to leave the machines. */
#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "machines.h"
#include "machines_people.h"
#include "pgmap.h"
#include "service.h"

#define CALLS 64

struct record { /* of one run */
	struct machines *w;
	const struct pgmap_run *row;
	int64_t seq, lsn, tokens, micro;
	unsigned spawns, ends, ncalls;
	char infer[16];
	struct record_call {
		char id[16], name[40];
		bool answered;
	} calls[CALLS];
	unsigned char head[32];
};

static unsigned starts_of(const struct record *r, const char *call)
{
	for (size_t i = 0; i < r->w->nstarts; i++)
		if (strcmp(r->w->starts[i].run, r->row->id) == 0 &&
		    strcmp(r->w->starts[i].call, call) == 0)
			return (unsigned)r->w->starts[i].n;
	return 0;
}

static void record_result(struct record *r, const json_t *c)
{
	const char *id = json_str(c, "callId"), *cls = json_str(c, "errorClass");
	struct record_call *k = NULL;

	for (unsigned i = 0; i < r->ncalls; i++)
		if (strcmp(r->calls[i].id, id) == 0)
			k = &r->calls[i];
	if (k == NULL || k->answered) {
		machines_wrong("%s: a result of %s too many", r->row->id, id);
		return;
	}
	k->answered = true;
	r->w->interrupted += strcmp(cls, "interrupted") == 0;
	if (strcmp(k->name, "web_search") == 0 && json_get_bool(c, "success", false) &&
	    starts_of(r, id) == 0)
		machines_wrong("%s: %s has a result and was never started", r->row->id, id);
}

static void record_reply(struct record *r, const json_t *c, const json_t *meta)
{
	const char *request = json_str(c, "requestId");
	struct service_bill *b = *request ? service_find(request) : NULL;

	r->tokens += json_get_int(meta, "inputTokens", 0) + json_get_int(meta, "outputTokens", 0);
	r->micro += json_get_fixed(meta, "costCents", 4, 0);
	if (strcmp(r->infer, json_str(c, "callId")) != 0)
		machines_wrong("%s: InferEnd of %s, begun was %s", r->row->id,
			       json_str(c, "callId"), r->infer);
	r->infer[0] = '\0';
	if (json_get_str(c, "errorClass") != NULL)
		return;
	if (b == NULL || b->recorded)
		machines_wrong("%s: the reply %s %s", r->row->id, request,
			       b == NULL ? "was never sent" : "stands twice");
	else
		b->recorded = true;
}

static void record_event(struct record *r, const json_t *e)
{
	const char *type = json_str(e, "eventType");
	const json_t *c = json_object_get(e, "content");
	int64_t seq = json_get_int(e, "seq", 0), lsn = json_get_int(e, "lsn", 0);

	if (seq != r->seq + 1 || lsn <= r->lsn || r->ends > 0)
		machines_wrong("%s: %s has seq %lld after %lld, lsn %lld after %lld%s", r->row->id,
			       type, (long long)seq, (long long)r->seq, (long long)lsn,
			       (long long)r->lsn, r->ends > 0 ? ", behind the end" : "");
	r->seq = seq;
	r->lsn = lsn;
	r->w->events++;
	r->spawns += strcmp(type, "SubagentSpawn") == 0;
	r->ends += strcmp(type, "SubagentComplete") == 0;
	if (strcmp(type, "SubagentComplete") == 0)
		people_see_end(r->row->id, json_str(c, "status"));
	else if (strcmp(type, "Steering") == 0)
		people_see_words(r->row->id, c);
	else if (strcmp(type, "InferStart") == 0) {
		if (r->infer[0] != '\0')
			machines_wrong("%s: %s has no InferEnd", r->row->id, r->infer);
		snprintf(r->infer, sizeof(r->infer), "%s", json_str(c, "callId"));
	} else if (strcmp(type, "InferEnd") == 0) {
		record_reply(r, c, json_object_get(e, "metadata"));
	} else if (strcmp(type, "ToolCall") == 0 && r->ncalls < CALLS) {
		struct record_call *k = &r->calls[r->ncalls++];

		*k = (struct record_call){0};
		snprintf(k->id, sizeof(k->id), "%s", json_str(c, "callId"));
		snprintf(k->name, sizeof(k->name), "%s", json_str(c, "name"));
	} else if (strcmp(type, "ToolResult") == 0) {
		record_result(r, c);
	}
}

static void record_line(struct record *r, const char *line, size_t len)
{
	json_t *e = json_parse(line, len, NULL);
	struct hash_sha256 h;

	if (e != NULL)
		record_event(r, e);
	else
		machines_wrong("%s: a line is no JSON: %.*s", r->row->id, (int)MIN(len, 100), line);
	json_decref(e);
	hash_sha256_init(&h);
	hash_sha256_add(&h, r->head, sizeof(r->head));
	hash_sha256_add(&h, line, len + 1);
	hash_sha256_end(&h, r->head);
}

static void judge_row(struct machines *w, const struct pgmap_run *row)
{
	struct record r = {.w = w, .row = row};
	size_t len, at = 0, n;
	char *bytes = pgmap_bytes(row->id, 0, &len);
	const char *line;

	while (w->broken[0] == '\0' && jsonl_next(bytes, len, &at, &line, &n) == 1)
		record_line(&r, line, n);
	free(bytes);
	if ((int64_t)len != row->head || at != len || row->hash_len != sizeof(r.head) ||
	    memcmp(row->hash, r.head, sizeof(r.head)) != 0)
		machines_wrong("%s: its record is not what its head says", row->id);
	if (r.tokens != row->tokens || r.micro != row->micro)
		machines_wrong("%s: it has used %lld tokens for %lld, its row says %lld for %lld",
			       row->id, (long long)r.tokens, (long long)r.micro,
			       (long long)row->tokens, (long long)row->micro);
	if (r.spawns != 1 || r.ends != 1)
		machines_wrong("%s: %u spawns and %u ends", row->id, r.spawns, r.ends);
	if (r.infer[0] != '\0')
		machines_wrong("%s: it ended with %s open", row->id, r.infer);
	for (unsigned i = 0; i < r.ncalls; i++)
		if (!r.calls[i].answered)
			machines_wrong("%s: it ended, and %s has no result", row->id,
				       r.calls[i].id);
	bytes = pgmap_bytes(row->id, 1, &len);
	if (len == 0 || bytes[len - 1] != '\n')
		machines_wrong("%s: its messages have no end", row->id);
	free(bytes);
	w->moved += row->moves > 0;
}

void machines_judge(struct machines *w)
{
	for (unsigned i = 0; i < w->nruns; i++) {
		const struct machines_run *r = &w->runs[i];

		if (pgmap_run(r->id) == NULL && !w->lossy &&
		    !(r->excused && machines_have_result(r->id)))
			machines_wrong("%s was accepted, and is lost", r->id);
	}
	for (unsigned i = 0; i < pgmap.now.nruns && w->broken[0] == '\0'; i++)
		if (pgmap.now.runs[i].state == 9)
			judge_row(w, &pgmap.now.runs[i]);
	machines_verify();
	people_judge();
}
