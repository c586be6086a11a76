/* Writing into config.yaml: the local server that `ava doctor` found. */
#ifndef AVA_CONFIG_STORE_H
#define AVA_CONFIG_STORE_H

#include <stddef.h>

struct ava_error;
struct buf;

/* Put providers.local.base_url and .model into the file, which keeps
 * everything else, comments too, and is replaced in one step. Made (0600) when
 * there is none. AVA_EINVAL: the address or name is none, or what stands in the
 * file is broken; AVA_EUNSUPPORTED: it is written in a way that is not changed
 * here (the sentence says what to write by hand). `path` gets the file's. */
int config_store_local(const char *base_url, const char *model, char *path, size_t size,
		       struct ava_error *err);

/* The text alone: `text` (of the file `name`) with the two values. */
int config_edit_local(const char *name, const char *text, size_t len, const char *base_url,
		      const char *model, struct buf *out, struct ava_error *err);

#endif
