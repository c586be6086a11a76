// Keys of the page. A view adds its own while it is shown; the list of `?` is made of them. Nothing
// is taken while somebody types, nor with Ctrl, Alt or Meta.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

export interface Key {
  key: string; // as KeyboardEvent.key; "g b": one after the other
  does: string;
  run: () => void;
}
export const keys = signal<Key[]>([]);

export function useKeys(mine: Key[], on: unknown[] = []) {
  useEffect(() => {
    keys.value = [...keys.value, ...mine];
    return () => {
      keys.value = keys.value.filter((k) => !mine.includes(k));
    };
  }, on);
}

let first = ""; // of two keys
let firstAt = 0;
addEventListener("keydown", (e) => {
  const t = e.target as HTMLElement;
  if (e.ctrlKey || e.altKey || e.metaKey || t.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(t.tagName)) return;
  if (document.querySelector("dialog[open]")) return; // it has the keys
  const both = first && Date.now() - firstAt < 1000 ? `${first} ${e.key}` : "";
  const hit = keys.value.findLast((k) => k.key === both) ?? keys.value.findLast((k) => k.key === e.key);
  first = "";
  if (hit) {
    e.preventDefault();
    hit.run();
  } else if (keys.value.some((k) => k.key.startsWith(`${e.key} `))) {
    first = e.key;
    firstAt = Date.now();
  }
});
