// Steps of a run: a tree of its turns, in which each call has its bar on the axis of time, and beside it the
// inspector of one: what went in, what came out, and the events as they stand.
import { batch, useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { save, type MessagePage, type MessagePart, type Run } from "../api";
import { Icon } from "../icons";
import { useKeys } from "../keys";
import { Markdown } from "../markdown";
import { address, go, place, put } from "../router";
import { resumeRun } from "../run_acts";
import { failed, live, now } from "../store";
import { watch } from "../stream";
import { text, type Step, type Trace } from "../trace";
import { attempt, copy, useGet } from "../ui";
import { bytes, clock, cut, duration, modelName, money, tokens } from "../words";
import { Rows } from "./events";
import "./steps.css";

const ROW = 28;
const FIRST = 20000; // letters of a long text
const SMALL = 2000; // letters of a text that is open at once

// ---- parts

// Tabs as links: the arrows go through them, and one of them is in the order of Tab.
export function Tabs({ name, label, tabs, at, to }: { name: string; label: string; tabs: [id: string, name: ComponentChildren][]; at: string; to: (id: string) => string }) {
  const key = (e: KeyboardEvent) => {
    const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0, next = by && tabs[tabs.findIndex(([t]) => t === at) + by];
    if (!next) return;
    e.preventDefault();
    e.stopPropagation();
    const el = document.getElementById(`${name}-${next[0]}`)!;
    el.focus();
    el.click();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={key}>
      {tabs.map(([t, words]) => <a key={t} id={`${name}-${t}`} role="tab" aria-selected={at === t} aria-controls={`${name}-panel`} tabIndex={at === t ? 0 : -1} href={to(t)}>{words}</a>)}
    </div>
  );
}

export const Copy = ({ of, what }: { of: string; what: string }) => <button class="plain" aria-label={`Copy ${what}`} title={`Copy ${what}`} onClick={() => copy(of, what)}><Icon name="copy" /></button>;

// The beginning of a text, and more of it when it is asked for.
export function Long({ of, what }: { of: string; what: string }) {
  const most = useSignal(FIRST);
  return (
    <div class="long">
      <Copy of={of} what={what} />
      <pre class="plain">{of.slice(0, most.value)}</pre>
      {of.length > most.value ? <button onClick={() => (most.value *= 8)}>More ({bytes(of.length - most.value)})</button> : null}
    </div>
  );
}

function Arguments({ of }: { of: unknown }) {
  if (!of || typeof of !== "object") return of == null || of === "" ? <p class="soft">No arguments.</p> : <Long of={text(of)} what="the arguments" />;
  const all = Object.entries(of);
  if (!all.length) return <p class="soft">No arguments.</p>;
  return <dl class="facts">{all.map(([k, v]) => [<dt key={k}>{k}</dt>, <dd key={`${k}.`}>{typeof v === "object" || (typeof v === "string" && (v.length > 200 || v.includes("\n"))) ? <Long of={typeof v === "string" ? v : JSON.stringify(v, null, 2)} what={k} /> : <code>{String(v)}</code>}</dd>])}</dl>;
}

// ---- messages of the model

const callPlace = (call = "") => (/^c\d+\.\d+$/.test(call) ? call.replace(/^c(\d+)\.(\d+)$/, "turn/$1/call/$2") : "");

function Part({ id, trace, part: p, said }: { id: string; trace: Trace; part: MessagePart; said: boolean }) {
  const at = callPlace(p.call_id), to = at && address("run", id, {}, ...at.split("/")), words = p.text ?? "", call = trace.steps.get(at);
  if (p.kind === "call") return <section><h3>{to ? <a href={to}>{p.name}</a> : p.name}</h3><Arguments of={p.args} /></section>;
  if (p.kind === "note") return <p class="soft">{words}</p>;
  if (p.kind === "text") return said ? <Markdown text={words} /> : <Long of={words} what="the text" />;
  return (
    <details open={p.kind === "result" && words.length < SMALL}>
      <summary class={p.failed || call?.failed ? "problem" : ""}>{p.kind === "thinking" ? "Thinking" : <>{call?.name ?? p.call_id} <code>{cut(call?.detail ?? "", 80)}</code></>} <small>{bytes(words.length)}</small></summary>
      <Long of={words} what={p.kind === "thinking" ? "what it thought" : "the result"} />
      {to && p.kind === "result" ? <a href={to}>Show the call</a> : null}
    </details>
  );
}
const speakers = { system: "System", user: "Task and messages", assistant: "Model", tool: "Results", note: "Note" };

// Messages of one call: what was new in its input, its reply, or both.
function Said({ id, trace, call, of, instead }: { id: string; trace: Trace; call: number; of: "input" | "output" | "both"; instead: ComponentChildren }) {
  const { data, error } = useGet<MessagePage>(call ? `/api/v1/runs/${id}/messages?turn=${call}&limit=1000` : "");
  const list = data?.messages.filter((m) => of === "both" || (m.role === "assistant") === (of === "output")) ?? [];
  if (!list.length) return <>{instead}{error ? <p class="soft">{error}</p> : null}</>;
  return (
    <>
      {list.map((m) => (
        <section key={m.n} class="told">
          {of === "output" ? null : m.role === "system" ? null : <h3>{speakers[m.role]}</h3>}
          {m.role === "system" ? <details><summary>System</summary>{m.parts.map((p, i) => <Part key={i} id={id} trace={trace} part={p} said={false} />)}</details> : m.parts.map((p, i) => <Part key={i} id={id} trace={trace} part={p} said={m.role === "assistant"} />)}
        </section>
      ))}
      {data?.more ? <p class="soft">There is more than can be shown here.</p> : null}
    </>
  );
}

const callOf = (s: Step) => Number(/^i(\d+)/.exec(s.id)?.[1] ?? 0); // number of the model call, counted from 1
const EARLIER = 5;
function ModelInput({ id, trace, step: s }: { id: string; trace: Trace; step: Step }) {
  const call = callOf(s), first = useSignal(call), start = s.events[0]?.content, least = trace.turns[0]?.head.events[0]?.content.resumedFrom ? 0 : 1; // least 0: the run before
  return (
    <>
      {first.value > least ? <p><button onClick={() => (first.value = Math.max(least, first.value - EARLIER))}>Show what came before</button></p> : null}
      {Array.from({ length: call - first.value }, (_, i) => first.value + i).map((n) => <Said key={n} id={id} trace={trace} call={n} of="both" instead={null} />)}
      {call > first.value ? <h3>New in this turn</h3> : null}
      <Said id={id} trace={trace} call={call} of="input" instead={start ? <Long of={text(start.promptPreview)} what="the prompt" /> : null} />
      {start?.notices?.length ? <p class="soft">Told by the runtime: {start.notices.join(", ")}</p> : null}
    </>
  );
}

interface Live {
  said: Signal<string>;
  thought: Signal<string>;
}
function Speaking({ words }: { words: Live }) {
  const said = words.said.value, thought = words.thought.value;
  return <div class="speech">{thought ? <details open={!said}><summary>Thinking</summary><pre class="plain">{thought.slice(-FIRST)}</pre></details> : null}{said ? <Markdown text={said} /> : thought ? null : <p class="soft">Waiting for the model…</p>}</div>;
}
function ModelOutput({ id, trace, step: s, words, quick }: { id: string; trace: Trace; step: Step; words: Live | null; quick: boolean }) {
  if (s.to == null) return words ? <Speaking words={words} /> : <p class="soft">It has no end: the run was cut off here.</p>;
  if (s.failed) return <p class="problem">{s.detail}</p>;
  const calls = s.turn.steps.filter((t) => t.kind === "tool"), preview = (
    <>
      {s.detail ? <Markdown text={s.detail} /> : null}
      {calls.length ? <ul class="plain-list">{calls.map((t) => <li key={t.at} class="ellipsis"><a href={address("run", id, {}, ...t.at.split("/"))}>{t.name}</a> <code>{cut(t.detail, 200)}</code></li>)}</ul> : null}
    </>
  );
  return <Said id={id} trace={trace} call={quick ? 0 : callOf(s)} of="output" instead={preview} />;
}

// The whole of a result that the log has only the beginning of is in what the model was told next.
function ToolOutput({ id, step: s }: { id: string; step: Step }) {
  const c = s.events.find((e) => e.eventType === "ToolResult")?.content, turn = Number(/^c(\d+)/.exec(s.id)?.[1] ?? 0);
  const whole = useGet<MessagePage>(c?.cut && turn ? `/api/v1/runs/${id}/messages?turn=${turn + 1}&limit=1000` : "").data?.messages.flatMap((m) => m.parts).find((p) => p.kind === "result" && p.call_id === s.id);
  if (!c) return <p class="soft">{s.to == null ? "At work…" : "No result."}</p>;
  return (
    <>
      <Long of={whole?.text ?? text(c.output)} what="the result" />
      {c.cut && !whole ? <p class="soft">The beginning of {bytes(c.bytes ?? 0)}.</p> : null}
      {c.artifact ? <p><button onClick={() => attempt(() => save(id, c.artifact))}>Save all of it</button></p> : null}
    </>
  );
}

// ---- the inspector

const took = (s: Step) => (s.to == null ? "under way" : s.to - s.from < 1000 ? `${s.to - s.from} ms` : duration(s.to - s.from));
const lasts = (s: Step) => s.kind === "model" || s.kind === "tool" || s.kind === "wait";
const wordsOf = (s: Step) => (s.kind === "model" ? modelName(s.name) : s.name);
function facts(s: Step): string[] {
  const all = [clock(s.from)];
  if (lasts(s)) all.push(took(s));
  if (s.kind === "model" && s.to != null) all.push(`${tokens(s.input)} in, ${tokens(s.output)} out`, money(s.cents));
  if (s.kind === "tool" && s.to != null) all.push(bytes(s.output));
  return all;
}

function Inspector({ id, run: r, trace, step: s, words, quick, back }: { id: string; run: Run; trace: Trace; step: Step; words: Live | null; quick: boolean; back: () => void }) {
  const model = s.kind === "model", tool = s.kind === "tool", wanted = place.value.query.get("show") ?? "output";
  const tabs: [string, string][] = lasts(s) ? [["input", "Input"], ["output", "Output"], ["raw", "Raw"]] : [["output", "Text"], ["raw", "Raw"]];
  const at = tabs.some(([t]) => t === wanted) ? wanted : "output", call = callOf(s), start = s.events[0]?.content;
  const key = (e: KeyboardEvent) => {
    if (e.key !== "ArrowLeft" && e.key !== "Escape") return;
    e.preventDefault();
    back();
  };
  return (
    <section class="inspector panel" aria-label="Step" onKeyDown={key}>
      <div class="row head">
        <button class="plain back" onClick={back}>‹ Steps</button>
        <h2 class="grow ellipsis" title={s.name}>{s.turn.n ? <span class="soft">{s.turn.n} </span> : null}{wordsOf(s)} {s.failed ? <span class="tag red">failed</span> : null}</h2>
        {model && call && !live(r) ? <button title="A quote for a run that begins anew before this call of the model" onClick={() => resumeRun(r, { from: call })}>Fork from here</button> : null}
        <Copy of={location.href.split("#")[0] + address("run", id, {}, ...s.at.split("/"))} what="the link to this step" />
      </div>
      <p class="soft number">{facts(s).join(" · ")}</p>
      <Tabs name="step" label="Step" tabs={tabs} at={at} to={(show) => address("run", id, { ...Object.fromEntries(place.value.query), show }, ...s.at.split("/"))} />
      <div id="step-panel" key={s.at + at} role="tabpanel" aria-labelledby={`step-${at}`} tabIndex={0} class="body">
        {at === "raw" ? <Long of={JSON.stringify(s.events, null, 2)} what="the events" />
          : model ? (at === "input" ? <ModelInput id={id} trace={trace} step={s} /> : <ModelOutput id={id} trace={trace} step={s} words={words} quick={quick} />)
          : tool ? (at === "input" ? <Arguments of={start?.args} /> : <ToolOutput id={id} step={s} />)
          : s.kind === "wait" ? (at === "input" ? <><p>{start?.question}</p>{start?.choices?.length ? <ul>{start.choices.map((c: string) => <li key={c}>{c}</li>)}</ul> : null}</> : <p>{text(s.events.at(-1)?.content.answer) || (s.to == null ? "No answer yet." : text(s.events.at(-1)?.content.state))}</p>)
          : <Long of={s.detail} what="the text" />}
      </div>
    </section>
  );
}

// ---- the tree

// The end of what the model says, under its step, while it says it.
function SpeakingRow({ words, style, pick }: { words: Live; style: { transform: string }; pick: () => void }) {
  const said = (words.said.value || words.thought.value).slice(-200);
  return <div class="step speaking" role="treeitem" aria-level={2} aria-selected={false} style={style} onClick={pick}><span class="end"><span>{said || "Thinking…"}</span></span></div>;
}

// A whole number of some unit: while a run goes on its bars stay where they are for a time.
function nice(ms: number): number {
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, ms)));
  return unit * [1, 1.5, 2, 3, 5, 7.5, 10].find((x) => x * unit >= ms)!;
}
interface Axis {
  from: number;
  span: number;
  end: number; // an end for bars without one: 0 while it goes on
}
function Bar({ step: s, axis }: { step: Step; axis: Axis }) {
  const to = s.to ?? (axis.end || now.value), left = Math.min(99, (100 * (s.from - axis.from)) / axis.span), width = Math.min(100 - left, (100 * (to - s.from)) / axis.span);
  return <span class="track"><i class={`is-${s.failed ? "bad" : s.kind}${s.to == null ? " is-open" : ""}`} style={{ left: `${left}%`, width: `max(3px, ${width}%)` }} /></span>;
}

