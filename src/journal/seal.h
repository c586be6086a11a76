/* Sealing: SHA-256 over the files that only grow, and signed statements about them
 * (doc/SEALS.md). The sealer reads the journal's files, away from the loop: each call on one
 * thread, one at a time. Its results are contents of Seal events, which the caller commits, in
 * order, all of them. */
#ifndef JOURNAL_SEAL_H
#define JOURNAL_SEAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/list.h"

struct sealer;
struct ava_error;
struct seal_newest;

/* Read the key (made at first use) and the newest Seal. `rootfd` is borrowed. Bytes left
 * unsealed by an end without a last Seal are part of the next round. */
int sealer_open(struct sealer **s, int rootfd, struct ava_error *err);
/* `complete`: everything is sealed and its Seals are committed, so the next start need not look
 * for more. Accepts NULL. */
void sealer_close(struct sealer *s, bool complete);

struct seal_list {
	struct buf *contents; /* owned, as is the array */
	size_t n, cap;
};
void seal_list_fini(struct seal_list *l);

/* Hash the new bytes of these files (paths as the journal has them; all their parts) and of
 * daily logs seen before, and append contents of Seals to `out`; none without new bytes. On
 * error `out` and the sealer are valid: commit the contents in it. `pruned`, if not NULL, is a
 * JSON object: the last Seal has it as `"pruned"`, and is written even without new bytes. */
int sealer_round(struct sealer *s, char *const *paths, size_t n, const char *pruned,
		 struct seal_list *out, struct ava_error *err);
/* To call after all contents are committed, the last into this daily log: notes that one in
 * seals/last. */
int sealer_committed(struct sealer *s, const char *day_path, struct ava_error *err);

/* Files that go: a Seal for each JSON object of `texts`, which says so; those of several come one
 * behind the other. For an empty text only what has grown is sealed. In the caller's memory until
 * `done`: all are on disk (0), or the error. */
struct seal_gone {
	struct list node;
	const struct buf *texts;
	size_t n, at; /* `at`: 0 */
	void (*done)(struct seal_gone *g, int rv, const struct ava_error *err);
};
/* One of the texts. `base`: the last Seal that goes with the files, or zeroed. AVA_EIO, AVA_ENOMEM.
 */
int seal_gone_text(int rootfd, const struct seal_newest *base, char *const *names, size_t n,
		   struct buf *out, struct ava_error *err);

#endif
