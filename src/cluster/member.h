/* The machine that this is in a cluster, for the rooms of this folder. cluster.c joins, renews and
 * fences, gate.c sends what runs wrote, take.c carries on the runs of others,
 * lend.c borrows of the day's budget. */
#ifndef CLUSTER_MEMBER_H
#define CLUSTER_MEMBER_H

#include "base/buf.h"
#include "base/list.h"
#include "base/strmap.h"
#include "cluster/pg.h"
#include "os/loop.h"
#include "subagent/logbook.h"
#include "subagent/restart.h"
#include "subagent/supervisor.h"

#define CLUSTER_TICK_BITS 40
#define CLUSTER_TAKES     3 /* a run that brings down so many takers is held */
#define CLUSTER_CALM      3 /* replies on one machine, after which none of those counts any more */

enum cluster_state {
	CLUSTER_AWAY,    /* no connection, or none that was answered yet */
	CLUSTER_JOINING, /* the database is asked for an epoch, and whose the runs are */
	CLUSTER_MEMBER,
	CLUSTER_REFUSED, /* another machine has this identity; asked again with each beat */
	CLUSTER_FENCED,  /* another machine has the runs: nothing more is sent or let count */
};

/* The state that a run has in ava_run. */
enum cluster_run_state { CLUSTER_LIVE = 0, CLUSTER_POISON = 8, CLUSTER_ENDED = 9 };

/* Is the place of a run told to the database? */
enum cluster_placing {
	PLACE_TOLD,   /* or it is in no folder */
	PLACE_DUE,    /* its folder is to be looked at, from now on */
	PLACE_LOOKED, /* a look that began since is under way, or is being told */
};

/* One of cluster.folders; the last of them is no folder, and has the runs of all others. */
struct cluster_folder {
	struct cluster *c;
	char place[80]; /* "folder site"; of the last "here" */
	char *path;     /* owned; of the last NULL */
	bool busy;      /* it is looked at, or what was seen is being told */
	bool wanted;    /* runs of machines that are gone wait for one with this folder */
	bool due;       /* of a step: so do runs of this machine */
	struct exec_child *child;
	int64_t began_ms, not_before_ms; /* a look for others */
	char *tree;                      /* seen: "<hash> /srv/site"; owned; "": none */
	const char *why;                 /* of none; static; or NULL */
};

/* A path below the root that is to be sent. */
struct cluster_file {
	struct list node;
	char path[];
};

/* The record of a run, as far as the database has it. */
struct cluster_run {
	struct list node;
	struct run_log at;               /* of the log: what the database has */
	int64_t messages_at;             /* bytes of messages.jsonl that it has */
	int64_t log_seen, messages_seen; /* bytes that are on this disk */
	struct list files;               /* struct cluster_file that it does not have */
	char *row;                       /* its row of the catalog */
	bool fresh;                      /* the database does not know the run */
	bool chained;                    /* at.head is known */
	bool relist;                     /* all its files are to be sent */
	bool ended;                      /* the log has its end */
	int turns;                       /* replies of its model since it came here */
	bool unreadable;                 /* it could not be sent, and waits for a beat */
	int64_t moves;                   /* how often it changed its machine */
	uint64_t passed;                 /* the database has all of it up to this ticket */
	bool laying;                     /* its files are being laid down */
	bool given;                      /* its row may be another machine's already */
	enum cluster_placing placing;
	const struct cluster_folder *folder; /* that it is in, once it was looked for; or NULL */
	const char *
		place; /* by the newest look; NULL: it was never at work while something was sent */
	int64_t done_ms; /* when the database had its end and all before; 0: not yet */
	bool named;      /* by the look under way */
	char id[24], group[24];
};

/* A run that did not end here, before the database said whose it is, or which others have. */
struct cluster_held {
	struct list node;
	bool known; /* the database has it */
	char id[24];
	char row[]; /* a line of the catalog */
};

/* How much of a budget this machine has used, reservations included; `held`: those alone. */
struct lend_told {
	char scope[24]; /* "day:2026-11-30" */
	int64_t used, held;
	uint64_t number; /* counts what was told; 0: nothing */
};

struct flush;
struct inbox;
struct leaving;
struct seal_gone;
struct taking;

