// What is shown of Claude Code's agents: its shutdown handshake makes more of them than there are.
// The rule, the numbers and the names are those of the Agent Log's specification.
import type { Agent, ClaudeSettings } from "./api";

export const GHOST_MS = 30000;

const at = (iso: string | undefined) => (iso ? Date.parse(iso) : NaN);

// The daemon knows more signs of life and has judged them already; this holds for what it gave us
// a while ago.
export function withoutStale(agents: Agent[], s: ClaudeSettings, now: number): Agent[] {
  return agents.map((a) => (a.status === "active" && !a.transcript && !a.process && now - at(a.startedAt) > s.AGENT_STALE_MS ? { ...a, status: "stopped" as const } : a));
}

// Of agents of one type, by their start: one that overlaps the one before is real, one that starts
// more than 30 s after the one before has stopped is another spawn, and what is left is a ghost of
// the shutdown. The one before is the one before in this order, a ghost or not; one that never stopped
// overlaps whatever comes.
export function withoutGhosts(agents: Agent[]): Agent[] {
  const types = new Map<string, Agent[]>();
  for (const a of agents) types.set(a.type, [...(types.get(a.type) ?? []), a]);
  const kept = new Set<Agent>();
  for (const same of types.values()) {
    same.sort((a, b) => at(a.startedAt) - at(b.startedAt));
    same.forEach((a, i) => {
      const before = same[i - 1];
      const stopped = before?.status === "stopped" && !before.reason ? at(before.stoppedAt) : NaN; // a reason: nobody saw it stop
      if (!before || Number.isNaN(stopped) || at(a.startedAt) < stopped || at(a.startedAt) - stopped > GHOST_MS) kept.add(a);
    });
  }
  return agents.filter((a) => kept.has(a));
}

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

export function lasted(a: Agent, now: number): number {
  return (a.status === "stopped" ? at(a.stoppedAt ?? a.updatedAt) : now) - at(a.startedAt);
}
