/* While a turn is made it has room for every call and text that there may be; one
 * that waits for a person, perhaps for days, is copied into an arena of one chunk,
 * counted before. Out of memory is the only thing that can fail. */
#include "agent/turn_trim.h"

#include <string.h>

#include "agent/turn.h"
#include "base/util.h"

#define TRIM_CHUNK 256 /* an answer that comes later */

static size_t text_size(const char *s, size_t len)
{
	return s != NULL ? len + 1 + 16 : 0; /* the arena's alignment */
}

static size_t call_size(const struct turn_call *c)
{
	const char *texts[] = {c->wire_id, c->name, c->args_error, c->error_class, c->artifact};
	size_t n =
		sizeof(*c) + text_size(c->args, c->args_len) + text_size(c->output, c->output_len);

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		n += texts[i] != NULL ? text_size(texts[i], strlen(texts[i])) : 0;
	return n;
}

static bool copy(struct arena *mem, const char **s, size_t len)
{
	const char *was = *s;

	if (was == NULL)
		return true;
	*s = len > 0 ? arena_copy(mem, was, len) : "";
	return *s != NULL;
}

static bool copy_all(struct arena *mem, const char **s)
{
	return *s == NULL || copy(mem, s, strlen(*s));
}

static bool copy_call(struct arena *mem, struct turn_call *c)
{
	return copy_all(mem, &c->wire_id) && copy_all(mem, &c->name) &&
	       copy_all(mem, &c->args_error) && copy_all(mem, &c->error_class) &&
	       copy_all(mem, &c->artifact) && copy(mem, &c->args, c->args_len) &&
	       copy(mem, &c->output, c->output_len);
}

static bool copy_calls(struct turn *to, const struct turn *t)
{
	to->calls = arena_get(&to->mem, t->ncalls * sizeof(*t->calls));
	if (to->calls == NULL)
		return false;
	memcpy(to->calls, t->calls, t->ncalls * sizeof(*t->calls));
	for (unsigned i = 0; i < t->ncalls; i++)
		if (!copy_call(&to->mem, &to->calls[i]))
			return false;
	return true;
}

struct turn *turn_trim(const struct turn *t)
{
	size_t size = text_size(t->text, t->text_len) + text_size(t->request_id, 0) +
		      strlen(t->request_id) + 64;
	struct turn *to = turn_new();

	if (to == NULL)
		return NULL;
	for (unsigned i = 0; i < t->ncalls; i++)
		size += call_size(&t->calls[i]);
	to->mem.chunk = size;
	to->text = t->text;
	to->text_len = t->text_len;
	to->request_id = t->request_id;
	to->ncalls = t->ncalls;
	to->usage = t->usage;
	to->stop = t->stop;
	if ((t->ncalls > 0 && !copy_calls(to, t)) || !copy(&to->mem, &to->text, t->text_len) ||
	    !copy_all(&to->mem, &to->request_id)) {
		turn_free(to);
		return NULL;
	}
	to->mem.chunk = TRIM_CHUNK;
	to->trimmed = true;
	return to;
}
