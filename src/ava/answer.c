/* A table of whole answers after folding case, spaces and closing marks. No
 * guessing: "yes but cheaper" is not a yes to what was quoted. What the tables
 * do not hold is unclear, and the person is asked again. */
#include "ava/answer.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/util.h"

static const char *const yes_words[] = {
	"y",         "yes",         "yes please", "yep",       "yeah",       "yup",
	"sure",      "ok",          "okay",       "go",        "go ahead",   "proceed",
	"do it",     "please do",   "confirm",    "confirmed", "start",      "run it",
	"go for it", "sounds good", "fine",       "of course", "absolutely", "ja",
	"oui",       "si",
};
static const char *const no_words[] = {
	"n",         "no",      "no thanks", "no thank you", "nope",   "nah",      "stop",
	"cancel",    "don't",   "do not",    "dont",         "reject", "rejected", "never mind",
	"nevermind", "not now", "abort",     "nein",         "non",
};

/* Lower case, inner runs of space folded, outer space and .,! taken off. */
static void fold(const char *text, char *out, size_t size)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if (isspace(c) || c == ',') {
			if (n > 0 && out[n - 1] != ' ')
				out[n++] = ' ';
		} else {
			out[n++] = (char)tolower(c);
		}
	}
	while (n > 0 && strchr(" .!,", out[n - 1]))
		n--;
	out[n] = 0;
	if (*text)
		out[0] = 0; /* longer than any plain answer */
}

enum answer answer_parse(const char *text)
{
	char folded[64];

	fold(text, folded, sizeof(folded));
	for (size_t i = 0; i < ARRAY_LEN(yes_words); i++)
		if (strcmp(folded, yes_words[i]) == 0)
			return ANSWER_YES;
	for (size_t i = 0; i < ARRAY_LEN(no_words); i++)
		if (strcmp(folded, no_words[i]) == 0)
			return ANSWER_NO;
	return ANSWER_UNCLEAR;
}
