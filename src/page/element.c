/* Reading the words that pages have for their parts; see element.h.
 *
 * A class or id is a row of words (`post-share-buttons`, `cookieBanner`); each is looked up in
 * one table. A mark is a hint only: page/pick.c decides whether leaving it out would leave a
 * page. Hidden is hidden, though: text that nobody sees is where instructions to a model are
 * put. Style sheets are read for rules of a lone class or id, which is how hiding is
 * written; what a script or a combination of rules hides is not found out. */
#include "page/element.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define WORD_MAX   24
#define STYLES_MAX 2048 /* bytes of a style attribute that are read */

/* Sorted by name. */
/* clang-format off */
static const struct element_name {
	const char *name;
	int tag;
} tags[] = {
	{"a", TAG_A}, {"address", TAG_BLOCK}, {"annotation", TAG_DROPPED},
	{"applet", TAG_DROPPED}, {"area", TAG_DROPPED}, {"article", TAG_ARTICLE},
	{"aside", TAG_BLOCK}, {"audio", TAG_DROPPED}, {"b", TAG_STRONG},
	{"blockquote", TAG_QUOTE}, {"br", TAG_BR}, {"button", TAG_DROPPED},
	{"canvas", TAG_DROPPED}, {"caption", TAG_CAPTION}, {"center", TAG_BLOCK},
	{"code", TAG_CODE}, {"datalist", TAG_DROPPED}, {"dd", TAG_DD}, {"del", TAG_DEL},
	{"details", TAG_BLOCK}, {"dialog", TAG_BLOCK}, {"dir", TAG_UL}, {"div", TAG_BLOCK},
	{"dl", TAG_BLOCK}, {"dt", TAG_DT}, {"em", TAG_EM}, {"embed", TAG_DROPPED},
	{"fieldset", TAG_BLOCK}, {"figcaption", TAG_BLOCK}, {"figure", TAG_BLOCK},
	{"footer", TAG_BLOCK}, {"form", TAG_BLOCK}, {"frame", TAG_DROPPED}, {"h1", TAG_H1},
	{"h2", TAG_H1 + 1}, {"h3", TAG_H1 + 2}, {"h4", TAG_H1 + 3}, {"h5", TAG_H1 + 4},
	{"h6", TAG_H1 + 5}, {"header", TAG_BLOCK}, {"hgroup", TAG_BLOCK}, {"hr", TAG_HR},
	{"i", TAG_EM}, {"iframe", TAG_DROPPED}, {"img", TAG_IMG}, {"input", TAG_DROPPED},
	{"kbd", TAG_CODE}, {"legend", TAG_BLOCK}, {"li", TAG_LI}, {"listing", TAG_PRE},
	{"main", TAG_MAIN}, {"map", TAG_DROPPED}, {"menu", TAG_UL}, {"nav", TAG_BLOCK},
	{"noscript", TAG_BLOCK}, {"object", TAG_DROPPED}, {"ol", TAG_OL},
	{"optgroup", TAG_DROPPED}, {"option", TAG_DROPPED}, {"p", TAG_P},
	{"picture", TAG_INLINE}, {"plaintext", TAG_PRE}, {"pre", TAG_PRE},
	{"progress", TAG_DROPPED}, {"s", TAG_DEL}, {"samp", TAG_CODE}, {"script", TAG_DROPPED},
	{"section", TAG_BLOCK}, {"select", TAG_DROPPED}, {"strike", TAG_DEL},
	{"strong", TAG_STRONG}, {"style", TAG_DROPPED}, {"summary", TAG_P}, {"sup", TAG_SUP},
	{"svg", TAG_DROPPED}, {"table", TAG_TABLE}, {"tbody", TAG_ROWS}, {"td", TAG_TD},
	{"template", TAG_DROPPED}, {"textarea", TAG_DROPPED}, {"tfoot", TAG_ROWS},
	{"th", TAG_TH}, {"thead", TAG_ROWS}, {"title", TAG_DROPPED}, {"tr", TAG_TR},
	{"tt", TAG_CODE}, {"ul", TAG_UL}, {"video", TAG_DROPPED}, {"xmp", TAG_PRE},
};
/* clang-format on */

static int compare_name(const void *key, const void *row)
{
	return strcmp(key, ((const struct element_name *)row)->name);
}

enum tag element_tag(const char *name)
{
	const struct element_name *found =
		bsearch(name, tags, ARRAY_LEN(tags), sizeof(tags[0]), compare_name);

	return found ? (enum tag)found->tag : TAG_INLINE;
}

