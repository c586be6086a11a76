/* Chat completions, as OpenRouter, OpenAI and local servers (Ollama,
 * llama-server, vLLM, …) speak them. The row is dialect_openai; the quirks of
 * each service are decided by the model's provider. Pure. */
#ifndef PROVIDER_OPENAI_H
#define PROVIDER_OPENAI_H

#include "provider/dialect.h"

int openai_head(struct buf *out, const struct dialect_spec *spec);
int openai_tail(struct buf *out, const struct model *m, bool thinking,
		const struct agent_infer *call);
int openai_user(struct buf *out, const char *text, size_t len);
int openai_results(struct buf *out, const struct turn *t, const char *const *notices,
		   unsigned nnotices);
int openai_headers(struct buf *out, const struct model *m, const char *key);
int openai_mark_cache(struct buf *body, size_t lines_from, const struct model *m);
bool openai_in_lines(const char *parameter);

#endif
