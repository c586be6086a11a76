/* A small, strict reader of YAML: configuration files and front matter. The result is a tree of
 * mappings, lists and scalars with line numbers.
 *
 * Scalars are text. Numbers are read on request (yaml_int), so that YAML 1.1's readings of 012
 * or 1_000 never happen by themselves: only plain decimal numbers are taken, and only unquoted.
 * Refused are tags, duplicate keys, keys that are no scalars, a second document, and anything
 * over a limit. An alias is the node it names; a document with aliases is limited by its
 * expanded size. */
#ifndef CODEC_YAML_H
#define CODEC_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;

enum yaml_kind { YAML_SCALAR, YAML_MAP, YAML_LIST };

struct yaml_node { /* borrowed until yaml_free */
	enum yaml_kind kind;
	bool plain;       /* a scalar without quotes */
	const char *text; /* a scalar's text, NUL-terminated, holds no other NUL */
	size_t len;       /* length of `text` */
	unsigned line;    /* the value's line, from 1; of an alias: the target's line */
	const char *key;  /* the value's key in a mapping; else NULL */
	unsigned key_line;
	const struct yaml_node *first, *next;
};

struct yaml; /* a document */

#define YAML_BYTES_MAX 262144u
#define YAML_DEPTH_MAX 16u
#define YAML_NODES_MAX 20000u /* nodes of a document, those behind aliases counted each time */

/* `name` (copied) begins every sentence: "config.yaml:12: …". An empty
 * document is an empty mapping. AVA_EINVAL, AVA_ETOOBIG, AVA_ENOMEM; on error
 * *out is NULL. */
int yaml_parse(struct yaml **out, const char *name, const char *text, size_t len,
	       struct ava_error *err);
void yaml_free(struct yaml *y); /* NULL is fine */
const struct yaml_node *yaml_root(const struct yaml *y);

/* Set err to "name:line: <sentence>"; returns `code`. `line` 0: without a line. */
int yaml_error(const struct yaml *y, unsigned line, int code, struct ava_error *err,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The value of a key; NULL: absent, or `map` is not a mapping. */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);
/* Is the value plain null, ~ or nothing at all? */
bool yaml_is_null(const struct yaml_node *n);

/* Read a value; an AVA_EINVAL names line, key and the expected value. */
int yaml_int(const struct yaml *y, const struct yaml_node *n, int64_t min, int64_t max,
	     int64_t *out, struct ava_error *err);
/* Read a scalar of 1 to `max` bytes that is not null. */
int yaml_string(const struct yaml *y, const struct yaml_node *n, size_t max, const char **out,
		struct ava_error *err);
/* The value in a sentence: "a mapping", "a list", "\"text\""; good until the next call. */
const char *yaml_shown(const struct yaml_node *n);

#endif
