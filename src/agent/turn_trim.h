/* A turn that waits for long. */
#ifndef AGENT_TURN_TRIM_H
#define AGENT_TURN_TRIM_H

struct turn;

/* A copy in one piece of memory of its size, without what is on disk and not needed
 * any more once the reply is saved (wire, thinking). NULL: out of memory. */
struct turn *turn_trim(const struct turn *t);

#endif
