/* Her calls are InferEnd events of the daily log, whatever conversation they
 * belong to; their metadata has what each cost. Only looked at where the day has
 * a budget; a line that cannot be read is passed over. */
#include "ava/day_spent.h"

#include "ava/state.h"
#include "codec/json.h"

void day_spent_restore(struct core *c)
{
	struct ava_log_query q = {
		.root = c->root,
		.types = "InferEnd",
		.agent = "ava",
		.since = "today",
	};
	struct ava_error err = {0};
	struct ava_log_event e;
	struct ava_log *log;
	int rv;

	if (c->settings.budget_day_cents <= 0 || ava_log_open(&log, &q, &err) != 0)
		return; /* no daily log yet */
	while ((rv = ava_log_next(log, &e, &err)) == 1 || rv == AVA_ECORRUPT) {
		json_t *event = rv == 1 ? json_parse(e.line, e.len, NULL) : NULL;
		const json_t *meta = json_object_get(event, "metadata");

		c->sup.day.spent += json_get_fixed(meta, "costCents", 4, 0);
		json_decref(event);
	}
	if (rv < 0)
		core_log(c, "what Ava has cost today is not known: %s", err.text);
	ava_log_close(log);
}
