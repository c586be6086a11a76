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

#define NAME_BYTES  64 /* what services take as the name of a tool */
#define WORDS_CHARS 2000
#define WORDS_MAX   65536
#define SCHEMA_MAX  16384

struct mcp_row {
	struct tool row;
	const char *name; /* as the server has it */
	bool added;
};

void mcp_rows_free(struct mcp_rows *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i]->added)
			tool_remove(&t->v[i]->row);
	arena_fini(&t->mem);
	*t = (struct mcp_rows){0};
}

static const struct mcp_row *find_row(const struct mcp_rows *t, const char *full)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->v[i]->row.name, full) == 0)
			return t->v[i];
	return NULL;
}

const char *mcp_rows_name(const struct mcp_rows *t, const struct tool *as, bool *same)
{
	const struct mcp_row *r = find_row(t, as->name);

	*same = r && strcmp(r->row.description, as->description) == 0 &&
		strcmp(r->row.schema, as->schema) == 0;
	return r ? r->name : NULL;
}

static int by_name(const void *a, const void *b)
{
	const struct mcp_row *const *x = a, *const *y = b;

	return strcmp((*x)->row.name, (*y)->row.name);
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

/* Into `out`; false: it is none. */
static bool schema_of(const struct mcp_rows *t, const json_t *schema, struct buf *out)
{
	json_t *again = NULL; /* members that only hidden characters told apart are one by now */
	struct buf b;

	buf_init(&b, SCHEMA_MAX);
	if (strcmp(json_str(schema, "type"), "object") == 0 && json_dump(&b, schema) == 0 &&
	    utf8_plain(out, b.data, b.len) == 0 &&
	    (!t->headers || !strstr(out->data, "\"x-mcp-header\"")))
		again = json_parse(out->data, out->len, NULL);
	buf_fini(&b);
	json_decref(again);
	return again != NULL;
}

bool mcp_rows_take(struct mcp_rows *to, const struct tool *like, const char *server,
		   const json_t *o)
{
	const char *name = json_str(o, "name"), *words = json_str(o, "description");
	char full[NAME_BYTES + 1];
	struct buf text, schema;
	struct mcp_row *t = NULL;
	bool good;

	buf_init(&text, WORDS_MAX);
	buf_init(&schema, SCHEMA_MAX);
	good = to->n < ARRAY_LEN(to->v) && full_name(server, name, full) && !find_row(to, full) &&
	       schema_of(to, json_object_get(o, "inputSchema"), &schema);
	to->left_out += !good;
	if (good && to->n == 0)
		arena_init(&to->mem, 8u << 20);
	if (good && (t = arena_get(&to->mem, sizeof(*t))) != NULL) {
		buf_addf(&text, "A tool of the MCP server %s, in its words: ", server);
		envelope_text(&text, words, utf8_prefix(words, strlen(words), WORDS_CHARS));
		t->row = *like;
		t->name = arena_copy(&to->mem, name, strlen(name));
		t->row.name = arena_copy(&to->mem, full, strlen(full));
		t->row.description = arena_copy(&to->mem, text.data ? text.data : "", text.len);
		t->row.schema = arena_copy(&to->mem, schema.data, schema.len);
		if (buf_check(&text) == 0 && t->name && t->row.name && t->row.description &&
		    t->row.schema)
			to->v[to->n++] = t;
		else
			t = NULL;
	}
	buf_fini(&text);
	buf_fini(&schema);
	return !good || t;
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
