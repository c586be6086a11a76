/* Ignore rules; see ignore.h.
 *
 * Each file becomes a set: a copy of its text with an array of rules that
 * point into it. Most rules are plain names or "*.o", which need no wildcard
 * matcher; those are told apart once, when the file is read. Nothing in an
 * ignore file is an error: a rule that makes no sense matches nothing. */
#include "tool/ignore.h"

#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "tool/wild.h"

#define RULE_KEEP 1u /* '!': what it matches is not ignored */
#define RULE_DIR  2u /* ends in '/': folders only */
#define RULE_NAME 4u /* no '/': about the last part of the path */
#define RULE_ENDS 8u /* '*' and then nothing special */

struct rule {
	const char *text;
	unsigned short len, plain; /* plain: bytes before anything special */
	unsigned flags;
};

struct set {
	char *base, *text;
	size_t base_len;
	struct rule *rules;
	size_t count;
	enum ignore_rank rank;
};

struct ignore {
	struct set *sets;
	size_t count, cap;
	size_t rules; /* of all sets */
};

struct ignore *ignore_new(void)
{
	return calloc(1, sizeof(struct ignore));
}

size_t ignore_mark(const struct ignore *ig)
{
	return ig->count;
}

static void set_fini(struct set *s)
{
	free(s->base);
	free(s->text);
	free(s->rules);
	*s = (struct set){.base = NULL};
}

void ignore_pop(struct ignore *ig, size_t mark)
{
	while (ig->count > mark) {
		struct set *s = &ig->sets[--ig->count];

		ig->rules -= s->count;
		set_fini(s);
	}
}

void ignore_free(struct ignore *ig)
{
	if (ig == NULL)
		return;
	ignore_pop(ig, 0);
	free(ig->sets);
	free(ig);
}

/* ---- reading */

/* Length of a line without spaces at its end, unless a \ is before them. */
static size_t trimmed(const char *s, size_t len)
{
	size_t keep = 0;

	for (size_t i = 0; i < len; i++) {
		if (s[i] == '\\') {
			if (++i == len)
				return len;
			keep = i + 1;
		} else if (s[i] != ' ') {
			keep = i + 1;
		}
	}
	return keep;
}

/* One line as a rule; false: a comment, empty, or longer than a rule may be. */
static bool rule_parse(struct rule *r, const char *s, size_t len)
{
	len = strnlen(s, len);
	if (len != 0 && s[len - 1] == '\r')
		len--;
	if (len == 0 || s[0] == '#')
		return false;
	len = trimmed(s, len);
	*r = (struct rule){.flags = 0};
	if (len != 0 && s[0] == '!') {
		r->flags |= RULE_KEEP;
		s++;
		len--;
	}
	if (len != 0 && s[len - 1] == '/') {
		r->flags |= RULE_DIR;
		len--;
	}
	if (len == 0 || len > WILD_PATTERN_MAX)
		return false;
	if (memchr(s, '/', len) == NULL)
		r->flags |= RULE_NAME;
	if (s[0] == '*' && wild_plain(s + 1, len - 1) == len - 1)
		r->flags |= RULE_ENDS;
	r->text = s;
	r->len = (unsigned short)len;
	r->plain = (unsigned short)wild_plain(s, len);
	return true;
}

static int set_parse(struct set *s, size_t len, size_t room)
{
	const char *at = s->text, *end = at + len;
	size_t cap = 0;

	if (len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	while (at < end && s->count < room) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		const char *stop = nl != NULL ? nl : end;

		if (s->count == cap) {
			struct rule *more;

			cap = cap != 0 ? cap * 2 : 16;
			more = realloc(s->rules, cap * sizeof(*more));
			if (more == NULL)
				return AVA_ENOMEM;
			s->rules = more;
		}
		if (rule_parse(&s->rules[s->count], at, (size_t)(stop - at)))
			s->count++;
		at = stop + 1;
	}
	return 0;
}

int ignore_push(struct ignore *ig, enum ignore_rank rank, const char *base, const char *text,
		size_t len)
{
	struct set s = {.rank = rank, .base_len = strlen(base)};
	int rv = AVA_ENOMEM;

	if (ig->count == ig->cap) {
		size_t cap = ig->cap != 0 ? ig->cap * 2 : 8;
		struct set *more = realloc(ig->sets, cap * sizeof(*more));

		if (more == NULL)
			return AVA_ENOMEM;
		ig->sets = more;
		ig->cap = cap;
	}
	if (len > IGNORE_TEXT_MAX)
		len = IGNORE_TEXT_MAX;
	s.base = strdup(base);
	s.text = malloc(len + 1);
	if (s.base == NULL || s.text == NULL)
		goto fail;
	memcpy(s.text, text, len);
	s.text[len] = '\0';
	rv = set_parse(&s, len, IGNORE_RULES_MAX - ig->rules);
	if (rv != 0)
		goto fail;
	ig->rules += s.count;
	ig->sets[ig->count++] = s;
	return 0;

fail:
	set_fini(&s);
	return rv;
}

/* ---- matching */

static bool match_name(const struct rule *r, const char *name, size_t len)
{
	if (r->plain == r->len)
		return r->len == len && memcmp(r->text, name, len) == 0;
	if (r->flags & RULE_ENDS)
		return (size_t)r->len - 1 <= len &&
		       memcmp(r->text + 1, name + len - (r->len - 1), r->len - 1) == 0;
	return wild_match(r->text, r->len, name, len, false);
}

/* `path` is relative to the folder of the rule's file. */
static bool match_path(const struct rule *r, const char *path, size_t len)
{
	size_t skip = r->text[0] == '/', plain;

	/* What follows the plain part is matched by itself, as git does it: so
	 * "a/b**" is a/b with any number of folders. */
	plain = r->plain > skip ? r->plain - skip : 0;
	if (plain > len || memcmp(r->text + skip, path, plain) != 0)
		return false;
	return wild_match(r->text + skip + plain, r->len - skip - plain, path + plain, len - plain,
			  true);
}

/* 1: ignored, 0: kept, -1: no rule of this set says anything. */
static int set_match(const struct set *s, const char *path, const char *name, bool is_dir)
{
	size_t len = strlen(path), skip = s->base_len != 0 ? s->base_len + 1 : 0;

	if (len <= skip ||
	    (skip != 0 && (memcmp(path, s->base, s->base_len) != 0 || path[s->base_len] != '/')))
		return -1;
	for (size_t i = s->count; i-- > 0;) {
		const struct rule *r = &s->rules[i];

		if ((r->flags & RULE_DIR) && !is_dir)
			continue;
		if (r->flags & RULE_NAME ? match_name(r, name, len - (size_t)(name - path))
					 : match_path(r, path + skip, len - skip))
			return !(r->flags & RULE_KEEP);
	}
	return -1;
}

static int rank_match(const struct ignore *ig, enum ignore_rank rank, const char *path,
		      const char *name, bool is_dir)
{
	int rv = -1;

	for (size_t i = ig->count; i-- > 0 && rv < 0;) {
		if (ig->sets[i].rank == rank)
			rv = set_match(&ig->sets[i], path, name, is_dir);
	}
	return rv;
}

bool ignore_match(const struct ignore *ig, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;
	int rv = rank_match(ig, IGNORE_FOLDER, path, name, is_dir);

	if (rv < 0)
		rv = rank_match(ig, IGNORE_INFO, path, name, is_dir);
	return rv == 1;
}
