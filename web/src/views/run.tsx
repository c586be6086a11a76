// One run: how it is, what it does, what it found and what it cost, from its events. They are read in
// pages once and then come by the stream of the page.
import { computed, signal, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ApiError, get, save, type AvaEvent, type Citation, type Result, type Run } from "../api";
import { useKeys } from "../keys";
import { Markdown } from "../markdown";
import { address, go, place } from "../router";
import { askOf, live, now, refreshRun, runs, stream } from "../store";
import { isError, turnsOf, type Span, type Turn } from "../trace";
import { attempt, Empty, StatusDot } from "../ui";
import { about, bytes, clock, cut, day, duration, elapsed, money, rightsWords, roleName, statusWords, tokens } from "../words";
import { AskCard } from "./ask";
import { CancelButton, canResume, resumeRun, Steer } from "./board";
import { EventList, EventModal, Rows } from "./events";
import { PatchPart } from "./patch";

const PAGE = 1000;
const CALLS_OPEN = 300; // of a trace
const LANE = 20; // pixels, as in style.css
const tabs: [id: string, name: string][] = [["result", "Result"], ["trace", "Trace"], ["time", "Timeline"], ["events", "Events"], ["patch", "Changes"]];

function useEvents(id: string) {
  const events = useSignal<AvaEvent[]>([]), state = useSignal("");
  useEffect(() => {
    const stop = new AbortController();
    const late: AvaEvent[] = []; // came by the stream while pages were read
    let last = 0, reading = true;
    const add = (list: AvaEvent[]) => {
      const fresh = list.filter((e) => e.lsn > last);
      if (!fresh.length) return;
      last = fresh.at(-1)!.lsn;
      events.value = [...events.value, ...fresh];
    };
    const read = async () => {
      reading = true;
      for (;;) {
        const page = await get<{ events: AvaEvent[]; next: number; more: boolean }>(`/api/v1/logs?run=${id}&after=${last}&limit=${PAGE}`, stop.signal);
        add(page.events);
        if (!page.more) break;
        state.value = `${events.value.length} events read…`;
      }
      reading = false;
      add(late.splice(0));
      state.value = "";
    };
    const again = () => read().catch((e) => stop.signal.aborted || (state.value = (e as Error).message));
    void again();
    const offs = [
      stream.onEvent((e) => e.agentId === id && (reading ? late.push(e) : add([e]))),
      stream.onAgain(again),
    ];
    return () => {
      stop.abort();
      offs.forEach((off) => off());
    };
  }, [id]);
  return { events, state };
}

function Meter({ name, used, most, show, mark = "" }: { name: string; used: number; most: number | undefined; show: (n: number) => string; mark?: string }) {
  if (!most) return null;
  const part = used / most, percent = Math.min(100, Math.round(part * 100));
  return (
    <div>
      <small class="row"><span class="grow">{name}</span><span>{mark}{show(used)} of {show(most)}</span></small>
      <div class={part >= 1 ? "bar over" : part >= 0.8 ? "bar near" : "bar"} role="meter" aria-label={name} aria-valuemin={0} aria-valuemax={100} aria-valuenow={percent}><i style={{ width: `${percent}%` }} /></div>
    </div>
  );
}

function Budget({ run }: { run: Run }) {
  const l = run.limits;
  return (
    <section class="panel" aria-label="Budget" style="display: grid; gap: 10px">
      <h2>Budget</h2>
      <Meter name="Time" used={elapsed(run, now.value)} most={l.timeout && l.timeout * 1000} show={duration} />
      <Meter name="Money" used={run.cost_cents ?? 0} most={l.max_cost_cents} show={money} mark={about(run)} />
      <Meter name="Tokens" used={run.tokens_used} most={l.max_tokens} show={tokens} mark={about(run)} />
      <Meter name="Replies" used={run.iteration} most={l.max_iterations} show={String} />
    </section>
  );
}

const chosen = signal<AvaEvent[] | null>(null); // the events of the span that is looked at

