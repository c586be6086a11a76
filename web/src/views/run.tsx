// The view of one run: its state, what one can do, its steps, result, changes and log. Its events are read
// in pages once and then come by the stream of the page.
import { useComputed, useSignal, type Signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { ActRow, useActs } from "../acts";
import { ApiError, get, save, type AvaEvent, type Citation, type Item, type Result, type Run } from "../api";
import { useKeys } from "../keys";
import { Markdown } from "../markdown";
import { address, go, place, put } from "../router";
import { messaging, MessageForm, runActs } from "../run_acts";
import { askOf, failed, live, now, putRuns, runList, runs, sessionOf, stream } from "../store";
import { isError, Trace } from "../trace";
import { attempt, Elapsed, Empty, StatusTag, useGet } from "../ui";
import { about, bytes, costOf, cut, day, elapsed, exactly, modelName, money, rightsWords, roleName, tokens, visible } from "../words";
import { Again, moreActs } from "./again";
import { AskCard } from "./ask";
import { PatchPart } from "./changes";
import { EventList } from "./events";
import { Activity, Copy, Long, Tabs } from "./steps";
import "./run.css";

const PAGE = 1000;
const BATCH_MS = 100; // time between two drawings of events that come

function useTrace(id: string) {
  const trace = useMemo(() => new Trace(), [id]), state = useSignal("Loading…");
  useEffect(() => {
    const page = async (stop: AbortSignal) => {
      const { events, more } = await get<{ events: AvaEvent[]; more: boolean }>(`/api/v1/logs?run=${encodeURIComponent(id)}&after=${trace.last}&limit=${PAGE}`, stop);
      trace.feed(events);
      if (more) state.value = `${trace.events.length} events read…`;
      return more;
    };
    const { put: add, end } = stream.following<AvaEvent>(page, (late) => trace.feed(late), (why) => (state.value = why), BATCH_MS);
    const off = stream.onEvent((e) => e.agentId === id && add(e));
    return () => (off(), end());
  }, [id]);
  return { trace, state };
}

// ---- the head

function Meter({ name, used, most }: { name: string; used: number; most: number | undefined | null }) {
  if (!most) return null;
  const part = used / most, percent = Math.min(100, Math.round(part * 100));
  return <span class={part >= 1 ? "bar over" : part >= 0.8 ? "bar near" : "bar"} role="meter" aria-label={name} title={`${percent} % of the limit`} aria-valuemin={0} aria-valuemax={100} aria-valuenow={percent}><i style={{ width: `${percent}%` }} /></span>;
}
const TimeMeter = ({ run: r }: { run: Run }) => <Meter name="Time" used={elapsed(r, live(r) ? now.value : 0)} most={r.limits.timeout && r.limits.timeout * 1000} />;

function Facts({ run: r, rights }: { run: Run; rights: Run["rights"] }) {
  const l = r.limits;
  return (
    <div class="facts-line">
      <StatusTag status={r.status} />
      <span title="Time"><Elapsed run={r} /> <TimeMeter run={r} /></span>
      <span class="number">turn {r.iteration}{l.max_iterations ? ` of ${l.max_iterations}` : ""}</span>
      <span class="number">{costOf(r)}{l.max_cost_cents ? ` of ${money(l.max_cost_cents)}` : ""} <Meter name="Money" used={r.cost_cents ?? 0} most={l.max_cost_cents} /></span>
      <span class="number">{about(r)}{tokens(r.tokens_used)}{l.max_tokens ? ` of ${tokens(l.max_tokens)}` : ""} tokens <Meter name="Tokens" used={r.tokens_used} most={l.max_tokens} /></span>
      {r.machine ? <span title="Its machine">on {r.machine}</span> : null}
      <span title={r.model}>{modelName(r.model)}</span>
      <span title={r.cwd} class="ellipsis folder">{r.cwd ? r.cwd.replace(/^.*(?=\/[^/]+\/[^/]+$)/, "…") : "no folder"}</span>
      {rights ? <span>{rightsWords(rights)}</span> : null}
      <span title={exactly(r.started_at)}>started {day(r.started_at)}</span>
    </div>
  );
}

const LINE = 160;
function Task({ run: r }: { run: Run }) {
  const first = r.task.trim().split("\n", 1)[0]!;
  return (
    <>
      <h1>{cut(first, LINE)}</h1>
      {first.length < r.task.trim().length || first.length > LINE ? <details class="task-of"><summary>The whole task</summary><Long of={r.task} what="the task" /></details> : null}
    </>
  );
}

// The failure, said once, and the next steps one can take.
function Failure({ run: r, result }: { run: Run; result: Result | null }) {
  const id = r.subagent_id, items = useGet<{ items: Item[] }>(`/api/v1/items?run=${id}&limit=1000`, (i) => i.run === id && i.kind === "failed").data?.items;
  const d = items?.findLast((i) => i.kind === "failed")?.detail, error = errorOf(result), end = String(d?.end ?? "It failed");
  return (
    <div class="run-failure" role="note" aria-label="What went wrong">
      <p><strong>{end}</strong></p>
      {error && !end.includes(error) ? <p class="ask-text">{error}</p> : null}
      {d?.next ? <Markdown text={String(d.next)} /> : null}
    </div>
  );
}
const errorOf = (r: Result | null) => (!r?.error ? "" : typeof r.error === "string" ? r.error : JSON.stringify(r.error));

// ---- the result

// Claims of the output that the tools did not return: places in it that are not among the citations, which are those that
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
  const row = (c: Citation, bad: boolean, at = c.url ?? `${c.path}:${c.line}`) => (
    <li key={`${at}:${c.line}`}><code>{at}</code> <Copy of={at} what={at} />{bad ? <> <span class="tag red">not found where it was said to be</span></> : null}{c.quote ? <div class="soft">{c.quote}</div> : null}</li>
  );
  return (
    <section>
      <h2>Citations, each checked against what its tools returned {failed ? <span class="tag red">{failed} of {all} not found</span> : null}</h2>
      <ul>{lost.map((c) => row(c, true))}{result.citations.map((c) => row(c, false))}</ul>
    </section>
  );
}

