/* avad: the daemon's main. `ava` starts it on demand with --ready-fd; by hand
 * it serves in the foreground. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ava.h>

#include "gateway/daemon.h"

static int usage(FILE *out)
{
	fputs("usage: avad [--service] [--verbose] [--ready-fd N]\n"
	      "       avad --recover | --version\n"
	      "The daemon of ava. Commands of `ava` start it when they need it.\n"
	      "  --service   never exit for being idle\n"
	      "  --verbose   write the log to stderr too\n"
	      "  --recover   put the files in order after a crash, print what was done, exit\n",
	      out);
	return out == stdout ? 0 : 2;
}

static int fail(const struct ava_error *err)
{
	fprintf(stderr, "avad: %s\n", err->text);
	return 1;
}

int main(int argc, char **argv)
{
	struct daemon_options o = { .ready_fd = -1 };
	struct ava_error err = { 0 };

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--service") == 0)
			o.service = true;
		else if (strcmp(argv[i], "--verbose") == 0)
			o.verbose = true;
		else if (strcmp(argv[i], "--ready-fd") == 0 && i + 1 < argc)
			o.ready_fd = atoi(argv[++i]);
		else if (strcmp(argv[i], "--recover") == 0)
			return daemon_recover(&err) == 0 ? 0 : fail(&err);
		else if (strcmp(argv[i], "--version") == 0)
			return printf("avad %s\n", ava_version()) < 0;
		else if (strcmp(argv[i], "--help") == 0)
			return usage(stdout);
		else
			return usage(stderr);
	}
	return daemon_run(&o, &err) == 0 ? 0 : fail(&err);
}
