/* Differences by the algorithm of Myers ("An O(ND) difference algorithm", 1986) over lines, with
 * a bound: when more than EDITS_MAX lines differ the lines from the first to the last difference
 * are exchanged as a whole, which is correct and only longer.
 *
 * A line includes its newline, so a last line without one differs.
 *
 * What can fail: memory, and the text of a patch that was changed by hand. */
#include "codec/patch.h"

#include <ava.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/util.h"
#include "codec/utf8.h"

#define CONTEXT   3
#define EDITS_MAX 1500
#define NO_ID     "0000000000000000000000000000000000000000"

static const char no_newline[] = "\\ No newline at end of file\n";

/* ---- text that a patch may hold */

const char *patch_unfit(const char *data, size_t len)
{
	size_t lines = 0;

	if (len == 0)
		return NULL;
	if (len > PATCH_FILE_MAX)
		return "too large for a patch";
	if (memchr(data, '\0', len) || !utf8_valid(data, len))
		return "binary, or not UTF-8";
	for (const char *end = data + len, *p = data; (p = memchr(p, '\n', (size_t)(end - p))); p++)
		lines++;
	return lines < PATCH_LINES_MAX ? NULL : "of too many lines for a patch";
}

bool patch_path_ok(const char *path)
{
	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '"' || *p == '\\')
			return false;
	for (const char *at = path;; at++) {
		size_t n = strcspn(at, "/");

		if (n == 0 || (n <= 2 && strncmp(at, "..", n) == 0))
			return false;
		at += n;
		if (!*at)
			return utf8_valid(path, strlen(path));
	}
}

const char *patch_protected(const char *path)
{
	static const char *const names[] = {
		".git",     ".gitmodules", ".gitconfig", ".bashrc", ".bash_profile",
		".profile", ".zshrc",      ".zprofile",  ".zshenv", ".ripgreprc",
		".vscode",  ".idea",       ".claude",    ".codex",  ".mcp.json",
	};
	static const char env[] = ".env"; /* beginning of .env, .envrc, .env.local */

	while (*path) {
		size_t n = strcspn(path, "/");

		/* Some file systems ignore case. */
		if (strncasecmp(path, env, sizeof(env) - 1) == 0)
			return ".env*";
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			if (strlen(names[i]) == n && strncasecmp(path, names[i], n) == 0)
				return names[i];
		path += n + (path[n] == '/');
	}
	return NULL;
}

bool patch_obeyed(const char *path)
{
	static const char *const names[] = {
		"agents*.md",      "agent.md",         "claude*.md",
		"gemini*.md",      "qwen*.md",         "codex.md",
		"skill.md",        "conventions.md",   "copilot-instructions.md",
		"*.mdc",           "opencode.json*",   "crush.json",
		"*mcp.json",       "*.code-workspace", "gemini-extension.json",
		"warp.md",         "mise*.toml",       "sitecustomize.py",
		"usercustomize.py"};
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	if (path[0] == '.' || strstr(path, "/."))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (fnmatch(names[i], name, FNM_CASEFOLD) == 0)
			return true;
	return false;
}

/* ---- lines */

/* The end of the line at `at`, behind its newline. */
static const char *patch_next(const char *at, const char *end)
{
	const char *nl = memchr(at, '\n', (size_t)(end - at));

	return nl ? nl + 1 : end;
}

struct patch_lines {
	const char **v; /* where each line begins, and where the last one ends; owned */
	size_t n;
};

/* false: out of memory. */
static bool patch_lines_init(struct patch_lines *l, const char *data, size_t len)
{
	const char *at = data ? data : "", *end = at + len;

	l->n = 0;
	for (const char *p = at; p < end; p = patch_next(p, end))
		l->n++;
	l->v = calloc(l->n + 1, sizeof(*l->v));
	for (size_t i = 0; l->v && i <= l->n; i++, at = patch_next(at, end))
		l->v[i] = at;
	return l->v != NULL;
}

static bool patch_same(const char *const *a, const char *const *b)
{
	return a[1] - a[0] == b[1] - b[0] && memcmp(a[0], b[0], (size_t)(a[1] - a[0])) == 0;
}

