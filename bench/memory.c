/* The memory (src/memory) with ROWS rows (9,700) and those it adds: what a change costs with its
 * sync, and a search as the loop sees it, the hand-over to the thread and back included. All words;
 * any of the words; letters in the middle of a word; what a conversation begins with; a row that is
 * erased, with the file written anew.
 *
 *     bench_memory [ROWS [ROUNDS]] */
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "memory/memory.h"
#include "os/loop.h"

static struct os_loop *loop;
static struct memory *memory;
static struct memory_op *answer;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void answered(struct memory_op *op)
{
	answer = op;
}

static void ask(struct memory_op *op)
{
	op->row.user = "ben";
	op->row.cwd = "";
	op->limit = 8;
	op->bytes = 4000;
	memory_op_free(answer);
	answer = NULL;
	memory_ask(memory, op);
	while (!answer)
		os_loop_step(loop, 1000);
	if (answer->rv != 0) {
		fprintf(stderr, "bench_memory: %s\n", answer->err.text);
		exit(1);
	}
}

static struct memory_op *op_with(enum memory_what what, const char *words)
{
	struct memory_op *op = memory_op_new(what, answered, NULL);

	if (!op)
		exit(1);
	if (what == MEMORY_WRITE)
		op->row.text = words;
	else
		op->words = words;
	return op;
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const char *name, enum memory_what what, const char *words, int rounds)
{
	double *times = calloc((size_t)rounds, sizeof(*times));
	char text[200], id[MEMORY_ID_LEN];
	const char *ids[] = {id};

	for (int i = 0; times && i < rounds; i++) {
		struct memory_op *op;
		double from;

		snprintf(text, sizeof(text), words, i, i * 37 % 1000);
		op = op_with(what, text);
		if (what == MEMORY_REMOVE) {
			ask(op_with(MEMORY_WRITE, text));
			snprintf(id, sizeof(id), "%s", answer->rows[0].id);
			op->ids = ids;
			op->nids = 1;
		}
		from = now_ms();
		ask(op);
		times[i] = now_ms() - from;
	}
	qsort(times, (size_t)rounds, sizeof(*times), by_time);
	printf("%-22s median %6.2f ms, p99 %6.2f ms, %zu rows\n", name, times[rounds / 2],
	       times[rounds * 99 / 100], answer->nrows);
	free(times);
}

/* Of a vocabulary of 5,000 words, as texts of people are: some often, most seldom. */
static void fill(const char *dir, int rows)
{
	char path[300], sql[900];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/memory.db", dir);
	snprintf(sql, sizeof(sql),
		 "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
		 "INSERT INTO memory SELECT NULL, 'M-x' || i, 'ben', "
		 "iif(i %% 10 = 0, 'person', 'fact'), '', 'the word' || (i * 7919 %% 5000) || "
		 "' of project' || (i %% 40) || ' stands beside word' || (i * 104729 %% 5000) || "
		 "' and says number' || i, 'n' || i, '', 'added', '', 0, i, i, x'00', '' FROM n",
		 rows);
	if (sqlite3_open(path, &db) != SQLITE_OK ||
	    sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
		fprintf(stderr, "bench_memory: %s\n", sqlite3_errmsg(db));
		exit(1);
	}
	sqlite3_close(db);
}

int main(int argc, char **argv)
{
	int rows = argc > 1 ? atoi(argv[1]) : 9700, rounds = argc > 2 ? atoi(argv[2]) : 200;
	char dir[] = "/tmp/bench-memory-XXXXXX", command[64];

	if (rows < 1 || rounds < 1 || !mkdtemp(dir) || !(loop = os_loop_new(NULL)) ||
	    !(memory = memory_new(loop, dir)))
		return 1;
	measure("a row that is added", MEMORY_WRITE, "a new row %d of its own, with %d", rounds);
	fill(dir, rows);
	printf("%d rows\n", rows + rounds);
	measure("all of three words", MEMORY_FIND, "number%d word%d says", rounds);
	measure("any of the words", MEMORY_FIND, "where did word%d go with rabbit%d", rounds);
	measure("a word of many rows", MEMORY_FIND, "stands", rounds);
	measure("letters", MEMORY_FIND, "umber%d word%d", rounds);
	measure("a conversation begins", MEMORY_RECALL, "what about word%d of project%d?", rounds);
	measure("a row that is erased", MEMORY_REMOVE, "secret %d of %d", MIN(rounds, 20));
	memory_op_free(answer);
	memory_free(memory);
	os_loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command) == 0 ? 0 : 1;
}
