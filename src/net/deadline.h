/* Deadlines of many objects behind one timer: a binary heap of pointers to
 * nodes embedded in the objects. A node may stand earlier than its owner's
 * real deadline; the owner moves it when it comes up (so that progress costs
 * no heap operation). */
#ifndef NET_DEADLINE_H
#define NET_DEADLINE_H

#include <stddef.h>
#include <stdint.h>

struct deadline {
	int64_t at; /* os_now_ms */
	size_t pos; /* in the heap + 1; 0: in none */
	/* It came up: moves it or takes it out. */
	void (*fire)(struct deadline *d);
};

struct deadlines { /* zeroed: empty */
	struct deadline **heap;
	size_t len, cap;
};

/* 0 or AVA_ENOMEM. `d` is zeroed or was taken out, *borrowed until taken out*. */
int deadlines_add(struct deadlines *h, struct deadline *d, int64_t at);
void deadlines_move(struct deadlines *h, struct deadline *d, int64_t at);
void deadlines_del(struct deadlines *h, struct deadline *d); /* in no heap: nothing */
struct deadline *deadlines_first(const struct deadlines *h); /* NULL: empty */
void deadlines_fini(struct deadlines *h);                    /* must be empty */

#endif
