/* The offline dialect: the embedded model that needs no key, no network and no
 * weights. It speaks the Messages form, so whatever is built for a real
 * service is exercised by it; its answer is a function of the request body
 * (and of the script, for offline:FILE.jsonl) alone: the same body, the same
 * bytes. It reads the whole body, plans one turn and forgets. A body that is
 * none, a bad script and missing memory are errors of the call. */
#include "provider/dialect.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/sys.h"
#include "provider/offline_draft.h"
#include "provider/offline_body.h"
#include "provider/offline_plan.h"
#include "provider/offline_script.h"
#include "provider/offline_talk.h"
#include "provider/wire.h"

static int answer_script(const struct offline_body *b, size_t body_len, const char *file,
			 struct dialect_answer *out, struct ava_error *err)
{
	char *text = NULL;
	size_t len;
	int rv = sys_read_file(AT_FDCWD, file, SCRIPT_MAX, &text, &len, err);

	if (rv != 0)
		return err_wrap(err, rv, "the script of the offline model");
	rv = script_play(file, text, len, b, body_len, out, err);
	free(text);
	return rv;
}

static int answer_plan(struct offline_body *b, size_t body_len, struct dialect_answer *out,
		       struct ava_error *err)
{
	struct draft a;
	int rv;

	draft_start(&a, b->number);
	rv = offline_plan(b, &a);
	if (rv == 0)
		rv = draft_finish(&a, body_len, &out->turn);
	else
		draft_drop(&a);
	return rv == 0 ? 0 : err_set(err, rv, "the offline model ran out of memory");
}

static int answer_talk(const char *body, size_t len, struct dialect_answer *out,
		       struct ava_error *err)
{
	struct draft a;
	int rv = offline_talk(body, len, &a, err);

	if (rv != 0)
		return rv;
	rv = draft_finish(&a, len, &out->turn);
	return rv == 0 ? 0 : err_set(err, rv, "the offline model ran out of memory");
}

static int offline_answer(const char *body, size_t len, const char *config,
			  struct dialect_answer *out, struct ava_error *err)
{
	struct offline_body b;
	int rv;

	*out = (struct dialect_answer){0};
	if (config[0] == 0 && offline_is_talk(body, len))
		return answer_talk(body, len, out, err);
	rv = offline_body_read(&b, body, len, err);
	if (rv != 0)
		return rv;
	rv = config[0] != 0 ? answer_script(&b, len, config, out, err)
			    : answer_plan(&b, len, out, err);
	offline_body_fini(&b);
	return rv;
}

const struct dialect dialect_offline = {
	.name = "offline",
	.can_force = true,
	.encode_head = wire_head,
	.encode_tail = wire_tail,
	.encode_user = wire_user,
	.encode_results = wire_results,
	.check = wire_check,
	.results = wire_each_result,
	.open_calls = wire_open_calls,
	.answer = offline_answer,
};
