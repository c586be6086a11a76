/* Tools of MCP servers as rows, and their results as text; see mcp_rows.h.
 *
 * Happy path: name, description and schema are checked, what no person would see of them is taken
 * out, and the description says whose words it has. Annotations are not looked at. What can fail:
 * memory; a name that no service takes, a schema that is none or too large is left out. */
#include "tool/mcp_rows.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/envelope.h"
#include "base/buf.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define TOOLS_MAX   128
#define NAME_BYTES  64 /* what services take as the name of a tool */
#define WORDS_CHARS 2000
#define SCHEMA_MAX  16384

struct mcp_row {
	struct tool row;
	char full[NAME_BYTES + 1];
	char *name, *text, *schema; /* owned */
	bool added;
};

void mcp_rows_free(struct mcp_rows *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->v[i]->added)
			tool_remove(&t->v[i]->row);
		free(t->v[i]->name);
		free(t->v[i]->text);
		free(t->v[i]->schema);
		free(t->v[i]);
	}
	free(t->v);
	*t = (struct mcp_rows){0};
}

static const struct mcp_row *find_row(const struct mcp_rows *t, const char *full)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->v[i]->full, full) == 0)
			return t->v[i];
	return NULL;
}

const char *mcp_rows_name(const struct mcp_rows *t, const struct tool *as, bool *same)
{
	const struct mcp_row *r = find_row(t, as->name);

	*same = r && strcmp(r->text, as->description) == 0 && strcmp(r->schema, as->schema) == 0;
	return r ? r->name : NULL;
}

static int by_name(const void *a, const void *b)
{
	const struct mcp_row *const *x = a, *const *y = b;

	return strcmp((*x)->full, (*y)->full);
}

void mcp_rows_add(struct mcp_rows *t)
{
	if (t->n > 0)
		qsort(t->v, t->n, sizeof(t->v[0]), by_name);
	for (size_t i = 0; i < t->n; i++) {
		t->v[i]->added = tool_add(&t->v[i]->row) == 0;
		t->left_out += !t->v[i]->added;
	}
}

/* Its name as services take one; false: it cannot be. */
static bool full_name(const char *server, const char *name, char out[NAME_BYTES + 1])
{
	size_t n = (size_t)snprintf(out, NAME_BYTES + 1, TOOL_MCP_PREFIX "%s__%s", server, name);

	if (!*name || n >= NAME_BYTES)
		return false;
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)out[i] <= ' ' || (unsigned char)out[i] > '~')
			return false;
		if (!isalnum((unsigned char)out[i]) && out[i] != '-')
			out[i] = '_';
	}
	return true;
}

/* NULL: it is none. */
static char *schema_of(const struct mcp_rows *t, const json_t *schema)
{
	struct buf b, plain;
	char *text = NULL;

	buf_init(&b, SCHEMA_MAX);
	buf_init(&plain, SCHEMA_MAX);
	if (strcmp(json_str(schema, "type"), "object") == 0 && json_dump(&b, schema) == 0 &&
	    utf8_plain(&plain, b.data, b.len) == 0 &&
	    (!t->headers || !strstr(plain.data, "\"x-mcp-header\"")))
		text = buf_take(&plain, NULL);
	buf_fini(&b);
	buf_fini(&plain);
	return text;
}

static char *text_of(const char *server, const char *text)
{
	struct buf b;
	char *out;

	buf_init(&b, 65536);
	buf_addf(&b, "A tool of the MCP server %s, in its words: ", server);
	envelope_text(&b, text, utf8_prefix(text, strlen(text), WORDS_CHARS));
	out = buf_take(&b, NULL);
	buf_fini(&b);
	return out;
}

bool mcp_rows_take(struct mcp_rows *to, const struct tool *like, const char *server,
		   const json_t *o)
{
	const char *name = json_str(o, "name");
	char full[NAME_BYTES + 1], *schema = NULL;
	struct mcp_row *t;

	if (to->n < TOOLS_MAX && full_name(server, name, full) && !find_row(to, full))
		schema = schema_of(to, json_object_get(o, "inputSchema"));
	if (!schema) {
		to->left_out++;
		return true;
	}
	t = array_room(&to->v, &to->cap, to->n + 1, sizeof(struct mcp_row *))
		    ? calloc(1, sizeof(*t))
		    : NULL;
	if (!t) {
		free(schema);
		return false;
	}
	to->v[to->n++] = t;
	memcpy(t->full, full, sizeof(full));
	t->name = strdup(name);
	t->text = text_of(server, json_str(o, "description"));
	t->schema = schema;
	t->row = *like;
	t->row.name = t->full;
	t->row.description = t->text;
	t->row.schema = t->schema;
	return t->name && t->text;
}

/* ---- results */

/* A text as it came; more than there is room for is cut. */
static void add_text(struct buf *out, const char *s, size_t len)
{
	size_t room = out->max - MIN(out->len + 64, out->max);

	if (out->len > 0)
		buf_addc(out, '\n');
	if (len <= room) {
		buf_add(out, s, len);
		return;
	}
	while (room > 0 && ((unsigned char)s[room] & 0xc0) == 0x80)
		room--;
	buf_add(out, s, room);
	buf_addf(out, "\n… %zu bytes left out …", len - room);
}

/* A word of the server's about a part, at most so many characters of it. */
static void add_word(struct buf *out, const char *before, const char *word, size_t chars)
{
	buf_adds(out, before);
	buf_add(out, word, utf8_prefix(word, strlen(word), chars));
}

/* One part of a result; what is no text is named. */
static void add_part(struct buf *out, const json_t *part)
{
	const char *type = json_str(part, "type"), *uri, *kind = json_str(part, "mimeType");
	const json_t *resource = json_object_get(part, "resource");
	const json_t *text = json_object_get(part, "text");

	if (strcmp(type, "resource") == 0)
		text = json_object_get(resource, "text");
	if (json_is_string(text)) {
		add_text(out, json_string_value(text), json_string_length(text));
		return;
	}
	add_word(out, out->len ? "\n(" : "(", *type ? type : "part of no known type", 30);
	uri = json_str(resource ? resource : part, "uri");
	if (*uri)
		add_word(out, " ", uri, 500);
	if (*kind)
		add_word(out, " of type ", kind, 80);
	if (json_is_string(json_object_get(part, "data")))
		buf_addf(out, ", %zu bytes",
			 json_string_length(json_object_get(part, "data")) / 4 * 3);
	buf_adds(out, " that is not shown here)");
}

void mcp_result_text(struct buf *out, const json_t *result)
{
	const json_t *data = json_object_get(result, "structuredContent"), *part;
	size_t i;

	json_array_foreach(json_object_get(result, "content"), i, part) add_part(out, part);
	if (data && out->len == 0)
		(void)json_dump(out, data);
}
