/* ava-sandbox [--network] [--writes PATH]... WORK FOLDER PROGRAM ARGUMENT...: the second half of
 * the sandbox (exec/sandbox.h), the first thing that runs in the namespaces that bubblewrap has
 * made.
 *
 * It goes into its control group, where descriptor 4 is one, sets the limits of resources, then
 * Landlock, then seccomp, says on descriptor 3 which of them hold, closes all but 0 to 2 and
 * becomes PROGRAM. Landlock is as good as the kernel has it (none is no reason to stop: the mounts
 * stand); without seccomp nothing is run, since that alone keeps off sockets of the file system and
 * the terminal. A FOLDER that is not there is the command's failure, not the sandbox's. Linked
 * statically: it needs nothing of what is mounted.
 *
 * The list of system calls: those that reach a network, another process or the kernel's insides,
 * or make new namespaces. EPERM, so that a program that only tries goes on. The structs of
 * Landlock stand here by the version of its interface, since headers are older than kernels:
 * https://docs.kernel.org/userspace-api/landlock.html
 *
 * ava-sandbox --outside PROGRAM ARGUMENT...: runs bubblewrap, and ends when all of it has. It is
 * what dies last: bubblewrap, killed while it starts (--die-with-parent does that), leaves the
 * first process of its namespace waiting for a word of its for ever. So this one, and not avad, is
 * its parent; told to end (SIGTERM; avad's end; nobody reading descriptor 3 any more), it kills
 * both, and by being their reaper it knows that they are gone. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOLD   3           /* descriptor on which this program tells its layers */
#define CGROUP 4           /* descriptor of cgroup.procs of the command's group; may be closed */
#define INFO   5           /* descriptor on which bubblewrap names the namespace's first process */
#define APART  "/ava/work" /* path of WORK in namespaces of our own */

#define GB               (1ull << 30)
#define LIMIT_PROCESSES  256      /* processes of a user in this namespace */
#define LIMIT_MEMORY     (2 * GB) /* writable bytes of a process */
#define LIMIT_ADDRESSES  (64 * GB)
#define LIMIT_FILE       GB
#define LIMIT_OPEN_FILES 1024
#define LIMIT_CPU        7200 /* seconds of a process */
#define NICER            10   /* also set in exec/child.c, but maybe too late for bubblewrap */

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static _Noreturn void inside_fail(const char *what)
{
	fprintf(stderr, "ava-sandbox: %s: %s\n", what, strerror(errno));
	exit(125);
}

/* ---- limits */

/* `apart`: in a namespace of its own; else the whole machine's processes would count. */
static void inside_set_limits(bool apart)
{
	const struct {
		int which;
		rlim_t value;
	} limits[] = {
		{RLIMIT_NPROC, apart ? LIMIT_PROCESSES : RLIM_INFINITY},
		{RLIMIT_CPU, LIMIT_CPU},
		{RLIMIT_DATA, LIMIT_MEMORY},
		{RLIMIT_AS, LIMIT_ADDRESSES},
		{RLIMIT_FSIZE, LIMIT_FILE},
		{RLIMIT_NOFILE, LIMIT_OPEN_FILES},
		{RLIMIT_CORE, 0},
		{RLIMIT_MEMLOCK, 0},
		{RLIMIT_MSGQUEUE, 0},
	};
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	/* Without memory the kernel kills a command first, never the daemon. */
	if (fd < 0 || write(fd, "1000", 4) != 4)
		inside_fail("oom_score_adj");
	close(fd);
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct rlimit now, to = {limits[i].value, limits[i].value};

		if (getrlimit(limits[i].which, &now) == 0 && now.rlim_max < to.rlim_max)
			to.rlim_cur = to.rlim_max = now.rlim_max;
		if (setrlimit(limits[i].which, &to) != 0)
			inside_fail("setrlimit");
	}
}

/* ---- Landlock */

#define FS_EXECUTE    (1ull << 0)
#define FS_WRITE_FILE (1ull << 1)
#define FS_READ_FILE  (1ull << 2)
#define FS_READ_DIR   (1ull << 3)
#define FS_REFER      (1ull << 13) /* since ABI 2 */
#define FS_TRUNCATE   (1ull << 14) /* since ABI 3 */
#define FS_IOCTL_DEV  (1ull << 15) /* since ABI 5 */
#define FS_READ       (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)
/* Remove, make: folder, file, FIFO, link; no device and no socket. */
#define FS_MAKE  (1ull << 4 | 1ull << 5 | 1ull << 7 | 1ull << 8 | 1ull << 10 | 1ull << 12)
#define FS_WRITE (FS_MAKE | FS_WRITE_FILE | FS_REFER | FS_TRUNCATE)

