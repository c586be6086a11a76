"""Windows and caps that are smaller than they were taken for: what the service says is learned, and room is made by
less output, by older results, then by the newest."""

import json
import time

from play import Row, judge
from service import DONE, acall, aerror, asubmit, call, chunk, error, honest, resp, sse, submit, tool_call, usage

VLLM = ("This model's maximum context length is {w} tokens. However, you requested {o} output tokens and your prompt "
        "contains at least {p} input tokens, for a total of at least {s} tokens. Please reduce the length of the input "
        "prompt or the number of requested output tokens. (parameter=input_tokens, value={p})")
OPENAI = ("This model's maximum context length is {w} tokens. However, you requested {s} tokens ({p} in the messages, {o} in "
          "the completion). Please reduce the length of the messages or completion.")
LLAMA = "the request exceeds the available context size ({w} tokens), try increasing it"
BLIND = "prompt is too long"


def prompt_of(r):
    return (len(json.dumps(r.messages())) + len(json.dumps(r.body.get("tools")))) // 4


def window(w, then, words=VLLM, counts_output=True, **members):
    """Refuses what does not fit; then answers as `then`."""
    def script(n, r):
        p, o = prompt_of(r), r.most_output()
        if p + (o if counts_output else 0) > w:
            return error(400, words.format(w=w, p=p, o=o, s=p + o), **{"type": "BadRequestError", "code": 400, **members})
        return then(n, r)
    return script


def look(n, r):
    return submit(n, r) if r.messages("tool") else call(n, r, "list_files", {"path": "."})


def read_many(k):
    """k files of 35 KB in one reply, then a result."""
    def script(n, r):
        if r.messages("tool"):
            return submit(n, r)
        calls = [{**tool_call(i, "read_file", {"path": f"big{i}.txt"}), "index": i} for i in range(k)]
        return sse(chunk({"role": "assistant", "content": None}), *[chunk({"tool_calls": [c]}) for c in calls],
                   chunk({}, "tool_calls"), honest(r), DONE)
    return script


def refused_once(status, body):
    """One large file, and behind it one refusal of any size: then a result."""
    def script(n, r):
        if n == 1:
            return call(n, r, "read_file", {"path": "big0.txt"})
        return resp(status, body) if n == 2 else submit(n, r)
    return script


def smaller_again(seen):
    a, b = len(seen[1].raw), len(seen[2].raw)
    out = seen[1].most_output(), seen[2].most_output()
    return None if b < a or out[1] < out[0] else f"request 3 is no smaller: {a}, {b} bytes, output {out}"


def marked(seen):
    last = [m["content"] for m in seen[-1].messages("tool")]
    return None if all("read_result" in text or "first_line" in text for text in last) else f"a result without a marker: {last[0][-200:]!r}"


def capped(most, words, field=None):
    def script(n, r):
        if r.most_output() > most:
            return error(400, words.format(m=most, o=r.most_output()), type="invalid_request_error", param=field, code=None)
        return submit(n, r)
    return script


def acapped(most, words):
    def script(n, r):
        if r.most_output() > most:
            return aerror(400, "invalid_request_error", words.format(m=most, o=r.most_output()))
        return asubmit(n, r)
    return script


def same_cap(seen):
    names = [next((f for f in ("max_tokens", "max_completion_tokens") if f in r.body), None) for r in seen]
    return None if len(set(names)) == 1 else f"the cap changed its name: {names}"


TPM = ("Request too large for model `m` in organization `org_01` on tokens per minute (TPM): Limit {w}, Requested {s}, please "
       "reduce your message size and try again.")


def minute(limit, status, then):
    """A request larger than the account's minute, output and all."""
    def script(n, r):
        p, o = prompt_of(r), r.most_output()
        if p + o > limit:
            return error(status, TPM.format(w=limit, s=p + o), type="tokens", code="rate_limit_exceeded")
        return then(n, r)
    return script


PAGE413 = ("<html><head><title>413 Request Entity Too Large</title></head><body><center><h1>413 Request Entity Too Large"
           "</h1></center><hr><center>nginx</center></body></html>")


def nginx(most, until):
    def script(n, r):
        if len(r.raw) > most:
            return resp(413, PAGE413, "text/html")
        if len(r.messages("tool")) >= until:
            return submit(n, r)
        return call(n, r, "read_file", {"path": f"big{n % 8}.txt", "last_line": 250 + n})
    return script


def always(status, message, **members):
    return lambda n, r: error(status, message, **members)


def twice(world, row):
    """What the first run was refused, the second one knows, also behind a restart of the daemon."""
    wrong = []
    for n in range(2):
        printed, result = world.run(row)
        wrong += judge(row, printed, result, world.seen(row)[-3:])
        refused = sum(1 for r in world.seen(row) if prompt_of(r) + r.most_output() > 6000)
        if refused != 1:
            wrong.append(f"{refused} refused after run {n + 1}")
        world.end_daemon()
    return wrong


