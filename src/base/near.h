/* The closest of some words to a misspelt one. */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include <stddef.h>

/* Number of edits between two words (letters changed, added, left out, swapped with their
 * neighbour); 99 when either has over 48 bytes. */
unsigned near_distance(const char *a, size_t alen, const char *b, size_t blen);

struct near {
	const char *name;
	const char *best; /* borrowed from the caller's words */
	size_t len;       /* length of `best`; 0: nothing is near */
	unsigned distance;
};

/* Begin a search for words at most a third of the name's letters away (at least one letter). */
struct near near_start(const char *name);
void near_word(struct near *n, const char *word, size_t len);
/* As near_word, for each of several words, a blank between two. */
void near_words(struct near *n, const char *words);

#endif