static const struct {
	unsigned mark;
	const char *words;
} words[] = {
	{MARK_NOTICE, " ad addthis ads advert advertisement consent cookie cookies editsection "
		      "gdpr modal newsletter onetrust outbrain paywall popup promo promoted "
		      "share sharedaddy sharing signup social sponsor sponsored subscribe "
		      "subscription taboola toast "},
	{MARK_ASIDE, " aside recommendations recommended related sidebar trending widget "
		     "widgets "},
	{MARK_NAV, " breadcrumb breadcrumbs footer masthead menu menubar nav navbar navbox "
		   "navigation pager pagination sitemap skip toolbar topbar "},
	{MARK_COMMENTS, " comment comments disqus respond "},
};

/* Whole class names. */
static const struct {
	unsigned mark;
	const char *names;
} names[] = {
	{MARK_HIDDEN, " sr-only visually-hidden visuallyhidden screen-reader-text "
		      "screen-reader-only offscreen is-hidden "},
	{MARK_BODY, " entry-content post-content article-content article-body articleBody "
		    "markdown-body "},
	{MARK_LINENO, " lineno linenos linenumber gutter hljs-ln-numbers "},
};

static const struct {
	const char *role;
	unsigned mark;
} roles[] = {
	{"navigation", MARK_NAV},      {"contentinfo", MARK_NAV},
	{"search", MARK_NAV},          {"menu", MARK_NAV},
	{"menubar", MARK_NAV},         {"toolbar", MARK_NAV},
	{"complementary", MARK_ASIDE}, {"dialog", MARK_NOTICE},
	{"alertdialog", MARK_NOTICE},  {"presentation", MARK_LAYOUT},
	{"none", MARK_LAYOUT},
};

const char *element_get(const char *const *atts, const char *name)
{
	for (; atts && atts[0]; atts += 2)
		if (strcmp(atts[0], name) == 0)
			return atts[1] ? atts[1] : "";
	return NULL;
}

/* Is the word in the list, whose words are between blanks? */
static bool is_listed(const char *list, const char *word, size_t len)
{
	for (const char *at = list; (at = memmem(at, strlen(at), word, len)) != NULL; at++)
		if (at[-1] == ' ' && at[len] == ' ')
			return true;
	return false;
}

static unsigned mark_of_word(const char *word, size_t len)
{
	char low[WORD_MAX];

	if (len < 2 || len > WORD_MAX)
		return 0;
	for (size_t i = 0; i < len; i++)
		low[i] = (char)tolower((unsigned char)word[i]);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (is_listed(words[i].words, low, len))
			return words[i].mark;
	return 0;
}

/* Marks of the words in a name; a word ends at a non-letter and before a capital behind a small
 * letter. */
static unsigned marks_of_words(const char *s, size_t len)
{
	unsigned marks = 0;
	size_t begin = 0;

	for (size_t i = 0; i <= len; i++) {
		bool letter = i < len && isalpha((unsigned char)s[i]);

		if (letter && !(i > begin && isupper((unsigned char)s[i]) &&
				islower((unsigned char)s[i - 1])))
			continue;
		marks |= mark_of_word(s + begin, i - begin);
		begin = letter ? i : i + 1;
	}
	return marks;
}

static bool is_hidden_name(const struct buf *hidden, char sign, const char *s, size_t len)
{
	const char *at = hidden->data;

	while (at && (at = memmem(at, strlen(at), s, len)) != NULL) {
		if (at > hidden->data && at[-1] == sign && at[len] == ' ')
			return true;
		at += len;
	}
	return false;
}

static unsigned marks_of_classes(const struct buf *hidden, const char *s)
{
	/* `hidden md:block`, `d-none d-lg-flex`: hidden on small screens only. */
	bool responsive = strchr(s, ':') || strstr(s, " d-");
	unsigned marks = 0;

	while (*s) {
		size_t len = strcspn(s, " \t\r\n");

		for (size_t i = 0; len > 0 && i < ARRAY_LEN(names); i++)
			marks |= is_listed(names[i].names, s, len) ? names[i].mark : 0;
		if (!responsive && ((len == 6 && memcmp(s, "hidden", 6) == 0) ||
				    (len == 6 && memcmp(s, "d-none", 6) == 0)))
			marks |= MARK_HIDDEN;
		if (len > 0 && hidden->len > 0 && is_hidden_name(hidden, '.', s, len))
			marks |= MARK_HIDDEN;
		marks |= marks_of_words(s, len);
		s += len + (s[len] != 0);
	}
	return marks;
}

