/* The sandbox, tried for real: what commands in it see, what they reach, what they may use
 * up, and that nothing of them is left. As whoever runs the test and, when that is root, once
 * more as an ordinary user. Numbers are those of the adversarial cases in doc/SECURITY.md. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ava.h>
#include "exec/cgroup.h"
#include "exec/child.h"
#include "exec/sandbox.h"
#include "os/loop.h"

#define CANARY "sk-ant-canary-1234567890"
#define NOBODY 65534

static struct os_loop *loop;
static struct sandbox box;
static char dir[80], work[100], project[100], keep[120];
static char *bwrap, *inside;

struct seen {
	bool ended, left, ran;
	enum exec_how how;
	int code;
	uint64_t written;
	char output[4096], tail[600], layers[100];
};

static void done(const struct exec_end *end, void *user)
{
	struct seen *s = user;
	const char *layers = sandbox_layers(end->told);

	s->ended = true;
	s->left = end->left;
	s->how = end->how;
	s->code = end->code;
	s->written = end->written;
	s->ran = layers != NULL;
	snprintf(s->layers, sizeof(s->layers), "%s", layers ? layers : "");
	snprintf(s->output, sizeof(s->output), "%.*s", (int)end->output_len, end->output);
	snprintf(s->tail, sizeof(s->tail), "%.*s", (int)end->tail_len, end->tail);
}

static struct exec_child *start(const char *const *argv, int64_t ms, struct seen *s)
{
	struct ava_error err = {0};
	struct exec_child *c;
	struct exec_options o = {.input = "",
				 .timeout_ms = ms,
				 .output_max = SIZE_MAX,
				 .keep = 4000,
				 .keep_tail = 500};

	memset(s, 0, sizeof(*s));
	box.argv = argv;
	if (sandbox_start(&c, loop, &box, &o, done, s, &err) != 0)
		fail_msg("sandbox_start: %s", err.text);
	return c;
}

static void wait_for(const struct seen *s)
{
	while (!s->ended)
		os_loop_step(loop, 1000);
	assert_false(s->left);
}

static struct seen shell(const char *text)
{
	const char *const argv[] = {"/bin/sh", "-c", text, NULL};
	struct seen s;

	start(argv, 60000, &s);
	wait_for(&s);
	return s;
}

/* It is at work for so long, and then its time is over. */
static struct seen shell_for(const char *text, int64_t ms)
{
	const char *const argv[] = {"/bin/sh", "-c", text, NULL};
	struct seen s;

	start(argv, 60000, &s);
	for (int64_t i = 0; i < ms && !s.ended; i++) {
		usleep(1000);
		os_loop_step(loop, 0);
	}
	test_clock_skip(60000);
	wait_for(&s);
	return s;
}

static struct seen python(const char *text)
{
	const char *const argv[] = {"/usr/bin/python3", "-c", text, NULL};
	struct seen s;

	start(argv, 60000, &s);
	wait_for(&s);
	return s;
}

static void assert_says(const struct seen *s, const char *what)
{
	if (!strstr(s->output, what))
		fail_msg("\"%s\" is not in: %s", what, s->output);
}

static void assert_silent_of(const struct seen *s, const char *what)
{
	if (strstr(s->output, what) || strstr(s->tail, what))
		fail_msg("\"%s\" is in: %s", what, s->output);
}

static void put(const char *folder, const char *name, const char *text)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unit_write(path, text, strlen(text));
}

/* ---- what it is */

TEST(work)
{
	struct seen s = shell(
		"pwd; echo $HOME; cat $HOME/../../ava/work/../work/x 2>&1; echo kept >x; id -u");
	char path[600], want[40];

	assert_int_equal(s.how, EXEC_EXITED);
	assert_int_equal(s.code, 0);
	assert_true(s.ran);
	assert_true(strncmp(s.layers, "{\"landlock\":", 12) == 0);
	assert_says(&s, SANDBOX_WORK "\n" SANDBOX_WORK "\n");
	snprintf(want, sizeof(want), "\n%d\n", (int)geteuid());
	assert_says(&s, want);
	s = shell("cat x");
	assert_string_equal(s.output, "kept\n");
	snprintf(path, sizeof(path), "%s/x", work);
	assert_int_equal(unlink(path), 0);
	s = shell("exit 7");
	assert_int_equal(s.code, 7);
}

