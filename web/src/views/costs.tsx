// Costs and health over time: by model, role, project, person and tag; how long calls take, how often tools
// fail, the runs that cost most.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Paid, Stats, Sums } from "../api";
import { address, place, put } from "../router";
import { health } from "../store";
import { Ago, Empty, Reading, StatusTag, useGet } from "../ui";
import { clock, date, day, duration, modelName, money, roleName, tokens } from "../words";
import { Bars, type Series } from "./bars";
import "./costs.css";

const MINUTE = 60000, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const spans: Record<string, { step: number; bars: number; name: (ms: number) => string }> = {
  "1h": { step: 2 * MINUTE, bars: 30, name: day }, "24h": { step: HOUR, bars: 24, name: day }, "7d": { step: 6 * HOUR, bars: 28, name: day }, "30d": { step: DAY, bars: 30, name: date },
};
// Dimensions that costs are added up by: the key that is asked for, the filter of runs that it is, its short name.
const dimensions: Record<string, { key: string; filter: string; name: (s: string) => string }> = {
  model: { key: "model", filter: "model", name: modelName }, role: { key: "role", filter: "role", name: (s) => (s === "ava" ? "Ava" : roleName(s)) },
  project: { key: "project", filter: "cwd", name: (s) => s.replace(/.*\/(?=.)/, "") || "No project" }, person: { key: "user", filter: "user", name: (s) => s || "Unknown" }, tag: { key: "tag", filter: "tag", name: (s) => s || "No tag" },
};
const named = (of: object, name: string | null, other: string) => (name && Object.hasOwn(of, name) ? name : other);
const SHOWN = 5; // parts in a bar; the rest is one
const OTHERS = "others"; // the daemon's name for what is beyond the first forty

// The bars end at whole steps of the local day, so that they stand still while time goes on.
function spanOf(since: string) {
  const { step, bars, name } = spans[since]!, midnight = new Date().setHours(0, 0, 0, 0), days = step === DAY;
  const until = days ? new Date().setHours(24, 0, 0, 0) : midnight + Math.ceil((Date.now() + 1 - midnight) / step) * step;
  // The beginning of a bar. Days begin at midnight, also where clocks were changed between.
  const at = (i: number) => (days ? new Date(until).setDate(new Date(until).getDate() + i - bars) : until + (i - bars) * step);
  return { step, bars, name, until, at, from: at(0) };
}
const iso = (ms: number) => new Date(ms).toISOString();
const total = (list: { [k in "cost_cents" | "tokens" | "input" | "cached"]: number }[], k: "cost_cents" | "tokens" | "input" | "cached") => list.reduce((n, m) => n + m[k], 0);
const took = (ms: number) => (ms < 1000 ? `${ms} ms` : duration(ms));
const percent = (part: number, of: number) => (of ? `${Math.round((100 * part) / of)}%` : "");

function stacked(rows: Paid[], parts: "cost_parts" | "token_parts", { name, filter }: (typeof dimensions)[string]): Series[] {
  const by = rows.map((r) => ({ name: r.name === OTHERS ? OTHERS : name(r.name), title: r.name, values: r[parts], only: !r.name || r.name === OTHERS ? undefined : ([filter, r.name] as [string, string]), sum: r[parts].reduce((a, v) => a + v, 0) })).filter((r) => r.sum).sort((a, b) => b.sum - a.sum);
  const rest = by.slice(SHOWN);
  return rest.length < 2 ? by : [...by.slice(0, SHOWN), { name: OTHERS, values: rest[0]!.values.map((_, i) => rest.reduce((n, r) => n + r.values[i]!, 0)) }];
}

// ---- a table that is sorted by the heads of its columns; by which stands in the address

