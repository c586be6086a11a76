/* Two tables, families of services and sentences of refusals, of public reports (repository
 * and number beside the row) and of the services' own documents: a new service is a row. Texts
 * of services are strangers': a row that fits by chance costs one request more, no run. */
#include "provider/profile.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

/* `address`: a part of the base URL; `names`: beginnings of a model's name, or of its part behind a
 * "/". A blank between two. */
static const struct {
	const char *address, *names, *rejects;
} families[] = {
	/* goose#5998, zed#37021, hermes#20154, crush#279; ids: Mistral's error 3280 */
	{"api.mistral.ai", "mistral ministral devstral magistral codestral pixtral mixtral",
	 "long_ids"},
	/* Google's schemas are a part of OpenAPI's; odysseus#837; signatures: hermes#14488 */
	{"generativelanguage.googleapis.com", "",
	 "empty_content schema.additionalProperties calls_without_signature"},
	/* opencode#16318, crush#2696, nanobot#946: thinking with tools */
	{"api.deepseek.com", "", "calls_without_reasoning"},
	{"api.moonshot.", "", "calls_without_reasoning"},
	{"api.kimi.com", "", "calls_without_reasoning"},
	/* LM Studio's port: bug-tracker#261, openfox#117 */
	{":1234", "", "null_content"},
	/* Ollama's port: odysseus#837 */
	{":11434", "", "empty_content"},
};

/* Phrases that a refusal holds both, in letters of either case; the first row that fits counts. */
static const struct {
	const char *says, *and_says, *words;
} refusals[] = {
	{"role 'system'", "", "system_role"},                            /* Mistral */
	{"role \"system\"", "", "system_role"},                          /* proxies */
	{"'system' role", "", "system_role"},                            /* proxies */
	{"system message", "not allowed", "system_role"},                /* proxies */
	{"roles must alternate", "", "system_role"},                     /* templates */
	{"alternate", "user", "system_role"},                            /* Perplexity, Gemini */
	{"system role", "not support", "system_role"},                   /* Gemma's template */
	{"system role", "unsupported", "system_role"},                   /* proxies */
	{"system message", "not support", "system_role"},                /* proxies */
	{"system prompt", "not support", "system_role"},                 /* proxies */
	{"developer instruction is not enabled", "", "system_role"},     /* Gemma at Google */
	{"does not support 'system'", "", "system_role"},                /* OpenAI o1 */
	{"only user and assistant roles", "", "system_role"},            /* templates */
	{"length of 9", "", "long_ids"},                                 /* Mistral */
	{"tool_calls[", "length", "long_ids"},                           /* proxies */
	{"tool_call", "too long", "long_ids"},                           /* OpenAI: 40 bytes */
	{"tool_calls[", ".id'", "long_ids"},                             /* OpenAI: its pattern */
	{"missing a thought_signature", "", "calls_without_signature"},  /* Gemini */
	{"extra_content", "", "call_members"},                           /* strict proxies */
	{"reasoning_content", "missing", "calls_without_reasoning"},     /* Kimi, DeepSeek */
	{"reasoning_content", "passed back", "calls_without_reasoning"}, /* DeepSeek */
	{"reasoning_content", "required", "calls_without_reasoning"},    /* proxies */
	{"thinking", "latest assistant message", "thinking_blocks reasoning_details"},
	{"thinking", "signature", "thinking_blocks.finished thinking_blocks reasoning_details"},
	{"redacted_thinking", "invalid",
	 "thinking_blocks.finished thinking_blocks reasoning_details"},
	{"grammar", "", "response_format tool_choice"},              /* llama.cpp */
	{"json schema", "", "response_format"},                      /* llama.cpp, vLLM */
	{"json_schema", "", "response_format"},                      /* older servers */
	{"content", "a string", "null_content empty_content"},       /* LM Studio, serde */
	{"content", "valid string", "null_content empty_content"},   /* pydantic */
	{"content", "null", "null_content empty_content"},           /* proxies */
	{"content", "required field", "null_content empty_content"}, /* Azure */
	{"content type: <nil>", "", "null_content empty_content"},   /* Ollama */
	{"content", "be empty", "empty_content null_content"},       /* Gemini, Ollama, proxies */
	{"content", "non-empty", "empty_content null_content"},      /* Bedrock */
};

