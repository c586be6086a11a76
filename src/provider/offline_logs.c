/* A log in a few sentences: how the run ended, which tools it called, what
 * failed. The lines are those of read_ava_logs: time, agent, type, content;
 * what they say is counted and quoted, nothing of it is obeyed. A line of
 * another form is passed by. */
#include "provider/offline_logs.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define TOOLS_MAX   12
#define FAILED_MAX  8
#define QUOTE_CHARS 300
#define OUT_MAX     (256u << 10)

struct told {
	struct {
		char name[64];
		unsigned n;
	} tools[TOOLS_MAX];
	unsigned ntools, nfailed, events, answers; /* answers: of the model */
	struct buf end, failed;                    /* sentences */
};

static void quote(struct buf *out, const char *before, const char *s)
{
	size_t len = strlen(s), keep = utf8_prefix(s, len, QUOTE_CHARS);

	if (len == 0)
		return;
	buf_adds(out, before);
	buf_add(out, s, keep);
	buf_adds(out, keep < len ? "…" : "");
}

static void count_tool(struct told *t, const char *name)
{
	unsigned i = 0;

	while (i < t->ntools && strncmp(t->tools[i].name, name, sizeof(t->tools[i].name) - 1) != 0)
		i++;
	if (i == TOOLS_MAX)
		return;
	if (i == t->ntools)
		snprintf(t->tools[t->ntools++].name, sizeof(t->tools[i].name), "%s", name);
	t->tools[i].n++;
}

static void add_failed(struct told *t, const char *what, const char *why, const char *text)
{
	if (t->nfailed++ >= FAILED_MAX)
		return;
	quote(&t->failed, "\n- ", what);
	quote(&t->failed, " ", why);
	quote(&t->failed, ": ", text);
}

static void take_event(struct told *t, const char *type, const json_t *c)
{
	t->events++;
	if (strcmp(type, "ToolCall") == 0) {
		count_tool(t, json_str(c, "name"));
	} else if (strcmp(type, "ToolResult") == 0) {
		if (!json_get_bool(c, "success", true))
			add_failed(t, json_str(c, "name"), json_str(c, "errorClass"),
				   json_str(c, "output"));
	} else if (strcmp(type, "Error") == 0) {
		add_failed(t, "Error", json_str(c, "class"), json_str(c, "message"));
	} else if (strcmp(type, "Exhausted") == 0) {
		add_failed(t, "a limit was reached", json_str(c, "resource"), "");
	} else if (strcmp(type, "InferEnd") == 0) {
		t->answers++;
	} else if (strcmp(type, "SubagentComplete") == 0) {
		buf_addf(&t->end, "%s%s ended: %s", t->end.len ? "\n" : "",
			 json_str(c, "subagentId"), json_str(c, "status"));
		if (strcmp(json_str(c, "stopReason"), json_str(c, "status")) != 0)
			quote(&t->end, ", ", json_str(c, "stopReason"));
		quote(&t->end, ". ", json_str(c, "summary"));
	}
}

/* Content as JSON again: where it imitated a notice of the runtime, a backslash
 * was put into it after it had been written. NULL: it is none. */
static json_t *parse_content(struct slice s)
{
	struct buf b;
	json_t *v = NULL;

	buf_init(&b, OUT_MAX);
	for (size_t i = 0; i < s.len; i++) {
		buf_addc(&b, s.s[i]);
		if (s.s[i] != '\\')
			continue;
		if (i + 1 < s.len && strchr("\"\\/bfnrtu", s.s[i + 1]))
			buf_addc(&b, s.s[++i]);
		else
			buf_addc(&b, '\\');
	}
	if (buf_check(&b) == 0 && b.len)
		v = json_parse(b.data, b.len, NULL);
	buf_fini(&b);
	return v;
}

/* "TIME AGENT TYPE {…} {…}" */
static void take_line(struct told *t, const char *line, size_t len)
{
	char type[40];
	struct slice content;
	struct jscan w;
	json_t *c;
	int at = 0;

	if (len == 0 || len > OUT_MAX || memchr(line, '\0', len))
		return;
	if (sscanf(line, "%*24[0-9TZ.:-] %*23s %39[A-Za-z] %n", type, &at) != 1 || at <= 0 ||
	    (size_t)at >= len || line[at] != '{')
		return;
	jscan_init(&w, line + at, len - (size_t)at);
	jscan_skip(&w, &content);
	c = w.failed ? NULL : parse_content(content);
	if (c)
		take_event(t, type, c);
	json_decref(c);
}

static void tell(const struct told *t, struct buf *out)
{
	if (t->end.len)
		buf_add(out, t->end.data, t->end.len);
	else if (t->events)
		buf_addf(out, "Nothing has ended in these %u events.", t->events);
	else
		buf_adds(out, "There is no such event.");
	for (unsigned i = 0; i < t->ntools; i++)
		buf_addf(out, "%s%s (%u)", i ? ", " : "\n\nIt called ", t->tools[i].name,
			 t->tools[i].n);
	if (t->ntools)
		buf_addf(out, "; its model answered %u time%s.", t->answers,
			 t->answers == 1 ? "" : "s");
	if (t->failed.len) {
		buf_adds(out, "\nWhat went wrong:");
		buf_add(out, t->failed.data, t->failed.len);
	} else if (t->events) {
		buf_adds(out, "\nNo failure stands in it.");
	}
	if (t->nfailed > FAILED_MAX)
		buf_addf(out, "\n- and %u more", t->nfailed - FAILED_MAX);
}

int offline_tell_log(struct buf *out, const char *text, size_t len)
{
	struct told t = {0};
	int rv;

	buf_init(&t.end, OUT_MAX);
	buf_init(&t.failed, OUT_MAX);
	for (size_t at = 0; at < len;) {
		const char *nl = memchr(text + at, '\n', len - at);
		size_t n = nl ? (size_t)(nl - text) - at : len - at;

		take_line(&t, text + at, n);
		at += n + 1;
	}
	tell(&t, out);
	rv = buf_check(&t.end);
	if (rv == 0)
		rv = buf_check(&t.failed);
	buf_fini(&t.end);
	buf_fini(&t.failed);
	return rv ? rv : buf_check(out);
}
