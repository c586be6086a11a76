// Runs as cards, and as a board of them: a column for each thing that a run can be.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { ActRow, Card, useActs } from "../acts";
import type { Run } from "../api";
import { address, go } from "../router";
import { mainActs, messaging, MessageForm, runActs } from "../run_acts";
import { askOf, failed, live } from "../store";
import { Ago, Elapsed, StatusTag } from "../ui";
import { about, costOf, cut, roleName, statusWords, tokens } from "../words";
import { AskCard } from "./ask";

const columns: [name: string, has: (r: Run) => boolean][] = [
  ["Queued", (r) => r.status === "queued" || r.status === "starting"],
  ["Running", (r) => r.status === "running"],
  ["Waiting", (r) => r.status === "waiting" || r.status === "parked" || r.status === "blocked" || r.status === "paused"],
  ["Done", (r) => r.status === "success" || r.status === "cancelled"],
  ["Failed", failed],
];
const SHOWN = 40; // ended runs in a column, until more are asked for

// The limit that is nearest to its end.
function nearest(run: Run): [what: string, part: number] {
  const l = run.limits;
  const parts: [string, number][] = [
    ["money", l.max_cost_cents ? (run.cost_cents ?? 0) / l.max_cost_cents : 0], ["time", l.timeout ? run.elapsed_seconds / l.timeout : 0],
    ["tokens", l.max_tokens ? run.tokens_used / l.max_tokens : 0], ["model calls", l.max_iterations ? run.iteration / l.max_iterations : 0],
  ];
  return parts.reduce((a, b) => (b[1] > a[1] ? b : a));
}
export function Bar({ part, label }: { part: number; label: string }) {
  const percent = Math.min(100, Math.round(part * 100));
  return <div class={part >= 1 ? "bar over" : part >= 0.8 ? "bar near" : "bar"} role="meter" aria-valuemin={0} aria-valuemax={100} aria-valuenow={percent} aria-label={label} title={label}><i style={{ width: `${percent}%` }} /></div>;
}

// `asked`: the question of the run stands on its card.
export function RunCard({ run, asked }: { run: Run; asked?: boolean }) {
  const id = run.subagent_id, ask = asked ? askOf(id) : undefined, working = live(run), [what, part] = nearest(run);
  const acts = runActs(run), on = useActs(acts);
  const keys = [...on.keys, { key: "Enter", does: "open the run", run: () => go("run", id) }];
  const first = Math.min(mainActs(acts), working ? 2 : 1), row = <ActRow acts={acts} on={on} first={first} />;
  const facts = [roleName(run.role), run.machine && `on ${run.machine}`, run.status === "running" || run.machine ? run.current_activity || run.progress : "", `${about(run)}${tokens(run.tokens_used)} tokens`, costOf(run)].filter(Boolean).join(" · ");
  return (
    <div data-run={id}>
      <Card name={id} label={`${cut(run.task, 120)}, ${statusWords[run.status]}`} keys={keys} class="panel">
        <div class="row head">
          <StatusTag status={run.status} word={!working && run.status !== "success"} />
          <a class="grow ellipsis" href={address("run", id)} title={cut(run.task, 500)}><strong>{run.task}</strong></a>
          <small>{working ? <Elapsed run={run} /> : <Ago at={run.ended_at!} />}</small>
        </div>
        <div class="row head"><small class="grow ellipsis" title={facts}>{facts}</small>{working ? null : row}</div>
        {working ? <div class="row head"><Bar part={part} label={`${Math.round(part * 100)} % of its ${what}`} />{row}</div> : null}
        {ask?.kind === "apply" ? <p><a href={address("run", id, {}, "changes")}>Review the changes</a></p> : ask ? <AskCard key={ask.id} ask={ask} within /> : null}
        {messaging.value === id && run.status === "running" ? <MessageForm run={run} close={() => (messaging.value = "")} /> : null}
      </Card>
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

export function Board({ list }: { list: Run[] }) {
  const more = useSignal(false);
  return (
    <div class="board">
      {columns.map(([name, has]) => {
        const all = list.filter(has), ended = name === "Done" || name === "Failed";
        return (
          <Column key={name} name={name} count={all.length}>
            {(ended && !more.value ? all.slice(0, SHOWN) : all).map((r) => <li key={r.subagent_id}><RunCard run={r} asked /></li>)}
            {ended && !more.value && all.length > SHOWN ? <li><button class="plain" onClick={() => (more.value = true)}>Show all {all.length}</button></li> : null}
          </Column>
        );
      })}
    </div>
  );
}
