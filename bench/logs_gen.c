/* Writes a data root of made-up logs for bench/logs.py: the same bytes for
 * the same arguments. Usage: logs_gen ROOT one|days|runs EVENTS
 *
 * One event is 390 bytes on the average: 30 % ToolCall, 29 % ToolResult, 1.5 %
 * Error, of 1,000 agents in 200 sessions (with `runs` 10,000 agents, a file
 * each). `one` is one day's file, `days` thirty of them. One line in all has
 * "xylophone-7731" in it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/util.h"
#include "event/event.h"

#define BEGIN_MS INT64_C(1792454400000) /* 2026-10-20T00:00:00Z */
#define DAYS     30
#define RUNS     10000
#define DAY_MS   INT64_C(86400000)

static uint64_t state = 42;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % below);
}

static const char *const words[] = {
	"pricing", "podcast", "transcript", "market",  "server", "quote",   "review", "search",
	"release", "compare", "customer",   "article", "report", "archive", "method", "window",
};

static void text(struct buf *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		buf_addf(b, "%s%s", i > 0 ? " " : "", words[draw(ARRAY_LEN(words))]);
}

static enum event_kind pick(void)
{
	uint32_t n = draw(1000);

	if (n < 300)
		return EVENT_ToolCall;
	if (n < 590)
		return EVENT_ToolResult;
	if (n < 605)
		return EVENT_Error;
	if (n < 750)
		return EVENT_InferStart;
	if (n < 895)
		return EVENT_InferEnd;
	return n < 950 ? EVENT_Activity : EVENT_ExtendedThinking;
}

static void content(struct buf *b, enum event_kind kind, bool rare)
{
	buf_reset(b);
	if (kind == EVENT_ToolCall) {
		buf_addf(b, "{\"callId\":\"c%u.1\",\"name\":\"web_search\",\"args\":{\"query\":\"",
			 draw(20));
		text(b, 8);
		buf_adds(b, "\"}}");
	} else if (kind == EVENT_ToolResult) {
		buf_addf(b,
			 "{\"callId\":\"c%u.1\",\"name\":\"web_search\",\"success\":%s,\"output\":"
			 "\"",
			 draw(20), draw(20) > 0 ? "true" : "false");
		text(b, 10);
		buf_addf(b, "\",\"bytes\":%u}", draw(90000));
	} else if (kind == EVENT_Error) {
		buf_adds(b, "{\"class\":\"timeout\",\"message\":\"no answer for ");
		text(b, 5);
		buf_adds(b, "\"}");
	} else {
		buf_adds(b, "{\"text\":\"");
		text(b, 12);
		buf_adds(b, "\"}");
	}
	if (rare) {
		b->len--;
		buf_adds(b, ",\"note\":\"xylophone-7731\"}");
	}
}

static void meta_of(struct event_meta *m, enum event_kind kind)
{
	static const char *const models[] = {"anthropic/claude-haiku", "anthropic/claude-sonnet",
					     "openai/small", "local/qwen"};

	*m = EVENT_META_NONE;
	m->parent_agent_id = "ava";
	m->iteration = draw(20);
	if (kind == EVENT_InferEnd) {
		m->input_tokens = 1000 + draw(9000);
		m->output_tokens = draw(900);
		m->cost_microusd = draw(40000);
	}
	if (kind == EVENT_InferEnd || kind == EVENT_InferStart)
		m->model_id = models[draw(4)];
	if (kind == EVENT_ToolResult || kind == EVENT_InferEnd)
		m->duration_ms = draw(5000);
}

struct shape {
	const char *root, *name;
	uint64_t events, seq[RUNS];
};

static void path_of(const struct shape *s, uint32_t file, char *path, size_t size)
{
	if (strcmp(s->name, "runs") == 0)
		snprintf(path, size, "%s/logs/subagents/S-%06x.jsonl", s->root, file + 0x100000);
	else if (strcmp(s->name, "one") == 0)
		snprintf(path, size, "%s/logs/ava/2026-11-18.jsonl", s->root);
	else
		snprintf(path, size, "%s/logs/ava/2026-%02u-%02u.jsonl", s->root,
			 file < 12 ? 10u : 11u, file < 12 ? file + 20 : file - 11);
}

static void one(struct shape *s, struct buf *line, struct buf *body, uint64_t i)
{
	enum event_kind kind = pick();
	uint32_t agent = draw(strcmp(s->name, "runs") == 0 ? RUNS : 1000);
	uint32_t file = strcmp(s->name, "runs") == 0 ? agent : 0;
	char id[16], session[48], trace[24];
	struct event_meta meta;
	struct event_head head = {.kind = kind,
				  .wall_ms = BEGIN_MS + (int64_t)(i * (DAYS * DAY_MS / s->events)),
				  .lsn = i + 1,
				  .agent_id = id,
				  .session_id = session,
				  .trace_id = trace,
				  .user_id = "ben"};

	if (strcmp(s->name, "days") == 0)
		file = (uint32_t)((head.wall_ms - BEGIN_MS) / DAY_MS);
	head.seq = ++s->seq[file];
	snprintf(id, sizeof(id), "S-%06x", agent + 0x100000);
	snprintf(session, sizeof(session), "5c3e1a52-6b0f-4d7e-9a51-%012u", agent % 200);
	snprintf(trace, sizeof(trace), "brave-otter-%u", agent);
	content(body, kind, i == s->events / 3);
	meta_of(&meta, kind);
	event_encode(line, &head, body->data, body->len, &meta);
}

static void flush(const struct shape *s, uint32_t file, struct buf *b)
{
	char path[4096];
	FILE *f;

	path_of(s, file, path, sizeof(path));
	f = fopen(path, "a");
	if (f == NULL || fwrite(b->data, 1, b->len, f) != b->len || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
	buf_reset(b);
}

int main(int argc, char **argv)
{
	static struct shape s;
	struct buf *parts, body;
	uint32_t last = 0;

	if (argc != 4) {
		fputs("usage: logs_gen ROOT one|days|runs EVENTS\n", stderr);
		return 2;
	}
	s = (struct shape){.root = argv[1], .name = argv[2], .events = strtoull(argv[3], NULL, 10)};
	parts = calloc(RUNS, sizeof(*parts));
	if (parts == NULL || s.events == 0)
		return 2;
	for (size_t i = 0; i < RUNS; i++)
		buf_init(&parts[i], 4 << 20);
	buf_init(&body, 1 << 20);
	for (uint64_t i = 0; i < s.events; i++) {
		struct buf line;
		uint32_t file;

		buf_init(&line, 1 << 16);
		one(&s, &line, &body, i);
		file = strcmp(s.name, "one") == 0 ? 0
		       : strcmp(s.name, "days") == 0
			       ? (uint32_t)((uint64_t)i * (DAYS * DAY_MS / s.events) / DAY_MS)
			       : (uint32_t)strtoul(strstr(line.data, "\"agentId\":\"S-") + 13, NULL,
						   16) -
					 0x100000;
		if (file != last && strcmp(s.name, "days") == 0)
			flush(&s, last, &parts[last]);
		last = file;
		buf_add(&parts[file], line.data, line.len);
		if (parts[file].len > (strcmp(s.name, "runs") == 0 ? 60000u : 2u << 20))
			flush(&s, file, &parts[file]);
		buf_fini(&line);
	}
	for (uint32_t i = 0; i < RUNS; i++) {
		if (parts[i].len > 0)
			flush(&s, i, &parts[i]);
		buf_fini(&parts[i]);
	}
	free(parts);
	buf_fini(&body);
	return 0;
}
