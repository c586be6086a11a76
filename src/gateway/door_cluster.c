/* One machine of a cluster listens at a door, and the others only send: each tells of its own runs.
 * Who is paired, and where to go on, the machine that listens tells the others with each beat; so
 * the next one hears the same people. Conversations, cards and folders stay each machine's. An
 * update that a machine dies amid, or has fetched when its lease ends, comes to the next one. */
#include "gateway/door_inside.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "ava/state.h"

static void door_changed(struct cluster_door *here)
{
	struct door *d = CONTAINER_OF(here, struct door, here);

	door_call_fini(&d->poll);
	d->poll.next_ms = 0;
	d->asked[0] = d->code[0] = '\0';
	d->split = (struct door_split){0};
	json_decref(d->updates);
	d->updates = NULL;
	/* The other program that was heard may have been the machine before. */
	if (door_listens(d) && d->mode == DOOR_DEAF)
		door_close(d, DOOR_SERVING, "");
	door_log(d, door_listens(d) ? "this machine listens" : "another machine may listen now");
	door_wake(d);
}

static void door_give(struct cluster_door *here, struct buf *out)
{
	const struct door *d = CONTAINER_OF(here, struct door, here);
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "since", d->kept.since);
	jw_array(&w, "paired");
	for (size_t i = 0; i < DOOR_CHATS_MAX; i++) {
		if (!d->kept.chats[i].id[0])
			continue;
		jw_object(&w, NULL);
		jw_str(&w, "id", d->kept.chats[i].id);
		jw_str(&w, "room", d->kept.chats[i].room);
		jw_str(&w, "name", d->kept.chats[i].name);
		jw_end(&w);
	}
	jw_end(&w);
	jw_end(&w);
}

/* One that is not paired here yet, without a folder. */
static void door_adopt_one(struct door *d, const json_t *o)
{
	const char *id = json_str(o, "id"), *room = json_str(o, "room");
	struct door_chat *c = door_chat(&d->kept, id) ? NULL : door_free_chat(&d->kept);

	if (!c || !id[0] || strlen(id) >= sizeof(c->id) || strlen(room) >= sizeof(c->room) ||
	    (d->wire->numbers && !door_is_number(id)))
		return;
	snprintf(c->id, sizeof(c->id), "%s", id);
	snprintf(c->room, sizeof(c->room), "%s", room);
	snprintf(c->name, sizeof(c->name), "%s", json_str(o, "name"));
	door_new_session(c);
	d->dirty = true;
}

static void door_adopt(struct cluster_door *here, const char *given)
{
	struct door *d = CONTAINER_OF(here, struct door, here);
	json_t *doc = json_parse(given, strlen(given), NULL);
	const json_t *paired = json_object_get(doc, "paired"), *one;
	const char *since = json_str(doc, "since");
	size_t k;

	for (size_t i = 0; json_is_array(paired) && i < DOOR_CHATS_MAX; i++) {
		struct door_chat *c = &d->kept.chats[i];
		bool named = !c->id[0];

		json_array_foreach(paired, k, one) named |= strcmp(json_str(one, "id"), c->id) == 0;
		if (!named)
			door_unpair(d, c);
	}
	json_array_foreach(paired, k, one) door_adopt_one(d, one);
	if (since[0] && strlen(since) < sizeof(d->kept.since) &&
	    strcmp(since, d->kept.since) != 0) {
		snprintf(d->kept.since, sizeof(d->kept.since), "%s", since);
		d->dirty = true;
	}
	json_decref(doc);
	if (d->dirty)
		door_wake(d);
}

const struct cluster_door door_here = {
	.changed = door_changed, .give = door_give, .adopt = door_adopt};
