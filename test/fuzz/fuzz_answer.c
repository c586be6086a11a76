/* What a person may type: understood or not, never a change without one, never
 * anything but unclear, or a change that is asked for, with a question mark in it, and the
 * same when blanks stand around it. */
#include "fuzz.h"

#include "ava/answer.h"

static int says(const struct change *c)
{
	return c->cost_microusd != CHANGE_KEEP || c->time_ms != CHANGE_KEEP ||
	       c->tokens != CHANGE_KEEP || c->iterations != CHANGE_KEEP || c->preset[0] ||
	       c->role[0] || c->model[0] || c->thinking != 0 || c->nwithout > 0;
}

static void check_change(const struct change *c)
{
	CHECK(c->cost_microusd == CHANGE_KEEP || c->cost_microusd >= 0);
	CHECK(c->time_ms == CHANGE_KEEP || c->time_ms >= 0);
	CHECK(c->tokens == CHANGE_KEEP || c->tokens >= 0);
	CHECK(c->iterations == CHANGE_KEEP || c->iterations >= 0);
	CHECK(c->thinking >= -1 && c->thinking <= 1);
	CHECK(c->nwithout <= CHANGE_WITHOUT_MAX);
	for (unsigned i = 0; i < c->nwithout; i++)
		CHECK(c->without[i][0] && memchr(c->without[i], 0, sizeof(c->without[i])));
	CHECK(memchr(c->model, 0, sizeof(c->model)));
}

FUZZ_TARGET(answer, len)
{
	struct change c, again;
	enum answer a;
	char *text;

	if (len > 4096)
		return;
	text = malloc(len + 3);
	CHECK(text != NULL);
	memcpy(text, data, len);
	text[len] = 0;
	len = strlen(text);
	a = answer_parse(text, &c);
	CHECK(says(&c) == (a == ANSWER_YES_WITH || a == ANSWER_CHANGE));
	CHECK(a == ANSWER_UNCLEAR || len <= ANSWER_BYTES_MAX);
	CHECK(a == ANSWER_UNCLEAR || a == ANSWER_CHANGE || !strchr(text, '?'));
	check_change(&c);
	memmove(text + 1, text, len);
	text[0] = ' ';
	text[len + 1] = '\n';
	text[len + 2] = 0;
	if (len + 2 <= ANSWER_BYTES_MAX) {
		CHECK(answer_parse(text, &again) == a);
		CHECK(c.cost_microusd == again.cost_microusd && c.time_ms == again.time_ms);
		CHECK(c.tokens == again.tokens && c.iterations == again.iterations);
		CHECK(strcmp(c.model, again.model) == 0 && strcmp(c.preset, again.preset) == 0);
		CHECK(strcmp(c.role, again.role) == 0 && c.thinking == again.thinking);
		CHECK(c.nwithout == again.nwithout);
	}
	free(text);
}
