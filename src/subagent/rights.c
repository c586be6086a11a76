/* Rights computed, as data and in words; see rights.h.
 *
 * One table has the flags, keys and words, so that what is stored, shown and asked about agree
 * with a tool's flags. Nothing fails. */
#include "subagent/rights.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/rights_words.h"
#include "base/util.h"
#include "codec/json.h"

static const struct {
	unsigned bit;
	const char *key, *has, *lacks;
} rights[] = {
#define X(flag, key, has, lacks) {TOOL_##flag, key, has, lacks},
	RIGHTS(X)
#undef X
};

unsigned rights_of(const struct tool *const *tools, unsigned n, bool folder, bool fetch_any)
{
	unsigned all = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned flags = tools[i]->flags;

		all |= flags & RIGHTS_ALL;
		if ((flags & TOOL_PROJECT) && folder)
			all |= TOOL_PRIVATE;
		/* An address that the model makes up carries data. */
		if ((flags & TOOL_UNTRUSTED) && fetch_any)
			all |= TOOL_OUT;
	}
	return all;
}

void rights_write(struct jw *w, const char *key, unsigned set)
{
	jw_object(w, key);
	for (size_t i = 0; i < ARRAY_LEN(rights); i++)
		jw_bool(w, rights[i].key, set & rights[i].bit);
	jw_end(w);
}

unsigned rights_read(const json_t *o)
{
	unsigned set = 0;

	for (size_t i = 0; i < ARRAY_LEN(rights); i++)
		set |= json_get_bool(o, rights[i].key, false) ? rights[i].bit : 0;
	return set;
}

unsigned rights_reads(const struct tool *const *tools, unsigned n, bool folder)
{
	unsigned all = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned flags = tools[i]->flags;

		if ((flags & TOOL_PROJECT) && folder)
			all |= RIGHTS_FILES;
		else if (!(flags & TOOL_PRIVATE))
			continue;
		else if (flags & TOOL_FILES)
			all |= RIGHTS_FILES;
		else
			all |= strcmp(tools[i]->name, "memory_search") == 0 ? RIGHTS_MEMORIES
									    : RIGHTS_OTHER;
	}
	return all;
}

void rights_words(struct buf *out, unsigned set, unsigned reads)
{
	static const char *const yours[] = RIGHTS_READS;

	for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
		const char *words = set & rights[i].bit ? rights[i].has : rights[i].lacks;

		if (rights[i].bit == TOOL_PRIVATE && (set & TOOL_PRIVATE))
			words = yours[reads];
		if (rights[i].bit != TOOL_PRIVATE && !(set & (TOOL_OUT | TOOL_UNTRUSTED)))
			words = rights[i].bit == TOOL_OUT ? RIGHTS_NO_NETWORK : NULL;
		if (words != NULL)
			buf_addf(out, "%s%s", i ? ", " : "", words);
	}
}

/* ---- addresses that a task names */

#define URLS_CHARS 2000 /* characters of them, of one task */

/* Length of the address that begins here, up to a blank: with its scheme, or a host with
 * something behind it ("evil.example/d?q=1"); `bare`: also a host alone, since it is no name of a
 * file. 0: none. */
static size_t address_at(const char *s, bool bare)
{
	size_t len = strcspn(s, " \t\r\n\v\f\"<>`"), host, top;

	if (strncasecmp(s, "http://", 7) == 0 || strncasecmp(s, "https://", 8) == 0)
		return len;
	host = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");
	while (host > 0 && s[host - 1] == '.')
		host--;
	for (top = host; top > 0 && isalpha((unsigned char)s[top - 1]);)
		top--;
	if (top < 2 || s[top - 1] != '.' || host - top < 2)
		return 0;
	return host < len && strchr("/?", s[host]) ? len : bare ? host : 0;
}

bool rights_reads_web(const struct tool *const *tools, unsigned n)
{
	while (n-- > 0)
		if (tools[n]->flags & TOOL_WEB)
			return true;
	return false;
}

size_t rights_addresses(struct buf *out, const char *task, bool folder)
{
	const char *at = task;
	size_t begin = out->len, n, over = 0;
	bool word = true;

	for (; *at; at += MAX(n, (size_t)1)) {
		n = word ? address_at(at, !folder) : 0;
		word = !isalnum((unsigned char)*at); /* envelope_names begins words so, too */
		if (n > 0 && out->len > 0 && memmem(out->data, out->len, at, n))
			continue;
		if (n > 0 && out->len - begin + n > URLS_CHARS) {
			over++;
		} else if (n > 0) {
			buf_add(out, at, n);
			buf_addc(out, '\n');
		}
	}
	return over;
}
