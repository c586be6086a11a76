/* JSON Schema, the part of draft 2020-12 that doc/SCHEMA.md lists: does a value
 * fit, and if not, where and why in words for a model. Pure and bounded. */
#ifndef CODEC_SCHEMA_H
#define CODEC_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

struct ava_error;

#define SCHEMA_BYTES_MAX  65536
#define SCHEMA_DEPTH_MAX  32     /* most levels of a schema, and most references in a row */
#define SCHEMA_STEPS_MAX  100000 /* most schemas applied to values in one check */
#define SCHEMA_ERRORS_MAX 8      /* most errors that are reported */

/* Is the schema usable? AVA_EINVAL: `err` names the unknown keyword, or the invalid value, and
 * its place. */
int schema_check(const json_t *schema, struct ava_error *err);

/* Write the errors of `v` under a schema that passed schema_check, one a line, into `out`;
 * `name` is the value's; "": it is the arguments of a call, in which 5.0 is no integer, and an
 * object that lists properties takes no others unless it says so. Returns the number of errors
 * (the first SCHEMA_ERRORS_MAX are written), 0: it fits; AVA_ETOOBIG: too much work, as a line
 * says; AVA_ENOMEM. */
int schema_validate(const json_t *schema, const json_t *v, const char *name, struct buf *out);

/* Bring `v` (*taken*; the result is the caller's) toward a schema, without a guess: an optional
 * member that is null is left out, and so are unknown members; numbers, booleans ("yes", 1) and
 * JSON are taken out of strings, 1.0 becomes an integer, a value a list of it, a list of one its
 * value, a word of an enum in other case that word. `name` as above; `dropped` (NULL: not
 * wanted) gets the name of the first unknown member. Check the result with schema_validate. */
json_t *schema_coerce(const json_t *schema, json_t *v, const char *name, struct buf *dropped);
/* Are the names equal but for case and signs? ReadFile, read-file and "Read File" are read_file. */
bool schema_same_letters(const char *a, const char *b);
/* Rename members of arguments to the schema's spelling: {"Path":…}, {"firstLine":…}. */
void schema_rename(const json_t *schema, json_t *args);
/* An example value: required members, "…" for texts. A new reference. */
json_t *schema_example(const json_t *schema);

#endif
