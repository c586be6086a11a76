/* Which role an agent has; roles.h.
 *
 * The rows of the catalog are read once. Of a row only the id and the role
 * are needed; both are found by their keys, in the form in which rows are
 * written, and a row that is none is passed over: a count by role is not the
 * place to judge the catalog. */
#include "journal/roles.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strmap.h"
#include "base/sys.h"
#include "codec/jsonl.h"
#include "journal/catalog.h"
#include "journal/files.h"

#define CATALOG_MAX ((size_t)1 << 30)
#define ID_MAX      64

struct role {
	char id[ID_MAX];
	char name[ID_MAX];
};

struct roles {
	struct strmap map;
};

static bool take(const char *line, size_t len, const char *key, char out[ID_MAX])
{
	const char *at = memmem(line, len, key, strlen(key)), *end;

	if (at == NULL)
		return false;
	at += strlen(key);
	end = memchr(at, '"', (size_t)(line + len - at));
	if (end == NULL || end - at >= ID_MAX)
		return false;
	memcpy(out, at, (size_t)(end - at));
	out[end - at] = '\0';
	return true;
}

static int add_row(struct roles *r, const char *line, size_t len)
{
	struct role *role = calloc(1, sizeof(*role));
	int rv;

	if (role == NULL)
		return AVA_ENOMEM;
	rv = take(line, len, "\"id\":\"", role->id) && take(line, len, "\"role\":\"", role->name)
		     ? strmap_put(&r->map, role->id, role)
		     : AVA_EEXIST;
	if (rv != 0)
		free(role);
	return rv == AVA_ENOMEM ? rv : 0;
}

static int add_part(struct roles *r, int rootfd, const char *path, struct ava_error *err)
{
	char *data = NULL;
	const char *line;
	size_t len, line_len, at = 0;
	int rv = sys_read_file(rootfd, path, CATALOG_MAX, &data, &len, err);

	if (rv != 0)
		return rv;
	while (rv == 0 && jsonl_next(data, len, &at, &line, &line_len) == 1)
		rv = add_row(r, line, line_len);
	free(data);
	return rv == 0 ? 0 : err_set(err, rv, "no memory for the catalog");
}

int roles_open(struct roles **out, int rootfd, struct ava_error *err)
{
	struct roles *r = calloc(1, sizeof(*r));
	char path[FILES_BUF];
	int rv = r != NULL ? 0 : err_set(err, AVA_ENOMEM, "no memory for the catalog");

	*out = NULL;
	if (rv != 0)
		return rv;
	strmap_init(&r->map);
	for (unsigned part = 1; rv == 0; part++) {
		files_part_name(CATALOG_PATH, part, path);
		rv = add_part(r, rootfd, path, err);
	}
	if (rv != AVA_ENOENT) {
		roles_close(r);
		return rv;
	}
	*out = r;
	return 0;
}

void roles_close(struct roles *r)
{
	struct role *role;
	size_t at = 0;

	if (r == NULL)
		return;
	while ((role = strmap_next(&r->map, &at)) != NULL)
		free(role);
	strmap_fini(&r->map);
	free(r);
}

const char *roles_find(const struct roles *r, const char *id, size_t len)
{
	char text[ID_MAX];
	const struct role *role;

	if (len >= sizeof(text))
		return "";
	memcpy(text, id, len);
	text[len] = '\0';
	role = strmap_get(&r->map, text);
	if (role != NULL)
		return role->name;
	return strcmp(text, "ava") == 0 ? "ava" : "";
}
