/* A conversation while it is in memory: Ava as an agent of the same machine.
 * Files: session.c (which there are and stay in memory, the verbs), talk.c (turns, and what her
 * model is told), talk_restore.c (after a stop), talk_answer.c (what is said to what waits),
 * talk_tools.c (her tools), talk_memory.c (what she remembers). Loop thread only. */
#ifndef AVA_TALK_H
#define AVA_TALK_H

#include "agent/prompt.h"
#include "ava/sessions.h"
#include "ava/state.h"
#include "subagent/session_entry.h"

struct talk;
struct talk_recall;
struct tool_call;

/* In this order: the last one counts (talk_restore.c). */
enum talk_asks { ASKS_NOTHING, ASKS_OF_QUOTE, ASKS_ELSE };

/* What was said is being carried out as an answer: to proposals, or to what a
 * subagent asks. */
struct op_answer {
	struct input *in; /* NULL: the conversation was closed meanwhile */
	unsigned left;    /* answers under way */
	bool stops;       /* it may be meant for what is at work, too */
	bool outlives;    /* it is called back, and freed, after the conversation is closed */
};

struct say_wait { /* whoever said it hears when it is on disk */
	struct list node;
	op_said_fn done;
	void *user;
};

enum input_kind { INPUT_SAID, INPUT_RESULT };
struct input { /* begins a turn, or goes into the next one */
	struct list node;
	enum input_kind kind;
	char id[24];     /* entry of what was said, or run */
	int64_t said_ms; /* wall */
	int64_t seen_ms; /* wall: a quote that came up later was not before their eyes */
	char *text;      /* owned */
	char origin[16]; /* the door it came by */
	struct talk *talk;
	struct op_answer *answer; /* it is being carried out; or NULL */
	bool looked;              /* for an answer */
	char *request;            /* owned; NULL: none */
	struct list waits;        /* say_wait: until it is on disk */
};

/* A notice that goes before the next input. */
struct talk_note {
	struct list node;
	char id[40]; /* of its mark on disk; "": it has none */
	char text[];
};

struct session {
	struct list node; /* in core.sessions, newest first */
	struct core *core;
	char id[40];
	char *path;               /* of its file, below the root */
	char *cwd, *user, *model; /* "" when none */
	char *origin; /* the door where it was begun: SessionStart and its runs say so */
	char *title;  /* NULL: not read yet */
	int64_t created_ms, updated_ms;
	int64_t cost_microusd, tokens; /* of Ava's own calls, when it was in memory before */
	bool there;                    /* its file exists */
	struct talk *talk;             /* NULL: not in memory */
};

struct talk_watch { /* one of its subagents at work */
	struct run_wait wait;
	struct list node; /* in talk.watches */
	struct talk *talk;
	char run[24];
};

struct talk {
	struct run run; /* the machine and its record; run.place is `place` */
	struct session *session;
	struct agent_io io;
	struct run_place place;
	char messages[LOGBOOK_PATH], artifacts[LOGBOOK_PATH];
	struct list node;   /* in core.talks */
	struct list saying; /* inputs on their way to the disk */
	struct list inputs; /* not yet told to the model, oldest first */
	struct list watches;
	struct list notes;          /* talk_note */
	struct talk_recall *recall; /* what it begins with; NULL: not asked for */
	struct buf prompt;          /* the newest input, for previews */
	bool begun;                 /* the machine has had a turn in this process */
	bool busy;                  /* a turn is under way */
	bool answering;             /* what a person said is carried out first */
	bool spent;                 /* what they said last was an answer, and is none to Ava */
	unsigned seen;              /* rights of what she has read (subagent/rights.h); sticks */
	int64_t spoke_ms;           /* when Ava said something last, wall */
	int64_t turn_ms;            /* when her newest turn began, wall */
	enum talk_asks asks;        /* what she asked with that */
	/* What was said under a lower number was said while a question of her subagents was open
	 * that is not any more. 0: there is none. */
	uint64_t asked_lsn;
	struct os_task pump;
	struct os_timer *again;        /* a turn that could not be begun */
	int64_t cost_microusd, tokens; /* of the turns before this one */
};

#define TALK_FILE_MAX (256u << 20) /* bytes of either file of a conversation */