const hit = (s: Step, words: string, errors: boolean) => {
  if (errors && !s.failed) return false;
  if (!words) return true;
  s.found ??= `${s.name} ${s.detail} ${text(s.events.at(-1)?.content.output).slice(0, 2000)}`.toLowerCase();
  return s.found.includes(words);
};
function visible(trace: Trace, words: string, errors: boolean, folded: ReadonlySet<number>, speaks: boolean): (Step | null)[] {
  const out: (Step | null)[] = [], some = !!words || errors;
  for (const t of trace.turns) {
    const steps = some ? t.steps.filter((s) => hit(s, words, errors)) : t.steps;
    if (some && !steps.length && !hit(t.head, words, errors)) continue;
    out.push(t.head);
    if (some || !folded.has(t.n)) for (const s of steps) out.push(s);
  }
  if (speaks && !some) out.push(null); // null: the words that are being said
  return out;
}

const rowId = (s: Step) => `step-${s.at.replaceAll("/", "-")}`;
const headWords = (s: Step) => (s.kind !== "model" ? s.detail : s.detail || s.turn.steps.filter((t) => t.kind === "tool").slice(0, 8).map((t) => t.name).join(", ") || (s.to == null ? "…" : "No words"));
function StepRow({ step: s, style, on, folded, axis, pick, fold }: { step: Step; style: { transform: string }; on: boolean; folded: boolean; axis: Axis; pick: () => void; fold: () => void }) {
  const head = s === s.turn.head;
  return (
    <div id={rowId(s)} class={`step ${head ? "head" : ""} ${s.failed ? "bad" : ""}`} role="treeitem" aria-level={head ? 1 : 2} aria-selected={on} aria-expanded={head && s.turn.steps.length ? !folded : undefined} style={style} onClick={pick}>
      {head ? <span class="fold" aria-hidden="true" onClick={(e) => (e.stopPropagation(), fold())}>{s.turn.steps.length ? (folded ? "▸" : "▾") : ""}</span> : <i class={`mark is-${s.kind}`} aria-hidden="true" />}
      {head && s.turn.n ? <b class="number">{s.turn.n}</b> : null}
      <span class="ellipsis grow">{head && s.turn.n ? cut(headWords(s), 200) : <><strong>{wordsOf(s)}</strong> <span class="soft">{cut(s.detail, 160)}</span></>}</span>
      {s.failed ? <span class="tag red">failed</span> : head && folded && s.turn.failed ? <span class="tag red">{s.turn.failed} failed</span> : null}
      {lasts(s) ? <><Bar step={s} axis={axis} /><small class="number time">{s.to == null ? "" : took(s)}</small><small class="number cost">{s.cents ? money(s.cents) : s.kind === "tool" && s.to != null ? bytes(s.output) : ""}</small></> : null}
    </div>
  );
}

