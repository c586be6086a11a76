/* Options from a table; opts.h.
 *
 * Options may stand between the words of a command, as people type them;
 * "--" ends them; "-" is a word. An option that takes a value takes the next
 * argument, whatever it begins with, so that "--max-tokens -1" is answered
 * with what is wrong with -1. Nothing is allocated: values point into argv.
 *
 * What can fail: an unknown option (the nearest one is named), a value that is
 * missing, given to a flag, or not of its type. */
#include "cli/opts.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/near.h"
#include "base/util.h"

bool opts_fixed(const char *text, int decimals, int64_t *out)
{
	int64_t n = 0;
	int seen = 0; /* decimals read so far */
	bool point = false, digit = false;

	for (const char *p = text; *p != '\0'; p++) {
		if (*p == '.' && !point) {
			point = true;
			continue;
		}
		if (*p < '0' || *p > '9')
			return false;
		digit = true;
		if (point && ++seen > decimals)
			return false;
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p - '0', &n))
			return false;
	}
	for (; seen < decimals; seen++)
		if (__builtin_mul_overflow(n, 10, &n))
			return false;
	*out = n;
	return digit;
}

struct opts_parse {
	const struct opt *opts;
	size_t nopts;
	void *values;
	int argc, at;
	char **argv;
	bool *help;
	struct ava_error *err;
};

/* Find an option by name, or by `letter` unless 0. */
static const struct opt *opts_find(const struct opts_parse *p, const char *name, size_t len,
				   char letter)
{
	for (size_t i = 0; i < p->nopts; i++)
		if (letter != '\0' ? p->opts[i].letter == letter
				   : strlen(p->opts[i].name) == len &&
					     memcmp(p->opts[i].name, name, len) == 0)
			return &p->opts[i];
	return NULL;
}

static int opts_unknown(const struct opts_parse *p, const char *name, size_t len)
{
	struct near near;
	char word[33];

	snprintf(word, sizeof(word), "%.*s", (int)len, name);
	near = near_start(word);
	for (size_t i = 0; i < p->nopts; i++)
		near_word(&near, p->opts[i].name, strlen(p->opts[i].name));
	if (near.best != NULL)
		return err_set(p->err, AVA_EINVAL, "there is no option --%s; did you mean --%s?",
			       word, near.best);
	return err_set(p->err, AVA_EINVAL, "there is no option --%s; --help lists them", word);
}

static int set_number(const struct opt *o, const char *value, int64_t *out, struct ava_error *err)
{
	int decimals = o->type == OPT_CENTS ? 4 : o->type == OPT_SECONDS ? 3 : 0;
	bool none = o->type == OPT_CENTS || o->type == OPT_ROUNDS; /* 0 is a value */

	if (opts_fixed(value, decimals, out) && (*out > 0 || none) &&
	    (decimals > 0 || strchr(value, '.') == NULL)) {
		*out = *out > 0 ? *out : AVA_FREE_ONLY;
		return 0;
	}
	return err_set(err, AVA_EINVAL, "--%s must be %s, not \"%.60s\"", o->name,
		       o->type == OPT_CENTS     ? "a number of cents, 0 (free models only) or more"
		       : o->type == OPT_SECONDS ? "a number of seconds above 0"
		       : none                   ? "a whole number"
						: "a whole number of at least 1",
		       value);
}

static int check_word(const struct opt *o, const char *value, struct ava_error *err)
{
	char list[256] = "";
	size_t len = 0;

	if (o->words == NULL)
		return 0;
	for (size_t i = 0; o->words[i] != NULL; i++) {
		if (strcmp(o->words[i], value) == 0)
			return 0;
		if (len < sizeof(list))
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
						i > 0 ? ", " : "", o->words[i]);
	}
	return err_set(err, AVA_EINVAL, "--%s is one of %s, not \"%.60s\"", o->name, list, value);
}

/* `value` NULL: it was not given. */
static int opts_set_value(const struct opt *o, void *values, const char *value,
			  struct ava_error *err)
{
	void *field = (char *)values + o->field;
	struct opt_list *list = field;

