/* Certificates of the mock, made anew at each start (P-256, a day).
 *
 * One authority, one server certificate a listener. Every step of OpenSSL may
 * fail; then the program says which and does not start. */
#include "cert.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

struct cert_authority {
	EVP_PKEY *key;
	X509 *cert;
	long serial;
};

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *ext;
	X509V3_CTX ctx;
	bool good;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	good = ext != NULL && X509_add_ext(cert, ext, -1) == 1;
	X509_EXTENSION_free(ext);
	return good;
}

static X509 *make(EVP_PKEY *key, const char *name, long serial, bool expired)
{
	X509 *cert = X509_new();
	X509_NAME *subject = cert ? X509_get_subject_name(cert) : NULL;

	if (cert == NULL)
		return NULL;
	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), serial);
	X509_gmtime_adj(X509_getm_notBefore(cert), expired ? -172800 : -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), expired ? -86400 : 86400);
	X509_set_pubkey(cert, key);
	if (X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1,
				       -1, 0) == 1)
		return cert;
	X509_free(cert);
	return NULL;
}

static bool write_pem(const X509 *cert, const char *file)
{
	FILE *f = fopen(file, "we");
	bool good = f != NULL && PEM_write_X509(f, (X509 *)cert) == 1;

	return f != NULL && fclose(f) == 0 && good;
}

struct cert_authority *cert_authority_new(const char *file, const char **why)
{
	struct cert_authority *a = calloc(1, sizeof *a);

	*why = "cannot make the certificate authority";
	if (a == NULL)
		return NULL;
	a->key = EVP_EC_gen("P-256");
	a->serial = 1;
	a->cert = a->key ? make(a->key, "mock-models authority", a->serial, false) : NULL;
	if (a->cert == NULL || X509_set_issuer_name(a->cert, X509_get_subject_name(a->cert)) != 1 ||
	    !add_extension(a->cert, a->cert, NID_basic_constraints, "critical,CA:TRUE") ||
	    !add_extension(a->cert, a->cert, NID_key_usage, "critical,keyCertSign,cRLSign") ||
	    !add_extension(a->cert, a->cert, NID_subject_key_identifier, "hash") ||
	    X509_sign(a->cert, a->key, EVP_sha256()) == 0)
		goto fail;
	*why = "cannot write the certificate file";
	if (!write_pem(a->cert, file))
		goto fail;
	return a;

fail:
	cert_authority_free(a);
	return NULL;
}

void cert_authority_free(struct cert_authority *a)
{
	if (a == NULL)
		return;
	X509_free(a->cert);
	EVP_PKEY_free(a->key);
	free(a);
}

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *outlen,
		       const unsigned char *in, unsigned inlen, void *h2)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1", one[] = "\x08http/1.1";
	unsigned char *chosen = NULL;

	(void)ssl;
	if (SSL_select_next_proto(&chosen, outlen, h2 ? both : one,
				  h2 ? sizeof both - 1 : sizeof one - 1, in,
				  inlen) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static X509 *make_leaf(struct cert_authority *a, EVP_PKEY *key, enum cert_kind kind)
{
	bool self = kind == CERT_SELF;
	X509 *cert = make(key, "mock-models", ++a->serial, kind == CERT_EXPIRED);
	const char *names =
		kind == CERT_OTHER_NAME ? "DNS:mock.invalid" : "IP:127.0.0.1,DNS:localhost";

	if (cert == NULL)
		return NULL;
	if (X509_set_issuer_name(cert, X509_get_subject_name(self ? cert : a->cert)) == 1 &&
	    add_extension(cert, self ? cert : a->cert, NID_subject_alt_name, names) &&
	    add_extension(cert, self ? cert : a->cert, NID_ext_key_usage, "serverAuth") &&
	    X509_sign(cert, self ? key : a->key, EVP_sha256()) != 0)
		return cert;
	X509_free(cert);
	return NULL;
}

SSL_CTX *cert_context(struct cert_authority *a, enum cert_kind kind, bool h2, const char **why)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = key ? make_leaf(a, key, kind) : NULL;
	bool good = ctx != NULL && cert != NULL && SSL_CTX_use_certificate(ctx, cert) == 1 &&
		    SSL_CTX_use_PrivateKey(ctx, key) == 1;

	X509_free(cert);
	EVP_PKEY_free(key);
	if (!good) {
		*why = "cannot make the server's certificate";
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, h2 ? ctx : NULL);
	return ctx;
}
