// Acts on a thing, told once for its buttons, its keys, its menu and the palette; and the cards that have
// the keys.
import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "./icons";
import { moved, setCardKeys, typing, type Key } from "./keys";

export interface Act {
  id: string;
  name: string;
  key?: string; // a letter, on the card that has the focus
  does?: string; // words for the key in the list of keys; else the name
  sure?: string; // a question asked before it is done, for three seconds; any other key is a no
  once?: boolean; // a click is enough for `sure`, a key is not (it spends, and what it spends stands above it)
  kind?: string; // class of its button
  title?: string;
  disabled?: boolean;
  run: () => unknown;
}

// A card may come under a mouse that stands still: a click on another card than the one that the mouse was
// moved to, or wheeled to, is none. The next one is meant.
const cardUnder = (t: EventTarget | null) => (t as Element).closest?.("[data-card]")?.getAttribute("data-card") ?? "";
let under: string | null = null; // null: unknown
let stands = ""; // of the mouse, its place
addEventListener("pointermove", (e) => {
  const place = `${e.screenX} ${e.screenY}`; // the browser tells of moves where only the page moved
  if (place !== stands) under = cardUnder(e.target);
  stands = place;
}, true);
addEventListener("pointerdown", (e) => e.pointerType !== "mouse" && (under = cardUnder(e.target)), true);
addEventListener("wheel", () => (under = null), { capture: true, passive: true });
addEventListener("click", (e) => {
  const is = cardUnder(e.target), meant = !e.detail || under === null || is === under;
  under = is;
  if (meant || !is) return;
  e.preventDefault();
  e.stopPropagation();
}, true);

// Pressing of acts: `asked` is the one that is asked about.
const SURE_MS = 3000;
export function useActs(acts: Act[]) {
  const asked = useSignal(""), busy = useRef(new Set<string>());
  useEffect(() => {
    if (!asked.value) return;
    const no = () => (asked.value = ""), timer = setTimeout(no, SURE_MS), letter = acts.find((a) => a.id === asked.value)?.key;
    const other = (e: KeyboardEvent) => e.key !== letter && e.key !== "Shift" && e.key !== "Enter" && e.key !== " " && no();
    addEventListener("keydown", other, true);
    return () => {
      clearTimeout(timer);
      removeEventListener("keydown", other, true);
    };
  }, [asked.value]);
  const press = (a: Act, click: boolean) => {
    if (a.disabled || busy.current.has(a.id)) return;
    if (a.sure && asked.value !== a.id && !(a.once && click)) asked.value = a.id;
    else {
      asked.value = "";
      busy.current.add(a.id);
      void Promise.resolve(a.run()).finally(() => busy.current.delete(a.id));
    }
  };
  const keys: Key[] = acts.filter((a) => a.key).map((a) => ({ key: a.key!, does: a.does ?? a.name, acts: true, run: () => press(a, false) }));
  return { asked: asked.value, press, keys };
}

export function ActButton({ act: a, on: { asked, press } }: { act: Act; on: ReturnType<typeof useActs> }) {
  const sure = asked === a.id, kind = a.kind ?? "";
  const click = (e: MouseEvent) => {
    if (e.detail > 1 || (e.detail === 0 && typing())) return; // the second of a double click; a blank within words
    press(a, e.isTrusted);
  };
  return (
    <button type="button" class={sure ? `${kind} sure` : kind} title={a.title} disabled={a.disabled} data-act={a.id} data-sure={a.sure} onClick={click} onKeyDown={(e) => e.repeat && e.preventDefault()}>
      {sure ? a.sure : a.name}
    </button>
  );
}
export function Sure({ name, sure, act, class: kind = "", disabled }: { name: string; sure: string; act: () => unknown; class?: string; disabled?: boolean }) {
  const one: Act = { id: name, name, sure, kind, disabled, run: act };
  return <ActButton act={one} on={useActs([one])} />;
}

