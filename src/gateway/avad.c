/* avad: the daemon's main. `ava` starts it on demand with --ready-fd; by hand
 * it serves in the foreground. What can fail: options (2), and everything of
 * daemon.h (1 and one sentence). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ava.h>

#include "gateway/daemon.h"
#include "gateway/process.h"

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

static int bad_option(const char *what, const char *arg)
{
	fprintf(stderr, "avad: %s: %s\n", what, arg);
	return usage(stderr);
}

int main(int argc, char **argv)
{
	struct daemon_options o = {.ready_fd = -1};
	struct ava_error err = {0};
	bool recover = false;
	int rv;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--service") == 0)
			o.service = true;
		else if (strcmp(argv[i], "--verbose") == 0)
			o.verbose = true;
		else if (strcmp(argv[i], "--ready-fd") == 0 && i + 1 < argc) {
			o.ready_fd = process_descriptor(argv[++i]);
			if (o.ready_fd < 0)
				return bad_option("--ready-fd needs an open descriptor above 2",
						  argv[i]);
		} else if (strcmp(argv[i], "--recover") == 0)
			recover = true;
		else if (strcmp(argv[i], "--version") == 0)
			return printf("avad %s\n", ava_version()) < 0;
		else if (strcmp(argv[i], "--help") == 0)
			return usage(stdout);
		else
			return bad_option("unknown option", argv[i]);
	}
	if (process_prepare(&err) != 0)
		return fail(&err);
	rv = recover ? daemon_recover(&err) : daemon_run(&o, &err);
	return rv == 0 ? 0 : fail(&err);
}
