// What the page knows: asked once at the start and when the connection was lost, kept true by events
// in between. Events say what happened; a run's figures are asked for again, at most every 200 ms
// for each, when something of it happened.
import { computed, effect, signal } from "@preact/signals";
import { get, signedIn, type Agent, type Ask, type AvaEvent, type ClaudeTask, type ClaudeSession, type ClaudeSettings, type Health, type Item, type RoleList, type Run, type Session, type Verified } from "./api";
import { place } from "./router";
import { Stream } from "./stream";

export const health = signal<Health | null>(null);
export const runs = signal<ReadonlyMap<string, Run>>(new Map());
export const asks = signal<ReadonlyMap<string, Ask>>(new Map()); // those that are open
export const sessions = signal<Session[]>([]);
export const claudeSessions = signal<ClaudeSession[]>([]);
export const claudeSettings = signal<ClaudeSettings>({ AGENT_FILE_CAP: 20, AGENT_LOG_MAX: 8, AGENT_STALE_MS: 300000, AGENT_COOLDOWN_MS: 180000 });
export const verified = signal<Verified | null>(null); // the last answer; asked for once the page stands
export const problem = signal(""); // why the page shows nothing
export const now = signal(Date.now()); // ticks once a second, for durations
setInterval(() => (now.value = Date.now()), 1000);

export const RUNS_FIRST = 100; // asked for at the start: more than a screen has room for
export const RUNS_SHOWN = 500; // ended ones on the board; older ones are found by search

export const live = (r: Run) => r.status === "starting" || r.status === "queued" || r.status === "running" || r.status === "waiting" || r.status === "parked";
export const runList = computed(() => [...runs.value.values()].sort((a, b) => b.started_at.localeCompare(a.started_at)));
export const askOf = (run: string) => [...asks.value.values()].find((a) => a.run === run);

export const stream = new Stream();

function putRun(r: Run) {
  const next = new Map(runs.value);
  next.set(r.subagent_id, r);
  runs.value = next;
}

const asked = new Map<string, number>();
export function refreshRun(id: string) {
  if (asked.has(id)) return;
  asked.set(id, window.setTimeout(async () => {
    asked.delete(id);
    try {
      putRun(await get<Run>(`/api/v1/runs/${id}`));
    } catch {
      // gone, or asked again with its next event
    }
  }, 200));
}

function later(f: () => Promise<void>, ms: number) {
  let timer = 0;
  return () => {
    if (timer) return;
    timer = window.setTimeout(() => {
      timer = 0;
      f().catch(() => {});
    }, ms);
  };
}
export const refreshHealth = later(async () => {
  health.value = await get<Health>("/api/v1/health");
}, 300);
export const refreshSessions = later(async () => {
  sessions.value = (await get<{ sessions: Session[] }>("/api/v1/sessions")).sessions;
}, 300);
export const refreshAsks = later(async () => {
  const all = (await get<{ asks: Ask[] }>("/api/v1/asks")).asks;
  asks.value = new Map(all.map((a) => [a.id, a]));
}, 50);
// One as an answer gave it: answered, or another one in its place.
export function putAsk(a: Ask, was: string) {
  const next = new Map(asks.value);
  next.delete(was);
  if (a.state === "open") next.set(a.id, a);
  asks.value = next;
}
export const refreshClaude = later(async () => {
  const all = await get<{ settings: ClaudeSettings; sessions: ClaudeSession[] }>("/api/v1/claude/sessions");
  claudeSettings.value = all.settings;
  claudeSessions.value = all.sessions;
}, 100);

// The files of tasks are as somebody wrote them.
const textOf = (v: unknown) => (typeof v === "string" ? v : "");
const mended = (t: ClaudeTask): ClaudeTask => ({
  id: String(t.id), subject: textOf(t.subject), description: textOf(t.description), activeForm: textOf(t.activeForm), status: t.status,
  owner: textOf(t.owner), blockedBy: Array.isArray(t.blockedBy) ? t.blockedBy.map(String) : [], unreadable: textOf(t.unreadable),
});

// Agents and tasks of the session of Claude Code that is looked at, else of the newest that has agents.
const hasAgents = (s: ClaudeSession) => s.agents.active + s.agents.idle + s.agents.stopped > 0;
export const claudeId = computed(() => (place.value.view === "claude" ? place.value.id : (claudeSessions.value.find(hasAgents)?.sessionId ?? "")));
export const claudeAgents = signal<Agent[]>([]);
export const claudeTasks = signal<ClaudeTask[]>([]);
export const refreshAgents = later(async () => {
  const id = claudeId.value;
  if (!id) return;
  const [agents, tasks] = await Promise.all([
    get<Agent[]>(`/api/sessions/${encodeURIComponent(id)}/agents`), get<ClaudeTask[]>(`/api/sessions/${encodeURIComponent(id)}/tasks`),
  ]);
  if (id !== claudeId.value) return;
  claudeAgents.value = agents;
  claudeTasks.value = tasks.map(mended);
}, 100);

// An agent that gives no more signs of life is stopped, one that was resumed is at work, and no event
// says so: who looks is told when it is asked for again.
const AGAIN_MS = 15000;
setInterval(() => {
  if (!signedIn.value || document.hidden) return;
  if (claudeAgents.value.length || claudeSessions.value.some((s) => s.agents.active || s.agents.idle)) refreshClaude();
  if (claudeAgents.value.length) refreshAgents();
}, AGAIN_MS);

// While a model reads or writes there is no event: what Ava does, and the runs on the first screen,
// are asked for again.
const LOOK_MS = 3000, LOOKED_AT = 20;
setInterval(() => {
  if (!signedIn.value || document.hidden) return;
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

// All logs are read for it, so it waits until what the person came for is there.
const MORE_MS = 500, VERIFY_MS = 3000;
export async function verify() {
  verified.value = await get<Verified>("/api/v1/verify");
}

// Those that a run in this folder can have; the project's are among them.
export const rolesOf = (cwd: string, stop: AbortSignal) => get<RoleList>(`/api/v1/roles${cwd ? `?cwd=${encodeURIComponent(cwd)}` : ""}`, stop);

async function getRuns(limit: number): Promise<[id: string, r: Run][]> {
  return (await get<{ runs: Run[] }>(`/api/v1/runs?all=1&limit=${limit}`)).runs.map((r) => [r.subagent_id, r]);
}
async function loadRuns() {
  runs.value = new Map(await getRuns(RUNS_SHOWN));
}
// The newest first, the older ones when those stand; what is known by then is newer.
async function loadFirst() {
  const first = await getRuns(RUNS_FIRST);
  runs.value = new Map(first);
  if (first.length === RUNS_FIRST)
    setTimeout(() => getRuns(RUNS_SHOWN).then((all) => (runs.value = new Map([...all, ...runs.value])), () => {}), MORE_MS);
}

// First from where events are followed, then what stands: nothing falls in between.
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
  await loadFirst();
  setTimeout(() => verify().catch(() => {}), VERIFY_MS);
}
