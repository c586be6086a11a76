/* Pieces of work on several threads; crew.h.
 *
 * Happy path: each thread takes the next free number, until there is none. Threads live as long
 * as the call: one is made in some 30 us, little beside work worth two.
 *
 * What can fail: making a thread; the others do its work. */
#include "base/crew.h"

#include <pthread.h>

struct crew {
	crew_fn fn;
	void *user;
	size_t n, next; /* number of pieces; the next piece, taken by an atomic add */
	bool stopped;
};

struct hand {
	struct crew *crew;
	unsigned number;
	pthread_t thread;
};

static void *crew_work(void *user)
{
	const struct hand *h = user;
	struct crew *c = h->crew;

	while (!__atomic_load_n(&c->stopped, __ATOMIC_RELAXED)) {
		size_t i = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);

		if (i >= c->n)
			break;
		if (!c->fn(i, h->number, c->user))
			__atomic_store_n(&c->stopped, true, __ATOMIC_RELAXED);
	}
	return NULL;
}

void crew_run(size_t n, crew_fn fn, void *user)
{
	struct crew c = {.fn = fn, .user = user, .n = n};
	struct hand hands[CREW_THREADS];
	unsigned started = 1;

	hands[0] = (struct hand){.crew = &c};
	for (; started < CREW_THREADS && started < n; started++) {
		hands[started] = (struct hand){.crew = &c, .number = started};
		if (pthread_create(&hands[started].thread, NULL, crew_work, &hands[started]) != 0)
			break;
	}
	crew_work(&hands[0]);
	while (started-- > 1)
		pthread_join(hands[started].thread, NULL);
}
