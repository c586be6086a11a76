// What is shown of Claude Code's agents: its shutdown handshake makes more of them than there are,
// which the daemon knows. The numbers and the names are those of the Agent Log's specification.
import type { Agent, ClaudeSettings } from "./api";
import { duration } from "./words";

const at = (iso: string | undefined) => (iso ? Date.parse(iso) : NaN);

// The daemon knows more signs of life and has judged them already; this holds for what it gave us
// a while ago.
export function withoutStale(agents: Agent[], s: ClaudeSettings, now: number): Agent[] {
  return agents.map((a) => (a.status === "active" && !a.transcript && !a.process && now - at(a.startedAt) > s.AGENT_STALE_MS ? { ...a, status: "stopped" as const, reason: "unknown", stoppedAt: a.updatedAt } : a));
}

export const withoutGhosts = (agents: Agent[]) => agents.filter((a) => !a.ghost);

export function shown(agents: Agent[], s: ClaudeSettings, now: number): Agent[] {
  return withoutGhosts(withoutStale(agents, s, now))
    .sort((a, b) => at(b.startedAt) - at(a.startedAt))
    .slice(0, s.AGENT_LOG_MAX);
}

// Who spawned whom; "": those whose parent is not shown, and those that say to be below themselves.
export function treeOf(agents: Agent[]): Map<string, Agent[]> {
  const byId = new Map(agents.map((a) => [a.agentId, a])), tree = new Map<string, Agent[]>();
  const parent = (a: Agent) => byId.get(a.parentAgentId ?? "");
  for (const a of agents) {
    let p = parent(a);
    for (let n = 0; p && p !== a && n < agents.length; n++) p = parent(p);
    const under = p === a ? "" : (parent(a)?.agentId ?? "");
    const siblings = tree.get(under);
    if (siblings) siblings.push(a);
    else tree.set(under, [a]);
  }
  return tree;
}

// How long it worked; of one that nobody saw stop only since when nothing is known of it.
export function lasted(a: Agent, now: number): string {
  const stopped = at(a.stoppedAt ?? a.updatedAt);
  if (a.reason) return `quiet for ${duration(now - stopped)}`;
  return duration((a.status === "stopped" ? stopped : now) - at(a.startedAt));
}

// It stopped a while ago.
export const isCold = (a: Agent, s: ClaudeSettings, now: number) => a.status === "stopped" && now - at(a.stoppedAt ?? a.updatedAt) > s.AGENT_COOLDOWN_MS;
