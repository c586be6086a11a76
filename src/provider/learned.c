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
#include "codec/json.h"

#define FORMAT    1
#define BYTES_MAX ((size_t)1 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static json_t *rows;     /* NULL: none yet */
static json_t *dialects; /* by id, for as long as the program; NULL: none yet */

struct row_key {
	char text[LEARNED_KEY];
};

static struct row_key key_of(const char *model, const char *url)
{
	struct row_key k;

	snprintf(k.text, sizeof(k.text), "%s %s", model, url);
	return k;
}

bool learned_find(const char *model, const char *url, int64_t *window, int64_t *output_max)
{
	const json_t *row;

	pthread_mutex_lock(&lock);
	row = json_object_get(rows, key_of(model, url).text);
	*window = json_get_int(row, "window", 0);
	*output_max = json_get_int(row, "maxOutput", 0);
	if (clock_wall_ms() - json_get_int(row, "atMs", 0) > LEARNED_MS)
		*window = *output_max = 0;
	pthread_mutex_unlock(&lock);
	return *window > 0 || *output_max > 0;
}

bool learned_note(const char *model, const char *url, int64_t window, int64_t output_max,
		  const char *from)
{
	struct row_key key = key_of(model, url);
	int64_t was_window, was_output;
	json_t *row;
	bool is_new;

	(void)learned_find(model, url, &was_window, &was_output);
	window = window > 0 ? window : was_window;
	output_max = output_max > 0 ? output_max : was_output;
	if (window == was_window && output_max == was_output)
		return false;
	row = json_pack("{s:I, s:I, s:s, s:I}", "window", (json_int_t)window, "maxOutput",
			(json_int_t)output_max, "from", from, "atMs", (json_int_t)clock_wall_ms());
	pthread_mutex_lock(&lock);
	if (!rows)
		rows = json_object();
	if (json_object_size(rows) >= LEARNED_MAX)
		json_object_del(rows, json_object_iter_key(json_object_iter(rows)));
	is_new = json_object_set_new(rows, key.text, row) == 0;
	pthread_mutex_unlock(&lock);
	return is_new;
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
		buf_addf(out,
			 "%.*s at%s: window %lld, output at most %lld tokens (0: not told), by %s",
			 (int)(blank - key), key, blank, (long long)json_get_int(row, "window", 0),
			 (long long)json_get_int(row, "maxOutput", 0), json_str(row, "from"));
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

	pthread_mutex_lock(&lock); /* also while it is written: one at a time */
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
