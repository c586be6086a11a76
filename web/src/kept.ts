// Memory of this browser. doc/SECURITY.md, "The page", lists every key: other pages of this address may read them later.
import { signal } from "@preact/signals";

export function kept(name: string): string {
  try {
    return localStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}
export function keep(name: string, value: string) {
  try {
    localStorage.setItem(name, value);
  } catch {}
}

// Choices of how it looks, as attributes of the root, before the first paint; "" is the first choice.
const choose = (name: string, value: string) => (value ? document.documentElement.setAttribute(`data-${name}`, value) : document.documentElement.removeAttribute(`data-${name}`));
export const looks = { theme: signal(kept("theme")), density: signal(kept("density")) };
for (const [name, look] of Object.entries(looks)) choose(name, look.value);
export function setLook(name: keyof typeof looks, value: string) {
  looks[name].value = value;
  choose(name, value);
  keep(name, value);
}
