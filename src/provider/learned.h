/* Facts that were learned of models where they are served: the window and the most output of a
 * call, as the server says (subagent/learn.h), as its refusals say, or as it counted. Kept in the
 * data root (doc/MESSAGES.md, "What was learned of models"); any thread. */
#ifndef PROVIDER_LEARNED_H
#define PROVIDER_LEARNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;
struct buf;

#define LEARNED_FILE "learned.json"
#define LEARNED_KEY  640                      /* bytes of id and base URL */
#define LEARNED_MAX  256                      /* no more are kept */
#define LEARNED_MS   (INT64_C(30) * 86400000) /* older ones are not believed */

/* Limits of the model of that id at that base URL, in tokens; 0: not known. false: none is. */
bool learned_find(const char *model, const char *url, int64_t *window, int64_t *output_max);
/* 0 says nothing of that number. `from`: "server", "refusal", "count". true: it is new, and
 * learned_save is due. */
bool learned_note(const char *model, const char *url, int64_t window, int64_t output_max,
		  const char *from);
/* The dialect that a service asked for, by the model's id, for as long as the program: the first
 * `name` that was given (NULL: none is); "" none. */
const char *learned_dialect(const char *model, const char *name);
/* The i-th in words, for a person; false behind the last. */
bool learned_words(size_t i, struct buf *out);

/* In place of what was known. No file is fine; one that is damaged or of others is ignored, with a
 * sentence (AVA_ECORRUPT). */
int learned_load(int root_fd, struct ava_error *err);
int learned_save(int root_fd, struct ava_error *err);

#endif