function SpanRow({ span: s }: { span: Span }) {
  return (
    <li>
      <button class={s.failed ? "plain span bad" : "plain span"} onClick={() => (chosen.value = s.events)}>
        <span class={`tag ${s.kind === "infer" ? "violet" : s.kind === "wait" ? "yellow" : "blue"}`}>{s.kind === "infer" ? "model" : s.kind === "wait" ? "person" : "tool"}</span>
        <strong>{s.name}</strong>
        <span class="ellipsis grow mono">{cut(s.detail, 200)}</span>
        <small>{s.kind === "infer" && s.to ? `${tokens(s.input)} in, ${tokens(s.output)} out, ${money(s.cents)}, ` : ""}{s.to == null ? "open" : duration(s.to - s.from)}{s.failed ? ", failed" : ""}</small>
      </button>
    </li>
  );
}

function TurnPart({ turn: t, open }: { turn: Turn; open: boolean }) {
  const shown = useSignal(open), failed = t.spans.filter((s) => s.failed).length;
  return (
    <details open={shown.value} onToggle={(e) => (shown.value = e.currentTarget.open)}>
      <summary>{t.n ? `Turn ${t.n}` : "Before the first turn"} <small>{t.spans.length ? `${t.spans.length} ${t.spans.length === 1 ? "call" : "calls"}` : ""}</small> {failed ? <span class="tag red">{failed === 1 ? "a failed call" : `${failed} failed calls`}</span> : null}</summary>
      {shown.value ? (
        <>
          {t.thinking.map((text, i) => <details key={i}><summary class="soft">Thinking</summary><pre class="plain">{text}</pre></details>)}
          <ul>{t.spans.map((s) => <SpanRow key={s.kind + s.id + s.from} span={s} />)}</ul>
          {t.notes.map((e) => <button key={e.lsn} class="plain soft" onClick={() => (chosen.value = [e])}>{e.eventType}: {cut(JSON.stringify(e.content), 160)}</button>)}
        </>
      ) : null}
    </details>
  );
}

// The first turns are open, as many as have so many calls; what is closed makes no elements.
function Trace({ turns }: { turns: Turn[] }) {
  let before = 0;
  return (
    <div class="panel trace">
      {turns.filter((t) => t.spans.length || t.notes.length).map((t) => {
        const open = before < CALLS_OPEN;
        before += t.spans.length;
        return <TurnPart key={t.n} turn={t} open={open} />;
      })}
    </div>
  );
}

function Timeline({ turns, run }: { turns: Turn[]; run: Run }) {
  const spans = turns.flatMap((t) => t.spans);
  if (!spans.length) return <Empty title="Nothing has begun yet" />;
  const open = live(run) ? now.value : spans.reduce((most, s) => Math.max(most, s.to ?? s.from), 0);
  const from = spans.reduce((least, s) => Math.min(least, s.from), Infinity), to = spans.reduce((most, s) => Math.max(most, s.to ?? open), Math.max(from + 1, open));
  const left = (ms: number) => `${(100 * (ms - from)) / (to - from)}%`;
  return (
    <div class="panel timeline">
      <div class="axis" aria-hidden="true">{[0, 0.25, 0.5, 0.75, 1].map((x) => <small key={x} style={{ left: `${x * 100}%` }}>{duration(x * (to - from))}</small>)}</div>
      <Rows n={spans.length} row={LANE} label={`Timeline of ${duration(to - from)}`} of={(i, style) => {
        const s = spans[i]!;
        return (
          <button key={s.kind + s.id + s.from} class="lane" style={style} onClick={() => (chosen.value = s.events)} title={`${s.name}, ${s.to == null ? "open" : duration(s.to - s.from)}`}>
            <span class="ellipsis">{s.name}</span>
            <span class="track"><i class={s.failed ? "bad" : s.kind} style={{ left: left(s.from), width: `max(3px, ${(100 * ((s.to ?? open) - s.from)) / (to - from)}%)` }} /></span>
            <small>{s.to == null ? "open" : duration(s.to - s.from)}</small>
          </button>
        );
      }} />
    </div>
  );
}

