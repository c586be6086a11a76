/* The role that fits a task: a table of words with weights, and the shape of
 * tokens (URLs, domains, source files, identifiers). A function of the text
 * alone, so that the same task is always proposed to the same role; no word
 * known means researcher. Nothing can fail. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "provider/dialect.h"

/* On a tie the earlier one wins; without any weight the last. */
enum classify_role { CODE, DATA, WEB, RESEARCH, NROLES };

static const char *const names[NROLES] = {
	[CODE] = "code_reviewer",
	[DATA] = "data_extractor",
	[WEB] = "web_crawler",
	[RESEARCH] = "researcher",
};

#define TASK_MAX 16384 /* bytes looked at; the rest rarely changes the kind of a task */
#define WORD_MAX 48

/* Lower case; a trailing * matches any ending. */
static const struct {
	const char *word;
	unsigned char role, weight;
} words[] = {
	{"reviews", WEB, 2},
	{"review*", CODE, 3},
	{"refactor*", CODE, 5},
	{"bug", CODE, 5},
	{"bugs", CODE, 5},
	{"bugfix*", CODE, 5},
	{"function*", CODE, 4},
	{"method*", CODE, 2},
	{"class", CODE, 2},
	{"classes", CODE, 2},
	{"struct*", CODE, 2},
	{"code", CODE, 4},
	{"codebase", CODE, 6},
	{"repo", CODE, 5},
	{"repository", CODE, 4},
	{"source", CODE, 2},
	{"commit*", CODE, 3},
	{"diff", CODE, 4},
	{"patch*", CODE, 3},
	{"pr", CODE, 3},
	{"merge", CODE, 2},
	{"branch*", CODE, 2},
	{"implement*", CODE, 4},
	{"compil*", CODE, 4},
	{"crash*", CODE, 3},
	{"segfault*", CODE, 6},
	{"leak*", CODE, 4},
	{"overflow*", CODE, 3},
	{"unit", CODE, 1},
	{"test", CODE, 2},
	{"tests", CODE, 2},
	{"lint*", CODE, 4},
	{"module*", CODE, 2},
	{"api", CODE, 1},
	{"header*", CODE, 2},
	{"macro*", CODE, 4},
	{"mutex*", CODE, 5},
	{"deadlock*", CODE, 6},
	{"race", CODE, 2},
	{"thread*", CODE, 3},
	{"pointer*", CODE, 5},
	{"malloc*", CODE, 6},
	{"null", CODE, 2},
	{"exception*", CODE, 3},
	{"stacktrace*", CODE, 5},
	{"debug*", CODE, 4},
	{"todo", CODE, 3},
	{"todos", CODE, 4},
	{"fixme*", CODE, 4},
	{"vulnerab*", CODE, 3},
	{"parser", CODE, 2},
	{"called", CODE, 1},
	{"calls", CODE, 2},
	{"caller*", CODE, 3},
	{"defined", CODE, 3},
	{"declared", CODE, 3},
	{"handled", CODE, 2},
	{"variable*", CODE, 3},
	{"architecture", CODE, 2},
	{"dead", CODE, 1},
	{"algorithm*", CODE, 1},

	{"extract*", DATA, 10},
	{"table", DATA, 3},
	{"tables", DATA, 3},
	{"tabular", DATA, 4},
	{"csv", DATA, 5},
	{"tsv", DATA, 5},
	{"spreadsheet*", DATA, 5},
	{"excel", DATA, 4},
	{"xlsx", DATA, 5},
	{"field", DATA, 2},
	{"fields", DATA, 4},
	{"column*", DATA, 4},
	{"row", DATA, 2},
	{"rows", DATA, 3},
	{"json", DATA, 2},
	{"scrape*", DATA, 4},
	{"scraping", DATA, 4},
	{"pdf", DATA, 4},
	{"pdfs", DATA, 4},
	{"invoice*", DATA, 4},
	{"receipt*", DATA, 4},
	{"structured", DATA, 3},
	{"metric*", DATA, 2},
	{"dataset*", DATA, 3},
	{"parse", DATA, 2},
	{"convert*", DATA, 2},
	{"records", DATA, 2},

	{"website*", WEB, 5},
	{"web", WEB, 4},
	{"webpage*", WEB, 5},
	{"site", WEB, 3},
	{"sites", WEB, 3},
	{"pricing", WEB, 5},
	{"prices", WEB, 4},
	{"price", WEB, 3},
	{"competitor*", WEB, 5},
	{"crawl*", WEB, 6},
	{"browse*", WEB, 4},
	{"online", WEB, 4},
	{"internet", WEB, 4},
	{"url", WEB, 3},
	{"urls", WEB, 3},
	{"http", WEB, 2},
	{"https", WEB, 2},
	{"google", WEB, 3},
	{"news", WEB, 3},
	{"blog*", WEB, 3},
	{"vendor*", WEB, 3},
	{"market", WEB, 3},
	{"shop*", WEB, 3},
	{"product*", WEB, 2},
	{"homepage*", WEB, 5},
	{"page", WEB, 2},
	{"pages", WEB, 2},
	{"startup*", WEB, 2},
	{"subscription*", WEB, 3},

	{"research*", RESEARCH, 4},
	{"explain*", RESEARCH, 2},
	{"how", RESEARCH, 3},
	{"compare", RESEARCH, 2},
	{"comparison*", RESEARCH, 2},
	{"history", RESEARCH, 4},
	{"summar*", RESEARCH, 3},
	{"overview", RESEARCH, 2},
	{"background", RESEARCH, 3},
	{"paper*", RESEARCH, 4},
	{"literature", RESEARCH, 5},
	{"study", RESEARCH, 3},
	{"studies", RESEARCH, 4},
	{"investigat*", RESEARCH, 2},
	{"why", RESEARCH, 1},
	{"learn", RESEARCH, 2},
	{"documentation", RESEARCH, 3},
	{"docs", RESEARCH, 2},
	{"science", RESEARCH, 3},
	{"evidence", RESEARCH, 3},
	{"trade-off*", RESEARCH, 3},
	{"pros", RESEARCH, 3},
};

