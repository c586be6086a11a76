/* The words of a plan.
 *
 * Words are apart by blanks, commas or '+'; a value in braces or quotes runs to
 * its end. Numbers are bounded. A word that is not known is an error that names
 * it: a test with a misspelt fault would otherwise pass without one. */
#include "plan.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define ROW(name, word, number) {word, number},
static const struct {
	const char *name;
	int bit;
} quirks[] = {QUIRKS(ROW)};

#define FAULT_ROW(name, word, arg) {word, FAULT_##name, arg},
static const struct {
	const char *name;
	enum fault_kind kind;
	int32_t arg;
} faults[] = {FAULTS(FAULT_ROW)};

const char *fault_name(enum fault_kind kind)
{
	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		if (faults[i].kind == kind)
			return faults[i].name;
	return kind == FAULT_STATUS ? "status" : "";
}

void plan_default(struct plan *p)
{
	*p = (struct plan){.first_ms = -1, .chunks = 20, .turns = 4, .calls = 1, .prefix = true};
	snprintf(p->text, sizeof p->text, "Looking at the next part.");
}

static bool number(const char *s, int64_t max, int64_t *out)
{
	char *end;

	*out = strtoll(s, &end, 10);
	return *s >= '0' && *s <= '9' && *end == '\0' && *out <= max;
}

/* retry-after=3;should-retry=false behind the status. */
static bool fault_headers(struct fault *f, char *s)
{
	char *save = NULL;

	for (char *w = strtok_r(s, ";", &save); w != NULL; w = strtok_r(NULL, ";", &save)) {
		char *value = strchr(w, '=');
		int64_t n = 0;

		if (value == NULL)
			return false;
		*value++ = '\0';
		if (strcmp(w, "should-retry") == 0)
			f->should_retry = strcmp(value, "true") == 0;
		else if (!number(value, INT32_MAX, &n))
			return false;
		else if (strcmp(w, "retry-after") == 0)
			f->retry_after = (int32_t)n;
		else if (strcmp(w, "date") == 0)
			f->retry_date = (int32_t)n;
		else if (strcmp(w, "ms") == 0)
			f->retry_ms = (int32_t)n;
		else
			return false;
	}
	return true;
}

static bool fault_lookup(struct fault *f, const char *name, char *arg)
{
	int64_t n;

	if (number(name, 599, &n) && n >= 200) {
		f->kind = FAULT_STATUS;
		f->arg = (int32_t)n;
		return arg == NULL || fault_headers(f, arg);
	}
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		if (strcmp(name, faults[i].name) != 0)
			continue;
		f->kind = faults[i].kind;
		f->arg = faults[i].arg;
		if (arg == NULL)
			return true;
		if (!number(arg, INT32_MAX, &n))
			return false;
		f->arg = (int32_t)n;
		return true;
	}
	return false;
}

/* name[:arg][xTIMES][@turn] */
static bool fault_parse(struct fault *f, char *s)
{
	char *turn = strrchr(s, '@'), *arg, *times;
	int64_t n;

	*f = (struct fault){.turn = -1,
			    .times = 1,
			    .retry_after = -1,
			    .retry_date = -1,
			    .retry_ms = -1,
			    .should_retry = -1};
	if (turn != NULL) {
		*turn++ = '\0';
		if (!number(turn, 1000, &n))
			return false;
		f->turn = (int32_t)n;
	}
	times = strrchr(s, 'x');
	if (times != NULL && (times[1] == '*' || (times[1] >= '0' && times[1] <= '9'))) {
		*times++ = '\0';
		if (strcmp(times, "*") == 0)
			f->times = -1;
		else if (number(times, 100000, &n))
			f->times = (int32_t)n;
		else
			return false;
	}
	arg = strchr(s, ':');
	if (arg != NULL)
		*arg++ = '\0';
	return fault_lookup(f, s, arg);
}

static bool add_fault(struct plan *p, char *value)
{
	return p->nfaults < PLAN_FAULTS && fault_parse(&p->faults[p->nfaults++], value);
}

static bool add_quirk(struct plan *p, const char *value)
{
	for (size_t i = 0; i < ARRAY_LEN(quirks); i++)
		if (strcmp(value, quirks[i].name) == 0) {
			p->quirks |= 1u << quirks[i].bit;
			return true;
		}
	return false;
}

static bool set_number(struct plan *p, const char *key, const char *value)
{
	int64_t n;

	if (!number(value, 1ll << 40, &n))
		return false;
	if (strcmp(key, "latency") == 0)
		p->latency_ms = n;
	else if (strcmp(key, "first") == 0)
		p->first_ms = n;
	else if (strcmp(key, "chunks") == 0)
		p->chunks = (unsigned)MAX(1, MIN(n, 100000));
	else if (strcmp(key, "turns") == 0)
		p->turns = (unsigned)MIN(n, 100000);
	else if (strcmp(key, "calls") == 0)
		p->calls = (unsigned)MIN(n, 1000);
	else if (strcmp(key, "thinking") == 0)
		p->thinking = n != 0;
	else if (strcmp(key, "prefix") == 0)
		p->prefix = n != 0;
	else if (strcmp(key, "window") == 0)
		p->window = n;
	else if (strcmp(key, "output") == 0)
		p->output_tokens = n;
	else
		return false;
	return true;
}

