/* Cards of Claude Code's subagents (doc/CLAUDE-CODE.md): `ava hook` writes them, avad reads
 * them. A card is a JSON object; what is in it is read with json_get_str and this. */
#ifndef CODEC_CARD_H
#define CODEC_CARD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;

#define CARD_MAX      (8u << 20) /* bytes of a card or a task */
#define CARD_NAME_MAX 250        /* bytes of a session's name, or a file's without ".json" */
#define CARD_FOLDER   "agent-activity"

/* $CLAUDE_CONFIG_DIR, else ~/.claude. AVA_EINVAL: no home is known; AVA_ETOOBIG. */
int card_home(char *out, size_t size, struct ava_error *err);
/* It can be one part of a path, and leads nowhere else. */
bool card_is_name(const char *s);
/* The name of the file of an agent, and of no other agent: an id is any text. */
void card_name(const char *agent, char out[CARD_NAME_MAX + 1]);
/* A new reference; NULL: there is none. It has the agentId that `name` is made of, a type, one of
 * the three statuses and the two times that every card has; members of another kind than theirs are
 * left out. */
json_t *card_read(int dir, const char *name);
/* NAME.json of a folder, whatever is in it (Claude Code's tasks); NULL: err says why. */
json_t *card_read_object(int dir, const char *name, struct ava_error *err);
/* "startedAt": ms since 1970; -1: not there. agent-spy.sh writes whole seconds. */
int64_t card_time(const json_t *card, const char *key);
/* What agent-ID.meta.json beside its "transcript" says, where that is: who spawned it, how deep,
 * and what for. Claude Code writes it a moment after the agent's start. `err` is set where it is no
 * JSON, and left alone else. */
void card_add_meta(json_t *card, struct ava_error *err);
/* "process": `pid`, or for 0 the nearest above us that is no shell; as it was where there is none.
 */
void card_add_process(json_t *card, int64_t pid);
/* What is known of the process of a card, which still is the one that it was: a number is given
 * again, its start is not. */
enum card_life { CARD_UNKNOWN, CARD_LIVES, CARD_DEAD };
enum card_life card_life(const json_t *card);
/* A file of a folder without its ".json". False: it is none, or hidden. */
bool card_stem(const char *file, char out[CARD_NAME_MAX + 1]);

/* What is in a folder: for sys->list. `v` is the caller's to free. */
struct card_names {
	char (*v)[CARD_NAME_MAX + 1];
	size_t n, cap, max;
	bool folders; /* those of sessions; else files of cards or tasks */
};

void card_names_add(const char *name, void *names);

#endif
