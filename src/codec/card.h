/* Cards of Claude Code's subagents (doc/CLAUDE-CODE.md): `ava hook` writes them, avad reads
 * them. A card is a JSON object, read with json_get_str and the functions below. */
#ifndef CODEC_CARD_H
#define CODEC_CARD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;

#define CARD_MAX      (8u << 20) /* most bytes of a card or a task */
#define CARD_NAME_MAX 250 /* most bytes of a session's name, or of a file's without ".json" */
#define CARD_FOLDER   "agent-activity"

/* Claude Code's folder: $CLAUDE_CONFIG_DIR, else ~/.claude. AVA_EINVAL: no home is known;
 * AVA_ETOOBIG. */
int card_home(char *out, size_t size, struct ava_error *err);
/* Is the text usable as one part of a path that leads nowhere else? */
bool card_is_name(const char *s);
/* The file name of an agent's card, unique to the agent: an id is any text. */
void card_name(const char *agent, char out[CARD_NAME_MAX + 1]);
/* Read a card: a new reference; NULL: no card. It has the agentId that `name` is made of, a type,
 * one of the three statuses and the two required times; members of a wrong type are left out. */
json_t *card_read(int dir, const char *name);
/* Read NAME.json of a folder, with any content (Claude Code's tasks); NULL: err says why. */
json_t *card_read_object(int dir, const char *name, struct ava_error *err);
/* The time of `key` ("startedAt"), ms since 1970; -1: absent. agent-spy.sh writes whole seconds. */
int64_t card_time(const json_t *card, const char *key);
/* Add facts of agent-ID.meta.json beside the card's "transcript", if that exists: the parent,
 * the depth, the purpose. Claude Code writes it a moment after the agent's start. `err` is set
 * when it is no JSON, and left alone otherwise. */
void card_add_meta(json_t *card, struct ava_error *err);
/* Set "process": `pid`, or for 0 the nearest ancestor that is no shell; unchanged when there is
 * none. */
void card_add_process(json_t *card, int64_t pid);
/* Does the card's process still run? Its start time is compared, since numbers are given again. */
enum card_life { CARD_UNKNOWN, CARD_LIVES, CARD_DEAD };
enum card_life card_life(const json_t *card);
/* Write a file's name without ".json" to `out`. False: it has another ending, or is hidden. */
bool card_stem(const char *file, char out[CARD_NAME_MAX + 1]);

/* The names in a folder, as card_names_add gathers them for sys->list. `v` is the caller's to
 * free. */
struct card_names {
	char (*v)[CARD_NAME_MAX + 1];
	size_t n, cap, max;
	bool folders; /* collect session folders; else files of cards or tasks */
};

void card_names_add(const char *name, void *names);

#endif
