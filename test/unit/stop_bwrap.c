/* Loaded into bubblewrap by test_sandbox. It waits at AVA_STOP_AT: `start`, before it has done
 * anything, or `armed`, when it dies with its parent and its child waits for its word. There it
 * makes the file of that name in the folder AVA_STOP_IN, and goes on when that is gone. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void stop_at(const char *where)
{
	const char *at = getenv("AVA_STOP_AT"), *in = getenv("AVA_STOP_IN");
	char path[400];

	if (!at || !in || strcmp(at, where) != 0)
		return;
	snprintf(path, sizeof(path), "%s/%s", in, where);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	while (access(path, F_OK) == 0)
		usleep(1000);
}

__attribute__((constructor)) static void started(void)
{
	stop_at("start");
}

__attribute__((visibility("default"))) int prctl(int option, ...)
{
	unsigned long a[4];
	va_list ap;
	long rv;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(ap, unsigned long);
	va_end(ap);
	rv = syscall(SYS_prctl, option, a[0], a[1], a[2], a[3]);
	if (option == PR_SET_PDEATHSIG)
		stop_at("armed");
	return (int)rv;
}
