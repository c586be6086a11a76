// Keys of the page. A view adds its own while it is shown; the list of `?` is made of them. Nothing
// is taken while somebody types, nor with Ctrl, Alt or Meta. Letters close behind one that is no key
// are words that missed their field.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { keep, kept } from "./kept";

export interface Key {
  key: string; // as KeyboardEvent.key; "g b": one after the other
  does: string;
  acts?: boolean; // starts or ends something: never within a word
  run: () => void;
}
export const keys = signal<Key[]>([]);

// Whether letters are keys at all: who speaks to the computer, or types by accident, turns them off.
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

const WORD_MS = 500; // between two letters of a word, at the most
let first = ""; // of two keys
let firstAt = 0;
let last = ""; // pressed, and when
let lastAt = 0;
let strayAt = 0; // a letter that was no key
export const typing = () => Date.now() - strayAt < WORD_MS;

addEventListener("pointerdown", () => (lastAt = strayAt = 0)); // what is typed behind it is something new
addEventListener("keydown", (e) => {
  const t = e.target as HTMLElement, now = Date.now();
  if (e.ctrlKey || e.altKey || e.metaKey || e.isComposing || e.key === "Shift" || t.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(t.tagName)) return;
  if (!lettersAct.value || document.querySelector("dialog[open]")) return; // it has the keys
  const both = first && now - firstAt < 1000 ? `${first} ${e.key}` : "";
  const hit = keys.value.findLast((k) => k.key === both) ?? keys.value.findLast((k) => k.key === e.key);
  const begins = !hit && keys.value.some((k) => k.key.startsWith(`${e.key} `));
  const within = typing() || (hit?.acts && e.key !== last && now - lastAt < WORD_MS);
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
