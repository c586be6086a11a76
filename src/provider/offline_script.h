/* Scripted turns: the model offline:FILE.jsonl plays its lines in order
 * (doc/OFFLINE.md). For tests and demonstrations of everything a model may
 * do, the bad things included. */
#ifndef PROVIDER_OFFLINE_SCRIPT_H
#define PROVIDER_OFFLINE_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "provider/dialect.h"

struct offline_body;

#define SCRIPT_MAX (16u << 20) /* bytes of the file */

/* Play line b->number of the text of a script. AVA_EINVAL naming the line of
 * `file` that is no turn, or saying that the script has ended; the code of an
 * error line with its message. */
int script_play(const char *file, const char *text, size_t len, const struct offline_body *b,
		size_t body_len, struct dialect_answer *out, struct ava_error *err);

/* Every line must be a turn; AVA_EINVAL names the first that is none. */
int script_check(const char *file, const char *text, size_t len, struct ava_error *err);

#endif
