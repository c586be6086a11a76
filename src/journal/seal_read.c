/* Reading Seals; see seal_read.h.
 *
 * The signature covers the content's bytes up to `,"sig":"`, as they stand in the file: nothing
 * is rendered again, so that there is one form only. All of it may be hostile; an unreadable
 * Seal is AVA_ECORRUPT. */
#include "journal/seal_read.h"

#include <ava.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "event/event.h"
#include "journal/files.h"

#define TAIL_LEN   (8 + 2 * SEAL_SIG + 2) /* ,"sig":"<128>"} */
#define SMALL_FILE (1u << 20)
#define WINDOW_MIN (1u << 20)
#define WINDOW_MAX (1u << 30)

static const char *past(const char *at, const char *end, const char *text, size_t len)
{
	if (at == NULL || (size_t)(end - at) < len || memcmp(at, text, len) != 0)
		return NULL;
	at += len;
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

bool seal_is_line(const char *line, size_t len)
{
	static const char kind[] = ",\"eventType\":\"Seal\"";
	const char *end = line + len, *at;

	if (len < 80 || memcmp(line, "{\"timestamp\":\"", 14) != 0)
		return false;
	at = past(line + 38, end, "\",\"lsn\":", 8);
	at = past(at, end, ",\"seq\":", 7);
	return past(at, end, kind, sizeof(kind) - 1) != NULL;
}

/* The signature at the end of the content. */
static bool take_signature(const char *content, size_t len, unsigned char sig[SEAL_SIG])
{
	char hex[2 * SEAL_SIG + 1];
	const char *at;

	if (len < TAIL_LEN + 2)
		return false;
	at = content + len - TAIL_LEN;
	if (memcmp(at, ",\"sig\":\"", 8) != 0 || memcmp(content + len - 2, "\"}", 2) != 0)
		return false;
	memcpy(hex, at + 8, sizeof(hex) - 1);
	hex[sizeof(hex) - 1] = '\0';
	return hash_unhex(hex, sig, SEAL_SIG);
}

int seal_parse(struct seal *s, const char *content, size_t len, struct ava_error *err)
{
	unsigned char sig[SEAL_SIG];
	int64_t n;

	*s = (struct seal){0};
	if (!take_signature(content, len, sig))
		return err_set(err, AVA_ECORRUPT, "the seal has no signature at its end");
	if (sodium_init() < 0)
		return err_set(err, AVA_ENOMEM, "libsodium cannot start");
	s->doc = json_parse(content, len, err);
	if (s->doc == NULL)
		return err != NULL && err->code == AVA_ENOMEM ? AVA_ENOMEM : AVA_ECORRUPT;
	n = json_get_int(s->doc, "n", 0);
	if (n <= 0 || !hash_unhex(json_get_str(s->doc, "prev"), s->prev, SEAL_HASH) ||
	    !hash_unhex(json_get_str(s->doc, "key"), s->key, SEAL_KEY) ||
	    !json_is_array(json_object_get(s->doc, "files"))) {
		seal_fini(s);
		return err_set(err, AVA_ECORRUPT, "the seal lacks n, prev, key or files");
	}
	s->n = (uint64_t)n;
	s->authentic = crypto_sign_verify_detached(sig, (const unsigned char *)content,
						   len - TAIL_LEN, s->key) == 0;
	hash_sha256(content, len, s->hash);
	return 0;
}

void seal_fini(struct seal *s)
{
	json_decref(s->doc);
	s->doc = NULL;
}

int seal_item(const struct seal *s, size_t i, struct seal_item *item)
{
	const json_t *o = json_array_get(json_object_get(s->doc, "files"), i);
	int64_t size = json_get_int(o, "size", -1), from = json_get_int(o, "from", -1),
		each = json_get_int(o, "each", 1);

	if (o == NULL)
		return 0;
	*item = (struct seal_item){.path = json_get_str(o, "path"),
				   .lines = json_get_str(o, "lines")};
	if (item->path == NULL || !files_path_ok(item->path) || size < 0 || from < 0 ||
	    from > size || each < 1 || item->lines == NULL ||
	    !hash_unhex(json_get_str(o, "head"), item->head, SEAL_HASH))
		return AVA_ECORRUPT;
	item->size = (uint64_t)size;
	item->from = (uint64_t)from;
	item->each = (uint64_t)each;
	item->nmarks = strlen(item->lines) / SEAL_MARK_CHARS;
	return 1;
}

const char *seal_gone_path(const struct seal *s, size_t i)
{
	const json_t *files = json_object_get(json_object_get(s->doc, "pruned"), "files");

	return json_get_str(json_array_get(files, i), "path");
}

uint32_t seal_mark(const struct seal_item *item, size_t i)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t mark = 0;

	for (size_t k = 0; k < SEAL_MARK_CHARS; k++) {
		const char *d = memchr(digits, item->lines[i * SEAL_MARK_CHARS + k], 16);

		mark = mark << 4 | (uint32_t)(d != NULL ? d - digits : 0);
	}
	return mark;
}

