// The Agent Log: the newest agents of a session of Claude Code, in a row below everything. Whether
// it is open is remembered under the name that its specification gives.
import { computed, signal } from "@preact/signals";
import type { Agent } from "../api";
import { isCold, lasted, quiet, shown } from "../agents";
import { keep, kept } from "../kept";
import { Markdown } from "../markdown";
import { claudeAgents, claudeId, claudeSettings, now } from "../store";
import { Modal } from "../ui";
import { cut, exactly, plain, tokens } from "../words";

const KEY = "agentFooterCollapsed";
const TEXT = 60;

const collapsed = signal(kept(KEY) === "true");
function toggle() {
  collapsed.value = !collapsed.value;
  keep(KEY, String(collapsed.value));
}

export const opened = signal(""); // the agent whose card is looked at
// Agents are asked for again and again while there are any (store.ts): each time it is judged how they are.
const agents = computed(() => shown(claudeAgents.value, claudeSettings.value, Date.now()));
export const Lasted = ({ agent, of = lasted }: { agent: Agent; of?: typeof lasted }) => <span class="number">{of(agent, now.value)}</span>;

export function AgentCard({ agent: a }: { agent: Agent }) {
  const text = String(a.lastMessage || a.activity || a.description || "");
  return (
    <button class={isCold(a, claudeSettings.value, Date.now()) ? "agent cold" : "agent"} data-agent={a.agentId} onClick={() => (opened.value = a.agentId)}>
      <span class="row">
        <span class={`dot ${a.status}`} role="img" aria-label={a.status} />
        <strong class="ellipsis">{a.name || a.type}</strong>
        <small><Lasted agent={a} /></small>
      </span>
      {text ? <small class="ellipsis">{cut(plain(text), TEXT)}</small> : null}
    </button>
  );
}

export function AgentModal() {
  const a = claudeAgents.value.find((x) => x.agentId === opened.value);
  if (!a) return null;
  return (
    <Modal title={a.name ? `${a.name} (${a.type})` : a.type} close={() => (opened.value = "")}>
      <dl class="facts">
        <dt>Status</dt><dd><span class={`dot ${a.status}`} /> {a.status}{a.reason === "unknown" ? <>, no signal for <Lasted agent={a} of={quiet} /></> : a.reason ? `, ${a.reason}` : ""}</dd>
        <dt>ID</dt><dd class="mono">{a.agentId}</dd>
        {a.description ? <><dt>Task</dt><dd>{plain(String(a.description))}</dd></> : null}
        {a.activity ? <><dt>Doing</dt><dd>{plain(String(a.activity))}</dd></> : null}
        <dt>Duration</dt><dd><Lasted agent={a} /></dd>
        <dt>Started</dt><dd>{exactly(a.startedAt)}</dd>
        {a.stoppedAt ? <><dt>Stopped</dt><dd>{exactly(a.stoppedAt)}</dd></> : <><dt>Updated</dt><dd>{exactly(a.updatedAt)}</dd></>}
        {a.model ? <><dt>Model</dt><dd>{a.model}</dd></> : null}
        {a.usage ? <><dt>Tokens</dt><dd>{tokens(a.usage.input + a.usage.cacheRead + a.usage.cacheWrite)} in ({tokens(a.usage.cacheRead)} from its cache), {tokens(a.usage.output)} out</dd></> : null}
      </dl>
      {a.lastMessage ? <section aria-label="Last message"><Markdown text={a.lastMessage} /></section> : <p class="soft">It has said nothing yet.</p>}
    </Modal>
  );
}

export function AgentLog() {
  if (!claudeId.value) return null;
  return (
    <footer class="agentlog" aria-label="Agent Log">
      <button class="plain" aria-expanded={!collapsed.value} onClick={toggle}>
        {collapsed.value ? "▸" : "▾"} Agent Log <span class="tag">{agents.value.length}</span>
      </button>
      {collapsed.value ? null : agents.value.length === 0 ? (
        <p class="soft">No agents in this session.</p>
      ) : (
        <div class="agents" tabIndex={0} role="group" aria-label="Agents">{agents.value.map((a) => <AgentCard key={a.agentId} agent={a} />)}</div>
      )}
      <AgentModal />
    </footer>
  );
}
