/* Putting the command line of bubblewrap together; see sandbox.h.
 *
 * Happy path: find the two programs once, then for each command a vector of bwrap's
 * options. Mounts are made in the order of the options, so what hides (an empty folder over
 * one of ava's own) comes behind what it hides, and the project behind /tmp and /home,
 * since it may lie in one of them. Options and their order: bwrap(1), 0.8. */
#include "exec/sandbox.h"

#include <ava.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"

#define INSIDE    "/ava/sandbox"
#define TMP_BYTES "268435456" /* size of /tmp and of /dev/shm, which are memory */
#define ENV_MAX   96
#define ARGS_MAX  1600 /* 64 folders to read and 64 to write need 1,200 */

const char *const sandbox_env[] = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/games",
				   "HOME=" SANDBOX_WORK,
				   "TMPDIR=/tmp",
				   "LANG=C.UTF-8",
				   "TERM=dumb",
				   "PYTHONDONTWRITEBYTECODE=1",
				   NULL};

/* 5 is INFO of exec/inside.c. /usr is shown as it is, merged (Debian 12 and later) or not. */
static const char *const fixed[] = {"--unshare-user",
				    "--unshare-pid",
				    "--unshare-ipc",
				    "--unshare-uts",
				    "--unshare-cgroup-try",
				    "--hostname",
				    "sandbox",
				    "--die-with-parent",
				    "--new-session",
				    "--cap-drop",
				    "ALL",
				    "--info-fd",
				    "5",
				    "--ro-bind",
				    "/usr",
				    "/usr"};
static const char *const top[] = {"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"};
/* Not all of ssl: /etc/ssl/private has the keys of this machine's servers. */
static const char *const etc[] = {"/etc/alternatives",   "/etc/group",        "/etc/ld.so.cache",
				  "/etc/ld.so.conf",     "/etc/ld.so.conf.d", "/etc/localtime",
				  "/etc/nsswitch.conf",  "/etc/passwd",       "/etc/ssl/certs",
				  "/etc/ssl/openssl.cnf"};
/* Files for looking up names of the network. */
static const char *const etc_net[] = {"/etc/gai.conf", "/etc/hosts", "/etc/resolv.conf"};
static const char *const made[] = {
	"--proc",       "/proc", "--dev",  "/dev",    "--size",  TMP_BYTES, "--tmpfs", "/dev/shm",
	"--remount-ro", "/dev",  "--size", TMP_BYTES, "--tmpfs", "/tmp",    "--dir",   "/ava",
};

/* Files with which root reads the state of the whole machine. */
static const char *const hidden[] = {"/proc/keys",        "/proc/key-users",   "/proc/timer_list",
				     "/proc/sched_debug", "/proc/vmallocinfo", "/proc/slabinfo",
				     "/proc/config.gz"};

struct args {
	const char **v; /* arguments, with the texts of links behind them */
	size_t n;
	char *text;
};

static void sandbox_add(struct args *a, const char *one, const char *two, const char *three)
{
	const char *part[] = {one, two, three};

	for (size_t i = 0; i < ARRAY_LEN(part); i++)
		if (part[i] && a->n < ARGS_MAX - 1)
			a->v[a->n++] = part[i];
}

static void add_all(struct args *a, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sandbox_add(a, v[i], NULL, NULL);
}

/* Add a folder of the top: as a link, on a merged /usr, or as it is. */
static void add_top(struct args *a, const char *path)
{
	char to[PATH_MAX];
	ssize_t n = readlink(path, to, sizeof(to) - 1);

	if (n <= 0) {
		sandbox_add(a, "--ro-bind-try", path, path);
		return;
	}
	to[n] = 0;
	n = snprintf(a->text, PATH_MAX, "%s", to);
	sandbox_add(a, "--symlink", a->text, path);
	a->text += n + 1;
}

bool sandbox_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Refuse a shown path that is the whole file system, the sandbox's own, or ava's. */
static int check_shown(const struct sandbox *s, const char *path, struct ava_error *err)
{
	static const char *const taken[] = {"/ava", "/proc", "/dev", "/sys"};

	if (strcmp(path, "/") == 0)
		return err_set(err, AVA_EUNSUPPORTED,
			       "the whole file system is no project: start in a folder of it");
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		if (sandbox_below(path, taken[i]))
			return err_set(err, AVA_EUNSUPPORTED,
				       "%.300s cannot be shown in a sandbox, which has its own %s",
				       path, taken[i]);
	for (size_t i = 0; s->keep_out && s->keep_out[i]; i++)
		if (sandbox_below(path, s->keep_out[i]))
			return err_set(err, AVA_EDENIED,
				       "%.300s is a folder of ava's own: no command is run in it",
				       path);
	return 0;
}

/* Show ava's folders within a shown one as empty. */
static void add_hidden(struct args *a, const struct sandbox *s, const char *shown)
{
	for (size_t i = 0; s->keep_out && s->keep_out[i]; i++)
		if (sandbox_below(s->keep_out[i], shown) && access(s->keep_out[i], F_OK) == 0)
			sandbox_add(a, "--tmpfs", s->keep_out[i], NULL);
}

