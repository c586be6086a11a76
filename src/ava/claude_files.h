/* Claude Code's files as they are on the disk: cards of a session, tasks, teams. Any
 * thread; nothing is kept. */
#ifndef AVA_CLAUDE_FILES_H
#define AVA_CLAUDE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/card.h"

#define CLAUDE_CARDS_MAX 1000        /* read of one session, */
#define CLAUDE_BYTES_MAX (64u << 20) /* and no more of them when those have so many */

struct claude_team {
	char name[CARD_NAME_MAX + 1];
	char leader[CARD_NAME_MAX + 1]; /* the session of its leader */
};

/* It works, and who spawned it is not known: Claude Code tells that a moment after the start, in a
 * file beside the transcript. */
bool claude_is_bare(const json_t *card);
/* Its file's name -> card, of a session below `folder`: a new reference, of nothing when there are
 * none. */
json_t *claude_cards(const char *folder, const char *session);
/* How an agent is now: one that works or waits without a sign of life is stopped, and nobody knows
 * why; one that stopped and goes on is at work. */
void claude_judge(json_t *card, int64_t stale_ms);
/* "ghost": true, on those that the shutdown of a teammate makes: of agents of one type, by their
 * start, one that starts within 30 s after the one before it has stopped. */
void claude_mark_ghosts(json_t *cards);
/* Where in "tasks" those of a session are: its team's, else those of a list that it shares with
 * others by CLAUDE_CODE_TASK_LIST_ID, else its own. */
void claude_tasks_folder(const struct claude_team *team, const json_t *cards, const char *session,
			 char out[CARD_NAME_MAX + 1]);
/* The tasks of a folder, as they are; of what cannot be read the file's name and the reason. */
json_t *claude_tasks(const char *path);
bool claude_has_cards(int dir, const char *folder); /* or tasks */

/* A session that has more cards than are kept. */
struct claude_full {
	char session[CARD_NAME_MAX + 1];
	json_t *cards; /* as they are in the log, only looked at */
	bool again;    /* what else is too much was not in the log yet */
};

/* The oldest go, but for `cap`; ghosts before what they are ghosts of. */
void claude_cap(const char *folder, struct claude_full *f, size_t cap);

struct claude_aged {
	char name[CARD_NAME_MAX + 1];
	int64_t ms;
	bool ghost;
	bool tasks; /* a folder of tasks, not of cards */
};

struct claude_list { /* `v` is the caller's to free */
	struct claude_aged *v;
	size_t n, cap;
};

/* Folders of sessions in `in` of Claude Code's folder that changed since then. */
void claude_sessions(struct claude_list *all, const char *home, const char *in, int64_t since_ms);
int claude_oldest_first(const void *a, const void *b); /* for qsort */

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