TEST(project)
{
	char text[2000];
	struct seen s;

	snprintf(text, sizeof(text),
		 "cat %s/a.c; echo no >%s/a.c; rm %s/a.c; mkdir -p %s/.git/hooks; touch %s/.envrc; "
		 "ls -A %s; ls -A %s/private | wc -l; mount -o remount,rw %s; echo no >/usr/x; "
		 "echo no >/etc/x; echo no >/x; echo no >/proc/sys/kernel/core_pattern",
		 project, project, project, project, project, project, project, project);
	s = shell(text);
	assert_says(&s, "int a;\n");
	assert_says(&s, "a.c\nprivate\n0\n"); /* its folder is there, and empty */
	assert_silent_of(&s, "hooks\n");
	snprintf(text, sizeof(text), "%s/.git", project);
	assert_int_not_equal(access(text, F_OK), 0);
	snprintf(text, sizeof(text), "%s/a.c", project);
	assert_int_equal(access(text, F_OK), 0);
	assert_int_not_equal(access("/usr/x", F_OK), 0);
}

/* Case 2: a copy in its place is written, the project is not; its .git is read, and where that is
 * a link, which may lead anywhere, there is none. */
TEST(copy)
{
	char text[2000], copy[120], git[120], path[200];
	struct seen s;

	snprintf(copy, sizeof(copy), "%s/copy", dir);
	snprintf(git, sizeof(git), "%s/.git", project);
	assert_int_equal(mkdir(copy, 0755), 0);
	put(copy, "b.c", "int b;\n");
	assert_int_equal(symlink(keep, git), 0);
	box.copy = copy;
	snprintf(text, sizeof(text),
		 "cd %s; ls -A; cat .git/key; echo no >b.c; mv b.c c.c; touch .envrc; mkdir -p "
		 "x/.git; "
		 "cat private/key; ls %s",
		 project, copy);
	s = shell(text);
	assert_says(&s, "b.c\n");
	assert_silent_of(&s, CANARY);
	assert_silent_of(&s, "a.c");
	snprintf(path, sizeof(path), "%s/a.c", project);
	assert_int_equal(access(path, F_OK), 0);
	snprintf(path, sizeof(path), "%s/.envrc", project);
	assert_int_not_equal(access(path, F_OK), 0);
	snprintf(path, sizeof(path), "%s/c.c", copy);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(unlink(git), 0);
	assert_int_equal(mkdir(git, 0755), 0);
	put(git, "HEAD", "ref: x\n");
	snprintf(text, sizeof(text), "cd %s; cat .git/HEAD; echo no >.git/config; rm .git/HEAD",
		 project);
	s = shell(text);
	assert_says(&s, "ref: x\n");
	assert_says(&s, "Read-only file system");
	box.copy = NULL;
	snprintf(text, sizeof(text), "rm -r %s %s", git, copy);
	assert_int_equal(system(text), 0);
}

/* Case 1. */
TEST(secrets)
{
	struct seen s =
		shell("cat ~/.ssh/id_rsa /root/.ssh/* /home/*/.ssh/*; env; cat /proc/1/environ; "
		      "cat /proc/*/environ | tr '\\0' '\\n'; ls -d /root /home /run /var /sys "
		      "/boot /opt; "
		      "cat /etc/shadow; ls /ava");

	assert_silent_of(&s, CANARY);
	assert_silent_of(&s, "\n/root\n");
	assert_silent_of(&s, "\n/home\n");
	assert_silent_of(&s, "root:$");
	assert_silent_of(&s, "\n/sys\n");
	assert_silent_of(&s, "\n/run\n");
	assert_says(&s, "sandbox\nwork\n");
	s = shell("ls /etc/ssl");
	assert_silent_of(&s, "private");
}

/* Case 6: what is memory and looks like a disk has a bound. */
TEST(memory)
{
	struct seen s = shell("for d in /tmp /dev/shm; do head -c 300M /dev/zero >$d/x; "
			      "stat -c %s $d/x; done 2>/dev/null; touch /dev/x; echo x >/dev/null "
			      "&& echo null");

	assert_says(&s, "268435456\n268435456\n");
	assert_says(&s, "touch: cannot touch '/dev/x'");
	assert_says(&s, "null\n");
}

