/* Cards of Claude Code's subagents (doc/CLAUDE-CODE.md): `ava hook` writes them, avad reads
 * them. A card is a JSON object; what is in it is read with json_get_str and this. */
#ifndef CODEC_CARD_H
#define CODEC_CARD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;

#define CARD_MAX      (2u << 20) /* bytes of a card */
#define CARD_NAME_MAX 128        /* bytes of a session's or an agent's name */
#define CARD_FOLDER   "agent-activity"

/* $CLAUDE_CONFIG_DIR, else ~/.claude. AVA_EINVAL: no home is known; AVA_ETOOBIG. */
int card_home(char *out, size_t size, struct ava_error *err);
/* It can be one part of a path, and leads nowhere else. */
bool card_is_name(const char *s);
/* A new reference; NULL: there is none. It has its own agentId, a type, one of the three statuses
 * and the two times that every card has; members of another kind than theirs are left out. */
json_t *card_read(int dir, const char *agent);
/* ID.json of a folder, whatever is in it (Claude Code's tasks); NULL: it is no file or no object.
 */
json_t *card_read_object(int dir, const char *id);
/* "startedAt": ms since 1970; -1: not there. agent-spy.sh writes whole seconds. */
int64_t card_time(const json_t *card, const char *key);
/* What agent-ID.meta.json beside its "transcript" says, where that is: who spawned it, how deep,
 * and what for. Claude Code writes it a moment after the agent's start. */
void card_add_meta(json_t *card);
/* When process `pid` began, in ticks since the machine did (/proc/PID/stat); -1: there is none. */
int64_t card_process_start(int64_t pid);
/* Its "process" still is the one that it was: a number is given again, its start is not. */
bool card_process_lives(const json_t *card);
/* Of a file of a session's folder: the agent whose card it is. False: it is no card. */
bool card_agent(const char *file, char out[CARD_NAME_MAX + 1]);

#endif