// The first few as buttons, the rest behind ⋯.
export function ActRow({ acts, on, first = acts.length }: { acts: Act[]; on: ReturnType<typeof useActs>; first?: number }) {
  const more = acts.slice(first);
  return (
    <div class="row acts">
      {acts.slice(0, first).map((a) => <ActButton key={a.id} act={a} on={on} />)}
      {more.length ? <Menu label="More">{more.map((a) => <ActButton key={a.id} act={{ kind: "plain", ...a }} on={on} />)}</Menu> : null}
    </div>
  );
}

// A button with a list below it, which closes by Escape, by a click beside it, or when one of it was chosen.
export function Menu({ label, name, children }: { label: string; name?: ComponentChildren; children: ComponentChildren }) {
  const at = useRef<HTMLDetailsElement>(null);
  const close = () => at.current && (at.current.open = false);
  useEffect(() => {
    const beside = (e: Event) => at.current?.contains(e.target as Node) || close();
    addEventListener("pointerdown", beside);
    return () => removeEventListener("pointerdown", beside);
  }, []);
  const key = (e: KeyboardEvent) => {
    if (e.key !== "Escape" || !at.current?.open) return;
    e.stopPropagation();
    close();
    at.current.querySelector("summary")?.focus();
  };
  return (
    <details class="menu" ref={at} onKeyDown={key} onFocusOut={(e) => e.relatedTarget && !at.current?.contains(e.relatedTarget as Node) && close()}>
      <summary aria-label={label} title={label}>{name ?? <Icon name="more" />}</summary>
      <div class="items" onClick={(e) => (e.target as HTMLElement).closest("[data-act]:not([data-sure]), [data-act].sure, a") && close()}>{children}</div>
    </details>
  );
}

// ---- cards: j and k go through them, and one of them is in the order of Tab

// The name of the card that has, or had, the keyboard. One that goes gives it to the one that stands there.
let stood = { name: "", at: 0 };
const cards = () => [...document.querySelectorAll<HTMLElement>("main [data-card]")];
const nameOf = (card: HTMLElement) => card.dataset.card!;
const roving = signal(""); // the one that Tab reaches
addEventListener("focusin", (e) => {
  const card = (e.target as HTMLElement).closest<HTMLElement>("main [data-card]");
  if (!card) return;
  stood = { name: nameOf(card), at: cards().indexOf(card) };
  roving.value = stood.name;
});
addEventListener("pointerdown", (e) => {
  if (!(e.target as HTMLElement).closest("main [data-card]")) stood = { name: "", at: 0 };
});
export function moveCard(by: number) {
  const all = cards(), at = all.findIndex((c) => c.contains(document.activeElement));
  all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))]?.focus();
}
// Focus is nowhere, or on the place where a view is shown (app.tsx gives it that when somebody arrives).
export const unfocused = () => document.activeElement === document.body || document.activeElement?.id === "main";
function stand(preventScroll: boolean) {
  if (!stood.name || !unfocused() || document.querySelector("dialog[open]")) return;
  const all = cards(), same = all.find((c) => nameOf(c) === stood.name);
  if (!same) moved();
  (same ?? all[Math.min(stood.at, all.length - 1)])?.focus({ preventScroll });
}
// Focus in a view with cards: the keyboard stays where it was through acts and through other views.
export function useStand() {
  useLayoutEffect(() => {
    if (!cards().some((c) => nameOf(c) === roving.value)) roving.value = cards()[0] ? nameOf(cards()[0]!) : "";
    stand(true);
  });
}
export function Card({ name, label, keys, class: kind = "", children }: { name: string; label: string; keys: Key[]; class?: string; children: ComponentChildren }) {
  return (
    <div class={`card ${kind}`} data-card={name} role="group" aria-label={label} tabIndex={roving.value === name ? 0 : -1} ref={(el) => void (el && setCardKeys(el, keys))}>{children}</div>
  );
}