struct rules {
	uint64_t handled_fs;
	uint64_t handled_net; /* since ABI 4 */
	uint64_t scoped;      /* since ABI 6 */
};
struct rule_path {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

static void allow(int set, const char *path, uint64_t what)
{
	struct rule_path rule = {what, open(path, O_PATH | O_CLOEXEC)};

	if (rule.parent < 0)
		inside_fail(path);
	if (syscall(SYS_landlock_add_rule, set, 1 /* a rule for all below a path */, &rule, 0) != 0)
		inside_fail("a rule of Landlock");
	close(rule.parent);
}

/* Grants beside WORK: writable paths and the network. */
struct given {
	char *const *writes; /* pairs of "--writes" and a path */
	int nwrites;
	bool network;
};

/* Returns the version of Landlock's interface; 0: the kernel has none. */
static int set_landlock(const char *work, const struct given *g, bool apart)
{
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* asks for the version */);
	struct rules rules = {.handled_fs = (1ull << 13) - 1};
	size_t size = sizeof(rules.handled_fs);
	uint64_t file = FS_EXECUTE | FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE;
	struct stat st;
	int set;

	if (abi < 1)
		return 0;
	rules.handled_fs |= abi >= 2 ? FS_REFER : 0;
	rules.handled_fs |= abi >= 3 ? FS_TRUNCATE : 0;
	rules.handled_fs |= abi >= 5 ? FS_IOCTL_DEV : 0;
	if (abi >= 4) {
		rules.handled_net = g->network ? 0 : 3; /* 3: bind and connect of TCP */
		size = 2 * sizeof(uint64_t);
	}
	if (abi >= 6) {
		rules.scoped = 3; /* 3: abstract sockets and signals */
		size = sizeof(rules);
	}
	set = (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
	if (set < 0)
		inside_fail("Landlock");
	allow(set, "/", FS_READ & rules.handled_fs);
	allow(set, work, (FS_READ | FS_WRITE) & rules.handled_fs);
	for (int i = 0; i < g->nwrites; i++) {
		const char *path = g->writes[2 * i + 1];
		bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);

		/* A file has fewer rights than a folder. */
		allow(set, path, (folder ? FS_READ | FS_WRITE : file) & rules.handled_fs);
	}
	if (apart) { /* else they are the machine's own folders */
		allow(set, "/tmp", (FS_READ | FS_WRITE) & rules.handled_fs);
		allow(set, "/dev/shm", (FS_READ | FS_WRITE) & rules.handled_fs);
	}
	allow(set, "/dev", (FS_READ | FS_WRITE_FILE | FS_IOCTL_DEV) & rules.handled_fs);
	if (syscall(SYS_landlock_restrict_self, set, 0) != 0)
		inside_fail("Landlock");
	close(set);
	return abi;
}

/* ---- seccomp */

#define CALL(name) SCMP_SYS(name)

/* Calls for a network, or for other processes' sockets. */
static const int refused_network[] = {CALL(socket), CALL(connect), CALL(bind),
				      CALL(listen), CALL(accept),  CALL(accept4)};

static const int refused[] = {
	/* io_uring makes sockets, too */
	CALL(io_uring_setup), CALL(io_uring_enter), CALL(io_uring_register),
	/* access to other processes */
	CALL(ptrace), CALL(process_vm_readv), CALL(process_vm_writev), CALL(process_madvise),
	CALL(kcmp), CALL(pidfd_getfd), CALL(perf_event_open),
	/* the kernel's insides */
	CALL(bpf), CALL(userfaultfd), CALL(keyctl), CALL(add_key), CALL(request_key),
	CALL(init_module), CALL(finit_module), CALL(delete_module), CALL(kexec_load),
	CALL(kexec_file_load), CALL(iopl), CALL(ioperm), CALL(syslog), CALL(acct), CALL(quotactl),
	CALL(reboot), CALL(swapon), CALL(swapoff), CALL(settimeofday), CALL(clock_settime),
	CALL(clock_adjtime), CALL(adjtimex), CALL(vhangup), CALL(lookup_dcookie), CALL(nfsservctl),
	CALL(open_by_handle_at), CALL(name_to_handle_at), CALL(fanotify_init),
	/* namespaces and mounts */
	CALL(unshare), CALL(setns), CALL(mount), CALL(umount2), CALL(pivot_root), CALL(chroot),
	CALL(open_tree), CALL(move_mount), CALL(fsopen), CALL(fsconfig), CALL(fsmount),
	CALL(fspick), CALL(mount_setattr), CALL(mknod), CALL(mknodat), CALL(personality),
	CALL(sethostname), CALL(setdomainname)};

