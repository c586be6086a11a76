/* A reply as bytes with the places where it may be cut into chunks: rendered
 * whole when the request arrives, played out over time (serve.c). */
#ifndef MOCK_REPLY_H
#define MOCK_REPLY_H

#include "convo.h"

struct reply {
	struct buf bytes;
	uint32_t *ends; /* behind each event */
	unsigned n, cap;
	bool stream;    /* text/event-stream, not one JSON */
	uint64_t print; /* fingerprint; 0: do not compare (convo.h) */
	int64_t output_tokens;
};

/* What is said, the same for both dialects. */
struct call {
	char id[64], *name, *args; /* args: JSON text, perhaps broken on purpose; owned */
};
struct content {
	bool thinking;
	const char *text; /* "" none */
	char *own_text;   /* of a script: owned; else NULL */
	int64_t delay_ms; /* of a script: before its first byte */
	struct call *calls;
	unsigned ncalls;
	const char *stop;    /* in Anthropic's words */
	enum fault_kind odd; /* FAULT_NONE, or what is odd about it */
};

/* Decide what the conversation says now. `f`: the fault to play, or NULL. */
void content_make(const struct ask *a, const struct convo *x, const struct fault *f,
		  struct content *out);
void content_fini(struct content *c);

void reply_drop(struct reply *r);
void reply_event(struct reply *r); /* an event ends here */

/* Render. `serial` makes ids unique; `f` as above. */
struct say {
	const struct ask *ask;
	const struct convo *convo;
	const struct content *content;
	const struct fault *fault;
	struct prompt_tokens tokens;
	int64_t cost; /* micro-USD, for OpenRouter's usage */
	uint64_t serial;
	const struct voice *voice;
};
void reply_render(struct reply *r, struct say *s);

/* How a service says it: events of a stream, or one JSON; an error between two events. `thinking`:
 * bytes that count as output for it. */
struct voice {
	void (*stream)(struct reply *r, const struct say *s),
		(*whole)(struct reply *r, const struct say *s);
	void (*error)(struct reply *r, const struct say *s);
	const char *id; /* of calls */
	int thinking;
};
extern const struct voice voice_anthropic, voice_openai, voice_responses;

/* For all: the text in `pieces` parts; piece `i` of `s`. */
const char *piece_of(const char *s, unsigned i, unsigned pieces, size_t *len);
/* How many parts make the wanted number of chunks, with `others` beside them. */
unsigned piece_count(const struct say *s, unsigned others);
/* `s` as JSON string without quotes, with the odd bytes of the fault if they
 * belong to this place. */
enum place { PLACE_TEXT, PLACE_ARGS, PLACE_LATER /* than the first piece */ };
void json_piece(struct buf *out, const struct say *s, const char *text, size_t len,
		enum place place);
/* The id of the n-th call, which the reply is compared by. */
const char *call_id(struct reply *r, const struct say *s, unsigned n, char id[40]);
/* "event: …\ndata: " and the end of a frame. */
void frame_open(struct reply *r, const char *event);
void frame_close(struct reply *r);

#endif
