/* Commands about what is sealed: ava logs verify, head and reindex. They change nothing but the
 * index, and need no daemon but for runs that another machine of a cluster has.
 *
 * logs verify: do the logs hold what was sealed? 0: all is as it was sealed; 1: it is not,
 * and each place is named; 5: there is no such log. logs head: the newest seal, to be kept
 * where nobody who can write the logs can write. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/words.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"
#include "journal/read.h"
#include "journal/sealed.h"

static struct {
	bool json, verbose;
	const char *head, *key;
} o;

static const struct opt verify_opts[] = {
	OPT("head", 0, STR, "FILE", head, "compare with what `ava logs head` printed then"),
	OPT("key", 0, STR, "HEX", key,
	    "of a sealed record: the key that must have sealed, or a copy of seals/public"),
	OPT("verbose", 'v', FLAG, NULL, verbose, "name the files that are not sealed to their end"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

#define HEAD_MAX (64u << 10)

struct root_view {
	json_t *findings; /* NULL: findings are printed */
	bool progress;    /* a line of progress stands on the terminal */
};

static const char *const kinds[] = {
	[AVA_BROKEN] = "broken", [AVA_UNSEALED] = "unsealed", [AVA_NOTE] = "note"};

static void clear_progress(struct root_view *v)
{
	if (v->progress)
		fputs("\r\033[K", stderr);
	v->progress = false;
}

static void print_finding(const struct ava_finding *f, void *user)
{
	struct root_view *v = user;

	clear_progress(v);
	if (v->findings != NULL) {
		json_array_append_new(v->findings,
				      json_pack("{s:s,s:s,s:I,s:I,s:s}", "kind", kinds[f->kind],
						"path", f->path, "line", (json_int_t)f->line,
						"offset", (json_int_t)f->offset, "what", f->what));
		return;
	}
	if (f->kind == AVA_UNSEALED && !o.verbose)
		return; /* the last line tells their number */
	term_colour(stdout, f->kind == AVA_BROKEN ? TERM_RED : TERM_DIM);
	printf("%-8s ", kinds[f->kind]);
	term_colour(stdout, TERM_PLAIN);
	term_str(stdout, f->path);
	if (f->line > 0)
		printf(":%llu", (unsigned long long)f->line);
	if (f->line > 0 || f->offset > 0)
		printf(" (byte %llu)", (unsigned long long)f->offset);
	term_print(stdout, ": %s\n", f->what);
}

