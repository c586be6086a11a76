/* Hash map from a byte string to a pointer. Keys are *borrowed*: they live
 * inside the value's object. Not ordered; seeded against chosen collisions. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_slot;
struct map {
	struct map_slot *slots;
	size_t cap, count, used; /* used counts removed slots too */
	uint64_t seed;
};

void map_init(struct map *m);
void map_fini(struct map *m);
void *map_get(const struct map *m, const char *key);
/* 0, AVA_ENOMEM; AVA_EEXIST when the key is there (nothing changes). `value`
 * is not NULL. */
int map_put(struct map *m, const char *key, void *value);
void *map_del(struct map *m, const char *key); /* what was there, or NULL */
/* Walk: start with *at = 0; NULL at the end. Do not put while walking. */
void *map_next(const struct map *m, size_t *at);

/* Set of 64-bit fingerprints: "has this name been used", 8 bytes a name. A
 * false positive only costs a name. Zero-initialised is empty. */
struct nameset {
	uint64_t *slots;
	size_t cap, count;
	uint64_t seed; /* drawn with the first name */
};
void nameset_fini(struct nameset *s);
int nameset_add(struct nameset *s, const char *name);       /* 0, AVA_ENOMEM */
int nameset_has(const struct nameset *s, const char *name); /* 1 or 0 */

#endif
