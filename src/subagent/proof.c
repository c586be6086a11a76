/* The check of a run: what a request may ask for, what a person reads of it before and after, and
 * which of the files that it runs the run has changed.
 *
 * Files are told too often rather than too seldom: one that the command names, wherever it lies,
 * and those that a well-known runner reads (a Makefile for make, tests for all of them). What those
 * read in turn is not known, and no check shows more than that its command ended with 0.
 *
 * What can fail: memory, which leaves a file or a line out, and the request. */
#include "subagent/proof.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "base/words.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define COMMAND_MAX 1000 /* bytes; all of it is shown in the quote */
#define TAIL_MAX    1500 /* bytes of the last lines in result.json */
#define EDITED_MAX  20   /* files that a result names */

/* ---- the outcome */

struct proof *proof_copy(const struct proof *p)
{
	size_t len = strlen(p->text) + 1;
	struct proof *own = malloc(sizeof(*own) + len);

	if (!own)
		return NULL;
	*own = *p;
	own->text = memcpy(own + 1, p->text, len);
	return own;
}

static const char *const proof_words[] = {
	[CHECK_PASSED] = "passed", [CHECK_FAILED] = "failed", [CHECK_UNABLE] = "unable"};

void proof_write_outcome(struct jw *w, const struct proof *p, const char *text)
{
	jw_str(w, "outcome", proof_words[p->how]);
	if (p->exit < 0)
		jw_null(w, "exit");
	else
		jw_int(w, "exit", p->exit);
	jw_fixed(w, "seconds", p->ms, 3);
	jw_str(w, "output", text);
}

bool proof_read(const json_t *content, struct proof *p)
{
	const char *outcome = json_str(content, "outcome");

	*p = (struct proof){
		.exit = (int)json_get_int(content, "exit", -1),
		.ms = json_get_fixed(content, "seconds", 3, 0),
		.round = (int32_t)json_get_int(content, "round", 1),
		.text = json_str(content, "output"),
	};
	for (size_t i = CHECK_PASSED; i < ARRAY_LEN(proof_words); i++)
		if (strcmp(outcome, proof_words[i]) == 0)
			p->how = (enum agent_check)i;
	return p->how != CHECK_NONE;
}

/* ---- the files that a command runs */

static const struct {
	const char *runners, *files; /* between blanks */
} known_runners[] = {
	{" make gmake ", " Makefile makefile GNUmakefile "},
	{" npm npx yarn pnpm bun node ", " package.json "},
	{" cargo ", " Cargo.toml build.rs "},
	{" go ", " go.mod "},
	{" pytest py.test tox nox python python3 ",
	 " pyproject.toml pytest.ini setup.cfg setup.py tox.ini noxfile.py conftest.py "},
	{" meson ninja ", " meson.build build.ninja "},
	{" cmake ctest ", " CMakeLists.txt "},
	{" mvn mvnw ", " pom.xml "},
	{" gradle gradlew ", " build.gradle build.gradle.kts settings.gradle "},
	{" just ", " justfile Justfile "},
	{" rake rspec bundle ", " Rakefile Gemfile .rspec "},
	{" composer phpunit ", " composer.json phpunit.xml "},
	{" mix ", " mix.exs "},
	{" git ", " .git .gitattributes .gitmodules "},
};

static bool proof_listed(const char *list, const char *word, size_t len)
{
	for (const char *at = list; len > 0 && (at = memmem(at, strlen(at), word, len)); at++)
		if (at[-1] == ' ' && at[len] == ' ')
			return true;
	return false;
}

/* Is it a test, by the habits of most languages? */
static bool proof_is_test(const char *path)
{
	static const char folders[] = " test tests spec specs __tests__ ";
	const char *name = strrchr(path, '/');

	for (const char *at = path, *end; (end = strchr(at, '/')) != NULL; at = end + 1)
		if (proof_listed(folders, at, (size_t)(end - at)))
			return true;
	name = name ? name + 1 : path;
	return strncmp(name, "test_", 5) == 0 || strstr(name, "_test.") || strstr(name, ".test.") ||
	       strstr(name, ".spec.");
}

/* The next word of a command, without "./" in front and "/" behind; 0: there is none. "a{b,c}" is
 * one word. */
static size_t proof_word(const char **at)
{
	static const char parts[] = " \t;|&()<>\"'`$=,";
	const char *open;
	size_t len;

	do {
		*at += strspn(*at, parts);
		while (strncmp(*at, "./", 2) == 0)
			*at += 2;
		len = strcspn(*at, parts);
	} while (len == 0 && **at);
	while ((*at)[len] == ',' && (open = memrchr(*at, '{', len)) != NULL &&
	       !memchr(open, '}', (size_t)(*at + len - open)))
		len += 1 + strcspn(*at + len + 1, parts);
	while (len > 1 && (*at)[len - 1] == '/')
		len--;
	return len;
}

/* "${NAME}" is none: its value is not known, and any file would fit. */
static bool proof_is_pattern(const char *command, const char *word, size_t len)
{
	if (word > command && word[-1] == '$' && memchr(word, '}', len) == word + len - 1)
		return false;
	return strcspn(word, "*?[{") < len && (word[0] != '{' || len > 2);
}

/* Does the pattern of a shell fit the path, or its end: the command may go to a folder? */
static bool proof_fits(const char *word, size_t len, const char *path)
{
	char pattern[COMMAND_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; i < len && n < COMMAND_MAX; i++) {
		const char *end = word[i] == '{' ? memchr(word + i, '}', len - i) : NULL;

		i = end ? (size_t)(end - word) : i;
		pattern[n++] = end ? '*' : word[i];
	}
	pattern[n] = '\0';
	do {
		path += *path == '/';
		if (fnmatch(pattern, path, FNM_PATHNAME | FNM_LEADING_DIR) == 0)
			return true;
	} while ((path = strchr(path, '/')) != NULL);
	return false;
}

