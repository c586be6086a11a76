/* mock-models: model services for tests, on loopback, strict as the real ones.
 *
 * Reads its options, opens its listeners, prints an address a line and "ready",
 * and runs until SIGTERM or SIGINT. doc/MOCK.md is the manual. A bad option or
 * an address that is taken ends it with code 2 or 1. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/util.h"
#include "cert.h"
#include "serve.h"

static struct loop *running;

static const char usage[] =
	"usage: mock-models [OPTION...] [PLAN-WORD...]\n"
	"\n"
	"Stands in for the Messages API (/v1/messages), chat completions (/v1/chat/completions),\n"
	"OpenRouter (/api/v1/chat/completions) and local servers (/local/v1/chat/completions).\n"
	"Prints a line for each address, then \"ready\".\n"
	"\n"
	"  --port N           plain HTTP on 127.0.0.1:N (default: any free port)\n"
	"  --tls              also HTTPS (HTTP/2 and HTTP/1.1) on a port of its own\n"
	"  --ca FILE          where to write the authority's certificate (default mock-ca.pem)\n"
	"  --tls-bad KIND     another HTTPS port that fails: expired, name, self or garbage\n"
	"  --rules FILE       rules, as POST /plan takes them\n"
	"  --log FILE         write each request as a line of JSON\n"
	"  --quiet            do not print refused requests\n"
	"  --with-parent      end when the process that started it does\n"
	"  --help\n"
	"\n"
	"Plan words: turns=4 latency=500 chunks=20 fault=529x5 quirk=no-ids ... (doc/MOCK.md)\n"
	"Its own addresses: GET /stats, GET /requests, POST /plan; ?clear forgets.\n";

struct options {
	int port;
	const char *ca, *rules, *log;
	int bad[4]; /* enum cert_kind, or -1 for garbage */
	unsigned nbad;
	bool tls, quiet, with_parent;
};

static void stop(int signo)
{
	(void)signo;
	loop_stop(running);
}

/* enum cert_kind + 1 */
static const char *const words[] = {"garbage", "good", "expired", "name", "self"};

static bool add_bad(struct options *o, const char *word)
{
	for (int i = 0; i < (int)ARRAY_LEN(words); i++)
		if (strcmp(word, words[i]) == 0 && i != 1 && o->nbad < ARRAY_LEN(o->bad)) {
			o->bad[o->nbad++] = i - 1;
			return true;
		}
	return false;
}

static bool read_options(int argc, char **argv, struct options *o)
{
	/* clang-format off */
	static const struct option longs[] = {
		{"port", 1, NULL, 'p'}, {"tls", 0, NULL, 't'}, {"ca", 1, NULL, 'c'},
		{"tls-bad", 1, NULL, 'b'}, {"rules", 1, NULL, 'r'}, {"log", 1, NULL, 'l'},
		{"quiet", 0, NULL, 'q'}, {"help", 0, NULL, 'h'}, {"with-parent", 0, NULL, 'w'}, {0},
	};
	/* clang-format on */
	int c;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'p':
			o->port = atoi(optarg);
			break;
		case 't':
			o->tls = true;
			break;
		case 'c':
			o->ca = optarg;
			break;
		case 'r':
			o->rules = optarg;
			break;
		case 'l':
			o->log = optarg;
			break;
		case 'q':
			o->quiet = true;
			break;
		case 'w':
			o->with_parent = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case 'b':
			if (add_bad(o, optarg))
				break;
			/* fall through */
		default:
			return false;
		}
	}
	return true;
}

static bool read_rules(struct serve *s, const char *file)
{
	char why[160] = "cannot be read", *text = malloc(1u << 20);
	FILE *f = fopen(file, "re");
	size_t len = f && text ? fread(text, 1, 1u << 20, f) : 0;

	if (len > 0)
		s->rules = rules_read(text, len, why, sizeof why);
	if (f != NULL)
		fclose(f);
	free(text);
	if (s->rules == NULL)
		fprintf(stderr, "mock-models: %s: %s\n", file, why);
	return s->rules != NULL;
}

static bool listen_one(struct serve *s, const char *word, int port, SSL_CTX *tls, bool garbage)
{
	int got = loop_listen(s->loop, s, port, tls, garbage);

	if (got < 0) {
		fprintf(stderr, "mock-models: cannot listen on port %d\n", port);
		return false;
	}
	printf("%s %s://127.0.0.1:%d\n", word, tls || garbage ? "https" : "http", got);
	return true;
}

static bool listen_tls(struct serve *s, const struct options *o, struct cert_authority *a,
		       SSL_CTX **made)
{
	const char *why = "";
	unsigned n = 0;

	if (o->tls) {
		made[n] = cert_context(a, CERT_GOOD, true, &why);
		if (made[n] == NULL || !listen_one(s, "tls", 0, made[n], false))
			return false;
		n++;
	}
	for (unsigned i = 0; i < o->nbad; i++) {
		bool garbage = o->bad[i] < 0;

		if (!garbage) {
			made[n] = cert_context(a, (enum cert_kind)o->bad[i], true, &why);
			if (made[n] == NULL)
				return false;
		}
		if (!listen_one(s, words[o->bad[i] + 1], 0, garbage ? NULL : made[n], garbage))
			return false;
		n += !garbage;
	}
	return true;
}

/* Each connection is a descriptor. */
static void raise_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

static int run(struct serve *s, const struct options *o)
{
	struct cert_authority *a = NULL;
	SSL_CTX *made[6] = {0};
	const char *why = "";
	int code = 1;

	if (o->tls || o->nbad > 0) {
		a = cert_authority_new(o->ca, &why);
		if (a == NULL) {
			fprintf(stderr, "mock-models: %s: %s\n", o->ca, why);
			return 1;
		}
		printf("ca %s\n", o->ca);
	}
	if (listen_one(s, "plain", o->port, NULL, false) &&
	    (a == NULL || listen_tls(s, o, a, made))) {
		puts("ready");
		fflush(stdout);
		loop_run(s->loop);
		code = 0;
	}
	loop_free(s->loop);
	for (size_t i = 0; i < ARRAY_LEN(made); i++)
		SSL_CTX_free(made[i]);
	cert_authority_free(a);
	return code;
}

int main(int argc, char **argv)
{
	struct options o = {.ca = "mock-ca.pem"};
	struct sigaction act = {.sa_handler = stop};
	struct serve s;
	char why[160];
	int code;

	if (!read_options(argc, argv, &o)) {
		fputs(usage, stderr);
		return 2;
	}
	if (o.with_parent)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	raise_limit();
	running = loop_new();
	serve_init(&s, running);
	s.quiet = o.quiet;
	for (int i = optind; i < argc; i++)
		if (!plan_parse(&s.plan, argv[i], strlen(argv[i]), why, sizeof why)) {
			fprintf(stderr, "mock-models: %s\n", why);
			return 2;
		}
	if (o.rules != NULL && !read_rules(&s, o.rules))
		return 2;
	if (o.log != NULL && (s.log = fopen(o.log, "ae")) == NULL) {
		fprintf(stderr, "mock-models: cannot write %s\n", o.log);
		return 1;
	}
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	signal(SIGPIPE, SIG_IGN);
	code = run(&s, &o);
	serve_fini(&s);
	if (s.log != NULL)
		fclose(s.log);
	return code;
}