static bool set_word(struct plan *p, char *word)
{
	const struct {
		const char *key;
		char *to;
		size_t size;
	} texts[] = {{"tool", p->tool, sizeof p->tool},
		     {"args", p->args, sizeof p->args},
		     {"text", p->text, sizeof p->text},
		     {"submit", p->submit, sizeof p->submit},
		     {"script", p->script, sizeof p->script}};
	char *value = strchr(word, '=');

	if (value == NULL)
		return false;
	*value++ = '\0';
	if (strcmp(word, "fault") == 0)
		return add_fault(p, value);
	if (strcmp(word, "quirk") == 0)
		return add_quirk(p, value);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		size_t len = strlen(value);

		if (strcmp(word, texts[i].key) != 0)
			continue;
		if (len >= 2 && value[0] == '"' && value[len - 1] == '"') {
			value[len - 1] = '\0';
			value++;
		}
		return (size_t)snprintf(texts[i].to, texts[i].size, "%s", value) < texts[i].size;
	}
	return set_number(p, word, value);
}

/* Where the word at `s` ends: at a separator outside braces and quotes. */
static size_t word_length(const char *s, size_t len)
{
	int depth = 0;
	bool quoted = false;

	for (size_t i = 0; i < len; i++) {
		if (s[i] == '\\' && quoted)
			i++;
		else if (s[i] == '"')
			quoted = !quoted;
		else if (!quoted && (s[i] == '{' || s[i] == '['))
			depth++;
		else if (!quoted && (s[i] == '}' || s[i] == ']'))
			depth--;
		else if (!quoted && depth <= 0 && memchr(" \t\r\n,+", s[i], 6) != NULL)
			return i;
	}
	return len;
}

bool plan_parse(struct plan *p, const char *text, size_t len, char *why, size_t size)
{
	char word[600], copy[600];

	for (size_t i = 0; i < len;) {
		size_t n = word_length(text + i, len - i);

		if (n == 0) {
			i++;
			continue;
		}
		snprintf(word, sizeof word, "%.*s", (int)MIN(n, sizeof word), text + i);
		memcpy(copy, word, sizeof copy);
		if (n >= sizeof word || !set_word(p, word)) {
			snprintf(why, size, "\"%.80s\" is no word of a plan", copy);
			return false;
		}
		i += n;
	}
	return true;
}

#define RULES_MAX 256
struct rules {
	unsigned n;
	struct {
		char model[160], first[256];
		char *play;
	} rule[RULES_MAX];
};

static bool rule_add(struct rules *r, const struct tape *t, uint32_t node, char *why, size_t size)
{
	struct plan trial;
	struct buf b;
	uint32_t play = tape_get(t, node, "play");

	if (play == 0 || tape_kind(t, play) != TAPE_STRING || r->n == RULES_MAX) {
		snprintf(why, size, "rule %u has no \"play\", or there are too many", r->n);
		return false;
	}
	tape_copy(t, tape_get(t, node, "model"), r->rule[r->n].model, sizeof r->rule[0].model);
	tape_copy(t, tape_get(t, node, "first"), r->rule[r->n].first, sizeof r->rule[0].first);
	buf_init(&b, 1u << 16);
	tape_text(t, play, &b);
	r->rule[r->n].play = buf_take(&b, NULL);
	plan_default(&trial);
	r->n++;
	return plan_parse(&trial, r->rule[r->n - 1].play, strlen(r->rule[r->n - 1].play), why,
			  size);
}

struct rules *rules_read(const char *json, size_t len, char *why, size_t size)
{
	struct rules *r = calloc(1, sizeof *r);
	struct tape t;
	uint32_t list;
	bool good;

	tape_init(&t);
	good = r != NULL && tape_read(&t, json, len);
	if (!good)
		snprintf(why, size, "%s", t.error);
	list = good ? tape_get(&t, 0, "rules") : 0;
	if (good && (list == 0 || tape_kind(&t, list) != TAPE_ARRAY)) {
		snprintf(why, size, "no list \"rules\"");
		good = false;
	}
	if (good)
		TAPE_EACH(&t, i, list)
	if (good && !rule_add(r, &t, i, why, size))
		good = false;
	tape_fini(&t);
	if (good)
		return r;
	rules_free(r);
	return NULL;
}

void rules_free(struct rules *r)
{
	if (r == NULL)
		return;
	for (unsigned i = 0; i < r->n; i++)
		free(r->rule[i].play);
	free(r);
}

void rules_apply(const struct rules *r, const char *model, const char *first, size_t len,
		 struct plan *p)
{
	char why[128];

	if (r == NULL)
		return;
	for (unsigned i = 0; i < r->n; i++) {
		const char *words = r->rule[i].first;

		if (r->rule[i].model[0] != '\0' && fnmatch(r->rule[i].model, model, 0) != 0)
			continue;
		if (words[0] != '\0' && memmem(first, len, words, strlen(words)) == NULL)
			continue;
		plan_parse(p, r->rule[i].play, strlen(r->rule[i].play), why, sizeof why);
	}
}
