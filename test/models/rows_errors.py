"""What services, and what stands before them, say when they refuse: sentences, quotas, walls, addresses."""

import gzip
import time

from play import Row
from service import DONE, asubmit, call, error, ev, resp, sse, submit, text, then_submit


def once(answer):
    """Refused once, then a result."""
    return lambda n, r: answer if n == 1 else submit(n, r)


def always(answer):
    return lambda n, r: answer


def second(answer):
    """A call, refused with its result, then a result."""
    def script(n, r):
        if n == 1:
            return call(n, r, "read_file", {"path": "a.txt"})
        return answer if n == 2 else submit(n, r)
    return script


def page(status, title):
    return resp(status, f"<!DOCTYPE html><html><head><title>{title}</title></head><body>x</body></html>", "text/html")


def gemini(status, word, message, **more):
    return resp(status, [{"error": {"code": status, "message": message, "status": word, **more}}])


def told(name, status, body, says, requests=1, **more):
    """Final at the first answer, in these words."""
    return Row(name, always(resp(status, body)), end="error/model_error", requests=requests, error=says, **more)


def err(message, **more):
    return {"error": {"message": message, **more}}


TPM = ("Request too large for model `m` in organization `org_01` on tokens per minute (TPM): Limit 6000, Requested 14368, "
       "please reduce your message size and try again.")


def packed(n, r):
    body = gzip.compress(submit(n, r).split(b"\r\n\r\n", 1)[1])
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n" \
        b"content-length: %d\r\n\r\n" % len(body) + body


def redirect(status, to):
    return b"HTTP/1.1 %d X\r\nlocation: %s\r\ncontent-length: 0\r\n\r\n" % (status, to.encode())


def under_v1(missing):
    return lambda n, r: submit(n, r) if r.path.startswith("/v1/") else missing


def walled(world, row):
    """Five walls in a row close nothing: the run behind them gets through."""
    wrong = []
    for _ in range(2):
        _, result = world.run(row, task="Look [wall].")
        if "a page stands in front of" not in (result.get("error") or ""):
            wrong.append(f"the wall is told as {result.get('error')!r}")
    _, result = world.run(row)
    if result.get("status") != "success":
        wrong.append(f"behind the walls: {result.get('error')!r}")
    return wrong


def wall_script(n, r):
    return page(403, "Attention Required! | Cloudflare") if b"Look [wall]" in r.raw else submit(n, r)


def doctor(says):
    def play(world, row):
        out = world.ava("doctor").stdout
        return [f"doctor has not {w!r}: {out}" for w in says if w.replace("@", world.service.url) not in out]
    return play


NO_V1 = {"AVA_LOCAL_BASE_URL": "URL"}

