/* Any text as a time that comes again: an error is one sentence; a calendar goes strictly ahead,
 * is the same again from its text, zone and anchor, and has words. */
#include "fuzz.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/calendar.h"
#include "base/error.h"

#define ANCHOR INT64_C(1735689600000) /* 2025-01-01T00:00:00Z */

FUZZ_TARGET(calendar, size)
{
	struct calendar *c, *again;
	struct ava_error err = {0};
	char *text = malloc(size + 1);
	struct buf words;
	int64_t t = ANCHOR;

	CHECK(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	if (calendar_parse(text, "Europe/Berlin", ANCHOR, &c, &err) != 0) {
		CHECK(err.code == AVA_EINVAL && err.text[0] != '\0' && !strchr(err.text, '\n'));
		free(text);
		return;
	}
	CHECK(calendar_parse(text, calendar_zone(c), ANCHOR, &again, NULL) == 0);
	for (int i = 0; i < 20 && t != CALENDAR_NEVER; i++) {
		int64_t next = calendar_next(c, t);

		CHECK(next > t && (i > 0 || next != CALENDAR_NEVER || calendar_waits(c)));
		CHECK(calendar_next(again, t) == next);
		/* Nothing is due between the two. */
		CHECK(next == CALENDAR_NEVER || calendar_next(c, next - 1) == next);
		t = next;
	}
	buf_init(&words, 2000);
	calendar_text(c, &words);
	CHECK(buf_check(&words) == 0 && words.len > 0 && !strchr(words.data, '\n'));
	buf_fini(&words);
	calendar_free(again);
	calendar_free(c);
	free(text);
}
