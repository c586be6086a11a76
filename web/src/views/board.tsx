// The board: a column for each thing that a run can be, and what waits for an answer first.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { post, type Ask, type Run, type Status } from "../api";
import { useKeys } from "../keys";
import { address, go } from "../router";
import { askOf, asks, now, runList } from "../store";
import { attempt, draft, Empty, focused, leave, Problem, StatusDot, Sure, useSend } from "../ui";
import { about, cut, day, duration, elapsed, money, roleName, statusWords, tokens } from "../words";
import { AskCard } from "./ask";
import { newTask } from "./newtask";

const FAILED: Status[] = ["error", "no_result", "timeout", "cost_exceeded", "tokens_exceeded", "iterations_exceeded"];
const columns: [name: string, has: (r: Run) => boolean][] = [
  ["Queued", (r) => r.status === "queued" || r.status === "starting"],
  ["Running", (r) => r.status === "running"],
  ["Waiting", (r) => r.status === "waiting" || r.status === "parked"],
  ["Done", (r) => r.status === "success" || r.status === "cancelled"],
  ["Failed", (r) => FAILED.includes(r.status)],
];
const SHOWN = 40; // of a column of ended runs, until more are asked for

// `close`: of one that was opened for it, which has the focus.
export function Steer({ run, close }: { run: Run; close?: () => void }) {
  const text = draft(`steer ${run.subagent_id}`), { problem, busy, send } = useSend();
  return (
    <form class="steer" onKeyDown={(e) => e.key === "Escape" && close && leave(e.currentTarget, close)} onSubmit={async (e) => {
      const form = e.currentTarget;
      e.preventDefault();
      if (!text.value.trim() || busy.value) return;
      if (await send(() => post(`/api/v1/runs/${run.subagent_id}/steer`, { text: text.value }), "It reads that at its next turn.")) {
        text.value = "";
        if (close) leave(form, close);
      }
    }}>
      <div class="row">
        <input class="grow" ref={close ? focused : null} aria-label={`Say something to ${run.subagent_id}`} placeholder="say something to it" maxLength={2000} value={text}
          onInput={(e) => (text.value = e.currentTarget.value)} />
        <button disabled={busy.value || !text.value.trim()}>Send</button>
      </div>
      <Problem text={problem.value} />
    </form>
  );
}

const cancelRun = (r: Run) => attempt(() => post(`/api/v1/runs/${r.subagent_id}/cancel`), `${r.subagent_id} is cancelled.`);
export const CancelButton = ({ run, class: kind }: { run: Run; class: string }) => (
  <Sure letter="x" class={kind} name="Cancel" sure="Cancel for good? Press again" act={() => cancelRun(run)} />
);
export const resumeRun = (r: Run) =>
  attempt(() => post(`/api/v1/runs/${r.subagent_id}/resume`), "A quote for going on is on the board.");
export const canResume = (r: Run) => r.status !== "success" && r.status !== "queued" && r.status !== "starting" && r.status !== "running" && r.status !== "waiting" && r.status !== "parked";

