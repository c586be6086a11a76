/* The meaning of a person's words to the offline Ava. A table of phrases, in order: the first row
 * that fits decides. A function of the words and of the subjects that the conversation has. */
#ifndef PROVIDER_OFFLINE_HEARD_H
#define PROVIDER_OFFLINE_HEARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum topic {
	/* quotes, runs, results */
	ABOUT_STOP,
	ABOUT_STOPPING, /* what a stop would do */
	ABOUT_KEEPING,  /* "don't stop it" */
	ABOUT_STEER,
	ABOUT_LIMIT, /* the limits of a run at work */
	ABOUT_RESUME,
	ABOUT_AGAIN,
	ABOUT_SURE,
	ABOUT_FILES,
	ABOUT_DID, /* what a run did, by its log */
	ABOUT_FOUND,
	ABOUT_WHERE, /* all places of a result */
	ABOUT_COST,
	ABOUT_TODAY,
	ABOUT_TIME,
	ABOUT_MODEL,
	ABOUT_TOOLS,
	ABOUT_RIGHTS,
	ABOUT_WHAT,
	ABOUT_WHY,
	ABOUT_STATUS,
	ABOUT_DOUBT, /* doubts before a yes */
	/* the memory */
	ABOUT_REMEMBER,
	ABOUT_KNOWN, /* what is remembered */
	ABOUT_FORGET,
	/* requests that cannot be met */
	ABOUT_WEB,
	ABOUT_LATER,
	ABOUT_CLOCK,
	ABOUT_MEMORY,
	ABOUT_SENDING,
	ABOUT_SHELL,
	ABOUT_WRITING,
	ABOUT_MATHS,
	/* small talk */
	ABOUT_HELLO,
	ABOUT_THANKS,
	ABOUT_BYE,
	ABOUT_HELP,
	ABOUT_ANSWER, /* yes or no */
	/* work */
	ABOUT_TASKS, /* several tasks, side by side */
	ABOUT_TASK,
	ABOUT_LISTING, /* which files there are */
	ABOUT_LOOK,    /* a question to the files */
	ABOUT_NOTHING,
};

/* Bits of the subjects that a conversation has. */
#define HAS_QUOTE 1u
#define HAS_RUN   2u
#define HAS_ENDED 4u

#define HEARD_MAX 2000 /* most bytes of words that are read */

/* Words in plain form: lower case, letters without accents, blanks between words and around all;
 * phrases around a request that mean nothing ("could you please") are removed. */
void heard_plain(const char *words, char out[HEARD_MAX]);
/* Does `plain` hold one of the phrases, "a|b", as whole words? */
bool heard_has(const char *plain, const char *phrases);
/* Is `word` one of the phrases? */
bool heard_is(const char *phrases, const char *word);
bool heard_begins(const char *plain, const char *phrases);
/* Do the words begin as a request for work does: "review …"? */
bool heard_work(const char *plain);
enum topic heard_topic(const char *words, const char *plain, unsigned has);
/* The subject of a question: "my sister" of "what do you know about my sister"; "": everything. */
const char *heard_subject(const char *plain);
/* The role that is asked for by its name; NULL: none. */
const char *heard_role(const char *plain);
/* Find a memory's id, "M-19c0de", in the words. */
bool heard_memory(const char *words, char id[24]);
/* The text to note: "I prefer tea" of `words` "remember that I prefer tea."; *len: its
 * length. */
const char *heard_note(const char *words, size_t *len);

/* Limits in a task ("max 5 cents, at most 2 minutes"). -1: none. */
struct heard_limits {
	int64_t seconds;
	double cents;
};
/* Cut the limits out of `task`, into *out. */
void heard_limits(char *task, struct heard_limits *out);

/* Split "do these two in parallel: a; b" into tasks, cut out of `words`. Returns how many; 0 or 1:
 * one task. */
unsigned heard_tasks(char *words, char *tasks[], unsigned max);

#endif