/* ---- style */

/* The value of a property, up to its ";"; NULL: absent. */
static const char *element_value_of(const char *squeezed, const char *property)
{
	size_t n = strlen(property);
	const char *at = squeezed;

	while ((at = strstr(at, property)) != NULL) {
		if (at[-1] == ';' && at[n] == ':')
			return at + n + 1;
		at += n;
	}
	return NULL;
}

static bool element_begins(const char *s, const char *with)
{
	return s && strncmp(s, with, strlen(with)) == 0;
}

/* Is the number zero, in any unit? */
static bool is_zero(const char *s)
{
	char *end;

	return s && strtod(s, &end) == 0 && end > s;
}

static bool is_far_off(const char *s)
{
	return s && s[0] == '-' && strtol(s, NULL, 10) <= -500;
}

static bool is_white(const char *s)
{
	return element_begins(s, "#fff;") || element_begins(s, "#ffffff") ||
	       element_begins(s, "white") || element_begins(s, "rgb(255,255,255)");
}

static bool same_value(const char *a, const char *b)
{
	size_t n = a ? strcspn(a, ";!") : 0;

	return a && b && n > 0 && n == strcspn(b, ";!") && strncmp(a, b, n) == 0;
}

static unsigned marks_of_style(const char *style, size_t len)
{
	char s[STYLES_MAX];
	const char *color, *ground, *size;
	size_t n = 0;

	/* The declarations without blanks and in small letters, ";" before each. */
	s[n++] = ';';
	for (size_t i = 0; i < len && n < STYLES_MAX - 2; i++)
		if (!isspace((unsigned char)style[i]))
			s[n++] = (char)tolower((unsigned char)style[i]);
	s[n++] = ';';
	s[n] = 0;
	color = element_value_of(s, "color");
	ground = element_value_of(s, "background-color");
	ground = ground ? ground : element_value_of(s, "background");
	size = element_value_of(s, "font-size");
	if (element_begins(element_value_of(s, "display"), "none") ||
	    element_begins(element_value_of(s, "visibility"), "hidden") ||
	    element_begins(element_value_of(s, "visibility"), "collapse") ||
	    is_zero(element_value_of(s, "opacity")) || is_zero(size) ||
	    (size && strtod(size, NULL) < 2 && strstr(size, "px") &&
	     strstr(size, "px") < size + strcspn(size, ";")) ||
	    is_far_off(element_value_of(s, "text-indent")) ||
	    element_begins(element_value_of(s, "clip"), "rect(0") ||
	    element_begins(element_value_of(s, "clip"), "rect(1px,1px") ||
	    element_begins(element_value_of(s, "clip-path"), "inset(100%") ||
	    element_begins(element_value_of(s, "clip-path"), "inset(50%"))
		return MARK_HIDDEN;
	if (element_value_of(s, "position") &&
	    (is_far_off(element_value_of(s, "left")) || is_far_off(element_value_of(s, "top")) ||
	     is_far_off(element_value_of(s, "right")) || is_far_off(element_value_of(s, "bottom"))))
		return MARK_HIDDEN;
	if (element_begins(element_value_of(s, "overflow"), "hidden") &&
	    (is_zero(element_value_of(s, "height")) || is_zero(element_value_of(s, "width")) ||
	     is_zero(element_value_of(s, "max-height"))))
		return MARK_HIDDEN;
	if (element_begins(color, "transparent") || same_value(color, ground) ||
	    (is_white(color) && is_white(ground)))
		return MARK_HIDDEN;
	if (is_white(color) && !ground)
		return MARK_PALE;
	return ground && !is_white(ground) ? MARK_LIT : 0;
}

/* Remember the selectors of a rule whose declarations hide. */
static void element_remember(struct buf *hidden, const char *s, size_t len)
{
	while (len > 0) {
		const char *comma = memchr(s, ',', len);
		size_t n = comma ? (size_t)(comma - s) : len, from = 0, to = n, i;

		while (from < to && isspace((unsigned char)s[from]))
			from++;
		while (to > from && isspace((unsigned char)s[to - 1]))
			to--;
		for (i = from + 1; i < to && (isalnum((unsigned char)s[i]) || strchr("-_", s[i]));)
			i++;
		if (to > from + 1 && i == to && (s[from] == '.' || s[from] == '#')) {
			buf_add(hidden, s + from, to - from);
			buf_addc(hidden, ' ');
		}
		s += comma ? n + 1 : n;
		len -= comma ? n + 1 : n;
	}
}

