/* What a person may type: an answer or not, never one with a question mark in it, never a no beside
 * a change, and the same when blanks stand around it. */
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
	struct answer_line a, again;
	const struct change *c = &a.change, *b = &again.change;
	char *text;
	bool is;

	if (len > 4096)
		return;
	text = malloc(len + 3);
	CHECK(text != NULL);
	memcpy(text, data, len);
	text[len] = 0;
	len = strlen(text);
	is = answer_read(text, &a);
	CHECK(!is || len <= ANSWER_BYTES_MAX);
	CHECK(is == (a.verb != ANSWER_NONE || a.pick[0] || says(c)));
	CHECK(a.verb != ANSWER_NO || !says(c));
	CHECK(!c->all_three || a.verb == ANSWER_YES);
	CHECK(!is || a.reason || !strchr(text, '?'));
	CHECK(!a.reason || (a.verb == ANSWER_NO && a.reason > text && a.reason < text + len));
	CHECK(memchr(a.pick, 0, sizeof(a.pick)));
	check_change(c);
	memmove(text + 1, text, len);
	text[0] = ' ';
	text[len + 1] = '\n';
	text[len + 2] = 0;
	if (len + 2 <= ANSWER_BYTES_MAX) {
		CHECK(answer_read(text, &again) == is);
		CHECK(a.verb == again.verb && a.stops == again.stops);
		CHECK(strcmp(a.pick, again.pick) == 0 && !a.reason == !again.reason);
		CHECK(c->cost_microusd == b->cost_microusd && c->time_ms == b->time_ms);
		CHECK(c->tokens == b->tokens && c->iterations == b->iterations);
		CHECK(strcmp(c->model, b->model) == 0 && strcmp(c->preset, b->preset) == 0);
		CHECK(strcmp(c->role, b->role) == 0 && c->thinking == b->thinking);
		CHECK(c->nwithout == b->nwithout);
	}
	free(text);
}
