/* Commands of a conversation: lines that begin with "/". */
#ifndef CLI_CHAT_COMMANDS_H
#define CLI_CHAT_COMMANDS_H

#include <stddef.h>

struct chat;

enum chat_did {
	CHAT_SAYS,   /* no command: it is for Ava */
	CHAT_DONE,   /* a command, carried out or refused in words */
	CHAT_LEAVES, /* /quit */
};

/* What it prints goes to stdout, in whole lines. */
enum chat_did chat_command(struct chat *c, const char *line);

/* Words that begin with `word`: commands where it begins the line, and ids of
 * runs and proposals. *Borrowed until the conversation goes on.* */
size_t chat_complete(struct chat *c, const char *word, int first, const char **out, size_t max);

#endif