ROWS = [
    # F6: less output first
    Row("win4096", window(4096, look), requests=3),
    Row("win8192", window(8192, look), requests=3),
    Row("win9000", window(9000, look), requests=3),
    Row("win12000", window(12000, look), requests=(2, 3)),
    Row("win8192_sum", window(8192, look, OPENAI, param="messages"), requests=3),
    Row("win8192_llama", window(8192, look, LLAMA), requests=(2, 5)),
    Row("win6000_blind", window(6000, look, BLIND), requests=(2, 6)),
    Row("win3300_ends", window(3300, look), end="error/model_error", error=["3300", "(3300 tokens)"], requests=(1, 4)),
    Row("actx", lambda n, r: aerror(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: "
                                    f"197000 + {r.most_output()} > 200000, decrease input length or `max_tokens` and try again")
        if r.most_output() > 2000 else asubmit(n, r), on="anthropic", requests=(2, 4)),
    Row("amax", acapped(8192, "max_tokens: {o} > {m}, which is the maximum allowed number of output tokens for claude-3-5-haiku-"
                        "20241022"), on="anthropic/claude-haiku-4-5", requests=2),
    Row("abedrock", acapped(4096, "The maximum tokens you requested exceeds the model limit of {m}. Try again with a maximum "
                            "tokens value that is lower than {m}."), on="anthropic", requests=2),
    Row("p_maxtok", capped(4096, "max_tokens is too large: {o}. This model supports at most {m} completion tokens, whereas you "
                           "provided {o}.", "max_tokens"), requests=2, sent=same_cap),
    Row("p_maxtok_openai", capped(4096, "max_tokens is too large: {o}. This model supports at most {m} completion tokens.",
                                  "max_completion_tokens"), on="openai", requests=2, sent=same_cap),
    Row("p_maxtok_blind", capped(4096, "`max_tokens` exceeds what this deployment allows", "max_tokens"), requests=2,
        sent=same_cap),
    # F7: the newest results
    Row("par4", window(32768, read_many(4), OPENAI, code="context_length_exceeded"), requests=2, sent=marked),
    Row("par8", window(32768, read_many(8), OPENAI, code="context_length_exceeded"), requests=2, sent=marked,
        args=["--max-tokens", "300000"]),
    Row("par4_win9000", window(9000, read_many(4)), requests=(2, 4), sent=marked),
    Row("par2_input", window(9000, read_many(2), LLAMA, counts_output=False), requests=(2, 4), sent=marked),
    Row("w_vllm43", refused_once(400, {"error": {"message": VLLM.format(w=128000, o=65535, p=62466, s=128001),
                                                 "type": "BadRequestError", "param": "input_tokens", "code": 400}}),
        requests=3, sent=smaller_again),
    Row("w_sglang2", refused_once(400, {"object": "error", "message": "The input (12345 tokens) is longer than the model's context"
                                        " length (8192 tokens).", "type": "BadRequestError", "param": None, "code": 400}),
        requests=3, sent=smaller_again),
    Row("w_databricks", refused_once(400, {"error_code": "BAD_REQUEST", "message": json.dumps({
        "external_model_provider": "anthropic", "external_model_error": {"type": "error", "error": {
            "type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit: 196758 + 8192 > "
            "200000, decrease input length or `max_tokens` and try again"}}})}), requests=3, sent=smaller_again),
    # F10: what can never pass, and what can when it is smaller
    Row("a_groq413", always(413, TPM.format(w=6000, s=14368), type="tokens", code="rate_limit_exceeded"), end="error/model_error",
        error=["6000", "14368"], requests=(1, 6)),
    Row("a_oai429", always(429, "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, "
                           "Requested 35064. The input or output tokens must be reduced in order to run successfully.",
                           type="tokens", param=None, code="rate_limit_exceeded"), end="error/model_error",
        error=["30000", "35064"], requests=(1, 6)),
    Row("minute_groq", minute(6000, 413, look), requests=3),
    Row("minute_openai", minute(6000, 429, look), requests=3),
    Row("nginx413", nginx(60000, 5), requests=(6, 9)),
    Row("nginx413_first", nginx(20000, 1), requests=(2, 5)),
    Row("restart", window(6000, look), requests=(2, 3), play=twice),
]


# ---- a window that nobody tells: the count stands still where the server cuts the prompt

def cuts(w):
    def script(n, r):
        used = min(prompt_of(r), w)
        if n > 8:
            return submit(n, r)
        events = [chunk({"role": "assistant", "content": None}),
                  chunk({"tool_calls": [tool_call(n, "read_file", {"path": f"big{n % 8}.txt", "last_line": 150 + n})]}),
                  chunk({}, "tool_calls"), usage(used, 30)]
        return sse(*[e.replace('"c1"', f'"c{n}"') for e in events], DONE)
    return script


