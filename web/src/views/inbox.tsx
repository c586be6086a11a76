// Things that need a person first: quotes, questions, changes, runs that failed; beside them the runs at work.
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { ActRow, Card, moveCard, useActs, useStand, type Act } from "../acts";
import type { Ask, Group, Proposal, ProposalList, Run } from "../api";
import { canNotify, dismiss, failures, notifies, setNotifies, type Failure } from "../attention";
import { useKeys } from "../keys";
import { address, go } from "../router";
import { cancelAct, retryRuns } from "../run_acts";
import { askOf, asks, live, runList, runs } from "../store";
import { Ago, Empty, StatusTag, undoable, useGet } from "../ui";
import { cut, modelName, money, rightsWords, roleName } from "../words";
import { AskCard, type Brief } from "./ask";
import { RunCard } from "./board";
import { newTask } from "./newtask";
import "./inbox.css";

const RECENT = 20, RETRIED = 12; // quotes at once, at the most

// ---- quotes, in a line

const minutes = ([least, most]: number[]) => (least === most ? `~${most} min` : `${least}–${most} min`);
function briefOf(a: Ask, p: Proposal | undefined, open: boolean): Brief | undefined {
  const r = runs.value.get(a.run);
  if (a.kind === "apply") return { title: r?.task ?? a.run, facts: a.text.split(":")[0]!, open };
  if (a.kind !== "quote") return undefined;
  open ||= a.choices.some((c) => c.id === "yes, all three"); // a yes to that is read first
  if (!p) return { title: cut(a.text.split("\n")[0]!, 200), facts: "Details", open };
  const q = p.quote, of = p.config.members, cost = q.costCents == null ? "cost unknown" : `up to ${money(q.costCents)}`;
  const who = of ? `${of.length} runs` : roleName(q.role);
  return { title: of ? of.map((m) => m.task).join(" · ") : p.config.task ?? "", facts: [who, minutes(q.minutes), cost, modelName(q.model), rightsWords(q.rights)].join(" · "), open };
}

// ---- failures

function FailureCard({ failure: { why, next, runs: list }, named }: { failure: Failure; named: string }) {
  const first = list[0]!, one = list.length === 1, shown = useSignal(!one && list.some((r) => r.subagent_id === named));
  const some = list.slice(0, RETRIED), verb = next ? "Resume" : "Retry", retry = async () => (await retryRuns(some, next ? {} : { from: 1 })) && dismiss(some);
  const dismissed = () => {
    dismiss(list);
    undoable(`dismiss ${why}`, `Dismissed ${one ? `“${cut(first.task, 40)}”` : `${list.length} runs`}.`, undefined, () => dismiss(list, false));
  };
  const acts: Act[] = [
    { id: "retry", name: one ? verb : some.length < list.length ? `${verb} the newest ${RETRIED}` : `${verb} all`, title: next ? "A quote for each to go on" : "A quote for each, once more from its beginning", run: retry },
    { id: "dismiss", name: "Dismiss", key: "d", does: "dismiss failures", run: dismissed },
  ];
  if (!one) acts.unshift({ id: "show", name: shown.value ? "Hide" : "Show", key: "Enter", does: "show the runs", run: () => (shown.value = !shown.value) });
  const on = useActs(acts), keys = one ? [...on.keys, { key: "Enter", does: "open the run", run: () => go("run", first.subagent_id) }] : on.keys;
  return (
    <Card name={one ? first.subagent_id : `failed ${why}`} label={`${one ? first.task : `${list.length} runs`} failed: ${cut(why, 120)}`} keys={keys} class="panel failure">
      <div class="row head">
        <StatusTag status={first.status} word={one} />
        <span class="grow ellipsis">{one ? <a href={address("run", first.subagent_id)}>{first.task}</a> : <strong>{list.length} runs failed alike</strong>}</span>
        <small><Ago at={first.ended_at!} /></small>
      </div>
      <p class="why">{cut(why, 300)}{next ? `. ${next}` : ""}</p>
      <ActRow acts={acts} on={on} />
      {shown.value && !one ? <ul>{list.map((r) => <li key={r.subagent_id}><RunCard run={r} /></li>)}</ul> : null}
    </Card>
  );
}

// ---- runs at work