/* ---- removed and added lines */

struct edits {
	struct patch_lines a, b;
	/* gone: lines of a to remove; come: lines of b to add; behind the last one is false */
	bool *gone, *come;
};

/* Row d of the trace: the reach of each of its d + 1 diagonals. */
static int32_t *row(int32_t *trace, int d)
{
	return trace + (size_t)d * ((size_t)d + 1) / 2;
}

/* Does the path to diagonal k, with d edits, come from the one above it (a line of b is added)? */
static bool from_above(const int32_t *before, int d, int k)
{
	int i = (k + d) / 2; /* index in the row before: i - 1 for k - 1, i for k + 1 */

	return k == -d || (k != d && before[i - 1] < before[i]);
}

static void walk_back(struct edits *e, size_t first, int32_t *trace, int d, int x, int y)
{
	for (; d > 0; d--) {
		const int32_t *before = row(trace, d - 1);
		int k = x - y, i = (k + d) / 2;

		if (from_above(before, d, k)) {
			x = before[i];
			y = x - (k + 1);
			e->come[first + (size_t)y] = true;
		} else {
			x = before[i - 1];
			y = x - (k - 1);
			e->gone[first + (size_t)x] = true;
		}
	}
}

/* Compare the n and m lines from `first` on, whose first and last lines differ. AVA_ENOMEM. */
static int find_edits(struct edits *e, size_t first, int n, int m)
{
	const char *const *a = e->a.v + first, *const *b = e->b.v + first;
	int most = MIN(n + m, EDITS_MAX);
	int32_t *trace = malloc(((size_t)most + 1) * ((size_t)most + 2) / 2 * sizeof(*trace));

	if (!trace)
		return AVA_ENOMEM;
	for (int d = 0; d <= most; d++) {
		const int32_t *before = d > 0 ? row(trace, d - 1) : NULL;
		int32_t *now = row(trace, d);

		for (int k = -d; k <= d; k += 2) {
			int i = (k + d) / 2, x = 0, y;

			if (d > 0)
				x = from_above(before, d, k) ? before[i] : before[i - 1] + 1;
			y = x - k;
			while (x < n && y < m && patch_same(&a[x], &b[y])) {
				x++;
				y++;
			}
			now[i] = x;
			if (x == n && y == m) {
				walk_back(e, first, trace, d, x, y);
				free(trace);
				return 0;
			}
		}
	}
	free(trace);
	memset(e->gone + first, true, (size_t)n);
	memset(e->come + first, true, (size_t)m);
	return 0;
}

static int edits_find(struct edits *e, const struct patch_side *old, const struct patch_side *now)
{
	size_t first = 0, n, m;

	if (!patch_lines_init(&e->a, old->data, old->len) ||
	    !patch_lines_init(&e->b, now->data, now->len))
		return AVA_ENOMEM;
	n = e->a.n;
	m = e->b.n;
	e->gone = calloc(n + 1, sizeof(bool));
	e->come = calloc(m + 1, sizeof(bool));
	if (!e->gone || !e->come)
		return AVA_ENOMEM;
	while (first < n && first < m && patch_same(&e->a.v[first], &e->b.v[first]))
		first++;
	while (n > first && m > first && patch_same(&e->a.v[n - 1], &e->b.v[m - 1])) {
		n--;
		m--;
	}
	return n > first || m > first ? find_edits(e, first, (int)(n - first), (int)(m - first))
				      : 0;
}

/* ---- writing */

static void patch_add_line(struct buf *out, char mark, const char *const *l)
{
	buf_addc(out, mark);
	buf_add(out, l[0], (size_t)(l[1] - l[0]));
	if (l[1][-1] != '\n') {
		buf_addc(out, '\n');
		buf_adds(out, no_newline);
	}
}

