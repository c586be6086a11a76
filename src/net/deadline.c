/* A binary heap with back pointers, so that any node can be moved or taken
 * out in O(log n). It grows by doubling and shrinks when three quarters stand
 * empty, so that a burst of calls does not leave its size behind.
 *
 * What can fail: memory, in deadlines_add alone. */
#include "net/deadline.h"

#include <assert.h>
#include <ava.h>
#include <stdlib.h>

#define CAP_MIN 64

static void put(struct deadlines *h, size_t i, struct deadline *d)
{
	h->heap[i] = d;
	d->pos = i + 1;
}

static void sift_up(struct deadlines *h, size_t i)
{
	struct deadline *d = h->heap[i];

	while (i > 0 && h->heap[(i - 1) / 2]->at > d->at) {
		put(h, i, h->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	put(h, i, d);
}

static void sift_down(struct deadlines *h, size_t i)
{
	struct deadline *d = h->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= h->len)
			break;
		if (child + 1 < h->len && h->heap[child + 1]->at < h->heap[child]->at)
			child++;
		if (h->heap[child]->at >= d->at)
			break;
		put(h, i, h->heap[child]);
		i = child;
	}
	put(h, i, d);
}

static int resize(struct deadlines *h, size_t cap)
{
	struct deadline **heap = realloc(h->heap, cap * sizeof(*heap));

	if (!heap)
		return AVA_ENOMEM;
	h->heap = heap;
	h->cap = cap;
	return 0;
}

int deadlines_add(struct deadlines *h, struct deadline *d, int64_t at)
{
	assert(d->pos == 0);
	if (h->len == h->cap && resize(h, h->cap ? 2 * h->cap : CAP_MIN) != 0)
		return AVA_ENOMEM;
	d->at = at;
	put(h, h->len++, d);
	sift_up(h, d->pos - 1);
	return 0;
}

void deadlines_move(struct deadlines *h, struct deadline *d, int64_t at)
{
	assert(d->pos != 0);
	d->at = at;
	sift_up(h, d->pos - 1);
	sift_down(h, d->pos - 1);
}

void deadlines_del(struct deadlines *h, struct deadline *d)
{
	struct deadline *last;
	size_t i = d->pos;

	if (i == 0)
		return;
	d->pos = 0;
	last = h->heap[--h->len];
	if (last != d) {
		put(h, i - 1, last);
		sift_up(h, last->pos - 1);
		sift_down(h, last->pos - 1);
	}
	if (h->cap > CAP_MIN && h->len < h->cap / 4)
		(void)resize(h, h->cap / 2); /* too large is no error */
}

struct deadline *deadlines_first(const struct deadlines *h)
{
	return h->len ? h->heap[0] : NULL;
}

void deadlines_fini(struct deadlines *h)
{
	assert(h->len == 0);
	free(h->heap);
	*h = (struct deadlines){0};
}
