/* Things that families of services do not take of a conversation. Each such thing has a word,
 * which stands in the same list as parameters that a model rejects (model_takes):
 *
 *	system_role                a system message
 *	null_content               null as the text of a reply of calls alone
 *	empty_content              an empty text
 *	long_ids                   ids of calls that are not nine letters or digits
 *	call_members               members of a call beside id, name and arguments
 *	calls_without_reasoning    a reply of calls without reasoning_content
 *	calls_without_signature    a reply of calls without Gemini's thought_signature
 *	thinking_blocks.finished   thinking of turns before the one under way
 *	thinking_blocks            any thinking
 *	schema.KEYWORD             that keyword in the schema of a tool
 *
 * A model begins with what its family does not take; a refusal adds to it. Pure. */
#ifndef PROVIDER_PROFILE_H
#define PROVIDER_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#define PROFILE_KEYWORD "schema."

/* Add to `list` the words for what a family of models does not take; a service's address or a
 * model's name tells the family. */
void profile_add(char *list, size_t size, const char *url, const char *name);
/* Words that a refusal is about, a blank between two, the likeliest first; false: none. */
bool profile_refused(const char *text, char *words, size_t size);
/* Does the word, or a member of lines, belong to requests of chat completions? Else of Messages. */
bool profile_in_chat(const char *word);
bool profile_in_messages(const char *word);
/* A word's meaning, for people; a parameter stands for itself. */
const char *profile_says(const char *word);

#endif
