/* A turn is filled in its own arena; the line is made at the end, from the
 * same fields, unless one was given. An error is kept in the reply, so that
 * building one needs a single check at its end. */
#include "provider/offline_draft.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "provider/wire.h"

void draft_start(struct draft *r, unsigned number)
{
	*r = (struct draft){.turn = turn_new(), .number = number};
	if (r->turn == NULL) {
		r->rv = AVA_ENOMEM;
		return;
	}
	r->turn->text = r->turn->thinking = r->turn->request_id = r->turn->wire = "";
	r->turn->usage.cost_microusd = -1;
	r->turn->calls = arena_get(&r->turn->mem, TURN_MAX_CALLS * sizeof(*r->turn->calls));
	if (r->turn->calls == NULL)
		r->rv = AVA_ENOMEM;
}

static const char *copy(struct draft *r, const char *s, size_t len)
{
	const char *p = r->rv == 0 ? arena_copy(&r->turn->mem, s, len) : NULL;

	if (r->rv == 0 && p == NULL)
		r->rv = AVA_ENOMEM;
	return p != NULL ? p : "";
}

void draft_text(struct draft *r, const char *text, size_t len)
{
	if (r->rv != 0)
		return;
	r->turn->text = copy(r, text, len);
	r->turn->text_len = r->rv == 0 ? len : 0;
}

struct turn_call *draft_call(struct draft *r, const char *id, const char *name, const char *args,
			     size_t len, const char *args_error)
{
	struct turn_call *c;
	char tag[16];

	if (r->rv == 0 && r->turn->ncalls == TURN_MAX_CALLS)
		r->rv = AVA_ETOOBIG;
	if (r->rv != 0)
		return NULL;
	c = &r->turn->calls[r->turn->ncalls++];
	c->error_class = "";
	c->name = copy(r, name, strlen(name));
	snprintf(tag, sizeof(tag), "%u", r->number);
	if (id == NULL)
		c->wire_id = arena_fmt(&r->turn->mem, "toolu_%u_%u", r->number, r->turn->ncalls);
	else if (wire_call_id(r->turn, c, id, wire_id_char, tag) != 0)
		c->wire_id = NULL;
	if (c->wire_id == NULL)
		r->rv = AVA_ENOMEM;
	if (args != NULL) {
		c->args = copy(r, args, len);
		c->args_len = len;
	} else {
		c->args_error = copy(r, args_error, strlen(args_error));
	}
	return c;
}

void draft_wire(struct draft *r, const char *wire, size_t len)
{
	if (r->rv != 0)
		return;
	r->turn->wire = copy(r, wire, len);
	r->turn->wire_len = len;
}

static void make_wire(struct draft *r)
{
	struct buf line;

	buf_init(&line, TURN_MAX_BYTES);
	r->rv = wire_assistant(&line, r->turn);
	if (r->rv == 0)
		draft_wire(r, line.data != NULL ? line.data : "", line.len);
	buf_fini(&line);
}

int draft_finish(struct draft *r, size_t body_len, struct turn **out)
{
	if (r->rv == 0 && r->turn->wire_len == 0)
		make_wire(r);
	if (r->rv != 0) {
		draft_drop(r);
		*out = NULL;
		return r->rv;
	}
	r->turn->usage.input = (int64_t)(body_len + 3) / 4;
	r->turn->usage.output = (int64_t)(r->turn->wire_len + 3) / 4;
	r->turn->usage.cost_microusd = 0;
	r->turn->usage.estimated = true;
	r->turn->stop = r->turn->ncalls > 0 ? TURN_STOP_TOOLS : TURN_STOP_END;
	*out = r->turn;
	r->turn = NULL;
	return 0;
}

void draft_drop(struct draft *r)
{
	turn_free(r->turn);
	r->turn = NULL;
}
