/* One event of each kind as field values; what they must encode to stands in
 * test/golden/events/lines.jsonl, line by line. */
#ifndef UNIT_EVENT_LINES_H
#define UNIT_EVENT_LINES_H

#include "event/event.h"

struct event_line {
	struct event_head head;
	const char *content;
	struct event_meta meta;
};

/* clang-format off */
static const struct event_line event_lines[] = {
	{{EVENT_SessionStart, 1795248000123, 90417, 1, "ava", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "", "ben"},
	 "{\"cwd\":\"/home/ben/src\",\"client\":\"ava/0.1.0 terminal\"}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_SessionEnd, 1795248001120, 90418, 2, "ava", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "", "ben"},
	 "{\"cwd\":\"/home/ben/src\",\"client\":\"ava/0.1.0 terminal\"}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_UserMessage, 1795248002117, 90419, 3, "ava", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "", "ben"},
	 "{\"text\":\"find \\\"NOTE\\\" in src\\nand say why\"}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_AssistantMessage, 1795248003114, 90420, 4, "ava", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "", "ben"},
	 "{\"text\":\"I'll spawn a Researcher subagent … Proceed? [Yes/No]\"}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_SpawnProposed, 1795248004111, 90421, 5, "ava", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "", "ben"},
	 "{\"proposalId\":\"P-19c0de\",\"quote\":{\"minutes\":[5,10],\"costCents"
	 "\":50.0,\"tokens\":50000,\"tools\":[\"read_file\",\"search_codebase\"]"
	 ",\"model\":\"offline\",\"role\":\"researcher\",\"rights\":{\"private\""
	 ":true,\"untrusted\":false,\"out\":false},\"grants\":[],\"rationale\":"
	 "\"read the sources and cite them\"},\"config\":{\"role\":\"researcher"
	 "\",\"task\":\"find the parser\",\"model\":\"offline\",\"limits\":{\"se"
	 "conds\":600.0,\"costCents\":50.0,\"tokens\":100000,\"iterations\":20},"
	 "\"cwd\":\"/home/ben/src\"},\"configHash\":\"0c9e0c9e0c9e0c9e0c9e0c9e0c"
	 "9e0c9e0c9e0c9e0c9e0c9e0c9e0c9e0c9e0c9e\",\"requestId\":\"req-1\",\"replaces\":\"P-19c0dd\"}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_SpawnConfirmed, 1795248005108, 90422, 6, "ava", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "", "ben"},
	 "{\"proposalId\":\"P-19c0de\",\"by\":\"ben\",\"subagentId\":\"S-7f3a2b\""
	 ",\"configHash\":\"1d3a1d3a1d3a1d3a1d3a1d3a1d3a1d3a1d3a1d3a1d3a1d3a1d3a1d3a1d3a1d3a\""
	 ",\"quotedHash\":\"0c9e0c9e0c9e0c9e0c9e0c9e0c9e0c9e0c9e0c9e0c9e0c9e0c9e0c9e0c9e0c9e\""
	 ",\"changes\":\"up to $0.20\",\"config\":{\"role\":\"researcher\","
	 "\"task\":\"find the parser\"}}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_SpawnRejected, 1795248006105, 90423, 7, "ava", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "", "ben"},
	 "{\"proposalId\":\"P-19c0df\",\"by\":\"ben\",\"reason\":\"replaced by P-19c0e1\",\"replacedBy\":\"P-19c0e1\"}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_SpawnExpired, 1795248007102, 90424, 8, "ava", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "", "ben"},
	 "{\"proposalId\":\"P-19c0e0\"}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_SubagentSpawn, 1795248008099, 90425, 9, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"subagentId\":\"S-7f3a2b\",\"role\":\"researcher\",\"task\":\"find t"
	 "he parser\",\"model\":\"offline\",\"limits\":{\"seconds\":600.0,\"cost"
	 "Cents\":50.0,\"tokens\":100000,\"iterations\":20},\"tools\":[\"read_fi"
	 "le\",\"search_codebase\"],\"rights\":{\"private\":true,\"untrusted\":f"
	 "alse,\"out\":false},\"proposalId\":\"P-19c0de\",\"requestedBy\":\"ben"
	 "\"}",
	 {-1, -1, -1, -1, -1, "offline", "ava"}},
	{{EVENT_SubagentComplete, 1795248009096, 90426, 10, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"subagentId\":\"S-7f3a2b\",\"status\":\"success\",\"stopReason\":\"s"
	 "ubmitted\",\"summary\":\"The parser is in src/codec/json_read.c\",\"to"
	 "tals\":{\"inputTokens\":11200,\"outputTokens\":800,\"tokens\":12000,\""
	 "costCents\":24.0,\"durationMs\":180000,\"calls\":3,\"uncostedCalls\":0"
	 ",\"failedCalls\":0,\"iterations\":3,\"toolCalls\":4},\"resultPath\":\""
	 "runs/S-7f3a2b/result.json\",\"resultHash\":\"5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f\",\"head\":\"7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7"
	 "b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b\"}",
	 {3, 11200, 800, 240000, 180000, "offline", "ava"}},
	{{EVENT_InferStart, 1795248010093, 90427, 11, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"callId\":\"i1\",\"model\":\"offline\",\"promptPreview\":\"# Task\\n"
	 "find the parser\",\"maxOutput\":4096,\"notices\":[\"80 % of the time i"
	 "s used\"],\"prefixHash\":\"5151515151515151515151515151515151515151515"
	 "151515151515151515151\",\"requestHash\":\"a2a2a2a2a2a2a2a2a2a2a2a2a2a2"
	 "a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2\"}",
	 {1, -1, -1, -1, -1, "offline", "ava"}},
	{{EVENT_InferEnd, 1795248011090, 90428, 12, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"callId\":\"i1\",\"responsePreview\":\"I will search.\",\"tokens\":{"
	 "\"input\":3100,\"output\":120,\"cacheRead\":0,\"cacheWrite\":0,\"reaso"
	 "ning\":0},\"stopReason\":\"tool_use\",\"requestId\":\"\",\"estimated\""
	 ":true}",
	 {1, 3100, 120, 0, 12, "offline", "ava"}},
	{{EVENT_ToolCall, 1795248012087, 90429, 13, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"callId\":\"c1.1\",\"name\":\"search_codebase\",\"args\":{\"pattern"
	 "\":\"json_parse\",\"regex\":false}}",
	 {1, -1, -1, -1, -1, NULL, "ava"}},
	{{EVENT_ToolResult, 1795248013084, 90430, 14, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"callId\":\"c1.1\",\"name\":\"search_codebase\",\"success\":true,\"o"
	 "utput\":\"src/codec/json_read.c:48: json_t *json_parse(\",\"cut\":true"
	 ",\"bytes\":5120,\"errorClass\":\"\",\"artifact\":\"\"}",
	 {1, -1, -1, -1, 7, NULL, "ava"}},
	{{EVENT_ExtendedThinking, 1795248014081, 90431, 15, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"thinking\":\"The name suggests codec.\"}",
	 {1, -1, -1, -1, -1, NULL, "ava"}},
	{{EVENT_CostUpdate, 1795248015078, 90432, 16, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"tokens\":3220,\"costCents\":2.35,\"groupId\":\"G-1\",\"groupCostCen"
	 "ts\":7.0501,\"estimated\":true}",
	 {1, 3100, 120, 23500, -1, "offline", "ava"}},
	{{EVENT_StateRead, 1795248016075, 90433, 17, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"key\":\"memory:M-19c0de\"}",
	 {2, -1, -1, -1, -1, NULL, "ava"}},
	{{EVENT_StateWrite, 1795248017072, 90434, 18, "ava", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "", "ben"},
	 "{\"key\":\"memory:M-19c0de\",\"change\":\"added\",\"hash\":\"5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e\"}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_Fork, 1795248018069, 90435, 19, "ava", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "", "ben"},
	 "{\"groupId\":\"G-1\",\"branchCount\":2,\"branchIds\":[{\"subagentId\":"
	 "\"S-7f3a2b\",\"traceId\":\"brave-otter\"},{\"subagentId\":\"S-7f3a2c\""
	 ",\"traceId\":\"calm-heron\"}]}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_Join, 1795248019066, 90436, 20, "ava", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "", "ben"},
	 "{\"groupId\":\"G-1\",\"branchCount\":2,\"branchIds\":[{\"subagentId\":"
	 "\"S-7f3a2b\",\"traceId\":\"brave-otter\",\"status\":\"success\",\"head"
	 "\":\"7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b"
	 "\"},{\"subagentId\":\"S-7f3a2c\",\"traceId\":\"calm-heron\",\"status\""
	 ":\"cancelled\",\"head\":\"c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4"
	 "c4c4c4c4c4c4c4c4c4c4\"}]}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_ContextEdit, 1795248020063, 90437, 21, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"cause\":\"scheduled\",\"tokensBefore\":81000,\"tokensAfter\":39000,"
	 "\"removed\":[\"c1.1\",\"c1.2\"],\"summaryLines\":12,\"refetched\":[]}",
	 {9, -1, -1, -1, -1, NULL, "ava"}},
	{{EVENT_Checkpoint, 1795248021060, 90438, 22, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"name\":\"before-edit\",\"lsn\":90417,\"messages\":14,\"hash\":\"ded"
	 "edededededededededededededededededededededededededededededede\",\"callId\":\"i4\","
	 "\"by\":\"ben\"}",
	 {4, -1, -1, -1, -1, NULL, "ava"}},
	{{EVENT_Limit, 1795248022057, 90439, 23, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"budget\":{\"seconds\":600.0,\"costCents\":50.0,\"tokens\":100000,\""
	 "iterations\":20},\"warned\":[\"time\"]}",
	 {2, -1, -1, -1, -1, NULL, "ava"}},
	{{EVENT_Exhausted, 1795248023054, 90440, 24, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"resource\":\"iterations\"}",
	 {20, -1, -1, -1, -1, NULL, "ava"}},
	{{EVENT_Steering, 1795248024051, 90441, 25, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"text\":\"only the parser, please\",\"outcome\":\"queued\",\"steerId\":\"m1\",\"callId\":\"\",\"by\":\"ben\",\"requestId\":\"r-1\"}",
	 {2, -1, -1, -1, -1, NULL, "ava"}},
	{{EVENT_Activity, 1795248025048, 90442, 26, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"text\":\"Reading src/codec/json_read.c\"}",
	 {2, -1, -1, -1, -1, NULL, "ava"}},
	{{EVENT_Custom, 1795248026045, 90443, 27, "S-7f3a2b", "", "brave-otter", "telegram:\"4711\""},
	 "{\"customType\":\"note\",\"data\":{\"any\":[1,2,{\"thing\":null}]}}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_Error, 1795248027042, 90444, 28, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"class\":\"rate_limit\",\"message\":\"the provider asks to wait 20 s"
	 "\"}",
	 {2, -1, -1, -1, -1, "offline", "ava"}},
	{{EVENT_LogOpen, 1795248028039, 90445, 29, "ava", "", "", ""},
	 "{\"clean\":false,\"prevSize\":1048576,\"version\":\"0.1.0\"}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_Recovered, 1795248029036, 90446, 30, "ava", "", "", ""},
	 "{\"cause\":\"unclean end\",\"redoneBatches\":12,\"redoneBytes\":48213,"
	 "\"tornBytes\":97,\"abortedBatches\":0,\"damagedBatches\":1,\"lostBytes"
	 "\":310,\"problems\":[{\"path\":\"logs/subagents/S-7f3a2b.jsonl\",\"pro"
	 "blem\":\"shorter than it was\",\"lostBytes\":310,\"continuesIn\":\"log"
	 "s/subagents/S-7f3a2b.2.jsonl\"}]}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_Seal, 1795248030033, UINT64_MAX, 31, "ava", "", "", ""},
	 "{\"n\":57,\"at\":\"2026-11-21T08:00:30.030Z\",\"prev\":\"5c5c5c5c5c5"
	 "c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c\",\"key\":\"6d"
	 "6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d\",\"f"
	 "iles\":[{\"path\":\"logs/subagents/S-7f3a2b.jsonl\",\"seq\":42,\"siz"
	 "e\":18211,\"head\":\"7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7"
	 "b7b7b7b7b7b7b7b7b\",\"from\":17650,\"each\":2,\"lines\":\"b3ed3fd4a9"
	 "9b\"}],\"pruned\":{\"upTo\":41,\"hash\":\"4e4e4e4e4e4e4e4e4e4e4e4e4e"
	 "4e4e4e4e4e4e4e4e4e4e4e4e4e4e4e4e4e4e4e\",\"files\":[]},\"sig\":\"8a8"
	 "a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8"
	 "a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a8a\"}",
	 {-1, -1, -1, -1, -1, NULL, NULL}},
	{{EVENT_Waiting, 1795248031030, 90447, 32, "S-7f3a2b", "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31", "brave-otter", "ben"},
	 "{\"subagentId\":\"S-7f3a2b\",\"callId\":\"c2.1\",\"state\":\"asked\","
	 "\"kind\":\"question\",\"callHash\":\"7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7"
	 "b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b\",\"question\":\"Which parser?\",\"cho"
	 "ices\":[\"json\",\"yaml\"],\"default\":\"json\",\"expiresAt\":\"2026-1"
	 "1-21T09:00:31.030Z\",\"answer\":\"\",\"by\":\"\"}",
	 {2, -1, -1, -1, -1, NULL, "ava"}},
};
/* clang-format on */

#endif
