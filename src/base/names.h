/* The words trace names are made of. Lower-case ASCII letters, at most 12 of
 * them, so that a name with a suffix always fits struct trace_name. */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include <stddef.h>

extern const char *const names_adjectives[];
extern const size_t names_nadjectives;
extern const char *const names_nouns[];
extern const size_t names_nnouns;

#endif
