// The frame: sessions at the left, the place in the middle, Claude Code's agents below.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { signedIn, signOut } from "./api";
import { keep } from "./kept";
import { keys, lettersAct, setLettersAct, useKeys } from "./keys";
import { address, go, place } from "./router";
import { asks, claudeSessions, health, problem, sessions } from "./store";
import { link } from "./stream";
import { attempt, Empty, Guard, Modal, Sure, Toasts } from "./ui";
import { AgentLog } from "./views/agentlog";
import { Board } from "./views/board";
import { ClaudeView } from "./views/claude";
import { Costs } from "./views/costs";
import { Logs, Seal } from "./views/logs";
import { MemoryView } from "./views/memory";
import { NewTask, newTask } from "./views/newtask";
import { RunView } from "./views/run";
import { SessionView } from "./views/session";
import { cut, day, money } from "./words";

const help = signal(false);
const sideOpen = signal(false);

function SignIn() {
  return (
    <Empty title="Not signed in">
      <p>{problem.value || "This browser has no session with the daemon."}</p>
      <p>Run <code>ava dashboard</code> in a terminal and open the address that it prints.</p>
    </Empty>
  );
}

function toggleTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  keep("theme", root.dataset.theme);
}

const views: [view: string, name: string, key: string][] = [
  ["board", "Board", "g b"], ["logs", "Logs", "g l"], ["costs", "Costs", "g c"], ["memory", "Memory", "g m"],
];

function Top() {
  const h = health.value;
  return (
    <header class="top">
      <button class="plain narrow-only" aria-label="Sessions" aria-expanded={sideOpen.value} onClick={() => (sideOpen.value = !sideOpen.value)}>☰</button>
      <a class="name" href={address("board")}>ava</a>
      <nav aria-label="Views">
        {views.map(([view, name]) => (
          <a key={view} href={address(view)} aria-current={place.value.view === view ? "page" : undefined}>{name}</a>
        ))}
      </nav>
      <span class="grow soft ellipsis wide-only">
        {h ? `${h.runs.running} at work · ${money(h.today.cost_cents)} today${h.today.budget_cents ? ` of ${money(h.today.budget_cents)}` : ""} · ${h.model}` : ""}
      </span>
      <span class={`link ${link.value}`} role="status">{link.value === "live" ? "live" : link.value === "away" ? "no daemon, trying again" : "connecting"}</span>
      <a class="seal wide-only" href={address("logs")} title="Are the logs as they were sealed?"><Seal /></a>
      <button class="primary" onClick={() => (newTask.value = true)}>New task</button>
      <button class="plain" aria-label="Light or dark" title="Light or dark (t)" onClick={toggleTheme}>◐</button>
      <button class="plain" aria-label="Keys" title="Keys (?)" onClick={() => (help.value = true)}>?</button>
    </header>
  );
}

function Side() {
  const at = place.value;
  return (
    <aside class={sideOpen.value ? "side open" : "side"} aria-label="Sessions" onClick={() => (sideOpen.value = false)}>
      <ul>
        <li><a href={address("board")} aria-current={at.view === "board" && !at.id ? "page" : undefined}>All runs {asks.value.size ? <span class="tag yellow">{asks.value.size} to answer</span> : null}</a></li>
      </ul>
      <h2>Conversations</h2>
      {sessions.value.length === 0 ? <p class="soft" style="padding: 0 8px">None yet. <code>ava</code> in a terminal begins one.</p> : null}
      <ul>
        {sessions.value.slice(0, 100).map((s) => (
          <li key={s.session_id}>
            <a href={address("session", s.session_id)} aria-current={at.view === "session" && at.id === s.session_id ? "page" : undefined}>
              <div class="ellipsis">{s.title || "Untitled"}</div>
              <small>{day(s.updated_at)}{s.live_runs ? ` · ${s.live_runs} at work` : ""}{s.waiting ? ` · ${s.waiting} waiting` : ""}</small>
            </a>
          </li>
        ))}
      </ul>
      {claudeSessions.value.length ? <h2>Claude Code</h2> : null}
      <ul>
        {claudeSessions.value.slice(0, 100).map((s) => (
          <li key={s.sessionId}>
            <a href={address("claude", s.sessionId)} aria-current={at.view === "claude" && at.id === s.sessionId ? "page" : undefined}>
              <div class="ellipsis">{s.team || s.cwd.split("/").pop() || cut(s.sessionId, 12)}</div>
              <small>{day(s.updatedAt)}{s.agents.active ? ` · ${s.agents.active} active` : ""}</small>
            </a>
          </li>
        ))}
      </ul>
      <p style="padding: 12px 8px"><Sure class="plain soft" name="Sign out every browser" sure="Sign out every browser? Press again" act={() => attempt(signOut)} /></p>
    </aside>
  );
}

function Help() {
  const shown = new Map(keys.value.map((k) => [k.key, k.does]));
  return (
    <Modal title="Keys" close={() => (help.value = false)}>
      <dl class="facts">
        {[...shown].map(([key, does]) => [
          <dt key={key}>{key.split(" ").map((k) => <kbd key={k}>{k}</kbd>)}</dt>, <dd key={`${key}.`}>{does}</dd>,
        ])}
      </dl>
      <label class="row"><input type="checkbox" checked={lettersAct} onChange={(e) => setLettersAct(e.currentTarget.checked)} /> single letters are keys</label>
    </Modal>
  );
}

function View() {
  const { view, id } = place.value;
  if (view === "run") return <RunView key={id} id={id} />;
  if (view === "session") return <SessionView key={id} id={id} />;
  if (view === "claude") return <ClaudeView key={id} id={id} />;
  if (view === "logs") return <Logs />;
  if (view === "costs") return <Costs />;
  if (view === "memory") return <MemoryView />;
  if (view === "board") return <Board />;
  return <Empty title={`There is no page “${cut(view, 40)}”`}><p><a href={address("board")}>All runs</a></p></Empty>;
}

// The name of a view stands in the title, and who came by a key stands in it.
function useArrival() {
  const { view, id } = place.value, main = useRef<HTMLElement>(null);
  useEffect(() => {
    const name = views.find(([v]) => v === view)?.[1] ?? (id || view);
    document.title = `${name} · ava`;
    if (document.activeElement === document.body) main.current?.focus({ preventScroll: true });
  }, [view, id]);
  return main;
}

function Frame() {
  const main = useArrival();
  useKeys([
    { key: "?", does: "show the keys", run: () => (help.value = true) },
    { key: "n", does: "new task", run: () => (newTask.value = true) },
    { key: "t", does: "light or dark", run: toggleTheme },
    ...views.map(([view, name, key]) => ({ key, does: `go to ${name.toLowerCase()}`, run: () => go(view) })),
  ]);
  return (
    <>
      <Top />
      <Side />
      <main id="main" ref={main} tabIndex={-1}>{problem.value ? <Empty title="The daemon gave no answer"><p>{problem.value}</p></Empty> : <Guard key={`${place.value.view}/${place.value.id}`}><View /></Guard>}</main>
      <Guard><AgentLog /></Guard>
      {help.value ? <Help /> : null}
      {newTask.value ? <NewTask /> : null}
      <Toasts page />
    </>
  );
}

export function App() {
  return signedIn.value ? <Frame /> : <main><SignIn /></main>;
}
