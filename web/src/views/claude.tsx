// A session of Claude Code: its tasks on a board, its agents as the tree in which they were spawned.
import type { Agent, ClaudeTask } from "../api";
import { lasted, treeOf, withoutGhosts, withoutStale } from "../agents";
import { claudeAgents, claudeSessions, claudeSettings, claudeTasks, now } from "../store";
import { Empty } from "../ui";
import { cut, day, plain, tokens } from "../words";
import { opened } from "./agentlog";
import { Column } from "./board";

const columns: [name: string, status: ClaudeTask["status"]][] = [["Pending", "pending"], ["In progress", "in_progress"], ["Completed", "completed"]];

function Tasks() {
  const all = claudeTasks.value;
  if (!all.length) return null;
  return (
    <div class="board">
      {columns.map(([name, status]) => {
        const mine = all.filter((t) => t.status === status).sort((a, b) => a.id.localeCompare(b.id, undefined, { numeric: true }));
        return (
          <Column key={status} name={name} count={mine.length}>
            {mine.map((t) => (
              <li key={t.id} class="card panel" tabIndex={0}>
                <strong>{t.subject}</strong>
                {status === "in_progress" && t.activeForm ? <small>{t.activeForm}</small> : null}
                {t.unreadable ? <small>This file cannot be read: {t.unreadable}</small> : null}
                {t.description ? <small>{cut(t.description, 200)}</small> : null}
                <small>#{t.id}{t.owner ? ` · ${t.owner}` : ""}{t.blockedBy?.length ? ` · waits for #${t.blockedBy.join(", #")}` : ""}</small>
              </li>
            ))}
          </Column>
        );
      })}
    </div>
  );
}

function Branch({ agent: a, tree }: { agent: Agent; tree: Map<string, Agent[]> }) {
  const children = tree.get(a.agentId);
  return (
    <li>
      <button class="plain row leaf" data-agent={a.agentId} onClick={() => (opened.value = a.agentId)}>
        <span class={`dot ${a.status}`} role="img" aria-label={a.status} />
        <strong>{a.name || a.type}</strong>
        <span>{a.description ?? ""}</span>
        <small>{lasted(a, now.value)}{a.usage ? ` · ${tokens(a.usage.input + a.usage.cacheRead + a.usage.cacheWrite + a.usage.output)} tokens` : ""}{a.model ? ` · ${a.model}` : ""}</small>
      </button>
      {a.activity || a.lastMessage ? <p class="soft said">{cut(plain((a.activity || a.lastMessage)!), 160)}</p> : null}
      {children ? <ul>{children.map((c) => <Branch key={c.agentId} agent={c} tree={tree} />)}</ul> : null}
    </li>
  );
}

export function ClaudeView({ id }: { id: string }) {
  const s = claudeSessions.value.find((x) => x.sessionId === id || x.team === id);
  const all = withoutGhosts(withoutStale(claudeAgents.value, claudeSettings.value, now.value)).sort((a, b) => a.startedAt.localeCompare(b.startedAt));
  const tree = treeOf(all);
  return (
    <>
      <h1>{s?.team || s?.cwd || "Claude Code"}</h1>
      <p class="soft">Session <span class="mono">{id}</span>{s ? `, changed ${day(s.updatedAt)}` : ""}</p>
      <Tasks />
      {all.length === 0 && claudeTasks.value.length === 0 ? (
        <Empty title="No agents in this session"><p>Cards come from Claude Code's hooks: <code>ava hooks install</code> sets them up, <code>ava hooks</code> says whether they work.</p></Empty>
      ) : all.length === 0 ? null : (
        <section class="panel tree" aria-label="Agents"><h2>Agents</h2><ul>{tree.get("")?.map((a) => <Branch key={a.agentId} agent={a} tree={tree} />)}</ul></section>
      )}
    </>
  );
}
