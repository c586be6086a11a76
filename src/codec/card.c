/* Cards of Claude Code's subagents; see card.h.
 *
 * Nothing is kept between calls. What cannot be read, is a link, no JSON or lacks what every card
 * has is no card: whoever looks passes it over, the next event of the agent makes a new one. */
#include "codec/card.h"

#include <ava.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"

int card_home(char *out, size_t size, struct ava_error *err)
{
	const char *config = env_get("CLAUDE_CONFIG_DIR"), *home = env_get("HOME");
	int n;

	if (config && *config)
		n = snprintf(out, size, "%s", config);
	else if (home && *home)
		n = snprintf(out, size, "%s/.claude", home);
	else
		return err_set(err, AVA_EINVAL, "neither HOME nor CLAUDE_CONFIG_DIR is set");
	return (size_t)n < size
		       ? 0
		       : err_set(err, AVA_ETOOBIG, "the path of Claude Code's folder is too long");
}

bool card_is_name(const char *s)
{
	size_t n = s ? strlen(s) : 0;

	return n > 0 && n <= CARD_NAME_MAX && s[0] != '.' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-") == n;
}

json_t *card_read_object(int dir, const char *id)
{
	char name[CARD_NAME_MAX + 8], *text = NULL;
	json_t *o = NULL;
	struct stat st;
	size_t len = 0;

	snprintf(name, sizeof(name), "%.*s.json", CARD_NAME_MAX, id);
	/* What a link leads to was not written to be shown. */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	    sys_read_file(dir, name, CARD_MAX, &text, &len, NULL) == 0)
		o = json_parse(text, len, NULL);
	free(text);
	if (json_is_object(o))
		return o;
	json_decref(o);
	return NULL;
}

/* Members that are not what they should be go, so that nobody else has to look. */
static void drop_odd(json_t *card)
{
	static const struct {
		const char *key;
		json_type type;
	} members[] = {
		{"lastMessage", JSON_STRING},   {"name", JSON_STRING},
		{"activity", JSON_STRING},      {"transcript", JSON_STRING},
		{"cwd", JSON_STRING},           {"description", JSON_STRING},
		{"model", JSON_STRING},         {"reason", JSON_STRING},
		{"parentAgentId", JSON_STRING}, {"depth", JSON_INTEGER},
		{"process", JSON_OBJECT},       {"usage", JSON_OBJECT},
	};
	static const char *const used[] = {"input", "output", "cacheRead", "cacheWrite"};
	const json_t *usage, *v;

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		v = json_object_get(card, members[i].key);
		if (v && json_typeof(v) != members[i].type)
			json_object_del(card, members[i].key);
	}
	usage = json_object_get(card, "usage");
	for (size_t i = 0; usage && i < ARRAY_LEN(used); i++)
		if (!json_is_integer(json_object_get(usage, used[i])))
			usage = NULL;
	if (!usage)
		json_object_del(card, "usage");
	if (card_time(card, "stoppedAt") < 0)
		json_object_del(card, "stoppedAt");
	if (card_time(card, "startedAt") < 0)
		json_object_set(card, "startedAt", json_object_get(card, "updatedAt"));
}

json_t *card_read(int dir, const char *agent)
{
	json_t *card = card_read_object(dir, agent);
	const char *status = json_str(card, "status");

	if (strcmp(json_str(card, "agentId"), agent) == 0 && *json_str(card, "type") &&
	    card_time(card, "updatedAt") >= 0 &&
	    (strcmp(status, "active") == 0 || strcmp(status, "idle") == 0 ||
	     strcmp(status, "stopped") == 0)) {
		drop_odd(card);
		return card;
	}
	json_decref(card);
	return NULL;
}

int64_t card_time(const json_t *card, const char *key)
{
	const char *s = json_str(card, key);
	char whole[CLOCK_ISO_LEN + 1];

	if (strlen(s) == 20 && s[19] == 'Z') {
		snprintf(whole, sizeof(whole), "%.19s.000Z", s);
		s = whole;
	}
	return clock_parse_iso(s, strlen(s));
}

void card_add_meta(json_t *card)
{
	static const char *const texts[] = {"description", "parentAgentId", "model"};
	const char *transcript = json_str(card, "transcript");
	size_t n = strlen(transcript), len = 0;
	char path[PATH_MAX], *text = NULL;
	json_t *meta = NULL, *depth;

	if (n < 6 || n > sizeof(path) - 6 || strcmp(transcript + n - 6, ".jsonl") != 0)
		return;
	snprintf(path, sizeof(path), "%.*s.meta.json", (int)(n - 6), transcript);
	if (sys_read_file(AT_FDCWD, path, CARD_MAX, &text, &len, NULL) == 0)
		meta = json_parse(text, len, NULL);
	free(text);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (*json_str(meta, texts[i]))
			json_object_set(card, texts[i], json_object_get(meta, texts[i]));
	depth = json_object_get(meta, "spawnDepth");
	if (json_is_integer(depth))
		json_object_set(card, "depth", depth);
	json_decref(meta);
}

int64_t card_process_start(int64_t pid)
{
	char path[40], text[1024], *after;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
	fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = 0;
	after = strrchr(text, ')'); /* its name may have blanks */
	for (int field = 2; after && field < 22; field++)
		after = strchr(after + 1, ' ');
	return after ? atoll(after + 1) : -1;
}

bool card_process_lives(const json_t *card)
{
	const json_t *process = json_object_get(card, "process");
	int64_t start = card_process_start(json_get_int(process, "pid", 0));

	return start >= 0 && start == json_get_int(process, "startTicks", -1);
}

bool card_agent(const char *file, char out[CARD_NAME_MAX + 1])
{
	size_t len = strlen(file), n = len > 5 ? len - 5 : 0;

	if (n == 0 || n > CARD_NAME_MAX || strcmp(file + n, ".json") != 0)
		return false;
	memcpy(out, file, n);
	out[n] = 0;
	return card_is_name(out);
}
