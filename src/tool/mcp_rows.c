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

#define NAME_BYTES  64 /* most bytes of a tool's name that services take */
#define WORDS_CHARS 2000
#define WORDS_MAX   65536
#define SCHEMA_MAX  16384

struct mcp_row {
	struct tool row;
	const char *name; /* the tool's name at its server */
};

void mcp_rows_free(struct mcp_rows *t)
{
	for (size_t i = 0; i < t->n; i++)
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

void mcp_rows_add(struct mcp_rows *t)
{
	for (size_t i = 0; i < t->n; i++)
		t->left_out += tool_add(&t->v[i]->row) != 0;
}

/* The tool's full name as services take one; false: impossible. */
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

/* Write the schema into `out`; false: not a schema. */
static bool schema_of(const struct mcp_rows *t, const json_t *schema, struct buf *out)
{
	json_t *again = NULL; /* the schema once more: removed characters may make names equal */
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

bool mcp_rows_take(struct mcp_rows *t, const struct tool *like, const char *server, const json_t *o)
{
	const char *name = json_str(o, "name"), *words = json_str(o, "description"), *schema;
	char full[NAME_BYTES + 1];
	struct mcp_row *r = NULL;
	struct buf text;
	size_t i = t->n;

	buf_init(&text, WORDS_MAX);
	if (t->n == ARRAY_LEN(t->v) || !full_name(server, name, full) || find_row(t, full) ||
	    !schema_of(t, json_object_get(o, "inputSchema"), &text)) {
		t->left_out++;
		buf_fini(&text);
		return true;
	}
	if (t->n == 0)
		arena_init(&t->mem, 8u << 20);
	schema = arena_copy(&t->mem, text.data, text.len);
	buf_reset(&text);
	buf_addf(&text, "A tool of the MCP server %s, in its words: ", server);
	envelope_text(&text, words, utf8_prefix(words, strlen(words), WORDS_CHARS));
	if (schema && buf_check(&text) == 0 && (r = arena_get(&t->mem, sizeof(*r))) != NULL) {
		r->row = *like;
		r->name = arena_copy(&t->mem, name, strlen(name));
		r->row.name = arena_copy(&t->mem, full, strlen(full));
		r->row.description = arena_copy(&t->mem, text.data, text.len);
		r->row.schema = schema;
	}
	buf_fini(&text);
	if (!r || !r->name || !r->row.name || !r->row.description)
		return false;
	for (; i > 0 && strcmp(t->v[i - 1]->row.name, full) > 0; i--) /* rows are sorted by name */
		t->v[i] = t->v[i - 1];
	t->v[i] = r;
	t->n++;
	return true;
}

/* ---- results */

#define LEFT_OUT_LINE 64 /* room for the line that tells the bytes left out */

/* Add a text; bytes without room count in *left. */
static void mcp_rows_add_text(struct buf *out, const char *s, size_t len, size_t *left)
{
	size_t room = out->max - MIN(out->len + LEFT_OUT_LINE, out->max), n = MIN(len, room);

	while (n > 0 && n < len && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	*left += len - n;
	if (n == 0 && (len > 0 || room == 0))
		return;
	if (out->len > 0)
		buf_addc(out, '\n');
	buf_add(out, s, n);
}

/* Add a word of the server about a part, at most `chars` characters; nothing when it is empty. */
static void mcp_rows_add_word(struct buf *out, const char *before, const char *word, size_t chars)
{
	if (*word)
		buf_addf(out, "%s%.*s", before, (int)utf8_prefix(word, strlen(word), chars), word);
}

void mcp_result_text(struct buf *out, const json_t *result)
{
	const json_t *data = json_object_get(result, "structuredContent"), *part, *resource, *bytes;
	const char *type, *text;
	struct buf named;
	size_t i, left = 0;

	json_array_foreach(json_object_get(result, "content"), i, part)
	{
		type = json_str(part, "type");
		resource = json_object_get(part, "resource");
		bytes = json_object_get(part, "data");
		text = json_get_str(strcmp(type, "resource") == 0 ? resource : part, "text");
		if (text) {
			mcp_rows_add_text(out, text, strlen(text), &left);
			continue;
		}
		buf_init(&named, 4096); /* other parts than text are named */
		mcp_rows_add_word(&named, "(", *type ? type : "part of no known type", 30);
		mcp_rows_add_word(&named, " ", json_str(resource ? resource : part, "uri"), 500);
		mcp_rows_add_word(&named, " of type ", json_str(part, "mimeType"), 80);
		if (json_is_string(bytes))
			buf_addf(&named, ", %zu bytes", json_string_length(bytes) / 4 * 3);
		if (buf_adds(&named, " that is not shown here)") == 0)
			mcp_rows_add_text(out, named.data, named.len, &left);
		buf_fini(&named);
	}
	if (left > 0)
		buf_addf(out, "\n… %zu bytes left out …", left);
	if (data && out->len == 0)
		(void)json_dump(out, data);
}
