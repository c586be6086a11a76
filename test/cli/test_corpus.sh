#!/bin/sh
# What people say to Ava, line by line (test/corpus/said.tsv, played by corpus.py).
. "${0%/*}/lib.sh"

mkdir -p "$T/talk/src/src" "$T/talk/src/doc"
cd "$T/talk/src" || exit 99
cat >src/kettle.h <<'END'
#ifndef KETTLE_H
#define KETTLE_H

#define BOILING	100

struct kettle;
int kettle_boil(struct kettle *k);
void kettle_stop(struct kettle *k);

#endif
END
open=$(printf TO; printf DO) # of the project, not of ava
cat >src/kettle.c <<END
/* A kettle boils water until it is told to stop. */
#include "kettle.h"

struct kettle {
	int litres;
	int degrees;
};

int kettle_boil(struct kettle *k)
{
	while (k->degrees < BOILING)
		k->degrees++;
	return k->degrees;
}

/* ${open}: tell the person that it has stopped. */
void kettle_stop(struct kettle *k)
{
	k->degrees = 0;
}
END
cat >src/teapot.c <<'END'
/* A teapot holds tea, and is filled from a kettle. */
#include <stdlib.h>
#include "kettle.h"

struct teapot
{
	char *tea;
	int cups;
};

struct teapot *teapot_fill(struct kettle *k, int cups)
{
	struct teapot *t = malloc(sizeof(*t));

	t->cups = cups;
	t->tea = malloc(100);
	kettle_boil(k);
	return t;
}

int teapot_pour(struct teapot *t)
{
	return --t->cups;
}
END
cat >src/main.c <<'END'
#include "kettle.h"

struct teapot;
struct teapot *teapot_fill(struct kettle *k, int cups);
int teapot_pour(struct teapot *t);

int main(void)
{
	struct teapot *t = teapot_fill(0, 4);

	return teapot_pour(t);
}
END
printf '# Teahouse\n\nTeahouse brews tea: a kettle boils the water, a teapot holds the tea.\n' >README.md
printf '# Brewing\n\nGreen tea wants 3 minutes at 80 degrees.\nBlack tea brews for 5 minutes.\n' >doc/notes.md
export ANTHROPIC_API_KEY=not-a-key ANTHROPIC_BASE_URL=http://127.0.0.1:9 # quoted, never called
start_daemon || finish
play "$LIB/corpus.py" "$T/talk" "${CORPUS:-$SRCDIR/test/corpus/said.tsv}"
finish
