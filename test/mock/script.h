/* Replies that a file says (script=FILE of a plan). */
#ifndef MOCK_SCRIPT_H
#define MOCK_SCRIPT_H

#include "reply.h"

/* Text, calls and delay of reply `turn`, from 0, into *out. */
void script_play(const char *file, unsigned turn, struct content *out);

#endif
