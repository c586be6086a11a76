/* A turn and its arena: made by a dialect when a reply is whole, given to the
 * machine, freed by it when the results are on their way. Out of memory is
 * the only thing that can fail; a turn over TURN_MAX_BYTES fails its arena. */
#include "agent/turn.h"

#include <stdlib.h>

struct turn *turn_new(void)
{
	struct turn *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	arena_init(&t->mem, TURN_MAX_BYTES);
	t->text = t->thinking = t->request_id = t->served = t->wire = "";
	t->usage.cost_microusd = -1;
	return t;
}

void turn_free(struct turn *t)
{
	if (t == NULL)
		return;
	arena_fini(&t->mem);
	free(t);
}

bool reply_shallow(const json_t *v, unsigned depth)
{
	const char *key;
	json_t *one;
	size_t i;

	if ((json_is_object(v) || json_is_array(v)) && depth == 0)
		return false;
	json_array_foreach(v, i, one) if (!reply_shallow(one, depth - 1)) return false;
	json_object_foreach((json_t *)v, key, one) if (!reply_shallow(one, depth - 1)) return false;
	return true;
}