// The command that proves the result, and what it said last.
function CheckPart({ check: c }: { check: NonNullable<Result["check"]> }) {
  return (
    <section>
      <h2>Check {c.passed ? <span class="tag green">passed</span> : <span class="tag red">did not pass</span>}</h2>
      <p><code>{visible(c.command)}</code> <span class="soft">{c.how}{c.rounds > 1 ? `, ran ${c.rounds} times` : ""}</span></p>
      {c.edited?.length ? <p class="tag yellow">Changed in its copy, and the check runs it: {c.edited.map(visible).join(", ")}</p> : null}
      {c.tail ? <details open={!c.passed}><summary>Its last lines</summary><pre class="plain">{c.tail}</pre></details> : null}
    </section>
  );
}

function ResultPart({ run: r, result }: { run: Run; result: Result | null }) {
  if (live(r)) return <Empty title="It has no result yet"><p>{r.status === "waiting" ? "It waits for you." : r.progress || r.current_activity}</p></Empty>;
  if (!result) return <Empty title="No result can be read"><p>Its log is there.</p></Empty>;
  const output = result.output == null ? "" : typeof result.output === "string" ? result.output : JSON.stringify(result.output, null, 2);
  return (
    <div class="panel stack result">
      <div class="row">
        {result.confidence != null && !failed(r) ? <span class="tag">confidence {result.confidence.toFixed(2)}</span> : null}
        {result.partial ? <span class="tag yellow">partial: a limit came first</span> : null}
        {result.unverified ? <span class="tag yellow">not submitted: what it said, unverified</span> : null}
      </div>
      {result.summary && result.summary !== errorOf(result) ? <section class="long"><Copy of={result.summary} what="the summary" /><Markdown text={result.summary} /></section> : failed(r) ? <p class="soft">It handed in nothing.</p> : <p class="soft">No summary.</p>}
      {result.check ? <CheckPart check={result.check} /> : null}
      {result.caveats?.length ? <section><h2>Caveats</h2><ul>{result.caveats.map((c, i) => <li key={i}>{c}</li>)}</ul></section> : null}
      <Citations result={result} />
      {result.patch ? <p>It proposes changes: <a href={address("run", r.subagent_id, {}, "changes")}>{result.patch.files} {result.patch.files === 1 ? "file" : "files"}, +{result.patch.added} −{result.patch.removed}</a></p> : null}
      {result.artifacts?.length ? (
        <section><h2>Artifacts</h2>
          <ul>{result.artifacts.map((a, i) => {
            const name = a.path.replace(/^runs\/[^/]+\//, "");
            return "more" in a ? <li key={i}>and more in {name}, which are not listed</li> : (
              <li key={i}><button class="plain" title="Save this file" onClick={() => attempt(() => save(r.subagent_id, a.path))}><code>{visible(name)}</code></button> {bytes(a.bytes)}, {a.type}</li>
            );
          })}</ul>
        </section>
      ) : null}
      {output ? <details open><summary>Output</summary><Long of={output} what="the output" /></details> : null}
    </div>
  );
}

// ---- the raw log

function RawLog({ trace, follow }: { trace: Trace; follow?: Signal<boolean> }) {
  const q = place.value.query, words = (q.get("q") ?? "").toLowerCase(), first = q.get("only") === "errors", all = trace.events;
  const kept = useRef({ words: "", upto: 0, list: [] as AvaEvent[] }), k = kept.current, version = trace.version.value;
  if (k.words !== words) kept.current = { words, upto: 0, list: [] };
  // New events alone are looked through.
  for (const c = kept.current; words && c.upto < all.length; c.upto++) if (JSON.stringify(all[c.upto]).toLowerCase().includes(words)) c.list.push(all[c.upto]!);
  const some = words ? kept.current.list : all;
  const shown = useMemo(() => (first ? [...some.filter(isError), ...some.filter((e) => !isError(e))] : some), [version, some, first]);
  return <EventList fill events={shown} n={shown.length} follow={first ? undefined : follow} />;
}

// The head of both lists of what happened: words to look for, errors, and whether the newest is in sight.
function Filter({ trace, log, follow }: { trace: Trace; log: boolean; follow?: Signal<boolean> }) {
  const q = place.value.query;
  void trace.version.value;
  return (
    <div class="row filter">
      <input type="search" aria-label={log ? "Filter events" : "Filter steps"} placeholder="Filter" value={q.get("q") ?? ""} onInput={(e) => put({ q: e.currentTarget.value })} />
      <label class="row"><input type="checkbox" checked={q.get("only") === "errors"} onChange={(e) => put({ only: e.currentTarget.checked ? "errors" : "" })} /> {log ? `Errors first (${trace.errors})` : "Only errors"}</label>
      {follow ? <button aria-pressed={follow.value} class={follow.value ? "on" : ""} title="Keep the newest in sight (f)" onClick={() => (follow.value = !follow.value)}>Follow</button> : null}
    </div>
  );
}

type Tab = "activity" | "result" | "changes" | "log";
const LogName = ({ trace }: { trace: Trace }) => <>Raw log {trace.version.value ? trace.events.length : ""}</>;

export function RunView({ id }: { id: string }) {
  const known = useComputed(() => runs.value.get(id)), first = useSignal<Run | null>(null), result = useSignal<Result | null>(null), missing = useSignal("");
  const { trace, state } = useTrace(id), follow = useSignal(true), r = known.value ?? first.value, { rest } = place.value;
  useEffect(() => {
    void attempt(async () => {
      try {
        first.value = await get<Run>(`/api/v1/runs/${encodeURIComponent(id)}`);
        putRuns([first.value]);
      } catch (e) {
        if (!(e instanceof ApiError && (e.status === 404 || e.status === 400))) throw e;
        missing.value = e.message;
      }
    });
  }, [id]);
  const ended = !!r && !live(r), rights = r?.rights ?? first.value?.rights ?? result.value?.rights, patch = result.value?.patch;
  useEffect(() => {
    if (ended) get<Result>(`/api/v1/runs/${id}/result`).then((x) => (result.value = x)).catch(() => {});
  }, [id, ended]);
  const said = rest[0] === "turn" ? "activity" : (rest[0] as Tab | undefined), tab: Tab = said ?? (!ended || failed(r) ? "activity" : "result");
  const tabs: [Tab, preact.ComponentChildren][] = [["activity", "Activity"], ["result", "Result"]];
  if (patch || tab === "changes") tabs.push(["changes", patch ? <>Changes <span class="number">+{patch.added} −{patch.removed}</span></> : "Changes"]);
  tabs.push(["log", <LogName trace={trace} />]);
  const shown = useRef(tab);
  useEffect(() => {
    // The run ended while somebody stood in what it did: the keyboard goes on in what is there now.
    if (shown.current !== tab && document.activeElement === document.body) document.getElementById("run-panel")?.focus({ preventScroll: true });
    shown.current = tab;
  }, [tab]);
  const beside = (by: number) => {
    const all = runList.value, next = all[all.findIndex((x) => x.subagent_id === id) + by];
    if (next) go("run", next.subagent_id);
  };
  const all: [Tab, string][] = [["activity", "what the run does"], ["result", "its result"], ["changes", "its changes"], ["log", "its raw log"]];
  useKeys([
    ...all.map(([t, does], i) => ({ key: String(i + 1), does, run: () => go("run", id, {}, t) })),
    { key: "f", does: "follow the newest step", run: () => (follow.value = !follow.value) },
    { key: "[", does: "newer run", run: () => beside(-1) },
    { key: "]", does: "older run", run: () => beside(1) },
    { key: "u", does: "back to the runs", run: () => go("runs") },
  ], [id]);
  const own = r ? runActs(r) : [], copies = (a: { id: string }) => a.id === "link" || a.id === "id";
  const acts = r ? [...own.filter((a) => !copies(a)), ...moreActs(r, trace, result.value, !state.value), ...own.filter(copies)] : [], on = useActs(acts);
  if (missing.value) return <Empty title={`There is no run ${id}`}><p>{missing.value}</p><p><a href={address("runs")}>All runs</a></p></Empty>;
  if (!r) return <p class="soft">Loading…</p>;
  const ask = askOf(id), lists = tab === "activity" || tab === "log", moving = live(r) ? follow : undefined;
  return (
    <div class={lists ? "run-view fill" : "run-view"}>
      <nav class="crumb row" aria-label="Where it belongs"><a href={address("runs")}>‹ Runs</a>{r.group_id ? <> / <a href={address("group", r.group_id)}>Group {r.group_id}</a></> : null} / <span>{roleName(r.role)} · {id}</span>{sessionOf(r.session_id) ? <> · <a href={address("chat", r.session_id)}>Open conversation</a></> : null}</nav>
      <div class="row run-head">
        <div class="grow"><Task run={r} /></div>
        <ActRow acts={acts} on={on} first={2} />
      </div>
      <Facts run={r} rights={rights} />
      {ask?.kind === "apply" ? (tab === "changes" ? null : <p class="ask answer"><span>It proposes changes to your files. <a href={address("run", id, {}, "changes")}>Review them</a></span></p>)
        : ask ? <AskCard key={ask.id} ask={ask} within /> : null}
      {messaging.value === id && r.status === "running" ? <MessageForm run={r} close={() => (messaging.value = "")} /> : null}
      {failed(r) ? <Failure run={r} result={result.value} /> : null}
      <div class="row tab-row">
        <Tabs name="run" label="Run" tabs={tabs} at={tab} to={(t) => address("run", id, {}, t)} />
        {lists ? <Filter trace={trace} log={tab === "log"} follow={moving} /> : null}
      </div>
      {state.value && lists ? <p class="soft" role="status">{state.value}</p> : null}
      <div class="tab-body" id="run-panel" role="tabpanel" aria-labelledby={`run-${tab}`} tabIndex={-1}>
        {tab === "result" ? <ResultPart run={r} result={result.value} />
          : tab === "changes" ? <PatchPart id={id} patch={patch} />
          : tab === "log" ? <RawLog trace={trace} follow={moving} />
          : <Activity id={id} run={r} trace={trace} read={!state.value} follow={follow} />}
      </div>
      <Again run={r} />
    </div>
  );
}
