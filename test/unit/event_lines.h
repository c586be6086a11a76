/* One event of each kind as field values; what they must encode to, and their contents, which
 * are embedded as they are, stand in test/golden/events/lines.jsonl, line by line. */
#ifndef UNIT_EVENT_LINES_H
#define UNIT_EVENT_LINES_H

#include <string.h>

#include "event/event.h"

struct event_line {
	struct event_head head;
	struct event_meta meta;
	const char *content; /* event_lines_load */
};

#define LINE_SESSION "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31"
#define LINE_HEAD(kind, n, lsn, ...)                                                               \
	{                                                                                          \
		EVENT_##kind, 1795248000123 + 997 * (n), lsn, (n) + 1, __VA_ARGS__                 \
	}
#define LINE_NONE                                                                                  \
	{                                                                                          \
		-1, -1, -1, -1, -1, NULL, NULL                                                     \
	}
#define OF_AVA(kind, n)                                                                            \
	{                                                                                          \
		LINE_HEAD(kind, n, 90417 + (n), "ava", LINE_SESSION, "", "ben"), LINE_NONE         \
	}
#define OF_NOBODY(kind, n, lsn)                                                                    \
	{                                                                                          \
		LINE_HEAD(kind, n, lsn, "ava", "", "", ""), LINE_NONE                              \
	}
#define OF_RUN(kind, n, lsn, ...)                                                                  \
	{                                                                                          \
		LINE_HEAD(kind, n, lsn, "S-7f3a2b", LINE_SESSION, "brave-otter", "ben"),           \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

/* clang-format off */
static struct event_line event_lines[] = {
	OF_AVA(SessionStart, 0),
	OF_AVA(SessionEnd, 1),
	OF_AVA(UserMessage, 2),
	OF_AVA(AssistantMessage, 3),
	OF_AVA(SpawnProposed, 4),
	OF_AVA(SpawnConfirmed, 5),
	OF_AVA(SpawnRejected, 6),
	OF_AVA(SpawnExpired, 7),
	OF_RUN(SubagentSpawn, 8, 90425, -1, -1, -1, -1, -1, "offline", "ava"),
	OF_RUN(SubagentComplete, 9, 90426, 3, 11200, 800, 240000, 180000, "offline", "ava"),
	OF_RUN(InferStart, 10, 90427, 1, -1, -1, -1, -1, "offline", "ava"),
	OF_RUN(InferEnd, 11, 90428, 1, 3100, 120, 0, 12, "offline", "ava"),
	OF_RUN(ToolCall, 12, 90429, 1, -1, -1, -1, -1, NULL, "ava"),
	OF_RUN(ToolResult, 13, 90430, 1, -1, -1, -1, 7, NULL, "ava"),
	OF_RUN(ExtendedThinking, 14, 90431, 1, -1, -1, -1, -1, NULL, "ava"),
	OF_RUN(CostUpdate, 15, 90432, 1, 3100, 120, 23500, -1, "offline", "ava"),
	OF_RUN(StateRead, 16, 90433, 2, -1, -1, -1, -1, NULL, "ava"),
	OF_AVA(StateWrite, 17),
	OF_AVA(Fork, 18),
	OF_AVA(Join, 19),
	OF_RUN(ContextEdit, 20, 90437, 9, -1, -1, -1, -1, NULL, "ava"),
	OF_RUN(Checkpoint, 21, 90438, 4, -1, -1, -1, -1, NULL, "ava"),
	OF_RUN(Limit, 22, 90439, 2, -1, -1, -1, -1, NULL, "ava"),
	OF_RUN(Exhausted, 23, 90440, 20, -1, -1, -1, -1, NULL, "ava"),
	OF_RUN(Steering, 24, 90441, 2, -1, -1, -1, -1, NULL, "ava"),
	OF_RUN(Activity, 25, 90442, 2, -1, -1, -1, -1, NULL, "ava"),
	{LINE_HEAD(Custom, 26, 90443, "S-7f3a2b", "", "brave-otter", "telegram:\"4711\""), LINE_NONE},
	OF_RUN(Error, 27, 90444, 2, -1, -1, -1, -1, "offline", "ava"),
	OF_NOBODY(LogOpen, 28, 90445),
	OF_NOBODY(Recovered, 29, 90446),
	OF_NOBODY(Seal, 30, UINT64_MAX),
	OF_RUN(Waiting, 31, 90447, 2, -1, -1, -1, -1, NULL, "ava"),
	OF_RUN(Waiting, 32, 90448, 2, -1, -1, -1, -1, NULL, "ava"), /* a quota */
	OF_AVA(OrderFired, 33),
	OF_AVA(OrderChanged, 34),
	OF_RUN(Check, 35, 90452, 3, -1, -1, -1, 4200, NULL, "ava"),
};
/* clang-format on */

/* Before all tests: each content out of its golden line, from its key to the last one. */
static int event_lines_load(void **state)
{
	static char *text;
	char *line, *save = NULL, *end;
	size_t n = 0;

	text = unit_read_src("test/golden/events/lines.jsonl", NULL);
	for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		line = strstr(line, ",\"content\":");
		end = line != NULL ? strstr(line, ",\"metadata\":{") : NULL;
		if (end == NULL || n == sizeof(event_lines) / sizeof(event_lines[0]))
			return -1;
		*end = '\0';
		event_lines[n++].content = line + strlen(",\"content\":");
	}
	return 0;
}

#endif