def stays_within(w):
    """Once the server cut two prompts, none is larger than its window any more."""
    def sent(seen):
        late = [prompt_of(r) for r in seen if r is not seen[-1]][6:]
        return None if late and max(late) <= w else f"requests of {[prompt_of(r) for r in seen]} tokens"
    return sent


ROWS += [Row("ollama_cuts", cuts(8192), requests=9, sent=stays_within(8192), args=["--max-tokens", "300000"])]


# ---- asked before the first call: no request is refused

def served(name, gets, w, requests=2, **more):
    return Row(name, window(w, look), requests=requests, gets=gets, timed=True, **more)


def answers(**paths):
    return {"/" + path.replace("__", "/"): resp(200, body) for path, body in paths.items()}


def small_quote(world, row):
    """A window that cannot hold the first request: said in the quote, and --yes starts nothing."""
    printed, _ = world.run(row)
    words = printed.stdout + printed.stderr
    wrong = [f"not said: {w}" for w in ("TOO SMALL A WINDOW", "2048 tokens", "nothing was started") if w not in words]
    if world.seen(row):
        wrong.append("a request was made")
    return wrong + ([words] if wrong else [])


def slow(r):
    time.sleep(5)
    return resp(200, {})


def doctor(world, row):
    world.run(row)
    words = world.ava("doctor").stdout
    return [] if "window 6000" in words else [words]


ROWS += [
    served("tells_vllm", answers(v1__models={"data": [{"id": "tells_vllm", "max_model_len": 6000}]}), 6000),
    served("tells_props", answers(props={"default_generation_settings": {"n_ctx": 6000}}), 6000),
    served("tells_ollama", answers(api__show={"parameters": "num_ctx 6000", "model_info": {"x.context_length": 40960}},
                                   api__ps={"models": []}), 6000),
    served("tells_loaded", answers(api__show={"model_info": {"x.context_length": 40960}},
                                   api__ps={"models": [{"model": "tells_loaded:latest", "context_length": 6000}]}), 6000),
    served("tells_studio", answers(api__v0__models={"data": [{"id": "tells_studio", "loaded_context_length": 6000,
                                                              "max_context_length": 32768}]}), 6000),
    served("tells_text", answers(props={"default_generation_settings": {"n_ctx": "6000"}}), 6000),
    served("tells_props_itself", answers(props={"n_ctx": 6000.0}), 6000),
    served("tells_bare_list", answers(v1__models=[{"id": "tells_bare_list", "context_length": 6000}]), 6000),
    served("tells_tabby", answers(v1__models={"data": [{"id": "tells_tabby", "parameters": {"max_seq_len": 6000}}]}), 6000),
    served("tells_input", answers(v1__models={"data": [{"id": "tells_input", "max_input_tokens": "6000"}]}), 6000),
    served("tells_ollama_quoted", answers(api__show={"parameters": "num_ctx   \"6000\"", "model_info": {
        "x.context_length": "40960"}}, api__ps={"models": []}), 6000),
    served("tells_nonsense", answers(props={"default_generation_settings": {"n_ctx": 1}}, v1__models={"data": {}},
                                     api__ps={"models": [None, 3]}), 6000, requests=3),
    served("tells_page", {path: resp(200, "<html>Hello", "text/html") for path in ("/props", "/v1/models", "/api/ps")}, 6000,
           requests=3),
    served("tells_late", {"/props": slow, "/v1/models": slow, "/api/ps": slow}, 6000, requests=3),
    Row("small_quote", look, gets=answers(props={"default_generation_settings": {"n_ctx": 2048}}), play=small_quote,
        timed=True),
    Row("doctor_learned", window(6000, look), play=doctor),
]

# ---- refusals in the words of many services: one large file is read, prompt and output are more than the window

