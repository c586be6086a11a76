// The page's knowledge of the daemon, asked for at the start and after a lost connection, kept true by
// events in between. Events say what happened; the figures of the runs that they speak of are asked for
// again, all with one request, at most every BATCH_MS, and written in one step.
import { batch, computed, effect, signal } from "@preact/signals";
import { get, signedIn, type Agent, type Ask, type AskDone, type AskList, type AvaEvent, type ClaudeTask, type ClaudeSession, type ClaudeSessions, type ClaudeSettings, type Health, type Item, type RoleList, type Run, type RunList, type Session, type SessionList, type Verified } from "./api";
import { place } from "./router";
import { Stream } from "./stream";
import { elapsed } from "./words";

export const health = signal<Health | null>(null);
export const runs = signal<ReadonlyMap<string, Run>>(new Map()); // every run that this tab has been told of
export const asks = signal<ReadonlyMap<string, Ask>>(new Map()); // open ones alone
export const sessions = signal<Session[]>([]);
export const claudeSessions = signal<ClaudeSession[]>([]);
export const claudeSettings = signal<ClaudeSettings>({ AGENT_FILE_CAP: 20, AGENT_LOG_MAX: 8, AGENT_STALE_MS: 300000, AGENT_COOLDOWN_MS: 180000 });
export const verified = signal<Verified | null>(null); // the last answer; somebody asks for it
export const problem = signal(""); // a sentence, why the page shows nothing
export const now = signal(Date.now()); // ticks once a second; read in leaves alone (ui.tsx, Clock), never by a view
setInterval(() => (now.value = Date.now()), 1000);

const FIRST = 100; // runs asked for at the start: more than a screen has room for
const LIVE: ReadonlySet<string> = new Set(["starting", "queued", "running", "waiting", "parked", "blocked", "paused"]);

export const live = (r: Run) => LIVE.has(r.status);
export const failed = (r: Run) => !live(r) && r.status !== "success" && r.status !== "cancelled";
export const newestFirst = (a: Run, b: Run) => (a.started_at < b.started_at ? 1 : a.started_at > b.started_at ? -1 : 0);
export const runList = computed(() => [...runs.value.values()].sort(newestFirst));
const askOfRun = computed(() => new Map([...asks.value.values()].filter((a) => a.run).map((a) => [a.run, a])));
export const askOf = (run: string) => askOfRun.value.get(run);
// Runs at work that need nobody.
export const working = computed(() => runList.value.filter((r) => live(r) && !askOf(r.subagent_id)));
export const sessionOf = (id: string) => sessions.value.find((s) => s.session_id === id);

export const stream = new Stream();

// ---- runs

export function putRuns(list: Run[]) {
  if (!list.length) return;
  const next = new Map(runs.value);
  for (const r of list) {
    const was = next.get(r.subagent_id);
    if (was && live(r) && !live(was)) continue; // an answer from before its end
    next.set(r.subagent_id, r);
    elapsed(r, 0); // its clock goes on from here
  }
  runs.value = next;
}

const BATCH_MS = 250, BATCH = 200; // BATCH: the most runs that one request may name
const stale = new Set<string>();
let refreshing = 0;
export function refreshRun(id: string) {
  stale.add(id);
  if (!refreshing) refreshing = window.setTimeout(refreshRuns, BATCH_MS);
}
async function refreshRuns() {
  const ids = [...stale].slice(0, BATCH);
  for (const id of ids) stale.delete(id);
  try {
    putRuns((await get<RunList>(`/api/v1/runs?all=1&limit=${BATCH}&ids=${ids.join()}`)).runs);
  } catch {
    // asked again with their next event
  }
  refreshing = stale.size ? window.setTimeout(refreshRuns, BATCH_MS) : 0;
}

// ---- the rest, each with one request for all that happened within `ms`

function later(f: () => Promise<void>, ms: number) {
  let timer = 0, reading = false, again = false;
  const start = () => {
    if (reading) again = true; // an answer that is under way may be older than what is asked for
    else if (!timer) timer = window.setTimeout(run, ms);
  };
  const run = async () => {
    timer = 0;
    reading = true;
    await f().catch(() => {});
    reading = false;
    if (again) start();
    again = false;
  };
  return start;
}
export const refreshHealth = later(async () => {
  health.value = await get<Health>("/api/v1/health");
}, 500);
export const refreshSessions = later(async () => {
  sessions.value = (await get<SessionList>("/api/v1/sessions")).sessions;
}, 300);
let shared = false; // other machines add to the Asks, of which no event tells
export const refreshAsks = later(async () => {
  const all = await get<AskList>("/api/v1/asks");
  shared = !!all.shared;
  asks.value = new Map(all.asks.map((a) => [a.id, a]));
}, 50);
// An Ask as an answer gave it: answered, or another one in its place.
export function putAsk(a: Ask | AskDone, was: string) {
  const next = new Map(asks.value);
  next.delete(was);
  if (a.state === "open") next.set(a.id, a);
  asks.value = next;
  refreshAsks(); // a list that is under way may still have the one that was answered
}
export const refreshClaude = later(async () => {
  const all = await get<ClaudeSessions>("/api/v1/claude/sessions");
  claudeSettings.value = all.settings;
  claudeSessions.value = all.sessions;
}, 100);

