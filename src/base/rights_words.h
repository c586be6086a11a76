/* The three rights of a run: their JSON keys and the words for people, for the daemon and the
 * command (subagent/rights.h defines them). */
#ifndef BASE_RIGHTS_WORDS_H
#define BASE_RIGHTS_WORDS_H

#define RIGHTS(X)                                                                                  \
	/* flag of a tool, key, words where a run has it, where it has not */                      \
	X(PRIVATE, "private", "reads your data", "reads none of your data")                        \
	X(UNTRUSTED, "untrusted", "reads the web", "does not read the web")                        \
	X(OUT, "out", "can send data out", "can't send data out")

/* In place of the words for no UNTRUSTED and no OUT where a run has neither: no tool of it fetches
 * anything. */
#define RIGHTS_NO_NETWORK "no network"

/* The words for PRIVATE where it is known what the run reads: RIGHTS_READS at the sum of these
 * bits. */
#define RIGHTS_FILES    1u
#define RIGHTS_MEMORIES 2u
#define RIGHTS_OTHER    4u /* other data, from its context or an MCP server */
#define RIGHTS_READS                                                                               \
	{                                                                                          \
		"reads your data", "reads your files", "reads your memories",                      \
			"reads your files and memories", "reads your data",                        \
			"reads your files and other data", "reads your memories and other data",   \
			"reads your files, memories and other data"                                \
	}

#endif
