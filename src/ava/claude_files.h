/* Claude Code's files as they are on the disk: cards of a session, tasks, teams. Any
 * thread; nothing is kept. */
#ifndef AVA_CLAUDE_FILES_H
#define AVA_CLAUDE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/card.h"

#define CLAUDE_CARDS_MAX 1000        /* cards read of a session, at the most */
#define CLAUDE_BYTES_MAX (64u << 20) /* after so many bytes no more are read */

struct claude_team {
	char name[CARD_NAME_MAX + 1];
	char leader[CARD_NAME_MAX + 1]; /* session id of the team's leader */
};

/* Does the agent work, and its parent is unknown? Claude Code writes the parent a moment after the
 * start, into a file beside the transcript. */
bool claude_is_bare(const json_t *card);
/* Cards of a session below `folder`, by file name: a new reference, empty when there are none. */
json_t *claude_cards(const char *folder, const char *session);
/* Sets the agent's state of now: an agent that works or waits without a sign of life is stopped,
 * with unknown reason; a stopped agent that goes on is at work. */
void claude_judge(json_t *card, int64_t stale_ms);
/* Sets "ghost": true on agents that the shutdown of a teammate makes: in order of start and of one
 * type, an agent that starts within 30 s after the previous one stopped. */
void claude_mark_ghosts(json_t *cards);
/* The folder below "tasks" of a session: its team's, else that of a list shared by
 * CLAUDE_CODE_TASK_LIST_ID, else its own. */
void claude_tasks_folder(const struct claude_team *team, const json_t *cards, const char *session,
			 char out[CARD_NAME_MAX + 1]);
/* The tasks of a folder, unchanged; for an unreadable one the file's name and the reason. */
json_t *claude_tasks(const char *path);
bool claude_has_cards(int dir, const char *folder); /* true also for tasks */

/* A session with more cards than are kept. */
struct claude_full {
	char session[CARD_NAME_MAX + 1];
	json_t *cards; /* the cards that are in the log; only read */
	bool again;    /* call again: a hook was writing a card, or one is not in the log yet */
};

/* Removes the oldest cards beyond `cap`; a ghost goes before the agent it copies. */
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

/* Adds folders of sessions in `in`, below Claude Code's folder, that changed since then. */
void claude_sessions(struct claude_list *all, const char *home, const char *in, int64_t since_ms);
int claude_oldest_first(const void *a, const void *b); /* for qsort */

struct claude_teams {
	struct claude_team *v;
	size_t n, cap;
};

/* Reads all teams from their config.json; `home` is Claude Code's folder. `v` is the caller's. */
void claude_teams_read(struct claude_teams *t, const char *home);
/* The team of that name, or whose leader is that session; both fields "": none. Borrowed from
 * `t`. */
const struct claude_team *claude_teams_find(const struct claude_teams *t, const char *asked);

#endif
