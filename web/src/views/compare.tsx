// Two runs beside each other: their tasks and means, costs, steps and results. Differences are marked.
import { useMemo } from "preact/hooks";
import type { AvaEvent, MessagePage, Result, Run } from "../api";
import { diffOf, sideOf, wordsOf } from "../diff";
import { useKeys } from "../keys";
import { address, go, place } from "../router";
import { live } from "../store";
import { Empty, Reading, StatusTag, useGet } from "../ui";
import { about, costOf, cut, duration, modelName, money, rightsWords, roleName, statusWords, tokens } from "../words";
import "./compare.css";

interface Side {
  run: Run;
  asked: string; // the first message of it
  tools: string;
  result: Result | null;
  turns: string[][]; // the calls of each turn
  more: boolean;
}

const line = (e: AvaEvent) => `${e.content.name} ${Object.entries(e.content.args ?? {}).map(([k, v]) => `${k}=${typeof v === "string" ? v : JSON.stringify(v)}`).join(" ").replace(/\s+/g, " ")}`;

function useSide(id: string): { side: Side | null; error: string } {
  const of = `/api/v1/runs/${encodeURIComponent(id)}`, mine = (i: { run: string }) => i.run === id;
  const run = useGet<Run>(id && of, mine), ended = !!run.data && run.data.subagent_id === id && !live(run.data);
  const result = useGet<Result>(ended ? `${of}/result` : "").data, messages = useGet<MessagePage>(id && `${of}/messages?turn=1&limit=10`).data;
  const events = useGet<{ events: AvaEvent[]; more: boolean }>(id && `/api/v1/logs?run=${encodeURIComponent(id)}&type=SubagentSpawn,ToolCall&after=0&limit=1000`, mine).data;
  const side = useMemo(() => {
    if (!run.data || run.data.subagent_id !== id) return null;
    const turns: string[][] = [], spawn = events?.events.find((e) => e.eventType === "SubagentSpawn")?.content;
    for (const e of events?.events ?? []) if (e.eventType === "ToolCall") (turns[(e.metadata.iteration ?? 1) - 1] ??= []).push(line(e));
    const asked = messages?.messages.find((m) => m.role === "user")?.parts.map((p) => p.text ?? "").join("\n");
    return { run: run.data, asked: asked || run.data.task, tools: (spawn?.tools ?? []).join(", "), result: ended ? result : null, turns, more: !!events?.more };
  }, [run.data, result, messages, events]);
  return { side, error: run.error };
}

// A text of each, with what the other has not: by words, or by lines.
const LINES = 2000;
function Pair({ name, a, b, words }: { name: string; a: string; b: string; words?: boolean }) {
  const steps = useMemo(() => (words ? diffOf(wordsOf(a), wordsOf(b)) : diffOf(a.split("\n").slice(0, LINES), b.split("\n").slice(0, LINES))), [a, b]);
  const side = (kind: "del" | "add", which: string) => (
    <pre class="plain scroll" tabIndex={0} role="region" aria-label={`${name}, ${which}`}>
      {sideOf(steps, kind).map(([k, t], i) => (words ? (k ? <mark key={i} class={k}>{t}</mark> : t) : <span key={i} class={k}>{t || " "}</span>))}
    </pre>
  );
  return (
    <section>
      <h2>{name} {a === b ? <small>the same</small> : null}</h2>
      <div class="pair">{side("del", "first")}{side("add", "second")}</div>
    </section>
  );
}

