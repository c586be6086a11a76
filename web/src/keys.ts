// Keys of the page, by function. A view adds its own while it is shown; a card has the letters of its
// actions while it has the focus itself. The list of `?` and the palette are made of them. Nothing is
// taken while somebody types, nor with Ctrl, Alt or Meta. Letters close behind one that is no key are
// words that missed their field.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { keep, kept } from "./kept";

export interface Key {
  key: string; // KeyboardEvent.key; "g b" is one after the other; "" is in the palette alone
  does: string;
  acts?: boolean; // starts or ends something: never within a word
  run: () => void;
}
export const keys = signal<Key[]>([]);

// Letters are keys, or not: people who speak to the computer, or type by accident, turn them off.
export const lettersAct = signal(kept("keys") !== "off");
export function setLettersAct(on: boolean) {
  lettersAct.value = on;
  keep("keys", on ? "on" : "off");
}

export function useKeys(mine: Key[], on: unknown[] = []) {
  useEffect(() => {
    keys.value = [...keys.value, ...mine];
    return () => {
      keys.value = keys.value.filter((k) => !mine.includes(k));
    };
  }, on);
}

// The keys of a card, by its element: the newest that it was drawn with.
const cardKeys = new WeakMap<Element, Key[]>();
export const setCardKeys = (card: Element, of: Key[]) => void cardKeys.set(card, of);
const here = () => (document.activeElement && cardKeys.get(document.activeElement)) ?? [];

const WORD_MS = 500; // the longest pause between two letters of a word
let first = ""; // the first key of two
let firstAt = 0;
let last = ""; // pressed, and when
let lastAt = 0;
let strayAt = 0; // a letter that was no key
export const typing = () => Date.now() - strayAt < WORD_MS;
let movedAt = 0;
export const moved = () => void (movedAt = Date.now()); // the focus, by itself: acts that follow were for another card
export const inField = (e: Event) => {
  const t = e.target as HTMLElement;
  return t.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(t.tagName);
};

addEventListener("pointerdown", () => (lastAt = strayAt = 0)); // letters typed behind a click are something new
addEventListener("keydown", (e) => {
  const now = Date.now();
  if (e.ctrlKey || e.altKey || e.metaKey || e.isComposing || e.key === "Shift" || e.defaultPrevented || inField(e)) return;
  if (!lettersAct.value || document.querySelector("dialog[open]")) return; // an open dialog has the keys
  const all = [...keys.value, ...here()];
  const both = first && now - firstAt < 1000 ? `${first} ${e.key}` : "";
  const hit = all.findLast((k) => k.key === both) ?? all.findLast((k) => k.key === e.key);
  const begins = !hit && all.some((k) => k.key.startsWith(`${e.key} `));
  const stray = !!hit?.acts && now - movedAt < WORD_MS;
  const within = typing() || stray || (hit?.acts && e.key !== last && now - lastAt < WORD_MS);
  if (stray) moved();
  first = "";
  last = e.key;
  lastAt = now;
  if (within || (!hit && !begins)) {
    if (/^[^ ]$/u.test(e.key)) strayAt = now;
  } else if (hit) {
    e.preventDefault();
    if (!e.repeat || !hit.acts) hit.run();
  } else {
    first = e.key;
    firstAt = now;
  }
});
