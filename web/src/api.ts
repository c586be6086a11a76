// What the daemon is asked, and the shapes of its answers (doc/api.yaml). Every request is signed with
// the key of this tab (sign.ts), and nothing that signs is ever sent.
import { signal } from "@preact/signals";
import { Refused, Signer, Stranger } from "./sign";

export interface Rights {
  private: boolean;
  untrusted: boolean;
  out: boolean;
}
export type Source = "built-in" | "project" | "user" | "claude";
export interface Limits {
  timeout?: number;
  max_cost_cents?: number;
  max_tokens?: number;
  max_iterations?: number;
}
// What a person sees, in order (doc/ITEMS.md).
export interface Item {
  lsn: number;
  at: string;
  kind: "said" | "proposed" | "started" | "doing" | "asked" | "answered" | "result" | "failed" | "expired" | "noted";
  session: string;
  run: string;
  role: string;
  ask: string;
  title: string;
  text: string;
  cut?: boolean; // there is more than `text`
  detail: Record<string, unknown>;
}
// What waits for a person (doc/ASKS.md).
export interface Field {
  name: string;
  type: "number" | "integer" | "string" | "boolean" | "list";
  now?: number | string | boolean;
  min?: number;
  max?: number;
  choices?: string[];
}
export interface Ask {
  id: string;
  kind: string;
  hash: string;
  session: string;
  run: string;
  number?: number;
  text: string;
  whole: boolean;
  choices: { id: string; label: string; effect: string }[];
  fields: Field[];
  default?: string; // its answer when nobody gives one
  since: string;
  until: string;
  state: string; // "open", or what became of it
  done?: { files: number; cwd: string; leftOut: string[] }; // of a patch that is applied
}
export type Status =
  | "starting" | "queued" | "running" | "waiting" | "parked"
  | "success" | "timeout" | "cost_exceeded" | "tokens_exceeded" | "iterations_exceeded" | "cancelled" | "error" | "no_result";
export interface Run {
  subagent_id: string;
  trace_id: string;
  role: string;
  task: string;
  model: string;
  status: Status;
  stop_reason?: string;
  started_at: string;
  ended_at?: string;
  iteration: number;
  tokens_used: number;
  cost_cents: number | null;
  estimated?: boolean; // both of them
  elapsed_seconds: number;
  current_activity: string;
  progress?: string; // "reply 7 of 20; the model is reading (2 min)", while it is running
  last_tool_call?: { name: string; at: string };
  limits: Limits;
  rights?: Rights;
  session_id: string;
  user_id: string;
  origin: string;
  cwd: string;
}
export interface Session {
  session_id: string;
  title: string;
  cwd: string;
  user_id: string;
  model: string;
  status: "busy" | "idle";
  trouble?: string; // with the service of her model: "anthropic cannot be reached, trying again"
  doing?: string; // what Ava does while she is busy: "Thinking (12 s)"
  created_at: string;
  updated_at: string;
  live_runs: number;
  waiting: number;
  tokens_used: number;
  cost_cents: number;
}
export interface AvaEvent {
  timestamp: string;
  lsn: number;
  seq: number;
  eventType: string;
  agentId: string;
  sessionId: string;
  traceId: string;
  userId: string;
  content: Record<string, any>;
  metadata: { iteration?: number; inputTokens?: number; outputTokens?: number; costCents?: number; modelId?: string; parentAgentId?: string; duration?: number };
}
export interface Health {
  status: string;
  problem: string;
  version: string;
  pid: number;
  uptime_seconds: number;
  model: string;
  model_why: string;
  slots: { max: number; used: number };
  queued: number;
  runs: { running: number; total: number };
  today: { date: string; cost_cents: number; tokens: number; runs: number; uncosted_runs: number; budget_cents?: number; budget_used_cents?: number };
  journal: { lsn: number };
}
export interface Role {
  name: string;
  display: string;
  summary: string;
  source: Source;
  path: string;
  trusted: boolean;
  model: string;
  tools: string[];
  usable: boolean;
  why: string;
  timeout: number;
  max_cost_cents: number;
  extended_thinking: boolean;
}
export interface RoleList {
  roles: Role[];
  broken: { path: string; source: Source; why: string }[];
}
export interface Citation {
  path?: string;
  line?: number;
  url?: string;
  quote?: string;
}
// What a run with the grant rw proposes for the files of its folder.
export interface Patch {
  path: string;
  files: number;
  added: number;
  removed: number;
  changed: { path: string; how: "new" | "deleted" | "changed"; added: number; removed: number }[];
  left_out: { path: string; why: string }[];
  left_out_files: number;
}
export interface Result {
  subagent_id: string;
  status: Status;
  stop_reason: string;
  summary: string;
  output: unknown;
  confidence: number | null;
  caveats: string[];
  error: unknown;
  citations: Citation[];
  evidence: { citations_checked?: number; citations_failed?: number };
  rights?: Rights;
  artifacts: { path: string; bytes: number; type: string; more?: boolean }[];
  patch?: Patch;
  partial?: boolean;
  unverified?: boolean;
  tokens_used: number;
  cost_cents: number | null;
  duration_seconds: number;
  model: string;
}
// What is remembered of the person (doc/MEMORY.md).
export interface Memory {
  id: string;
  kind: "person" | "project" | "fact";
  text: string;
  tags: string[];
  cwd: string;
  pinned: boolean;
  source: { how: string; by: string; session_id: string };
  created_at: string;
  updated_at: string;
}
export interface Verified {
  ok: boolean;
  files: number;
  bytes: number;
  seals: number;
  broken: number;
  unsealed_files: number;
  newest_at: string;
  findings: { kind: string; path: string; line: number; what: string }[];
}
// A subagent of Claude Code (doc/CLAUDE-CODE.md).
export interface Agent {
  agentId: string;
  type: string;
  status: "active" | "idle" | "stopped";
  reason?: string;
  ghost?: boolean;
  startedAt: string;
  updatedAt: string;
  stoppedAt?: string;
  lastMessage?: string;
  name?: string;
  activity?: string;
  description?: string;
  parentAgentId?: string;
  depth?: number;
  model?: string;
  usage?: { input: number; output: number; cacheRead: number; cacheWrite: number };
  cwd?: string;
  transcript?: string;
  process?: { pid: number; startTicks: number };
}
export interface ClaudeSession {
  sessionId: string;
  team: string;
  cwd: string;
  updatedAt: string;
  agents: { active: number; idle: number; stopped: number };
}
export interface ClaudeTask {
  id: string;
  subject: string;
  description?: string;
  activeForm?: string;
  status: "pending" | "in_progress" | "completed";
  owner?: string;
  blockedBy?: string[];
  unreadable?: string;
}
export interface ClaudeSettings {
  AGENT_FILE_CAP: number;
  AGENT_LOG_MAX: number;
  AGENT_STALE_MS: number;
  AGENT_COOLDOWN_MS: number;
}

