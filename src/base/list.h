/* Intrusive doubly linked circular list. A node that is in no list points
 * at itself (list_init), so list_del is always safe. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>

#include "base/util.h"

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}
static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_insert(struct list *at, struct list *n)
{
	n->next = at;
	n->prev = at->prev;
	at->prev->next = n;
	at->prev = n;
}

/* Append at the tail of `head`. */
static inline void list_add(struct list *head, struct list *n)
{
	list_insert(head, n);
}

static inline void list_add_front(struct list *head, struct list *n)
{
	list_insert(head->next, n);
}

static inline void list_del(struct list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

/* Move everything of `from` to the tail of `to`. */
static inline void list_splice(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#define LIST_ENTRY(node, type, member) CONTAINER_OF(node, type, member)
#define LIST_FIRST(head, type, member)                                                             \
	(list_empty(head) ? NULL : LIST_ENTRY((head)->next, type, member))
/* `n` may be removed inside the loop. */
#define LIST_EACH(head, n, tmp)                                                                    \
	for (struct list *n = (head)->next, *tmp = n->next; n != (head); n = tmp, tmp = n->next)

#endif
