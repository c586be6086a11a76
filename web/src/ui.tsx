// Small parts that every view uses.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useErrorBoundary, useLayoutEffect, useRef } from "preact/hooks";
import type { Status } from "./api";
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

// A dialog over the page: the browser's own, which keeps the focus inside and closes with Escape.
export function Modal({ title, close, children, wide }: { title: string; close: () => void; children: ComponentChildren; wide?: boolean }) {
  const at = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    at.current?.showModal();
  }, []);
  return (
    <dialog ref={at} class={wide ? "wide" : ""} aria-label={title} onClose={close} onClick={(e) => e.target === e.currentTarget && at.current?.close()}>
      <header>
        <h2>{title}</h2>
        <button class="plain" aria-label="Close" onClick={() => at.current?.close()}>×</button>
      </header>
      <div class="body">{children}</div>
    </dialog>
  );
}

// A line at the edge for what was done or went wrong.
const toasts = signal<{ id: number; text: string; bad: boolean }[]>([]);
let toastId = 0;
export function toast(text: string, bad = false) {
  const id = ++toastId;
  toasts.value = [...toasts.value, { id, text, bad }].slice(-4);
  setTimeout(() => (toasts.value = toasts.value.filter((t) => t.id !== id)), bad ? 12000 : 5000);
}
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
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
