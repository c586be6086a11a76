/* Shared models are counted, and found by their id. One whose facts are not those of
 * its id's (a table that changed meanwhile, a parameter that it rejects) is a copy of
 * its own. What can fail: memory. The lock is for several runtimes in one process. */
#include "provider/model_share.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/strmap.h"
#include "base/util.h"

struct shared {
	struct model model;
	size_t users;
	bool listed; /* in `by_id` */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct strmap by_id;

static struct shared *find(const struct model *m)
{
	struct shared *s = by_id.cap ? strmap_get(&by_id, m->id) : NULL;

	/* Where bytes between the members differ it is only not shared. */
	return s && memcmp(&s->model, m, sizeof(*m)) == 0 ? s : NULL;
}

static struct shared *add(const struct model *m)
{
	struct shared *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	memcpy(&s->model, m, sizeof(*m)); /* all of its bytes: they are compared */
	s->users = 0;
	if (!by_id.cap)
		strmap_init(&by_id);
	s->listed = strmap_put(&by_id, s->model.id, s) == 0;
	return s;
}

const struct model *model_share(const struct model *m)
{
	struct shared *s;

	pthread_mutex_lock(&lock);
	s = find(m);
	if (!s)
		s = add(m);
	if (s)
		s->users++;
	pthread_mutex_unlock(&lock);
	return s ? &s->model : NULL;
}

void model_unshare(const struct model *m)
{
	struct shared *s;

	if (!m)
		return;
	s = CONTAINER_OF(m, struct shared, model);
	pthread_mutex_lock(&lock);
	if (--s->users == 0) {
		if (s->listed)
			strmap_del(&by_id, s->model.id);
		free(s);
	}
	pthread_mutex_unlock(&lock);
}
