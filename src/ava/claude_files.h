/* Claude Code's files as they are on the disk: names in a folder, cards of a session, teams. Any
 * thread; nothing is kept. */
#ifndef AVA_CLAUDE_FILES_H
#define AVA_CLAUDE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/card.h"

#define CLAUDE_CARDS_MAX 1000        /* read of one session, */
#define CLAUDE_BYTES_MAX (64u << 20) /* and no more of them when those have so many */

/* What is in a folder: for sys->list. `v` is the caller's to free. */
struct claude_names {
	char (*v)[CARD_NAME_MAX + 1];
	size_t n, cap, max;
	bool cards; /* of cards; else of folders or whatever is a name */
};

void claude_names_add(const char *name, void *names);
/* It works, and who spawned it is not known: Claude Code tells that a moment after the start, in a
 * file beside the transcript. */
bool claude_is_bare(const json_t *card);
/* agentId -> card, of a session below `folder`: a new reference, of nothing when there are none. */
json_t *claude_cards(const char *folder, const char *session);

/* A session that has more cards than are kept. */
struct claude_full {
	char session[CARD_NAME_MAX + 1];
	json_t *cards; /* as they are in the log, only looked at */
	bool again;    /* what else is too much was not in the log yet */
};

/* The oldest go, but for `cap`. */
void claude_cap(const char *folder, struct claude_full *f, size_t cap);

struct claude_aged {
	char name[CARD_NAME_MAX + 1];
	int64_t ms;
};

int claude_oldest_first(const void *a, const void *b); /* for qsort */

struct claude_team {
	char name[CARD_NAME_MAX + 1];
	char leader[CARD_NAME_MAX + 1]; /* the session of its leader */
};

struct claude_teams {
	struct claude_team *v;
	size_t n, cap;
};

/* All of them, from their config.json; `home` is Claude Code's folder. */
void claude_teams_read(struct claude_teams *t, const char *home);
void claude_teams_fini(struct claude_teams *t);
/* Of that name, or whose leader's session that is; one of two "" when there is none. Borrowed from
 * t. */
const struct claude_team *claude_teams_find(const struct claude_teams *t, const char *asked);

#endif
