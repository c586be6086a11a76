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

/* Words of a person that are being carried out as an answer. Its callback frees it, even after the
 * conversation is closed. */
struct op_answer {
	struct input *in; /* NULL: the conversation was closed meanwhile */
};

struct say_wait { /* a caller that hears when the words are on disk */
	struct list node;
	op_said_fn done;
	void *user;
};

enum input_kind { INPUT_SAID, INPUT_RESULT };
struct input { /* what begins a turn, or goes into the next one */
	struct list node;
	enum input_kind kind;
	char id[24];            /* the entry of the words, or the run */
	int64_t said_ms;        /* wall */
	char shown[ASK_ID_LEN]; /* the Ask that stood before the words; "": none */
	char *text;             /* owned */
	char origin[16];        /* the door they came by */
	struct talk *talk;
	struct op_answer *answer; /* set while the words are carried out as an answer */
	bool looked;              /* talk_answer has seen the input */
	char *request;            /* owned; NULL: none */
	struct list waits;        /* say_wait: callers, until the words are on disk */
};

/* A notice that goes before the next input. */
struct talk_note {
	struct list node;
	char id[40]; /* id of the notice's mark on disk; "": there is no mark */
	char text[];
};

struct session {
	struct list node; /* in core.sessions, newest first */
	struct core *core;
	char id[40];
	char *path;               /* of the conversation's file, below the root */
	char *cwd, *user, *model; /* "" when none */
	char *origin; /* the door where it was begun, which SessionStart and its runs name */
	char *title;  /* NULL: not read yet */
	int64_t created_ms, updated_ms;
	int64_t cost_microusd, tokens; /* of Ava's own calls before the turn in talk->run */
	bool there;                    /* the file at `path` exists */
	struct talk *talk;             /* NULL: not in memory */
	struct delivery_talk told;
};

/* Whether to note or to forget a row, as memory_write asks the person (talk_memory.c). */
struct talk_ask {
	char id[24];
	bool forget;
	bool said;                  /* it stands behind Ava's words: they may answer */
	int64_t since_ms, until_ms; /* wall, once it is said */
	char *question;             /* as they read it; owned */
	char *text, *row, *kind;    /* text; the row's id, "" none; kind, "" as it was; owned */
};

struct talk_watch { /* a subagent of the conversation at work */
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
	struct list inputs; /* inputs that the model has not got, oldest first */
	struct list watches;
	struct list notes;          /* talk_note */
	struct talk_recall *recall; /* memories for the first turn; NULL: not asked for */
	struct buf prompt;          /* the newest input, for previews */
	bool busy;                  /* a turn is under way */
	bool answering;             /* a person's words are carried out as an answer first */
	struct talk_ask *ask;       /* the newest question about the memory; NULL: none is open */
	char answered[24];          /* the one that was answered last, and how; "": none */
	bool answered_yes;
	unsigned seen; /* rights of what she has read (subagent/rights.h); sticks */
	struct os_task pump;
	struct os_timer *again; /* tries again to begin a turn */
};

#define TALK_FILE_MAX (256u << 20) /* bytes of either file of a conversation */

/* ---- session.c */
struct session *session_find(struct core *c, const char *id, struct ava_error *err);
void session_send(struct verb_reply *r, struct session *s); /* answers with the session */
int session_load(struct session *s, struct ava_error *err); /* opens the session's talk */
void session_leave(struct talk *t); /* keeps model and costs in the session, frees `t` */
/* Keeps the entry that a request id was answered with. AVA_ENOMEM. */
int talk_remember(struct session *s, const char *request, int64_t at_ms, const char *entry);

void session_rest(struct core *c); /* drops talks at rest beyond the limit */

/* ---- talk_model.c */
/* session_load, for a session whose folder may be gone: at rest it goes on in `cwd` then (NULL or
 * "": none). */
int session_settle(struct session *s, const char *cwd, struct ava_error *err);

