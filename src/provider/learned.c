/* The file as JSON in memory, under a lock: an object whose keys are the model's id, a blank and
 * the base URL. Replaced as a whole, by whoever learned something, on a pool thread.
 *
 * Nothing here ends a run: without the file, or memory, all is learned again. */
#include "provider/learned.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/below.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"

#define FORMAT    1
#define BYTES_MAX ((size_t)1 << 20)
/* Most bytes a token of a request: a count with more bytes a token has no room for the tools.
 * Requests with tools and JSON have 3.5 (18,602 bytes as 5,374 tokens; 771 where the template
 * dropped the tools). A count under COUNTED_LEAST is of a server that does not count. */
#define COUNTED_BYTES 12
#define COUNTED_LEAST 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static json_t *rows;     /* what was learned of each model; NULL: nothing yet */
static json_t *dialects; /* dialects by id, kept until the program ends; NULL: none yet */
static json_t *lists;    /* models of servers by base URL: number and names; NULL: none yet */

struct learned_key learned_key(const char *model, const char *url)
{
	struct learned_key k;

	snprintf(k.text, sizeof(k.text), "%s %s", model, url);
	return k;
}

/* The numbers of a row by their names in the file. */
static const struct {
	const char *name;
	size_t at;
	const char *words; /* words for a person before the fact */
} facts[] = {
	{"window", offsetof(struct learned, window), "window"},
	{"maxOutput", offsetof(struct learned, output_max), "output at most"},
	{"slots", offsetof(struct learned, slots), "calls at a time"},
	{"tools", offsetof(struct learned, tools), "tools (-1: none)"},
	{"said", offsetof(struct learned, said), NULL},
};

static int64_t *fact(struct learned *l, size_t i)
{
	return (int64_t *)(void *)((char *)l + facts[i].at);
}

bool learned_find(const char *model, const char *url, struct learned *out)
{
	const json_t *row;
	bool any = false;

	pthread_mutex_lock(&lock);
	row = json_object_get(rows, learned_key(model, url).text);
	if (clock_wall_ms() - json_get_int(row, "atMs", 0) > LEARNED_MS)
		row = NULL;
	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		*fact(out, i) = json_get_int(row, facts[i].name, 0);
		any |= *fact(out, i) != 0;
	}
	pthread_mutex_unlock(&lock);
	return any;
}

bool learned_note(const char *model, const char *url, const struct learned *l, const char *from)
{
	struct learned was, is = *l;
	json_t *row;
	bool is_new = false;

	(void)learned_find(model, url, &was);
	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		if (*fact(&is, i) == 0)
			*fact(&is, i) = *fact(&was, i);
		is_new |= *fact(&is, i) != *fact(&was, i);
	}
	if (!is_new)
		return false;
	row = json_object();
	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		if (i < 2 || *fact(&is, i) != 0)
			json_object_set_new(row, facts[i].name, json_integer(*fact(&is, i)));
	json_object_set_new(row, "from", json_string(from));
	json_object_set_new(row, "atMs", json_integer(clock_wall_ms()));
	pthread_mutex_lock(&lock);
	if (!rows)
		rows = json_object();
	if (json_object_size(rows) >= LEARNED_MAX)
		json_object_del(rows, json_object_iter_key(json_object_iter(rows)));
	is_new = json_object_set_new(rows, learned_key(model, url).text, row) == 0;
	pthread_mutex_unlock(&lock);
	return is_new;
}

bool learned_count(const char *model, const char *url, int64_t bytes, int64_t tokens, bool called,
		   char *text, size_t size)
{
	bool odd = !called && tokens >= COUNTED_LEAST && tokens < bytes / COUNTED_BYTES;
	struct learned l, is = {.tools = called ? 1 : odd ? -1 : 0};
	bool told;

	(void)learned_find(model, url, &l);
	told = !called && (odd || l.tools < 0) && l.said == 0;
	is.said = told ? 1 : 0;
	/* A tool call is worth a note only where the model was noted as having no tools. */
	if (told || (odd && l.tools >= 0) || (called && l.tools < 0))
		(void)learned_note(model, url, &is, "count");
	if (!told)
		return false;
	if (odd)
		snprintf(text, size,
			 "%.100s counted %lld tokens of a request of about %lld: its template has "
			 "no tools, or its window cut the request without a word; `ava doctor` "
			 "says what to do",
			 model, (long long)tokens, (long long)(bytes / 400 * 100));
	else
		snprintf(text, size,
			 "%.100s is served with a template that has no tools, so it calls none: "
			 "`ava doctor` says what to do",
			 model);
	return true;
}