// Words of the model at this moment, while somebody looks.
function useLive(id: string, on: boolean, trace: Trace): Live {
  const said = useSignal(""), thought = useSignal(""), asking = trace.asking?.id;
  useEffect(() => {
    if (!on) return;
    let frame = 0;
    const now = { text: "", thinking: "" };
    const show = () => {
      frame = 0;
      batch(() => {
        said.value = now.text;
        thought.value = now.thinking;
      });
    };
    const off = watch(`/api/v1/runs/${id}/events?items=only&text=1&after=${trace.last}`, (type, value) => {
      if (type === "open") now.text = now.thinking = "";
      else if (type !== "text" && type !== "thinking") return;
      else if (value.text) now[type] += value.text;
      else now.text = now.thinking = "";
      frame ||= requestAnimationFrame(show);
    });
    return () => {
      off();
      cancelAnimationFrame(frame);
    };
  }, [id, on]);
  useEffect(() => {
    said.value = thought.value = "";
  }, [asking]);
  return { said, thought };
}

const narrow = () => matchMedia("(max-width: 899px)").matches;
export function Activity({ id, run: r, trace, read, follow }: { id: string; run: Run; trace: Trace; read: boolean; follow: Signal<boolean> }) {
  const version = trace.version.value, { rest, query: q } = place.value, words = (q.get("q") ?? "").toLowerCase(), errors = q.get("only") === "errors";
  const folded = useSignal<ReadonlySet<number>>(new Set()), tree = useRef<HTMLDivElement>(null), going = live(r), asking = going ? trace.asking : null;
  const said = useLive(id, going && read, trace);
  const rows = useMemo(() => visible(trace, words, errors, folded.value, !!asking), [version, words, errors, folded.value, !!asking]);
  const chosen = rest[0] === "turn" ? trace.steps.get(rest.join("/")) : undefined;
  const step = chosen ?? (rest[0] === "turn" ? null : going ? (asking ?? trace.turns.at(-1)?.head) : failed(r) ? trace.failing : (trace.turns[1] ?? trace.turns[0])?.head);
  const shown = step ? rows.indexOf(step) : -1, end = going ? 0 : trace.to, span = (going ? Date.now() : trace.to) - trace.from;
  const axis = { from: trace.from, span: going ? nice(span) : Math.max(1, span), end };
  const pick = (s: Step | null | undefined) => {
    if (!s) return;
    const to = s.at.split("/");
    if (narrow() && rest[0] !== "turn") go("run", id, Object.fromEntries(q), ...to);
    else put({}, to);
  };
  const fold = (s: Step, to = !folded.value.has(s.turn.n)) => (folded.value = new Set([...folded.value, s.turn.n].filter((n) => to || n !== s.turn.n)));
  const move = (by: number) => {
    const next = rows[Math.max(0, Math.min(rows.length - 1, shown < 0 ? 0 : shown + by))];
    if (by < 0) follow.value = false;
    pick(next);
  };
  const inspect = () => document.getElementById("step-panel")?.focus();
  const key = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const head = step?.turn.head, isHead = !!step && step === head, is = isHead && folded.value.has(step.turn.n);
    const act = { ArrowDown: () => move(1), ArrowUp: () => move(-1), Home: () => move(-rows.length), End: () => move(rows.length), Enter: () => (pick(step), requestAnimationFrame(inspect)),
      ArrowRight: () => (is ? fold(step!, false) : (pick(step), requestAnimationFrame(inspect))), ArrowLeft: () => (isHead ? fold(step, true) : pick(head)), " ": () => step && fold(step) }[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  };
  const back = () => {
    if (narrow()) put({}, ["activity"]);
    requestAnimationFrame(() => tree.current?.querySelector<HTMLElement>("[role=tree]")?.focus());
  };
  useKeys([{ key: "j", does: "next step", run: () => move(1) }, { key: "k", does: "previous step", run: () => move(-1) }], [step, rows]);
  return (
    <div class={chosen ? "activity chosen" : "activity"} ref={tree}>
      <Rows fill n={rows.length} row={ROW} label="Steps" role="tree" show={chosen || !going ? shown : -1} follow={going ? follow : undefined} onKeyDown={key} aria-activedescendant={step && shown >= 0 ? rowId(step) : undefined}
        of={(i, style) => {
          const s = rows[i]!;
          return s ? <StepRow key={s.at} step={s} style={style} on={s === step} folded={folded.value.has(s.turn.n)} axis={axis} pick={() => pick(s)} fold={() => fold(s)} /> : <SpeakingRow key="speaking" words={said} style={style} pick={() => pick(asking)} />;
        }} />
      {step ? <Inspector id={id} run={r} trace={trace} step={step} words={step === asking ? said : null} quick={going && !chosen} back={back} />
        : <section class="inspector panel"><p class="soft">{!read ? "Loading…" : rest[0] === "turn" ? "There is no such step in this run." : "Nothing has begun yet."}</p></section>}
    </div>
  );
}
