/* Near misses; see near.h. The distance of Damerau and Levenshtein with
 * neighbours swapped, over three rows of a table. Nothing can fail; long words
 * are far from everything. */
#include "base/near.h"

#include <string.h>

#include "base/util.h"

#define WORD_MAX 48
#define FAR      99

unsigned near_distance(const char *a, size_t alen, const char *b, size_t blen)
{
	unsigned rows[3][WORD_MAX + 1];

	if (alen > WORD_MAX || blen > WORD_MAX)
		return FAR;
	for (size_t j = 0; j <= blen; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= alen; i++) {
		unsigned *now = rows[i % 3], *up = rows[(i + 2) % 3], *upper = rows[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= blen; j++) {
			unsigned change = up[j - 1] + (a[i - 1] != b[j - 1]);

			now[j] = MIN(change, MIN(up[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = MIN(now[j], upper[j - 2] + 1);
		}
	}
	return rows[alen % 3][blen];
}

struct near near_start(const char *name)
{
	return (struct near){.name = name, .distance = (unsigned)MAX(strlen(name) / 3, 1) + 1};
}

void near_word(struct near *n, const char *word, size_t len)
{
	unsigned d = near_distance(n->name, strlen(n->name), word, len);

	/* `d < len`: every word is near to one of two letters. */
	if (d < n->distance && d < len) {
		n->distance = d;
		n->best = word;
		n->len = len;
	}
}

void near_words(struct near *n, const char *words)
{
	while (*words) {
		size_t len = strcspn(words, " ");

		near_word(n, words, len);
		words += len;
		words += strspn(words, " ");
	}
}
