/* As a question: the first line of the input is a time, a type, a literal and
 * an expression at once, the rest a log, of which each line is asked. */
#include "fuzz.h"

#include <ava.h>

#include "journal/query.h"

#define NOW INT64_C(1795248000000)

static void check_words(const char *text)
{
	struct ava_log_query all = {.types = text, .agent = text, .user = text, .since = text};
	struct query q;
	uint64_t mask;
	int64_t ms;

	if (query_time(text, NOW, &ms, NULL) == 0)
		CHECK(ms >= 0 && ms <= INT64_C(253402300799999));
	if (event_types(text, &mask, NULL) == 0 && *text != '\0')
		CHECK(mask != 0);
	if (query_init(&q, &all, NOW, NULL) == 0)
		query_fini(&q);
}

static void check_log(const char *text, const char *log, size_t len)
{
	struct ava_log_query specs[] = {{.search = text}, {.regex = text}, {.types = "tool"}};
	struct event_view view;

	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		struct query q;

		if (query_init(&q, &specs[i], NOW, NULL) != 0)
			continue;
		for (const char *p = log, *nl; (nl = memchr(p, '\n', len)) != NULL; p = nl + 1) {
			size_t n = (size_t)(nl - p);
			enum query_answer answer = query_line(&q, 0, p, n, &view);

			CHECK(answer != QUERY_YES || event_view(p, n, &view) == 0);
			len -= n + 1;
		}
		len = strlen(log);
		query_fini(&q);
	}
}

FUZZ_TARGET(query, len)
{
	const uint8_t *nl = len > 0 ? memchr(data, '\n', len) : NULL;
	size_t head = nl != NULL ? (size_t)(nl - data) : len;
	char *text = fuzz_text(data, head), *log;

	check_words(text);
	if (nl != NULL) {
		log = fuzz_text(nl + 1, len - head - 1);
		if (strlen(log) == len - head - 1) /* the walk above ends at a NUL */
			check_log(text, log, len - head - 1);
		free(log);
	}
	free(text);
}
