// The frame: the views at the left (on a phone below), the place in the middle.
import { effect, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { signedIn } from "./api";
import { Icon, type IconName } from "./icons";
import { looks, setLook } from "./kept";
import { keys, useKeys } from "./keys";
import { address, go, HOME, place } from "./router";
import { claudeSessions, health, problem, runs, working } from "./store";
import { link } from "./stream";
import { attention, needed } from "./attention";
import { Empty, Guard, Heard, Modal, Toasts, undoing } from "./ui";
import { AgentLog } from "./views/agentlog";
import { Chat } from "./views/chat";
import { ClaudeView } from "./views/claude";
import { Compare } from "./views/compare";
import { Costs } from "./views/costs";
import { GroupView } from "./views/group";
import { Inbox } from "./views/inbox";
import { Logs } from "./views/logs";
import { MemoryView } from "./views/memory";
import { NewTask, newTask } from "./views/newtask";
import { OrdersView } from "./views/orders";
import { Palette, palette } from "./views/palette";
import { RunView } from "./views/run";
import { Runs } from "./views/runs";
import { Settings } from "./views/settings";
import { cut, money } from "./words";

const help = signal(false);

function SignIn() {
  return (
    <Empty title="Not signed in">
      <p>{problem.value || "This browser has no session with the daemon."}</p>
      <p>Run <code>ava dashboard</code> in a terminal and open the address that it prints.</p>
    </Empty>
  );
}

function toggleTheme() {
  const dark = looks.theme.value ? looks.theme.value === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  setLook("theme", dark ? "light" : "dark");
}

interface Room {
  view: string;
  name: string;
  key: string;
  icon: IconName;
  small?: boolean; // among "More" on a phone
  Part: (at: { id: string }) => preact.JSX.Element | null;
}
const rooms: Room[] = [
  { view: "inbox", name: "Inbox", key: "g i", icon: "inbox", Part: Inbox },
  { view: "runs", name: "Runs", key: "g r", icon: "runs", Part: Runs },
  { view: "chat", name: "Chat", key: "g h", icon: "chat", Part: Chat },
  { view: "claude", name: "Claude Code", key: "g a", icon: "claude", small: true, Part: ClaudeView },
  { view: "orders", name: "Orders", key: "g o", icon: "orders", small: true, Part: OrdersView },
  { view: "costs", name: "Costs", key: "g c", icon: "costs", Part: Costs },
  { view: "logs", name: "Logs", key: "g l", icon: "logs", small: true, Part: Logs },
  { view: "memory", name: "Memory", key: "g m", icon: "memory", small: true, Part: MemoryView },
  { view: "settings", name: "Settings", key: "g s", icon: "settings", small: true, Part: Settings },
];
const inner: Record<string, Room["Part"]> = { run: RunView, compare: Compare, group: GroupView }; // reached from Runs
const roomOf = (view: string) => (Object.hasOwn(inner, view) ? "runs" : view);

const linkWords = { live: "Live", away: "No daemon, trying again", connecting: "Connecting" };
function Rail() {
  const h = health.value, at = roomOf(place.value.view), active = claudeSessions.value.reduce((n, s) => n + s.agents.active, 0);
  const count = (view: string) => (view === "inbox" ? needed.value : view === "runs" ? working.value.length : view === "claude" ? active : 0);
  return (
    <header class="rail">
      <a class="name" href={address(HOME)} aria-label="ava, inbox">ava</a>
      <button class="primary new" aria-label="New task" onClick={() => (newTask.value = true)}><Icon name="plus" /><span>New task</span></button>
      <nav aria-label="Views">
        {rooms.map((r) => (
          <a key={r.view} class={r.small ? "small" : ""} href={address(r.view)} title={r.name} aria-current={at === r.view ? "page" : undefined}>
            <Icon name={r.icon} /><span>{r.name}</span>{count(r.view) ? <b class={r.view === "inbox" ? "count needs" : "count"}>{count(r.view)}</b> : null}
          </a>
        ))}
        <button class="plain more" aria-label="More" onClick={() => (palette.value = true)}><Icon name="more" /><span>More</span></button>
      </nav>
      <div class="foot">
        <span class={`link ${link.value}`} role="status">{linkWords[link.value]}</span>
        {h ? <a class="today" href={address("costs")} title="Spent today">{money(h.today.cost_cents)}{h.today.budget_cents ? ` of ${money(h.today.budget_cents)}` : ""}</a> : null}
        <span class="row">
          <button class="plain" aria-label="Search and commands" title="Search and commands (Ctrl K)" onClick={() => (palette.value = true)}><Icon name="search" /></button>
          <button class="plain" aria-label="Light or dark" title="Light or dark (t)" onClick={toggleTheme}><Icon name="theme" /></button>
          <button class="plain" aria-label="Keys" title="Keys (?)" onClick={() => (help.value = true)}><Icon name="help" /></button>
        </span>
      </div>
    </header>
  );
}

function Help() {
  const shown = new Map(keys.value.filter((k) => k.key).map((k) => [k.key, k.does]));
  return (
    <Modal title="Keys" close={() => (help.value = false)}>
      <dl class="facts">
        {[...shown].map(([key, does]) => [<dt key={key}>{key.split(" ").map((k) => <kbd key={k}>{k}</kbd>)}</dt>, <dd key={`${key}.`}>{does}</dd>])}
      </dl>
      <p class="soft">On a card that has the focus: <kbd>Enter</kbd> opens it; <kbd>y</kbd> and <kbd>x</kbd> answer a quote, each pressed twice; <kbd>x</kbd> cancels a run, <kbd>s</kbd> messages it, <kbd>r</kbd> resumes it. <a href={address("settings")} onClick={() => (help.value = false)}>Settings</a> turn single letters off.</p>
    </Modal>
  );
}

function View() {
  const { view, id } = place.value;
  const Part = (Object.hasOwn(inner, view) && inner[view]) || rooms.find((r) => r.view === view)?.Part;
  if (Part) return <Part key={Object.hasOwn(inner, view) ? id : view} id={id} />;
  return <Empty title={`There is no page “${cut(view, 40)}”`}><p><a href={address("runs")}>All runs</a></p></Empty>;
}

// The name of a view is said when it is another one, and a person who came by a key stands in it.
const nameHere = () => rooms.find((r) => r.view === place.value.view)?.name ?? cut(runs.value.get(place.value.id)?.task ?? (place.value.id || place.value.view), 60);
function useArrival() {
  const { view, id } = place.value, main = useRef<HTMLElement>(null);
  useEffect(() => {
    if (document.activeElement === document.body) main.current?.focus({ preventScroll: true });
  }, [view, id]);
  useEffect(() => effect(() => attention(nameHere())), []);
  return main;
}

function Frame() {
  const main = useArrival();
  useKeys([
    { key: "?", does: "show the keys", run: () => (help.value = true) },
    { key: "n", does: "new task", run: () => (newTask.value = true) },
    { key: "t", does: "light or dark", run: toggleTheme },
    { key: "z", does: "undo, while it can be", run: () => [...undoing.value.values()].at(-1)?.() },
    ...rooms.map((r) => ({ key: r.key, does: `go to ${r.name}`, run: () => go(r.view) })),
  ]);
  const { view, id } = place.value;
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), main.current?.focus())}>Skip to the page</a>
      <Rail />
      <main id="main" ref={main} tabIndex={-1} aria-label={nameHere()}>
        {problem.value ? <Empty title="The daemon gave no answer"><p>{problem.value}</p></Empty> : <Guard key={`${view}/${id}`}><View /></Guard>}
      </main>
      {view === "claude" ? <Guard><AgentLog /></Guard> : null}
      {help.value ? <Help /> : null}
      {newTask.value ? <NewTask /> : null}
      {palette.value ? <Palette rooms={rooms} /> : null}
      <Toasts page />
      <Heard />
    </>
  );
}

export function App() {
  return signedIn.value ? <Frame /> : <main><SignIn /></main>;
}
