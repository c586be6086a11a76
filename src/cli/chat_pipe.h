/* A conversation without a terminal: each line of stdin is a message, said when
 * Ava has answered the one before. At the end of the input her last answer is
 * waited for, and the subagents of the conversation with what she tells of their
 * results. Proposals that nobody answered stay open. */
#ifndef CLI_CHAT_PIPE_H
#define CLI_CHAT_PIPE_H

struct ava_error;
struct chat;

/* `first`: a line that was read already. 0, or why it cannot go on. */
int chat_pipe(struct chat *c, const char *first, struct ava_error *err);

/* The next line of stdin that says something, without its newline. 1, with
 * *line the caller's (free); 0 at the end; a code. */
int chat_pipe_line(char **line, struct ava_error *err);

#endif
