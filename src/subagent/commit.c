/* A run's writes, collected for its next commit.
 *
 * Happy path: the first thing to be written opens a draft (commit_draft), more is added to it (a
 * turn's results and the next InferStart go in one commit), commit_flush hands it to the run's
 * outbox; a callback is given only where the machine waits. A failing disk stalls the outbox;
 * the machine just waits. What can fail is memory: a part of the record is lost then, so nothing
 * more of the run is written, and the next start ends the run by its files. */
#include "subagent/run.h"

#include <string.h>

#include "codec/jscan.h"
#include "provider/messages.h"
#include "subagent/record.h"

struct draft *commit_draft(struct run *r)
{
	if (!r->rec.draft)
		r->rec.draft = draft_new(r->rec.outbox.lb);
	if (r->rec.draft && r->rec.unnoted)
		record_restored(r->rec.draft, r);
	return r->rec.draft;
}

uint32_t run_checkpoint_lines(const struct run *r, const struct draft *d)
{
	char path[LOGBOOK_PATH];
	uint32_t n = 0;

	run_messages_path(r, path);
	for (unsigned i = 0; i < d->nparts; i++)
		if (d->parts[i]->kind == DRAFT_MESSAGES && strcmp(d->parts[i]->path, path) == 0)
			n += jsonl_count(d->parts[i]->bytes.data, d->parts[i]->bytes.len);
	return n;
}

void commit_flush(struct run *r, enum journal_level level, void (*done)(int rv, void *user))
{
	struct draft *d = r->rec.draft;

	if (!d)
		return;
	if (r->rec.position_due && !r->agent.ending)
		record_position(d, r);
	r->rec.position_due = false;
	r->rec.draft = NULL;
	if (r->rec.lost || draft_failed(d)) {
		r->rec.lost = true;
		/* The record has a gap: write nothing behind it. */
		draft_free(d);
		r->end.abandoned = true;
		slots_out_of_memory(r);
		run_wake(r);
		return;
	}
	r->rec.message_lines += run_checkpoint_lines(r, d);
	outbox_put(&r->rec.outbox, d, level, done, r);
}

struct buf *commit_messages(struct run *r)
{
	char path[LOGBOOK_PATH];
	struct draft *d = commit_draft(r);

	run_messages_path(r, path);
	return d ? draft_part(d, DRAFT_MESSAGES, path) : NULL;
}

int64_t commit_lines(struct run *r, const char *lines, size_t len)
{
	struct buf *b = len > 0 ? commit_messages(r) : NULL;
	int64_t added = (int64_t)len + !r->rec.wordless; /* with the comma before it */

	if (len == 0)
		return 0;
	if (!b)
		return AVA_ENOMEM;
	buf_add(b, lines, len);
	buf_addc(b, '\n');
	messages_hash(&r->rec.prefix, &r->rec.wordless, lines, len);
	r->rec.request_bytes += added;
	return buf_check(b) == 0 ? added : AVA_ENOMEM;
}
