/* Started by a command the daemon finds all of this done already (see
 * client/start.c); by hand, from cron or a supervisor it may find anything.
 * What cannot be had is done without. */
#include "gateway/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

size_t process_descriptors(void)
{
	struct rlimit r;

	return getrlimit(RLIMIT_NOFILE, &r) == 0 ? (size_t)r.rlim_cur : 256;
}

static void raise_descriptors(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= r.rlim_max)
		return;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

int process_prepare(struct ava_error *err)
{
	int fd;

	/* A file that is opened as descriptor 2 would get our messages. */
	do {
		fd = open("/dev/null", O_RDWR);
		if (fd < 0)
			return err_sys(err, "/dev/null");
	} while (fd <= STDERR_FILENO);
	close(fd);
	umask(077);
	if (chdir("/") != 0)
		return err_sys(err, "change to /");
	if (prctl(PR_SET_DUMPABLE, 0) != 0)
		return err_sys(err, "forbid core files");
	signal(SIGPIPE, SIG_IGN);
	raise_descriptors();
	return 0;
}

int process_descriptor(const char *text)
{
	char *end;
	long n;

	if (*text < '0' || *text > '9')
		return -1;
	errno = 0;
	n = strtol(text, &end, 10);
	if (errno != 0 || *end != '\0' || n <= STDERR_FILENO || n > INT_MAX ||
	    fcntl((int)n, F_SETFD, FD_CLOEXEC) != 0)
		return -1;
	return (int)n;
}
