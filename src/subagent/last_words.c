/* The run's log is gone through once; each InferEnd with a text replaces the
 * one before. Whatever cannot be read is passed over: an end is written with
 * or without these words. */
#include "subagent/last_words.h"

#include <stdlib.h>

#include "codec/json.h"
#include "codec/jsonl.h"
#include "event/event.h"
#include "subagent/logbook.h"

#define LOG_MAX ((size_t)256 << 20)

static void take(const struct event_view *v, struct buf *out)
{
	json_t *content = json_parse(v->content.s, v->content.len, NULL);
	const char *text = json_get_str(content, "responsePreview");

	if (text && *text) {
		buf_reset(out);
		buf_adds(out, text);
	}
	json_decref(content);
}

void last_words(int root_fd, const char *run, struct buf *out)
{
	char path[LOGBOOK_PATH], *data = NULL;
	size_t len = 0, at = 0, n;
	const char *line;

	logbook_run_path(run, path);
	if (logbook_read(root_fd, path, LOG_MAX, &data, &len, NULL) != 0)
		return;
	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		struct event_view v;

		if (event_view(line, n, &v) == 0 && v.kind == EVENT_InferEnd)
			take(&v, out);
	}
	free(data);
}