export const signedIn = signal(false);

export class ApiError extends Error {
  // `ask`: as it is now, where the answer was to one that is not what was shown any more.
  constructor(readonly status: number, readonly code: string, message: string, readonly ask?: Ask) {
    super(message);
  }
}

const signer = new Signer();

// A request of this tab, to a daemon that has shown that it is ours. One that has started anew since
// refuses the first.
export async function send(method: string, path: string, body?: string, stop?: AbortSignal): Promise<Response> {
  for (let again = false; ; again = true) {
    const { url, authorization } = await signer.sign(method, path, body ?? "");
    const headers: Record<string, string> = { Authorization: authorization };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const answer = await fetch(url, { method, headers, body: body ?? null, signal: stop ?? null, cache: "no-store", credentials: "omit" });
    if (answer.status !== 401 || again) return answer;
    signer.doubt();
  }
}

// While the stream of events is open nobody else can have our port.
export const holds = (open: boolean) => (open ? signer.trust() : signer.doubt());

async function ask(method: string, path: string, body?: unknown, stop?: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await send(method, path, method === "POST" ? JSON.stringify(body ?? {}) : undefined, stop);
  } catch (e) {
    if (stop?.aborted) throw e;
    if (e instanceof Refused) {
      signedIn.value = false;
      throw new ApiError(401, "denied", e.message);
    }
    throw new ApiError(0, "away", e instanceof Stranger ? e.message : "The daemon does not answer. It may have ended: run `ava dashboard` to bring it back.");
  }
  if (answer.status === 401) signedIn.value = false;
  if (answer.ok) return answer;
  const data = await answer.json().catch(() => null);
  throw new ApiError(answer.status, data?.error?.code ?? "", data?.error?.message ?? `The daemon answered ${answer.status}.`, data?.ask);
}

async function call<T>(method: string, path: string, body?: unknown, stop?: AbortSignal): Promise<T> {
  const data = await (await ask(method, path, body, stop)).json().catch(() => null);
  if (data === null) throw new ApiError(0, "away", "The daemon's answer broke off.");
  return data as T;
}

export const get = <T>(path: string, stop?: AbortSignal) => call<T>("GET", path, undefined, stop);
export const post = <T>(path: string, body?: unknown) => call<T>("POST", path, body);

// A file that a run leaves, into the person's downloads.
export async function save(run: string, path: string) {
  const answer = await ask("GET", `/api/v1/runs/${run}/artifact?path=${encodeURIComponent(path)}`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = path.split("/").pop()!;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// The code of `ava dashboard` stands behind the #, which no server sees; it is taken out of the
// address before anything else is done. What is to be said when nobody is signed in.
export async function signIn(): Promise<string> {
  const code = /^#code=([0-9a-f]{32})$/.exec(location.hash)?.[1];
  if (code) history.replaceState(null, "", location.pathname);
  try {
    signedIn.value = await signer.open(code);
    return "";
  } catch (e) {
    return e instanceof Refused || e instanceof Stranger ? e.message : "The daemon does not answer. It may have ended: run `ava dashboard`, and open the address that it prints.";
  }
}

export async function signOut() {
  await post("/api/v1/dashboard", { sign_out: true });
  await signer.forget();
  signedIn.value = false;
}
