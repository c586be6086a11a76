/* The table of doors for messengers. A row makes what the rest knows of one: a channel of delivery
 * with that name, `ava <name>`, its line in `ava status` and `ava doctor`, its secret in the file
 * of keys, its address in config.yaml and the environment. What is behind it is the wire
 * `door_wire_<name>` in src/gateway. */
#ifndef BASE_DOORS_H
#define BASE_DOORS_H

/* X(name, title, name of the secret, key of the address, variable of the address, what may stand
 * in `ava <name> --help` below its first line) */
#define DOORS(X)                                                                                   \
	X(telegram, "Telegram", "TELEGRAM_BOT_TOKEN", "telegram.url", "AVA_TELEGRAM_URL",          \
	  "speak with Ava through a bot of Telegram")                                              \
	X(matrix, "Matrix", "MATRIX_ACCESS_TOKEN", "matrix.homeserver", "AVA_MATRIX_HOMESERVER",   \
	  "speak with Ava in a room of Matrix")

enum doors_index {
#define X(name, ...) DOORS_##name,
	DOORS(X)
#undef X
		DOORS_N
};

#endif
