/* The memory's thread; memory.h.
 *
 * Happy path: an op is taken from the queue, done by the store, and handed back to the loop,
 * which calls the asker. What can fail: the thread cannot be started, too much waits, the
 * runtime stops: then the op is handed back at once, with the sentence. */
#include "memory/memory.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "memory/store.h"
#include "os/loop.h"

#define QUEUE_MAX  64
#define ANSWER_MAX (64u << 20)

struct memory {
	struct os_loop *loop;
	struct store *store; /* the thread's own while it runs */
	pthread_t thread;
	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t come;
	struct list asked, finished;
	unsigned nasked;
	bool running, closing;
	struct os_task wake;
};

/* ---- the thread */

static void *memory_thread(void *arg)
{
	struct memory *m = arg;

	pthread_mutex_lock(&m->lock);
	for (;;) {
		struct memory_op *op = LIST_FIRST(&m->asked, struct memory_op, node);

		if (!op && m->closing)
			break;
		if (!op) {
			pthread_cond_wait(&m->come, &m->lock);
			continue;
		}
		list_del(&op->node);
		pthread_mutex_unlock(&m->lock);
		store_do(m->store, op);
		pthread_mutex_lock(&m->lock);
		m->nasked--;
		list_add(&m->finished, &op->node);
		os_post(m->loop, &m->wake);
	}
	pthread_mutex_unlock(&m->lock);
	store_shut(m->store);
	return NULL;
}

static void hand_back(struct os_task *t)
{
	struct memory *m = CONTAINER_OF(t, struct memory, wake);
	struct memory_op *op;

	pthread_mutex_lock(&m->lock);
	while ((op = LIST_FIRST(&m->finished, struct memory_op, node)) != NULL) {
		list_del(&op->node);
		pthread_mutex_unlock(&m->lock);
		op->done(op);
		pthread_mutex_lock(&m->lock);
	}
	pthread_mutex_unlock(&m->lock);
}

/* Started with all signals blocked: they are for the loop's thread. */
static int start_thread(struct memory *m, struct ava_error *err)
{
	sigset_t all, before;
	int rv;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rv = pthread_create(&m->thread, NULL, memory_thread, m);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	m->running = rv == 0;
	errno = rv;
	return rv == 0 ? 0 : err_sys(err, "start the thread of the memory");
}

void memory_ask(struct memory *m, struct memory_op *op)
{
	pthread_mutex_lock(&m->lock);
	if (op->rv == 0 && m->closing)
		op->rv = err_set(&op->err, AVA_ECANCELED, "the runtime stops");
	else if (op->rv == 0 && m->nasked >= QUEUE_MAX)
		op->rv = err_set(&op->err, AVA_EBUSY, "%d questions to the memory wait: ask again",
				 QUEUE_MAX);
	else if (op->rv == 0 && !m->running)
		op->rv = start_thread(m, &op->err);
	if (op->rv != 0) {
		list_add(&m->finished, &op->node);
		os_post(m->loop, &m->wake);
	} else {
		m->nasked++;
		list_add(&m->asked, &op->node);
		pthread_cond_signal(&m->come);
	}
	pthread_mutex_unlock(&m->lock);
}

/* ---- life */

struct memory_op *memory_op_new(enum memory_what what, void (*done)(struct memory_op *op),
				void *user)
{
	struct memory_op *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->what = what;
	op->done = done;
	op->user = user;
	op->row.pinned = -1;
	list_init(&op->node);
	arena_init(&op->mem, ANSWER_MAX);
	return op;
}

const char *memory_op_copy(struct memory_op *op, const char *s)
{
	const char *copy = s ? arena_copy(&op->mem, s, strlen(s)) : NULL;

	if (s && !copy)
		op->rv = err_set(&op->err, AVA_ENOMEM, "out of memory");
	return copy;
}

void memory_op_free(struct memory_op *op)
{
	if (!op)
		return;
	list_del(&op->node);
	arena_fini(&op->mem);
	free(op);
}

struct memory *memory_new(struct os_loop *loop, const char *root)
{
	struct memory *m = calloc(1, sizeof(*m));

	if (!m || !(m->store = store_new(root))) {
		free(m);
		return NULL;
	}
	m->loop = loop;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->come, NULL);
	list_init(&m->asked);
	list_init(&m->finished);
	os_task_init(&m->wake, hand_back);
	return m;
}

void memory_free(struct memory *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->closing = true;
	pthread_cond_signal(&m->come);
	pthread_mutex_unlock(&m->lock);
	if (m->running)
		pthread_join(m->thread, NULL);
	while (m->wake.queued) /* the thread has ended: give the answers that wait */
		os_loop_step(m->loop, 0);
	pthread_cond_destroy(&m->come);
	pthread_mutex_destroy(&m->lock);
	store_free(m->store);
	free(m);
}
