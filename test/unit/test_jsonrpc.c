/* Messages of JSON-RPC: what is one, and what is not. */
#include "unit.h"

#include <ava.h>
#include <string.h>

#include "base/util.h"
#include "codec/jsonrpc.h"

TEST(kinds)
{
	static const struct {
		const char *text;
		int code;
		enum rpc_kind kind;
	} rows[] = {
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", 0, RPC_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\",\"params\":{}}", 0,
		 RPC_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", 0, RPC_NOTICE},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":null}", 0,
		 RPC_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 0, RPC_RESPONSE},
		{"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"\"}}",
		 0, RPC_RESPONSE},
		{"{\"jsonrpc\":\"2.0\",\"id\":1}", RPC_INVALID, 0},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{\"code\":1}}", RPC_INVALID,
		 0},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"no\"}", RPC_INVALID, 0},
		{"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", RPC_INVALID, 0},
		{"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", RPC_INVALID, 0},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", RPC_INVALID, 0},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[1]}", RPC_INVALID,
		 0},
		{"{\"id\":1,\"method\":\"ping\"}", RPC_INVALID, 0},
		{"[]", RPC_INVALID, 0},
		{"{", RPC_PARSE, 0},
		{"", RPC_PARSE, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ava_error err = {0};
		struct rpc m;

		assert_int_equal(rpc_read(&m, rows[i].text, strlen(rows[i].text), &err),
				 rows[i].code);
		if (rows[i].code == 0)
			assert_int_equal(m.kind, rows[i].kind);
		else
			assert_true(*err.text);
		rpc_fini(&m);
	}
}

/* A refusal can name what it refuses. */
TEST(id_of_what_is_wrong)
{
	const char *text = "{\"id\":\"x\",\"method\":\"ping\"}";
	struct ava_error err;
	struct rpc m;

	assert_int_equal(rpc_read(&m, text, strlen(text), &err), RPC_INVALID);
	assert_string_equal(json_string_value(m.id), "x");
	rpc_fini(&m);
}

static void check_line(json_t *message, const char *want)
{
	TEST_BUF(b, 4096);

	assert_int_equal(rpc_line(&b, message), 0);
	assert_string_equal(b.data, want);
}

TEST(written)
{
	json_auto_t *id = json_string("a\"b");

	check_line(rpc_request(7, "session/update", json_pack("{s:s}", "sessionId", "s")),
		   "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/update\","
		   "\"params\":{\"sessionId\":\"s\"}}\n");
	check_line(rpc_request(0, "n", json_object()),
		   "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{}}\n");
	check_line(rpc_result(id, json_pack("{s:b}", "ok", 1)),
		   "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"result\":{\"ok\":true}}\n");
	check_line(rpc_error(NULL, RPC_PARSE, "no JSON", json_incref(id)),
		   "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
		   "\"message\":\"no JSON\",\"data\":\"a\\\"b\"}}\n");
	check_line(rpc_error(id, RPC_INTERNAL, "no\xc3", NULL),
		   "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"error\":{\"code\":-32603,"
		   "\"message\":\"no\\\\xc3\"}}\n");
}

/* What cannot be made is no message, and one that does not fit is not taken for a line. */
TEST(not_written)
{
	json_auto_t *id = json_integer(1);
	TEST_BUF(b, 16);

	assert_null(rpc_request(1, "m", NULL));
	assert_null(rpc_result(id, NULL));
	assert_null(rpc_error(id, RPC_INTERNAL, NULL, NULL));
	assert_int_equal(rpc_line(&b, NULL), AVA_ENOMEM);
	assert_int_equal(b.len, 0);
	assert_int_equal(rpc_line(&b, rpc_result(id, json_object())), AVA_ETOOBIG);
}

/* What others take is taken. */
TEST(read_as_others)
{
	static const struct {
		const char *text, *id;
	} rows[] = {
		{"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\"}", "7"},
		{"\x1b]0;a server\x07{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\"}", "7"},
		{"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":{\"a\":\"\\ud83d\","
		 "\"n\":18446744073709551615,\"n\":1e999}}",
		 "7"},
		{"{\"jsonrpc\":\"2.0\",\"id\":7.0,\"method\":\"m\"}", "7"},
		{"{\"jsonrpc\":\"2.0\",\"id\":18446744073709551615,\"method\":\"m\"}",
		 "1.8446744073709552e+19"},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0000\",\"method\":\"m\"}", "\"a\xef\xbf\xbd\""},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ava_error err = {0};
		TEST_BUF(b, 4096);
		struct rpc m;

		print_message("%s\n", rows[i].text);
		assert_int_equal(rpc_read(&m, rows[i].text, strlen(rows[i].text), &err), 0);
		assert_int_equal(m.kind, RPC_REQUEST);
		assert_int_equal(json_dump(&b, m.id), 0);
		assert_string_equal(b.data, rows[i].id);
		rpc_fini(&m);
	}
}

/* What is no JSON has an id, for the answer. */
TEST(id_of_what_is_none)
{
	static const struct {
		const char *text;
		int id; /* 0: none */
		enum rpc_kind kind;
	} rows[] = {
		{"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":{\"a\":tru}}", 7,
		 RPC_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"id\":5,\"a\":[\\x]},"
		 "\"id\": 7}",
		 7, RPC_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":{\"a\":\"xxx", 7,
		 RPC_REQUEST},
		{"{\"method\":\"m\",\"params\":{\"a\":[[{\"id\":5}],\"jsonrpc\":\"2.0\",\"id\":7}",
		 7, RPC_REQUEST},
		{"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":", 7, RPC_RESPONSE},
		{"{\"jsonrpc\":\"2.0\",\"id\":7", 0, 0},
		{"{\"a\":\"\\\"id\\\":7}", 0, 0},
		{"no id", 0, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ava_error err = {0};
		struct rpc m;

		print_message("%s\n", rows[i].text);
		assert_int_equal(rpc_read(&m, rows[i].text, strlen(rows[i].text), &err), RPC_PARSE);
		assert_memory_equal(err.text, "line 1: ", 8);
		assert_int_equal(json_integer_value(m.id), rows[i].id);
		if (m.id)
			assert_int_equal(m.kind, rows[i].kind);
		rpc_fini(&m);
	}
}

/* Of a line that is too long there are its beginning and its end, wherever its id stands. */
TEST(too_long)
{
	static const char *const rows[][2] = {
		{"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":{\"a\":[\"", "\"]}}"},
		{"{\"method\":\"m\",\"params\":{\"a\":[\"",
		 "\",{\"id\":5}]},\"jsonrpc\":\"2.0\",\"id\":7}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_BUF(line, 256u << 10);
		char more[1000];
		bool too_long;
		struct rpc m;

		memset(more, 'x', sizeof(more));
		memcpy(more + 400, "\",\"", 3);
		too_long = rpc_line_add(&line, false, rows[i][0], strlen(rows[i][0]));
		for (int k = 0; k < 1000; k++)
			too_long = rpc_line_add(&line, too_long, more, sizeof(more));
		assert_true(too_long && line.len < 256u << 10);
		assert_true(rpc_line_add(&line, too_long, rows[i][1], strlen(rows[i][1])));
		rpc_unread(&m, line.data, line.len);
		assert_int_equal(json_integer_value(m.id), 7);
		assert_string_equal(m.method, "m");
		rpc_fini(&m);
	}
}
