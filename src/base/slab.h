/* Fixed-size objects from large blocks; freed objects are reused. Blocks go
 * back to the system only at slab_fini. One thread. */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include <stddef.h>

struct slab {
	size_t size, per_block, live, max;
	void *free_list;
	void *blocks;
};

void slab_init(struct slab *s, size_t object_size, size_t max_objects);
void slab_fini(struct slab *s);
void *slab_get(struct slab *s);              /* zeroed; NULL: out of memory or at max */
void slab_put(struct slab *s, void *object); /* NULL: nothing */

#endif
