/* Facts that were learned of models where they are served: window, most output of a call, calls at
 * a time, tools, as the server says (subagent/learn.h), as its refusals say, or as it counted. Kept
 * in the data root (doc/MESSAGES.md, "What was learned of models"); any thread. */
#ifndef PROVIDER_LEARNED_H
#define PROVIDER_LEARNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;
struct buf;

#define LEARNED_FILE "learned.json"
#define LEARNED_MAX  256                      /* most rows that are kept */
#define LEARNED_MS   (INT64_C(30) * 86400000) /* ms after which a row is ignored */

/* 0 in a field: not known. */
struct learned {
	int64_t window, output_max; /* in tokens */
	int64_t slots;              /* number of calls that the server handles at once */
	int64_t tools;              /* 1: the model's template has tools; -1: it has none */
	int64_t said;               /* 1: a person was told of the missing tools */
};

/* The key of a row: model id and base URL. */
struct learned_key {
	char text[640];
};
struct learned_key learned_key(const char *model, const char *url);

/* Facts of a model; false: none is known, and all are 0. */
bool learned_find(const char *model, const char *url, struct learned *out);
/* Merge `l` into the row; unknown fields of `l` change nothing. `from`: "server", "refusal",
 * "count". true: the row changed, and learned_save is due. */
bool learned_note(const char *model, const char *url, const struct learned *l, const char *from);
/* Learn from a call of `bytes` that was counted as so many tokens, and whose reply `called` a tool
 * or not. A count that has no room for the tools is noted. true: the person is to be told in the
 * words in `text`, of that or of what the server said before, once a model for as long as the
 * program. */
bool learned_count(const char *model, const char *url, int64_t bytes, int64_t tokens, bool called,
		   char *text, size_t size);

/* The models that a server lists, for as long as the program: their number, 0: not known, and their
 * names, a comma and a blank between two. */
void learned_list(const char *url, size_t n, const char *names);
size_t learned_names(const char *url, char *out, size_t size);

/* The dialect that a service asked for, by the model's id, for as long as the program: the first
 * `name` that was given (NULL: none is); "" none. */
const char *learned_dialect(const char *model, const char *name);
/* Say in words what was learned of the i-th model and service; false behind the last. */
bool learned_words(size_t i, struct buf *out);

/* Replace the rows by the file's. A missing file is fine; one that is damaged or of another version
 * is ignored, with a sentence (AVA_ECORRUPT). */
int learned_load(int root_fd, struct ava_error *err);
int learned_save(int root_fd, struct ava_error *err);

#endif