static void add_hunk(struct buf *out, const struct edits *e, size_t a, size_t a_end, size_t b,
		     size_t b_end)
{
	buf_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", a + (a_end > a), a_end - a, b + (b_end > b),
		 b_end - b);
	while (a < a_end || b < b_end) {
		if (e->gone[a]) {
			patch_add_line(out, '-', &e->a.v[a++]);
		} else if (e->come[b]) {
			patch_add_line(out, '+', &e->b.v[b++]);
		} else {
			patch_add_line(out, ' ', &e->a.v[a++]);
			b++;
		}
	}
}

static size_t unchanged(const struct edits *e, size_t a, size_t b)
{
	size_t n = 0;

	while (a + n < e->a.n && b + n < e->b.n && !e->gone[a + n] && !e->come[b + n])
		n++;
	return n;
}

static void add_hunks(struct buf *out, const struct edits *e)
{
	size_t a = 0, b = 0, n;

	while (n = unchanged(e, a, b), a + n < e->a.n || b + n < e->b.n) {
		size_t before = MIN(n, CONTEXT), from_a = a + n - before, from_b = b + n - before;

		/* It ends where the gap to the next change is large enough. */
		do {
			for (a += n; e->gone[a]; a++)
				;
			for (b += n; e->come[b]; b++)
				;
			n = unchanged(e, a, b);
		} while (n <= (size_t)(2 * CONTEXT) && (a + n < e->a.n || b + n < e->b.n));
		add_hunk(out, e, from_a, a + MIN(n, CONTEXT), from_b, b + MIN(n, CONTEXT));
	}
}

static const char *patch_mode_of(const struct patch_side *s)
{
	return s->exec ? "100755" : "100644";
}

static void add_head(struct buf *out, const char *path, const struct patch_side *old,
		     const struct patch_side *now)
{
	char was[PATCH_ID_LEN + 1] = NO_ID, will[PATCH_ID_LEN + 1] = NO_ID;
	const char *tab = strchr(path, ' ') ? "\t" : ""; /* git ends names with blanks so */
	bool same_mode = old->there && now->there && old->exec == now->exec;

	if (old->there)
		hash_git_blob(old->data, old->len, was);
	if (now->there)
		hash_git_blob(now->data, now->len, will);
	buf_addf(out, "diff --git a/%s b/%s\n", path, path);
	if (!old->there)
		buf_addf(out, "new file mode %s\n", patch_mode_of(now));
	else if (!now->there)
		buf_addf(out, "deleted file mode %s\n", patch_mode_of(old));
	else if (!same_mode)
		buf_addf(out, "old mode %s\nnew mode %s\n", patch_mode_of(old), patch_mode_of(now));
	if (strcmp(was, will) == 0)
		return;
	buf_addf(out, "index %s..%s%s%s\n", was, will, same_mode ? " " : "",
		 same_mode ? patch_mode_of(now) : "");
	if (old->len == 0 && now->len == 0)
		return; /* an empty file is added or removed */
	buf_addf(out, "--- %s%s%s\n", old->there ? "a/" : "/dev/null", old->there ? path : "",
		 old->there ? tab : "");
	buf_addf(out, "+++ %s%s%s\n", now->there ? "b/" : "/dev/null", now->there ? path : "",
		 now->there ? tab : "");
}

int patch_add(struct buf *out, const char *path, const struct patch_side *old,
	      const struct patch_side *now)
{
	struct edits e = {.gone = NULL};
	int rv;

	if (old->there == now->there && old->exec == now->exec && old->len == now->len &&
	    (old->len == 0 || memcmp(old->data, now->data, old->len) == 0))
		return 0;
	rv = edits_find(&e, old, now);
	if (rv == 0) {
		add_head(out, path, old, now);
		add_hunks(out, &e);
		rv = buf_check(out);
	}
	free(e.a.v);
	free(e.b.v);
	free(e.gone);
	free(e.come);
	return rv == 0 ? 1 : rv;
}

/* ---- reading */

struct patch_reader {
	char *at, *end;
};

/* The rest of the next line behind `word`, without its newline; NULL: it begins otherwise. */
static char *after(const struct patch_reader *r, const char *word, size_t *len)
{
	size_t n = strlen(word);
	char *nl = memchr(r->at, '\n', (size_t)(r->end - r->at));

	if (!nl || (size_t)(nl - r->at) < n || memcmp(r->at, word, n) != 0)
		return NULL;
	*len = (size_t)(nl - r->at) - n;
	return r->at + n;
}