// What the output claims and the tools did not return: places of it that are not among the citations, which are those that
// were found.
function notFound(result: Result): Citation[] {
  const place = (c: Citation) => c.url ?? (c.path && c.line != null ? `${c.path}:${c.line}` : "");
  const found = new Set(result.citations.map(place)), lost = new Map<string, Citation>();
  const look = (v: unknown) => {
    if (!v || typeof v !== "object" || lost.size > 200) return;
    const p = Array.isArray(v) ? "" : place(v as Citation);
    if (typeof p === "string" && p && !found.has(p)) lost.set(p, v as Citation);
    Object.values(v).forEach(look);
  };
  look(result.output);
  return [...lost.values()];
}

function Citations({ result }: { result: Result }) {
  const failed = result.evidence?.citations_failed ?? 0, all = result.evidence?.citations_checked ?? 0, lost = failed ? notFound(result) : [];
  if (!all && !result.citations?.length) return null;
  const row = (c: Citation, bad: boolean) => (
    <li key={`${c.url ?? c.path}:${c.line}`}><code>{c.url ?? `${c.path}:${c.line}`}</code>{bad ? <> <span class="tag red">not found where it was said to be</span></> : null}{c.quote ? <div class="soft">{c.quote}</div> : null}</li>
  );
  return (
    <section>
      <h2>Citations, each checked against what its tools returned {failed ? <span class="tag red">{failed} of {all} not found</span> : null}</h2>
      <ul>{lost.map((c) => row(c, true))}{result.citations.map((c) => row(c, false))}</ul>
    </section>
  );
}