// The files of tasks are as somebody wrote them.
const textOf = (v: unknown) => (typeof v === "string" ? v : "");
const mended = (t: ClaudeTask): ClaudeTask => ({
  id: String(t.id), subject: textOf(t.subject), description: textOf(t.description), activeForm: textOf(t.activeForm), status: t.status,
  owner: textOf(t.owner), blockedBy: Array.isArray(t.blockedBy) ? t.blockedBy.map(String) : [], unreadable: textOf(t.unreadable),
});

// Agents and tasks of the session of Claude Code that is looked at: in its view, where none is named the newest
// that has agents.
const hasAgents = (s: ClaudeSession) => s.agents.active + s.agents.idle + s.agents.stopped > 0;
export const claudeId = computed(() => (place.value.view !== "claude" ? "" : place.value.id || (claudeSessions.value.find(hasAgents) ?? claudeSessions.value[0])?.sessionId || ""));
export const claudeAgents = signal<Agent[]>([]);
export const claudeTasks = signal<ClaudeTask[]>([]);
export const refreshAgents = later(async () => {
  const id = claudeId.value;
  if (!id) return;
  const [agents, tasks] = await Promise.all([
    get<Agent[]>(`/api/sessions/${encodeURIComponent(id)}/agents`), get<ClaudeTask[]>(`/api/sessions/${encodeURIComponent(id)}/tasks`),
  ]);
  if (id !== claudeId.value) return;
  batch(() => {
    claudeAgents.value = agents;
    claudeTasks.value = tasks.map(mended);
  });
}, 100);

// An agent that gives no more signs of life is stopped, one that was resumed is at work, and no event
// says so: who looks is told when it is asked for again.
const AGAIN_MS = 15000;
setInterval(() => {
  if (!signedIn.value || document.hidden) return;
  if (claudeAgents.value.length || claudeSessions.value.some((s) => s.agents.active || s.agents.idle)) refreshClaude();
  if (claudeAgents.value.length) refreshAgents();
}, AGAIN_MS);

// A model that reads or writes makes no event: what Ava does, and the runs on the first screen, are
// asked for again.
const LOOK_MS = 3000, LOOKED_AT = 20;
setInterval(() => {
  if (!signedIn.value || document.hidden) return;
  if (shared) refreshAsks();
  if (sessions.value.some((s) => s.status === "busy")) refreshSessions();
  const working = runList.value.filter((r) => r.status === "running");
  if (working.length) refreshHealth();
  for (const r of working.slice(0, LOOKED_AT)) refreshRun(r.subagent_id);
}, LOOK_MS);

function onEvent(e: AvaEvent) {
  if (e.agentId.startsWith("S-")) refreshRun(e.agentId);
}
function onItem(i: Item) {
  if (i.run) refreshRun(i.run);
  if (i.kind !== "doing" || i.ask) refreshAsks();
  if (i.kind !== "doing") refreshSessions();
  if (i.kind === "started" || i.kind === "result" || i.kind === "failed") refreshHealth();
}

export async function verify() {
  verified.value = await get<Verified>("/api/v1/verify");
}

// The roles that a run in this folder can have; the project's are among them.
export const rolesOf = (cwd: string, stop?: AbortSignal) => get<RoleList>(`/api/v1/roles${cwd ? `?cwd=${encodeURIComponent(cwd)}` : ""}`, stop);

async function loadRuns() {
  const [working, newest] = await Promise.all([
    get<RunList>("/api/v1/runs?limit=1000"), get<RunList>(`/api/v1/runs?all=1&limit=${FIRST}`),
  ]);
  putRuns([...newest.runs, ...working.runs]);
}

// The stream first, then what stands: nothing falls in between.
export async function start() {
  const h = await get<Health>("/api/v1/health");
  health.value = h;
  stream.onEvent(onEvent);
  stream.onItem(onItem);
  stream.onMessage((m) => {
    if (m.type !== "agent-update") return;
    refreshClaude();
    if (m.sessionId === claudeId.value || m.sessionId === "*") refreshAgents();
  });
  let asked = "";
  effect(() => {
    if (claudeId.value === asked) return;
    asked = claudeId.value;
    claudeAgents.value = [];
    claudeTasks.value = [];
    refreshAgents();
  });
  stream.onAgain(() => {
    // A run that ended while nobody listened is asked for by its name: it is not among the newest.
    for (const r of runs.value.values()) if (live(r)) refreshRun(r.subagent_id);
    loadRuns().catch(() => {});
    refreshHealth();
    refreshSessions();
    refreshAsks();
    refreshClaude();
    refreshAgents();
  });
  stream.begin(h.journal.lsn);
  refreshSessions();
  refreshAsks();
  refreshClaude();
  await loadRuns();
}