static void patch_next_line(struct patch_reader *r)
{
	r->at += patch_next(r->at, r->end) - r->at;
}

/* "a/PATH b/PATH" with equal paths: the length tells where the second begins. */
static bool read_name(struct patch_file *f, char *s, size_t len)
{
	size_t n = len >= 7 ? (len - 5) / 2 : 0;

	if (n == 0 || n * 2 + 5 != len || memcmp(s, "a/", 2) != 0 ||
	    memcmp(s + 2 + n, " b/", 3) != 0 || memcmp(s + 2, s + 5 + n, n) != 0)
		return false;
	s[2 + n] = '\0';
	f->path = s + 2;
	return patch_path_ok(f->path);
}

static bool read_ids(struct patch_file *f, const char *s, size_t len)
{
	if (len < 2 * PATCH_ID_LEN + 2 || memcmp(s + PATCH_ID_LEN, "..", 2) != 0)
		return false;
	memcpy(f->was, s, PATCH_ID_LEN);
	memcpy(f->will, s + PATCH_ID_LEN + 2, PATCH_ID_LEN);
	return true;
}

/* The lines between a file's name and its first hunk. */
static bool patch_read_head(struct patch_reader *r, struct patch_file *f)
{
	size_t n;
	char *s;

	for (;; patch_next_line(r)) {
		if ((s = after(r, "new file mode 100", &n)) != NULL)
			f->is_new = true;
		else if ((s = after(r, "deleted file mode 100", &n)) != NULL)
			f->is_gone = true;
		else if ((s = after(r, "new mode 100", &n)) != NULL)
			f->chmod = true;
		if (s)
			f->exec = !f->is_gone && n == 3 && memcmp(s, "755", 3) == 0;
		else if ((s = after(r, "index ", &n)) != NULL && !read_ids(f, s, n))
			return false;
		if (!s && !after(r, "old mode 100", &n) && !after(r, "--- ", &n) &&
		    !after(r, "+++ ", &n))
			return !(f->is_new && f->is_gone);
	}
}

struct hunk {
	size_t at[2], lines[2]; /* place and number of lines: [0] in the old file, [1] in the new */
	const char *body, *end;
};

/* Numbers of "@@ -1,2 +3,4 @@". */
static bool patch_read_numbers(const char *s, const char *end, struct hunk *h)
{
	char text[100];
	int n = 0;

	snprintf(text, sizeof(text), "%.*s", (int)MIN(end - s, 99), s);
	if (sscanf(text, "@@ -%zu,%zu +%zu,%zu @@%n", &h->at[0], &h->lines[0], &h->at[1],
		   &h->lines[1], &n) != 4 ||
	    n == 0)
		return false;
	for (int i = 0; i < 2; i++)
		if (h->lines[i] > PATCH_LINES_MAX || h->at[i] > PATCH_LINES_MAX ||
		    (h->lines[i] > 0 && h->at[i] == 0))
			return false;
	return true;
}

/* Read the hunk at *at, which moves behind it; false: malformed. */
static bool hunk_read(const char **at, const char *end, struct hunk *h, size_t *added,
		      size_t *removed)
{
	size_t left[2];
	const char *nl = memchr(*at, '\n', (size_t)(end - *at));

	if (!nl || !patch_read_numbers(*at, nl, h))
		return false;
	left[0] = h->lines[0];
	left[1] = h->lines[1];
	h->body = *at = nl + 1;
	while (left[0] > 0 || left[1] > 0 || (*at < end && **at == '\\')) {
		char mark = *at < end ? **at : '\0';

		nl = mark ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
		if (!nl || !strchr(" +-\\", mark) || (strchr(" -", mark) && left[0] == 0) ||
		    (strchr(" +", mark) && left[1] == 0) || (mark == '\\' && *at == h->body))
			return false;
		left[0] -= mark == ' ' || mark == '-';
		left[1] -= mark == ' ' || mark == '+';
		*added += mark == '+';
		*removed += mark == '-';
		*at = nl + 1;
	}
	h->end = *at;
	return true;
}