struct cluster {
	struct os_loop *loop;
	struct supervisor *sup;
	struct logbook *book;
	int root_fd;
	int64_t lease_ms;
	struct { /* as in cluster_options */
		void (*log)(const char *line, void *user);
		void (*fenced)(const char *why, void *user);
		void *user;
		void (*held)(const struct catalog_row *row, const char *sentence, void *user);
		void (*came)(const struct catalog_row *row, void *user);
		int (*gone)(struct seal_gone *g, void *user);
		void *runs_user;
	} tell;
	struct pg *pg;
	enum cluster_state state;
	struct {
		char node[40], token[40], name[65], id[40];
		char home[100];    /* where the data root is, so that a copy of it is known */
		char timeline[64]; /* of the database, when it was last connected to; "": not known
				    */
		bool kept; /* CLUSTER_FILE names the node: else its runs would be nobody's */
	} who;
	struct {
		uint64_t flushes, sent_bytes, taken;
		int64_t flush_us; /* that they took, from the sending to the answer */
	} count;
	int64_t epoch, generation;
	int64_t lease_end_ms; /* of CLOCK_BOOTTIME, since MONOTONIC stands still in suspend */
	struct cluster_beat {
		struct os_timer *timer;
		bool under_way; /* a join or a renewal */
		bool renew_due;
	} beat;
	int64_t member_ms; /* when it became a member, again */
	bool look_due;     /* the database is to be asked whose the runs are */
	bool went_back;    /* the database has lost commits: its generation is to be raised */
	struct os_task tend;
	bool closing;
	char why[400]; /* the newest problem; "" */

	struct {
		struct list doors;     /* struct cluster_door */
		struct os_timer *end;  /* of the lease */
		int64_t not_before_ms; /* doors are not claimed */
		bool asking;
	} porter;

	/* leave.c */
	struct leaving *leaving; /* nothing new begins here; or NULL */

	/* gate.c */
	struct strmap by_id; /* struct cluster_run */
	struct list runs;
	struct list gated; /* drafts that wait, in order */
	/* Number of the flush that takes what comes now. Behind the generation it is the `tick` of
	 * the chunks: of a machine no smaller one follows, after a lost commit neither. */
	uint64_t ticket;
	struct flush *flush; /* the one under way; or NULL */
	bool flush_reads;    /* a pool thread reads for it */
	struct {
		struct os_timer *timer;
		bool due;
	} later;          /* lines that nobody waits for */
	bool settled;     /* whose the runs are is known: something may be sent, and count */
	bool heads_stale; /* the database has lost heads */
	struct os_task pump;
	struct nameset heads; /* the database has them */

	struct cluster_lend {      /* lend.c */
		struct budget *of; /* of the day; NULL: it has no limit */
		int64_t cap;       /* as this machine is set */
		struct os_task task;
		bool asking;
		bool lacking; /* others may give something back: it is asked again with a beat */
		bool known;   /* the database has `told` */
		struct lend_told told; /* the newest */
		uint64_t passed;       /* the database knows what was used up to this ticket */
	} lend;

	/* take.c */
	struct list takings; /* struct taking: runs of others on the way here, one at a time */
	struct {
		int64_t last_ms; /* when the database was last asked whose the runs are */
		bool polling;    /* runs of others are asked for */
		bool grouped;    /* groups of runs that a stop left are put together */
		bool holds;      /* a run of this machine is held: it is looked at with each beat */
		/* struct cluster_held: whose they are is not known yet; without an end here,
		 * others have them; ended here, and not looked at since the start. */
		struct list held, away, over;
		struct strmap by_id; /* of `held`, which may be very many */
	} look;

	struct {                            /* folder.c */
		struct cluster_folder *all; /* n, and the last */
		unsigned n;
		struct os_task step;
		/* What take_poll takes runs for: place and tree of a folder, as it is now; NULL. */
		const char *have;
	} folders;

	struct inbox *inbox; /* inbox.c */

	/* give.c */
	struct {
		struct list runs; /* struct giving: on their way to another machine */
		struct os_timer *timer;
		/* take_look's rows: run, mine. */
		void (*looked)(struct cluster *c, const struct pg_result *rows);
	} give;

