// Words of the page: statuses as in src/base/words.c (script/check_words compares them), figures as in src/base/format.c, and
// times.
import { h } from "preact";
import type { Rights, RoleSource, Run, Status } from "./api";

export const statusWords: Record<Status, string> = {
  starting: "starting", queued: "queued", running: "running", waiting: "waits for you", parked: "parked", blocked: "waits for others", paused: "paused", success: "complete", cancelled: "cancelled",
  error: "failed", no_result: "no result", not_started: "not started", unproven: "unproven", timeout: "time limit", cost_exceeded: "cost limit", tokens_exceeded: "token limit", iterations_exceeded: "reply limit",
};
const capital = (s: string) => s.charAt(0).toUpperCase() + s.slice(1);
// Words of rights as in src/base/rights_words.h: "Reads your data · No network".
const rights: [key: keyof Rights, has: string, lacks: string][] = [
  ["private", "reads your data", "reads none of your data"], ["untrusted", "reads the web", "does not read the web"], ["out", "can send data out", "can't send data out"],
];
const noNetwork = "no network"; // stands for the last two, where both are lacking
export const rightsWords = (r: Rights) => {
  const net = r.untrusted || r.out, words = rights.slice(0, net ? 3 : 1).map(([key, has, lacks]) => (r[key] ? has : lacks));
  return (net ? words : [...words, noNetwork]).map(capital).join(" · ");
};
export const sourceWords: Record<RoleSource, string> = { "built-in": "built in", project: "the project's", user: "yours", claude: "yours, of Claude Code" };
export const roleName = (role: string) => role.split(/[_-]/).map(capital).join("");
// The short name of a model: without who sells it, a script by its file. The whole name belongs in a title.
export const modelName = (model: string) => model.replace(/^offline:/, "").replace(/.*\/(?=.)/, "");

export function money(cents: number | null | undefined): string {
  if (cents == null) return "cost unknown";
  return cents > 0 && cents < 0.5 ? "<$0.01" : `$${(Math.round(cents) / 100).toFixed(2)}`;
}
export const about = (...of: Run[]) => (of.some((r) => r.estimated) ? "~" : "");
// The cost of all of them, which is unknown where that of one is.
export function costOf(...of: Run[]): string {
  const cents = of.reduce<number | null>((sum, r) => (sum == null || r.cost_cents == null ? null : sum + r.cost_cents), 0);
  return (cents ? about(...of) : "") + money(cents);
}
// One decimal below ten of a unit, none above; cut, as what is not yet reached.
const scaled = (n: number, unit: number, suffix: string) =>
  (n < 10 * unit ? (Math.floor((n * 10) / unit) / 10).toFixed(1) : Math.floor(n / unit)) + suffix;
export function tokens(n: number): string {
  return n < 1000 ? String(n) : n < 1e6 ? scaled(n, 1000, "k") : scaled(n, 1e6, "M");
}
export function duration(ms: number): string {
  // The whole is rounded before it is taken apart: no rest of it is ever 60.
  const s = Math.round(Math.max(0, ms) / 1000), m = Math.round(s / 60);
  if (ms < 9950) return `${(Math.max(0, ms) / 1000).toFixed(1)}s`;
  if (s < 100) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${s % 60}s`;
  return `${Math.floor(m / 60)}h ${m % 60}m`;
}
export function bytes(n: number): string {
  return n < 1024 ? `${n} B` : n < 1048576 ? scaled(n, 1024, " KB") : scaled(n, 1048576, " MB");
}
// One clock for all: 24 hours, and the day where it is not today. Exact on hover.
const format = (parts: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(undefined, { hourCycle: "h23", ...parts });
const hm: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit" };
const clocks = { time: format({ ...hm, second: "2-digit" }), short: format(hm), day: format({ month: "short", day: "numeric", ...hm }), date: format({ month: "short", day: "numeric" }), exact: format({ dateStyle: "medium", timeStyle: "medium" }) };
export const clock = (iso: string | number) => clocks.time.format(new Date(iso));
export const date = (iso: string | number) => clocks.date.format(new Date(iso));
export const exactly = (iso: string) => clocks.exact.format(new Date(iso));
export function day(iso: string | number, today = new Date()): string {
  const d = new Date(iso);
  return (d.toDateString() === today.toDateString() ? clocks.short : clocks.day).format(d);
}
// Time since, while that says more than a clock.
export function ago(iso: string, now: number): string {
  const s = Math.floor((now - Date.parse(iso)) / 1000);
  return s < 60 ? "now" : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400 ? `${Math.floor(s / 3600)} h` : day(iso);
}
export const elapsed = (r: Run, now: number) =>
  r.status === "running" ? Math.max(r.elapsed_seconds * 1000, 0) + Math.max(0, now - seen(r)) : r.elapsed_seconds * 1000;
// Times at which the figures of runs were read, so that a clock goes on between two readings.
const read = new WeakMap<Run, number>();
function seen(r: Run): number {
  let at = read.get(r);
  if (at === undefined) read.set(r, (at = Date.now()));
  return at;
}
export const unreadable = (n: number, first: string) =>
  `${n} line${n === 1 ? "" : "s"} of the log cannot be read and ${n === 1 ? "is" : "are"} left out; the first: ${first}`;
// Characters that hide or reorder what is beside them are shown by their numbers, as in the text of an Ask.
const hidden = /((?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u034f\u115f\u1160\u3164\uffa0\u{e0100}-\u{e01ef}])/u;
const byNumber = (c: string, i: number) => (i % 2 ? `\\u{${c.codePointAt(0)!.toString(16)}}` : c);
export const escaped = (text: string) => text.split(hidden).map(byNumber).join("");
export const visible = (text: string) => text.split(hidden).map((c, i) => (i % 2 ? h("mark", { class: "hidden", key: i }, byNumber(c, i)) : c));
// The number that a field has, or its text: "0,5" is a half, and "40,000" may be either, so that the daemon asks.
export function number(text: string): number | string {
  const n = Number(/^\d+,\d{1,2}$/.test(text) ? text.replace(",", ".") : text);
  return Number.isFinite(n) ? n : text;
}
export const cut = (text: string, max: number) => ([...text].length > max ? [...text].slice(0, max).join("") + "…" : text);
// A line of what is Markdown elsewhere: without its marks. Nobody shows more than a few hundred characters of it.
const LONG = 2000;
export const plain = (text: string) => text.slice(0, LONG).replace(/\*\*|~~|`+/g, "").replace(/(^|\s)[*_](\S[^*_\n]*)[*_](?!\w)/g, "$1$2").replace(/^[ \t]*(#{1,6}|>|[-*+])\s+/gm, "").replace(/\s+/g, " ").trim();
