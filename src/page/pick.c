/* The main text, in three loops over the array; see pick.h.
 *
 * First the letters are counted below each node, those of links apart. Then what calls itself
 * navigation, aside, notice or comments is left out, a kind at a time, unless the page would
 * lose half of its text by that and not much be left: a forum is made of comments. Then the
 * way leads down from the page to the main element, to the article, and on into whatever child
 * has four fifths of the text; beside the way stay the page's heading and what reads like text
 * (few links, a few sentences). Every step is by shares of what the page has, none by its
 * looks, so that a page without any of these words comes out whole. */
#include "page/pick.h"

#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "page/tree.h"

#define ENOUGH 500 /* letters from which a text counts by itself */
#define LITTLE 80  /* letters worth keeping beside the main text */
#define TITLE  400 /* most letters of a header with the title */

struct pick_count {
	uint32_t plain, linked; /* characters but blanks, outside of links and in links */
};

static uint32_t letters(const char *s, size_t len)
{
	uint32_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += (unsigned char)s[i] > ' ' && ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

static uint32_t all_of(const struct pick_count *c)
{
	return c->plain + c->linked;
}

/* Count the characters that are not left out, for each node with all below it. */
static void count_all(struct tree *t, struct pick_count *counts)
{
	memset(counts, 0, t->n * sizeof(*counts));
	for (size_t i = 0; i < t->n; i++) {
		struct node *n = &t->nodes[i];

		if (n->marks & MARK_LEFT_OUT) {
			i = n->end - 1;
			continue;
		}
		n->marks &= (uint16_t)~MARK_LINKED;
		if (n->tag == TAG_A || (t->nodes[n->parent].marks & MARK_LINKED))
			n->marks |= MARK_LINKED;
		if (n->tag == TAG_TEXT && (n->marks & MARK_LINKED))
			counts[i].linked = letters(node_text(t, n), n->len);
		else if (n->tag == TAG_TEXT)
			counts[i].plain = letters(node_text(t, n), n->len);
	}
	for (size_t i = t->n; i-- > 1;) {
		struct pick_count *up = &counts[t->nodes[i].parent];

		up->plain += counts[i].plain;
		up->linked += counts[i].linked;
	}
}

/* Leave out marked nodes, if a page remains: enough text, or half of `all` letters. */
static void leave_kind(struct tree *t, struct pick_count *counts, unsigned mark, uint32_t all)
{
	struct pick_count gone = {0}, left;

	for (size_t i = 1; i < t->n; i++) {
		if (t->nodes[i].marks & (mark | MARK_LEFT_OUT)) {
			gone.plain += counts[i].plain;
			gone.linked += counts[i].linked;
			i = t->nodes[i].end - 1;
		}
	}
	left.plain = counts[0].plain - gone.plain;
	left.linked = counts[0].linked - gone.linked;
	if (all_of(&gone) == 0 || (left.plain < ENOUGH && all_of(&left) < all / 2))
		return;
	for (size_t i = 1; i < t->n; i++) {
		if (t->nodes[i].marks & mark)
			t->nodes[i].marks |= MARK_LEFT_OUT;
		if (t->nodes[i].marks & MARK_LEFT_OUT)
			i = t->nodes[i].end - 1;
	}
	count_all(t, counts);
}

/* The node of that tag or mark below `root` with the most text; 0: none. */
static uint32_t largest(const struct tree *t, const struct pick_count *counts, uint32_t root,
			enum tag tag, unsigned mark)
{
	uint32_t best = 0;

	for (uint32_t i = root + 1; i < t->nodes[root].end; i++) {
		const struct node *n = &t->nodes[i];

		if (n->marks & MARK_LEFT_OUT) {
			i = n->end - 1;
		} else if ((tag && n->tag == tag) || (n->marks & mark)) {
			if (best == 0 || counts[i].plain > counts[best].plain)
				best = i;
			i = n->end - 1;
		}
	}
	return best;
}

static bool has_share(const struct pick_count *counts, uint32_t i, uint32_t of, unsigned percent)
{
	return i != 0 && (uint64_t)counts[i].plain * 100 >= (uint64_t)counts[of].plain * percent &&
	       counts[i].plain > 0;
}

static bool has_heading(const struct tree *t, uint32_t i, enum tag least)
{
	for (uint32_t k = i; k < t->nodes[i].end; k++)
		if (t->nodes[k].tag >= TAG_H1 && t->nodes[k].tag <= least)
			return true;
	return false;
}

/* Leave out all children of `up` but `kept`; `generous`: keep headings and nodes that read like
 * text. */
static void leave_others(struct tree *t, const struct pick_count *counts, uint32_t up,
			 uint32_t kept, bool generous)
{
	uint32_t own = 0;
	bool inlines;

	/* Does the element itself hold sentences, with links and bold words among them? */
	for (uint32_t i = up + 1; i < t->nodes[up].end; i = t->nodes[i].end)
		own += t->nodes[i].tag == TAG_TEXT ? counts[i].plain : 0;
	inlines = generous && own >= LITTLE;

	for (uint32_t i = up + 1; i < t->nodes[up].end; i = t->nodes[i].end) {
		enum tag tag = t->nodes[i].tag;
		bool title = all_of(&counts[i]) <= TITLE &&
			     has_heading(t, i, generous ? TAG_H1 + 1 : TAG_H1);

		if (i <= kept && kept < t->nodes[i].end)
			continue;
		if (inlines && !tag_is_block(tag) && tag != TAG_TD && tag != TAG_TH)
			continue;
		if (!title && !(generous && counts[i].plain >= LITTLE &&
				counts[i].linked * 3 <= counts[i].plain))
			t->nodes[i].marks |= MARK_LEFT_OUT;
	}
}

/* Leave out all beside the way from `up` down to `to`. */
static void go_to(struct tree *t, const struct pick_count *counts, uint32_t up, uint32_t to)
{
	while (up != to) {
		uint32_t i = up + 1;

		leave_others(t, counts, up, to, false);
		while (t->nodes[i].end <= to)
			i = t->nodes[i].end;
		t->nodes[i].marks |= t->nodes[i].tag == TAG_TABLE ? MARK_LAYOUT : 0;
		up = i;
	}
}

/* The child with four fifths of `all`'s text; 0: none. */
static uint32_t dominant(const struct tree *t, const struct pick_count *counts, uint32_t up,
			 uint32_t all)
{
	for (uint32_t i = up + 1; i < t->nodes[up].end; i = t->nodes[i].end)
		if (!(t->nodes[i].marks & MARK_LEFT_OUT) && has_share(counts, i, all, 80))
			return i;
	return 0;
}

static bool may_hold(enum tag tag)
{
	return tag == TAG_BLOCK || tag == TAG_INLINE || tag == TAG_ARTICLE || tag == TAG_MAIN ||
	       tag == TAG_TABLE || tag == TAG_ROWS || tag == TAG_TR || tag == TAG_TD;
}

static void pick_choose(struct tree *t, const struct pick_count *counts)
{
	uint32_t at = 0, to = largest(t, counts, 0, TAG_MAIN, 0), down, start;

	if (has_share(counts, to, 0, 30)) {
		go_to(t, counts, at, to);
		at = to;
	}
	to = largest(t, counts, at, TAG_TEXT, MARK_BODY);
	if (!has_share(counts, to, at, 40)) {
		to = largest(t, counts, at, TAG_ARTICLE, 0);
		to = has_share(counts, to, at, 60) ? to : 0;
	}
	if (to != 0 && has_share(counts, to, 0, 25)) {
		go_to(t, counts, at, to);
		at = to;
	}
	/* Keep all of a page with few sentences, such as a list of links. */
	start = at;
	if (counts[at].plain < ENOUGH || counts[at].linked > counts[at].plain)
		return;
	while ((down = dominant(t, counts, at, start)) != 0 && may_hold(t->nodes[down].tag)) {
		leave_others(t, counts, at, down, true);
		t->nodes[down].marks |= t->nodes[down].tag == TAG_TABLE ? MARK_LAYOUT : 0;
		at = down;
	}
}

int pick_main(struct tree *t)
{
	static const unsigned kinds[] = {MARK_NOSCRIPT, MARK_UNSAID, MARK_NOTICE,
					 MARK_NAV,      MARK_ASIDE,  MARK_COMMENTS};
	struct pick_count *counts = malloc(t->n * sizeof(*counts));
	uint32_t all;

	if (!counts)
		return AVA_ENOMEM;
	count_all(t, counts);
	all = all_of(&counts[0]);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		leave_kind(t, counts, kinds[i], all);
	if (counts[0].plain > 0)
		pick_choose(t, counts);
	free(counts);
	return 0;
}
