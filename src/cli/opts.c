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
	int seen = 0; /* decimals so far */
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

unsigned opts_distance(const char *a, const char *b)
{
	return near_distance(a, strlen(a), b, strlen(b));
}

static const struct opt *find_name(const struct opt *opts, size_t nopts, const char *name,
				   size_t len)
{
	for (size_t i = 0; i < nopts; i++)
		if (strlen(opts[i].name) == len && memcmp(opts[i].name, name, len) == 0)
			return &opts[i];
	return NULL;
}

static const struct opt *find_letter(const struct opt *opts, size_t nopts, char letter)
{
	for (size_t i = 0; i < nopts; i++)
		if (opts[i].letter == letter && letter != '\0')
			return &opts[i];
	return NULL;
}

static int unknown(const struct opt *opts, size_t nopts, const char *name, size_t len,
		   struct ava_error *err)
{
	const struct opt *near = NULL;
	unsigned best = 3;
	char word[33];

	snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), name);
	for (size_t i = 0; i < nopts; i++) {
		unsigned d = opts_distance(word, opts[i].name);

		if (d < best) {
			best = d;
			near = &opts[i];
		}
	}
	if (near != NULL)
		return err_set(err, AVA_EINVAL, "there is no option --%s; did you mean --%s?", word,
			       near->name);
	return err_set(err, AVA_EINVAL, "there is no option --%s; --help lists them", word);
}

static int set_count(const struct opt *o, const char *value, int64_t *out, struct ava_error *err)
{
	int64_t n;

	if (!opts_fixed(value, 0, &n) || strchr(value, '.') != NULL || n < o->least)
		return err_set(err, AVA_EINVAL,
			       "--%s must be a whole number of at least %lld, not \"%.60s\"",
			       o->name, (long long)o->least, value);
	*out = n;
	return 0;
}

static int set_seconds(const struct opt *o, const char *value, int64_t *out, struct ava_error *err)
{
	int64_t ms;

	if (!opts_fixed(value, 3, &ms) || ms <= 0)
		return err_set(err, AVA_EINVAL,
			       "--%s must be a number of seconds above 0, not \"%.60s\"", o->name,
			       value);
	*out = ms;
	return 0;
}

static int set_cents(const struct opt *o, const char *value, int64_t *out, struct ava_error *err)
{
	int64_t n;

	if (!opts_fixed(value, 4, &n))
		return err_set(err, AVA_EINVAL,
			       "--%s must be a number of cents, 0 (free models only) or more, not "
			       "\"%.60s\"",
			       o->name, value);
	*out = n;
	return 0;
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

static int set_text(const struct opt *o, void *field, const char *value, struct ava_error *err)
{
	struct opt_list *list = field;
	int rv;

	if (value[0] == '\0')
		return err_set(err, AVA_EINVAL, "--%s needs a %s that is not empty", o->name,
			       o->value);
	rv = check_word(o, value, err);
	if (rv != 0)
		return rv;
	if (o->type == OPT_STR) {
		*(const char **)field = value;
		return 0;
	}
	if (list->n == OPT_LIST_MAX)
		return err_set(err, AVA_EINVAL, "--%s can be given %d times at most", o->name,
			       OPT_LIST_MAX);
	list->items[list->n++] = value;
	return 0;
}

static int set_value(const struct opt *o, void *values, const char *value, struct ava_error *err)
{
	void *field = (char *)values + o->field;

	switch (o->type) {
	case OPT_FLAG:
		*(bool *)field = true;
		return 0;
	case OPT_STR:
	case OPT_LIST:
		return set_text(o, field, value, err);
	case OPT_COUNT:
		return set_count(o, value, field, err);
	case OPT_SECONDS:
		return set_seconds(o, value, field, err);
	case OPT_CENTS:
		return set_cents(o, value, field, err);
	}
	return AVA_EINVAL;
}

static void clear(const struct opt *opts, size_t nopts, void *values)
{
	for (size_t i = 0; i < nopts; i++) {
		void *field = (char *)values + opts[i].field;

		switch (opts[i].type) {
		case OPT_FLAG:
			*(bool *)field = false;
			break;
		case OPT_STR:
			*(const char **)field = NULL;
			break;
		case OPT_LIST:
			((struct opt_list *)field)->n = 0;
			break;
		case OPT_COUNT:
		case OPT_SECONDS:
		case OPT_CENTS:
			*(int64_t *)field = OPT_ABSENT;
			break;
		}
	}
}

struct parse {
	const struct opt *opts;
	size_t nopts;
	void *values;
	int argc, at;
	char **argv;
	bool *help;
	struct ava_error *err;
};

static int next_value(struct parse *p, const struct opt *o, const char **value)
{
	bool none = p->at + 1 >= p->argc;

	if (o->absent != NULL && (none || p->argv[p->at + 1][0] == '-')) {
		*value = o->absent;
		return 0;
	}
	if (none)
		return err_set(p->err, AVA_EINVAL, "--%s needs a value (%s)", o->name, o->value);
	*value = p->argv[++p->at];
	return 0;
}

static int parse_long(struct parse *p, const char *arg)
{
	size_t len = strcspn(arg, "=");
	const char *value = arg[len] == '=' ? arg + len + 1 : NULL;
	const struct opt *o = find_name(p->opts, p->nopts, arg, len);
	int rv = 0;

	if (o == NULL && strcmp(arg, "help") == 0) {
		*p->help = true;
		return 0;
	}
	if (o == NULL)
		return unknown(p->opts, p->nopts, arg, len, p->err);
	if (o->type == OPT_FLAG && value != NULL)
		return err_set(p->err, AVA_EINVAL, "--%s takes no value", o->name);
	if (o->type != OPT_FLAG && value == NULL)
		rv = next_value(p, o, &value);
	return rv != 0 ? rv : set_value(o, p->values, value, p->err);
}

/* "-af", "-n5", "-n 5" */
static int parse_letters(struct parse *p, const char *arg)
{
	for (; *arg != '\0'; arg++) {
		const struct opt *o = find_letter(p->opts, p->nopts, *arg);
		const char *value = arg + 1;
		int rv = 0;

		if (o == NULL && *arg == 'h') {
			*p->help = true;
			continue;
		}
		if (o == NULL)
			return err_set(p->err, AVA_EINVAL,
				       "there is no option -%c; --help lists them",
				       *arg >= ' ' && *arg < 127 ? *arg : '?');
		if (o->type == OPT_FLAG) {
			*(bool *)((char *)p->values + o->field) = true;
			continue;
		}
		if (*value == '\0')
			rv = next_value(p, o, &value);
		return rv != 0 ? rv : set_value(o, p->values, value, p->err);
	}
	return 0;
}

int opts_parse(const struct opt *opts, size_t nopts, void *values, int argc, char **argv,
	       bool *help, struct ava_error *err)
{
	struct parse p = {opts, nopts, values, argc, 0, argv, help, err};
	bool only_words = false;
	int words = 0, rv;

	clear(opts, nopts, values);
	*help = false;
	for (; p.at < argc; p.at++) {
		char *arg = argv[p.at];

		rv = 0;
		if (only_words || arg[0] != '-' || arg[1] == '\0')
			argv[words++] = arg;
		else if (strcmp(arg, "--") == 0)
			only_words = true;
		else if (arg[1] == '-')
			rv = parse_long(&p, arg + 2);
		else
			rv = parse_letters(&p, arg + 1);
		if (rv != 0)
			return rv;
	}
	return words;
}
