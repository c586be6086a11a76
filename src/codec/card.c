/* Cards of Claude Code's subagents; see card.h.
 *
 * Nothing is kept between calls. A file that is unreadable, a link, no JSON or without a card's
 * required members is no card: readers skip it, and the agent's next event makes a new one. */
#include "codec/card.h"

#include <ava.h>
#include <errno.h>
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
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"

int card_home(char *out, size_t size, struct ava_error *err)
{
	const char *config = env_get("CLAUDE_CONFIG_DIR"), *home = env_get("HOME");
	int n;

	if (config && strncmp(config, "~/", 2) == 0 && home) /* expand ~ as a shell does */
		n = snprintf(out, size, "%s%s", home, config + 1);
	else if (config && *config)
		n = snprintf(out, size, "%s", config);
	else if (home && *home)
		n = snprintf(out, size, "%s/.claude", home);
	else
		return err_set(err, AVA_EINVAL, "neither HOME nor CLAUDE_CONFIG_DIR is set");
	return (size_t)n < size
		       ? 0
		       : err_set(err, AVA_ETOOBIG, "the path of Claude Code's folder is too long");
}

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-"

bool card_is_name(const char *s)
{
	size_t n = s ? strlen(s) : 0;

	return n > 0 && n <= CARD_NAME_MAX && s[0] != '.' && strspn(s, PLAIN) == n;
}

/* Escaped as in a URL; a name too long for a file is its hash, behind a prefix that no escaped
 * name has. */
void card_name(const char *agent, char out[CARD_NAME_MAX + 1])
{
	size_t n = 0;

	for (const char *s = agent; *s; s++) {
		if (n + 3 > CARD_NAME_MAX) {
			memcpy(out, "%-", 2);
			hash_sha256_hex(agent, strlen(agent), out + 2);
			return;
		}
		if (strchr(PLAIN, *s) && (*s != '.' || s > agent)) {
			out[n++] = *s;
		} else {
			out[n++] = '%';
			hash_hex((const unsigned char *)s, 1, out + n);
			n += 2;
		}
	}
	out[n] = 0;
}

json_t *card_read_object(int dir, const char *name, struct ava_error *err)
{
	char file[CARD_NAME_MAX + 8], *text = NULL;
	json_t *o = NULL;
	struct stat st;
	size_t len = 0;

	snprintf(file, sizeof(file), "%s.json", name);
	/* A link is refused: nobody meant to show its target. */
	if (fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		err_set(err, AVA_EINVAL, "it is no regular file");
	else if (sys_read_file(dir, file, CARD_MAX, &text, &len, err) == 0)
		o = json_read_others(text, len, err);
	free(text);
	if (o && !json_is_object(o))
		err_set(err, AVA_EINVAL, "it is no JSON object");
	if (json_is_object(o))
		return o;
	json_decref(o);
	return NULL;
}

/* Remove members of the wrong type, so that readers need not check. */
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
		{"team", JSON_STRING},          {"taskList", JSON_STRING},
		{"pidSpace", JSON_INTEGER},     {"ghost", JSON_NULL}, /* only avad sets `ghost` */
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

json_t *card_read(int dir, const char *name)
{
	json_t *card = card_read_object(dir, name, NULL);
	const char *status = json_str(card, "status");
	char own[CARD_NAME_MAX + 1];

	card_name(json_str(card, "agentId"), own);
	if (*own && (strcmp(own, name) == 0 || strcmp(json_str(card, "agentId"), name) == 0) &&
	    *json_str(card, "type") && card_time(card, "updatedAt") >= 0 &&
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

void card_add_meta(json_t *card, struct ava_error *err)
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
		meta = json_read_others(text, len, err);
	free(text);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (*json_str(meta, texts[i]))
			json_object_set(card, texts[i], json_object_get(meta, texts[i]));
	depth = json_object_get(meta, "spawnDepth");
	if (json_is_integer(depth))
		json_object_set(card, "depth", depth);
	json_decref(meta);
}

struct card_proc {
	long long parent, start; /* id of the parent; start in ticks since boot */
	bool shell;
};

/* 1: the process runs; 0: gone, or a zombie; -1: unknown. */
static int proc_read(int64_t pid, struct card_proc *p)
{
	char path[40], text[1024], *after, state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
	fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return pid > 0 && errno == ENOENT ? 0 : -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return n < 0 && errno == ESRCH ? 0 : -1;
	text[n] = 0;
	after = strrchr(text, ')'); /* a process name may have blanks */
	if (!after || sscanf(after,
			     ") %c %lld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			     "%*s %*s %*s %lld",
			     &state, &p->parent, &p->start) != 3)
		return -1;
	p->shell = memcmp(after - 2, "sh", 2) == 0;
	return state != 'Z' && state != 'X';
}

/* The PID namespace of this process: a container has its own. */
static int64_t proc_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (int64_t)st.st_ino : 0;
}

void card_add_process(json_t *card, int64_t pid)
{
	struct card_proc p;
	int64_t at = pid > 0 ? pid : getppid();
	bool there;

	while ((there = proc_read(at, &p) == 1) && pid <= 0 && p.shell && p.parent > 1)
		at = p.parent; /* a shell in between ends with us */
	if (!there)
		return;
	json_object_set_new(
		card, "process",
		json_pack("{s:I,s:I}", "pid", (json_int_t)at, "startTicks", (json_int_t)p.start));
	json_object_set_new(card, "pidSpace", json_integer(proc_space()));
}

enum card_life card_life(const json_t *card)
{
	const json_t *process = json_object_get(card, "process");
	struct card_proc p;
	int rv;

	if (!process || json_get_int(card, "pidSpace", proc_space()) != proc_space())
		return CARD_UNKNOWN;
	rv = proc_read(json_get_int(process, "pid", 0), &p);
	if (rv < 0)
		return CARD_UNKNOWN;
	return rv && p.start == json_get_int(process, "startTicks", -1) ? CARD_LIVES : CARD_DEAD;
}

bool card_stem(const char *file, char out[CARD_NAME_MAX + 1])
{
	size_t len = strlen(file), n = len > 5 ? len - 5 : 0;

	if (n == 0 || n > CARD_NAME_MAX || *file == '.' || strcmp(file + n, ".json") != 0)
		return false;
	memcpy(out, file, n);
	out[n] = 0;
	return true;
}

void card_names_add(const char *name, void *user)
{
	struct card_names *all = user;

	if (all->n == all->max || !ARRAY_ROOM(all->v, all->cap, all->n + 1))
		return;
	if (!all->folders)
		all->n += card_stem(name, all->v[all->n]);
	else if (card_is_name(name))
		snprintf(all->v[all->n++], sizeof(all->v[0]), "%s", name);
}
