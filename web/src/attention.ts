// Signs for people who are not looking that something waits: the title, the icon of the tab, a
// notification where the person allowed it, and words for those who hear the page.
import { computed, signal } from "@preact/signals";
import { get, type AvaEvent, type Item, type Run } from "./api";
import { keep, kept } from "./kept";
import { address } from "./router";
import { asks, failed, putRuns, runList, runs, stream } from "./store";
import { hear } from "./ui";
import { cut, roleName, statusWords } from "./words";

// ---- runs of the last day that failed, folded by why, until somebody dismisses them

export interface Failure {
  why: string;
  next: string; // the next step one can take
  runs: Run[]; // newest first
}
const DAY_MS = 86400000, DISMISSED = 500;
const causes = signal<ReadonlyMap<string, string>>(new Map()); // the last error of a run
const dismissed = signal(kept("dismissed").split(" "));
export function dismiss(list: Run[], on = true) {
  const ids = list.map((r) => r.subagent_id), others = dismissed.value.filter((id) => !ids.includes(id));
  dismissed.value = on ? [...others, ...ids].slice(-DISMISSED) : others;
  keep("dismissed", dismissed.value.join(" "));
}
export const whyFailed = (r: Run) =>
  r.status === "error" ? causes.value.get(r.subagent_id) ?? `Failed: ${(r.stop_reason || "error").replace(/_/g, " ")}` : r.status === "no_result" ? "Ended without a result" : r.status === "unproven" ? "Unproven: its check did not pass" : `Stopped at its ${statusWords[r.status]}`;
const nextOf = (r: Run) => (r.status === "error" ? "" : r.status === "no_result" || r.status === "unproven" ? "Resume lets it go on from where it ended." : "Resume lets it go on; change the limit in its quote.");

export const failures = computed<Failure[]>(() => {
  const since = new Date(Date.now() - DAY_MS).toISOString(), gone = new Set(dismissed.value), all = new Map<string, Failure>();
  for (const r of runList.value) {
    if (!failed(r) || r.ended_at! < since || gone.has(r.subagent_id)) continue;
    const why = whyFailed(r), of = all.get(why);
    if (of) of.runs.push(r);
    else all.set(why, { why, next: nextOf(r), runs: [r] });
  }
  return [...all.values()];
});

function addCauses(list: AvaEvent[]) {
  const errors = list.filter((e) => e.eventType === "Error" && e.agentId.startsWith("S-"));
  if (errors.length) causes.value = new Map([...causes.value, ...errors.map((e): [string, string] => [e.agentId, String(e.content.message)])]);
}
async function loadFailures() {
  const since = `since=${encodeURIComponent("24 hours ago")}`;
  addCauses((await get<{ events: AvaEvent[] }>(`/api/v1/logs?type=error&${since}&limit=1000`)).events);
  putRuns((await get<{ runs: Run[] }>(`/api/v1/runs?all=1&status=failed&${since}&limit=500`)).runs);
}

// The number of cards under "Needs you".
export const needed = computed(() => asks.value.size + failures.value.length);

export function attention(name: string) {
  const n = needed.value;
  document.title = `${n ? `(${n}) ` : ""}${name} · ava`;
  const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (icon) icon.href = n ? "/icon-needs.svg" : "/icon.svg";
}

const has = typeof Notification !== "undefined";
export const notifies = signal(has && Notification.permission === "granted" && kept("notify") === "on");
export const canNotify = () => has && Notification.permission !== "denied";
// Permission to notify is asked for only when somebody presses the button.
export async function setNotifies(on: boolean) {
  notifies.value = on && has && (await Notification.requestPermission()) === "granted";
  keep("notify", notifies.value ? "on" : "off");
}

function tell(title: string, body: string, tag: string) {
  hear(`${title}: ${body}`);
  if (!notifies.value || !document.hidden) return;
  const n = new Notification(title, { body: cut(body, 200), tag, icon: "/icon.svg" });
  n.onclick = () => {
    window.focus();
    location.hash = address("inbox", tag);
    n.close();
  };
}

// Notice begins now: what arrived before stands in the inbox.
export function beginAttention() {
  const load = () => void loadFailures().catch(() => {}); // once more when the connection was lost
  load();
  stream.onAgain(load);
  stream.onEvent((e) => addCauses([e]));
  stream.onItem((i: Item) => {
    const run = runs.value.get(i.run), what = run ? cut(run.task, 100) : cut(i.text, 100);
    if (i.kind === "asked") tell(`${roleName(i.role) || "Ava"} asks`, cut(i.text, 200), i.ask);
    else if (i.kind === "proposed") tell("Quote", cut(i.text, 200), i.ask);
    else if (i.kind === "failed") tell("Failed", what, i.run);
    else if (i.kind === "result") hear(`Done: ${what}`);
  });
}
