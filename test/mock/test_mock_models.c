/* The mock's table of models and ava's own say the same, and what ava's encoders
 * make for each model it knows passes the checks: thinking in the form that the
 * model takes, a forced tool. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "agent/tool.h"
#include "ask.h"
#include "provider/dialect.h"
#include "provider/model.h"

#define USER_LINE                                                                                  \
	"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Look at a.txt.\"}]}"
static struct tape tape;
static struct buf body;

static enum service service_of(const struct model *m)
{
	static const char *const names[] = {"anthropic", "openai", "openrouter", "local"};
	unsigned i = 0;

	while (strcmp(m->provider->name, names[i]) != 0)
		i++;
	return (enum service)i;
}

static void make(const struct model *m, const char *lines, bool thinking, bool force)
{
	static const struct tool submit = {
		.name = "submit_result", .description = "Ends.", .schema = "{\"type\":\"object\"}"};
	const struct tool *tools[] = {&submit};
	struct dialect_spec spec = {m->id, "You look at files.", tools, 1, m, thinking};
	struct agent_infer call = {
		.iteration = 1, .max_output = m->max_output, .force_submit = force};
	size_t from;

	buf_reset(&body);
	assert_int_equal(m->dialect->encode_head(&body, &spec), 0);
	from = body.len;
	buf_adds(&body, lines);
	assert_int_equal(m->dialect->mark_cache(&body, from, m), 0);
	assert_int_equal(m->dialect->encode_tail(&body, m, thinking, &call), 0);
	buf_addc(&body, '\0');
	assert_int_equal(buf_check(&body), 0);
}

static void check(const struct model *m, struct ask *a, struct verdict *v)
{
	*a = (struct ask){.service = service_of(m),
			  .body_len = body.len - 1,
			  .items = m->dialect == &dialect_responses};
	*v = (struct verdict){0};
	assert_true(tape_read(&tape, body.data, a->body_len));
	if (!ask_read(a, &tape, v) || !check_body(a, v))
		fail_msg("%s: %s\n%s", m->id, v->text, body.data);
}

TEST(requests)
{
	const struct model_row *row;
	struct verdict v;
	struct ask a;
	struct model m;
	size_t n = 0;

	for (; (row = models_builtin(n)) != NULL; n++) {
		assert_int_equal(model_restore(row->id, &m, NULL), 0);
		for (int i = 0; i < 4; i++) {
			make(&m, USER_LINE, (i & 1) != 0, (i & 2) != 0);
			check(&m, &a, &v);
		}
		/* the most that config.yaml may ask of it */
		if (row->max_output > 0)
			m.max_output = row->max_output;
		make(&m, USER_LINE, true, false);
		check(&m, &a, &v);
		if (a.service == SERVICE_ANTHROPIC)
			assert_true(a.thinking);
		if (!model_speak(&m, "responses"))
			continue;
		for (int i = 0; i < 4; i++) {
			make(&m, "{\"role\":\"user\",\"content\":\"Find it.\"}", (i & 1) != 0,
			     (i & 2) != 0);
			check(&m, &a, &v);
		}
	}
	assert_true(n > 20);
}

TEST(tables)
{
	const struct model_row *row;

	for (size_t i = 0; (row = models_builtin(i)) != NULL; i++) {
		const char *name = strchr(row->id, '/') + 1;
		bool claude = strncmp(row->id, "anthropic/", 10) == 0;
		const struct model_facts *f =
			model_facts(claude ? SERVICE_ANTHROPIC : SERVICE_OPENAI, name);

		if (row->context == 0) /* another name of one of these */
			continue;
		if (row->context > f->window || row->max_output != f->max_output ||
		    row->cache_min != f->cache_min ||
		    f->sampling == (strstr(row->rejects, "temperature") != NULL))
			fail_msg("%s", row->id);
		if (claude &&
		    (row->context != f->window || row->price.input != f->input_price ||
		     row->price.output != f->output_price ||
		     !(row->thinking == MODEL_THINKING_ADAPTIVE ? f->adaptive : f->budget)))
			fail_msg("%s", row->id);
	}
}

static int first(void **state)
{
	tape_init(&tape);
	buf_init(&body, 1u << 20);
	provider_configure(NULL);
	return 0;
}

static int last(void **state)
{
	buf_fini(&body);
	tape_fini(&tape);
	return 0;
}

UNIT_GROUP(.first = first, .last = last);
