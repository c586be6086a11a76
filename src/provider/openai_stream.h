/* A reply of chat completions; see provider/stream.h. */
#ifndef PROVIDER_OPENAI_STREAM_H
#define PROVIDER_OPENAI_STREAM_H

struct model;
struct stream;

struct stream *openai_stream_new(const struct model *m, const char *tag);

#endif
