// Small parts that every view uses.
import { batch, signal, useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useErrorBoundary, useLayoutEffect, useRef } from "preact/hooks";
import { get, type Item, type Run, type Status } from "./api";
import { Icon, type IconName } from "./icons";
import { live, now, stream } from "./store";
import { ago, date, duration, elapsed, exactly, statusWords } from "./words";

const looks: Partial<Record<Status, IconName>> = { starting: "queued", queued: "queued", running: "running", waiting: "waiting", parked: "parked", blocked: "queued", paused: "parked", success: "done", cancelled: "cancelled", not_started: "cancelled" };
export const lookOf = (status: Status): IconName => looks[status] ?? "failed"; // the name is its class too, for colour
export const StatusTag = ({ status, word = true }: { status: Status; word?: boolean }) => (
  <span class={`status ${lookOf(status)}`} title={statusWords[status]}>
    <Icon name={lookOf(status)} /><span class={word ? "" : "visually-hidden"}>{statusWords[status]}</span>
  </span>
);

// ---- clocks: the part that changes each second is a leaf, so that nothing around it is drawn again

export const Elapsed = ({ run }: { run: Run }) => <span class="number">{duration(elapsed(run, live(run) ? now.value : 0))}</span>;
export const Ago = ({ at }: { at: string }) => <time class="number" dateTime={at} title={exactly(at)}>{ago(at, now.value)}</time>;
export const Left = ({ until }: { until: string }) => <time class="number" dateTime={until} title={`until ${exactly(until)}`}>{leftWords(until, Date.parse(until) - now.value)}</time>;
const leftWords = (until: string, ms: number) => (ms <= 0 ? "expired" : ms > 86400000 ? `until ${date(until)}` : duration(ms));

// ---- reading

// The answer to a GET, asked for again when the connection was lost and when `on` says of an Item that it
// is another one by now. Of another path the last answer stays until there is a new one.
const AGAIN_MS = 500;
export function useGet<T>(path: string, on?: (i: Item) => boolean): { data: T | null; error: string; busy: boolean; reload: () => void } {
  const data = useSignal<T | null>(null), error = useSignal(""), busy = useSignal(!!path), tries = useSignal(0), changed = useRef(false), timer = useRef(0);
  const again = () => {
    if (busy.peek()) changed.current = true;
    else
      timer.current ||= window.setTimeout(() => {
        timer.current = 0;
        tries.value++;
      }, AGAIN_MS);
  };
  useEffect(() => {
    const stop = new AbortController();
    if (!path) return;
    const done = (answer: T | null, why: string) =>
      batch(() => {
        if (stop.signal.aborted) return;
        if (answer) data.value = answer;
        error.value = why;
        busy.value = false;
        if (changed.current) again();
      });
    busy.value = true;
    changed.current = false;
    get<T>(path, stop.signal).then((answer) => done(answer, ""), (e) => done(null, (e as Error).message));
    return () => stop.abort();
  }, [path, tries.value]);
  useEffect(() => {
    const offs = [stream.onAgain(again), stream.onItem((i) => on?.(i) && again())];
    return () => {
      clearTimeout(timer.current);
      timer.current = 0;
      offs.forEach((off) => off());
    };
  }, [path]);
  return { data: data.value, error: error.value, busy: busy.value, reload: () => void tries.value++ };
}
export const Reading = ({ error }: { error: string }) => (error ? <p role="alert" class="problem">{error}</p> : <p class="soft">Loading…</p>);

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p><strong>{title}</strong></p>
      {children}
    </div>
  );
}

// Content that is shown comes from elsewhere: where a part cannot show it, the rest of the page stays.
export function Guard({ children }: { children: ComponentChildren }) {
  const [error, again] = useErrorBoundary();
  if (!error) return <>{children}</>;
  return (
    <Empty title="This cannot be shown">
      <p>{(error as Error).message}</p>
      <p><button onClick={again}>Try again</button></p>
    </Empty>
  );
}

// ---- writing

// A `ref` that gives the focus to a field that appears because it was asked for. (The browser heeds autofocus only in what
// a dialog opens with.) One function, so that it is called once, and within the key or click.
export const focused = (el: HTMLElement | null) => el?.focus();

// A form of a card is done with: the card has the keyboard again.
export function leave(form: HTMLElement, close: () => void) {
  form.closest<HTMLElement>("[data-card]")?.focus({ preventScroll: true });
  close();
}

// Drafts not sent yet, by their purpose: closing a form, or leaving the view, keeps them.
const drafts = new Map<string, Signal<string>>();
export function draft(name: string, text = ""): Signal<string> {
  if (!drafts.has(name)) drafts.set(name, signal(text));
  return drafts.get(name)!;
}

// Sending a form: what went wrong stands in it, and what was written stays.
export function useSend() {
  const problem = useSignal(""), busy = useSignal(false);
  const send = async (f: () => Promise<unknown>, done = "") => {
    busy.value = true;
    try {
      await f();
      problem.value = "";
      if (done) toast(done);
      return true;
    } catch (e) {
      problem.value = (e as Error).message;
      return false;
    } finally {
      busy.value = false;
    }
  };
  return { problem, busy, send };
}
const inView = (el: HTMLElement | null) => el?.scrollIntoView({ block: "nearest" }); // also in a list that scrolls
export const Problem = ({ text }: { text: string }) => (text ? <p role="alert" class="problem" ref={inView}>{text}</p> : null);