/* ---- the files beside the logs */

static void last_going(struct seal_last *last, const json_t *list)
{
	const json_t *o;
	size_t i;

	json_array_foreach(list, i, o)
	{
		struct seal_going *g = &last->going[last->ngoing];
		const char *path = json_str(o, "path");

		if (last->ngoing == SEAL_GOING || strlen(path) >= sizeof(g->path) ||
		    !files_path_ok(path) ||
		    !hash_unhex(json_get_str(o, "state"), g->state, SEAL_HASH) ||
		    !hash_unhex(json_get_str(o, "head"), g->head, SEAL_HASH))
			continue;
		g->size = (uint64_t)json_get_int(o, "size", 0);
		g->inode = (uint64_t)json_get_int(o, "inode", 0);
		g->seq = (uint64_t)json_get_int(o, "seq", 0);
		memcpy(g->path, path, strlen(path) + 1);
		last->ngoing++;
	}
}

int seal_last_read(int rootfd, struct seal_last *last, struct ava_error *err)
{
	char *text = NULL;
	json_t *o = NULL;
	size_t len;
	const char *path;
	int64_t n, size;
	int rv = sys_read_file(rootfd, SEAL_LAST_PATH, SMALL_FILE, &text, &len, err);

	*last = (struct seal_last){0};
	if (rv != 0)
		return rv;
	o = json_parse(text, len, NULL);
	free(text);
	path = json_get_str(o, "path");
	n = json_get_int(o, "n", 0);
	size = json_get_int(o, "size", -1);
	if (path == NULL || n <= 0 || size < 0 || strlen(path) >= sizeof(last->path) ||
	    !files_path_ok(path) || !hash_unhex(json_get_str(o, "hash"), last->hash, SEAL_HASH) ||
	    !hash_unhex(json_get_str(o, "head"), last->head, SEAL_HASH)) {
		rv = err_set(err, AVA_ECORRUPT, SEAL_LAST_PATH " cannot be read");
	} else {
		last->n = (uint64_t)n;
		last->size = (uint64_t)size;
		snprintf(last->path, sizeof(last->path), "%s", path);
		path = json_str(json_object_get(o, "since"), "path");
		size = json_get_int(json_object_get(o, "since"), "size", -1);
		if (size >= 0 && strncmp(path, "logs/ava/", 9) == 0 && files_path_ok(path) &&
		    strlen(path) < sizeof(last->path)) {
			snprintf(last->since_path, sizeof(last->since_path), "%s", path);
			last->since = (uint64_t)size;
		}
		last_going(last, json_object_get(o, "going"));
	}
	json_decref(o);
	return rv;
}

int seal_last_write(int rootfd, const struct seal_last *last)
{
	char hash[2 * SEAL_HASH + 1], hex[2 * SEAL_HASH + 1];
	struct buf b;
	int rv = -1;

	buf_init(&b, SMALL_FILE);
	hash_hex(last->hash, SEAL_HASH, hash);
	hash_hex(last->head, SEAL_HASH, hex);
	buf_addf(&b,
		 "{\"n\":%llu,\"hash\":\"%s\",\"path\":\"%s\",\"size\":%llu,\"head\":\"%s\","
		 "\"since\":{\"path\":\"%s\",\"size\":%llu},\"going\":[",
		 (unsigned long long)last->n, hash, last->path, (unsigned long long)last->size, hex,
		 last->since_path, (unsigned long long)last->since);
	for (size_t i = 0; i < last->ngoing; i++) {
		const struct seal_going *g = &last->going[i];

		hash_hex(g->state, SEAL_HASH, hash);
		hash_hex(g->head, SEAL_HASH, hex);
		buf_addf(&b,
			 "%s{\"path\":\"%s\",\"size\":%llu,\"inode\":%llu,\"seq\":%llu,"
			 "\"state\":\"%s\",\"head\":\"%s\"}",
			 i > 0 ? "," : "", g->path, (unsigned long long)g->size,
			 (unsigned long long)g->inode, (unsigned long long)g->seq, hash, hex);
	}
	if (buf_adds(&b, "]}\n") == 0)
		rv = files_replace(rootfd, SEAL_LAST_PATH, b.data, b.len, true);
	else
		errno = ENOMEM;
	buf_fini(&b);
	return rv;
}