function times(a: number, b: number) {
  const x = a > 0 && b > 0 ? (b / a).toFixed(b / a < 9.95 ? 1 : 0) : "1.0";
  return x === "1.0" ? "" : `×${x}`;
}
function Facts({ a, b }: { a: Side; b: Side }) {
  const both = (of: (s: Side) => string): [string, string] => [of(a), of(b)], limit = (n: number | undefined, show: (n: number) => string) => (n == null ? "none" : show(n));
  const short = a.run.model === b.run.model || modelName(a.run.model) !== modelName(b.run.model);
  const ratio = (of: (r: Run) => number) => times(of(a.run), of(b.run));
  const rows: [name: string, both: [string, string], ratio?: string][] = [
    ["Status", both(({ run }) => statusWords[run.status])],
    ["Cost", both(({ run }) => costOf(run)), ratio((r) => r.cost_cents ?? 0)],
    ["Time", both(({ run }) => duration(run.elapsed_seconds * 1000)), ratio((r) => r.elapsed_seconds)],
    ["Tokens", both(({ run }) => about(run) + tokens(run.tokens_used)), ratio((r) => r.tokens_used)],
    ["Model calls", both(({ run }) => String(run.iteration)), ratio((r) => r.iteration)],
    ["Role", both(({ run }) => roleName(run.role))],
    ["Model", short ? both(({ run }) => modelName(run.model)) : both(({ run }) => run.model)],
    ["Tools", both((s) => s.tools || "none")],
    ["Folder", both(({ run }) => run.cwd || "none")],
    ["Rights", both(({ run }) => (run.rights ? rightsWords(run.rights) : ""))],
    ["Time limit", both(({ run }) => limit(run.limits.timeout, (n) => duration(n * 1000)))],
    ["Spending limit", both(({ run }) => limit(run.limits.max_cost_cents ?? undefined, money))],
    ["Token limit", both(({ run }) => limit(run.limits.max_tokens, tokens))],
    ["Limit of model calls", both(({ run }) => limit(run.limits.max_iterations, String))],
    ["Changes", both(({ result: r }) => (r?.patch ? `${r.patch.files} ${r.patch.files === 1 ? "file" : "files"}, +${r.patch.added} −${r.patch.removed}` : "none"))],
  ];
  return (
    <table class="panel">
      <caption class="visually-hidden">How the two runs differ</caption>
      <thead><tr><th scope="col"><span class="visually-hidden">Of the run</span></th><th scope="col">First</th><th scope="col">Second</th></tr></thead>
      <tbody>{rows.map(([name, [x, y], factor]) => (
        <tr key={name} class={x === y ? "" : "differs"}>
          <th scope="row">{name}{x === y ? null : <span class="visually-hidden"> differs</span>}</th><td class="number">{x}</td><td class="number">{y}{factor ? <small> {factor}</small> : null}</td>
        </tr>
      ))}</tbody>
    </table>
  );
}

const TURNS = 300;
function Calls({ a, b }: { a: Side; b: Side }) {
  const n = Math.max(a.turns.length, b.turns.length);
  const cell = (mine: string[] = [], other: string[] = []) => <td><ul class="plain-list">{mine.map((c, i) => <li key={i} class={other.includes(c) ? "" : "differs"} title={cut(c, 2000)}><code>{cut(c, 160)}</code></li>)}</ul></td>;
  if (!n) return null;
  return (
    <section>
      <h2>Tools called</h2>
      <table class="panel calls">
        <thead><tr><th scope="col">Turn</th><th scope="col">First</th><th scope="col">Second</th></tr></thead>
        <tbody>{Array.from({ length: Math.min(n, TURNS) }, (_, i) => <tr key={i}><th scope="row">{i + 1}</th>{cell(a.turns[i], b.turns[i])}{cell(b.turns[i], a.turns[i])}</tr>)}</tbody>
      </table>
      {n > TURNS || a.more || b.more ? <p class="soft">These are the first turns; each run's own page has all.</p> : null}
    </section>
  );
}

const Head = ({ run, which }: { run: Run; which: string }) => (
  <div class="panel stack"><div class="row"><small class="grow">{which} · {run.subagent_id}</small><StatusTag status={run.status} /></div><a href={address("run", run.subagent_id)}><strong>{cut(run.task, 200)}</strong></a></div>
);
const shown = (output: unknown) => (output == null ? "" : typeof output === "string" ? output : JSON.stringify(output, null, 2));

export function Compare({ id: first }: { id: string }) {
  const second = place.value.rest[0] ?? "", one = useSide(first), two = useSide(second), a = one.side, b = two.side;
  const swap = () => go("compare", second, {}, first);
  useKeys([
    { key: "s", does: "swap the two runs", run: swap },
    { key: "u", does: "back to the runs", run: () => go("runs") },
  ], [first, second]);
  const runs = <p><a href={address("runs")}>All runs</a></p>;
  if (!first || !second) return <Empty title="Choose two runs to compare"><p>Select them in the list of runs.</p>{runs}</Empty>;
  const lost = one.error && !a ? [first, one.error] : two.error && !b ? [second, two.error] : null;
  if (lost) return <Empty title={/^there is no run/.test(lost[1]!) ? `There is no run ${cut(lost[0]!, 40)}` : lost[1]!}>{runs}</Empty>;
  if (!a || !b) return <Reading error="" />;
  const texts: [string, (s: Side) => string, boolean?][] = [["What it was asked", (s) => s.asked, true], ["Summary", (s) => s.result?.summary ?? "", true], ["Output", (s) => shown(s.result?.output)]];
  return (
    <div class="stack compare">
      <div class="row"><h1 class="grow">Compare two runs</h1><button onClick={swap}>Swap</button></div>
      <div class="pair"><Head run={a.run} which="First" /><Head run={b.run} which="Second" /></div>
      <Facts a={a} b={b} />
      {texts.filter(([, of]) => of(a) || of(b)).map(([name, of, words]) => <Pair key={name} name={name} a={of(a)} b={of(b)} words={words} />)}
      <Calls a={a} b={b} />
    </div>
  );
}