WORDINGS = {
    "sglang": "Input length ({p} tokens) exceeds the maximum allowed length ({w} tokens). Use a shorter input or enable --allow-auto-truncate.",
    "sglang2": "The input ({p} tokens) is longer than the model's context length ({w} tokens).",
    "sglang3": "Requested token count exceeds the model's maximum context length of {w} tokens. You requested a total of {s} tokens: {p} tokens from the input messages and {o} tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
    "dashscope": "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, {w}]",
    "command": "Input length {p} exceeds the maximum allowed input length of {w} tokens.",
    "copilot": "prompt token count of {p} exceeds the limit of {w}",
    "gh": "Request body too large for gpt-4o model. Max size: {w} tokens.",
    "databricks": "input length and `max_tokens` exceed context limit: {p} + {o} > {w}, decrease input length or `max_tokens` and try again",
    "tabby": "Prompt length {p} is greater than max_seq_len {w}",
    "cohere": "too many tokens: total number of tokens in the prompt cannot exceed {w} - received {p}. Try using a shorter prompt.",
    "llamapy": "Requested tokens ({p}) exceed context window of {w}",
    "llamacpp": "request ({p} tokens) exceeds the available context size ({w} tokens), try increasing it",
    "anthropic": "prompt is too long: {p} tokens > {w} maximum",
    "tgi": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {w}. Given: {p} `inputs` tokens and {o} `max_new_tokens`",
    "vllmold": "This model's maximum context length is {w} tokens. However, you requested {s} tokens ({p} in the messages, {o} in the completion). Please reduce the length of the messages or completion.",
    "vllmmt": "'max_tokens' or 'max_completion_tokens' is too large: {o}. This model's maximum context length is {w} tokens and your request has {p} input tokens ({o} > {w} - {p}).",
    "vllmdec": "The decoder prompt (length {p}) is longer than the maximum model length of {w}. Make sure that `max_model_len` is no smaller than the number of text tokens.",
    "mistral": "Prompt contains {p} tokens and 0 draft tokens, too large for model with {w} maximum context length",
    "groq": "Please reduce the length of the messages or completion. Current length is {p} while limit is {w}",
    "xai": "This model's maximum prompt length is {w} but the request contains {p} tokens.",
    "gemini": "The input token count ({p}) exceeds the maximum number of tokens allowed ({w}).",
    "bedrock": "Input is too long for requested model.",
    "deepseek": "This model's maximum context length is {w} tokens. However, you requested {s} tokens ({p} in the messages, {o} in the completion).",
    "moonshot": "Invalid request: Your request exceeded model token limit: {w} (requested: {s})",
    "minimax": "invalid params, context window exceeds limit (2013)",
    "zhipu": "Prompt exceeds max length",
    "lmstudio": "Trying to keep the first {p} tokens when context the overflows. However, the model is loaded with context length of only {w} tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input",
    "ollama": "prompt too long; exceeded max context length by 4 tokens",
    "cloudflare": "The estimated number of input and maximum output tokens ({s}) exceeded this model context window limit ({w}).",
    "openrouter": "This endpoint's maximum context length is {w} tokens. However, you requested about {s} tokens ({p} of text input, {o} in the output). Please reduce the length of either one, or use the context-compression plugin to compress your prompt automatically.",
    "fireworks": "The prompt is too long: {p}, model maximum context length: {w}",
    "together": "Input validation error: `inputs` must have less than {w} tokens. Given: {p}",
    "nv": "ValueError: prompt tokens {p} + max_tokens {o} should not exceed {w}",
    "trt": "Prompt length ({p}) exceeds maximum input length ({w}). Set log level to info and check TRTGptModel logs for how maximum input length is set",
    "trt2": "The sum of prompt length ({p}.0), query length (0) and max_tokens ({o}) should not exceed max_num_tokens ({w})",
    "mlx": "Prompt has {p} tokens which is more than the model's maximum of {w}",
    "kobold": "Requested context {s} is larger than loaded context size {w}",
    "writer": "Your prompt has {p} tokens but the model's limit is {w} tokens",
    "sambanova": "Requested generation length 1 is not possible! The provided prompt is {p} tokens long, so generating tokens requires a sequence length of {s}, but the maximum supported sequence length is just {w}!",
    "friendli": "Total number of tokens ({s}) exceeds the model's context window ({w})",
    "bytes": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "localai": "input too large: {p} tokens, n_ctx is {w}",
    "llamafile": "the prompt of {p} tokens does not fit in the context of {w} tokens",
    "ovms": "Number of prompt tokens: {p} exceeds model max length: {w}",
    "chinese": "输入长度 {p} 超过模型最大上下文长度 {w} tokens",
    "litellm": "litellm.BadRequestError: litellm.ContextWindowExceededError: ContextWindowExceededError: This model's maximum context length is {w} tokens, however you requested {s} tokens",
}


def worded(words, w, refuse, ask, submits):
    def script(n, r):
        p, o = prompt_of(r), r.most_output()
        if p + o > w:
            return refuse(words.format(w=w, p=p, o=o, s=p + o))
        return submits(n, r) if b"file 0" in r.raw else ask(n, r, "read_file", {"path": "big0.txt"})
    return script


ROWS += [Row("words-" + name, worded(words, 9000, lambda text: error(400, text), call, submit), requests=(2, 6))
         for name, words in WORDINGS.items()]
ROWS += [Row("awords-" + name, worded(WORDINGS[name], 9000, lambda text: aerror(400, "invalid_request_error", text), acall, asubmit),
             on="anthropic", requests=(2, 6)) for name in ("anthropic", "bedrock", "databricks", "litellm", "localai", "chinese")]