function ResultPart({ run, result }: { run: Run; result: Result | null }) {
  if (live(run)) return <Empty title={statusWords[run.status].replace(/^./, (c) => c.toUpperCase())}><p>{run.status === "waiting" ? "" : run.progress || run.current_activity}</p></Empty>;
  if (!result) return <Empty title="No result can be read"><p>Its events are there.</p></Empty>;
  return (
    <div class="panel" style="display: grid; gap: 12px">
      <div class="row">
        {result.confidence != null ? <span class="tag">confidence {result.confidence.toFixed(2)}</span> : null}
        {result.partial ? <span class="tag yellow">partial: a limit came first</span> : null}
        {result.unverified ? <span class="tag yellow">not submitted: what it said, unverified</span> : null}
      </div>
      <Markdown text={result.summary || "No summary."} />
      {result.caveats?.length ? <section><h2>Caveats</h2><ul>{result.caveats.map((c, i) => <li key={i}>{c}</li>)}</ul></section> : null}
      <Citations result={result} />
      {result.patch ? (
        <p>It proposes changes: <a href={address("run", run.subagent_id, { tab: "patch" })}>{result.patch.files} {result.patch.files === 1 ? "file" : "files"}, {result.patch.added} lines added, {result.patch.removed} removed</a>.</p>
      ) : null}
      {result.artifacts?.length ? (
        <section><h2>Artifacts</h2>
          <ul>{result.artifacts.map((a, i) => {
            const name = a.path.replace(/^runs\/[^/]+\//, "");
            return a.more ? <li key={i}>and more in {name}, which are not listed</li> : (
              <li key={i}><button class="plain" title="Save this file" onClick={() => attempt(() => save(run.subagent_id, a.path))}><code>{name}</code></button> {bytes(a.bytes)}, {a.type}</li>
            );
          })}</ul>
        </section>
      ) : null}
      {result.error ? <section><h2>Error</h2><pre class="plain">{typeof result.error === "string" ? result.error : JSON.stringify(result.error, null, 2)}</pre></section> : null}
      {result.output != null ? <details open><summary>Output</summary><pre class="plain" tabIndex={0}>{typeof result.output === "string" ? result.output : JSON.stringify(result.output, null, 2)}</pre></details> : null}
    </div>
  );
}

function Events({ events }: { events: AvaEvent[] }) {
  const errors = useSignal(false), text = useSignal("");
  const shown = useMemo(() => {
    const t = text.value.toLowerCase();
    const some = t ? events.filter((e) => JSON.stringify(e).toLowerCase().includes(t)) : events;
    return errors.value ? [...some.filter(isError), ...some.filter((e) => !isError(e))] : some;
  }, [events.length, errors.value, text.value]);
  return (
    <>
      <div class="row" style="margin-bottom: 8px">
        <input aria-label="Filter events" placeholder="filter" value={text} onInput={(e) => (text.value = e.currentTarget.value)} />
        <label class="row"><input type="checkbox" checked={errors} onChange={(e) => (errors.value = e.currentTarget.checked)} /> errors first ({events.filter(isError).length})</label>
        <small>{shown.length} events</small>
      </div>
      <EventList events={shown} />
    </>
  );
}

export function RunView({ id }: { id: string }) {
  const run = useSignal<Run | null>(null), result = useSignal<Result | null>(null), missing = useSignal("");
  const { events, state } = useEvents(id);
  const r = runs.value.get(id) ?? run.value;
  const tab = computed(() => place.value.query.get("tab") || "result");
  const shown = tabs.filter(([t]) => t !== "patch" || result.value?.patch);
  const turns = useMemo(() => turnsOf(events.value), [events.value.length]);
  useEffect(() => {
    void attempt(async () => {
      try {
        run.value = await get<Run>(`/api/v1/runs/${id}`);
      } catch (e) {
        if (!(e instanceof ApiError && (e.status === 404 || e.status === 400))) throw e;
        missing.value = e.message;
      }
    });
  }, [id]);
  const ended = !!r && !live(r), rights = r?.rights ?? run.value?.rights ?? result.value?.rights;
  useEffect(() => {
    if (ended) get<Result>(`/api/v1/runs/${id}/result`).then((x) => (result.value = x)).catch(() => {});
  }, [id, ended]);
  useKeys([
    ...tabs.map(([t, name], i) => ({ key: String(i + 1), does: `${name.toLowerCase()} of the run`, run: () => go("run", id, { tab: t }) })),
    { key: "u", does: "back to the board", run: () => go("board") },
  ], [id]);
  if (missing.value) return <Empty title={`There is no run ${id}`}><p>{missing.value}</p><p><a href={address("board")}>All runs</a></p></Empty>;
  if (!r) return <p class="soft">Reading…</p>;
  const ask = askOf(id);
  return (
    <>
      <div class="row">
        <StatusDot status={r.status} />
        <h1 class="grow">{roleName(r.role)} <span class="soft">{r.trace_id} · {id}</span></h1>
        {live(r) ? <CancelButton run={r} class="danger" /> : null}
        {canResume(r) ? <button onClick={async () => (await resumeRun(r)) && go("board")}>Resume</button> : null}
        <button class="plain" aria-label="Read again" onClick={() => refreshRun(id)}>↻</button>
      </div>
      <p class="task-of">{r.task}</p>
      <p class="soft">
        {statusWords[r.status]}{r.stop_reason && r.stop_reason !== r.status ? ` (${r.stop_reason})` : ""} · {r.model} · begun {day(r.started_at)}{r.ended_at ? `, ended ${clock(r.ended_at)}` : ""} · {r.cwd || "no folder"}{rights ? ` · ${rightsWords(rights)}` : ""}
        {r.session_id ? <> · <a href={address("session", r.session_id)}>its conversation</a></> : null}
      </p>
      {ask ? <AskCard key={ask.id} ask={ask} within /> : null}
      {r.status === "running" ? <Steer run={r} /> : null}
      <div class="run">
        <div>
          <div class="tabs" role="tablist">
            {shown.map(([t, name]) => <a key={t} role="tab" aria-selected={tab.value === t} href={address("run", id, { tab: t })}>{name}{t === "events" ? ` ${events.value.length}` : ""}</a>)}
          </div>
          {state.value ? <p class="soft" role="status">{state.value}</p> : null}
          {tab.value === "result" ? <ResultPart run={r} result={result.value} />
            : tab.value === "trace" ? <Trace turns={turns} />
            : tab.value === "time" ? <Timeline turns={turns} run={r} />
            : tab.value === "patch" ? <PatchPart id={id} patch={result.value?.patch} />
            : <Events events={events.value} />}
        </div>
        <Budget run={r} />
      </div>
      {chosen.value ? <EventModal event={chosen.value.at(-1)!} close={() => (chosen.value = null)} /> : null}
    </>
  );
}
