/* budget.folders and budget.tags of config.yaml: what may be spent in a day, a week and a month by
 * the runs of a folder, or with a tag.
 *
 * One form and one reader: a variable has what stands in the file, in braces. What can fail: all
 * that a person can write; the sentence names the line, or the variable. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/config.h"
#include "base/env.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/yaml.h"
#include "subagent/spec.h"

static const char *const limit_keys[CLOCK_PERIODS] = {"day_cents", "week_cents", "month_cents"};

static int budget_row_name(const struct yaml *y, const struct yaml_node *n, bool folders,
			   struct ava_error *err)
{
	const char *of = n->key, *const what = folders ? "budget.folders" : "budget.tags";
	char real[PATH_MAX];

	if (strlen(of) >= sizeof(((struct settings_budget *)0)->of))
		return yaml_error(y, n->key_line, AVA_EINVAL, err,
				  "%s: %.40s… is longer than %zu bytes", what, of,
				  sizeof(((struct settings_budget *)0)->of) - 1);
	if (!folders && (of[0] == '/' || !spec_is_tag(of)))
		return yaml_error(y, n->key_line, AVA_EINVAL, err,
				  "%s has \"%.90s\", which is no tag: a name or KEY=VALUE, each of "
				  "1 to 40 letters, digits, . _ - : or /, no / first",
				  what, of);
	if (folders && (of[0] != '/' || strstr(of, "//") || strstr(of, "/./") ||
			(of[1] && of[strlen(of) - 1] == '/')))
		return yaml_error(y, n->key_line, AVA_EINVAL, err,
				  "%s has \"%.200s\"; it must be an absolute path, without // and "
				  "without a / at its end",
				  what, of);
	if (folders && realpath(of, real) && strcmp(real, of) != 0)
		return yaml_error(y, n->key_line, AVA_EINVAL, err,
				  "%s has %.200s; its path without links is %.200s", what, of,
				  real);
	return 0;
}

/* Keys that are there twice were refused by the parser. */
static int budget_row(struct config *c, const struct yaml *y, const struct yaml_node *n,
		      bool folders, struct ava_error *err)
{
	struct settings *s = &c->settings;
	struct settings_budget *b = &c->budgets[s->nbudgets];
	unsigned used = CLOCK_PERIODS;
	int rv = budget_row_name(y, n, folders, err);

	for (size_t i = 0; i < s->nbudgets; i++)
		for (unsigned p = 0; p < CLOCK_PERIODS; p++)
			used += c->budgets[i].cents[p] > 0;
	for (const struct yaml_node *v = n->kind == YAML_MAP ? n->first : NULL; v; v = v->next)
		used++;
	if (rv == 0 && (n->kind != YAML_MAP || !n->first))
		rv = yaml_error(y, n->line, AVA_EINVAL, err,
				"the budget of %.100s is %s; it must have day_cents, week_cents or "
				"month_cents: {day_cents: 500}",
				n->key, yaml_shown(n));
	if (rv == 0 && used > SETTINGS_BUDGETS)
		rv = yaml_error(y, n->line, AVA_EINVAL, err,
				"there are too many budgets: %d limits at the most",
				SETTINGS_BUDGETS - CLOCK_PERIODS);
	if (rv != 0)
		return rv;
	*b = (struct settings_budget){0};
	snprintf(b->of, sizeof(b->of), "%s", n->key);
	for (const struct yaml_node *v = n->first; v && rv == 0; v = v->next) {
		unsigned p = 0;

		while (p < CLOCK_PERIODS && strcmp(v->key, limit_keys[p]) != 0)
			p++;
		rv = p < CLOCK_PERIODS
			     ? yaml_int(y, v, 1, SETTINGS_BUDGET_MOST, &b->cents[p], err)
			     : yaml_error(y, v->key_line, AVA_EINVAL, err,
					  "unknown key %.60s of the budget of %.100s: there are "
					  "day_cents, week_cents and month_cents",
					  v->key, n->key);
	}
	s->nbudgets += rv == 0;
	s->budgets = c->budgets;
	return rv;
}

int config_take_budgets(struct config *c, const struct yaml *y, const struct yaml_node *n,
			bool folders, struct ava_error *err)
{
	size_t kept = 0;
	int rv = 0;

	for (size_t i = 0; i < c->settings.nbudgets; i++) /* the variable's take the file's place */
		if ((c->budgets[i].of[0] == '/') != folders)
			c->budgets[kept++] = c->budgets[i];
	c->settings.nbudgets = kept;
	if (n->kind != YAML_MAP)
		return yaml_error(y, n->line, AVA_EINVAL, err,
				  "budget.%s is %s; it must be a mapping of %s to limits",
				  folders ? "folders" : "tags", yaml_shown(n),
				  folders ? "paths" : "tags");
	for (const struct yaml_node *v = n->first; v && rv == 0; v = v->next)
		rv = budget_row(c, y, v, folders, err);
	return rv;
}

int config_budget_variables(struct config *c, struct ava_error *err)
{
	static const char *const names[] = {"AVA_BUDGET_FOLDERS", "AVA_BUDGET_TAGS"};
	int rv = 0;

	for (unsigned i = 0; i < ARRAY_LEN(names) && rv == 0; i++) {
		const char *text = env_get(names[i]);
		struct yaml *y;

		if (!text)
			continue;
		rv = yaml_parse(&y, names[i], text, strlen(text), err);
		if (rv != 0)
			return rv;
		rv = config_take_budgets(c, y, yaml_root(y), i == 0, err);
		yaml_free(y);
	}
	return rv;
}