interface Column<T> {
  name: string;
  of: (row: T) => number;
  show?: (row: T) => ComponentChildren;
  bar?: boolean; // drawn in the cell, as a part of the biggest
}
function Table<T extends { name: string }>({ name, rows, columns, first, say }: { name: string; rows: T[]; columns: Column<T>[]; first: string; say: (row: T) => ComponentChildren }) {
  const key = `sort-${name.toLowerCase()}`, [, up, chosen] = /^(-?)(.*)$/.exec(place.value.query.get(key) || first)!, by = columns.find((c) => c.name === chosen);
  const sorted = [...rows].sort((a, b) => (up ? 1 : -1) * (by ? by.of(a) - by.of(b) : b.name < a.name ? 1 : -1));
  const head = (c: string, number: boolean) => (
    <th key={c} scope="col" class={number ? "number" : ""} aria-sort={c === chosen ? (up ? "ascending" : "descending") : undefined}>
      <button class="plain" onClick={() => put({ [key]: c === chosen && !up ? `-${c}` : c })}>{c}{c === chosen ? (up ? " ↑" : " ↓") : ""}</button>
    </th>
  );
  const cell = (r: T, c: Column<T>) => {
    const most = c.bar ? Math.max(...rows.map(c.of)) : 0;
    return <td key={c.name} class="number">{c.show ? c.show(r) : c.of(r)}{most ? <span class="share"><i style={{ width: `${(100 * c.of(r)) / most}%` }} /></span> : null}</td>;
  };
  return (
    <div class="panel scroll">
      <table>
        <caption class="visually-hidden">{name}</caption>
        <thead><tr>{head(name, false)}{columns.map((c) => head(c.name, true))}</tr></thead>
        <tbody>{sorted.map((r) => <tr key={r.name}><th scope="row">{say(r)}</th>{columns.map((c) => cell(r, c))}</tr>)}</tbody>
      </table>
    </div>
  );
}
const failedColumn = { name: "Failed", of: (r: Sums) => r.failed, show: (r: Sums) => (r.failed ? `${r.failed} (${percent(r.failed, r.calls)})` : "0") };
const failedRuns = { name: "Failed", of: (r: Paid) => r.failed, show: (r: Paid) => (r.failed ? `${r.failed} (${percent(r.failed, r.runs)})` : "0") };
const timeColumns = (["p50", "p90", "p99", "max"] as const).map((k) => ({ name: k === "max" ? "Longest" : k, of: (r: Sums) => r.ms?.[k] ?? -1, show: (r: Sums) => (r.ms ? took(r.ms[k]) : "") }));

// ---- the head: today, and the span

function Today() {
  const today = health.value?.today;
  if (!today) return null;
  const { budget_cents: budget = 0, budget_used_cents: used = today.cost_cents } = today, midnight = new Date().setHours(0, 0, 0, 0);
  const at = used > 0 ? midnight + ((Date.now() - midnight) * budget) / used : Infinity; // at the rate since midnight
  const end = used >= budget ? "used up" : at < midnight + DAY ? `at this pace used up at ${day(at)}` : "at this pace it lasts the day";
  return (
    <Figure name={budget ? "Today" : "Runs of today"} value={`${money(today.cost_cents)}${budget ? ` of ${money(budget)}` : ""}`} more={budget ? end : "no daily budget"}>
      {budget ? <meter min={0} max={budget} high={budget * 0.8} optimum={0} value={used} aria-label="Part of today's budget">{percent(used, budget)}</meter> : null}
    </Figure>
  );
}
// The budgets beside the day's: of weeks and months, of folders and tags.
function Budgets() {
  const all = health.value?.budgets.filter((b) => b.of || b.period !== "day") ?? [];
  return all.length ? (
    <section class="figures panel" aria-label="Budgets">
      {all.map((b) => (
        <Figure key={b.name} name={`${b.of ? b.of.replace(/.*\/(?=.)/, "") : "All"}, this ${b.period}`} value={`${money(b.used_cents)} of ${money(b.cents)}`} more={b.used_cents >= b.cents ? "used up" : `${percent(b.used_cents, b.cents)} since ${date(Date.parse(`${b.since}T00:00`))}`}>
          <meter min={0} max={b.cents} high={b.cents * 0.8} optimum={0} value={b.used_cents} aria-label={b.name} title={b.of}>{percent(b.used_cents, b.cents)}</meter>
        </Figure>
      ))}
    </section>
  ) : null;
}
function Figure({ name, value, more, children }: { name: string; value: string; more?: string; children?: ComponentChildren }) {
  return <div class="figure"><small>{name}</small><strong class="number">{value}</strong>{children}{more ? <small>{more}</small> : null}</div>;
}
function Figures({ s, before }: { s: Stats; before: Stats | null }) {
  const runs = Object.values(s.runs).reduce((a, n) => a + n, 0), failed = runs - (s.runs.success ?? 0) - (s.runs.cancelled ?? 0);
  const busiest = [...s.models].sort((a, b) => b.calls - a.calls)[0], cost = total(s.models, "cost_cents"), was = before ? total(before.models, "cost_cents") : 0;
  const change = !before ? undefined : was ? `${money(was)} the time before: ${cost < was ? "−" : "+"}${percent(Math.abs(cost - was), was)}` : "nothing the time before";
  return (
    <div class="figures panel">
      <Today />
      <Figure name="In this time" value={money(cost)} more={change} />
      <Figure name="Runs ended" value={String(runs)} more={`${failed} failed${runs ? ` (${percent(failed, runs)})` : ""}`} />
      <Figure name="Tokens" value={tokens(total(s.models, "tokens"))} more={`${percent(total(s.models, "cached"), total(s.models, "input")) || "0%"} cached`} />
      <Figure name="p90 of model calls" value={busiest?.ms ? took(busiest.ms.p90) : "–"} more={busiest && modelName(busiest.name)} />
    </div>
  );
}

function Choice({ label, values, now, pick }: { label: string; values: string[]; now: string; pick: (v: string) => void }) {
  return <span class="choice" role="group" aria-label={label}>{values.map((v) => <button key={v} aria-pressed={v === now} onClick={() => pick(v)}>{v}</button>)}</span>;
}

