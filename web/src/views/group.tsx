// Runs that were begun together, or one after the other, and the outcome of all and of each.
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

function Row({ run: r, n, chain }: { run: Run; n: number; chain: boolean }) {
  const id = r.subagent_id;
  return (
    <Card name={id} label={`${cut(r.task, 120)}, ${statusWords[r.status]}`} keys={[{ key: "Enter", does: "open the run", run: () => go("run", id) }]} class="panel">
      <div class="row member" data-run={id}>
        <small class="number">{chain && n > 1 ? "› " : ""}{n}</small>
        <a class="grow" href={address("run", id)}><strong class="ellipsis">{r.task}</strong></a>
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
  const words = g?.mode === "chain" ? `Chain of ${g.size} runs` : `${g?.size} runs in parallel`;
  if (g?.status === "running") acts.unshift(cancelAct([id], "Cancel all", words.toLowerCase()));
  const on = useActs(acts);
  if (!g) return error ? <Empty title={/^there is no group/.test(error) ? `There is no group ${cut(id, 40)}` : error}><p><a href={address("runs")}>All runs</a></p></Empty> : <Reading error="" />;
  const all = g.runs.map((r) => runs.value.get(r.subagent_id) ?? r), ended = all.filter((r) => !live(r)), good = ended.filter((r) => r.status === "success").length;
  const chain = g.mode === "chain", more = g.size - all.length, last = all.at(-1)!, running = g.status === "running";
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
      <ol class="plain-list" aria-label="Its runs">{all.map((r, i) => <li key={r.subagent_id}><Row run={r} n={i + 1} chain={chain} /></li>)}</ol>
      {chain && more > 0 ? (
        <p class="soft">› {running ? `${more} more, each when the one before has succeeded.` : `${more === 1 ? "The last one was" : `The other ${more} were`} not started: number ${all.length} did not succeed (${statusWords[last.status]}).`}</p>
      ) : null}
    </div>
  );
}