static int inside_refuse(scmp_filter_ctx f, int call, unsigned n, struct scmp_arg_cmp cmp)
{
	int rv = seccomp_rule_add_array(f, SCMP_ACT_ERRNO(EPERM), call, n, &cmp);

	return rv == -EDOM ? 0 : rv; /* EDOM: this machine has no such call */
}

/* No mode with set-user-ID or set-group-ID: such files stay in the work folder behind the command
 * and give whoever runs them another's rights. Where `flags` counts, only a call that creates a
 * file has a mode. Git, cp and tar give set-group-ID to folders of a shared project by chmod; no
 * filter tells a folder from a file, so a chmod with that bit alone changes nothing and gives no
 * error: POSIX lets a system ignore it. mkdir ignores both by itself. */
#define FCHMODAT2 452 /* the number on all machines; older headers lack it */

static const struct mode_call {
	int call;
	unsigned mode, flags; /* index of each argument; flags 0: there is none */
	int group;            /* the filter's answer for set-group-ID alone */
} mode_calls[] = {
	{CALL(chmod), 1, 0, 0},      {CALL(fchmod), 1, 0, 0},    {CALL(fchmodat), 2, 0, 0},
	{FCHMODAT2, 2, 0, 0},        {CALL(creat), 1, 0, EPERM}, {CALL(open), 2, 1, EPERM},
	{CALL(openat), 3, 2, EPERM},
};

static int refuse_modes(scmp_filter_ctx f, const struct mode_call *c, int error, uint64_t mask,
			uint64_t bits)
{
	static const uint64_t makes[] = {O_CREAT, O_TMPFILE & ~(uint64_t)O_DIRECTORY};
	struct scmp_arg_cmp cmp[] = {SCMP_CMP64(c->mode, SCMP_CMP_MASKED_EQ, mask, bits),
				     SCMP_CMP64(c->flags, SCMP_CMP_MASKED_EQ, 0, 0)};
	int rv = 0;

	for (size_t i = 0; rv == 0 && i < (c->flags > 0 ? ARRAY_LEN(makes) : 1); i++) {
		cmp[1].datum_a = cmp[1].datum_b = makes[i];
		rv = seccomp_rule_add_array(f, SCMP_ACT_ERRNO((unsigned)error), c->call,
					    c->flags > 0 ? 2 : 1, cmp);
	}
	return rv == -EDOM ? 0 : rv;
}

#define NEW_NAMESPACES 0x7e020080ull /* CLONE_NEW*: cgroup uts ipc user pid net, ns, time */

static void set_seccomp(bool network)
{
	static const unsigned long type_in[] = {0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */};
	static const int unread[] = {CALL(clone3), CALL(openat2)};
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	int rv = f ? 0 : -ENOMEM;

	if (f) {
		rv = seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
		(void)seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* 2: a binary tree */
	}
	for (size_t i = 0; rv == 0 && i < ARRAY_LEN(refused); i++)
		rv = inside_refuse(f, refused[i], 0, SCMP_A0(SCMP_CMP_EQ, 0));
	for (size_t i = 0; rv == 0 && !network && i < ARRAY_LEN(refused_network); i++)
		rv = inside_refuse(f, refused_network[i], 0, SCMP_A0(SCMP_CMP_EQ, 0));
	rv = rv ? rv : inside_refuse(f, CALL(socketpair), 1, SCMP_A0_64(SCMP_CMP_NE, AF_UNIX));
	/* A datagram socket (or raw, which is the same) can send to any socket of the file system
	 * by its path: types of streams and SOCK_SEQPACKET lack this bit. */
	rv = rv ? rv
		: inside_refuse(f, CALL(socketpair), 1,
				SCMP_A1_64(SCMP_CMP_MASKED_EQ, SOCK_DGRAM, SOCK_DGRAM));
	/* The kernel reads the lower half of the request only. */
	for (size_t i = 0; rv == 0 && i < ARRAY_LEN(type_in); i++)
		rv = inside_refuse(f, CALL(ioctl), 1,
				   SCMP_A1_64(SCMP_CMP_MASKED_EQ, UINT32_MAX, type_in[i]));
	for (uint64_t bit = 1; rv == 0 && bit <= NEW_NAMESPACES; bit <<= 1) {
		if (bit & NEW_NAMESPACES)
			rv = inside_refuse(f, CALL(clone), 1,
					   SCMP_A0_64(SCMP_CMP_MASKED_EQ, bit, bit));
	}
	for (size_t i = 0; rv == 0 && i < ARRAY_LEN(mode_calls); i++) {
		const struct mode_call *c = &mode_calls[i];

		rv = refuse_modes(f, c, EPERM, S_ISUID, S_ISUID);
		rv = rv ? rv : refuse_modes(f, c, c->group, S_ISUID | S_ISGID, S_ISGID);
	}
	/* Flags of these calls are in memory, which no filter reads; programs then fall back to
	 * clone and openat. */
	for (size_t i = 0; rv == 0 && i < ARRAY_LEN(unread); i++)
		rv = seccomp_rule_add_array(f, SCMP_ACT_ERRNO(ENOSYS), unread[i], 0, NULL);
	rv = rv ? rv : seccomp_load(f);
	seccomp_release(f);
	if (rv != 0) {
		errno = -rv;
		inside_fail("seccomp");
	}
}

