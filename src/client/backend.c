/* What waits for the reader of a cursor; client/backend.h.
 *
 * Each item is one piece of memory with its bytes, given out once and freed at the next call. What
 * can fail is memory, which the cursor's backend tells. */
#include "client/backend.h"

#include <stdlib.h>
#include <string.h>

struct backend_node {
	struct list node;
	struct backend_item item;
	char bytes[]; /* the line, or the text; then the session's id */
};

int backend_put(struct backend_queue *q, const struct backend_item *what)
{
	const char *bytes = what->is_text ? what->text.text : what->line;
	const char *session = what->is_text ? what->text.session : "";
	size_t len = what->is_text ? what->text.len : what->len, more = strlen(session) + 1;
	struct backend_node *n = malloc(sizeof(*n) + len + 1 + more);

	if (!n)
		return AVA_ENOMEM;
	*n = (struct backend_node){.item = *what};
	memcpy(n->bytes, bytes, len);
	n->bytes[len] = '\0';
	memcpy(n->bytes + len + 1, session, more);
	if (what->is_text) {
		n->item.text.text = n->bytes;
		n->item.text.session = n->bytes + len + 1;
	} else {
		n->item.line = n->bytes;
	}
	list_add(&q->items, &n->node);
	q->n++;
	return 0;
}

int backend_take(struct backend_queue *q, struct backend_item *item)
{
	free(q->given);
	q->given = LIST_FIRST(&q->items, struct backend_node, node);
	if (!q->given)
		return 0;
	list_del(&q->given->node);
	q->n--;
	*item = q->given->item;
	return 1;
}

void backend_queue_fini(struct backend_queue *q)
{
	struct backend_item item;

	while (backend_take(q, &item) == 1)
		;
}