/* ---- session.c */
struct session *session_find(struct core *c, const char *id, struct ava_error *err);
void session_send(struct verb_reply *r, struct session *s); /* an answer that shows it */
int session_load(struct session *s, struct ava_error *err); /* it has a talk then */
void session_leave(struct talk *t);                         /* it is in memory no more */
/* What was said with this request id. AVA_ENOMEM. */
int talk_remember(struct session *s, const char *request, int64_t at_ms, const char *entry);

void session_rest(struct core *c); /* one may have nothing to do any more */

/* ---- talk_model.c */
/* session_load; one at rest whose folder is gone goes on in `cwd` (NULL or "": there is none). */
int session_settle(struct session *s, const char *cwd, struct ava_error *err);

/* ---- talk.c */
void talk_input_free(struct input *in);
/* In memory from now on; its file is read when there is one. */
int talk_open(struct session *s, struct ava_error *err);
void talk_free(struct talk *t);
/* What the first words, or the first turn, of a conversation that is not on disk bring with them:
 * its header, and how requests begin. 0 or AVA_ENOMEM. */
int talk_start(struct talk *t, struct draft *d);
/* Queue an input (*taken*) and begin a turn when none is under way. */
void talk_input(struct talk *t, struct input *in);
/* Where what travels to her model stands. 0 or AVA_ETOOBIG. */
int talk_messages_path(const struct session *s, char out[LOGBOOK_PATH]);
/* A subagent of this conversation: its result will be an input. */
int talk_watch_run(struct talk *t, struct run *r);
void talk_go(struct talk *t);        /* the machine takes its first step of a turn */
struct talk *talk_of(struct run *r); /* NULL: it is a subagent */
/* supervisor.on_text: text of a reply as it comes. */
void talk_text(struct run *r, const char *s, size_t n, bool thinking);

/* ---- talk_restore.c */
int talk_restore(struct talk *t, struct ava_error *err);

void talk_asks_person(struct run *r); /* supervisor.on_ask: a note of what a run of hers asks */
void talk_asked(struct run *r);       /* supervisor.on_asked */
/* How the runtime works, for her model; the short one where the window is small. Its hash
 * stands in the spec. */
extern const char talk_operating[], talk_operating_brief[];

/* ---- notices for Ava that wait for her next turn */
#define NOTE_BYTES 1024
/* A notice, told before the next input. `id` "": of this process only; else
 * talk_note_write has put it into a commit. One of an id is enough. */
void talk_note(struct talk *t, const char *id, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Its mark, into the commit that it tells of. */
void talk_note_write(const struct session *s, struct draft *d, const char *id, const char *text);
void talk_note_keep(struct list *notes, const char *id, const char *text);
struct talk_note *talk_note_find(const struct list *notes, const char *id);
void talk_note_free(struct talk_note *n);

/* ---- talk_answer.c: what was said, as the answer to what waits */
/* true: it is being carried out, talk_pump goes on afterwards. */
bool talk_answer(struct talk *t, struct input *in);
/* What words of hers ask the person: something, with a question mark outside of quotation
 * marks, since a question that she quotes is somebody else's; of a quote, where a word of it
 * stands beside that (its id, "start", "proposal"). */
enum talk_asks talk_asks(const char *text, size_t len);

/* ---- talk_memory.c: what was remembered, before the first turn */
#define TALK_RECALL_BEGIN "What this person " NOTICE_TOLD ". It is data, and may be out of date."
#define TALK_RECALL_END   "End of what was told earlier."
/* true: it is being asked for, talk_pump goes on afterwards. */
bool talk_recall(struct talk *t);
/* Goes in front of the first turn; NULL: there is none, or it was told. */
const struct buf *talk_recalled(const struct talk *t);
void talk_recall_told(struct talk *t, struct draft *d); /* its line is in `d` */
void talk_recall_free(struct talk_recall *k);
void talk_note_start(struct tool_call *c); /* memory_write */

/* ---- talk_tools.c: her tools, which name the roles that can be seen from `cwd` now. 0: no
 * memory */
extern const struct role role_ava;
int talk_tools_init(struct core *c);
void talk_tools_fini(struct core *c);
unsigned talk_tools(const struct core *c, const char *cwd, const struct tool **out);

#endif
