/* Settings from defaults and the environment; see settings.h.
 *
 * One table has every key; the variable's name is made from it. A value that is no number or out
 * of its range is an error that names the variable: a mistyped limit must not silently become
 * another one. */
#include "base/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"

const struct settings_key settings_keys[] = {
#define X(field, key, def, min, max) {key, offsetof(struct settings, field), def, min, max},
	SETTINGS(X)
#undef X
		{0},
};

/* runs.max: AVA_RUNS_MAX */
void settings_variable(const struct settings_key *k, char out[64])
{
	size_t n = (size_t)snprintf(out, 64, "AVA_%s", k->name);

	for (size_t i = 4; i < n; i++) {
		if (out[i] == '.')
			out[i] = '_';
		else if (out[i] >= 'a' && out[i] <= 'z')
			out[i] = (char)(out[i] - 'a' + 'A');
	}
}

static int load_key(const struct settings_key *k, int64_t *out, struct ava_error *err)
{
	char variable[64], *end;
	const char *text;
	long long n;

	settings_variable(k, variable);
	text = env_get(variable);
	if (text == NULL)
		return 0;
	errno = 0;
	n = strtoll(text, &end, 10);
	/* strtoll skips blanks and takes a plus sign; a setting does not. */
	if (strchr("-0123456789", text[0]) == NULL || end == text || *end != '\0' || errno != 0 ||
	    n < k->min || n > k->max)
		return err_set(err, AVA_EINVAL,
			       "%s is \"%.40s\"; it must be a whole number from %" PRId64
			       " to %" PRId64,
			       variable, text, k->min, k->max);
	*out = n;
	return 0;
}

void settings_put(struct settings *s, const struct settings_key *k, int64_t value)
{
	*(int64_t *)((char *)s + k->at) = value;
}

int64_t settings_get(const struct settings *s, const struct settings_key *k)
{
	return *(const int64_t *)((const char *)s + k->at);
}

const struct settings_key *settings_find(const char *name)
{
	for (const struct settings_key *k = settings_keys; k->name; k++)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

void settings_defaults(struct settings *s)
{
	for (const struct settings_key *k = settings_keys; k->name; k++)
		settings_put(s, k, k->def);
	s->confirm_over_cents = SETTINGS_CONFIRM_ALWAYS;
	s->on_quota = QUOTA_PARK;
	s->budgets = NULL;
	s->nbudgets = 0;
}

int settings_confirm(const char *name, const char *text, int64_t *out, struct ava_error *err)
{
	static const char over[] = "over_cents:";
	size_t n = strlen(over), digits;

	if (strcmp(text, "always") == 0) {
		*out = SETTINGS_CONFIRM_ALWAYS;
		return 0;
	}
	if (strcmp(text, "never") == 0) {
		*out = SETTINGS_CONFIRM_NEVER;
		return 0;
	}
	digits = strncmp(text, over, n) == 0 ? strspn(text + n, "0123456789") : 0;
	if (digits == 0 || digits > 7 || text[n + digits] != '\0' ||
	    atoll(text + n) > SETTINGS_CONFIRM_MOST)
		return err_set(err, AVA_EINVAL,
			       "%s is \"%.40s\"; it must be always, never or over_cents:N with N "
			       "from 0 to %d",
			       name, text, SETTINGS_CONFIRM_MOST);
	*out = atoll(text + n);
	return 0;
}

const char *const settings_quota_words[QUOTA_NWAYS] = {
	[QUOTA_PARK] = "park",
	[QUOTA_ASK] = "ask",
	[QUOTA_FAIL] = "fail",
};

int settings_quota(const char *name, const char *text, enum settings_quota *out,
		   struct ava_error *err)
{
	for (int i = 0; i < QUOTA_NWAYS; i++)
		if (strcmp(text, settings_quota_words[i]) == 0) {
			*out = (enum settings_quota)i;
			return 0;
		}
	return err_set(err, AVA_EINVAL, "%s is \"%.40s\"; it must be park, ask or fail", name,
		       text);
}

int settings_environment(struct settings *s, struct ava_error *err)
{
	for (const struct settings_key *k = settings_keys; k->name; k++) {
		int rv = load_key(k, (int64_t *)((char *)s + k->at), err);

		if (rv != 0)
			return rv;
	}
	if (env_get("AVA_MODELS_ON_QUOTA")) {
		int rv = settings_quota("AVA_MODELS_ON_QUOTA", env_get("AVA_MODELS_ON_QUOTA"),
					&s->on_quota, err);

		if (rv != 0)
			return rv;
	}
	return env_get("AVA_CONFIRM") ? settings_confirm("AVA_CONFIRM", env_get("AVA_CONFIRM"),
							 &s->confirm_over_cents, err)
				      : 0;
}

int settings_load(struct settings *s, struct ava_error *err)
{
	settings_defaults(s);
	return settings_environment(s, err);
}

struct settings_place {
	const char *variable, *rest;
};

/* The first place whose variable is set; AVA_ENOENT: none. */
static int settings_find_place(const struct settings_place *places, size_t n, char *out,
			       size_t size, struct ava_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const char *base = env_get(places[i].variable);
		int len;

		if (base == NULL || base[0] == '\0')
			continue;
		if (base[0] != '/')
			return err_set(err, AVA_EINVAL,
				       "%s is \"%.200s\"; it must be an absolute path",
				       places[i].variable, base);
		len = snprintf(out, size, "%s%s", base, places[i].rest);
		if (len < 0 || (size_t)len >= size)
			return err_set(err, AVA_EINVAL, "the path in %s is too long",
				       places[i].variable);
		return 0;
	}
	return AVA_ENOENT;
}