/* Case 5. */
TEST(network)
{
	static const char tries[] =
		"import socket, ctypes, os\n"
		"def t(name, f):\n"
		"    try:\n"
		"        f(); print('REACHED', name)\n"
		"    except OSError as e:\n"
		"        print(name, e.errno)\n"
		"s = socket.socket\n"
		"t('udp', lambda: s(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('1.1.1.1', "
		"53)))\n"
		"t('tcp', lambda: s(socket.AF_INET, socket.SOCK_STREAM).connect(('127.0.0.1', "
		"7433)))\n"
		"t('tcp6', lambda: s(socket.AF_INET6, socket.SOCK_STREAM).connect(('::1', 7433)))\n"
		"t('abstract', lambda: s(socket.AF_UNIX).connect('\\0ava-test'))\n"
		"t('file', lambda: s(socket.AF_UNIX).connect(os.environ.get('SOCK', '%s/sock')))\n"
		"t('netlink', lambda: s(socket.AF_NETLINK, socket.SOCK_RAW))\n"
		"t('vsock', lambda: s(40, socket.SOCK_STREAM))\n"
		"libc = ctypes.CDLL(None, use_errno=True)\n"
		"print('io_uring', libc.syscall(425, 8, 0), ctypes.get_errno())\n"
		"a, b = socket.socketpair(); a.send(b'x'); print('pair', b.recv(1))\n"
		"a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
		"for k in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_DGRAM | "
		"socket.SOCK_NONBLOCK):\n"
		"    t('datagram', lambda: socket.socketpair(socket.AF_UNIX, k)[0].sendto(b'x', "
		"'%s/mail'))\n";
	int mail = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	char text[4000];
	struct seen s;

	assert_true((size_t)snprintf(at.sun_path, sizeof(at.sun_path), "%s/mail", project) <
		    sizeof(at.sun_path));
	assert_int_equal(bind(mail, (struct sockaddr *)&at, sizeof(at)), 0);
	snprintf(text, sizeof(text), tries, project, project);
	s = python(text);
	assert_int_equal(recv(mail, text, sizeof(text), MSG_DONTWAIT), -1);
	close(mail);
	unlink(at.sun_path);
	assert_silent_of(&s, "REACHED");
	assert_says(&s, "datagram 1\ndatagram 1\ndatagram 1\n");
	assert_says(&s, "udp 1\n");
	assert_says(&s, "abstract 1\n");
	assert_says(&s, "file 1\n");
	assert_says(&s, "vsock 1\n");
	assert_says(&s, "io_uring -1 1\n");
	assert_says(&s, "pair b'x'\n");
	s = shell("cat /proc/net/dev | grep -v lo: | wc -l");
	assert_string_equal(s.output, "2\n");
}

/* Case 8, and making more of itself. */
TEST(kernel)
{
	static const char tries[] =
		"import ctypes, os, fcntl\n"
		"libc = ctypes.CDLL(None, use_errno=True)\n"
		"def c(name, *a):\n"
		"    ctypes.set_errno(0); r = libc.syscall(*a); print(name, r, "
		"ctypes.get_errno())\n"
		"c('unshare', 272, 0x10000000)\n"
		"c('setns', 308, 0, 0)\n"
		"c('clone', 56, 0x10000000 | 17, 0, 0, 0, 0)\n"
		"c('clone3', 435, 0, 0)\n"
		"c('ptrace', 101, 16, 1, 0, 0)\n"
		"c('bpf', 321, 0, 0, 0)\n"
		"c('keyctl', 250, 0, 0)\n"
		"c('perf', 298, 0, 0, 0, 0, 0)\n"
		"c('userfaultfd', 323, 0)\n"
		"c('vm', 310, 1, 0, 0, 0, 0, 0)\n"
		"c('mount', 165, 0, 0, 0, 0, 0)\n"
		"c('x32', 0x40000000 + 39) if False else None\n"
		"for n in (0x5412, 0x541c, 0x100005412):\n"
		"    ctypes.set_errno(0); print('ioctl', libc.ioctl(0, ctypes.c_ulong(n), b'x'), "
		"ctypes.get_errno())\n"
		"print('fds', sorted(int(f) for f in os.listdir('/proc/self/fd')))\n"
		"print('caps', [l for l in open('/proc/self/status') if l.startswith('Cap')])\n";
	struct seen s = python(tries);
	int extra = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */

	assert_says(&s, "unshare -1 1\n");
	assert_says(&s, "setns -1 1\n");
	assert_says(&s, "clone -1 1\n");
	assert_says(&s, "clone3 -1 38\n");
	assert_says(&s, "ptrace -1 1\n");
	assert_says(&s, "bpf -1 1\n");
	assert_says(&s, "keyctl -1 1\n");
	assert_says(&s, "perf -1 1\n");
	assert_says(&s, "userfaultfd -1 1\n");
	assert_says(&s, "vm -1 1\n");
	assert_says(&s, "mount -1 1\n");
	assert_says(&s, "ioctl -1 1\nioctl -1 1\nioctl -1 1\n");
	assert_says(&s, "CapEff:\\t0000000000000000");
	assert_says(&s, "CapBnd:\\t0000000000000000");
	s = shell(
		"ls /proc/self/fd | tr '\\n' ' '; ls -la /proc/self/fd 2>/dev/null | grep -c null");
	close(extra);
	assert_says(&s, "0 1 2 3 "); /* 3 is the listing's own */
	s = python("import ctypes\nprint('in'); ctypes.CDLL(None).syscall(0x40000000 + "
		   "39)\nprint('x32')");
	assert_silent_of(&s, "x32");
}

