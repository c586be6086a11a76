/* The arguments of a call against its tool's schema, and what a definition is known by.
 *
 * The sentence that the model reads names the first place that does not fit and what
 * belongs there. Fails with AVA_EINVAL (the arguments), AVA_ECORRUPT (our own schema). */
#include "agent/tool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <ava.h>
#include "base/error.h"
#include "codec/json.h"
#include "codec/schema.h"

/* The schemas that were read last, by their text: reading one costs ten times the
 * check. They stay until the program ends. */
#define KNOWN_MAX 16u

/* NULL: no object, or no memory. A new reference. */
static json_t *read_schema(const char *text)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct {
		char *text;
		json_t *schema;
	} known[KNOWN_MAX];
	static unsigned next;
	json_t *schema = NULL;
	char *copy;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < KNOWN_MAX && schema == NULL; i++)
		if (known[i].text != NULL && strcmp(known[i].text, text) == 0)
			schema = json_incref(known[i].schema);
	if (schema == NULL) {
		schema = json_parse(text, strlen(text), NULL);
		copy = json_is_object(schema) ? strdup(text) : NULL;
		if (copy != NULL) {
			free(known[next].text);
			json_decref(known[next].schema);
			known[next].text = copy;
			known[next].schema = json_incref(schema);
			next = (next + 1) % KNOWN_MAX;
		}
	}
	pthread_mutex_unlock(&lock);
	return schema;
}

void tool_hash(const struct tool *t, char out[HASH_HEX_LEN + 1])
{
	struct hash_sha256 h;

	hash_sha256_init(&h);
	hash_sha256_add(&h, t->name, strlen(t->name) + 1);
	hash_sha256_add(&h, t->description, strlen(t->description) + 1);
	hash_sha256_with(&h, t->schema, strlen(t->schema), out);
}

int tool_check_args(const char *schema, const json_t *args, struct ava_error *err)
{
	struct buf out;
	json_t *s;
	int rv;

	if (!json_is_object(args))
		return err_set(err, AVA_EINVAL, "the arguments must be a JSON object");
	s = read_schema(schema);
	if (!json_is_object(s)) {
		json_decref(s);
		return err_set(err, AVA_ECORRUPT, "the tool's schema is not a JSON object");
	}
	buf_init(&out, 8192);
	rv = schema_validate(s, args, "", &out);
	if (rv > 0 || rv == AVA_ETOOBIG) /* one thing at a time */
		rv = err_set(err, AVA_EINVAL, "%.*s",
			     out.data != NULL ? (int)strcspn(out.data, "\n") : 0,
			     out.data != NULL ? out.data : "");
	else if (rv != 0)
		err_set(err, rv, "out of memory");
	buf_fini(&out);
	json_decref(s);
	return rv;
}