// A group is a row, which opens; its figures are the daemon's, since not all of its runs need be known here.
function GroupCard({ id, of }: { id: string; of: Run[] }) {
  const { data: g } = useGet<Group>(`/api/v1/groups/${id}`, (i) => runs.value.get(i.run)?.group_id === id), shown = useSignal(false);
  const acts: Act[] = [
    { id: "show", name: shown.value ? "Hide" : "Show", key: "Enter", does: "show the runs", run: () => (shown.value = !shown.value) },
    cancelAct([id], "Cancel all", "the group"),
  ];
  const on = useActs(acts), first = of.reduce((a, b) => ((b.group_index ?? 0) < (a.group_index ?? 0) ? b : a));
  return (
    <Card name={id} label={`Group of ${g?.size ?? of.length} runs: ${cut(first.task, 100)}`} keys={on.keys} class="panel">
      <div class="row head">
        <StatusTag status="running" word={false} />
        <a class="grow ellipsis" href={address("group", id)}><strong>{first.task}</strong></a>
        <small class="number">{g ? `${g.mode === "chain" ? "chain of " : ""}${g.size} runs · ${g.ended}/${g.size} · ${money(g.cost_cents)}` : `${of.length} runs`}</small>
      </div>
      <ActRow acts={acts} on={on} />
      {shown.value ? <ul>{of.map((r) => <li key={r.subagent_id}><RunCard run={r} /></li>)}</ul> : null}
    </Card>
  );
}
function Working({ list }: { list: Run[] }) {
  const groups = new Map<string, Run[]>();
  for (const r of list) if (r.group_id) groups.set(r.group_id, [...(groups.get(r.group_id) ?? []), r]);
  const rest = list.filter((r) => !r.group_id || groups.get(r.group_id)?.[0] === r);
  return <ul>{rest.map((r) => <li key={r.group_id || r.subagent_id}>{r.group_id ? <GroupCard id={r.group_id} of={groups.get(r.group_id)!} /> : <RunCard run={r} />}</li>)}</ul>;
}

// ---- the page

// The card that the address names is in view and has the keyboard, as soon as it is there.
function useNamed(id: string) {
  const done = useRef(!id);
  useLayoutEffect(() => {
    if (done.current) return;
    const card = [...document.querySelectorAll<HTMLElement>("main [data-card]")].find((c) => c.dataset.card === id || c.dataset.card!.startsWith(`${id}:`));
    if (!card) return;
    done.current = true;
    card.scrollIntoView({ block: "nearest" });
    card.focus({ preventScroll: true });
  });
}
export function Inbox({ id }: { id: string }) {
  const open = [...asks.value.values()].sort((a, b) => (a.since < b.since ? 1 : -1)), quotes = open.filter((a) => a.kind === "quote"), bad = failures.value;
  const { data } = useGet<ProposalList>("/api/v1/proposals", (i) => i.ask.startsWith("P-"));
  const list = runList.value, told = new Set(bad.flatMap((f) => f.runs.map((r) => r.subagent_id)));
  const working = list.filter((r) => live(r) && !askOf(r.subagent_id)), ended = list.filter((r) => !live(r) && !told.has(r.subagent_id)).sort((a, b) => (a.ended_at < b.ended_at ? 1 : -1)).slice(0, RECENT);
  const needs = open.length + bad.length;
  useStand();
  useNamed(id);
  useKeys([
    { key: "j", does: "next card", run: () => moveCard(1) },
    { key: "k", does: "previous card", run: () => moveCard(-1) },
  ]);
  if (!list.length && !open.length)
    return (
      <Empty title="No runs yet">
        <p>Give a task here, talk with Ava in Chat, or run <code>ava run "…"</code>. Quotes and runs appear at once.</p>
        <p><button class="primary" onClick={() => (newTask.value = true)}>New task</button></p>
      </Empty>
    );
  return (
    <>
      <h1 class="visually-hidden">Inbox</h1>
      <div class="inbox">
        <section aria-label={`Needs you, ${needs}`}>
          <div class="heading"><h2>Needs you <span class="tag">{needs}</span></h2>{canNotify() && !notifies.value ? <button class="plain soft" onClick={() => void setNotifies(true)}>Tell me when I am needed</button> : null}</div>
          <ul>
            {open.map((a) => <li key={a.id}><AskCard ask={a} brief={briefOf(a, data?.proposals.find((p) => p.proposal_id === a.id), a.id === id || (a.kind === "quote" && quotes.length === 1))} /></li>)}
            {bad.map((f) => <li key={f.why}><FailureCard failure={f} named={id} /></li>)}
          </ul>
          {needs ? null : <p class="soft">Nothing waits for you.</p>}
        </section>
        <div>
          <section aria-label={`Running, ${working.length}`}><h2>Running <span class="tag">{working.length}</span></h2>{working.length ? <Working list={working} /> : <p class="soft">Nothing is running. <button class="plain" onClick={() => (newTask.value = true)}>New task</button></p>}</section>
          {ended.length ? <section aria-label="Recently ended"><h2>Recently ended</h2><ul>{ended.map((r) => <li key={r.subagent_id}><RunCard run={r} asked /></li>)}</ul><p><a href={address("runs")}>All runs</a></p></section> : null}
        </div>
      </div>
    </>
  );
}
