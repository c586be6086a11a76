/* The words of `ava logs` that are about seals. */
#ifndef CLI_CMD_VERIFY_H
#define CLI_CMD_VERIFY_H

struct command;

/* "verify", "head"; NULL for any other. */
const struct command *logs_word(const char *word);

#endif
