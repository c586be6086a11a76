// Sessions of Claude Code: the list of them, and one: its tasks on a board, its agents as the tree in which
// they were spawned. Below everything is the Agent Log of the same session.
import type { Agent, ClaudeTask } from "../api";
import { treeOf, withoutGhosts, withoutStale } from "../agents";
import { address } from "../router";
import { claudeAgents, claudeId, claudeSessions, claudeSettings, claudeTasks } from "../store";
import { Ago, Empty } from "../ui";
import { cut, modelName, plain, tokens } from "../words";
import { Lasted, opened } from "./agentlog";
import { Column } from "./board";
import "./claude.css";

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
              <li key={t.id} class="card panel">
                <strong>{t.subject}</strong>
                {status === "in_progress" && t.activeForm ? <small>{t.activeForm}</small> : null}
                {t.unreadable ? <small>This file cannot be read: {t.unreadable}</small> : null}
                {t.description ? <small>{cut(plain(t.description), 200)}</small> : null}
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
  const children = tree.get(a.agentId), says = a.activity || a.lastMessage;
  return (
    <li>
      <button class="plain row leaf" data-agent={a.agentId} onClick={() => (opened.value = a.agentId)}>
        <span class={`dot ${a.status}`} role="img" aria-label={a.status} />
        <strong>{a.name || a.type}</strong>
        {a.description ? <span>{plain(String(a.description))}</span> : null}
        <small><Lasted agent={a} />{a.usage ? ` · ${tokens(a.usage.input + a.usage.cacheRead + a.usage.cacheWrite + a.usage.output)} tokens` : ""}{a.model ? ` · ${modelName(a.model)}` : ""}</small>
      </button>
      {says ? <p class="soft says ellipsis">{cut(plain(String(says)), 160)}</p> : null}
      {children ? <ul>{children.map((c) => <Branch key={c.agentId} agent={c} tree={tree} />)}</ul> : null}
    </li>
  );
}

function List({ id }: { id: string }) {
  return (
    <nav class="list" aria-label="Sessions of Claude Code">
      <h1>Claude Code</h1>
      {claudeSessions.value.map((s) => {
        const { active, idle, stopped } = s.agents, counts: [number, string][] = [[active, "active"], [idle, "idle"], [stopped, "stopped"]];
        return (
          <a key={s.sessionId} href={address("claude", s.sessionId)} aria-current={id === s.sessionId || id === s.team ? "page" : undefined}>
            <div class="ellipsis" title={s.cwd}>{nameOf(s.team, s.cwd, s.sessionId)}</div>
            <small>{counts.filter(([n]) => n).map(([n, word]) => <span key={word}><span class={`dot ${word}`} /> {n} {word} · </span>)}<Ago at={s.updatedAt} /></small>
          </a>
        );
      })}
    </nav>
  );
}
const nameOf = (team = "", cwd = "", id = "") => team || cwd.replace(/.*\/(?=.)/, "") || id.slice(0, 8);

export function ClaudeView({ id: named }: { id: string }) {
  const id = named || claudeId.value, s = claudeSessions.value.find((x) => x.sessionId === id || x.team === id);
  const all = withoutGhosts(withoutStale(claudeAgents.value, claudeSettings.value, Date.now())).sort((a, b) => a.startedAt.localeCompare(b.startedAt));
  const tree = treeOf(all), none = !all.length && !claudeTasks.value.length;
  const how = <p>Agents appear here by Claude Code's hooks: <code>ava hooks install</code> sets them up, <code>ava hooks</code> says whether they work.</p>;
  if (!id) return <Empty title="No sessions of Claude Code yet"><h1 class="visually-hidden">Claude Code</h1>{how}</Empty>;
  return (
    <div class={named ? "sides inner" : "sides"}>
      <List id={id} />
      <section class="session stack" aria-label="Session">
        <header>
          <div class="row head"><a class="back" href={address("claude")} aria-label="All sessions">‹</a><h1 class="grow ellipsis">{nameOf(s?.team, s?.cwd, id)}</h1></div>
          <p class="soft">{s?.cwd ? <span class="mono">{s.cwd} · </span> : null}session <span class="mono" title={s?.sessionId ?? id}>{(s?.sessionId ?? id).slice(0, 8)}</span>{s ? <> · changed <Ago at={s.updatedAt} /></> : null}</p>
        </header>
        <Tasks />
        {none ? <Empty title="No agents in this session">{how}</Empty> : all.length === 0 ? null : (
          <section class="panel tree" aria-label="Agents"><h2>Agents</h2><ul>{tree.get("")?.map((a) => <Branch key={a.agentId} agent={a} tree={tree} />)}</ul></section>
        )}
      </section>
    </div>
  );
}
