/* ava logs verify: do the logs hold what was sealed? ava logs head: the newest
 * seal, to be kept where nobody who can write the logs can write. Both read
 * files; no daemon is needed. 0: all is as it was sealed; 1: it is not, and
 * each place is named; 5: there is no such log. */
#include "cli/cmd_verify.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "cli/cli.h"
#include "cli/root.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"
#include "journal/read.h"

#define HEAD_MAX (64u << 10)

static struct {
	bool json;
	const char *head;
} o;

static const struct opt opts[] = {
	{.name = "head",
	 .type = OPT_STR,
	 .value = "FILE",
	 .help = "compare with what `ava logs head` printed then",
	 .field = offsetof(__typeof__(o), head)},
	{.name = "json",
	 .type = OPT_FLAG,
	 .help = "as one JSON object",
	 .field = offsetof(__typeof__(o), json)},
};

struct view {
	json_t *findings; /* NULL: they are printed */
	bool progress;    /* a line of it stands on the terminal */
};

static const char *const kinds[] = {
	[AVA_BROKEN] = "broken", [AVA_UNSEALED] = "unsealed", [AVA_NOTE] = "note"};

static void clear_progress(struct view *v)
{
	if (v->progress)
		fputs("\r\033[K", stderr);
	v->progress = false;
}

static void print_finding(const struct ava_finding *f, void *user)
{
	struct view *v = user;

	clear_progress(v);
	if (v->findings != NULL) {
		json_array_append_new(v->findings,
				      json_pack("{s:s,s:s,s:I,s:I,s:s}", "kind", kinds[f->kind],
						"path", f->path, "line", (json_int_t)f->line,
						"offset", (json_int_t)f->offset, "what", f->what));
		return;
	}
	term_colour(stdout, f->kind == AVA_BROKEN ? TERM_RED : TERM_DIM);
	printf("%-8s ", kinds[f->kind]);
	term_colour(stdout, TERM_PLAIN);
	term_str(stdout, f->path);
	if (f->line > 0)
		printf(":%llu", (unsigned long long)f->line);
	if (f->line > 0 || f->offset > 0)
		printf(" (byte %llu)", (unsigned long long)f->offset);
	fputs(": ", stdout);
	term_str(stdout, f->what);
	putchar('\n');
}

static void print_progress(uint64_t done, uint64_t total, void *user)
{
	struct view *v = user;

	fprintf(stderr, "\rverifying: %llu of %llu MB ", (unsigned long long)(done >> 20),
		(unsigned long long)(total >> 20));
	fflush(stderr);
	v->progress = true;
}

static json_t *head_json(const struct ava_log_head *h)
{
	return json_pack("{s:I,s:s,s:s,s:s}", "n", (json_int_t)h->n, "at", h->at, "hash", h->hash,
			 "key", h->key);
}

static void print_report(struct view *v, const struct ava_verified *r)
{
	clear_progress(v);
	if (o.json) {
		json_t *all =
			json_pack("{s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:O}", "ok", r->broken == 0,
				  "files", (json_int_t)r->files, "bytes", (json_int_t)r->bytes,
				  "seals", (json_int_t)r->seals, "broken", (json_int_t)r->broken,
				  "unsealedFiles", (json_int_t)r->unsealed_files, "unsealedBytes",
				  (json_int_t)r->unsealed_bytes, "newest",
				  r->newest.n > 0 ? head_json(&r->newest) : json_null(), "findings",
				  v->findings);

		show_json(stdout, all);
		json_decref(all);
		return;
	}
	printf("%llu files, %llu bytes, %llu seals", (unsigned long long)r->files,
	       (unsigned long long)r->bytes, (unsigned long long)r->seals);
	if (r->newest.n > 0)
		printf(" (newest: %llu, %s)", (unsigned long long)r->newest.n, r->newest.at);
	if (r->broken > 0)
		printf(": %llu findings\n", (unsigned long long)r->broken);
	else
		printf(": %s\n", r->seals > 0 ? "all is as it was sealed" : "nothing is sealed");
}

static int read_head(const char *path, struct ava_log_head *h, struct ava_error *err)
{
	const char *hash, *key;
	char *text = NULL;
	json_t *doc = NULL;
	size_t len;
	int rv = sys_read_file(AT_FDCWD, path, HEAD_MAX, &text, &len, err);

	if (rv != 0)
		return err_wrap(err, rv, "%s", path);
	doc = json_parse(text, len, NULL);
	hash = json_get_str(doc, "hash");
	key = json_get_str(doc, "key");
	h->n = (uint64_t)json_get_int(doc, "n", 0);
	if (hash == NULL || key == NULL || h->n == 0 || strlen(hash) >= sizeof(h->hash) ||
	    strlen(key) >= sizeof(h->key)) {
		rv = err_set(err, AVA_EINVAL, "%s is not what `ava logs head` prints", path);
	} else {
		snprintf(h->hash, sizeof(h->hash), "%s", hash);
		snprintf(h->key, sizeof(h->key), "%s", key);
	}
	json_decref(doc);
	free(text);
	return rv;
}

