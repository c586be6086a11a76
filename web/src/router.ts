// The page's place, in the part of the address behind the #: "#/run/S-7f3a2b/turn/12/call/2?show=raw".
import { computed, signal } from "@preact/signals";

const hash = signal(location.hash);
addEventListener("hashchange", () => (hash.value = location.hash));

export interface Place {
  view: string; // "inbox", "runs", "run", "chat", "claude", "costs", "logs", "memory", "compare", "settings"
  id: string;
  rest: string[]; // the parts behind the id
  query: URLSearchParams;
}
export const HOME = "inbox";
// A part may be no escaped text: people type addresses, too.
function plain(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
export const place = computed<Place>(() => {
  const [path = "", query = ""] = hash.value.replace(/^#(code=.*|\/)?/, "").split("?");
  const [view = "", id = "", ...rest] = path.split("/").map(plain);
  return { view: view || HOME, id, rest, query: new URLSearchParams(query) };
});

// Values that are "" are left out.
export function address(view: string, id = "", query: Record<string, string | undefined> = {}, ...rest: (string | number)[]): string {
  const said = Object.entries(query).filter((q): q is [string, string] => !!q[1]);
  const parts = [view === HOME && !id ? "" : view, id, ...rest].filter((p) => p !== "");
  return `#/${parts.map((p) => encodeURIComponent(p)).join("/")}${said.length ? `?${new URLSearchParams(said)}` : ""}`;
}
export function go(...to: Parameters<typeof address>) {
  location.hash = address(...to);
}
// The same place with another query, or another part of it, without a step of the browser's history: filters,
// what is shown.
export function put(query: Record<string, string | undefined>, to?: (string | number)[]) {
  const { view, id, rest: was, query: now } = place.value, rest = to ?? was;
  history.replaceState(history.state, "", address(view, id, { ...Object.fromEntries(now), ...query }, ...rest));
  hash.value = location.hash;
}