/* Nothing gives another's rights to who runs it later, in whatever way it is made; git and tar,
 * which give a folder such a mode, are not told. */
TEST(modes)
{
	struct seen s = python(
		"import ctypes, os, stat\n"
		"libc = ctypes.CDLL(None, use_errno=True)\n"
		"def t(name, f):\n"
		"    try: f(); print(name, 'done')\n"
		"    except OSError as e: print(name, e.errno)\n"
		"def c(*a):\n"
		"    if libc.syscall(*a) < 0: raise OSError(ctypes.get_errno(), '')\n"
		"f = os.open('plain', os.O_CREAT | os.O_RDWR, 0o755)\n"
		"t('chmod', lambda: os.chmod('plain', 0o4755))\n"
		"t('group', lambda: os.chmod('plain', 0o2755))\n"
		"t('fchmod', lambda: os.fchmod(f, 0o6755))\n"
		"t('fchmodat', lambda: c(268, -100, b'plain', 0o4755))\n"
		"t('fchmodat2', lambda: c(452, -100, b'plain', 0o4755, 0))\n"
		"t('openat', lambda: os.open('a', os.O_CREAT | os.O_WRONLY, 0o4755))\n"
		"t('open', lambda: c(2, b'b', os.O_CREAT | os.O_WRONLY, 0o4755))\n"
		"t('tmpfile', lambda: os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755))\n"
		"t('openat2', lambda: c(437, -100, b'd', (ctypes.c_uint64 * 3)(0o101, 0o4755, 0), "
		"24))\n"
		"t('creat', lambda: c(85, b'c', 0o4755))\n"
		"t('mkdir', lambda: os.mkdir('e', 0o2755))\n"
		"t('mkdirat', lambda: os.mkdir('h', 0o2755, dir_fd=os.open('.', os.O_RDONLY)))\n"
		"t('mknod', lambda: os.mknod('g', stat.S_IFREG | 0o4755))\n"
		"t('sticky', lambda: os.chmod('plain', 0o1755))\n"
		"t('read', lambda: c(2, b'plain', 0, 0o4755))\n"
		"print([hex(os.stat(n).st_mode) for n in os.listdir() if os.stat(n).st_mode & "
		"0o6000])\n");

	assert_says(
		&s,
		"chmod 1\ngroup done\nfchmod 1\nfchmodat 1\nfchmodat2 1\nopenat 1\nopen 1\n"
		"tmpfile 1\nopenat2 38\ncreat 1\nmkdir done\nmkdirat done\nmknod 1\nsticky done\n"
		"read done\n[]\n");
	s = shell("cat /proc/keys /proc/timer_list /proc/vmallocinfo /proc/config.gz 2>/dev/null | "
		  "wc -c");
	assert_string_equal(s.output, "0\n");
}

/* ---- what it uses up: case 6 and 7 */

/* How long sleepers of ours sleep, and nobody else's: another of these tests may run beside us. */
static const char *long_time(void)
{
	static char text[32];

	snprintf(text, sizeof(text), "77131.%07d", (int)getpid());
	return text;
}

