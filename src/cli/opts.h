/* Options of a command from a table: long and short names, values with types
 * and ranges, and errors that say what would be right. */
#ifndef CLI_OPTS_H
#define CLI_OPTS_H

#include <ava.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPT_LIST_MAX 64

struct opt_list {
	const char *items[OPT_LIST_MAX]; /* borrowed from argv */
	size_t n;
};

enum opt_type {
	OPT_FLAG,    /* bool */
	OPT_SWITCH,  /* int: --name is 1, --no-name -1, 0 without */
	OPT_STR,     /* const char *, borrowed from argv; "" is refused */
	OPT_LIST,    /* struct opt_list; may be given several times */
	OPT_COUNT,   /* int64_t: a whole number of at least 1 */
	OPT_ROUNDS,  /* int64_t: a whole number; for 0: AVA_NO_ROUNDS */
	OPT_SECONDS, /* int64_t, milliseconds: above 0, decimals allowed */
	OPT_CENTS,   /* int64_t, micro-USD above 0, decimals allowed; for 0: AVA_FREE_ONLY */
};

struct opt {
	const char *name; /* without the dashes */
	char letter;      /* 0: none */
	enum opt_type type;
	const char *value; /* the value's name in the help: "SECONDS"; NULL for a flag */
	const char *help;
	size_t field;             /* offsetof in the command's values */
	const char *const *words; /* OPT_STR, OPT_LIST: the only values; NULL-terminated */
	const char *absent;       /* OPT_STR: the value when the next word is an option, or none */
};

/* A row of the table of a command that keeps its values in `o`, then what else the row has. */
#define OPT(name_, letter_, type_, value_, field_, help_, ...)                                     \
	{                                                                                          \
		.name = name_, .letter = letter_, .type = OPT_##type_, .value = value_,            \
		.help = help_, .field = offsetof(__typeof__(o), field_), ##__VA_ARGS__             \
	}

/* Take the options out of argv[0..argc), which keeps its words in front in
 * order; returns their number. In `values` the fields that the table names are zeroed
 * first, which stands for absent. AVA_EINVAL: `err` has the sentence. *help is set when
 * --help or -h is among them. */
int opts_parse(const struct opt *opts, size_t nopts, void *values, int argc, char **argv,
	       bool *help, struct ava_error *err);

/* Decimal text to fixed point: "2.5" with 3 decimals is 2500. More decimals
 * than that, signs, exponents, blanks and overflow are refused. */
bool opts_fixed(const char *text, int decimals, int64_t *out);

#endif