// ---- dialogs and notes over the page

const dialogs = signal(0);

// A dialog over the page: the browser's own, which keeps the focus inside and closes with Escape.
export function Modal({ title, close, children, wide }: { title: string; close: () => void; children: ComponentChildren; wide?: boolean }) {
  const at = useRef<HTMLDialogElement>(null), beside = useRef(false);
  useLayoutEffect(() => {
    at.current?.showModal();
    dialogs.value++;
    const dialog = at.current;
    return () => {
      dialog?.close(); // gives the focus back, also where it ends by what was done in it
      dialogs.value--;
    };
  }, []);
  // Closing is asked of its owner and never done to the element alone: the element tells of that a moment later, and would
  // end what was opened again meanwhile. A part that has ended already has no element any more.
  return (
    <dialog ref={at} class={wide ? "wide" : ""} aria-label={title} onClose={() => at.current && close()}
      onCancel={(e) => e.target === e.currentTarget && (e.preventDefault(), close())} onMouseDown={(e) => (beside.current = e.target === e.currentTarget)}
      onClick={(e) => beside.current && e.target === e.currentTarget && close()}>
      <header>
        <h2>{title}</h2>
        <button class="plain" aria-label="Close" onClick={close}>×</button>
      </header>
      <div class="body">{children}</div>
      <Toasts />
    </dialog>
  );
}

// A line at the edge for what was done or went wrong. A dialog is above everything, and lines outside of
// it cannot be read: while one is open they stand in it.
interface Line {
  id: number;
  text: string;
  bad: boolean;
  undo?: () => void;
}
const toasts = signal<Line[]>([]);
let toastId = 0;
export function toast(text: string, bad = false, undo?: () => void, ms = bad ? 12000 : 5000) {
  const id = ++toastId;
  toasts.value = [...toasts.value, { id, text, bad, undo }].slice(-4);
  setTimeout(() => drop(id), ms);
  return id;
}
const drop = (id: number) => (toasts.value = toasts.value.filter((t) => t.id !== id));

// Acts that cannot be taken back begin UNDO_MS later, and not at all where somebody takes them back: by
// their line, by "z", or by asking for them a second time. What has a way `back` instead of an `act` is done already.
const UNDO_MS = 3000;
let waiting = 0; // acts that are not done yet
export const undoing = signal<ReadonlyMap<string, () => void>>(new Map()); // the key is the thing that it is done to
export function undoable(name: string, text: string, act?: () => void, back?: () => void) {
  const undo = undoing.value.get(name), one = act ? 1 : 0;
  if (undo) return undo();
  waiting += one;
  const end = (f?: () => void) => {
    clearTimeout(timer);
    drop(line);
    waiting -= one;
    undoing.value = new Map([...undoing.value].filter(([n]) => n !== name));
    f?.();
  };
  const timer = setTimeout(() => end(act), UNDO_MS), line = toast(text, false, () => end(back), UNDO_MS);
  undoing.value = new Map([...undoing.value, [name, () => end(back)]]);
}

// A tab that closes meanwhile asks first: behind it nothing would be done.
addEventListener("beforeunload", (e) => waiting && e.preventDefault());

export function Toasts({ page }: { page?: boolean }) {
  const at = useRef<HTMLDivElement>(null);
  const open = dialogs.value;
  useLayoutEffect(() => {
    at.current?.togglePopover(false); // the popover that is shown last is above
    at.current?.togglePopover(true);
  }, [open]);
  return page && open ? null : (
    <div class="toasts" ref={at} popover="manual" role="status" aria-live="polite">
      {toasts.value.map((t) => (
        <div key={t.id} class={t.bad ? "toast bad" : "toast"}>{t.text}{t.undo ? <> <button class="plain" onClick={t.undo}>Undo <kbd>z</kbd></button></> : null}</div>
      ))}
    </div>
  );
}
// News, said to people who hear the page and do not see it: what comes within a second with one breath.
const heard = signal<string[]>([]);
let breath: string[] = [];
export function hear(news: string) {
  if (breath.push(news) > 1) return;
  setTimeout(() => {
    heard.value = breath.length > HEARD ? [`${breath.length} things have happened`] : breath;
    breath = [];
  }, 1000);
}
const HEARD = 5;
export const Heard = () => <div class="visually-hidden" role="log" aria-live="polite">{heard.value.map((text, i) => <p key={i}>{text}</p>)}</div>;

// The act, and where it went wrong the words of the daemon.
export async function attempt(f: () => Promise<unknown>, done = ""): Promise<boolean> {
  try {
    await f();
    if (done) toast(done);
    return true;
  } catch (e) {
    toast((e as Error).message, true);
    return false;
  }
}
export const copy = (text: string, what: string) => attempt(() => navigator.clipboard.writeText(text), `Copied ${what}`);
