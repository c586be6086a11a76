/* The memory of one answer (client/backend.h): strings in an arena, rows in a
 * buffer. Only memory can fail, or the bound; then a string is "" and a row is
 * missing, and the one check at the end says so. */
#include <string.h>

#include "base/error.h"
#include "client/backend.h"

#define ANSWER_MAX (256u << 20)

void answer_init(struct answer *a)
{
	arena_init(&a->mem, ANSWER_MAX);
	buf_init(&a->rows, ANSWER_MAX);
	a->failed = false;
}

void answer_fini(struct answer *a)
{
	arena_fini(&a->mem);
	buf_fini(&a->rows);
}

void answer_reset(struct answer *a)
{
	answer_fini(a);
	answer_init(a);
}

const char *answer_strn(struct answer *a, const char *s, size_t len)
{
	const char *copy = arena_copy(&a->mem, s, len);

	if (!copy)
		a->failed = true;
	return copy ? copy : "";
}

const char *answer_str(struct answer *a, const char *s)
{
	return s && *s ? answer_strn(a, s, strlen(s)) : "";
}

void answer_row(struct answer *a, const void *row, size_t size)
{
	buf_add(&a->rows, row, size);
}

int answer_check(const struct answer *a, struct ava_error *err)
{
	if (a->failed || buf_check(&a->rows) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory for the answer");
	return 0;
}
