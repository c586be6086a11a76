// Search over all logs, the newest first, and whether they are as they were sealed: checked when somebody asks.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { AvaEvent, EventPage } from "../api";
import { useKeys } from "../keys";
import { address, go, place } from "../router";
import { verified, verify } from "../store";
import { attempt, Empty, Problem, Reading, useGet } from "../ui";
import { bytes, day, unreadable } from "../words";
import { EventList } from "./events";
import "./rest.css";

const TYPES = ["Error", "SubagentSpawn", "SubagentComplete", "InferEnd", "ToolCall", "ToolResult", "UserMessage", "AssistantMessage", "Spawn", "Custom", "Waiting", "Steering"];
const LIMIT = 1000, FILTERS = ["search", "type", "since", "run"] as const;

function Seals() {
  const busy = useSignal(false), r = verified.value;
  const check = async () => {
    busy.value = true;
    await attempt(verify);
    busy.value = false;
  };
  const state = !r ? "Not checked" : !r.ok ? `${r.broken} broken` : r.seals ? "Log intact" : "Nothing sealed yet";
  const more = r ? `${r.files} files, ${bytes(r.bytes)}, ${r.seals} seals${r.newest_at ? `, the newest ${day(r.newest_at)}` : ""}${r.unsealed_files ? `; the newest lines of ${r.unsealed_files} are not sealed yet` : ""}` : "Seals show whether a log was changed after it was written.";
  return (
    <section class="panel stack" aria-label="Seals">
      <div class="row">
        <span role="status" class={`tag ${!r ? "" : r.ok ? "green" : "red"}`}>{busy.value ? "Checking…" : state}</span>
        <span class="grow soft">{more}</span>
        <button disabled={busy.value} onClick={check}>{r ? "Check again" : "Check"}</button>
      </div>
      {r?.findings.length ? <ul>{r.findings.map((f, i) => <li key={i}><code>{f.path}{f.line ? `:${f.line}` : ""}</code> {f.what}</li>)}</ul> : null}
    </section>
  );
}

export function Logs() {
  const q = place.value.query, form = useSignal<Record<string, string>>({}), of = (k: string) => form.value[k] ?? q.get(k) ?? "";
  const asked = new URLSearchParams(FILTERS.flatMap((k) => (q.get(k) ? [[k, q.get(k)!]] : []))), { data, error, reload } = useGet<EventPage>(`/api/v1/logs?limit=${LIMIT}&${asked}`);
  const field = useRef<HTMLInputElement>(null);
  useKeys([{ key: "/", does: "search", run: () => field.current?.focus() }]);
  const events = useMemo(() => data && ([...data.events].reverse() as AvaEvent[]), [data]);
  useEffect(() => void (form.value = {}), [q.toString()]);
  const search = (e?: Event) => {
    e?.preventDefault();
    const query = Object.fromEntries(FILTERS.map((k) => [k, of(k).trim()]));
    if (address("logs", "", query) === location.hash) reload();
    else go("logs", "", query);
  };
  const write = (k: string) => (e: { currentTarget: { value: string } }) => void (form.value = { ...form.value, [k]: e.currentTarget.value });
  return (
    <>
      <h1>Logs</h1>
      <div class="charts">
        <Seals />
        <form class="row" role="search" onSubmit={search}>
          <input class="grow" type="search" ref={field} aria-label="Text" placeholder="Text in any event" value={of("search")} onInput={write("search")} />
          <select aria-label="Type" value={of("type")} onChange={(e) => (write("type")(e), search())}><option value="">All types</option>{TYPES.map((t) => <option key={t}>{t}</option>)}</select>
          <input aria-label="Run" placeholder="Run, S-…" size={10} value={of("run")} onInput={write("run")} />
          <input aria-label="Since" placeholder="Since: 2 hours ago" size={18} value={of("since")} onInput={write("since")} />
          <button class="primary">Search</button>
        </form>
        <Problem text={error} />
        {error ? null : !events ? <Reading error="" /> : !events.length ? (
          <Empty title="No matching events"><p>Try fewer words, all types, or a longer time.</p></Empty>
        ) : (
          <>
            <p class="soft">{events.length === LIMIT ? `Newest ${LIMIT} events. Search to find older ones.` : `${events.length} events, newest first`}{data?.brokenLines ? `; ${unreadable(data.brokenLines, data.broken[0] ?? "")}` : ""}</p>
            <EventList events={events} named />
          </>
        )}
      </div>
    </>
  );
}