int seal_key_known(int rootfd, const unsigned char key[SEAL_KEY], struct ava_error *err)
{
	char want[2 * SEAL_KEY + 16], *text = NULL;
	size_t len;
	int rv = sys_read_file(rootfd, SEAL_PUBLIC_PATH, SMALL_FILE, &text, &len, err);

	if (rv != 0)
		return rv;
	memcpy(want, "ed25519 ", 8);
	hash_hex(key, SEAL_KEY, want + 8);
	rv = memmem(text, len, want, strlen(want)) != NULL;
	free(text);
	return rv;
}

/* ---- the newest Seal */

/* Find the last Seal in these bytes, which begin at a line. */
static bool last_seal(const char *data, size_t len, struct seal_newest *newest)
{
	const char *end = memrchr(data, '\n', len);

	while (end != NULL) {
		const char *nl = end > data ? memrchr(data, '\n', (size_t)(end - data)) : NULL;
		const char *line = nl != NULL ? nl + 1 : data;
		size_t n = (size_t)(end - line);
		struct event_view v;
		struct seal s;

		if (seal_is_line(line, n) && event_view(line, n, &v) == 0 &&
		    seal_parse(&s, v.content.s, v.content.len, NULL) == 0) {
			bool good = s.authentic;

			if (good) {
				newest->n = s.n;
				newest->lsn = v.lsn;
				memcpy(newest->hash, s.hash, SEAL_HASH);
			}
			seal_fini(&s);
			if (good)
				return true;
		}
		end = nl;
	}
	return false;
}

int seal_find_in(int rootfd, const char *path, struct seal_newest *newest, struct ava_error *err)
{
	int fd = files_open(rootfd, path, O_RDONLY), rv = 0;
	char *data = NULL;
	struct stat st;
	size_t window = 0, size;

	if (fd < 0 || sys->fstat(fd, &st) != 0) {
		rv = err_sys(err, "%s", path);
		files_close(&fd);
		return rv;
	}
	size = S_ISREG(st.st_mode) ? (size_t)st.st_size : 0;
	while (rv == 0 && window < MIN(size, WINDOW_MAX)) {
		size_t cut = 0;

		window = MIN(size, window > 0 ? window * 8 : WINDOW_MIN);
		free(data);
		data = malloc(window);
		if (data == NULL)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
		else if (sys_read_all(fd, data, window, (off_t)(size - window)) != 0)
			rv = err_sys(err, "%s", path);
		else if (window < size)
			for (cut = 1; cut < window && data[cut - 1] != '\n';)
				cut++;
		if (rv == 0)
			rv = last_seal(data + cut, window - cut, newest);
	}
	free(data);
	files_close(&fd);
	return rv;
}

int seal_find_newest(int rootfd, struct seal_newest *newest, struct ava_error *err)
{
	struct files_names days = {0};
	struct seal_last last;
	char path[FILES_BUF];
	int rv = files_list(&days, rootfd, "logs/ava", ".jsonl", err);

	*newest = (struct seal_newest){0};
	for (size_t i = days.n; rv == 0 && i-- > 0;) {
		snprintf(path, sizeof(path), "logs/ava/%s", days.names[i]);
		rv = seal_find_in(rootfd, path, newest, err);
		if (rv == 1)
			snprintf(newest->day, sizeof(newest->day), "%.10s", days.names[i]);
	}
	files_names_fini(&days);
	if (rv < 0)
		return rv;
	/* The daily log was cut: n goes on behind the missing Seals, so that the gap is seen. */
	if (seal_last_read(rootfd, &last, NULL) == 0 && last.n > newest->n) {
		newest->n = last.n;
		memcpy(newest->hash, last.hash, SEAL_HASH);
	}
	return 0;
}
