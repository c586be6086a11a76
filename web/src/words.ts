// How the page says things: statuses as in src/base/words.c (script/check_words compares them), figures as in src/base/format.c,
// and times.
import type { Rights, Run, Source, Status } from "./api";

export const statusWords: Record<Status, string> = {
  starting: "starting", queued: "queued", running: "running", waiting: "waits for you", parked: "parked", success: "complete", cancelled: "cancelled",
  error: "failed", no_result: "no result", timeout: "time limit", cost_exceeded: "cost limit", tokens_exceeded: "token limit", iterations_exceeded: "reply limit",
};
const capital = (s: string) => s.charAt(0).toUpperCase() + s.slice(1);
// As src/base/rights_words.h: "Reads your data · No network".
const rights: [key: keyof Rights, has: string, lacks: string][] = [
  ["private", "reads your data", "reads none of your data"], ["untrusted", "reads the web", "does not read the web"], ["out", "can send data out", "can't send data out"],
];
const noNetwork = "no network"; // for the last two, where both are lacking
export const rightsWords = (r: Rights) => {
  const net = r.untrusted || r.out, words = rights.slice(0, net ? 3 : 1).map(([key, has, lacks]) => (r[key] ? has : lacks));
  return (net ? words : [...words, noNetwork]).map(capital).join(" · ");
};
export const sourceWords: Record<Source, string> = { "built-in": "built in", project: "the project's", user: "yours", claude: "yours, of Claude Code" };
export const roleName = (role: string) => role.split(/[_-]/).map(capital).join("");
// The short name of a model: without who sells it, a script by its file. The whole name belongs in a title.
export const modelName = (model: string) => model.replace(/^offline:/, "").replace(/.*\/(?=.)/, "");

export function money(cents: number | null | undefined): string {
  if (cents == null) return "cost unknown";
  return cents > 0 && cents < 0.5 ? "<$0.01" : `$${(Math.round(cents) / 100).toFixed(2)}`;
}
export const about = (run: { estimated?: boolean }) => (run.estimated ? "~" : "");
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
export const clock = (iso: string) => new Date(iso).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export function day(iso: string, today = new Date()): string {
  const d = new Date(iso);
  return d.toDateString() === today.toDateString() ? clock(iso) : d.toLocaleString([], { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
}
export const elapsed = (r: Run, now: number) =>
  r.status === "running" ? Math.max(r.elapsed_seconds * 1000, 0) + Math.max(0, now - seen(r)) : r.elapsed_seconds * 1000;
// When the figures of a run were read, so that its clock goes on between two readings.
const read = new WeakMap<Run, number>();
function seen(r: Run): number {
  let at = read.get(r);
  if (at === undefined) read.set(r, (at = Date.now()));
  return at;
}
export const unreadable = (n: number, first: string) =>
  `${n} line${n === 1 ? "" : "s"} of the log cannot be read and ${n === 1 ? "is" : "are"} left out; the first: ${first}`;
export const cut = (text: string, max: number) => ([...text].length > max ? [...text].slice(0, max).join("") + "…" : text);
// A line of what is Markdown elsewhere: without its marks.
export const plain = (text: string) => text.replace(/\*\*|~~|`+/g, "").replace(/^\s*(#{1,6}|>|[-*+])\s+/gm, "").replace(/\s+/g, " ").trim();