static bool read_hunks(struct patch_reader *r, struct patch_file *f)
{
	struct hunk h;
	bool good = true;

	f->hunks = f->end = r->at;
	while (good && f->end < r->end && *f->end == '@')
		good = hunk_read(&f->end, r->end, &h, &f->added, &f->removed);
	r->at += f->end - r->at;
	return good;
}

int patch_read(struct patch *p, const char *text, size_t len, struct ava_error *err)
{
	struct patch_reader r;
	size_t line = 1, n;
	bool good = true;

	*p = (struct patch){.text = malloc(len + 1)};
	if (!p->text)
		return err_set(err, AVA_ENOMEM, "out of memory");
	memcpy(p->text, text, len);
	p->text[len] = '\0';
	r = (struct patch_reader){p->text, p->text + len};
	while (good && r.at < r.end) {
		struct patch_file f = {.was = NO_ID, .will = NO_ID};
		char *s = after(&r, "diff --git ", &n);

		if (!s) { /* a line between the files is for people */
			good = *r.at != '@' && *r.at != '+' && *r.at != '-';
		} else {
			good = p->n < PATCH_FILES_MAX && read_name(&f, s, n);
		}
		if (good)
			patch_next_line(&r);
		if (!good || !s)
			continue;
		good = patch_read_head(&r, &f) && read_hunks(&r, &f);
		if (good && !ARRAY_ROOM(p->files, p->cap, p->n + 1)) {
			patch_fini(p);
			return err_set(err, AVA_ENOMEM, "out of memory");
		}
		if (good)
			p->files[p->n++] = f;
	}
	if (good)
		return 0;
	for (const char *s = p->text; s < r.at; s++)
		line += *s == '\n';
	patch_fini(p);
	return err_set(err, AVA_ECORRUPT, "line %zu is none of a patch that ava made", line);
}

void patch_fini(struct patch *p)
{
	free(p->text);
	free(p->files);
	*p = (struct patch){.text = NULL};
}

/* ---- trying a patch on a file */

/* Append one side of a hunk: `mark` '-' or '+', and unchanged lines. */
static void add_side(struct buf *out, const struct hunk *h, char mark)
{
	bool in = false;

	for (const char *at = h->body, *next; at < h->end; at = next) {
		next = patch_next(at, h->end);
		if (*at == '\\' && in &&
		    out->len > 0) { /* the line before ends without a newline */
			out->data[--out->len] = '\0';
		} else if (*at != '\\') {
			in = *at == ' ' || *at == mark;
			if (in)
				buf_add(out, at + 1, (size_t)(next - at) - 1);
		}
	}
}

/* The beginning of a line, and how many lines are before it. */
struct patch_place {
	const char *at;
	size_t line;
};

/* Find the lines `want`, not before *p: at line `wished`, else at the only place, to which *p
 * moves. Returns the number of places, 2 for several. */
static int patch_find(struct patch_place *p, const char *end, size_t wished, const struct buf *want)
{
	int found = 0;

	if (want->len == 0) /* the file was empty */
		return p->line == 0 && p->at == end;
	for (struct patch_place t = *p; t.at < end && (found < 2 || t.line <= wished); t.line++) {
		size_t rest = (size_t)(end - t.at);

		if (want->len <= rest && memcmp(t.at, want->data, want->len) == 0 &&
		    (want->len == rest || want->data[want->len - 1] == '\n')) {
			*p = t;
			found++;
			if (t.line == wished)
				return 1;
		}
		t.at = patch_next(t.at, end);
	}
	return found;
}

/* All hunks in their order, from '-' to '+', or `back`. 0: done; 1: `why`; AVA_ENOMEM. */
static int run_hunks(const struct patch_file *f, const struct patch_side *now, bool back,
		     struct buf *out, struct patch_clash *why)
{
	struct patch_place done = {now->data ? now->data : "", 0};
	const char *end = done.at + now->len, *at = f->hunks;
	size_t ignored = 0, i = 1;
	ptrdiff_t shift = 0;
	struct buf want;
	struct hunk h;
	int found = 1, rv;

