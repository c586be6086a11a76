/* A reply of the Anthropic service; see provider/stream.h. */
#ifndef PROVIDER_ANTHROPIC_STREAM_H
#define PROVIDER_ANTHROPIC_STREAM_H

struct model;
struct stream;

struct stream *anthropic_stream_new(const struct model *m, const char *tag);

#endif
