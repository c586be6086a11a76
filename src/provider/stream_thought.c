/* Thinking that stands in the text of a reply, between marks of the model's own.
 *
 * Only what leads is thinking: a text that begins with a mark, and what follows it up to
 * the mark that ends it, as often as that comes. A text is held back for as long as its
 * first bytes may become a mark, in thinking the bytes that may become its end; a text
 * that begins otherwise goes its way after one look. A template may have written the
 * beginning itself, then the end stands alone: that is known when all has come, and then
 * what was shown as text is thinking all the same. Marks in the middle of a text are what it
 * speaks of. Thinking moves to a part of its own (PART_THOUGHT), so that nobody who reads the
 * text has to know of it. What can fail is memory. */
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "provider/stream_core.h"

/* PAIR: the end mark is common and says nothing alone. LATE: the beginning is common and says
 * nothing without its end. An empty beginning: the mark begins the answer. */
enum how { FREE, PAIR, LATE };

static const struct thought {
	const char *begin, *end;
	enum how how;
} thoughts[] = {
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<thought>", "</thought>"},
	{"<thoughts>", "</thoughts>"},
	{"<reasoning>", "</reasoning>"},
	{"<reflection>", "</reflection>"},
	{"<scratchpad>", "</scratchpad>"},
	{"<antthinking>", "</antthinking>"},
	{"<ant_thinking>", "</ant_thinking>"},
	{"<seed:think>", "</seed:think>"},
	{"<mm:think>", "</mm:think>"},
	{"<longcat_think>", "</longcat_think>"},
	{"[THINK]", "[/THINK]"},
	{"\u25c1think\u25b7", "\u25c1/think\u25b7"},
	{"<|begin_of_thought|>", "<|end_of_thought|>"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"<unused94>", "<unused95>"},
	{"<|channel>thought", "<channel|>", PAIR},
	{"<|channel|>analysis<|message|>", "<|end|>", PAIR},
	{"<|channel|>commentary<|message|>", "<|end|>", PAIR},
	{"", "<|start|>assistant"},
	{"", "<|channel|>final<|message|>"},
	{"analysis", "assistantfinal", LATE},
};

/* Does `s` begin with `mark`, or with its first bytes? */
static enum fit stream_thought_fits(const char *s, size_t len, const char *mark)
{
	size_t n;

	if (len == 0 || *s != *mark || *mark == 0)
		return FIT_NOT;
	n = strlen(mark);
	if (strncasecmp(s, mark, MIN(n, len)) != 0)
		return FIT_NOT;
	return len < n ? FIT_MAYBE : FIT_WHOLE;
}

int stream_thought(struct stream *s, const char *text, size_t len)
{
	struct part *p = stream_find(s, 1u << PART_THOUGHT, -1);
	int rv = 0;

	if (p == NULL && len > 0)
		rv = stream_part(s, PART_THOUGHT, -1, &p);
	return rv == 0 && len > 0 ? stream_add(s, p, DELTA_REASONING, text, len) : rv;
}

/* Move `n` bytes of thinking from the beginning of a text to the thought part, and drop the
 * mark. */
static int take_off(struct stream *s, unsigned at, size_t n, size_t mark)
{
	int rv;

	s->payload -= (int64_t)n; /* the bytes were counted as text */
	rv = stream_thought(s, s->reply->parts[at].text.data, n);
	buf_drop(&s->reply->parts[at].text, n + mark);
	return rv;
}

/* Is the mark used, not quoted? A model puts it on a line of its own or right behind its thinking,
 * in no quotes and no fence. */
static bool stream_thought_stands_alone(const char *s, size_t at, size_t mark, size_t len)
{
	size_t from = at;
	bool fence = false;

	for (size_t i = 0; i + 3 <= at; i++)
		fence ^= memcmp(s + i, "```", 3) == 0;
	while (from > 0 && (s[from - 1] == ' ' || s[from - 1] == '\t'))
		from--;
	return !fence && strchr("\"'`(", s[at - 1]) == NULL &&
	       (at + mark == len || strchr("\"'`)", s[at + mark]) == NULL) &&
	       (from == 0 || from == at || strchr("\n.!?", s[from - 1]) != NULL);
}

/* Offset of the mark that ends thinking, *mark: its length; 0: not decided, more bytes may complete
 * one. Models mix up the marks of a family. `in` NULL: no beginning was seen. */