/* ---- talk.c */
/* Without its text. NULL: no memory. */
struct input *talk_input_new(enum input_kind kind, const char *id, int64_t said_ms,
			     const char *shown);
void talk_input_free(struct input *in);
/* Brings a session into memory, from its file when there is one. */
int talk_open(struct session *s, struct ava_error *err);
void talk_free(struct talk *t);
/* Writes what precedes the first line of a new conversation: the header of its file, and how
 * requests begin. 0 or AVA_ENOMEM. */
int talk_start(struct talk *t, struct draft *d);
/* Queue an input (*taken*) and begin a turn when none is under way. */
void talk_input(struct talk *t, struct input *in);
/* The path of the messages file, which holds what the model is sent. 0 or AVA_ETOOBIG. */
int talk_messages_path(const struct session *s, char out[LOGBOOK_PATH]);
/* Makes the result of a subagent of this conversation an input, when it ends. */
int talk_watch_run(struct talk *t, struct run *r);
void talk_go(struct talk *t);        /* the machine takes its first step of a turn */
struct talk *talk_of(struct run *r); /* NULL: it is a subagent */
/* supervisor.on_text: text of a reply as it comes. */
void talk_text(struct run *r, const char *s, size_t n, bool thinking);

/* ---- talk_restore.c */
int talk_restore(struct talk *t, struct ava_error *err);

void talk_asks_person(struct run *r); /* supervisor.on_ask: notes the question of a subagent */
/* How the runtime works, for her model; the short one where the window is small. Its hash
 * stands in the spec. */
extern const char talk_operating[], talk_operating_brief[];

/* ---- notices for Ava that wait for her next turn */
#define NOTE_BYTES 1024
/* Keeps a notice, which is told before the next input. `id` "": in this process only; else
 * talk_note_write has put it into a commit. A second one of an id is ignored. */
void talk_note(struct talk *t, const char *id, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Writes the mark of a notice into the commit of what it tells. */
void talk_note_write(const struct session *s, struct draft *d, const char *id, const char *text);
void talk_note_keep(struct list *notes, const char *id, const char *text);
struct talk_note *talk_note_find(const struct list *notes, const char *id);
void talk_note_free(struct talk_note *n);

/* ---- talk_answer.c: what was said, as the answer to what waits */
/* true: the words are being carried out as an answer; talk_pump goes on afterwards. */
bool talk_answer(struct talk *t, struct input *in);

/* ---- talk_memory.c: what was remembered, before the first turn */
#define TALK_RECALL_BEGIN "What this person " NOTICE_TOLD ". It is data, and may be out of date."
#define TALK_RECALL_END   "End of what was told earlier."
/* true: memories are being looked up; talk_pump goes on afterwards. */
bool talk_recall(struct talk *t);
/* Text in front of the first turn; NULL: there is none, or it was told. */
const struct buf *talk_recalled(const struct talk *t);
void talk_recall_told(struct talk *t, struct draft *d); /* StateRead of the told rows */
void talk_recall_free(struct talk_recall *k);
void talk_note_start(struct tool_call *c); /* memory_write */
/* Carries out the answer to t->ask, which is open no more: `done` once, when the memory has it. */
typedef void (*talk_ask_fn)(int rv, const struct ava_error *err, void *user);
void talk_ask_answer(struct talk *t, bool yes, talk_ask_fn done, void *user);
void talk_ask_drop(struct talk *t);

/* ---- talk_tools.c: Ava's tools, naming the roles visible from `cwd`. talk_tools returns 0: out of
 * memory. */
extern const struct role role_ava;
int talk_tools_init(struct core *c);
void talk_tools_fini(struct core *c);
unsigned talk_tools(const struct core *c, const char *cwd, const struct tool **out);

/* ---- talk_choices.c: the schema of spawn_subagent, or (`several`) of spawn_parallel, with the
 * roles and models that there are. Appends; AVA_ENOMEM. */
struct book_list;
int talk_choices(struct buf *out, bool several, const struct book_list *all,
		 const struct settings *set);

#endif
