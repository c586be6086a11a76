/* Replies from a file: line k is the k-th reply of the conversation, in the form
 * of the offline model's scripts (doc/OFFLINE.md):
 *
 *	{"text":"…","tool_calls":[{"name":"…","args":{…}}],"delay_ms":N}
 *
 * So one file plays both. What is behind its last line, or cannot be read, is a
 * text that says so: it shows in whatever the test looks at. */
#include "script.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape.h"

static char *copy_of(struct buf *b)
{
	char *s = buf_take(b, NULL);

	if (s == NULL)
		s = strdup("");
	assert(s != NULL);
	return s;
}

static void take_call(const struct tape *t, uint32_t node, struct content *out)
{
	uint32_t args = tape_get(t, node, "args");
	struct buf name, text;
	struct call *k;
	size_t len = 0;
	const char *raw = args != 0 ? tape_raw(t, args, &len) : NULL;

	buf_init(&name, 4096);
	buf_init(&text, 1u << 20);
	tape_text(t, tape_get(t, node, "name"), &name);
	if (raw != NULL)
		buf_add(&text, raw, len);
	else
		buf_adds(&text, "{}");
	out->calls = realloc(out->calls, (out->ncalls + 1) * sizeof *out->calls);
	assert(out->calls != NULL);
	k = &out->calls[out->ncalls++];
	*k = (struct call){.name = copy_of(&name), .args = copy_of(&text)};
}

static bool take_line(const char *line, size_t len, struct content *out)
{
	struct tape t;
	struct buf text;
	bool good;

	tape_init(&t);
	good = tape_read(&t, line, len) && tape_kind(&t, 0) == TAPE_OBJECT;
	if (good) {
		uint32_t calls = tape_get(&t, 0, "tool_calls");

		buf_init(&text, 1u << 20);
		tape_text(&t, tape_get(&t, 0, "text"), &text);
		out->own_text = copy_of(&text);
		if (calls != 0 && tape_kind(&t, calls) == TAPE_ARRAY)
			TAPE_EACH(&t, i, calls)
		take_call(&t, i, out);
		tape_int(&t, tape_get(&t, 0, "delay_ms"), &out->delay_ms);
	}
	tape_fini(&t);
	return good;
}

void script_play(const char *file, unsigned turn, struct content *out)
{
	FILE *f = fopen(file, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t n = -1;

	for (unsigned i = 0; f != NULL && i <= turn; i++)
		n = getline(&line, &size, f);
	while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
		n--;
	if (n <= 0 || !take_line(line, (size_t)n, out)) {
		out->own_text = strdup("mock: the script has no such line");
		assert(out->own_text != NULL);
	}
	out->text = out->own_text;
	free(line);
	if (f != NULL)
		fclose(f);
}
