/* How `ava logs` shows events; logprint.h.
 *
 * json is the bytes of the file, whatever they are, unless a terminal would
 * have to obey them. Turning around keeps all
 * lines in memory, with a bound, since the merge runs forwards. What can
 * fail: memory, that bound, and a line whose inside is no JSON. */
#include "cli/logprint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "cli/format.h"
#include "cli/term.h"
#include "codec/json.h"

#define KEEP_MAX    ((size_t)512 << 20)
#define PROGRESS_MS 700

struct logprint_kept {
	struct ava_log_event e; /* line and file: one piece of memory, in `owned` */
	char *owned;
};

void logprint_fini(struct logprint *p)
{
	for (size_t i = 0; i < p->nkept; i++)
		free(p->kept[i].owned);
	free(p->kept);
	*p = (struct logprint){0};
}

static void put_bytes(const char *s, size_t len)
{
	static int terminal = -1; /* asked once: there may be millions of lines */

	if (terminal < 0)
		terminal = isatty(STDOUT_FILENO);
	if (terminal)
		term_bytes(stdout, s, len);
	else
		fwrite(s, 1, len, stdout);
	putchar('\n');
}

static int print_pretty(const char *line, size_t len, struct ava_error *err)
{
	json_t *v = json_parse(line, len, err);
	char *text;

	if (v == NULL)
		return AVA_ECORRUPT;
	text = json_dumps(v, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	json_decref(v);
	if (text == NULL)
		return err_set(err, AVA_ENOMEM, "no memory to show %zu bytes", len);
	put_bytes(text, strlen(text));
	free(text);
	return 0;
}

static int print(struct logprint *p, const struct ava_log_event *e, struct ava_error *err)
{
	int rv;

	if (p->form == LOGPRINT_JSON) {
		put_bytes(e->line, e->len);
		return 0;
	}
	if (p->form == LOGPRINT_TEXT)
		rv = logtext_print(&p->text, stdout, e->line, e->len, e->time_ms, err);
	else
		rv = print_pretty(e->line, e->len, err);
	return rv == 0 ? 0 : err_wrap(err, rv, "%s:%llu", e->file, (unsigned long long)e->offset);
}

static int keep(struct logprint *p, const struct ava_log_event *e, struct ava_error *err)
{
	size_t cap = p->cap == 0 ? 256 : p->cap * 2, file_len = strlen(e->file) + 1;
	struct logprint_kept *grown, *k;

	p->bytes += e->len + file_len + sizeof(*k);
	if (p->bytes > KEEP_MAX)
		return err_set(err, AVA_ETOOBIG, "too much to turn around: give -n");
	if (p->nkept == p->cap) {
		grown = realloc(p->kept, cap * sizeof(*grown));
		if (grown == NULL)
			return err_set(err, AVA_ENOMEM, "no memory to turn events around");
		p->kept = grown;
		p->cap = cap;
	}
	k = &p->kept[p->nkept];
	*k = (struct logprint_kept){*e, malloc(e->len + file_len)};
	if (k->owned == NULL)
		return err_set(err, AVA_ENOMEM, "no memory to turn events around");
	memcpy(k->owned, e->line, e->len);
	memcpy(k->owned + e->len, e->file, file_len);
	k->e.line = k->owned;
	k->e.file = k->owned + e->len;
	p->nkept++;
	return 0;
}

int logprint_event(struct logprint *p, const struct ava_log_event *e, struct ava_error *err)
{
	logprint_clear(p);
	return p->reverse ? keep(p, e, err) : print(p, e, err);
}

int logprint_end(struct logprint *p, struct ava_error *err)
{
	struct ava_error one;
	int rv = 0;

	logprint_clear(p);
	for (size_t i = p->nkept; i > 0; i--) {
		int bad = print(p, &p->kept[i - 1].e, &one);

		if (bad != 0 && rv == 0) {
			rv = bad;
			*err = one;
		}
	}
	return rv;
}

void logprint_progress(uint64_t done, uint64_t total, void *user)
{
	struct logprint *p = user;
	int64_t now = clock_mono_ms();

	if (p->shown_ms == 0)
		p->shown_ms = now;
	if (total == 0 || now - p->shown_ms < PROGRESS_MS || !term_colours(stderr))
		return;
	fflush(stdout);
	fprintf(stderr, "\r%d %% of %s\033[K", (int)(MIN(done, total) * 100 / total),
		format_bytes((int64_t)total).text);
	p->shown_ms = now;
	p->progress = true;
}

void logprint_clear(struct logprint *p)
{
	if (!p->progress)
		return;
	fputs("\r\033[K", stderr);
	p->progress = false;
}
