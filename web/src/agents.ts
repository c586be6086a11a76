// Agents of Claude Code as they are shown: its shutdown handshake makes more of them than there are,
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

// Agents by the one that spawned them; "" has those whose parent is not shown, and those that say to be below themselves.
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

// Time since it was last heard of.
export const quiet = (a: Agent, now: number) => duration(now - at(a.stoppedAt ?? a.updatedAt));
// Time that it worked; unknown where nobody saw it stop, or start.
export function lasted(a: Agent, now: number): string {
  const until = a.status === "stopped" ? at(a.stoppedAt ?? a.updatedAt) : now;
  return a.reason ? `quiet for ${quiet(a, now)}` : until > at(a.startedAt) ? duration(until - at(a.startedAt)) : "";
}

// Agents that stopped a while ago.
export const isCold = (a: Agent, s: ClaudeSettings, now: number) => a.status === "stopped" && now - at(a.stoppedAt ?? a.updatedAt) > s.AGENT_COOLDOWN_MS;
