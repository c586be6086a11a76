// Runs that were begun together, and the outcome of all and of each. A run that is after others stands below them, further to the
// right, with their names; a chain is one line of such steps.
import { useEffect, useRef } from "preact/hooks";
import { ActRow, Card, moveCard, useActs, useStand, type Act } from "../acts";
import type { Group, Run } from "../api";
import { useKeys } from "../keys";
import { address, go } from "../router";
import { cancelAct } from "../run_acts";
import { live, putRuns, runs } from "../store";
import { copy, Elapsed, Empty, Reading, StatusTag, useGet } from "../ui";
import { about, costOf, cut, day, duration, money, statusWords, tokens } from "../words";
import "./group.css";

const nameOf = (r: Run) => r.group_name || `${r.group_index}`;
// How many runs stand one before the other until this one.
const beforeOf = (r: Run, all: Run[]) => all.filter((b) => r.after?.includes(b.group_index)); // those that are still kept
const depthOf = (r: Run, all: Run[]): number => Math.max(0, ...beforeOf(r, all).map((b) => 1 + depthOf(b, all)));

function Row({ run: r, n, all, chain }: { run: Run; n: number; all: Run[]; chain: boolean }) {
  const id = r.subagent_id, before = beforeOf(r, all), depth = depthOf(r, all);
  return (
    <Card name={id} label={`${cut(r.task, 120)}, ${statusWords[r.status]}`} keys={[{ key: "Enter", does: "open the run", run: () => go("run", id) }]} class="panel">
      <div class="row member" data-run={id} style={chain ? undefined : { "--depth": Math.min(depth, 6) }}>
        <small class="number">{depth > 0 ? "› " : ""}{r.group_name || n}</small>
        <a class="grow" href={address("run", id)}><strong class="ellipsis">{r.task}</strong></a>
        {!chain && before.length > 0 ? <small class="after">{before.map((b, i) => <span key={b.subagent_id}>{i > 0 ? ", " : "after "}<span class={`dot ${b.status}`} aria-hidden="true" /> {nameOf(b)}</span>)}</small> : null}
        {r.status === "running" ? <small class="ellipsis doing">{r.current_activity}</small> : null}
        <StatusTag status={r.status} />
        <small class="number">{costOf(r)}</small>
        <small><Elapsed run={r} /></small>
      </div>
    </Card>
  );
}

export function GroupView({ id }: { id: string }) {
  const at = useRef<Group | null>(null);
  const { data: g, error } = useGet<Group>(`/api/v1/groups/${encodeURIComponent(id)}`, (i) => at.current?.status !== "ended" && i.kind !== "doing");
  at.current = g;
  useEffect(() => putRuns(g?.runs ?? []), [g]);
  useStand();
  useKeys([
    { key: "j", does: "next run", run: () => moveCard(1) },
    { key: "k", does: "previous run", run: () => moveCard(-1) },
    { key: "u", does: "back to the runs", run: () => go("runs") },
  ]);
  const acts: Act[] = [{ id: "link", name: "Copy link", run: () => copy(location.href, "the link") }];
  const words = g?.mode === "chain" ? `Chain of ${g.size} runs` : g?.runs.some((r) => r.after) ? `${g.size} runs, some after others` : `${g?.size} runs in parallel`;
  if (g?.status === "running") acts.unshift(cancelAct([id], "Cancel all", words.toLowerCase()));
  const on = useActs(acts);
  if (!g) return error ? <Empty title={/^there is no group/.test(error) ? `There is no group ${cut(id, 40)}` : error}><p><a href={address("runs")}>All runs</a></p></Empty> : <Reading error="" />;
  const all = g.runs.map((r) => runs.value.get(r.subagent_id) ?? r), ended = all.filter((r) => !live(r)), good = ended.filter((r) => r.status === "success").length;
  const chain = g.mode === "chain", last = all.at(-1)!, running = g.status === "running", left = all.filter((r) => r.status === "not_started");
  const inOrder = all.map((r, i) => ({ r, n: i + 1, depth: depthOf(r, all) })).sort((a, b) => a.depth - b.depth || a.n - b.n);
  // The clock of the group: from the first start to the last end.
  const from = Math.min(...all.map((r) => Date.parse(r.started_at))), to = running ? Date.now() : Math.max(...all.map((r) => Date.parse(r.ended_at || r.started_at)));
  const whole: Run = { ...last, status: running ? "running" : "success", elapsed_seconds: (to - from) / 1000 };
  const facts = [
    `${ended.length} of ${g.size} ended`, good < ended.length ? `${ended.length - good} without success` : "",
    `${costOf(...all)}${g.max_cost_cents == null ? "" : ` of ${money(g.max_cost_cents)}`}`,
    `${about(...all)}${tokens(all.reduce((sum, r) => sum + r.tokens_used, 0))} tokens`,
  ];
  return (
    <div class="stack">
      <p><a href={address("runs")}>‹ Runs</a></p>
      <div class="row"><h1 class="grow">{words} <small>{id}</small></h1><ActRow acts={acts} on={on} /></div>
      <p class="soft">{facts.filter(Boolean).join(" · ")} · <Elapsed run={whole} />{g.timeout ? ` of ${duration(g.timeout * 1000)}` : ""} · started {day(all[0]!.started_at)}</p>
      <ol class="plain-list" aria-label="Its runs">{inOrder.map(({ r, n }) => <li key={r.subagent_id}><Row run={r} n={n} all={all} chain={chain} /></li>)}</ol>
      {left.length > 0 ? <p class="soft">{left.length === 1 ? "One was" : `${left.length} were`} not started, since a run before did not succeed. Resume starts such a run, with what those before it have found.</p> : null}
    </div>
  );
}
