/* The three rights of a run, once: their JSON keys and what a person reads of them, here and
 * in the command (subagent/rights.h says what they are). */
#ifndef BASE_RIGHTS_WORDS_H
#define BASE_RIGHTS_WORDS_H

#define RIGHTS(X)                                                                                  \
	/* flag of a tool, key, words where a run has it, where it has not */                      \
	X(PRIVATE, "private", "sees what is yours", "nothing of yours")                            \
	X(UNTRUSTED, "untrusted", "reads what strangers wrote", "nothing of strangers")            \
	X(OUT, "out", "can send data out", "no way out")

#endif
