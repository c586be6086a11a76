/* Many daemons that share their runs through a PostgreSQL (doc/CLUSTER.md). The local journal stays
 * the only way to write; the database is a gate behind it: what a run waits for counts when it is
 * on this disk and in the database. Without a cluster nothing of this is there. Loop thread only.
 */
#ifndef CLUSTER_CLUSTER_H
#define CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "journal/catalog.h"

struct buf;
struct cluster;
struct ava_error;
struct jw;
struct os_loop;
struct restart_hooks;
struct seal_gone;
struct supervisor;

struct cluster_options {
	struct os_loop *loop;
	struct supervisor *sup; /* borrowed, with its logbook */
	const char *url;        /* conninfo or URI of libpq; *copied* */
	const char *name;       /* of this machine, for people; NULL or "": the host's; *copied* */
	/* Folders that other machines may have, too: "site=/srv/site", each with its NUL, then an
	 * empty one; paths are canonical. NULL: none; *copied* */
	const char *folders;
	int64_t lease_ms; /* how long a machine counts as alive without a word */
	void (*log)(const char *line, void *user);
	/* Another machine has the runs of this one, or its identity: nothing more may be written.
	 * Called once, with one sentence. */
	void (*fenced)(const char *why, void *user);
	void *user;
	/* A run brought down machines and is held: a person has to hear of it. `row` is what it
	 * began with. Told by one machine, once. */
	void (*held)(const struct catalog_row *row, const char *sentence, void *user);
	/* A run of another machine goes on here from now on. */
	void (*came)(const struct catalog_row *row, void *user);
	/* Seals that files go (journal/seal.h). Not 0: it was not begun. */
	int (*gone)(struct seal_gone *g, void *user);
	void *runs_user;
};

/* Opens the gate, and begins to join. AVA_ENOENT: there is no libpq; AVA_ENOMEM; AVA_EIO,
 * AVA_ECORRUPT: cluster.json. */
int cluster_open(struct cluster **c, const struct cluster_options *o, struct ava_error *err);
/* Keeps a run that did not end until the database says whose it is; then it is carried on, or its
 * files are put aside. AVA_ENOMEM. */
int cluster_hold(struct cluster *c, const struct catalog_row *row);
/* Did no answer of the database come yet? Turn the loop until then, before anybody is served. */
bool cluster_opening(const struct cluster *c);
/* A run that ended here, one of the newest: if others went on with it before its end was in the
 * database, what they have counts, and its files here are put aside. AVA_ENOMEM. */
int cluster_ended(struct cluster *c, const struct catalog_row *row);
/* False: the database does not have the run yet, or was not asked since the start. Else true, as
 * with `c` NULL. */
bool cluster_has(const struct cluster *c, const char *run);
/* May new work begin here? Both NULL and a member may; else AVA_EIO, why not. */
int cluster_ready(const struct cluster *c, struct ava_error *err);
/* Sends what waits, for a stop: false when all is in the database, or cannot get there now. */
bool cluster_waits(const struct cluster *c);
/* Takes this machine out: from now on nothing new begins here, and the stop that has to follow
 * `done` gives its runs to others and removes its row and CLUSTER_FILE. 0: `done` once, later; rv
 * not 0: all is as before. AVA_EBUSY: runs are bound to this machine, or nobody is there to take
 * those that are not; or it leaves already. AVA_EIO: the database is away. AVA_ENOMEM. */
typedef void (*cluster_leave_fn)(int rv, unsigned runs, const struct ava_error *err, void *user);
int cluster_leave(struct cluster *c, cluster_leave_fn done, void *user, struct ava_error *err);
/* Gives the lease back, so that others need not wait for its end. NULL is fine. */
void cluster_quiesce(struct cluster *c);
void cluster_close(struct cluster *c); /* after the journal is closed */

/* A door that one machine of a cluster serves for all. In the caller's memory; `node` by list_init,
 * the first four by the caller, the rest zeroed. Callbacks may call nothing of the cluster but
 * cluster_door_open. */
struct cluster_door {
	struct list node;
	char name[300]; /* the same on all machines */
	/* It opens here, or closes. */
	void (*changed)(struct cluster_door *d);
	/* What the machine that has it, or had it, has to tell the others, as a text without NUL;
	 * `give` is asked with each beat, and `adopt` told that of another one, "": nothing. */
	void (*give)(struct cluster_door *d, struct buf *out);
	void (*adopt)(struct cluster_door *d, const char *given);
	char machine[65]; /* the name of the one that has it, by the newest answer; "": none */
	bool ours, told;
};
#define CLUSTER_DOOR_GIVES ((size_t)64 << 10)
/* May it be served here? Without a cluster (NULL) always; else a machine that has claimed it, while
 * its lease holds: until another one may begin. */
bool cluster_door_open(const struct cluster *c, const struct cluster_door *d);
/* Claims the door, from now on; again is fine. It is *borrowed* until cluster_door_drop. */
void cluster_door_want(struct cluster *c, struct cluster_door *d);
void cluster_door_drop(struct cluster_door *d); /* it is served no more */
/* Brings a run of another machine here, or one that is held. `done` once, later, unless it is
 * dropped: 0: the run is at work here; AVA_EEXIST: it has ended; AVA_ENOENT: no such run, or its
 * folder is not here; AVA_EUNSUPPORTED: it cannot come; AVA_ETIMEOUT: it is not here yet, and is
 * still wanted: ask again; AVA_ECANCELED. As new work AVA_EIO; AVA_ENOMEM. */
struct cluster_move {
	bool without_copy; /* without what it has changed in its copy of the project, if need be */
	bool ends;         /* it comes to be ended: only from a machine that is gone */
};
typedef void (*cluster_move_fn)(int rv, const struct ava_error *err, void *user);
int cluster_move(struct cluster *c, const char *run, struct cluster_move how, cluster_move_fn done,
		 void *user, struct ava_error *err);
void cluster_move_drop(struct cluster *c, const void *user);

/* Removes from the database what a pruning has removed here, of runs that began so long ago; when
 * it is away, the next pruning does. NULL is fine. */
void cluster_prune(struct cluster *c, int64_t older_s);

/* The place of a run that is at work here, "anywhere", "here" or "folder site"; NULL: no cluster,
 * or no such run. *Borrowed* from the cluster. */
const char *cluster_place(const struct cluster *c, const char *run);
/* The id of this machine, until the cluster is closed. */
const char *cluster_node(const struct cluster *c);
/* Members of an open object: state, identity, what waits. */
void cluster_write(const struct cluster *c, struct jw *w);

/* A root that is member of a cluster says so in this file: it may not be served without one. */
#define CLUSTER_FILE "cluster.json"
/* AVA_EINVAL: the root is a member, and no url is set. */
int cluster_check_root(int root_fd, bool url, struct ava_error *err);

/* `avad --cluster init|status|print`: makes the tables, says who is there, or gives the SQL. `out`
 * gets one JSON object, or the SQL. Turns the loop meanwhile. AVA_ENOENT: there are no tables, or
 * no libpq. */
int cluster_command(const char *word, const char *url, struct os_loop *loop, struct buf *out,
		    struct ava_error *err);

#endif
