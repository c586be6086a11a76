/* The rights of a run: may it see what is the person's, does it get what strangers wrote, can
 * it send something out? They follow from its tools' flags (agent/tool.h), its folder, its
 * grants and what its context holds, never from a name. Two of them at a time are ordinary
 * work; with all three what a stranger wrote could make the run send out what is the
 * person's, so that these need a yes that says so (ava/propose.c).
 *
 * Rights are decided before a person is asked, are part of what is confirmed and do not change
 * afterwards. Whoever gets a run's result, conversation or notes, a run or Ava, has seen what
 * that run saw (RIGHTS_SEEN). Pure. */
#ifndef SUBAGENT_RIGHTS_H
#define SUBAGENT_RIGHTS_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/tool.h"
#include "base/buf.h"

struct jw;

/* Sets of TOOL_PRIVATE, TOOL_UNTRUSTED, TOOL_OUT. */
#define RIGHTS_ALL  (TOOL_PRIVATE | TOOL_UNTRUSTED | TOOL_OUT)
#define RIGHTS_SEEN (TOOL_PRIVATE | TOOL_UNTRUSTED) /* inherited with what a run passes on */

#define GRANT_ALL_THREE "all_three" /* a person's yes to all three, given beforehand */

/* Rights of a run with these tools; `folder`: it has one, `fetch_any`: it has that grant. */
unsigned rights_of(const struct tool *const *tools, unsigned n, bool folder, bool fetch_any);
static inline bool rights_all_three(unsigned rights)
{
	return (rights & RIGHTS_ALL) == RIGHTS_ALL;
}

/* {"private":…,"untrusted":…,"out":…}, as `key`, and back. */
void rights_write(struct jw *w, const char *key, unsigned rights);
unsigned rights_read(const json_t *o);
/* "reads your files and memories, no network"; `reads` is a set of RIGHTS_FILES and its like
 * (base/rights_words.h). */
void rights_words(struct buf *out, unsigned rights, unsigned reads);
/* The person's things that the tools read, as a set of RIGHTS_FILES and its like. */
unsigned rights_reads(const struct tool *const *tools, unsigned n, bool folder);

bool rights_reads_web(const struct tool *const *tools, unsigned n);
/* The addresses that a task names and a quote lists, a line each; returns how many more there are.
 * `folder`: the run has one, so that a host alone may be the name of a file. */
size_t rights_addresses(struct buf *out, const char *task, bool folder);

/* Why all three are asked about, and what to say; follows the word "This ". */
#define RIGHTS_SENTENCE                                                                            \
	"run could read your data, read the web and send data out: say \"yes, all three\" if "     \
	"you want that, or leave a tool out (\"yes, without …\")"

#endif