/* As given: below the root, absolute, or below here; the id of a run. */
static const char *below_root(const char *root, const char *path, char *out, size_t size)
{
	char full[ROOT_PATH_MAX], base[ROOT_PATH_MAX];
	size_t len;

	if (realpath(root, base) == NULL || realpath(path, full) == NULL)
		return path;
	len = strlen(base);
	if (strncmp(full, base, len) != 0 || full[len] != '/')
		return path;
	snprintf(out, size, "%s", full + len + 1);
	return out;
}

static int verify_words(int argc, char **argv)
{
	struct view view = {.findings = o.json ? json_array() : NULL};
	struct ava_verify options = {.finding = print_finding, .user = &view};
	const char *paths[OPT_LIST_MAX];
	char root[ROOT_PATH_MAX], (*names)[ROOT_PATH_MAX] = NULL;
	struct ava_log_head head = {0};
	struct ava_verified report;
	struct ava_error err;
	int rv = root_prepare(root, &err);

	names = calloc((size_t)argc + 1, sizeof(*names));
	if (rv == 0 && (names == NULL || (o.json && view.findings == NULL)))
		rv = err_set(&err, AVA_ENOMEM, "out of memory");
	if (rv == 0 && o.head != NULL)
		rv = read_head(o.head, &head, &err);
	for (int i = 0; rv == 0 && i < argc; i++)
		paths[i] = below_root(root, argv[i], names[i], sizeof(names[i]));
	options.root = root;
	options.paths = paths;
	options.npaths = (size_t)argc;
	options.head = o.head != NULL ? &head : NULL;
	options.progress = isatty(STDERR_FILENO) ? print_progress : NULL;
	if (rv == 0)
		rv = ava_log_verify(&options, &report, &err);
	if (rv == 0)
		print_report(&view, &report);
	json_decref(view.findings);
	free(names);
	if (rv != 0)
		return cli_fail(&err);
	return report.broken > 0 ? CLI_FAILED : CLI_DONE;
}

static const struct command verify_word = {
	.name = "logs verify",
	.args = "[PATH...]",
	.max_args = OPT_LIST_MAX,
	.summary = "compare the logs with what was sealed",
	.detail = "Names every file and line that is not as it was sealed, and tells apart what\n"
		  "is not sealed yet. What it proves, and what not: doc/SEALS.md.\n",
	.opts = opts,
	.nopts = ARRAY_LEN(opts),
	.values = &o,
	.run = verify_words,
};

static int head_words(int argc, char **argv)
{
	struct ava_log_head seal;
	char root[ROOT_PATH_MAX];
	struct ava_error err;
	struct buf line;
	json_t *head;
	int rv = root_prepare(root, &err);

	(void)argc;
	(void)argv;
	if (rv == 0)
		rv = ava_log_head(root, &seal, &err);
	if (rv != 0)
		return cli_fail(&err);
	buf_init(&line, HEAD_MAX);
	head = head_json(&seal);
	if (head == NULL || json_dump(&line, head) != 0)
		rv = cli_error(CLI_FAILED, "out of memory");
	else
		puts(line.data);
	json_decref(head);
	buf_fini(&line);
	return rv == 0 ? CLI_DONE : rv;
}

static const struct command head_word = {
	.name = "logs head",
	.args = "",
	.summary = "print the newest seal, to be kept elsewhere",
	.detail = "Keep its output on another machine; `ava logs verify --head FILE` then shows\n"
		  "whether the logs still go on from there.\n",
	.run = head_words,
};

/* ava logs reindex */
static int reindex_words(int argc, char **argv)
{
	char root[ROOT_PATH_MAX];
	uint64_t events = 0, files = 0;
	struct ava_error err;
	int rv = root_prepare(root, &err);

	(void)argc;
	(void)argv;
	if (rv == 0)
		rv = read_reindex(root, &events, &files, &err);
	if (rv != 0)
		return cli_fail(&err);
	printf("%llu events of %llu logs\n", (unsigned long long)events, (unsigned long long)files);
	return CLI_DONE;
}

static const struct command reindex_word = {
	.name = "logs reindex",
	.args = "",
	.summary = "make the index of the logs anew",
	.detail = "Questions trust the index; what was changed in a log by hand is seen after "
		  "this.\n",
	.run = reindex_words,
};

const struct command *logs_word(const char *word)
{
	if (strcmp(word, "verify") == 0)
		return &verify_word;
	if (strcmp(word, "reindex") == 0)
		return &reindex_word;
	return strcmp(word, "head") == 0 ? &head_word : NULL;
}