ROWS = [
    # never going to pass: said at once
    told("err_tpm413", 413, err(TPM, type="tokens", code="rate_limit_exceeded"), ["14368", "6000"]),
    told("err_tpm429", 429, err(TPM, type="tokens", code="rate_limit_exceeded"), ["14368", "6000"]),
    told("err_day_openrouter", 429,
         err("Rate limit exceeded: free-models-per-day.", code=429,
             metadata={"headers": {"X-RateLimit-Reset": str(int((time.time() + 36000) * 1000))}}),
         ["rate of requests until", "free-models-per-day"], args=["--on-quota", "fail"]),
    told("err_day_groq", 429, err("Rate limit reached on tokens per day (TPD): Limit 100000, Used 99700, Requested 5000. "
                                  "Please try again in 1h7m40.8s.", code="rate_limit_exceeded"), "the rate of requests until",
         args=["--on-quota", "fail"]),
    told("err_gemini_key", 400, [err("API key not valid. Please pass a valid API key.", code=400,
                                     status="INVALID_ARGUMENT")], "refused the key"),
    told("err_gemini_none", 429, [err("Quota exceeded for metric: free_tier_requests, limit: 0, model: m", code=429,
                                      status="RESOURCE_EXHAUSTED")], "cannot pay"),
    told("err_balance", 429, err("Insufficient balance or no resource package.", code="1113"), "cannot pay"),
    # asked once more without a system message
    told("err_template", 500, err("Conversation roles must alternate user/assistant/user/assistant/...", code=500,
                                  type="server_error"), "refused the request", requests=2, args=["--max-iterations", "3"]),
    told("err_jinja", 500, err("tools param requires --jinja flag", code=500, type="server_error"), "--jinja"),
    # A sentence in other members.
    *(told(f"err_says_{i}", status, body, "tool schema is odd", requests=1) for i, (status, body) in enumerate([
        (200, {"code": 400, "detail": [{"loc": ["body", "tools"], "msg": "tool schema is odd"}]}), (200, {"code": 400, "Message": "tool schema is odd"}),
        (200, {"code": 400, "Response": {"Error": {"Code": "InvalidParameter", "Message": "tool schema is odd"}}}),
        (200, {"code": 400, "error": "invalid_request", "error_description": "tool schema is odd"}),
        (200, {"code": 400, "errcode": 1, "errmsg": "tool schema is odd"}), (200, {"code": 400, "failure": {"reason": "tool schema is odd"}}),
        (400, {"title": "tool schema is odd", "status": 400}), (400, {"error": {"error": {"message": "tool schema is odd"}}}),
        (400, {"fault": {"message": "tool schema is odd"}})])),
    told("err_key_missing", 400, err("API Key not found. Please pass a valid API key."), "refused the key", own=True),
    told("err_balance_403", 403, {"code": 30001, "message": "Sorry, your account balance is insufficient"}, "cannot pay", own=True),
    told("err_day_reset", 429, err("Your quota will reset after 18h31m10s."), ["until", "models.park_max"]),
    told("err_model_400", 400, err("x/y is not a valid model ID", code=400), "choose another model"),
    told("err_model_deepseek", 400, err("Model Not Exist", type="invalid_request_error"), "choose another model"),
    *(Row(f"err_event_final_{i}", always(sse(e)), end="error/model_error", requests=1, error="it is odd")
      for i, e in enumerate(['event: error\ndata: {"code":"InvalidParameter","message":"it is odd","request_id":"x"}\n\n',
                             'data: {"error":"it is odd","status_code":400}\n\n'])),
    Row("err_wall_511", always(page(511, "Network Authentication Required")), end="error/model_error", requests=5,
        error="a page stands in front of"),
    Row("err_balance_stream", always(sse(ev({"id": "x", "choices": None,
                                             "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}))),
        end="error/model_error", requests=1, error="cannot pay"),
    # they pass by themselves, or when the service says
    *(Row(f"err_st{status}", lambda n, r, s=status: error(s, "try later") if n < 3 else submit(n, r), requests=3)
      for status in (408, 409, 420, 421, 423, 424, 425, 499, 500, 520, 524, 530)),
    Row("err_gemini_wait", once(gemini(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.",
                                       details=[{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}])),
        requests=2),
    Row("err_event_text", once(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
                               b"event: error\ndata: Internal Server Error\n\n"), requests=2),
    Row("err_event_list", once(sse(ev([{"error": {"code": 503, "message": "The model is overloaded."}}]))), requests=2),
    Row("err_event_code", once(sse(ev({"code": "rate_limit", "message": "slow down"}), DONE)), requests=2),
    Row("err_toolparse", once(error(500, "error parsing tool call: raw='{' err=unexpected end", type="api_error")),
        requests=2),
    # walls
    Row("err_wall_once", once(page(403, "Just a moment...")), requests=2),
    Row("err_wall_503", once(page(503, "Just a moment...")), requests=2),
    Row("err_wall_always", always(page(403, "Attention Required! | Cloudflare")), end="error/model_error", requests=5,
        error=["a page stands in front of", "Attention Required! | Cloudflare"], says_not="set a valid"),
    Row("err_wall_login", always(page(200, "Sign in")), end="error/model_error", requests=5,
        error=["a page stands in front of", "Sign in"]),
    Row("err_wall_circuit", wall_script, play=walled),
    Row("err_gateway", once(page(502, "502 Bad Gateway")), requests=2),
    # where it is
    Row("err_redirect", always(redirect(301, "https://example.com/v1/chat/completions")), end="error/model_error", requests=1,
        error=["set AVA_LOCAL_BASE_URL", "https://example.com/v1"]),
    Row("err_redirect_page", always(b"HTTP/1.1 308 X\r\nlocation: https://example.com/openai/v1\r\n"
                                    b"content-type: text/html\r\ncontent-length: 24\r\n\r\n<html>moved</html>      "),
        end="error/model_error", requests=1, error="it redirects to https://example.com/openai/v1"),
    Row("err_redirect307", always(redirect(307, "/v2/chat/completions")), end="error/model_error", requests=1,
        error="redirects to /v2/chat"),
    Row("err_no_path", always(resp(404, "404 page not found", "text/plain")), end="error/model_error", requests=1,
        error="set AVA_LOCAL_BASE_URL"),
    Row("err_v1", under_v1(resp(404, "404 page not found", "text/plain")), env=NO_V1, requests=2),
    Row("err_v1_fastapi", under_v1(resp(404, {"detail": "Not Found"})), env=NO_V1, requests=2),
    Row("err_v1_lmstudio", under_v1(resp(200, {"error": "Unexpected endpoint or method. (POST /chat/completions)"})),
        env=NO_V1, requests=2),
    Row("err_v1_neither", always(resp(404, "404 page not found", "text/plain")), env=NO_V1, end="error/model_error",
        requests=2, error="set AVA_LOCAL_BASE_URL"),
    Row("err_whole_path", then_submit(lambda n, r: text(r, "hm")), env={"AVA_LOCAL_BASE_URL": "URL/v1/chat/completions"},
        requests=2, sent=lambda seen: seen[0].path != "/v1/chat/completions" and seen[0].path),
    Row("err_messages_v1", lambda n, r: asubmit(n, r), on="anthropic", env={"ANTHROPIC_BASE_URL": "URL/v1"}, requests=1,
        sent=lambda seen: seen[0].path != "/v1/messages" and seen[0].path),
    Row("err_model_missing", always(error(404, "The model `m` does not exist", code="model_not_found")),
        end="error/model_error", requests=1, error="choose another model"),
    Row("err_no_server", submit, env={"AVA_LOCAL_BASE_URL": "http://127.0.0.1:9/v1"}, args=["--timeout", "3"],
        end="*/*", requests=0, error="nothing answers at http://127.0.0.1:9/v1: is your model server running?", timed=True),
    Row("err_doctor_v1", submit, env=NO_V1, gets={"/chat/completions": resp(404, "404 page not found", "text/plain")},
        play=doctor(["nothing at @/chat/completions: the address lacks /v1; set AVA_LOCAL_BASE_URL=@/v1"])),
    Row("err_doctor_lmstudio", submit, env=NO_V1,
        gets={p: resp(200, {"error": f"Unexpected endpoint or method. ({p})"}) for p in ("/models", "/chat/completions")},
        play=doctor(["the address lacks /v1; set AVA_LOCAL_BASE_URL=@/v1"])),
    Row("err_doctor_down", submit, env={"AVA_LOCAL_BASE_URL": "http://127.0.0.1:9/v1"},
        play=doctor(["nothing answers at http://127.0.0.1:9/v1: is your model server running?"])),
    Row("err_doctor_model", submit, env={"AVA_MODEL": "local/other"},
        gets={"/v1/models": resp(200, {"data": [{"id": "qwen3:8b"}, {"id": "llama3"}]})},
        play=doctor(["local has no model other (the default): it has qwen3:8b, llama3"])),
    # the wire
    Row("err_gzip", packed, requests=1),
    Row("err_created", lambda n, r: submit(n, r).replace(b"200 OK", b"201 Created"), requests=1),
    Row("err_nonauth", lambda n, r: submit(n, r).replace(b"200 OK", b"203 Other"), requests=1),
]