/* Processes with that in their command line. */
static int sleepers(void)
{
	char cmd[200], line[64] = "";
	FILE *f;

	snprintf(cmd, sizeof(cmd), "ps axww -o args= | grep -c '[s]leep %s'", long_time());
	f = popen(cmd, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	pclose(f);
	return atoi(line);
}

TEST(sleepers)
{
	const char *n = long_time();
	char many[200], left[200], deaf[80];
	const char *const argv[] = {"/bin/sh", "-c", many, NULL};
	struct exec_child *c;
	struct seen s;

	snprintf(many, sizeof(many),
		 "for i in 1 2 3; do setsid sleep %s & done; (sleep %s & disown; exit) ; echo up; "
		 "sleep %s",
		 n, n, n);
	snprintf(left, sizeof(left),
		 "setsid sleep %s & setsid nohup sleep %s >/dev/null 2>&1 & echo up", n, n);
	snprintf(deaf, sizeof(deaf), "trap '' TERM INT HUP; sleep %s", n);
	s = shell(left);
	assert_string_equal(s.output, "up\n");
	assert_int_equal(sleepers(), 0);
	c = start(argv, 60000, &s);
	/* The loop has not heard of its namespace yet when it is stopped. */
	for (int i = 0; sleepers() < 4 && i < 1000; i++)
		usleep(10000);
	exec_stop(c);
	wait_for(&s); /* it does not take the second after which it would be left */
	assert_int_equal(s.how, EXEC_STOPPED);
	assert_int_equal(sleepers(), 0);
	/* The same for one that ends at once, before its namespace is there. */
	exec_stop(start(argv, 60000, &s));
	wait_for(&s);
	assert_int_equal(sleepers(), 0);
	exec_kill(start(argv, 60000, &s));
	for (int i = 0; sleepers() > 0 && i < 1000; i++)
		usleep(10000); /* it waits a second for that, and no longer */
	assert_int_equal(sleepers(), 0);
	s = shell_for(deaf, 300);
	assert_int_equal(s.how, EXEC_TIMEOUT);
	assert_int_equal(sleepers(), 0);
}

/* Processes with our folder in their command line. */
static int count_ours(void)
{
	char cmd[300], line[64] = "";
	FILE *f;

	snprintf(cmd, sizeof(cmd), "ps axww -o args= | grep -v grep | grep -cF %s", project);
	f = popen(cmd, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	pclose(f);
	return atoi(line);
}

/* kill -9 of who started it, at a moment of bubblewrap's start that is made long (stop_bwrap.c). */
static void killed_at(const char *where)
{
	static const char *const argv[] = {"/bin/sleep", "77133", NULL};
	char at[40], in[120], preload[400], path[120];
	const char *const env[] = {"PATH=/usr/bin", at, in, preload, NULL};
	struct seen s;
	pid_t maker;

	snprintf(at, sizeof(at), "AVA_STOP_AT=%s", where);
	snprintf(in, sizeof(in), "AVA_STOP_IN=%s", dir);
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", getenv("STOP_BWRAP"));
	snprintf(path, sizeof(path), "%s/%s", dir, where);
	maker = fork();
	if (maker == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		loop = os_loop_new(NULL);
		box.env = env;
		start(argv, 0, &s);
		for (;;)
			os_loop_step(loop, 1000);
	}
	for (int i = 0; access(path, F_OK) != 0 && i < 3000; i++)
		usleep(10000);
	assert_true(count_ours() > 0);
	assert_int_equal(kill(maker, SIGKILL), 0);
	assert_int_equal(waitpid(maker, NULL, 0), maker);
	assert_int_equal(unlink(path), 0);
	for (int i = 0; count_ours() > 0 && i < 1000; i++)
		usleep(10000);
	assert_int_equal(count_ours(), 0);
}

TEST(maker_killed)
{
	killed_at("start");
	killed_at("armed");
}

TEST(output)
{
	struct seen s = shell("echo first; head -c 100000000 /dev/zero; echo; echo last");

	assert_int_equal(s.how, EXEC_EXITED);
	assert_true(strncmp(s.output, "first\n", 6) == 0);
	assert_true(s.written > 100000000);
	s = shell("echo first; yes | head -n 1000000; echo last");
	assert_true(strlen(s.tail) == 500 && strcmp(s.tail + 495, "last\n") == 0);
	s = shell_for("yes", 500);
	assert_int_equal(s.how, EXEC_TIMEOUT);
}

TEST(limits)
{
	/* Of a file all but the end is a hole. */
	struct seen s =
		shell("dd if=/dev/zero of=big bs=1M seek=1020 count=8; stat -c %s big; rm big; "
		      "cat /proc/self/oom_score_adj; ulimit -t");

	assert_says(&s, "\n1073741824\n1000\n7200\n");
	s = python("import mmap # 34: MAP_PRIVATE | MAP_ANONYMOUS\n"
		   "l = []\n"
		   "try:\n"
		   "    while True: l.append(mmap.mmap(-1, 1 << 26, 34))\n"
		   "except OSError:\n"
		   "    print('stopped', len(l) <= 32)\n");
	assert_says(&s, "stopped True\n");
}

/* Root has no limit of processes but a control group's. */
TEST(fork_bomb)
{
	struct seen s;

	if (geteuid() == 0)
		skip();
	s = python("import os, time\n"
		   "n = 0\n"
		   "try:\n"
		   "    while True:\n"
		   "        if os.fork() == 0: time.sleep(1000)\n"
		   "        n += 1\n"
		   "except OSError as e:\n"
		   "    print('stopped', 200 < n < 256, e.errno)\n");
	assert_says(&s, "stopped True 11\n");
	/* The one that waits is there before, and needs no process more. */
	s = shell_for("(f() { f | f & }; f) & exec sleep 1000", 1000);
	assert_int_equal(s.how, EXEC_TIMEOUT);
}

/* ---- its control group, where there may be one */

static bool exists(const char *folder, const char *name)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

/* As the kernel has it: every process of the command is in it, and it is gone with them. */
TEST(group)
{
	char text[120];
	const char *const argv[] = {"/bin/sh", "-c", text, NULL};
	struct exec_child *c;
	struct seen s;

	snprintf(text, sizeof(text), "setsid sleep %s & echo up; exec sleep %s", long_time(),
		 long_time());
	cgroup_open(NULL, NULL, false);
	if (strncmp(cgroup_what(), "none", 4) == 0) {
		print_message("%s\n", cgroup_what());
		skip();
	}
	assert_non_null(strstr(cgroup_what(), "kill"));
	s = shell("cat /proc/self/cgroup");
	assert_non_null(strstr(s.layers, "\"cgroup\":true"));
	c = start(argv, 60000, &s);
	for (int i = 0; sleepers() < 2 && i < 1000; i++) {
		usleep(10000);
		os_loop_step(loop, 0);
	}
	assert_int_equal(
		system("test -n \"$(find /sys/fs/cgroup -maxdepth 3 -name \"ava-$PPID-*\")\""), 0);
	exec_stop(c);
	wait_for(&s);
	assert_int_equal(sleepers(), 0);
	cgroup_close();
	assert_int_equal(
		system("test -z \"$(find /sys/fs/cgroup -maxdepth 3 -name \"ava-$PPID-*\")\""), 0);
}

/* A folder that is made like a group: we go into one below it, it gives out limits, and where that
 * helps nobody (no group can be limited in a folder that is none) we go back. */
TEST(group_is_divided)
{
	char group[200], ours[220], of_dead[220], of_living[220], pid[24];
	size_t len;
	pid_t dead;

	snprintf(group, sizeof(group), "%s/group", dir);
	mkdir(group, 0700);
	put(dir, "group/cgroup.controllers", "cpu memory pids\n");
	put(dir, "group/cgroup.subtree_control", "");
	put(dir, "group/cgroup.procs", "");
	snprintf(ours, sizeof(ours), "%s/avad", group);
	mkdir(ours, 0700);
	put(dir, "group/avad/cgroup.procs", "");
	put(group, "other", "");
	dead = fork();
	if (dead == 0)
		_exit(0);
	assert_int_equal(waitpid(dead, NULL, 0), dead);
	snprintf(of_dead, sizeof(of_dead), "%s/ava-%d-3", group, (int)dead);
	mkdir(of_dead, 0700);
	snprintf(of_living, sizeof(of_living), "%s/ava-1-3", group);
	mkdir(of_living, 0700);
	cgroup_open(dir, "/group", true);
	assert_true(strncmp(cgroup_what(), "none: ", 6) == 0);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	for (int i = 0; i < 2; i++) {
		static const char *const files[] = {"avad/cgroup.procs", "cgroup.procs"};
		char path[300], *text;

		snprintf(path, sizeof(path), "%s/%s", group, files[i]);
		text = unit_read(path, &len);
		assert_string_equal(text, pid);
		free(text);
	}
	assert_true(exists(group, "other"));
	assert_int_equal(access(of_dead, F_OK), -1);
	assert_int_equal(rmdir(of_living), 0); /* its command may be about to go into it */
}

/* ---- without bubblewrap, as sandbox.required 0 allows */

TEST(bare)
{
	char text[1200];
	const char *const argv[] = {"/bin/sh", "-c", text, NULL};
	struct seen s;

	snprintf(text, sizeof(text),
		 "pwd; echo x >made; echo no >%s/a.c; python3 -c 'import socket; socket.socket()'; "
		 "setsid -w sh -c 'kill -0 1' ; cat made; echo home:$HOME tmp:$TMPDIR",
		 project);
	box.bare = true;
	start(argv, 60000, &s);
	box.bare = false;
	wait_for(&s);
	assert_true(s.ran);
	assert_non_null(strstr(s.layers, "\"namespaces\":false"));
	assert_says(&s, work);
	assert_says(&s, "Operation not permitted"); /* no socket */
	assert_says(&s, "x\n");
	snprintf(text, sizeof(text), "home:%s tmp:%s\n", work, work);
	assert_says(&s, text);
	if (!strstr(s.layers, "\"landlock\":0"))
		assert_says(&s, "a.c: Permission denied");
	snprintf(text, sizeof(text), "%s/made", work);
	unlink(text);
}

/* ---- case 9, and what can be no project */

TEST(unavailable)
{
	static const char fake[] =
		"#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied'\nexit 1\n";
	struct sandbox was = box;
	char path[600];
	struct seen s;

	snprintf(path, sizeof(path), "%s/bwrap", dir);
	unit_write(path, fake, sizeof(fake) - 1);
	chmod(path, 0755);
	box.bwrap = path;
	s = shell("echo ran");
	box = was;
	assert_false(s.ran);
	assert_int_equal(s.code, 1);
	assert_says(&s, "uid map");
	assert_silent_of(&s, "ran\n");
}

static void refused(const char *folder, const char *sentence)
{
	const char *const argv[] = {"/bin/true", NULL};
	struct sandbox was = box;
	struct ava_error err = {0};

	box.project = folder;
	box.argv = argv;
	assert_null(sandbox_argv(&box, &err));
	box = was;
	if (!strstr(err.text, sentence))
		fail_msg("%s: %s", folder, err.text);
}

/* What a person named for a server: each under its own path, and nothing of ava's in it. */
TEST(named)
{
	char notes[120];
	const char *const reads[] = {notes, NULL}, *const writes[] = {project, NULL};
	const char *const hidden[] = {box.keep_out[0], NULL}, *const own[] = {hidden[0], NULL};
	const char *many[65] = {NULL};
	struct ava_error err;
	char text[1000];
	struct seen s;
	struct sandbox was = box;

	snprintf(notes, sizeof(notes), "%s/notes", dir);
	assert_int_equal(mkdir(notes, 0755), 0);
	put(notes, "note", "mine\n");
	box.project = "";
	box.reads = reads;
	box.writes = writes;
	snprintf(
		text, sizeof(text),
		"cat %s/note; echo no >%s/note; echo yes >%s/made; cat %s/made; ls -A %s/private | "
		"wc -l",
		notes, notes, project, project, project);
	s = shell(text);
	assert_says(&s, "mine\n");
	assert_says(&s, "yes\n");
	assert_says(&s, "0\n");
	snprintf(text, sizeof(text), "%s/made", project);
	assert_int_equal(unlink(text), 0);
	for (size_t i = 0; i < 64; i++)
		many[i] = project;
	box.reads = box.writes = many;
	s = shell("echo all of them");
	assert_says(&s, "all of them\n");
	box.reads = own;
	assert_null(sandbox_argv(&box, &err));
	assert_int_equal(err.code, AVA_EDENIED);
	box = was;
}

/* Its own variables stand in the place of ours, once. */
TEST(own_variables)
{
	static const char *const own[] = {"MINE=yes", "TERM=ours", NULL};
	struct seen s;

	box.env = own;
	s = shell("echo $MINE $TERM $LANG $HOME; env | grep -c ^TERM=");
	box.env = NULL;
	assert_says(&s, "yes ours C.UTF-8 " SANDBOX_WORK "\n1\n");
	s = shell("echo $TERM$MINE");
	assert_says(&s, "dumb\n");
}

/* A server that a person gave a network has this machine's, and nothing else more. */
TEST(network_given)
{
	struct seen s;

	box.network = true;
	s = python("import socket\nsocket.socket().close()\nprint('socket')\n"
		   "import os\nprint(sorted(os.listdir('/home')) if os.path.exists('/home') else "
		   "'none')");
	box.network = false;
	assert_says(&s, "socket\nnone\n");
	s = python("import socket\nsocket.socket()");
	assert_silent_of(&s, "socket\n");
	assert_says(&s, "PermissionError");
}

TEST(projects)
{
	refused("/", "no project");
	refused("/proc/self", "has its own");
	refused("/ava", "has its own");
	refused(keep, "of ava's own");
}

static void make_world(void)
{
	static const char *keep_out[2];
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd;

	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	snprintf(work, sizeof(work), "%s/work", dir);
	snprintf(project, sizeof(project), "%s/project", dir);
	snprintf(keep, sizeof(keep), "%s/project/private", dir);
	assert_int_equal(mkdir(work, 0700), 0);
	assert_int_equal(mkdir(project, 0755), 0);
	assert_int_equal(mkdir(keep, 0755), 0);
	put(project, "a.c", "int a;\n");
	put(keep, "key", CANARY);
	/* A socket of the person's: it stands in the project, and may not be reached. */
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/sock", dir);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	keep_out[0] = keep;
	box = (struct sandbox){.bwrap = bwrap,
			       .inside = inside,
			       .work = work,
			       .project = project,
			       .keep_out = keep_out,
			       .start = SANDBOX_WORK};
}

/* What may take a second takes what it takes here, and no time is over by itself. */
static int clock_stands(void **state)
{
	test_clock_stop();
	return 0;
}

static int first(void **state)
{
	setenv("ANTHROPIC_API_KEY", CANARY, 1);
	make_world();
	loop = os_loop_new(NULL);
	assert_non_null(loop);
	return 0;
}

static int last(void **state)
{
	os_loop_free(loop);
	unit_rmdir(dir);
	return 0;
}

/* The switch that forbids user namespaces, and what to do about it. */
TEST(remedies)
{
	static const struct {
		const char *folder, *file, *text, *says;
	} some[] = {
		{"kernel", "apparmor_restrict_unprivileged_userns", "1\n", "profile for bwrap"},
		{"kernel", "apparmor_restrict_unprivileged_userns", "0\n", "in a container"},
		{"kernel", "unprivileged_userns_clone", "0\n", "unprivileged_userns_clone=1"},
		{"user", "max_user_namespaces", "0\n", "max_user_namespaces=15000"},
		{"user", "max_user_namespaces", "96365\n", "in a container"},
	};
	char proc[] = "/tmp/ava-remedies-XXXXXX", path[128], sub[64];

	assert_non_null(mkdtemp(proc));
	for (size_t i = 0; i < ARRAY_LEN(some); i++) {
		FILE *f;

		snprintf(sub, sizeof(sub), "%s/%s", proc, some[i].folder);
		snprintf(path, sizeof(path), "%s/%s", sub, some[i].file);
		mkdir(sub, 0700);
		f = fopen(path, "we");
		assert_non_null(f);
		fputs(some[i].text, f);
		fclose(f);
		assert_non_null(strstr(sandbox_remedy(proc), some[i].says));
		unlink(path);
		rmdir(sub);
	}
	rmdir(proc);
}

/* All of it as who runs it and, where that is root, as nobody as well. */
static int run(int (*all)(void))
{
	struct ava_error err;
	pid_t pid;
	int rv, status = 0;

	if (sandbox_find(&bwrap, &inside, &err) != 0) {
		inside = getenv("AVA_SANDBOX");
		bwrap = "/usr/bin/bwrap";
	}
	if (!inside || access(inside, X_OK) != 0 || access(bwrap, X_OK) != 0)
		return 77;
	rv = all();
	if (rv != 0 || geteuid() != 0)
		return rv;
	pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
		    setresuid(NOBODY, NOBODY, NOBODY) != 0)
			_exit(1);
		_exit(access(inside, X_OK) == 0 ? all() : 0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

UNIT_GROUP(.first = first, .last = last, .before = clock_stands, .run = run);