	/* move.c */
	struct {
		struct list wanted; /* struct moving: runs that are wanted here */
		struct os_timer *timer;
		/* A run has come here; it does nothing before this returns. */
		void (*taken)(struct cluster *c, const char *run);
	} move;
};

int64_t cluster_now_ms(void); /* CLOCK_BOOTTIME */
/* Tells avad.log, and whoever asks, once. */
void cluster_say(struct cluster *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Gives up: others have the runs. */
void cluster_fence(struct cluster *c, const char *why);
bool cluster_has_lease(const struct cluster *c);
/* Has `beat.renew_due` and `look_due` looked at behind this turn of the loop. */
void cluster_tend(struct cluster *c);
/* A run is at work here from now on: the database has to know in what folder. */
void cluster_place_due(struct cluster *c, struct cluster_run *r);
/* Runs of machines that are gone wait at that place. */
void cluster_place_wanted(struct cluster *c, const char *place);
/* Bytes of runs, and how many runs have some, that are on this disk and not in the database. */
int64_t cluster_lag(const struct cluster *c, unsigned *runs);
/* Begins a statement: a row `me`, locked until its end, while this machine may write. */
#define CLUSTER_ME_SQL                                                                             \
	"with me as (select 1 from ava_node where node = $1 and epoch = $2 and generation = $3"    \
	"  and generation = (select generation from ava_cluster)"                                  \
	"  and lease_until > clock_timestamp() for share)"
/* Adds a statement whose first parameters, $1 to $3, are this machine as it is in its row. */
void cluster_add_me(struct pg_batch *b, const struct cluster *c, const char *sql);

/* ---- gate.c */
int gate_open(struct cluster *c);     /* AVA_ENOMEM: close it */
void gate_give_up(struct cluster *c); /* for a stop: nothing more gets through */
void gate_close(struct cluster *c);
/* The place that a run begins with: "here" where it has a folder, else "anywhere". */
const char *gate_place(const struct run *run);
/* Sends what there is, in this turn of the loop. */
void gate_wake(struct cluster *c);
/* The run's record, made when there is none; NULL: out of memory. */
struct cluster_run *gate_run(struct cluster *c, const char *id);
void gate_forget(struct cluster *c, struct cluster_run *r);
/* The file goes with the next flush. False: out of memory. */
bool gate_add_file(struct cluster_run *r, const char *path);
/* Is something of the run not in the database yet? */
bool gate_has_more(const struct cluster_run *r);
/* Is something of the run, which is to be told of it, not let through yet? */
bool gate_waits(const struct cluster *c, const char *run);
/* Forgets runs that ended long ago: until then the database may lose them, and get them again. */
void gate_prune(struct cluster *c);
/* The database has so much of the run: what is behind it is sent. */
void gate_set(struct cluster_run *r, int64_t log, int64_t messages);

/* ---- lend.c */
void lend_open(struct cluster *c);
void lend_close(struct cluster *c); /* after pg_close */
/* Gives back what is not used, asks for what is wanted, and for what others have used. */
void lend_beat(struct cluster *c);
/* Has this machine used more than the database knows? */
bool lend_owes(const struct cluster *c);
/* Adds to a batch what was used, if that is new, and notes it in `told`, which is empty; once the
 * flush of `ticket` has committed, lend_flushed. */
void lend_add_used(struct pg_batch *batch, struct cluster *c, struct lend_told *told);
void lend_flushed(struct cluster *c, const struct lend_told *told, uint64_t ticket);
/* The end of a statement that begins with "with": loans come to their end, and what they did not
 * use may be lent again. */
#define LEND_SETTLE_SQL(which)                                                                     \
	" gone as (delete from ava_loan l where " which "  returning scope, micro - used as rest)" \
	" update ava_budget b set lent = b.lent - s.rest from (select scope, sum(rest)::bigint as" \
	"  rest from gone group by scope) s where b.scope = s.scope"

/* ---- lay.c */
/* What the database has of a run. */
struct take_row {
	const char *id, *hash, *group;
	size_t hash_len;
	int64_t mine, head, state, messages, moves;
};
/* The next run on the way here. `own`: no other machine had it since, so that its copy of the
 * project is the newest. */
void lay_add(struct cluster *c, const struct take_row *row, bool own);
void lay_next(struct cluster *c); /* begins with what was added */
bool lay_has_group(const struct cluster *c, const char *group);
/* Carries on a run from its files here. False: it cannot be, which was told. */
bool lay_go_on(struct cluster *c, const struct catalog_row *row);
void lay_problem(const char *path, const char *sentence, void *cluster);
/* Puts files aside that were written here and that others, who had the run since, know nothing of;
 * then `t`, if not NULL, is laid down. */
void lay_aside(struct cluster *c, const char *id, struct taking *t);
int64_t lay_size(const struct cluster *c, const char *path); /* 0: no such file */
void lay_close(struct cluster *c);

/* ---- take.c */
/* Columns of a look, and of what names runs to take: run, mine, head, hash, state, bytes of
 * messages, moves, group. */
struct take_row take_row_of(const struct pg_result *r, unsigned i);
/* After a join or a connection that is new: compares what the database has with what is here. */
void take_look(struct cluster *c);
/* Takes runs of machines that are gone; `fence`: ends leases that ran out, too. */
void take_poll(struct cluster *c, bool fence);
/* Of a run with the row `s` of ava_spec: no folder binds it, or another run of its group. */
#define TAKE_FREE_SQL                                                                              \
	"(s.place = 'anywhere' and not exists (select 1 from ava_spec o"                           \
	"  where o.grp = s.grp and o.grp <> '' and o.place <> 'anywhere'))"
/* Of one that takes what its folder has, and has started no command: the files that those leave
 * (/ava/work) stay with their machine. */
#define TAKE_FOLDER_SQL                                                                            \
	"not exists (select 1 from ava_chunk k where k.stream = s.run and k.kind = 0"              \
	"  and (position('\"name\":\"run_bash\"'::bytea in k.body) > 0"                            \
	"   or position('\"name\":\"python_exec\"'::bytea in k.body) > 0))"
/* Adds a row of the catalog here to `to`, one of c->look.held, .away and .over. AVA_ENOMEM. */
int held_add(struct list *to, const struct catalog_row *row);
void held_back(struct cluster *c, const char *run); /* from c->look.away */
void held_drop(struct cluster_held *h);
/* For statements whose answer does not matter. */
void take_forgotten(const struct pg_answer *a, void *user);
void take_close(struct cluster *c);

/* ---- folder.c */
bool folder_open(struct cluster *c, const char *words); /* false: out of memory */
void folder_close(struct cluster *c);                   /* after pg_close */
void folder_beat(struct cluster *c);
void folder_again(struct cluster *c); /* the database may have lost what it was told */
void folder_names(const struct cluster *c, char *out, size_t size); /* a blank between two */
void folder_write(const struct cluster *c, struct jw *w);           /* "folders" */

/* ---- inbox.c */
int inbox_new(struct cluster *c); /* AVA_ENOMEM */
/* This machine is a member, again: what the database has of its Asks may be old. */
void inbox_anew(struct cluster *c);
void inbox_give_up(struct cluster *c); /* for a stop: answers who waits; NULL inbox is fine */
void inbox_free(struct cluster *c);    /* after pg_close */
/* ---- porter.c */
bool porter_open(struct cluster *c); /* false: out of memory */
void porter_close(struct cluster *c);
void porter_claim(struct cluster *c);  /* the doors, with each beat */
void porter_leased(struct cluster *c); /* the lease has another end */
void porter_anew(struct cluster *c);   /* what was claimed may be another machine's */
void porter_look(struct cluster *c);   /* tells doors that open or close */

/* ---- give.c */
bool give_open(struct cluster *c);
void give_wishes(struct cluster *c, const struct pg_result *r);
void give_close(struct cluster *c); /* after pg_close */

/* ---- move.c */
bool move_open(struct cluster *c);
void move_close(struct cluster *c); /* after pg_close */

/* ---- leave.c */
/* In a stop, gives the runs away and takes the machine's row out. False: it does not leave. */
bool leave_finish(struct cluster *c);
void leave_close(struct cluster *c); /* after pg_close */

#endif
