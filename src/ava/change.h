/* What a person wants otherwise than it was quoted. Made from words (answer.h)
 * or from the keys of a request, carried out on the quoted spec. */
#ifndef AVA_CHANGE_H
#define AVA_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

struct ava_error;
struct buf;
struct redact;
struct run_spec;
struct settings;

#define CHANGE_KEEP        INT64_MIN
#define CHANGE_WITHOUT_MAX 8

struct change {
	int64_t cost_microusd, time_ms, tokens, iterations; /* CHANGE_KEEP: as it was */
	char preset[16], role[32], model[128];              /* "": as it was */
	int thinking;                                       /* 1 on, 0 off, -1 as it was */
	char without[CHANGE_WITHOUT_MAX][40];               /* tools, or words of their names */
	unsigned nwithout;
};

#define CHANGE_NONE                                                                                \
	{                                                                                          \
		.cost_microusd = CHANGE_KEEP, .time_ms = CHANGE_KEEP, .tokens = CHANGE_KEEP,       \
		.iterations = CHANGE_KEEP, .thinking = -1                                          \
	}

/* It says nothing. */
bool change_none(const struct change *c);
/* What `from` says goes over `to`; false: there is no room for all its tools. */
bool change_add(struct change *to, const struct change *from);

/* The quoted spec with the change in it, as a new one. AVA_EINVAL with a
 * sentence for what cannot be; `forced` as spec_build's model. */
int change_spec(struct run_spec **out, const struct run_spec *quoted, const struct change *c,
		const struct settings *set, const char *forced, const struct redact *redact,
		struct ava_error *err);
/* All that differs is less: what was agreed to covers it. */
bool change_lowers(const struct run_spec *quoted, const struct run_spec *changed);
/* "up to $0.20, at most 5 minutes, without run_bash"; empty when nothing
 * differs. */
int change_text(struct buf *out, const struct run_spec *quoted, const struct run_spec *changed);

#endif
