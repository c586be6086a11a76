/* The closest of some words to a misspelt one. */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include <stddef.h>

/* Edits between two words (letters changed, added, left out, swapped with
 * their neighbour); over 48 bytes of either: 99. */
unsigned near_distance(const char *a, size_t alen, const char *b, size_t blen);

struct near {
	const char *name;
	const char *best; /* borrowed from the caller's words */
	size_t len;       /* of best; 0: nothing is near */
	unsigned distance;
};

/* Begin a search for words at most a third of the name's letters away (at least one letter). */
struct near near_start(const char *name);
void near_word(struct near *n, const char *word, size_t len);
/* The same for each of several words, a blank between two. */
void near_words(struct near *n, const char *words);

#endif