function RunCard({ run, asked }: { run: Run; asked: boolean }) {
  const steering = useSignal(false), ask = asked ? askOf(run.subagent_id) : undefined;
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
        <span>{ended ? duration(run.elapsed_seconds * 1000) : (run.status === "waiting" ? "" : run.current_activity) || statusWords[run.status]}</span>
        <span>{about(run)}{tokens(run.tokens_used)} tokens</span><span>{run.cost_cents ? about(run) : ""}{money(run.cost_cents)}</span>
        {ended && run.status !== "success" ? <span class="tag red">{statusWords[run.status]}</span> : null}
      </small>
      {!ended ? <Budget run={run} /> : null}
      {ask?.kind === "apply" ? <p><a href={address("run", run.subagent_id, { tab: "patch" })}>Changes to apply or leave</a></p>
        : ask ? <AskCard key={ask.id} ask={ask} within /> : null}
      <div class="row actions">
        {run.status === "running" ? <button class="plain" data-letter="s" onClick={() => (steering.value = !steering.value)} aria-expanded={steering.value}>Steer</button> : null}
        {!ended ? <CancelButton run={run} class="plain" /> : null}
        {canResume(run) ? <button class="plain" data-letter="r" onClick={() => resumeRun(run)}>Resume</button> : null}
      </div>
      {steering.value && !ended ? <Steer run={run} close={() => (steering.value = false)} /> : null}
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

export function Column({ name, count, children }: { name: string; count: number; children: ComponentChildren }) {
  return count === 0 ? null : (
    <section class="column" aria-label={`${name}, ${count}`}>
      <h2>{name} <span class="tag">{count}</span></h2>
      <ul>{children}</ul>
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
// The card itself, not a button or a field within: who is there does something else.
function press(letter: string) {
  const card = document.activeElement;
  if (card?.matches("main .card")) card.querySelector<HTMLElement>(`[data-letter="${letter}"]`)?.click();
}

// Where the keyboard was: a card that moves or goes takes the focus with it, and then it is given to the
// same card, or to the one that stands there now. Kept while another view is looked at.
const nameOf = (card: HTMLElement) => card.dataset.run ?? card.dataset.ask ?? "";
let stood = { name: "", at: 0 };
addEventListener("focusin", (e) => {
  const card = (e.target as HTMLElement).closest<HTMLElement>("main .card");
  if (card) stood = { name: nameOf(card), at: cards().indexOf(card) };
});
addEventListener("pointerdown", (e) => {
  if (!(e.target as HTMLElement).closest("main .card")) stood = { name: "", at: 0 };
});
function stand(preventScroll: boolean) {
  if (!stood.name || document.activeElement !== document.body || document.querySelector("dialog[open]")) return;
  const all = cards();
  (all.find((c) => nameOf(c) === stood.name) ?? all[Math.min(stood.at, all.length - 1)])?.focus({ preventScroll });
}

// `open`: what waits for a person and is of no run of the list. `asked`: what its runs ask stands on their cards.
export function Runs({ list, open, asked }: { list: Run[]; open: Ask[]; asked: boolean }) {
  const more = useSignal(false);
  useLayoutEffect(() => stand(false), []);
  useLayoutEffect(() => stand(true));
  useKeys([
    { key: "j", does: "next card", run: () => move(1) },
    { key: "k", does: "card before", run: () => move(-1) },
    { key: "y", does: "yes to the quote that is chosen, pressed twice", acts: true, run: () => press("y") },
    { key: "x", does: "cancel the run, or no to the quote, pressed twice", acts: true, run: () => press("x") },
    { key: "s", does: "steer the run", acts: true, run: () => press("s") },
    { key: "r", does: "resume the run", acts: true, run: () => press("r") },
  ]);
  if (!list.length && !open.length) return null;
  return (
    <div class="board">
      <Column name="To answer" count={open.length}>{open.map((a) => <li key={a.id}><AskCard ask={a} /></li>)}</Column>
      {columns.map(([name, has]) => {
        const all = list.filter(has), ended = name === "Done" || name === "Failed";
        return (
          <Column key={name} name={name} count={all.length}>
            {(ended && !more.value ? all.slice(0, SHOWN) : all).map((r) => <RunCard key={r.subagent_id} run={r} asked={asked} />)}
            {ended && !more.value && all.length > SHOWN ? <li><button class="plain" onClick={() => (more.value = true)}>Show all {all.length}</button></li> : null}
          </Column>
        );
      })}
    </div>
  );
}

export function Board() {
  const open = [...asks.value.values()].filter((a) => !a.run);
  if (runList.value.length === 0 && open.length === 0)
    return (
      <Empty title="No runs yet">
        <p>Give a task here, talk with Ava by <code>ava</code> in a terminal, or run <code>ava run "…"</code>. Quotes and runs appear at once.</p>
        <p><button class="primary" onClick={() => (newTask.value = true)}>New task</button></p>
      </Empty>
    );
  return (
    <>
      <h1 class="visually-hidden">Runs</h1>
      <Runs list={runList.value} open={open} asked />
    </>
  );
}
