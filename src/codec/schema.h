/* JSON Schema, the part of draft 2020-12 that doc/SCHEMA.md lists: does a value
 * fit, and if not, where and why in words for a model. Pure and bounded. */
#ifndef CODEC_SCHEMA_H
#define CODEC_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

struct ava_error;

#define SCHEMA_BYTES_MAX  65536
#define SCHEMA_DEPTH_MAX  32     /* of the schema, and of references in a row */
#define SCHEMA_STEPS_MAX  100000 /* schemas applied to values in one check */
#define SCHEMA_ERRORS_MAX 8      /* that are told */

/* Can it be checked against at all? AVA_EINVAL: `err` names the keyword that is not
 * known, or the value that it cannot have, and where it stands. */
int schema_check(const json_t *schema, struct ava_error *err);

/* Errors of `v` under a schema that passed schema_check, one a line, into `out`;
 * `name` is what the value is called; "": it is the arguments of a call, in which 5.0 is
 * no integer, and an object that lists properties takes no others unless it says so. Returns how
 * many were found (told are the first SCHEMA_ERRORS_MAX), 0: it fits; AVA_ETOOBIG: it is too much
 * work to say, and a line says so; AVA_ENOMEM. */
int schema_validate(const json_t *schema, const json_t *v, const char *name, struct buf *out);

/* `v` (*taken*; the value that stands for it is the caller's) brought toward a schema, without a
 * guess: null of a member that need not be there is left out, and so are members that there are
 * not; numbers, booleans ("yes", 1) and JSON are taken out of strings, 1.0 is an integer, one value
 * is a list of it, a list of one its value, a word of an enum in other case is that word. `name` as
 * above; `dropped` (NULL: nobody asks) gets the name of the first member that there is not. Whether
 * it fits then is schema_validate's to say. */
json_t *schema_coerce(const json_t *schema, json_t *v, const char *name, struct buf *dropped);
/* ReadFile, read-file and "Read File" are read_file. */
bool schema_same_letters(const char *a, const char *b);
/* Members of arguments whose names are written in another way than the schema's get those:
 * {"Path":…}, {"firstLine":…}. */
void schema_rename(const json_t *schema, json_t *args);
/* A value as it wants one: what is required, "…" for texts. A new reference. */
json_t *schema_example(const json_t *schema);

#endif