/* The copy has no .git: show the project's own read-only, unless it is a link, which could lead
 * elsewhere. */
static void add_copy(struct args *a, const struct sandbox *s)
{
	struct stat st;
	int n = snprintf(a->text, PATH_MAX, "%s/.git", s->project);

	sandbox_add(a, "--bind", s->copy, s->project);
	if (n >= PATH_MAX || lstat(a->text, &st) != 0 ||
	    (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return;
	sandbox_add(a, "--ro-bind", a->text, a->text);
	a->text += n + 1;
}

static const char **bare_argv(const struct sandbox *s, struct ava_error *err)
{
	bool in_work = strcmp(s->start, SANDBOX_WORK) == 0;
	struct args a;

	if (s->copy) { /* only a mount can show the copy under the project's path */
		err_set(err, AVA_EUNSUPPORTED,
			"a run that may change files runs commands in the sandbox only");
		return NULL;
	}
	a = (struct args){.v = calloc(ARGS_MAX, sizeof(*a.v))};
	if (!a.v) {
		err_set(err, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	sandbox_add(&a, s->inside, "--outside", s->inside);
	sandbox_add(&a, s->work, in_work ? s->work : s->start, NULL);
	for (size_t i = 0; s->argv[i]; i++)
		sandbox_add(&a, s->argv[i], NULL, NULL);
	return a.v;
}

const char **sandbox_argv(const struct sandbox *s, struct ava_error *err)
{
	struct args a;
	int rv;

	if (s->bare)
		return bare_argv(s, err);
	rv = s->project[0] ? check_shown(s, s->project, err) : 0;
	for (size_t i = 0; rv == 0 && s->reads && s->reads[i]; i++)
		rv = check_shown(s, s->reads[i], err);
	for (size_t i = 0; rv == 0 && s->writes && s->writes[i]; i++)
		rv = check_shown(s, s->writes[i], err);
	if (rv != 0)
		return NULL;
	a.v = calloc(1, ARGS_MAX * sizeof(*a.v) + (ARRAY_LEN(top) + 1) * PATH_MAX);
	a.n = 0;
	if (!a.v) {
		err_set(err, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	a.text = (char *)(a.v + ARGS_MAX);
	sandbox_add(&a, s->inside, "--outside", s->bwrap);
	add_all(&a, fixed, ARRAY_LEN(fixed));
	if (!s->network)
		sandbox_add(&a, "--unshare-net", NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(top); i++)
		add_top(&a, top[i]);
	for (size_t i = 0; i < ARRAY_LEN(etc); i++)
		sandbox_add(&a, "--ro-bind-try", etc[i], etc[i]);
	for (size_t i = 0; s->network && i < ARRAY_LEN(etc_net); i++)
		sandbox_add(&a, "--ro-bind-try", etc_net[i], etc_net[i]);
	add_all(&a, made, ARRAY_LEN(made));
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		if (access(hidden[i], F_OK) == 0)
			sandbox_add(&a, "--ro-bind", "/dev/null", hidden[i]);
	if (s->project[0] && s->copy) {
		add_copy(&a, s);
	} else if (s->project[0]) {
		sandbox_add(&a, "--ro-bind", s->project, s->project);
		add_hidden(&a, s, s->project);
	}
	/* Add the folders and files that a person named, each under its own path. */
	for (size_t i = 0; s->reads && s->reads[i]; i++)
		sandbox_add(&a, "--ro-bind", s->reads[i], s->reads[i]);
	for (size_t i = 0; s->writes && s->writes[i]; i++)
		sandbox_add(&a, "--bind", s->writes[i], s->writes[i]);
	for (size_t i = 0; s->reads && s->reads[i]; i++)
		add_hidden(&a, s, s->reads[i]);
	for (size_t i = 0; s->writes && s->writes[i]; i++)
		add_hidden(&a, s, s->writes[i]);
	if (s->work)
		sandbox_add(&a, "--bind", s->work, SANDBOX_WORK);
	else
		sandbox_add(&a, "--dir", SANDBOX_WORK, NULL);
	if (s->tool)
		sandbox_add(&a, "--ro-bind", s->tool, SANDBOX_TOOL);
	sandbox_add(&a, "--ro-bind", s->inside, INSIDE);
	sandbox_add(&a, "--remount-ro", "/", NULL);
	sandbox_add(&a, "--chdir", "/", "--");
	sandbox_add(&a, INSIDE, s->network ? "--network" : NULL, NULL);
	if (s->copy)
		sandbox_add(&a, "--writes", s->project, NULL);
	for (size_t i = 0; s->writes && s->writes[i]; i++)
		sandbox_add(&a, "--writes", s->writes[i], NULL);
	sandbox_add(&a, SANDBOX_WORK, s->start, NULL);
	for (size_t i = 0; s->argv[i]; i++)
		sandbox_add(&a, s->argv[i], NULL, NULL);
	return a.v;
}

const char *sandbox_layers(const char *told)
{
	return strstr(told, "{\"landlock\"");
}

const char *sandbox_remedy(const char *proc)
{
	static const struct {
		const char *file;
		char forbids;
		const char *remedy;
	} switches[] = {
		{"kernel/apparmor_restrict_unprivileged_userns", '1',
		 "AppArmor keeps user namespaces from it: add the profile for bwrap that stands in "
		 "doc/SECURITY.md, or set kernel.apparmor_restrict_unprivileged_userns=0 (sysctl)"},
		{"kernel/unprivileged_userns_clone", '0',
		 "this kernel keeps user namespaces from users: set "
		 "kernel.unprivileged_userns_clone=1 (sysctl)"},
		{"user/max_user_namespaces", '0',
		 "this kernel allows no user namespaces: set user.max_user_namespaces=15000 "
		 "(sysctl)"},
	};
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(switches); i++) {
		FILE *f;
		int c;

		snprintf(path, sizeof(path), "%s/%s", proc, switches[i].file);
		f = fopen(path, "re");
		c = f ? getc(f) : EOF;
		if (f)
			fclose(f);
		if (c == switches[i].forbids)
			return switches[i].remedy;
	}
	return "this machine has to allow user namespaces to bubblewrap (in a container: "
	       "--security-opt seccomp=unconfined --security-opt apparmor=unconfined; a chroot "
	       "has none)";
}

/* ---- the two programs */

static char *sandbox_found(const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path) ||
	    stat(path, &st) != 0 || !S_ISREG(st.st_mode) || access(path, X_OK) != 0)
		return NULL;
	return strdup(path);
}

/* The program beside this one, as it is built, or where it is installed. */
char *sandbox_find_tool(const char *name)
{
	static const char *const at[] = {"", "/../libexec/ava"};
	char self[PATH_MAX], folder[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash, *path = NULL;

	self[n > 0 ? n : 0] = 0;
	slash = strrchr(self, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; slash && !path && i < ARRAY_LEN(at); i++) {
		if ((size_t)snprintf(folder, sizeof(folder), "%s%s", self, at[i]) < sizeof(folder))
			path = sandbox_found(folder, name);
	}
	return path;
}

int sandbox_find(char **bwrap, char **inside, struct ava_error *err)
{
	static const char *const folders[] = {"/usr/bin", "/usr/local/bin", "/bin"};

	*bwrap = *inside = NULL;
	for (size_t i = 0; !*bwrap && i < ARRAY_LEN(folders); i++)
		*bwrap = sandbox_found(folders[i], "bwrap");
	*inside = sandbox_find_tool("ava-sandbox");
	if (*bwrap && *inside)
		return 0;
	if (!*bwrap)
		err_set(err, AVA_EUNSUPPORTED,
			"there is no bwrap, which commands are kept in: apt install bubblewrap");
	else
		err_set(err, AVA_EUNSUPPORTED,
			"ava-sandbox is missing beside avad: install ava again");
	free(*bwrap);
	*bwrap = NULL;
	return err->code;
}

/* ---- starting */

/* Add `own`; the first of each name stays. */
static size_t add_env(const char *out[ENV_MAX], size_t n, const char *const *own)
{
	for (; own && *own && n < ENV_MAX - 1; own++) {
		size_t len = strcspn(*own, "=") + 1, k = 0;

		while (k < n && strncmp(out[k], *own, len) != 0)
			k++;
		if (k == n)
			out[n++] = *own;
	}
	return n;
}

int sandbox_start(struct exec_child **child, struct os_loop *loop, const struct sandbox *s,
		  const struct exec_options *o, exec_done_fn done, void *user,
		  struct ava_error *err)
{
	char *bwrap = NULL, *inside = NULL;
	char home[PATH_MAX + 8], temp[PATH_MAX + 8];
	/* Without mounts, the work folder has its path on this machine. */
	const char *const bare[] = {home, temp, NULL};
	const char *env[ENV_MAX] = {NULL}, **argv = NULL;
	struct sandbox box = *s;
	struct exec_options how = *o;
	int rv = s->inside ? 0 : sandbox_find(&bwrap, &inside, err);

	if (rv == 0 && !s->inside) {
		box.bwrap = bwrap;
		box.inside = inside;
	}
	if (s->bare) {
		snprintf(home, sizeof(home), "HOME=%s", s->work);
		snprintf(temp, sizeof(temp), "TMPDIR=%s", s->work);
	}
	if (rv == 0) {
		add_env(env, add_env(env, add_env(env, 0, s->env), s->bare ? bare : NULL),
			sandbox_env);
		argv = sandbox_argv(&box, err);
		rv = argv ? 0 : err->code;
	}
	how.argv = argv;
	how.env = env;
	how.sandboxed = true;
	rv = rv ? rv : exec_start(child, loop, &how, done, user, err);
	free(argv);
	free(bwrap);
	free(inside);
	return rv;
}
