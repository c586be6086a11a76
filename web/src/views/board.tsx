// The board: a column for each thing that a run can be, and quotes that wait for an answer first.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { post, type Run, type Status } from "../api";
import { useKeys } from "../keys";
import { address, go } from "../router";
import { now, pending, runList } from "../store";
import { attempt, Empty, StatusDot } from "../ui";
import { about, cut, day, duration, elapsed, money, roleName, statusWords, tokens } from "../words";
import { newTask } from "./newtask";
import { ProposalCard } from "./proposal";

const FAILED: Status[] = ["error", "no_result", "timeout", "cost_exceeded", "tokens_exceeded", "iterations_exceeded"];
const columns: [name: string, has: (r: Run) => boolean][] = [
  ["Queued", (r) => r.status === "queued" || r.status === "starting"],
  ["Running", (r) => r.status === "running"],
  ["Waiting", (r) => r.status === "waiting" || r.status === "parked"],
  ["Done", (r) => r.status === "success" || r.status === "cancelled"],
  ["Failed", (r) => FAILED.includes(r.status)],
];
const SHOWN = 40; // of a column of ended runs, until more are asked for

export function Answer({ run }: { run: Run }) {
  const text = useSignal("");
  const w = run.waiting_for;
  if (!w) return null;
  const send = (answer: string) =>
    attempt(() => post(`/api/v1/runs/${run.subagent_id}/steer`, { text: answer, call_id: w.call_id }), "Answered.");
  const choices = w.choices?.length ? w.choices : w.kind === "approval" ? ["yes", "no"] : [];
  return (
    <form class="answer" onSubmit={(e) => { e.preventDefault(); if (text.value.trim()) send(text.value); }}>
      <p>{w.question}</p>
      {choices.length ? (
        <div class="row">{choices.map((c) => <button type="button" key={c} onClick={() => send(c)}>{c}</button>)}</div>
      ) : (
        <div class="row">
          <input class="grow" aria-label={`Answer to: ${cut(w.question, 80)}`} placeholder={w.default ? `default: ${w.default}` : "your answer"}
            value={text} onInput={(e) => (text.value = e.currentTarget.value)} />
          <button class="primary" disabled={!text.value.trim()}>Answer</button>
        </div>
      )}
    </form>
  );
}

export function Steer({ run, done }: { run: Run; done?: () => void }) {
  const text = useSignal("");
  return (
    <form class="row" onSubmit={async (e) => {
      e.preventDefault();
      if (await attempt(() => post(`/api/v1/runs/${run.subagent_id}/steer`, { text: text.value }), "It reads that at its next turn.")) {
        text.value = "";
        done?.();
      }
    }}>
      <input class="grow" aria-label={`Say something to ${run.subagent_id}`} placeholder="say something to it" maxLength={2000} value={text}
        onInput={(e) => (text.value = e.currentTarget.value)} />
      <button disabled={!text.value.trim()}>Send</button>
    </form>
  );
}

export const cancelRun = (r: Run) => attempt(() => post(`/api/v1/runs/${r.subagent_id}/cancel`), `${r.subagent_id} is cancelled.`);
export const resumeRun = (r: Run) =>
  attempt(() => post(`/api/v1/runs/${r.subagent_id}/resume`), "A quote for going on is on the board.");
export const canResume = (r: Run) => r.status !== "success" && r.status !== "queued" && r.status !== "starting" && r.status !== "running" && r.status !== "waiting" && r.status !== "parked";

function RunCard({ run }: { run: Run }) {
  const steering = useSignal(false);
  const ended = !!run.ended_at;
  return (
    <li class="card panel" data-run={run.subagent_id} tabIndex={0} aria-label={`${roleName(run.role)}: ${cut(run.task, 120)}, ${statusWords[run.status]}`}
      onKeyDown={(e) => e.key === "Enter" && e.target === e.currentTarget && go("run", run.subagent_id)}>
      <div class="row">
        <StatusDot status={run.status} />
        <a class="grow ellipsis" href={address("run", run.subagent_id)}><strong>{roleName(run.role)}</strong> {run.trace_id}</a>
        <small title={run.started_at}>{ended ? day(run.ended_at!) : duration(elapsed(run, now.value))}</small>
      </div>
      <p>{cut(run.task, 140)}</p>
      <small class="row">
        <span>{ended ? duration(run.elapsed_seconds * 1000) : run.current_activity || statusWords[run.status]}</span>
        <span>{about(run)}{tokens(run.tokens_used)} tokens</span><span>{run.cost_cents ? about(run) : ""}{money(run.cost_cents)}</span>
        {ended && run.status !== "success" ? <span class="tag red">{statusWords[run.status]}</span> : null}
      </small>
      {!ended ? <Budget run={run} /> : null}
      {run.status === "waiting" || run.status === "parked" ? <Answer run={run} /> : null}
      <div class="row actions">
        {run.status === "running" ? <button class="plain" onClick={() => (steering.value = !steering.value)} aria-expanded={steering.value}>Steer</button> : null}
        {!ended ? <button class="plain" onClick={() => cancelRun(run)}>Cancel</button> : null}
        {canResume(run) ? <button class="plain" onClick={() => resumeRun(run)}>Resume</button> : null}
      </div>
      {steering.value && !ended ? <Steer run={run} done={() => (steering.value = false)} /> : null}
    </li>
  );
}

