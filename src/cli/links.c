/* Links; links.h. The address is that of the file alone, `file://HOST/PATH`: nothing that terminals
 * hand it to agrees on how a line is named in one.
 *
 * A text cannot choose where its link leads: it is the file whose name is shown. What can fail: the
 * folder, the file or the memory is not there; then the place is plain text. */
#include "cli/links.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/buf.h"
#include "base/util.h"

#define ADDRESS_MAX 2000 /* bytes; terminals drop longer ones */
#define LINK        "\033]8;;"
#define LINK_END    "\033\\"

static char links_folder[PATH_MAX];

void links_below(const char *folder)
{
	size_t len = strlen(folder);

	while (len > 1 && folder[len - 1] == '/')
		len--;
	if (folder[0] != '/' || len >= sizeof(links_folder))
		len = 0;
	memcpy(links_folder, folder, len);
	links_folder[len] = '\0';
}

size_t links_place(const char *s, size_t len, size_t *path, int64_t *line)
{
	size_t n = 0, digits = 0;

	while (n < len && s[n] != '\0' &&
	       (isalnum((unsigned char)s[n]) || strchr("._-/+@", s[n]) != NULL))
		n++;
	*path = n;
	*line = 0;
	if (n < len && s[n] == ':')
		for (; digits < 10 && n + 1 + digits < len &&
		       isdigit((unsigned char)s[n + 1 + digits]);
		     digits++)
			*line = *line * 10 + s[n + 1 + digits] - '0';
	if (*line == 0 || digits == 10 || (memchr(s, '.', n) == NULL && memchr(s, '/', n) == NULL))
		return 0;
	return n + 1 + digits;
}

static void links_encode(struct buf *out, const char *s)
{
	for (; *s != '\0'; s++)
		if (isalnum((unsigned char)*s) || strchr("-._~/", *s) != NULL)
			buf_addc(out, *s);
		else
			buf_addf(out, "%%%02X", (unsigned char)*s);
}

/* Is it a regular file below the folder? *path: its part below it. */
static bool links_known(const char **path)
{
	size_t len = strlen(links_folder);
	const char *name;
	struct stat st;
	int root, dir;
	bool file;

	if (strncmp(*path, links_folder, len) == 0 && (*path)[len] == '/')
		*path += len + 1;
	else if (strncmp(*path, "./", 2) == 0)
		*path += 2;
	root = open(links_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	dir = root >= 0 ? below_open_parent(root, *path, false, &name) : -1;
	file = dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
	if (dir >= 0)
		close(dir);
	if (root >= 0)
		close(root);
	return file;
}

static bool links_address(struct buf *out, const char *s, size_t len)
{
	char path[PATH_MAX], host[HOST_NAME_MAX + 1] = "";
	const char *below = path;

	if (len >= sizeof(path))
		return false;
	memcpy(path, s, len);
	path[len] = '\0';
	if (!links_known(&below) || gethostname(host, sizeof(host) - 1) != 0)
		return false;
	buf_reset(out);
	buf_adds(out, "file://");
	links_encode(out, host);
	links_encode(out, links_folder);
	buf_addc(out, '/');
	links_encode(out, below);
	return buf_check(out) == 0;
}

void links_write(FILE *f, const char *s, size_t len)
{
	size_t from = 0, at = 0, path, n;
	struct buf address;
	int64_t line;

	buf_init(&address, ADDRESS_MAX);
	while (links_folder[0] != '\0' && at < len) {
		const char *m = s[at] == '\033' ? memchr(s + at, 'm', len - at) : NULL;

		if (m != NULL) {
			at = (size_t)(m - s) + 1;
			continue;
		}
		n = links_place(s + at, len - at, &path, &line);
		if (n > 0 && links_address(&address, s + at, path)) {
			fwrite(s + from, 1, at - from, f);
			fprintf(f, LINK "%s" LINK_END "%.*s" LINK LINK_END, address.data, (int)n,
				s + at);
			from = at + n;
		}
		at += n > 0 ? n : MAX(path, (size_t)1);
	}
	fwrite(s + from, 1, len - from, f);
	buf_fini(&address);
}
