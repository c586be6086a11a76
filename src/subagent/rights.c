/* Rights computed, as data and in words; see rights.h.
 *
 * One table has the flags, keys and words, so that what is stored, shown and asked about agree
 * with a tool's flags. Nothing fails. */
#include "subagent/rights.h"

#include <string.h>

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
