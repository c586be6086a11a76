/* A run that begins where an ended one stopped: a fork with an id, limits and a
 * confirmation of its own (`ava resume`). Its conversation begins with the lines of
 * the other one, byte for byte, so that a provider's prompt cache may hit. */
#ifndef SUBAGENT_RESUME_H
#define SUBAGENT_RESUME_H

#include <jansson.h>

#include "base/buf.h"

struct ava_error;
struct run;
struct resumed;
struct run_spec;

/* The spec in the first line of an ended run's messages.jsonl; a new reference in
 * *spec. AVA_ENOENT: there is none any more; AVA_ECORRUPT. */
int resume_spec(int root_fd, const char *run, json_t **spec, struct ava_error *err);

/* Made before the run is spawned, on a pool thread: a long record takes its time.
 * `upto`: bytes of the other run's messages that the new one begins with, from replay_seek;
 * SIZE_MAX: all. The spec takes the dialect of the lines. AVA_ENOENT, AVA_EUNSUPPORTED (models
 * of another dialect), AVA_ECORRUPT, AVA_ENOMEM. */
int resume_prepare(int root_fd, struct run_spec *s, size_t upto, struct resumed **out,
		   struct ava_error *err);
/* The messages of a new run from spec->resumed, which is freed. AVA_EINVAL: it is NULL. */
int resume_messages(struct run *r, struct buf *out, unsigned *results, struct ava_error *err);

/* ---- Named checkpoints: a name for how far a run is, as an event in its log, and
 * finding the call of such a name later. A fork from it begins with the lines that
 * the model call under way was sent, or the last one that was answered while its
 * tools are at work: nothing that happens after the checkpoint is in it. Loop
 * thread only. */

struct ava_error;
struct run;

#define RUN_CHECKPOINT_NAME 64  /* characters of a name */
#define RUN_CHECKPOINTS_MAX 100 /* checkpoints of a run */

/* Called once. rv 0: the checkpoint is on disk; AVA_ECANCELED: the runtime stops first. */
typedef void (*run_checkpoint_fn)(int rv, void *user);

/* Letters, digits, '.', '_' and '-', a letter first: no name is a number of a
 * call. AVA_EINVAL. */
int run_checkpoint_check(const char *name, struct ava_error *err);

/* Give the run's position a name. The texts are *copied*. *call: the model call
 * that a fork begins with, from 1. 0: `done` follows; 1: that call has the name
 * already, nothing is written and `done` never called. AVA_EINVAL: no such name
 * is possible; AVA_EEXIST: the name stands at another call; AVA_EBUSY: the name is
 * just being written; AVA_ETOOBIG: RUN_CHECKPOINTS_MAX are there; AVA_ENOMEM. */
int run_checkpoint(struct run *r, const char *name, const char *by, const char *origin, int *call,
		   run_checkpoint_fn done, void *user, struct ava_error *err);

/* Restore a checkpoint from its event after a restart. AVA_ENOMEM. */
int run_checkpoint_restore(struct run *r, const json_t *content);

/* The call that `name` stands for in the log of a run, ended or not. AVA_ENOENT,
 * with the names that there are: no such checkpoint; AVA_EINVAL: two of that name
 * stand at different calls; AVA_ECORRUPT, AVA_EIO, AVA_ENOMEM. */
int run_checkpoint_find(int root_fd, const char *run, const char *name, int *call,
			struct ava_error *err);

#endif