	switch (o->type) {
	case OPT_FLAG:
		*(bool *)field = value != NULL;
		return 0;
	case OPT_SWITCH:
		*(int *)field = value == NULL ? 0 : strcmp(value, "no") == 0 ? -1 : 1;
		return 0;
	case OPT_COUNT:
	case OPT_ROUNDS:
	case OPT_SECONDS:
	case OPT_CENTS:
		*(int64_t *)field = 0;
		return value != NULL ? set_number(o, value, field, err) : 0;
	case OPT_STR:
	case OPT_LIST:
		break;
	}
	if (value != NULL && value[0] == '\0')
		return err_set(err, AVA_EINVAL, "--%s needs a %s that is not empty", o->name,
			       o->value);
	if (value != NULL && check_word(o, value, err) != 0)
		return AVA_EINVAL;
	if (o->type == OPT_STR)
		*(const char **)field = value;
	else if (value == NULL)
		list->n = 0;
	else if (list->n == OPT_LIST_MAX)
		return err_set(err, AVA_EINVAL, "--%s can be given %d times at most", o->name,
			       OPT_LIST_MAX);
	else
		list->items[list->n++] = value;
	return 0;
}

/* `value`: what stands behind it in the same word, NULL: nothing. */
static int opts_take(struct opts_parse *p, const struct opt *o, const char *value)
{
	bool none = p->at + 1 >= p->argc;

	if (o->type == OPT_FLAG || o->type == OPT_SWITCH)
		value = value != NULL ? value : "";
	else if (value == NULL && o->absent != NULL && (none || p->argv[p->at + 1][0] == '-'))
		value = o->absent;
	else if (value == NULL && none)
		return err_set(p->err, AVA_EINVAL, "--%s needs a value (%s)", o->name, o->value);
	else if (value == NULL)
		value = p->argv[++p->at];
	return opts_set_value(o, p->values, value, p->err);
}

static int parse_long(struct opts_parse *p, const char *arg)
{
	size_t len = strcspn(arg, "=");
	const char *value = arg[len] == '=' ? arg + len + 1 : NULL;
	const struct opt *o = opts_find(p, arg, len, '\0');
	bool no = false;

	if (o == NULL && strcmp(arg, "help") == 0) {
		*p->help = true;
		return 0;
	}
	if (o == NULL && len > 3 && memcmp(arg, "no-", 3) == 0) {
		o = opts_find(p, arg + 3, len - 3, '\0');
		no = o != NULL && o->type == OPT_SWITCH;
		o = no ? o : NULL;
	}
	if (o == NULL)
		return opts_unknown(p, arg, len);
	if ((o->type == OPT_FLAG || o->type == OPT_SWITCH) && value != NULL)
		return err_set(p->err, AVA_EINVAL, "--%s takes no value", o->name);
	return opts_take(p, o, no ? "no" : value);
}

/* "-af", "-n5", "-n 5" */
static int parse_letters(struct opts_parse *p, const char *arg)
{
	int rv = 0;

	for (; rv == 0 && *arg != '\0'; arg++) {
		const struct opt *o = opts_find(p, NULL, 0, *arg);

		if (o == NULL && *arg == 'h')
			*p->help = true;
		else if (o == NULL)
			return err_set(p->err, AVA_EINVAL,
				       "there is no option -%c; --help lists them",
				       *arg >= ' ' && *arg < 127 ? *arg : '?');
		else if (o->type != OPT_FLAG && o->type != OPT_SWITCH)
			return opts_take(p, o, arg[1] != '\0' ? arg + 1 : NULL);
		else
			rv = opts_take(p, o, NULL);
	}
	return rv;
}

int opts_parse(const struct opt *opts, size_t nopts, void *values, int argc, char **argv,
	       bool *help, struct ava_error *err)
{
	struct opts_parse p = {opts, nopts, values, argc, 0, argv, help, err};
	bool only_words = false;
	int words = 0, rv = 0;

	for (size_t i = 0; i < nopts; i++)
		opts_set_value(&opts[i], values, NULL, err);
	*help = false;
	for (; rv == 0 && p.at < argc; p.at++) {
		char *arg = argv[p.at];

		if (only_words || arg[0] != '-' || arg[1] == '\0')
			argv[words++] = arg;
		else if (strcmp(arg, "--") == 0)
			only_words = true;
		else
			rv = arg[1] == '-' ? parse_long(&p, arg + 2) : parse_letters(&p, arg + 1);
	}
	return rv == 0 ? words : rv;
}
