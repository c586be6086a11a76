/* Keys and addresses of services: from $XDG_CONFIG_HOME/ava/env (mode 0600), else from the
 * environment. The file's values stay in memory that is wiped; they are never put into the
 * environment (children would inherit it), logged or sent anywhere but to their service. One
 * thread. */
#ifndef BASE_KEYS_H
#define BASE_KEYS_H

#include <stdbool.h>
#include <stddef.h>

struct ava_error;

#define KEYS_FILE_MAX  65536
#define KEYS_VALUE_MAX 4096

/* Names of the keys that this version asks for; NULL ends the list. */
extern const char *const keys_known[];

/* Read the file of keys; a missing one is fine. Values read before are wiped. The file must belong
 * to us and be closed to others: AVA_EDENIED with the chmod to do; AVA_EINVAL with file and
 * line. */
int keys_load(struct ava_error *err);
void keys_wipe(void);

/* The value of a key; borrowed until keys_load or keys_wipe; NULL: unset or "". */
const char *keys_get(const char *name);
/* The source of the value: "file" or "environment"; NULL: unset. */
const char *keys_source(const char *name);
/* The i-th name and value of the file; NULL behind the last. */
const char *keys_file(size_t i, const char **value);
/* Put NAME=value into the file, in place of a line with that name (`value` NULL: take that line
 * out); the rest is kept, the file replaced in one step and made (0600) when missing. `path` gets
 * its path. AVA_EINVAL: the file cannot hold `value`, or is broken already. */
int keys_store(const char *name, const char *value, char *path, size_t size, struct ava_error *err);
/* Is `value` usable as a key: printable, no blanks, 8 bytes or more? */
int keys_check(const char *name, const char *value, struct ava_error *err);

/* A command checks that the daemon has the same value without either showing it: the daemon
 * draws a salt once, both hash name and value with it. */
#define KEYS_SALT_LEN 32
#define KEYS_MARK_LEN 16
const char *keys_salt(void); /* 32 hex digits; constant in this process */
/* The hash of a name and its value with `salt`: 16 hex digits, "" when the name is unset; false:
 * `salt` is malformed. */
bool keys_mark(const char *salt, const char *name, char out[KEYS_MARK_LEN + 1]);

#endif
