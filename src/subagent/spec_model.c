/* What a run that waits for long shall not hold for itself: runs of one model have one
 * copy of what is known of it, and a run that has begun knows its config by its hash. A
 * run that changes its model (a parameter less, another one) has a copy from then on.
 * What can fail: memory. */
#include "subagent/spec_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "provider/model_share.h"

int spec_set_model(struct run_spec *s, const struct model *m, struct ava_error *err)
{
	struct model *own;

	if (!s->shared) {
		s->model = s->shared = model_share(m);
		return s->model ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
	}
	own = arena_get(&s->mem, sizeof(*own));
	if (!own)
		return err_set(err, AVA_ENOMEM, "out of memory");
	*own = *m;
	s->model = own;
	return 0;
}

void spec_forget_config(struct run_spec *s)
{
	free(s->config);
	s->config = NULL;
	s->config_len = 0;
}

/* Cost limits were confirmed for a model whose price is known. */
static bool affordable(const struct run_spec *r, const struct model *m)
{
	const struct agent_price *was = &r->agent.price, *is = &m->price;

	if (r->agent.limits.cost_microusd == 0)
		return is->input == 0 && is->output == 0;
	return was->input < 0 || (is->input >= 0 && is->output >= 0);
}

bool spec_next_model(const struct run_spec *r, uint16_t *at, struct model *out)
{
	size_t n = 0;
	const char *const *ids = model_fallback(&n);

	while (*at < n) {
		const char *id = ids[(*at)++];

		if (model_resolve(id, out, NULL, NULL) == 0 && out->dialect == r->model->dialect &&
		    strcmp(out->id, r->model->id) != 0 && affordable(r, out))
			return true;
	}
	return false;
}
