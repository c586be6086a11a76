/* The three rights of a run: their JSON keys and the words for people, for the daemon and the
 * command (subagent/rights.h defines them). */
#ifndef BASE_RIGHTS_WORDS_H
#define BASE_RIGHTS_WORDS_H

#define RIGHTS(X)                                                                                  \
	/* flag of a tool, key, words where a run has it, where it has not */                      \
	X(PRIVATE, "private", "sees what is yours", "nothing of yours")                            \
	X(UNTRUSTED, "untrusted", "reads what strangers wrote", "nothing of strangers")            \
	X(OUT, "out", "can send data out", "no way out")

#endif
