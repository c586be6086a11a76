// What it costs and how it goes, over time: by model and role, how long calls take, how often tools
// fail.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { get } from "../api";
import { attempt, Empty } from "../ui";
import { duration, money, roleName, statusWords, tokens } from "../words";
import { Chart } from "./chart";

interface Sums {
  name: string;
  calls: number;
  failed: number;
  ms?: { p50: number; p90: number; p99: number; max: number };
}
interface Paid extends Sums {
  cost_cents: number;
  tokens: number;
  input: number;
  output: number;
  cached: number;
  cost_parts: number[];
  token_parts: number[];
}
interface Stats {
  since: string;
  until: string;
  part_seconds: number;
  models: Paid[];
  roles: Paid[];
  tools: Sums[];
  runs: Record<string, number>;
}

const spans: [since: string, name: string][] = [["1 hour ago", "hour"], ["today", "today"], ["24 hours ago", "day"], ["7 days ago", "week"], ["30 days ago", "month"]];
const SHOWN = 6; // lines in a chart; the rest stands in the table

function times(ms: Sums["ms"]) {
  return (["p50", "p90", "p99", "max"] as const).map((k) => <td key={k} class="number">{ms ? duration(ms[k]) : ""}</td>);
}
const rate = (s: Sums) => (s.calls ? `${Math.round((1000 * s.failed) / s.calls) / 10} %` : "");
const timeHeads = ["p50", "p90", "p99", "longest"].map((h) => <th key={h} scope="col" class="number">{h}</th>);

function PaidTable({ caption, rows, what, name }: { caption: string; rows: Paid[]; what: string; name: (s: string) => string }) {
  return (
    <div class="scroll">
      <table>
        <caption class="visually-hidden">{caption}</caption>
        <thead><tr><th scope="col">{caption}</th><th scope="col" class="number">{what}</th><th scope="col" class="number">failed</th><th scope="col" class="number">cost</th><th scope="col" class="number">tokens</th><th scope="col" class="number">from cache</th>{timeHeads}</tr></thead>
        <tbody>
          {rows.map((r) => (
            <tr key={r.name}>
              <th scope="row">{name(r.name)}</th><td class="number">{r.calls}</td><td class="number">{r.failed} ({rate(r)})</td><td class="number">{money(r.cost_cents)}</td>
              <td class="number">{tokens(r.tokens)}</td><td class="number">{r.cached ? `${Math.round((100 * r.cached) / Math.max(r.input, 1))} %` : ""}</td>{times(r.ms)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Costs() {
  const since = useSignal("7 days ago"), by = useSignal<"models" | "roles">("models"), stats = useSignal<Stats | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    void attempt(async () => {
      try {
        stats.value = await get<Stats>(`/api/v1/stats?since=${encodeURIComponent(since.value)}&parts=60`, stop.signal);
      } catch (e) {
        if (!stop.signal.aborted) throw e;
      }
    });
    return () => stop.abort();
  }, [since.value]);
  const s = stats.value;
  const drawn = useMemo(() => {
    if (!s) return null;
    const rows = [...s[by.value]].sort((a, b) => b.cost_cents - a.cost_cents || b.tokens - a.tokens).slice(0, SHOWN), from = Date.parse(s.since) / 1000;
    const name = by.value === "roles" ? roleName : String;
    return {
      at: Array.from({ length: rows[0]?.cost_parts.length ?? 0 }, (_, i) => from + (i + 0.5) * s.part_seconds),
      cost: rows.map((r) => ({ name: name(r.name), values: r.cost_parts })), tokens: rows.map((r) => ({ name: name(r.name), values: r.token_parts })),
    };
  }, [s, by.value]);
  const ended = s ? Object.entries(s.runs) : [];
  return (
    <>
      <div class="row" style="margin-bottom: 12px">
        <h1 class="grow">Costs and health</h1>
        <label class="row">since <select value={since} onChange={(e) => (since.value = e.currentTarget.value)}>{spans.map(([v, n]) => <option key={v} value={v}>{n}</option>)}</select></label>
        <label class="row">by <select value={by} onChange={(e) => (by.value = e.currentTarget.value as "models")}><option value="models">model</option><option value="roles">role</option></select></label>
      </div>
      {!s || !drawn ? <p class="soft">Reading…</p> : s.models.length === 0 && ended.length === 0 ? (
        <Empty title="Nothing happened in that time"><p>Choose a longer one, or start a task.</p></Empty>
      ) : (
        <div class="charts">
          <p class="soft">{ended.map(([status, n]) => `${n} ${statusWords[status as keyof typeof statusWords] ?? status}`).join(" · ") || "No run ended"} · {money(s.models.reduce((a, m) => a + m.cost_cents, 0))} · {tokens(s.models.reduce((a, m) => a + m.tokens, 0))} tokens</p>
          {drawn.at.length ? (
            <>
              <section class="panel" aria-label="Cost over time"><h2>Cost</h2><Chart label="Cost over time" at={drawn.at} lines={drawn.cost} show={(v) => money(v)} /></section>
              <section class="panel" aria-label="Tokens over time"><h2>Tokens</h2><Chart label="Tokens over time" at={drawn.at} lines={drawn.tokens} show={(v) => tokens(v)} /></section>
            </>
          ) : null}
          <section class="panel scroll"><PaidTable caption="Models" rows={s.models} what="calls" name={String} /></section>
          <section class="panel scroll"><PaidTable caption="Roles" rows={s.roles} what="runs" name={roleName} /></section>
          <section class="panel scroll">
            <table>
              <caption class="visually-hidden">Tools</caption>
              <thead><tr><th scope="col">Tools</th><th scope="col" class="number">calls</th><th scope="col" class="number">failed</th><th scope="col" class="number">error rate</th>{timeHeads}</tr></thead>
              <tbody>{s.tools.map((t) => <tr key={t.name}><th scope="row">{t.name}</th><td class="number">{t.calls}</td><td class="number">{t.failed}</td><td class="number">{rate(t)}</td>{times(t.ms)}</tr>)}</tbody>
            </table>
          </section>
        </div>
      )}
    </>
  );
}