static void print_progress(uint64_t done, uint64_t total, void *user)
{
	struct root_view *v = user;

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

static void print_report(struct root_view *v, const struct ava_verified *r)
{
	int64_t at;

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
	printf("%llu file%s, %llu bytes, %llu seal%s", (unsigned long long)r->files,
	       WORDS_S(r->files), (unsigned long long)r->bytes, (unsigned long long)r->seals,
	       WORDS_S(r->seals));
	at = clock_parse_iso(r->newest.at, strlen(r->newest.at));
	if (r->newest.n > 0)
		printf(" (newest: %llu, %s %s)", (unsigned long long)r->newest.n,
		       format_date(at).text, format_clock(at).text);
	if (r->broken > 0)
		printf(": %llu finding%s", (unsigned long long)r->broken, WORDS_S(r->broken));
	else
		printf(": %s", r->seals > 0 ? "all is as it was sealed" : "nothing is sealed");
	if (r->seals > 0 && r->unsealed_files > 0)
		printf("; the newest lines of %llu file%s are not sealed yet%s",
		       (unsigned long long)r->unsealed_files, r->unsealed_files == 1 ? "" : "s",
		       o.verbose ? "" : " (-v names them)");
	putchar('\n');
}

static int root_read_head(const char *path, struct ava_log_head *h, struct ava_error *err)
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

/* The path below the root for a path given below it, absolute, or below the current folder, or for
 * a run's id. */
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

/* A run that another machine of the cluster has: its record there is fetched anew, which checks the
 * hash chained over its lines. True: so it is, and *rv says how that went. */
static bool verify_other(struct root_view *v, const char *run, uint64_t *broken, int *rv,
			 struct ava_error *err)
{
	char path[80], what[300], copy[ROOT_PATH_MAX + 80];
	struct ava_finding f = {.kind = AVA_NOTE, .path = path, .what = what};
	json_t *answer = NULL;
	struct stat st = {0};
	const char *machine;

	if (!id_is_run(run) || !root_is_shared())
		return false;
	snprintf(path, sizeof(path), "logs/subagents/%.40s.jsonl", run);
	*rv = api_request("{\"anew\":true}", &answer, err, "/runs/%.40s/fetch", run);
	machine = json_str(answer, "machine");
	snprintf(copy, sizeof(copy), "%s/%s", json_str(answer, "root"), path);
	if (*rv == 0 && machine[0] && stat(copy, &st) == 0) {
		snprintf(what, sizeof(what),
			 "of machine %.64s: its %lld bytes give the chained hash that the "
			 "cluster's database has",
			 machine, (long long)st.st_size);
		print_finding(&f, v);
	} else if (*rv == AVA_ECORRUPT) {
		f.kind = AVA_BROKEN;
		snprintf(what, sizeof(what), "%.290s", err->text);
		print_finding(&f, v);
		++*broken;
		*rv = 0;
	} else if (*rv == 0 || *rv == AVA_ENOENT) {
		json_decref(answer);
		*rv = 0;
		return false;
	}
	json_decref(answer);
	return true;
}

static int verify_root(int argc, char **argv)
{
	struct root_view view = {.findings = o.json ? json_array() : NULL};
	struct ava_verify options = {.finding = print_finding, .user = &view};
	const char *paths[OPT_LIST_MAX];
	char root[ROOT_PATH_MAX], (*names)[ROOT_PATH_MAX] = NULL;
	struct ava_log_head head = {0};
	struct ava_verified report = {0};
	struct ava_error err;
	int rv = root_prepare(root, &err);
	uint64_t broken = 0;

	names = calloc((size_t)argc + 1, sizeof(*names));
	if (rv == 0 && (names == NULL || (o.json && view.findings == NULL)))
		rv = err_set(&err, AVA_ENOMEM, "out of memory");
	if (rv == 0 && o.head != NULL)
		rv = root_read_head(o.head, &head, &err);
	for (int i = 0; rv == 0 && i < argc; i++)
		if (!verify_other(&view, argv[i], &broken, &rv, &err))
			paths[options.npaths++] =
				below_root(root, argv[i], names[i], sizeof(names[i]));
	options.root = root;
	options.paths = paths;
	options.head = o.head != NULL ? &head : NULL;
	options.progress = isatty(STDERR_FILENO) ? print_progress : NULL;
	if (rv == 0 && (argc == 0 || options.npaths > 0 || o.head != NULL))
		rv = ava_log_verify(&options, &report, &err);
	report.broken += broken;
	if (rv == 0 && (argc == 0 || options.npaths > 0 || o.json))
		print_report(&view, &report);
	json_decref(view.findings);
	free(names);
	if (rv != 0)
		return cli_fail(&err);
	return report.broken > 0 ? CLI_FAILED : CLI_DONE;
}

/* A record that `ava export --sealed` made, of whatever root. */
static int verify_record(int fd, const char *path)
{
	struct sealed_sum sum;
	struct ava_error err;
	char *keys = NULL;
	size_t len = 0;
	int rv = 0;

	if (o.key && strlen(o.key) != HASH_HEX_LEN)
		rv = sys_read_file(AT_FDCWD, o.key, HEAD_MAX, &keys, &len, &err);
	if (rv != 0)
		rv = err_wrap(&err, rv, "--key %.80s is no key (64 digits), and no file of them",
			      o.key);
	if (rv == 0)
		rv = sealed_check(fd, keys ? keys : o.key, &sum, &err);
	free(keys);
	if (rv != 0 && rv != AVA_ECORRUPT)
		return cli_fail(&err);
	if (o.json) {
		json_t *all =
			json_pack("{s:b,s:I,s:I,s:I,s:o,s:I,s:s}", "ok", rv == 0, "files",
				  (json_int_t)sum.files, "bytes", (json_int_t)sum.bytes, "seals",
				  (json_int_t)sum.seals, "newest",
				  sum.newest.n > 0 ? head_json(&sum.newest) : json_null(), "line",
				  (json_int_t)sum.line, "what", rv == 0 ? "" : err.text);

		show_json(stdout, all);
		json_decref(all);
	} else if (rv != 0) {
		term_print(stdout, "%s:%llu: %s\n", path, (unsigned long long)sum.line, err.text);
	} else {
		term_print(stdout,
			   "%s: %llu file%s, %llu seal%s (newest: %llu, %s): all is as it was "
			   "sealed, by the key %s%s\n",
			   path, (unsigned long long)sum.files, WORDS_S(sum.files),
			   (unsigned long long)sum.seals, WORDS_S(sum.seals),
			   (unsigned long long)sum.newest.n, sum.newest.at, sum.newest.key,
			   o.key ? "" : "; whose that is the record cannot say (--key)");
	}
	return rv == 0 ? CLI_DONE : CLI_FAILED;
}

/* A file that is no part of the data root is a record, in whatever state it is. */
static int verify_words(int argc, char **argv)
{
	int fd = argc == 1 ? open(argv[0], O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1, code;
	char root[ROOT_PATH_MAX], name[ROOT_PATH_MAX];
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (settings_data_root(root, sizeof(root), NULL) != 0 ||
	     below_root(root, argv[0], name, sizeof(name)) == argv[0]))
		code = verify_record(fd, argv[0]);
	else
		code = o.key ? cli_error(argc == 1 && fd < 0 ? CLI_NOSUCH : CLI_USAGE,
					 "--key is for a file of `ava export --sealed`")
			     : verify_root(argc, argv);
	if (fd >= 0)
		close(fd);
	return code;
}

static int head_words(int argc, char **argv)
{
	struct ava_log_head seal;
	char root[ROOT_PATH_MAX];
	struct ava_error err;
	json_t *head;
	int rv = root_prepare(root, &err);

	if (rv == 0)
		rv = ava_log_head(root, &seal, &err);
	if (rv != 0)
		return cli_fail(&err);
	head = head_json(&seal);
	show_json(stdout, head);
	json_decref(head);
	return CLI_DONE;
}

static int reindex_words(int argc, char **argv)
{
	char root[ROOT_PATH_MAX];
	uint64_t events = 0, files = 0;
	struct ava_error err;
	int rv = root_prepare(root, &err);

	if (rv == 0)
		rv = read_reindex(root, &events, &files, &err);
	if (rv != 0)
		return cli_fail(&err);
	printf("%llu events of %llu logs\n", (unsigned long long)events, (unsigned long long)files);
	return CLI_DONE;
}

const struct command cmd_logs_verify = COMMAND(
	"logs verify", "[PATH... | FILE]", 0, OPT_LIST_MAX, "compare the logs with what was sealed",
	"Names every file and line that is not as it was sealed, and tells apart what\n"
	"is not sealed yet. A FILE of `ava export --sealed` is checked by itself, without a data\n"
	"root. What it proves, and what not: doc/SEALS.md.\n",
	OPTIONS(verify_opts), verify_words);
const struct command cmd_logs_head =
	COMMAND("logs head", "", 0, 0, "print the newest seal, to be kept elsewhere",
		"Keep its output on another machine; `ava logs verify --head FILE` then shows\n"
		"whether the logs still go on from there.\n",
		.run = head_words);
const struct command cmd_logs_reindex =
	COMMAND("logs reindex", "", 0, 0, "make the index of the logs anew",
		"Questions trust the index; what was changed in a log by hand is seen after "
		"this.\n",
		.run = reindex_words);
