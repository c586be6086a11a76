// Small parts that every view uses.
import { signal, useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useErrorBoundary, useLayoutEffect, useRef } from "preact/hooks";
import type { Status } from "./api";
import { typing } from "./keys";
import { statusWords } from "./words";

export function StatusDot({ status }: { status: Status }) {
  return <span class={`dot ${status}`} role="img" aria-label={statusWords[status]} title={statusWords[status]} />;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p><strong>{title}</strong></p>
      {children}
    </div>
  );
}

// What is shown comes from elsewhere: where a part cannot show it, the rest of the page stays.
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

// ---- what somebody writes

// As a `ref`: the focus goes to what appears because it was asked for. (The browser heeds autofocus only
// in what a dialog opens with.) One function, so that it is called once, and within the key or click.
export const focused = (el: HTMLElement | null) => el?.focus();

// A form of a card is done with: the card has the keyboard again.
export function leave(form: HTMLElement, close: () => void) {
  form.closest<HTMLElement>(".card")?.focus({ preventScroll: true });
  close();
}

// What was written and not sent, by what it is for: closing a form, or leaving the view, keeps it.
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
const inView = (el: HTMLElement | null) => el?.scrollIntoView({ block: "nearest" }); // in a list that scrolls, too
export const Problem = ({ text }: { text: string }) => (text ? <p role="alert" class="problem" ref={inView}>{text}</p> : null);

// A button of what cannot be taken back: it asks once more, for three seconds, and any other key is a no.
// `once`: a click is enough, a key is not (it spends, and what it spends stands above it).
const SURE_MS = 3000;
export function Sure({ letter, name, sure, act, once, class: kind = "", disabled }: {
  letter?: string; name: string; sure: string; act: () => unknown; once?: boolean; class?: string; disabled?: boolean;
}) {
  const asked = useSignal(false);
  useEffect(() => {
    if (!asked.value) return;
    const no = () => (asked.value = false), timer = setTimeout(no, SURE_MS);
    const other = (e: KeyboardEvent) => e.key !== letter && e.key !== "Shift" && e.key !== "Enter" && e.key !== " " && no();
    addEventListener("keydown", other, true);
    return () => {
      clearTimeout(timer);
      removeEventListener("keydown", other, true);
    };
  }, [asked.value]);
  const press = (e: MouseEvent) => {
    if (e.detail > 1 || (e.detail === 0 && typing())) return; // the second of a double click; a blank within words
    if (!asked.value && !(once && e.isTrusted)) asked.value = true;
    else {
      asked.value = false;
      void act();
    }
  };
  return (
    <button type="button" class={asked.value ? `${kind} sure` : kind} data-letter={letter} disabled={disabled} onClick={press} onKeyDown={(e) => e.repeat && e.preventDefault()}>
      {asked.value ? sure : name}
    </button>
  );
}

// ---- over the page

const dialogs = signal(0);

// A dialog over the page: the browser's own, which keeps the focus inside and closes with Escape.
export function Modal({ title, close, children, wide }: { title: string; close: () => void; children: ComponentChildren; wide?: boolean }) {
  const at = useRef<HTMLDialogElement>(null), beside = useRef(false);
  useLayoutEffect(() => {
    at.current?.showModal();
    dialogs.value++;
    return () => void dialogs.value--;
  }, []);
  return (
    <dialog ref={at} class={wide ? "wide" : ""} aria-label={title} onClose={close} onMouseDown={(e) => (beside.current = e.target === e.currentTarget)}
      onClick={(e) => beside.current && e.target === e.currentTarget && at.current?.close()}>
      <header>
        <h2>{title}</h2>
        <button class="plain" aria-label="Close" onClick={() => at.current?.close()}>×</button>
      </header>
      <div class="body">{children}</div>
      <Toasts />
    </dialog>
  );
}

// A line at the edge for what was done or went wrong. A dialog is above everything, and what is not in
// it cannot be read: then they stand there.
const toasts = signal<{ id: number; text: string; bad: boolean }[]>([]);
let toastId = 0;
export function toast(text: string, bad = false) {
  const id = ++toastId;
  toasts.value = [...toasts.value, { id, text, bad }].slice(-4);
  setTimeout(() => (toasts.value = toasts.value.filter((t) => t.id !== id)), bad ? 12000 : 5000);
}
export function Toasts({ page }: { page?: boolean }) {
  const at = useRef<HTMLDivElement>(null);
  const open = dialogs.value;
  useLayoutEffect(() => {
    at.current?.togglePopover(false); // what is shown last is above
    at.current?.togglePopover(true);
  }, [open]);
  return page && open ? null : (
    <div class="toasts" ref={at} popover="manual" role="status" aria-live="polite">
      {toasts.value.map((t) => <div key={t.id} class={t.bad ? "toast bad" : "toast"}>{t.text}</div>)}
    </div>
  );
}
// Do it, and say what went wrong in the words of the daemon.
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