export function Costs() {
  const q = place.value.query, since = named(spans, q.get("since"), "7d"), by = named(dimensions, q.get("by"), "model"), what = q.get("what") === "tokens" ? "tokens" : "cost";
  const { from, until, at, step, bars, name } = spanOf(since), { key, filter, name: short } = dimensions[by]!, ended = (i: { kind: string }) => i.kind === "result" || i.kind === "failed";
  const { data: s, error } = useGet<Stats>(`/api/v1/stats?since=${iso(from)}&until=${iso(until)}&parts=${bars}&by=${key}`, ended);
  const { data: before } = useGet<Stats>(q.get("before") ? `/api/v1/stats?since=${iso(2 * from - until)}&until=${iso(from)}&parts=1` : "");
  const timed = new Map((key === "model" ? s?.models : [])?.map((m) => [m.name, m])); // how calls went, where a row is of calls
  const rows = (s?.rows ?? []).map((r) => (key === "model" ? { ...r, failed: timed.get(r.name)?.failed ?? 0, ms: timed.get(r.name)?.ms } : r)), series = useMemo(() => stacked(rows, what === "cost" ? "cost_parts" : "token_parts", dimensions[by]!), [s, key, what]);
  const drawn = Array.from({ length: bars }, (_, i) => ({ name: step < HOUR ? clock(at(i)).slice(0, 5) : name(at(i)), to: (only?: [string, string]) => address("runs", "", { since: iso(at(i)), until: iso(at(i + 1)), ...(only && { [only[0]]: only[1] }) }) }));
  const budget = health.value?.today.budget_cents, line = budget && what === "cost" ? { name: `budget of ${money(budget)} a day`, value: (budget * step) / DAY } : undefined;
  const link = (r: Paid) => (!r.name || r.name === OTHERS || (by === "role" && r.name === "ava") ? short(r.name) : <a href={address("runs", "", { [filter]: r.name, since: iso(from), status: "ended" })} title={r.name}>{short(r.name)}</a>);
  return (
    <>
      <div class="row costs-head">
        <h1 class="grow">Costs</h1>
        <Choice label="Time" values={Object.keys(spans)} now={since} pick={(v) => put({ since: v })} />
        <Choice label="By" values={Object.keys(dimensions)} now={by} pick={(v) => put({ by: v })} />
        <Choice label="What" values={["cost", "tokens"]} now={what} pick={(v) => put({ what: v })} />
        <label class="row"><input type="checkbox" checked={!!q.get("before")} onChange={(e) => put({ before: e.currentTarget.checked ? "1" : "" })} /> Compare with the time before</label>
      </div>
      {!s ? <Reading error={error} /> : (
        <div class="charts">
          {error ? <p role="alert" class="problem">{error}</p> : null}
          <Figures s={s} before={q.get("before") ? before : null} />
          <Budgets />
          {!rows.length ? <Empty title={s.models.length ? `Nothing has a ${by} in this time` : "Nothing happened in this time"}><p>Choose a longer time, or start a task.</p></Empty> : (
            <>
              <section class="panel" aria-label={`${what === "cost" ? "Cost" : "Tokens"} over time`}>
                <Bars label={`${what === "cost" ? "Cost" : "Tokens"} by ${by}`} series={series} bars={drawn} show={what === "cost" ? money : (n) => tokens(n)} line={line} />
              </section>
              <Table name={by === "person" ? "Person" : by[0]!.toUpperCase() + by.slice(1)} rows={rows} first={what === "cost" ? "Cost" : "Tokens"} say={link} columns={[
                ...(key === "model" ? [] : [{ name: "Runs", of: (r: Paid) => r.runs }]), key === "model" ? failedColumn : failedRuns, { name: "Calls", of: (r) => r.calls }, { name: "Cost", of: (r) => r.cost_cents, show: (r) => money(r.cost_cents), bar: true },
                { name: "Tokens", of: (r) => r.tokens, show: (r) => tokens(r.tokens), bar: true }, { name: "Cached", of: (r) => r.cached / Math.max(r.input, 1), show: (r) => percent(r.cached, r.input) }, ...timeColumns,
              ]} />
            </>
          )}
          {s.top?.length ? (
            <section class="panel" aria-label="Most expensive runs">
              <h2>Most expensive runs</h2>
              <ol class="top">{s.top.map((r) => <li key={r.id}><a href={address("run", r.id)}><StatusTag status={r.status} word={false} /><span class="ellipsis">{r.task}</span><small title={r.model}>{roleName(r.role)} · {modelName(r.model)}</small><Ago at={r.started_at} /><b class="number">{money(r.cost_cents)}</b></a></li>)}</ol>
            </section>
          ) : null}
          {s.tools.length ? <Table name="Tool" rows={s.tools} first="Calls" say={(t) => t.name} columns={[{ name: "Calls", of: (t) => t.calls, bar: true }, failedColumn, ...timeColumns]} /> : null}
        </div>
      )}
    </>
  );
}
