/* Room in the window.
 *
 * Two marks with a distance between them: room is made at 80 % and down to
 * 50 %, so that a rewrite, which costs the provider's cache once, pays for many
 * calls that only extend it. What was removed stays removed: the next request
 * extends the last one.
 *
 * Order: bodies of results first (their calls stay, so pairing holds by
 * construction), then a span of whole lines, of which a ledger remains. Where
 * the last lines alone are too large they give way too, but for the last
 * results: those were never read.
 *
 * When a service says that a conversation is too large, the estimate was wrong
 * or the window smaller than the table says. Then half of it must do, three
 * times at most, and what was refused is the window from then on.
 *
 * Nothing here can fail. */
#include "agent/compact.h"

#include "agent/machine.h"
#include "agent/limit.h"
#include "base/util.h"

#define HIGH_TENTHS 8
#define LOW_TENTHS  5

/* The output that a call keeps free; a quarter of the window at the most, or a
 * small window would be full before it holds anything. */
static int64_t reserve(const struct agent *a)
{
	return MIN(a->spec->max_output, a->spec->window / 4);
}

static int64_t tenths(int64_t n, int t)
{
	return n / 10 * t + n % 10 * t / 10;
}

bool compact_due(const struct agent *a, struct agent_compact *out)
{
	int64_t window = a->spec->window, now = limit_next_input(a);
	int64_t high = tenths(window, HIGH_TENTHS) - reserve(a);

	*out = (struct agent_compact){.tokens = now, .overflow = a->at.overflowed};
	if (a->at.overflowed) {
		out->target = out->most = now / 2;
		return true;
	}
	if (window <= 0 || now <= high || now < a->at.compact_floor)
		return false;
	out->target = MAX(tenths(window, LOW_TENTHS) - reserve(a), window / 10);
	out->most = MAX(high, out->target);
	return true;
}

void compact_done(struct agent *a, const struct agent_compacted *d)
{
	int64_t now = limit_next_input(a);

	if (d->bytes_after < d->bytes_before && d->bytes_before > 0) {
		/* In proportion: what a byte costs was measured. */
		a->at.measured_input =
			(int64_t)((double)now * (double)d->bytes_after / (double)d->bytes_before);
		a->at.new_bytes = 0;
	}
	/* Where little could go, it is not tried again at each call. */
	a->at.compact_floor = limit_next_input(a) + a->spec->window / 10;
}

/* ---- what goes */

/* The first line that stays when `keep` lines at the end do: an assistant's, so
 * that no result is without its call; 0: none can go. */
static size_t boundary(const struct compact_line *lines, size_t n, size_t keep)
{
	size_t at = n > keep ? n - keep : 0, last = n;

	while (last > 0 && !lines[last - 1].assistant)
		last--;
	if (last == 0)
		return 0;
	at = MIN(at, last - 1);
	while (at > 1 && (!lines[at].assistant || lines[at - 1].assistant))
		at--;
	return at > 1 ? at : 0;
}

static int64_t elide(struct compact_plan *p, struct compact_result *results, size_t n, size_t from,
		     bool fetched)
{
	int64_t freed = 0;

	for (size_t i = 0; i < n && p->freed + freed < p->need; i++) {
		struct compact_result *r = &results[i];

		if (r->line < p->fold || r->line >= from || r->fixed || r->go ||
		    r->fetched != fetched || r->bytes < COMPACT_LEAST)
			continue;
		r->go = true;
		freed += r->bytes - COMPACT_MARKER;
	}
	return freed;
}

/* What folding all lines before `from` gives, markers in the rest counted. */
static int64_t folded(const struct compact_line *lines, const struct compact_result *results,
		      size_t n, size_t from)
{
	int64_t freed = -(int64_t)COMPACT_LEDGER * COMPACT_MARKER;

	for (size_t i = 1; i < from; i++)
		freed += lines[i].bytes;
	for (size_t i = 0; i < n; i++)
		if (results[i].go && results[i].line >= from)
			freed += results[i].bytes - COMPACT_MARKER;
	return freed;
}

void compact_plan(struct compact_plan *p, const struct compact_line *lines, size_t nlines,
		  struct compact_result *results, size_t nresults)
{
	p->freed = 0;
	p->fold = 0;
	for (size_t keep = COMPACT_KEEP; keep > 0; keep /= 2) {
		size_t from = boundary(lines, nlines, keep);
		int64_t more;

		p->freed += elide(p, results, nresults, from, false);
		p->freed += elide(p, results, nresults, from, true);
		if (p->freed >= p->need)
			return;
		more = folded(lines, results, nresults, from);
		if (from > 0 && more > p->freed) {
			p->freed = more;
			p->fold = from;
		}
		if (p->freed >= p->need || (p->freed > 0 && p->freed >= p->must))
			return;
	}
}