void element_style(struct buf *hidden, const char *css, size_t len)
{
	const char *end = css + len;

	while (css < end) {
		const char *open, *close;

		while (css < end && isspace((unsigned char)*css))
			css++;
		if (end - css > 3 && memcmp(css, "/*", 2) == 0) {
			close = memmem(css + 2, (size_t)(end - css - 2), "*/", 2);
			css = close ? close + 2 : end;
			continue;
		}
		open = memchr(css, '{', (size_t)(end - css));
		if (!open)
			return;
		if (*css == '@') { /* skip the rules for another medium */
			int depth = 1;

			for (css = open + 1; css < end && depth > 0; css++)
				depth += *css == '{' ? 1 : *css == '}' ? -1 : 0;
			continue;
		}
		close = memchr(open, '}', (size_t)(end - open));
		close = close ? close : end;
		if (marks_of_style(open + 1, (size_t)(close - open - 1)) & MARK_HIDDEN)
			element_remember(hidden, css, (size_t)(open - css));
		css = close + (close < end);
	}
}

/* ---- all of an element */

static bool is_note(const char *classes)
{
	static const char *const notes[] = {"note", "warning", "tip",     "admonition",
					    "info", "caution", "callout", "important"};

	for (size_t i = 0; classes && i < ARRAY_LEN(notes); i++)
		if (strcasestr(classes, notes[i]))
			return true;
	return false;
}

unsigned element_of(const struct buf *hidden, enum tag tag, const char *name,
		    const char *const *atts)
{
	const char *classes = element_get(atts, "class"), *id = element_get(atts, "id");
	const char *role = element_get(atts, "role"), *style = element_get(atts, "style");
	const char *hides = element_get(atts, "hidden"), *aria = element_get(atts, "aria-hidden");
	const char *prop = element_get(atts, "itemprop");
	bool lit = element_get(atts, "bgcolor") || element_get(atts, "background");
	unsigned marks = lit ? MARK_LIT : 0;

	if (strcmp(name, "nav") == 0 || strcmp(name, "footer") == 0)
		marks |= MARK_NAV;
	else if (strcmp(name, "aside") == 0)
		marks |= MARK_ASIDE;
	else if (strcmp(name, "dialog") == 0)
		marks |= MARK_NOTICE;
	else if (strcmp(name, "noscript") == 0)
		marks |= MARK_NOSCRIPT;
	if (classes)
		marks |= marks_of_classes(hidden, classes);
	if (id) {
		marks |= marks_of_words(id, strlen(id));
		if (hidden->len > 0 && id[0] && is_hidden_name(hidden, '#', id, strlen(id)))
			marks |= MARK_HIDDEN;
	}
	for (size_t i = 0; role && i < ARRAY_LEN(roles); i++)
		marks |= strcmp(role, roles[i].role) == 0 ? roles[i].mark : 0;
	if (style)
		marks |= marks_of_style(style, strlen(style));
	if (hides && strcmp(hides, "until-found") != 0)
		marks |= MARK_HIDDEN;
	if (aria && strcmp(aria, "true") == 0)
		marks |= MARK_UNSAID;
	if (prop && strcmp(prop, "articleBody") == 0)
		marks |= MARK_BODY;
	/* A container's class tells what it holds ("has-sidebar"), not what it is. */
	if (tag == TAG_MAIN || tag == TAG_ARTICLE || is_note(classes) || (marks & MARK_BODY))
		marks &= ~(unsigned)(MARK_NAV | MARK_ASIDE | MARK_COMMENTS | MARK_NOTICE);
	if (tag == TAG_PRE || tag == TAG_CODE || tag == TAG_TABLE)
		marks &= ~(unsigned)MARK_LINENO;
	return marks;
}

size_t element_language(const char *classes, const char **language)
{
	static const char *const before[] = {"language-", "lang-", "highlight-source-",
					     "brush:", "highlight-"};

	for (const char *s = classes; s && *s;) {
		size_t len = strcspn(s, " \t\r\n");

		for (size_t i = 0; i < ARRAY_LEN(before); i++) {
			size_t n = strlen(before[i]), k = n;

			if (strncasecmp(s, before[i], n) != 0)
				continue;
			while (s[k] == ' ')
				k++;
			*language = s + k;
			for (n = 0; isalnum((unsigned char)(*language)[n]) ||
				    ((*language)[n] && strchr("+#-_.", (*language)[n]));)
				n++;
			if (n > 0 && n <= 20)
				return n;
		}
		s += len + (s[len] != 0);
	}
	return 0;
}
