/* A certificate authority that lives as long as the program: its certificate
 * is written to a file, its key stays in memory. */
#ifndef MOCK_CERT_H
#define MOCK_CERT_H

#include <openssl/ssl.h>
#include <stdbool.h>

enum cert_kind {
	CERT_GOOD, /* 127.0.0.1, localhost */
	CERT_EXPIRED,
	CERT_OTHER_NAME, /* only mock.invalid */
	CERT_SELF,       /* not signed by the authority */
};

struct cert_authority;
/* Writes the certificate to `file`. NULL: *why says what failed. */
struct cert_authority *cert_authority_new(const char *file, const char **why);
void cert_authority_free(struct cert_authority *a);
/* A server context; `h2`: HTTP/2 is offered. */
SSL_CTX *cert_context(struct cert_authority *a, enum cert_kind kind, bool h2, const char **why);

#endif
