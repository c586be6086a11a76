/* A run that begins where an ended one stopped: a fork with an id, limits and a
 * confirmation of its own (`ava resume`). Its conversation begins with the lines of
 * the other one, byte for byte, so that a provider's prompt cache may hit. */
#ifndef SUBAGENT_RESUME_H
#define SUBAGENT_RESUME_H

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"

struct ava_error;
struct run;
struct resumed;
struct run_spec;

/* The first line of an ended run's messages.jsonl, the object in its "spec"; a new
 * reference in *line. AVA_ENOENT: there is none any more; AVA_ECORRUPT. */
int resume_spec(int root_fd, const char *run, json_t **line, struct ava_error *err);

/* Made before the run is spawned, on a pool thread: a long record takes its time.
 * The spec is only read. AVA_ENOENT, AVA_EUNSUPPORTED (models of another dialect),
 * AVA_ECORRUPT, AVA_ENOMEM. */
int resume_prepare(int root_fd, const struct run_spec *s, struct resumed **out,
		   struct ava_error *err);
/* The messages of a new run, from what its spec was given; that is freed. AVA_EINVAL:
 * it was given nothing. */
int resume_messages(struct run *r, struct buf *out, unsigned *results, struct ava_error *err);

#endif
