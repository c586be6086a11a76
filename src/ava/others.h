/* Runs of other machines of the cluster, for the verbs (cluster/read.h). */
#ifndef AVA_OTHERS_H
#define AVA_OTHERS_H

#include "ava/ops.h"
#include "ava/verbs.h"
#include "cluster/cluster.h"
#include "cluster/read.h"

/* May another machine have the run? False where it is at work here, or has ended here. */
bool others_may(struct core *c, const char *run);
/* Writes into a status read from the copy of a run, or from the row of a list, whose it is and, of
 * one that goes on, how it is there. */
void others_status(const struct reader_run *run, struct op_status *s);
/* Begins work about the files of a run as verb_work does; where another machine may have the run,
 * once the copy of it is up to date (verb_work.foreign). */
void others_work(struct verb_call *v, const char *run, const struct verb_work *like,
		 size_t own_size);
/* The folder with the files of the work's run: its descriptor, and its path into `path`, which is
 * initialised by the caller. On any thread. */
int others_root(const struct verb_work *w, struct buf *path);
#define OTHERS_ONLY "run %s is one of machine %s: this is done there only"
/* AVA_EUNSUPPORTED: the run goes on, on another machine. */
int others_refuse(const struct op_status *s, struct ava_error *err);
/* Tells a person that a run is held (cluster_options.held). */
void others_held(const struct catalog_row *row, const char *sentence, void *core);
/* May a run with that status be ended here, though it is another machine's? */
bool others_may_end(const struct op_status *s);
/* Brings it here to be ended: `done` once, rv 0: it is at work here. */
void others_fetch_to_end(struct core *c, const char *run, cluster_move_fn done, void *user);

#endif
