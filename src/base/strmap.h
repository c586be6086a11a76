/* Hash map from a byte string to a pointer. Keys are *borrowed*: they live
 * inside the value's object. Not ordered; seeded against chosen collisions. */
#ifndef BASE_STRMAP_H
#define BASE_STRMAP_H

#include <stddef.h>
#include <stdint.h>

struct strmap_slot;
struct strmap {
	struct strmap_slot *slots;
	size_t cap, count, used; /* used counts removed slots too */
	uint64_t seed;
};

void strmap_init(struct strmap *m);
void strmap_fini(struct strmap *m);
void *strmap_get(const struct strmap *m, const char *key);
/* Add `key`: 0, AVA_ENOMEM; AVA_EEXIST when the key is there (nothing changes). `value` is not
 * NULL. */
int strmap_put(struct strmap *m, const char *key, void *value);
void *strmap_del(struct strmap *m, const char *key); /* the removed value, or NULL */
/* Walk the values: start with *at = 0; NULL at the end. Do not put while walking. */
void *strmap_next(const struct strmap *m, size_t *at);

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
