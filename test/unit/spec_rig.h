/* Runs that a test asks for, and specs of them. */
#ifndef TEST_SPEC_RIG_H
#define TEST_SPEC_RIG_H

#include "unit.h"

#include "codec/json.h"
#include "subagent/spec.h"

/* A run as most tests ask for one. */
static inline struct op_spawn spawn_usual(const char *task, const char *cwd)
{
	return (struct op_spawn){.role = "code_reviewer",
				 .task = task,
				 .cwd = cwd,
				 .origin = "test",
				 .session_id = "s1",
				 .user_id = "tester",
				 .request_id = "",
				 .timeout_ms = AVA_DEFAULT,
				 .max_cost_microusd = AVA_DEFAULT,
				 .max_tokens = AVA_DEFAULT,
				 .max_iterations = AVA_DEFAULT};
}

static inline struct run_spec *spec_built(const struct op_spawn *s, const struct settings *set)
{
	struct ava_error err = {0};
	struct run_spec *r = NULL;

	if (spec_build(&r, s, set, NULL, NULL, &err) != 0)
		fail_msg("%s", err.text);
	return r;
}

/* What its JSON is made into again. */
static inline struct run_spec *spec_again(const struct run_spec *was)
{
	json_auto_t *config = json_parse(was->config, was->config_len, NULL);
	struct run_spec *r = NULL;

	assert_int_equal(spec_from_json(&r, config, "s", "", "u", NULL), 0);
	return r;
}

#endif
