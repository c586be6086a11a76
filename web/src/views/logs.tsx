// Search over all logs, the newest first, and whether they are as they were sealed.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, type AvaEvent } from "../api";
import { go, place } from "../router";
import { verified, verify } from "../store";
import { attempt, Empty } from "../ui";
import { bytes, day } from "../words";
import { EventList } from "./events";

const TYPES = ["", "Error", "SubagentSpawn", "SubagentComplete", "InferEnd", "ToolCall", "ToolResult", "UserMessage", "AssistantMessage", "Spawn", "Custom", "Waiting", "Steering"];
const LIMIT = 1000;

interface Answer {
  events: AvaEvent[];
  more: boolean;
  brokenLines: number;
  broken: string[];
}

// Also at the top of every view.
export function Seal() {
  const r = verified.value;
  return <span class={`tag ${!r ? "" : r.ok ? "green" : "red"}`}>{!r ? "not verified yet" : r.ok ? (r.seals ? "as it was sealed" : "nothing is sealed yet") : `${r.broken} not as sealed`}</span>;
}

function Verify() {
  const busy = useSignal(false);
  const run = async () => {
    busy.value = true;
    await attempt(verify);
    busy.value = false;
  };
  useEffect(() => {
    if (!verified.value) void run();
  }, []);
  const r = verified.value;
  return (
    <section class="panel" aria-label="Seals">
      <div class="row">
        <Seal />
        <span class="grow soft">{r ? `${r.files} files, ${bytes(r.bytes)}, ${r.seals} seals${r.newest_at ? `, the newest ${day(r.newest_at)}` : ""}${r.unsealed_files ? `; the newest lines of ${r.unsealed_files} are not sealed yet` : ""}` : ""}</span>
        <button disabled={busy.value} onClick={run}>Verify again</button>
      </div>
      {r?.findings.length ? <ul>{r.findings.map((f, i) => <li key={i}><code>{f.path}{f.line ? `:${f.line}` : ""}</code> {f.what}</li>)}</ul> : null}
    </section>
  );
}

export function Logs() {
  const q = place.value.query, found = useSignal<Answer | null>(null), problem = useSignal("");
  const text = useSignal(q.get("search") ?? ""), type = useSignal(q.get("type") ?? ""), since = useSignal(q.get("since") ?? "");
  useEffect(() => {
    const stop = new AbortController(), p = new URLSearchParams({ limit: String(LIMIT) });
    for (const k of ["search", "type", "since"]) if (q.get(k)) p.set(k, q.get(k)!);
    get<Answer>(`/api/v1/logs?${p}`, stop.signal).then(
      (a) => {
        problem.value = "";
        found.value = { ...a, events: [...a.events].reverse() };
      },
      (e) => {
        if (!stop.signal.aborted) problem.value = (e as Error).message;
      },
    );
    return () => stop.abort();
  }, [q.toString()]);
  const submit = (e: Event) => {
    e.preventDefault();
    const query: Record<string, string> = {};
    if (text.value) query.search = text.value;
    if (type.value) query.type = type.value;
    if (since.value) query.since = since.value;
    go("logs", "", query);
  };
  return (
    <>
      <h1>Logs</h1>
      <div class="charts">
        <Verify />
        <form class="row" role="search" onSubmit={submit}>
          <input class="grow" type="search" aria-label="Text" placeholder="text in any event" value={text} onInput={(e) => (text.value = e.currentTarget.value)} />
          <select aria-label="Type" value={type} onChange={(e) => (type.value = e.currentTarget.value)}>{TYPES.map((t) => <option key={t} value={t}>{t || "all types"}</option>)}</select>
          <input aria-label="Since" placeholder="since: 2 hours ago" value={since} onInput={(e) => (since.value = e.currentTarget.value)} />
          <button class="primary">Search</button>
        </form>
        {problem.value ? <p role="alert" class="tag red">{problem.value}</p> : null}
        {!found.value ? <p class="soft">Reading…</p> : found.value.events.length === 0 ? (
          <Empty title="No event is like that"><p>A word of it, no type, and a longer time find more.</p></Empty>
        ) : (
          <>
            <p class="soft">{found.value.events.length} events, the newest first{found.value.events.length === LIMIT ? "; there may be older ones: narrow the search" : ""}{found.value.brokenLines ? `; ${found.value.brokenLines} broken lines were left out` : ""}</p>
            <EventList events={found.value.events} named />
          </>
        )}
      </div>
    </>
  );
}