static const char *const code_ends[] = {
	".c",   ".h",   ".cc",   ".cpp", ".hpp",   ".py",   ".rs",    ".go",    ".js",  ".ts",
	".tsx", ".jsx", ".java", ".rb",  ".sh",    ".pl",   ".php",   ".swift", ".kt",  ".hs",
	".zig", ".lua", ".sql",  ".mk",  ".cmake", ".toml", ".patch", ".diff",  ".yml", ".yaml",
};
static const char *const data_ends[] = {".csv", ".tsv", ".xlsx", ".xls", ".pdf", ".parquet"};
static const char *const web_ends[] = {".com", ".org", ".net", ".io", ".ai",   ".dev", ".app",
				       ".de",  ".uk",  ".eu",  ".co", ".shop", ".html"};

static bool ends_in(const char *w, const char *const *ends, size_t n)
{
	size_t len = strlen(w);

	for (size_t i = 0; i < n; i++) {
		size_t e = strlen(ends[i]);

		if (len > e && strcmp(w + len - e, ends[i]) == 0)
			return true;
	}
	return false;
}

/* Scores from the form of a token (URL, domain, file, identifier), not its meaning. */
static void by_shape(const char *w, int score[NROLES])
{
	if (strncmp(w, "http://", 7) == 0 || strncmp(w, "https://", 8) == 0 ||
	    strncmp(w, "www.", 4) == 0) {
		score[WEB] += 5;
		return;
	}
	if (ends_in(w, code_ends, ARRAY_LEN(code_ends)))
		score[CODE] += 6;
	else if (ends_in(w, data_ends, ARRAY_LEN(data_ends)))
		score[DATA] += 5;
	else if (ends_in(w, web_ends, ARRAY_LEN(web_ends)))
		score[WEB] += 5;
	else if (strchr(w, '_') != NULL || strstr(w, "::") != NULL || strstr(w, "->") != NULL)
		score[CODE] += 4;
	else if (strchr(w, '/') != NULL && strncmp(w, "and/or", 6) != 0)
		score[CODE] += 2;
}

static void by_word(const char *w, int score[NROLES])
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i].word);
		bool open = words[i].word[n - 1] == '*';

		if (open ? strncmp(w, words[i].word, n - 1) == 0 : strcmp(w, words[i].word) == 0) {
			score[words[i].role] += words[i].weight;
			return; /* the first row that fits: "reviews" is listed for "review*" */
		}
	}
}

static bool part_of_word(char c)
{
	return isalnum((unsigned char)c) || strchr("_./:->#+", c) != NULL;
}

/* Next token in lower case without punctuation at its ends; false at the end. */
static bool classify_next_word(const char *s, size_t len, size_t *at, char w[WORD_MAX])
{
	size_t n = 0;

	while (*at < len && (s[*at] == 0 || !part_of_word(s[*at])))
		++*at;
	for (; *at < len && s[*at] != 0 && part_of_word(s[*at]); ++*at)
		if (n < WORD_MAX - 1)
			w[n++] = (char)tolower((unsigned char)s[*at]);
	while (n > 0 && strchr(".:-/", w[n - 1]) != NULL)
		n--;
	w[n] = 0;
	if (*at + 1 < len && s[*at] == '(' && s[*at + 1] == ')' && n < WORD_MAX - 1) {
		w[n] = '_'; /* "main()" is an identifier */
		w[n + 1] = 0;
	}
	return n > 0 || *at < len;
}

const char *classify_role(const char *task, size_t len)
{
	int score[NROLES] = {0}, best = 0;
	char w[WORD_MAX];
	size_t at = 0;

	len = MIN(len, (size_t)TASK_MAX);
	while (classify_next_word(task, len, &at, w)) {
		by_shape(w, score);
		by_word(w, score);
	}
	for (int r = 1; r < NROLES; r++)
		if (score[r] > score[best])
			best = r;
	return names[score[best] > 0 ? best : RESEARCH];
}
