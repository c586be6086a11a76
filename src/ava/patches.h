/* The patches of ended runs that wait for a person (doc/ASKS.md, kind apply), and what carries a
 * yes out. Each is an entry in memory; the logs have its beginning (SubagentComplete with files)
 * and its answer (Custom, applied or left), from which a start makes the entries anew.
 *
 * An entry goes after seven days, when its run is pruned, when a run that went on from it proposes
 * changes itself, which has its own among them, and as the oldest of too many. */
#ifndef AVA_PATCHES_H
#define AVA_PATCHES_H

#include "ava/runs.h"
#include "ava/state.h"
#include "base/hash.h"

#define PATCH_ASK "patch" /* "S-7f3a2b:patch" */

struct patch_offer {
	struct list node; /* in core.patches, oldest first */
	char run[24], session[64];
	int64_t files, since_ms, until_ms;
	uint64_t lsn;   /* of the run's end, or lower */
	bool busy;      /* an answer is being carried out */
	json_t *answer; /* content of the event that tells the answer; owned; NULL: none yet */
};

/* The offer of a run, open or answered. NULL: none. */
struct patch_offer *patches_find(struct core *c, const char *run);
struct patch_offer *patches_named(struct core *c, const char *ask); /* "S-7f3a2b:patch" */
/* An event was written: when it is the answer to an entry, that has its answer. */
void patches_told(struct core *c, json_t *content);
void patches_forget(struct core *c, const char *run); /* its files are gone */

/* ---- on any thread */

struct patch_file_text {
	struct ended ended;
	json_t *result;      /* owned */
	const json_t *about; /* member "patch" of the result */
	char *text;          /* owned */
	size_t len;
	char hash[HASH_HEX_LEN + 1]; /* SHA-256 of `text` */
};

/* Reads the patch of an ended run. The caller calls patch_text_fini, also after an error.
 * AVA_ENOENT: no such run, or it proposes no changes. */
int patch_text_read(int root_fd, const char *run, struct patch_file_text *out,
		    struct ava_error *err);
void patch_text_fini(struct patch_file_text *t);
/* Appends what a person reads before a yes: the files, and the lines of the diff. false: not all of
 * them, and it says how many are left out. */
bool patch_text_show(struct buf *out, const char *run, const struct patch_file_text *t);
/* Writes the files that no program obeys, or nothing at all, and into the open object `w` what was
 * done. AVA_EEXIST: some clash. */
int patch_text_apply(const char *root, const char *run, const struct patch_file_text *t,
		     struct jw *w, struct ava_error *err);

#endif
