/* A Markdown file with front matter: lines "key: value" between two lines "---", then text. */
#ifndef CODEC_FRONT_H
#define CODEC_FRONT_H

#include <stddef.h>

#include "base/buf.h"
#include "codec/yaml.h"

struct ava_error;

/* Kind of a key, for lines that are no strict YAML. A text goes on up to the next known key,
 * whatever its lines look like. */
enum front_key { FRONT_UNKNOWN, FRONT_FIELD, FRONT_TEXT };
typedef enum front_key (*front_key_fn)(const char *key, size_t len);

struct front {             /* zeroed before front_read */
	struct yaml *yaml; /* its line numbers are the file's; the root may be no mapping */
	const char *body;  /* the text behind the front matter, without blanks around; in `text` */
	size_t body_len;
	unsigned line, end_line; /* lines of the two fences "---" */
	struct buf text;         /* the file: UTF-8 without NUL, lines end with \n */
};

/* `name` (copied) begins every sentence: "x.md:3: …". AVA_EINVAL, AVA_ETOOBIG over `max`,
 * AVA_ENOMEM. front_fini in any case. */
int front_read(struct front *f, const char *name, const char *bytes, size_t len, size_t max,
	       front_key_fn kind, struct ava_error *err);
void front_fini(struct front *f);

#endif