static size_t find_end(const struct thought *in, const char *s, size_t len, size_t *mark)
{
	*mark = 0;
	for (size_t at = in == NULL; at < len; at++) {
		at += strcspn(s + at, "<[a\xe2"); /* first bytes of all marks */
		if (at >= len)
			break;
		for (const struct thought *t = thoughts; t < thoughts + ARRAY_LEN(thoughts); t++) {
			bool kin = t == in ||
				   (t->how == FREE && (in == NULL || t->end[1] == in->end[1]));
			bool late = in == NULL && t->how == LATE &&
				    stream_thought_fits(s, at, t->begin) == FIT_WHOLE;
			enum fit fit = kin || late ? stream_thought_fits(s + at, len - at, t->end)
						   : FIT_NOT;

			if (in == NULL && t->how <= PAIR &&
			    stream_thought_fits(s + at, len - at, t->begin) == FIT_WHOLE)
				return len; /* the text only speaks of marks */
			if (in == NULL && (fit != FIT_WHOLE || !stream_thought_stands_alone(
								       s, at, strlen(t->end), len)))
				continue;
			if (fit == FIT_WHOLE)
				*mark = strlen(t->end);
			if (fit != FIT_NOT)
				return at;
		}
	}
	return len;
}

/* Does a text begin with the mark of row *in, or with an end mark alone (NULL)? *mark: its length.
 * FIT_MAYBE: more bytes decide. */
static enum fit stream_thought_begins(const char *s, size_t len, const struct thought **in,
				      size_t *mark)
{
	enum fit fit = FIT_NOT;

	for (const struct thought *t = thoughts; t < thoughts + ARRAY_LEN(thoughts); t++) {
		enum fit begin = t->how != LATE ? stream_thought_fits(s, len, t->begin) : FIT_NOT;
		enum fit end = t->how == FREE ? stream_thought_fits(s, len, t->end) : FIT_NOT;

		fit = MAX(fit, MAX(begin, end));
		if (fit == FIT_WHOLE) {
			*in = begin == FIT_WHOLE ? t : NULL;
			*mark = strlen(begin == FIT_WHOLE ? t->begin : t->end);
			break;
		}
	}
	return fit;
}

int stream_lead(struct stream *s, unsigned at, bool last)
{
	struct part *p = &s->reply->parts[at];
	size_t mark, n;
	enum fit fit;
	int rv = 0;

	while (rv == 0 && p->text.len > 0 && (p->lead == LEAD_BEGIN || p->lead == LEAD_LED)) {
		if (p->in != NULL) {
			n = find_end(p->in, p->text.data, p->text.len, &mark);
			rv = take_off(s, at, mark == 0 && last ? p->text.len : n, mark);
			p = &s->reply->parts[at]; /* parts may have moved */
			if (mark == 0)
				break;
			p->in = NULL;
			continue;
		}
		n = strspn(p->text.data, " \t\r\n");
		fit = stream_thought_begins(p->text.data + n, p->text.len - n, &p->in, &mark);
		if (fit != FIT_WHOLE && !last && (fit == FIT_MAYBE || n == p->text.len))
			break;
		if (fit == FIT_WHOLE) {
			buf_drop(&p->text, n + mark);
			p->lead = LEAD_LED;
			continue;
		}
		if (p->lead == LEAD_LED)
			buf_drop(&p->text, n);
		p->in = NULL;
		p->lead = LEAD_OVER;
		stream_show(s, p);
	}
	return rv;
}

int stream_settle(struct stream *s)
{
	size_t mark = 0, n;
	bool first = true;
	int rv = 0;

	for (unsigned i = 0; i < s->reply->nparts && rv == 0; i++) {
		const struct part *p = &s->reply->parts[i];

		if (p->kind != PART_TEXT)
			continue;
		rv = stream_lead(s, i, true);
		p = &s->reply->parts[i];
		if (rv != 0 || p->text.len == 0 || !first)
			continue;
		first = false;
		n = find_end(NULL, p->text.data, p->text.len, &mark);
		if (mark == 0)
			continue;
		s->text = NULL; /* the bytes were shown as text already */
		rv = take_off(s, i, n, mark);
		s->reply->parts[i].lead = LEAD_LED;
		rv = rv == 0 ? stream_lead(s, i, true) : rv;
	}
	return rv;
}
