/* The file wal/checkpoint; see checkpoint.h.
 *
 * It is replaced as a whole, so a reader sees the last one or the one before,
 * never half of one. Damage is found by the checksum in its last line; the
 * journal then replays from the oldest segment it still has, which is slower
 * and knows less about the views, but loses nothing. */
#include "journal/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "journal/files.h"

#define TEXT_MAX ((size_t)256 << 20)
#define CRC_LINE 16 /* "crc32c 01234567\n" */

static const char first_line[] = "ava checkpoint 1\n";

void checkpoint_head(struct buf *out, bool clean, struct wal_pos pos, uint64_t lsn)
{
	buf_addf(out, "%sclean %d\nposition %016" PRIx64 " %" PRIu64 "\nlsn %" PRIu64 "\n",
		 first_line, clean, pos.seq, pos.at, lsn);
}

void checkpoint_add(struct buf *out, const struct checkpoint_view *v)
{
	buf_addf(out, "view %u %" PRIu64 " %" PRIu64 " %s\n", v->part, v->size, v->inode, v->path);
}

int checkpoint_end(struct buf *out)
{
	if (buf_check(out) == 0)
		buf_addf(out, "crc32c %08" PRIx32 "\n", crc32c(0, out->data, out->len));
	return buf_check(out);
}

int checkpoint_write(int rootfd, const struct buf *text)
{
	return files_replace(rootfd, CHECKPOINT_PATH, text->data, text->len, true);
}

static bool crc_good(const char *text, size_t len)
{
	char line[CRC_LINE + 1];

	if (len < CRC_LINE)
		return false;
	snprintf(line, sizeof(line), "crc32c %08" PRIx32 "\n", crc32c(0, text, len - CRC_LINE));
	return memcmp(text + len - CRC_LINE, line, CRC_LINE) == 0;
}

static bool parse_head(struct checkpoint *c, const char **at)
{
	int clean, used = 0;

	if (strncmp(*at, first_line, sizeof(first_line) - 1) != 0)
		return false;
	*at += sizeof(first_line) - 1;
	if (sscanf(*at, "clean %d\nposition %" SCNx64 " %" SCNu64 "\nlsn %" SCNu64 "%n", &clean,
		   &c->pos.seq, &c->pos.at, &c->lsn, &used) != 4 ||
	    (*at)[used] != '\n')
		return false;
	c->clean = clean != 0;
	*at += used + 1;
	return true;
}

/* The path is cut off where its line ends. */
static bool parse_view(struct checkpoint_view *v, char **at)
{
	char *end = strchr(*at, '\n');
	int used = 0;

	if (end == NULL)
		return false;
	*end = '\0'; /* before the scan, which looks for the end of the text first */
	if (sscanf(*at, "view %u %" SCNu64 " %" SCNu64 " %n", &v->part, &v->size, &v->inode,
		   &used) != 3)
		return false;
	v->path = *at + used;
	*at = end + 1;
	return v->part >= 1 && files_path_ok(v->path);
}

static int parse(struct checkpoint *c, size_t len)
{
	char *at = c->text, *end;
	const char *head = at;
	size_t lines = 0;

	if (!crc_good(c->text, len) || !parse_head(c, &head))
		return AVA_ECORRUPT;
	at = c->text + (head - c->text);
	end = c->text + len - CRC_LINE;
	*end = '\0';
	for (const char *p = at; (p = strchr(p, '\n')) != NULL; p++)
		lines++;
	c->views = calloc(lines + 1, sizeof(c->views[0]));
	if (c->views == NULL)
		return AVA_ENOMEM;
	while (at < end)
		if (!parse_view(&c->views[c->nviews++], &at))
			return AVA_ECORRUPT;
	return 0;
}

int checkpoint_read(int rootfd, struct checkpoint *c, struct ava_error *err)
{
	size_t len;
	int rv;

	*c = (struct checkpoint){0};
	rv = sys_read_file(rootfd, CHECKPOINT_PATH, TEXT_MAX, &c->text, &len, err);
	if (rv != 0)
		return rv;
	rv = parse(c, len);
	if (rv == 0)
		return 0;
	checkpoint_fini(c);
	return err_set(err, rv, "%s: %s", CHECKPOINT_PATH, ava_strerror(rv));
}

void checkpoint_fini(struct checkpoint *c)
{
	free(c->views);
	free(c->text);
	*c = (struct checkpoint){0};
}
