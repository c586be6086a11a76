/* Fixed-size objects out of 64 KB blocks; see slab.h.
 *
 * A free object holds the pointer to the next free one in its first bytes.
 * Only slab_get can fail: at the bound, or when memory runs out. */
#include "base/slab.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define SLAB_BLOCK_BYTES 65536

struct slab_block {
	alignas(max_align_t) struct slab_block *next;
};

void slab_init(struct slab *s, size_t object_size, size_t max_objects)
{
	size_t align = alignof(max_align_t), room = SLAB_BLOCK_BYTES - sizeof(struct slab_block);

	assert(object_size > 0 && object_size < SIZE_MAX / 2);
	*s = (struct slab){.max = max_objects};
	s->size = (object_size + align - 1) / align * align;
	s->per_block = MAX(room / s->size, (size_t)1);
}

void slab_fini(struct slab *s)
{
	struct slab_block *b = s->blocks, *next;

	for (; b != NULL; b = next) {
		next = b->next;
		free(b);
	}
	s->blocks = s->free_list = NULL;
	s->live = 0;
}

static bool add_block(struct slab *s)
{
	struct slab_block *b = malloc(sizeof(*b) + s->per_block * s->size);
	char *at;

	if (b == NULL)
		return false;
	b->next = s->blocks;
	s->blocks = b;
	at = (char *)(b + 1);
	for (size_t i = s->per_block; i-- > 0;) {
		void **object = (void **)(at + i * s->size);

		*object = s->free_list;
		s->free_list = object;
	}
	return true;
}

void *slab_get(struct slab *s)
{
	void *object;

	if (s->live >= s->max || (s->free_list == NULL && !add_block(s)))
		return NULL;
	object = s->free_list;
	s->free_list = *(void **)object;
	s->live++;
	return memset(object, 0, s->size);
}

void slab_put(struct slab *s, void *object)
{
	if (object == NULL)
		return;
	assert(s->live > 0);
	*(void **)object = s->free_list;
	s->free_list = object;
	s->live--;
}
