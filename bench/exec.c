/* bench_exec [ROUNDS [MIB [AT_ONCE]]]: a command in the sandbox, beside the same command bare
 * and in bubblewrap alone, while this process holds MIB of memory (as avad may); then many of
 * them at once. Rounds take turns, so that what else the machine does falls on all of them.
 *
 * A loop gap is how long one step of the loop kept it from anything else: starting a command, or
 * what its descriptors had to say. bubblewrap alone gets the same name spaces and mounts; what is
 * between it and the sandbox is ava-sandbox: limits, Landlock, seccomp, and one exec more. */
#include <ava.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "exec/cgroup.h"
#include "exec/child.h"
#include "exec/sandbox.h"
#include "os/loop.h"

#define ROUNDS_MAX 1000

static struct os_loop *loop;
static struct sandbox box;
static unsigned running, failed;
static double longest_ms;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void gap(double from)
{
	double ms = now_ms() - from;

	longest_ms = ms > longest_ms ? ms : longest_ms;
}

static double spawned(const char *const *argv)
{
	double from = now_ms();
	int status = 1;
	pid_t pid;

	if (posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)argv,
			(char *const *)sandbox_env) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		failed++;
	return now_ms() - from;
}

static void done(const struct exec_end *end, void *user)
{
	running--;
	if (end->how != EXEC_EXITED || end->code != 0 || !sandbox_layers(end->told))
		failed++;
}

static void start(const char *const *argv)
{
	struct exec_options o = {.argv = argv,
				 .env = sandbox_env,
				 .input = "",
				 .timeout_ms = 60000,
				 .output_max = 65536,
				 .keep = 300,
				 .sandboxed = true};
	struct exec_child *c;
	double from = now_ms();

	if (exec_start(&c, loop, &o, done, NULL, NULL) == 0)
		running++;
	else
		failed++;
	gap(from);
}

static void wait_all(void)
{
	while (running > 0) {
		double from = now_ms();

		os_loop_step(loop, 0); /* never waits: all of a step is a gap */
		gap(from);
		usleep(50);
	}
}

static double sandboxed(const char *const *argv)
{
	double from = now_ms();

	start(argv);
	while (running > 0)
		os_loop_step(loop, -1);
	return now_ms() - from;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_size);
	return v[n / 2];
}

static char *hold(size_t mib)
{
	char *m = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (m == MAP_FAILED)
		return NULL;
	memset(m, 1, mib << 20);
	return m;
}

static void measure(int rounds, const char **ours, const char **bare)
{
	static const char *const plain[] = {"/bin/true", NULL};
	static double t[3][ROUNDS_MAX], vs_bwrap[ROUNDS_MAX];
	double ratio;

	for (int i = 0; i < rounds; i++) {
		t[0][i] = spawned(plain);
		t[1][i] = spawned(bare);
		t[2][i] = sandboxed(ours);
		vs_bwrap[i] = t[2][i] / t[1][i];
	}
	ratio = median(vs_bwrap, rounds);
	printf("posix_spawn    %6.2f ms\nbwrap          %6.2f ms\nsandboxed      %6.2f ms, "
	       "%.2f times bwrap (aim 1.20%s)\n",
	       median(t[0], rounds), median(t[1], rounds), median(t[2], rounds), ratio,
	       ratio <= 1.2 ? "" : ": missed");
}

static void at_once(int n, const char **ours)
{
	double from = now_ms();

	longest_ms = 0;
	for (int i = 0; i < n; i++)
		start(ours);
	wait_all();
	printf("%d at once     %6.2f ms each, longest loop gap %.2f ms (aim 2.00%s)\n", n,
	       (now_ms() - from) / n, longest_ms, longest_ms <= 2 ? "" : ": missed");
}

/* bubblewrap's own, without what comes behind "--", and the descriptor that ava-sandbox gives. */
static const char **alone(const char **argv)
{
	static const char *v[256];
	size_t n = 0;

	for (size_t i = 2; argv[i] && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--info-fd") == 0)
			i++;
		else
			v[n++] = argv[i];
	}
	v[n++] = "/bin/true";
	v[n] = NULL;
	return v;
}

int main(int argc, char **argv)
{
	static const char *const nothing[] = {"/bin/true", NULL};
	int rounds = argc > 1 ? atoi(argv[1]) : 200, many = argc > 3 ? atoi(argv[3]) : 100;
	size_t mib = argc > 2 ? (size_t)atoi(argv[2]) : 2048;
	char work[] = "/tmp/ava-bench.XXXXXX";
	struct ava_error err;
	const char **ours;

	if (rounds < 1 || rounds > ROUNDS_MAX || many < 1 || !mkdtemp(work) || !hold(mib)) {
		fprintf(stderr, "usage: bench_exec [ROUNDS [MIB [AT_ONCE]]]\n");
		return 2;
	}
	box = (struct sandbox){
		.bwrap = "/usr/bin/bwrap",
		.inside = getenv("AVA_SANDBOX"),
		.work = work,
		.project = "",
		.start = SANDBOX_WORK,
		.argv = nothing,
	};
	if (!box.inside || access(box.bwrap, X_OK) != 0) {
		fprintf(stderr,
			"bench_exec: AVA_SANDBOX has to name ava-sandbox, and bubblewrap be "
			"installed\n");
		return 77;
	}
	cgroup_open(NULL, NULL, true); /* as avad does */
	loop = os_loop_new(&err);
	ours = sandbox_argv(&box, &err);
	if (!loop || !ours)
		return 1;
	printf("with %zu MiB held, medians of %d, control group %s\n", mib, rounds, cgroup_what());
	measure(rounds, ours, alone(ours));
	at_once(many, ours);
	free(ours);
	cgroup_close();
	os_loop_free(loop);
	rmdir(work);
	if (failed > 0)
		fprintf(stderr, "bench_exec: %u commands failed\n", failed);
	return failed > 0;
}
