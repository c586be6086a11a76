/* The check of what is new in a request, beside the check of the whole. */
#ifndef CHECK_MORE_H
#define CHECK_MORE_H

#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "provider/dialect.h"
#include "provider/messages.h"

/* The same is found in what follows as in the whole, wherever the bytes before it are right.
 * Returns how many such places there are. */
static inline unsigned check_more(const struct dialect *d, const char *lines)
{
	size_t len = strlen(lines), checked;
	struct ava_error whole = {0}, more;
	int rv = d->check(lines, len, &whole);
	unsigned places = 0;

	for (size_t n = 1; n <= len; n++) {
		if (d->check(lines, n, NULL) != 0)
			continue;
		places++;
		checked = n;
		more = (struct ava_error){0};
		assert_int_equal(messages_check(d, lines, len, &checked, &more), rv);
		assert_int_equal(checked, rv == 0 ? len : 0);
		assert_string_equal(more.text, whole.text);
	}
	return places;
}

#endif
