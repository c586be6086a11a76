/* The JSON of a spawn (doc/api.yaml), written once: for the library's calls and the command line.
 * All of these write members of the object that is open in `w`. */
#ifndef CLIENT_SPAWN_H
#define CLIENT_SPAWN_H

#include <ava.h>
#include "codec/json.h"

void spawn_put_str(struct jw *w, const char *key, const char *s); /* NULL: nothing */
/* What is given of it: a run's options and whose request it is. */
void spawn_put(struct jw *w, const struct ava_spawn *s);
/* Where a resumed run goes on: before that call of the model, else at a checkpoint, else (0 and
 * NULL) at its end. */
void spawn_put_from(struct jw *w, int64_t call, const char *checkpoint);
/* nruns 0: the caller has written "runs" already. */
void spawn_put_group(struct jw *w, const struct ava_spawn_group *g);

#endif
