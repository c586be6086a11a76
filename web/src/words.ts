// How the page says things: statuses, figures and times in one place, the words of base/words.c.
import type { Run, Status } from "./api";

export const statusWords: Record<Status, string> = {
  starting: "starting", queued: "queued", running: "running", waiting: "waits for you", success: "complete", cancelled: "cancelled",
  error: "failed", timeout: "time limit", cost_exceeded: "cost limit", tokens_exceeded: "token limit", iterations_exceeded: "reply limit",
};
export const roleName = (role: string) => role.split(/[_-]/).map((w) => w.charAt(0).toUpperCase() + w.slice(1)).join("");

export function money(cents: number | null | undefined): string {
  if (cents == null) return "cost unknown";
  return cents > 0 && cents < 1 ? `$${(cents / 100).toFixed(4)}` : `$${(cents / 100).toFixed(2)}`;
}
export function tokens(n: number): string {
  return n < 10000 ? String(n) : n < 1e6 ? `${Math.round(n / 1000)}k` : `${(n / 1e6).toFixed(1)}M`;
}
export function duration(ms: number): string {
  const s = Math.max(0, ms) / 1000;
  if (s < 10) return `${s.toFixed(1)}s`;
  if (s < 100) return `${Math.round(s)}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${Math.round(s % 60)}s`;
  return `${Math.floor(s / 3600)}h ${Math.round((s % 3600) / 60)}m`;
}
export function bytes(n: number): string {
  return n < 1024 ? `${n} B` : n < 1048576 ? `${(n / 1024).toFixed(1)} KB` : `${(n / 1048576).toFixed(1)} MB`;
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
export const cut = (text: string, max: number) => ([...text].length > max ? [...text].slice(0, max).join("") + "…" : text);
