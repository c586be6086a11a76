/* The routes of delivery through the real client. What they are about is in
 * test_delivery.c. */
#include "gateway_rig.h"

static void wait_idle(const char *id)
{
	for (int i = 0; i < 6000; i++) {
		json_t *v = rig_ask("GET", rig_path("/api/v1/sessions/%s", id), NULL, 200);
		bool idle = strcmp(json_get_str(v, "status"), "idle") == 0 &&
			    json_get_int(v, "waiting", 1) == 0;

		json_decref(v);
		if (idle)
			return;
		usleep(10000);
	}
	fail_msg("Ava stays busy");
}

static json_t *unseen(const char *id, const char *query)
{
	char path[200];

	snprintf(path, sizeof(path), "/api/v1/sessions/%s/unseen%s", id, query);
	return rig_ask("GET", path, NULL, 200);
}

TEST(unseen_and_ack)
{
	char id[64], body[100], entry[64];
	json_t *v;
	int64_t lsn;

	rig_ask_str("POST", "/api/v1/sessions", "{}", 201, "session_id", id);
	v = unseen(id, "");
	assert_string_equal(json_get_str(v, "summary"), "");
	assert_string_equal(json_get_str(v, "channel"), "terminal");
	assert_int_equal(json_get_int(v, "lsn", -1), 0);
	json_decref(v);
	rig_ask_str("POST", rig_path("/api/v1/sessions/%s/messages", id), "{\"text\":\"hello\"}",
		    202, "entry", entry);
	wait_idle(id);
	v = unseen(id, "?channel=terminal");
	assert_string_equal(json_get_str(v, "session_id"), id);
	assert_string_equal(json_get_str(v, "summary"), "1 message while you were away");
	assert_int_equal(json_array_size(json_object_get(v, "items")), 1);
	lsn = json_get_int(v, "lsn", 0);
	assert_int_equal(json_get_int(json_array_get(json_object_get(v, "items"), 0), "lsn", 0),
			 lsn);
	json_decref(v);
	snprintf(body, sizeof(body), "{\"channel\":\"terminal\",\"lsn\":%lld}", (long long)lsn);
	for (int i = 0; i < 2; i++) {
		v = rig_ask("POST", rig_path("/api/v1/sessions/%s/ack", id), body, 200);
		assert_int_equal(json_get_int(v, "acknowledged", -1), i == 0);
		assert_int_equal(json_get_int(v, "unseen", -1), 0);
		json_decref(v);
	}
	v = unseen(id, "");
	assert_int_equal(json_array_size(json_object_get(v, "items")), 0);
	json_decref(v);
}

static void refused(const char *method, const char *path, const char *body, int status,
		    const char *says)
{
	json_t *v = rig_ask(method, path, body, status);
	const char *text = json_get_str(json_object_get(v, "error"), "message");

	if (!text || !strstr(text, says))
		fail_msg("%s %s %s: %s", method, path, body ? body : "", text);
	json_decref(v);
}

TEST(refused)
{
	static const struct {
		const char *body, *says;
	} wrong[] = {
		{"{\"lsn\":1}", "channel and lsn are needed"},
		{"{\"channel\":\"terminal\"}", "channel and lsn are needed"},
		{"{\"channel\":7,\"lsn\":1}", "channel must be a string"},
		{"{\"channel\":\"terminal\",\"lsn\":-1}", "lsn must be"},
		{"{\"channel\":\"terminal\",\"lsn\":1.5}", "lsn must be"},
		{"{\"channel\":\"terminal\",\"lsn\":4000000000000}", "no event has that number"},
		{"{\"channel\":\"pigeon\",\"lsn\":1}", "must be terminal"},
		{"[]", "must be a JSON object"},
		{NULL, "must be a JSON object"},
	};
	char id[64], path[200];

	rig_ask_str("POST", "/api/v1/sessions", "{}", 201, "session_id", id);
	snprintf(path, sizeof(path), "/api/v1/sessions/%s/ack", id);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		refused("POST", path, wrong[i].body, 400, wrong[i].says);
	refused("POST", "/api/v1/sessions/nobody/ack", "{\"channel\":\"terminal\",\"lsn\":1}", 404,
		"no session");
	refused("GET", "/api/v1/sessions/nobody/unseen", NULL, 404, "no session");
	snprintf(path, sizeof(path), "/api/v1/sessions/%s/unseen?channel=pigeon", id);
	refused("GET", path, NULL, 400, "must be terminal");
	snprintf(path, sizeof(path),
		 "/api/v1/sessions/%s/unseen?channel=0123456789012345678901234567890123456789", id);
	refused("GET", path, NULL, 400, "it must be terminal");
}

UNIT_GROUP(.before = rig_set_up, .after = rig_tear_down);
