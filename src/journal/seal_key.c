/* Making, reading and using the sealing key; see seal_key.h.
 *
 * seals/key holds one line, `ed25519 <64 hex digits>`: the seed. Moving it
 * away is how it is changed: the next start makes another and adds a line to
 * seals/public, which keeps the old one, so that old Seals can be checked. */
#include "journal/seal_key.h"

#include <ava.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "journal/files.h"

#define SMALL_FILE (1u << 20)

static int read_seed(int rootfd, unsigned char seed[32], struct ava_error *err)
{
	char *text = NULL;
	size_t len;
	int rv = sys_read_file(rootfd, SEAL_KEY_PATH, SMALL_FILE, &text, &len, err);

	if (rv != 0)
		return rv;
	if (len > 0 && text[len - 1] == '\n')
		text[--len] = '\0';
	if (len != 8 + 64 || memcmp(text, "ed25519 ", 8) != 0 || !seal_unhex(text + 8, seed, 32))
		rv = err_set(err, AVA_ECORRUPT,
			     SEAL_KEY_PATH " holds no key: put it back, or move it away to seal "
					   "with a new one");
	sodium_memzero(text, len);
	free(text);
	return rv;
}

static int make_seed(int rootfd, unsigned char seed[32], struct ava_error *err)
{
	char text[8 + 64 + 2] = "ed25519 ";
	int rv = 0;

	randombytes_buf(seed, 32);
	seal_hex(seed, 32, text + 8);
	text[sizeof(text) - 2] = '\n';
	text[sizeof(text) - 1] = '\0';
	if (files_replace(rootfd, SEAL_KEY_PATH, text, strlen(text), true) != 0)
		rv = err_sys(err, SEAL_KEY_PATH);
	sodium_memzero(text, sizeof(text));
	return rv;
}

static int publish(const struct seal_key *k, int rootfd, struct ava_error *err)
{
	char hex[2 * SEAL_KEY + 1], at[CLOCK_ISO_LEN + 1], *old = NULL;
	size_t len = 0;
	struct buf b;
	int rv = sys_read_file(rootfd, SEAL_PUBLIC_PATH, SMALL_FILE, &old, &len, err);

	if (rv != 0 && rv != AVA_ENOENT)
		return rv;
	seal_hex(k->pub, SEAL_KEY, hex);
	clock_iso(clock_wall_ms(), at);
	buf_init(&b, 2 * SMALL_FILE);
	buf_add(&b, old ? old : "", len);
	if (len > 0 && old[len - 1] != '\n')
		buf_addc(&b, '\n');
	buf_addf(&b, "ed25519 %s %s\n", hex, at);
	free(old);
	rv = buf_check(&b);
	if (rv != 0)
		err_set(err, rv, "out of memory");
	else if (files_replace(rootfd, SEAL_PUBLIC_PATH, b.data, b.len, true) != 0)
		rv = err_sys(err, SEAL_PUBLIC_PATH);
	buf_fini(&b);
	return rv;
}

int seal_key_open(struct seal_key *k, int rootfd, struct ava_error *err)
{
	unsigned char seed[crypto_sign_SEEDBYTES];
	int rv;

	*k = (struct seal_key){0};
	if (sodium_init() < 0)
		return err_set(err, AVA_ENOMEM, "libsodium cannot start");
	rv = read_seed(rootfd, seed, err);
	if (rv == AVA_ENOENT)
		rv = make_seed(rootfd, seed, err);
	if (rv == 0) {
		crypto_sign_seed_keypair(k->pub, k->secret, seed);
		rv = seal_key_known(rootfd, k->pub, err);
		rv = rv == 1 ? 0 : rv == 0 || rv == AVA_ENOENT ? publish(k, rootfd, err) : rv;
	}
	sodium_memzero(seed, sizeof(seed));
	if (rv != 0)
		seal_key_close(k);
	return rv;
}

void seal_key_close(struct seal_key *k)
{
	sodium_memzero(k, sizeof(*k));
}

void seal_key_sign(const struct seal_key *k, const void *msg, size_t len,
		   unsigned char sig[SEAL_SIG])
{
	crypto_sign_detached(sig, NULL, msg, len, k->secret);
}