	buf_init(&want, PATCH_MAX);
	for (; at < f->end && hunk_read(&at, f->end, &h, &ignored, &ignored); i++) {
		struct patch_place place = done;
		ptrdiff_t wished = (ptrdiff_t)(h.at[back] - (h.lines[back] > 0)) + shift;

		buf_reset(&want);
		add_side(&want, &h, "-+"[back]);
		found = patch_find(&place, end, wished > 0 ? (size_t)wished : 0, &want);
		if (found != 1 || buf_check(&want) != 0)
			break;
		buf_add(out, done.at, (size_t)(place.at - done.at));
		add_side(out, &h, "+-"[back]);
		shift += (ptrdiff_t)place.line - wished;
		done = (struct patch_place){place.at + want.len, place.line + h.lines[back]};
	}
	buf_add(out, done.at, (size_t)(end - done.at));
	if (found != 1)
		*why = (struct patch_clash){i, h.at[back],
					    found == 0 ? "its lines are not there any more"
						       : "its lines stand at several places"};
	rv = buf_check(&want);
	buf_fini(&want);
	if (rv != 0)
		return rv;
	return found != 1 ? 1 : buf_check(out);
}

/* Try the hunks on a file, or on none; `same`: it is as the patch found it. */
static int try_hunks(const struct patch_file *f, const struct patch_side *now, bool same,
		     struct buf *out, struct patch_clash *why)
{
	struct patch_clash ignored;
	struct buf before;
	char id[PATCH_ID_LEN + 1];
	int there = run_hunks(f, now, false, out, why), back;

	if (there >= 0 && same) {
		hash_git_blob(out->data, out->len, id);
		if (there == 0 && strcmp(id, f->will) == 0)
			return PATCH_FITS;
		why->what = "is not what the patch says: the patch is damaged";
		why->hunk = why->line = 0;
		return PATCH_CLASHES;
	}
	buf_init(&before, out->max);
	back = there < 0 ? there : run_hunks(f, now, true, &before, &ignored);
	buf_fini(&before);
	if (back < 0)
		return back;
	if (there != 0)
		return back == 0 ? PATCH_DONE : PATCH_CLASHES;
	if (back != 0)
		return PATCH_FITS;
	why->what = "has changed, and it cannot be told whether this is in it";
	return PATCH_CLASHES;
}

static int try_content(const struct patch_file *f, const struct patch_side *now, struct buf *out,
		       struct patch_clash *why)
{
	char id[PATCH_ID_LEN + 1] = NO_ID;

	if (now->there)
		hash_git_blob(now->data, now->len, id);
	if (f->is_gone && strcmp(id, f->was) == 0)
		return PATCH_FITS;
	if (strcmp(id, f->will) == 0 || (!f->is_new && !f->is_gone && f->hunks == f->end))
		return PATCH_DONE;
	if (strcmp(id, f->was) == 0)
		return try_hunks(f, now, true, out, why);
	if (f->is_new)
		why->what = "is there already, with other content";
	else if (f->is_gone)
		why->what = "has changed, and would be deleted";
	else if (!now->there)
		why->what = "is not there any more";
	else if (patch_unfit(now->data, now->len))
		why->what = "is no text any more, or too large";
	else
		return try_hunks(f, now, false, out, why);
	return PATCH_CLASHES;
}

int patch_try(const struct patch_file *f, const struct patch_side *now, struct buf *out,
	      struct patch_clash *why)
{
	int rv;

	*why = (struct patch_clash){0};
	buf_reset(out);
	if (!now->there && f->chmod) {
		why->what = "is not there any more";
		return PATCH_CLASHES;
	}
	rv = try_content(f, now, out, why);
	if (rv != PATCH_DONE || !f->chmod || now->exec == f->exec)
		return rv;
	buf_reset(out); /* the patch changes only the mode */
	rv = buf_add(out, now->data, now->len);
	return rv == 0 ? PATCH_FITS : rv;
}