void learned_list(const char *url, size_t n, const char *names)
{
	pthread_mutex_lock(&lock);
	if (!lists)
		lists = json_object();
	json_object_set_new(lists, url, json_pack("[I,s]", (json_int_t)n, names));
	pthread_mutex_unlock(&lock);
}

size_t learned_names(const char *url, char *out, size_t size)
{
	const json_t *list;
	size_t n;

	pthread_mutex_lock(&lock);
	list = json_object_get(lists, url);
	n = (size_t)json_integer_value(json_array_get(list, 0));
	snprintf(out, size, "%s", n > 0 ? json_string_value(json_array_get(list, 1)) : "");
	pthread_mutex_unlock(&lock);
	return n;
}

const char *learned_dialect(const char *model, const char *name)
{
	const char *is;

	pthread_mutex_lock(&lock);
	if (name && !dialects)
		dialects = json_object();
	if (name && !json_object_get(dialects, model))
		json_object_set_new(dialects, model, json_string(name));
	is = json_str(dialects, model);
	pthread_mutex_unlock(&lock);
	return is;
}

bool learned_words(size_t i, struct buf *out)
{
	const char *key, *blank;
	const json_t *row;

	pthread_mutex_lock(&lock);
	json_object_foreach(rows, key, row)
	{
		blank = strchr(key, ' ');
		if (i-- > 0 || !blank)
			continue;
		buf_addf(out, "%.*s at%s:", (int)(blank - key), key, blank);
		for (size_t k = 0; k < ARRAY_LEN(facts); k++) {
			long long n = json_get_int(row, facts[k].name, 0);

			if (n != 0 && facts[k].words)
				buf_addf(out, " %s %lld,", facts[k].words, n);
		}
		buf_addf(out, " by %s", json_str(row, "from"));
		break;
	}
	pthread_mutex_unlock(&lock);
	return buf_check(out) == 0 && out->len > 0;
}

/* ---- its file */

int learned_load(int root_fd, struct ava_error *err)
{
	char *data = NULL;
	struct stat st;
	size_t len = 0;
	int rv = below_read(root_fd, LEARNED_FILE, BYTES_MAX, &data, &len, &st, err);
	json_t *all = rv == 0 ? json_parse(data, len, NULL) : NULL;
	json_t *models = json_object_get(all, "models");

	if (rv == 0 && (json_get_int(all, "format", 0) != FORMAT || !json_is_object(models)))
		rv = err_set(err, AVA_ECORRUPT,
			     "%s in the data root is damaged or of another version: it is ignored, "
			     "and what models take is learned again",
			     LEARNED_FILE);
	pthread_mutex_lock(&lock);
	json_decref(rows);
	rows = rv == 0 ? json_incref(models) : NULL;
	pthread_mutex_unlock(&lock);
	json_decref(all);
	free(data);
	return rv == AVA_ENOENT ? 0 : rv;
}

int learned_save(int root_fd, struct ava_error *err)
{
	char *text;
	json_t *all;
	int rv = AVA_ENOMEM;

	pthread_mutex_lock(&lock); /* held during the write, too: one writer at a time */
	all = json_pack("{s:i, s:O}", "format", FORMAT, "models", rows);
	text = json_dumps(all, JSON_COMPACT);
	if (text)
		rv = below_write(root_fd, LEARNED_FILE, LEARNED_FILE ".new", text, strlen(text),
				 0600, err);
	if (rv == 0)
		rv = below_rename(root_fd, LEARNED_FILE, LEARNED_FILE ".new", err);
	json_decref(all);
	pthread_mutex_unlock(&lock);
	free(text);
	return rv;
}