// How near the nearest of its limits is.
function Budget({ run }: { run: Run }) {
  const l = run.limits;
  const parts: [string, number][] = [
    ["time", l.timeout ? elapsed(run, now.value) / 1000 / l.timeout : 0],
    ["money", l.max_cost_cents ? (run.cost_cents ?? 0) / l.max_cost_cents : 0],
    ["tokens", l.max_tokens ? run.tokens_used / l.max_tokens : 0],
    ["replies", l.max_iterations ? run.iteration / l.max_iterations : 0],
  ];
  const [what, part] = parts.reduce((a, b) => (b[1] > a[1] ? b : a));
  const percent = Math.min(100, Math.round(part * 100));
  return (
    <div class={part >= 1 ? "bar over" : part >= 0.8 ? "bar near" : "bar"} role="meter" aria-valuemin={0} aria-valuemax={100} aria-valuenow={percent}
      aria-label={`${percent} percent of its ${what}`} title={`${percent} % of its ${what}`}>
      <i style={{ width: `${percent}%` }} />
    </div>
  );
}

function Column({ name, count, children }: { name: string; count: number; children: ComponentChildren }) {
  return (
    <section class={count ? "column" : "column none"} aria-label={`${name}, ${count}`}>
      <h2>{name} <span class="tag">{count}</span></h2>
      {count === 0 ? <p class="soft">Nothing.</p> : <ul>{children}</ul>}
    </section>
  );
}

// The card that has the keyboard; j and k go through them in the order in which they stand.
function cards(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>("main .card")];
}
function move(by: number) {
  const all = cards(), at = all.findIndex((c) => c === document.activeElement || c.contains(document.activeElement));
  all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))]?.focus();
}
function press(name: RegExp) {
  const card = document.activeElement?.closest(".card");
  [...(card?.querySelectorAll("button") ?? [])].find((b) => name.test(b.textContent ?? ""))?.click();
}

export function Runs({ list, quotes }: { list: Run[]; quotes: typeof pending.value }) {
  const more = useSignal(false);
  useKeys([
    { key: "j", does: "next card", run: () => move(1) },
    { key: "k", does: "card before", run: () => move(-1) },
    { key: "y", does: "yes to the quote that is chosen", run: () => press(/^Yes/) },
    { key: "x", does: "cancel the run, or no to the quote", run: () => press(/^(Cancel|No)$/) },
    { key: "s", does: "steer the run", run: () => press(/^Steer/) },
    { key: "r", does: "resume the run", run: () => press(/^Resume/) },
  ]);
  return (
    <div class="board">
      <Column name="Proposed" count={quotes.length}>{quotes.map((p) => <ProposalCard key={p.proposal_id} proposal={p} />)}</Column>
      {columns.map(([name, has]) => {
        const all = list.filter(has), ended = name === "Done" || name === "Failed";
        return (
          <Column key={name} name={name} count={all.length}>
            {(ended && !more.value ? all.slice(0, SHOWN) : all).map((r) => <RunCard key={r.subagent_id} run={r} />)}
            {ended && !more.value && all.length > SHOWN ? <li><button class="plain" onClick={() => (more.value = true)}>Show all {all.length}</button></li> : null}
          </Column>
        );
      })}
    </div>
  );
}

export function Board() {
  if (runList.value.length === 0 && pending.value.length === 0)
    return (
      <Empty title="No runs yet">
        <p>Give a task here, talk with Ava by <code>ava</code> in a terminal, or run <code>ava run "…"</code>. Quotes and runs appear at once.</p>
        <p><button class="primary" onClick={() => (newTask.value = true)}>New task</button></p>
      </Empty>
    );
  return (
    <>
      <h1 class="visually-hidden">Runs</h1>
      <Runs list={runList.value} quotes={pending.value} />
    </>
  );
}
