/* The wire of Matrix: its client-server API, v3, in rooms that are not encrypted (doc/MATRIX.md).
 * Pure. */
#ifndef GATEWAY_MATRIX_MATRIX_H
#define GATEWAY_MATRIX_MATRIX_H

#include "gateway/door_wire.h"

extern const struct door_wire door_wire_matrix;

/* The wire's `judge`. */
void matrix_judge(int status, const char *body, size_t len, json_t **doc, struct door_answer *out);

#endif