static const struct settings_place root_places[] = {
	{"AVA_DATA_ROOT", ""},
	{"XDG_DATA_HOME", "/ava"},
	{"HOME", "/.local/share/ava"},
};

bool settings_root_is_usual(const char *root)
{
	char usual[4096];

	return settings_find_place(root_places + 1, ARRAY_LEN(root_places) - 1, usual,
				   sizeof(usual), NULL) == 0 &&
	       strcmp(usual, root) == 0;
}

int settings_data_root(char *out, size_t size, struct ava_error *err)
{
	int rv = settings_find_place(root_places, ARRAY_LEN(root_places), out, size, err);

	if (rv == AVA_ENOENT)
		rv = err_set(err, AVA_EINVAL,
			     "no home directory is known: set HOME or AVA_DATA_ROOT");
	return rv;
}

int settings_check_root(int fd, const char *root, struct ava_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_sys(err, "data root %.300s", root);
	if (st.st_uid != geteuid())
		return err_set(err, AVA_EDENIED,
			       "the data root %.300s belongs to another user (uid %u, you are %u): "
			       "be that one, or set AVA_DATA_ROOT to a folder of your own",
			       root, (unsigned)st.st_uid, (unsigned)geteuid());
	if ((st.st_mode & 022) != 0)
		return err_set(err, AVA_EDENIED,
			       "others may write into the data root %.300s, so that what stands in "
			       "it may be theirs: look at it, then chmod 700 it",
			       root);
	return 0;
}

int settings_config_path(const char *file, char *out, size_t size, struct ava_error *err)
{
	char xdg[64], home[64];
	const struct settings_place places[] = {{"XDG_CONFIG_HOME", xdg}, {"HOME", home}};
	int rv;

	snprintf(xdg, sizeof(xdg), "/ava/%s", file);
	snprintf(home, sizeof(home), "/.config/ava/%s", file);
	rv = settings_find_place(places, ARRAY_LEN(places), out, size, err);
	if (rv == AVA_ENOENT)
		err_set(err, rv, "no home directory is known: set HOME or XDG_CONFIG_HOME");
	return rv;
}

int settings_read_file(const char *path, size_t max, char **data, size_t *len,
		       struct ava_error *err)
{
	char place[4096];
	struct stat st;

	snprintf(place, sizeof(place), "%s", path);
	for (int i = 0; i < 2; i++) { /* the file, then its folder */
		if (stat(place, &st) != 0 && errno == ENOENT && lstat(place, &st) == 0)
			return err_set(err, AVA_EINVAL, "%s is a link to a file that is not there",
				       place);
		if (stat(place, &st) != 0)
			return err_sys(err, "%s", place);
		if (st.st_uid != geteuid() && st.st_uid != 0)
			return err_set(err, AVA_EDENIED,
				       "%s belongs to somebody else, who would decide what ava "
				       "runs: chown it",
				       place);
		if ((st.st_mode & 022) != 0)
			return err_set(err, AVA_EDENIED,
				       "%s can be written by others, who would decide what ava "
				       "runs: chmod go-w %s",
				       place, place);
		*strrchr(place, '/') = '\0';
	}
	return sys_read_file(AT_FDCWD, path, max, data, len, err);
}
