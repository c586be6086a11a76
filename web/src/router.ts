// Where the page is, in the part of the address behind the #: "#/run/S-7f3a2b?tab=events".
import { computed, signal } from "@preact/signals";

const hash = signal(location.hash);
addEventListener("hashchange", () => (hash.value = location.hash));

export interface Place {
  view: string; // "board", "run", "session", "logs", "costs", "memory", "claude"
  id: string;
  query: URLSearchParams;
}
// What somebody typed may be no escaped text.
function plain(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
export const place = computed<Place>(() => {
  const [path = "", query = ""] = hash.value.replace(/^#(code=.*|\/)?/, "").split("?");
  const [view = "", id = ""] = path.split("/").map(plain);
  return { view: view || "board", id, query: new URLSearchParams(query) };
});

export function address(view: string, id = "", query?: Record<string, string>): string {
  const q = query && Object.keys(query).length ? `?${new URLSearchParams(query)}` : "";
  return `#/${view === "board" ? "" : view}${id ? `/${encodeURIComponent(id)}` : ""}${q}`;
}
export function go(view: string, id = "", query?: Record<string, string>) {
  location.hash = address(view, id, query);
}