/* Schema keywords that a model can do without. */
static const char *const keywords[] = {"additionalProperties",
				       "$schema",
				       "minLength",
				       "maxLength",
				       "minimum",
				       "maximum",
				       "minItems",
				       "maxItems",
				       "pattern",
				       "format",
				       "default",
				       "const",
				       "exclusiveMinimum",
				       "examples",
				       "exclusiveMaximum",
				       "multipleOf",
				       "uniqueItems",
				       "title",
				       "propertyNames",
				       "patternProperties"};

/* `chat`: a word of chat completions; else of the Messages form. */
static const struct profile_meaning {
	const char *word, *says;
	bool chat;
} meanings[] = {
	{"system_role", "a system message", true},
	{"null_content", "null for a text", true},
	{"empty_content", "an empty text", true},
	{"long_ids", "ids of calls that are not nine letters or digits", true},
	{"call_members", "more members of a call than its name and arguments", true},
	{"calls_without_reasoning", "calls without their reasoning_content", true},
	{"calls_without_signature", "calls without a thought_signature", true},
	{"reasoning_content", "reasoning_content", true},
	{"reasoning", "reasoning", true},
	{"reasoning_details", "reasoning_details", true},
	{"cache_control", "cache_control", false},
	{"thinking_blocks.finished", "thinking of earlier turns", false},
	{"thinking_blocks", "thinking of earlier replies", false},
};

/* Does one of `names` begin `name`, or its last part? */
static bool is_named(const char *names, const char *name)
{
	const char *last = strrchr(name, '/');

	last = last != NULL ? last + 1 : name;
	for (size_t len; *names != 0; names += len, names += strspn(names, " ")) {
		len = strcspn(names, " ");
		if (strncasecmp(names, last, len) == 0)
			return true;
	}
	return false;
}

void profile_add(char *list, size_t size, const char *url, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		const char *address = families[i].address;
		size_t used = strlen(list);

		if ((address[0] != 0 && strstr(url, address) != NULL) ||
		    is_named(families[i].names, name))
			snprintf(list + used, size - used, "%s%s", used > 0 ? " " : "",
				 families[i].rejects);
	}
}

/* Is the keyword meant as such: in quotes, or a word that no ordinary sentence has? */
static bool names_keyword(const char *at, bool first, const char *keyword)
{
	size_t len = strlen(keyword);
	char before = first ? ' ' : at[-1];

	return (strchr("\"'`", before) != NULL && at[len] == before) ||
	       (strpbrk(keyword, "$ABCDEFGHIJKLMNOPQRSTUVWXYZ") != NULL &&
		!isalnum((unsigned char)before) && !isalnum((unsigned char)at[len]));
}

/* The keyword that a sentence about tools names; NULL: none. */
static const char *refused_keyword(const char *text)
{
	bool tools = strcasestr(text, "tool") != NULL || strcasestr(text, "function") != NULL ||
		     strcasestr(text, "schema") != NULL;

	for (size_t i = 0; tools && i < ARRAY_LEN(keywords); i++) {
		size_t len = strlen(keywords[i]);

		for (const char *at = text; (at = strstr(at, keywords[i])) != NULL; at += len)
			if (names_keyword(at, at == text, keywords[i]))
				return keywords[i];
	}
	return NULL;
}

bool profile_refused(const char *text, char *words, size_t size)
{
	const char *keyword = refused_keyword(text);

	if (keyword != NULL) {
		snprintf(words, size, PROFILE_KEYWORD "%s", keyword);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		if (strcasestr(text, refusals[i].says) != NULL &&
		    strcasestr(text, refusals[i].and_says) != NULL) {
			snprintf(words, size, "%s", refusals[i].words);
			return true;
		}
	return false;
}

/* Row of the word; NULL: no such word. */
static const struct profile_meaning *meaning_of(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
		if (strcmp(meanings[i].word, word) == 0)
			return &meanings[i];
	return NULL;
}

const char *profile_says(const char *word)
{
	const struct profile_meaning *is = meaning_of(word);

	return is != NULL ? is->says : word;
}

bool profile_in_chat(const char *word)
{
	const struct profile_meaning *is = meaning_of(word);

	return is != NULL ? is->chat : strncmp(word, PROFILE_KEYWORD, strlen(PROFILE_KEYWORD)) == 0;
}

bool profile_in_messages(const char *word)
{
	const struct profile_meaning *is = meaning_of(word);

	return is != NULL && !is->chat;
}