bool proof_runs(const char *command, const char *path)
{
	const char *name = strrchr(path, '/'), *at = command, *base;
	size_t len, size = strlen(path), n;

	name = name ? name + 1 : path;
	for (; (len = proof_word(&at)) > 0; at += len) {
		/* "check.sh", "tests", and the end of a path: the command may go to a folder. */
		if (len <= size && memcmp(path, at, len) == 0 && (!path[len] || path[len] == '/'))
			return true;
		if (len < size && memcmp(path + size - len, at, len) == 0 &&
		    path[size - len - 1] == '/')
			return true;
		/* "/home/p/repo/check.sh", "$PWD/check.sh", "../check.sh" */
		if (len > size && at[len - size - 1] == '/' &&
		    memcmp(at + len - size, path, size) == 0)
			return true;
		if (proof_is_pattern(command, at, len) && proof_fits(at, len, path))
			return true;
		base = memrchr(at, '/', len);
		base = base ? base + 1 : at;
		n = (size_t)(at + len - base);
		for (size_t i = 0; i < ARRAY_LEN(known_runners); i++)
			if (proof_listed(known_runners[i].runners, base, n) &&
			    (proof_listed(known_runners[i].files, name, strlen(name)) ||
			     proof_is_test(path)))
				return true;
	}
	return false;
}

/* ---- the result */

/* The last lines of what it said, without how it ended. */
static const char *proof_tail(const struct proof *p)
{
	const char *from = strchr(p->text, '\n'), *cut;
	size_t len;

	if (!from)
		return "";
	len = strlen(++from);
	while (len > 0 && from[len - 1] == '\n')
		len--;
	if (len <= TAIL_MAX)
		return from;
	cut = memchr(from + len - TAIL_MAX, '\n', TAIL_MAX);
	from = cut ? cut + 1 : from + len - TAIL_MAX;
	while (((unsigned char)*from & 0xc0) == 0x80)
		from++;
	return from;
}

/* The paths of `changed` that the check runs; a new reference. */
static json_t *proof_edited(const char *command, const json_t *changed)
{
	json_t *list = json_array(), *path;
	size_t i;

	json_array_foreach(changed, i, path)
	{
		if (json_array_size(list) < EDITED_MAX &&
		    proof_runs(command, json_string_value(path)))
			json_array_append(list, path);
	}
	return list;
}

void proof_result(struct jw *w, const char *command, const struct proof *p, bool success,
		  const json_t *changed)
{
	const char *how = p ? p->text : "not run";
	json_t *edited, *path;
	size_t i;

	if (!command)
		return;
	jw_object(w, "check");
	jw_str(w, "command", command);
	if (!p || p->exit < 0)
		jw_null(w, "exit");
	else
		jw_int(w, "exit", p->exit);
	jw_fixed(w, "seconds", p ? p->ms : 0, 3);
	jw_int(w, "rounds", p ? p->round : 0);
	jw_strn(w, "how", how, strcspn(how, "\n"));
	jw_str(w, "tail", p ? proof_tail(p) : "");
	if (changed) {
		edited = proof_edited(command, changed);
		jw_array(w, "edited");
		json_array_foreach(edited, i, path) jw_str(w, NULL, json_string_value(path));
		jw_end(w);
		json_decref(edited);
	}
	jw_bool(w, "passed", success && p && p->how == CHECK_PASSED);
	jw_end(w);
}

void proof_caveats(const char *command, const struct proof *p, bool success, const json_t *changed,
		   json_t *caveats)
{
	json_t *edited, *path;
	size_t i;

	if (!command)
		return;
	edited = proof_edited(command, changed);
	if (!success)
		json_array_append_new(
			caveats, p ? json_sprintf(p->how == CHECK_PASSED   ? WORDS_CHECK_PASSED_THEN
						  : p->how == CHECK_FAILED ? WORDS_CHECK_FAILED
						  : p->how == CHECK_RUNS   ? WORDS_CHECK_CUT
									   : WORDS_CHECK_UNABLE,
						  (int)strcspn(p->text, "\n"), p->text)
				   : json_string(WORDS_CHECK_NOT_RUN));
	json_array_foreach(edited, i, path) json_array_append_new(
		caveats, json_sprintf(WORDS_CHECK_EDITED, json_string_value(path)));
	json_decref(edited);
}

/* ---- the request and the quote */

int proof_command(const char *command, struct ava_error *err)
{
	if (strlen(command) > COMMAND_MAX || command[strspn(command, " ")] == '\0')
		return err_set(err, AVA_EINVAL,
			       "the check must be a shell command of 1 to %d bytes", COMMAND_MAX);
	for (const char *c = command; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return err_set(err, AVA_EINVAL,
				       "the check must be one line: put more into a script of the "
				       "project and name that");
	return 0;
}

void proof_named(struct buf *out, const char *command, const char *cwd)
{
	const char *at = command;
	char path[PATH_MAX];
	unsigned n = 0;
	struct stat st;

	for (size_t len; (len = proof_word(&at)) > 0; at += len) {
		int size = snprintf(path, sizeof(path), "%s/%.*s", cwd, (int)len, at);

		if (*at == '/' || (size_t)size >= sizeof(path) ||
		    (!proof_is_pattern(command, at, len) && lstat(path, &st) != 0))
			continue;
		buf_adds(out, n++ > 0 ? ", " : WORDS_QUOTE_CHECK_RUNS);
		utf8_terminal(out, at, len, false);
	}
	if (n > 0)
		buf_adds(out, WORDS_QUOTE_CHECK_MAY);
}
