/* The structs of ava.h from the JSON of replies, and the JSON of arguments from them: the
 * one decoder and the one encoder of the library. */
#ifndef API_SHAPE_H
#define API_SHAPE_H

#include <stdbool.h>

#include <ava.h>
#include "base/arena.h"
#include "base/buf.h"
#include "codec/json.h"

/* A call's result: strings and rows that live until the next call on the runtime. Growing fails
 * silently; answer_check tells. */
struct api_answer {
	struct arena mem;
	struct buf rows; /* structs of one kind, one behind the other */
	bool failed;
};
void answer_init(struct api_answer *a);
void answer_fini(struct api_answer *a);
void answer_reset(struct api_answer *a);
/* NUL-terminated copies, never NULL; `s` NULL: "". */
const char *answer_str(struct api_answer *a, const char *s);
const char *answer_strn(struct api_answer *a, const char *s, size_t len);
int answer_check(const struct api_answer *a, struct ava_error *err); /* 0, AVA_ENOMEM */
/* A value as JSON text; `absent` when there is none. */
const char *answer_json(struct api_answer *a, const json_t *v, const char *absent);

enum ava_status shape_status(const char *word); /* AVA_ERROR: an unknown word */
void shape_run(const json_t *o, struct api_answer *out, struct ava_run *r);
void shape_proposal(const json_t *o, struct api_answer *out, struct ava_proposal *p);
void shape_group(const json_t *o, struct api_answer *out, struct ava_group *g);   /* rows: runs */
void shape_replay(const json_t *o, struct api_answer *out, struct ava_replay *r); /* differences */
void shape_session(const json_t *o, struct api_answer *out, struct ava_session *s);
void shape_result(const json_t *o, struct api_answer *out, struct ava_result *r);

/* Members of the object that is open in `w`. */
void shape_put_str(struct jw *w, const char *key, const char *s); /* NULL: nothing */
void shape_put_spawn(struct jw *w, const struct ava_spawn *s);
void shape_put_resume(struct jw *w, const struct ava_resume *r);
void shape_put_group(struct jw *w, const struct ava_spawn_group *g);

#endif