/* ---- outside */

/* Start bubblewrap, or the program in its place, as the leader of a group; its child is in the
 * group until bubblewrap has named it. */
static pid_t inside_start(char *const *argv, int info)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	sigset_t none;
	pid_t pid = 0;

	sigemptyset(&none);
	errno = posix_spawn_file_actions_init(&fa);
	errno = errno ? errno : posix_spawn_file_actions_adddup2(&fa, info, INFO);
	errno = errno ? errno : posix_spawnattr_init(&at);
	if (errno != 0)
		inside_fail("what starts it");
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&at, 0);
	posix_spawnattr_setsigmask(&at, &none);
	errno = posix_spawn(&pid, argv[0], &fa, &at, argv, environ);
	if (errno != 0)
		inside_fail(argv[0]);
	return pid;
}

static int inside_outside(char *const *argv)
{
	static const char key[] = "\"child-pid\":";
	char text[512], *at;
	ssize_t n;
	sigset_t term;
	int info[2], status = 0;
	pid_t pid, leader;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &term, NULL) != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || pipe2(info, O_CLOEXEC | O_NONBLOCK) != 0)
		inside_fail("what ends it");
	(void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, (id_t)getppid()) + NICER);
	pid = inside_start(argv, info[1]);

	struct pollfd ends[] = {{.fd = pidfd_open(pid, 0), .events = POLLIN},
				{.fd = signalfd(-1, &term, SFD_CLOEXEC), .events = POLLIN},
				{.fd = TOLD}};

	while (ends[0].fd >= 0 && ends[1].fd >= 0 && poll(ends, ARRAY_LEN(ends), -1) < 0 &&
	       errno == EINTR)
		;
	(void)kill(-pid, SIGKILL); /* before reaping: until then nobody else has the number */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	/* The first process of the namespace. bubblewrap, which has ended now, named it before
	 * that process went on. */
	n = read(info[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, key);
	leader = at ? (pid_t)strtol(at + sizeof(key) - 1, NULL, 10) : 0;
	/* A process that bubblewrap has not reaped is our child now. */
	if (leader > 0 && waitpid(leader, NULL, WNOHANG) == 0) {
		(void)kill(leader, SIGKILL);
		(void)waitpid(leader, NULL, 0);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct given given = {0};
	bool apart, grouped;
	char said[128];
	int n, abi;

	if (argc > 2 && strcmp(argv[1], "--outside") == 0)
		return inside_outside(argv + 2);
	if (argc > 1 && strcmp(argv[1], "--network") == 0) {
		given.network = true;
		argv++;
		argc--;
	}
	given.writes = argv + 1;
	for (; argc > 2 && strcmp(argv[1], "--writes") == 0; argc -= 2, argv += 2)
		given.nwrites++;
	apart = argc > 1 && strcmp(argv[1], APART) == 0;
	if (argc < 4) {
		fprintf(stderr, "usage: ava-sandbox [--network] [--writes PATH]... WORK FOLDER "
				"PROGRAM [ARGUMENT...]: what avad runs commands with; see ava "
				"doctor\n");
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		inside_fail("no_new_privs");
	/* In its namespace bubblewrap does the same. */
	if (!apart && prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		inside_fail("pdeathsig");
	grouped = write(CGROUP, "0", 1) == 1;
	inside_set_limits(apart);
	abi = set_landlock(argv[1], &given, apart);
	set_seccomp(given.network);
	n = snprintf(said, sizeof(said),
		     "{\"landlock\":%d,\"seccomp\":true,\"namespaces\":%s,\"cgroup\":%s}\n", abi,
		     apart ? "true" : "false", grouped ? "true" : "false");
	if (write(TOLD, said, (size_t)n) != n)
		inside_fail("saying what holds");
	if (syscall(SYS_close_range, 3u, ~0u, 0u) != 0)
		inside_fail("close_range");
	if (chdir(argv[2]) != 0)
		inside_fail(argv[2]);
	execv(argv[3], argv + 3);
	inside_fail(argv[3]);
}
