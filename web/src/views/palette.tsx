// The palette finds any place, command, conversation or run by letters of its name, in their order (Ctrl K).
import { signal, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { keys } from "../keys";
import { address } from "../router";
import { runList, sessions } from "../store";
import { Modal } from "../ui";
import { cut } from "../words";
import "./rest.css";

export const palette = signal(false);
addEventListener("keydown", (e) => {
  if ((e.ctrlKey || e.metaKey) && e.key === "k") {
    e.preventDefault();
    palette.value = !document.querySelector("dialog[open]");
  }
});

interface Entry {
  group: string;
  name: string;
  more?: string; // words beside it; looked through, too
  run: () => void;
}
const MOST = 6, ALL = 8; // MOST of a group, which stands as high as the best of it

// The fit of letters to a text: 0 is none; whole words are before letters that are only in this order.
function fit(text: string, words: string[]): number {
  const low = text.toLowerCase();
  if (words.every((w) => low.includes(w))) return words.some((w) => low.startsWith(w)) ? 4 : words.every((w) => ` ${low}`.includes(` ${w}`)) ? 3 : 2;
  let at = -1;
  return [...words.join("")].every((c) => (at = low.indexOf(c, at + 1)) >= 0) && at < 60 ? 1 : 0;
}

export function Palette({ rooms }: { rooms: { view: string; name: string }[] }) {
  const text = useSignal(""), at = useSignal(0), list = useRef<HTMLDivElement>(null), words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const to = (where: string) => () => (location.hash = where);
  const all: Entry[] = [
    ...rooms.map((r) => ({ group: "Go to", name: r.name, run: to(address(r.view)) })),
    ...keys.value.filter((k) => !k.does.startsWith("go to")).map((k) => ({ group: "Do", name: k.does, more: k.key, run: k.run })),
    ...sessions.value.map((s) => ({ group: "Conversations", name: s.title || "Untitled", run: to(address("chat", s.session_id)) })),
    ...runList.value.map((r) => ({ group: "Runs", name: r.task, more: r.subagent_id, run: to(address("run", r.subagent_id)) })),
  ];
  const fits = all.map((e) => ({ e, good: fit(`${e.name} ${e.more ?? ""}`, words) })).filter((f) => f.good).sort((a, b) => b.good - a.good).map((f) => f.e);
  const groups = [...new Set(fits.map((e) => e.group))].map((group) => fits.filter((e) => e.group === group).slice(0, words.length ? MOST : ALL)), found = groups.flat();
  const chosen = Math.min(at.value, found.length - 1), close = () => (palette.value = false);
  useLayoutEffect(() => list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }));
  const take = (e: Entry | undefined) => {
    if (!e) return;
    close();
    setTimeout(e.run); // later than the dialog closes, so that what it opens has the focus
  };
  const key = (e: KeyboardEvent) => {
    const by = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (by) at.value = (chosen + by + found.length) % (found.length || 1);
    else if (e.key === "Enter") take(found[chosen]);
    else return;
    e.preventDefault();
  };
  return (
    <Modal title="Go to, or do" close={close}>
      <input autofocus class="wide" role="combobox" aria-expanded={found.length > 0} aria-autocomplete="list" aria-controls="found" aria-activedescendant={found.length ? `found-${chosen}` : undefined} aria-label="Search places, commands and runs"
        placeholder="A place, a command, a conversation or a run" value={text} onKeyDown={key} onInput={(e) => ((text.value = e.currentTarget.value), (at.value = 0))} />
      <div id="found" ref={list} class="plain-list palette" role="listbox" aria-label="Found">
        {groups.map((g) => (
          <div key={g[0]!.group} role="group" aria-label={g[0]!.group}>
            <small aria-hidden="true">{g[0]!.group}</small>
            {g.map((e) => {
              const i = found.indexOf(e);
              return <div key={i} id={`found-${i}`} role="option" aria-selected={i === chosen} class="row head" onMouseMove={() => (at.value = i)} onClick={() => take(e)}><span class="grow ellipsis">{cut(e.name, 120)}</span>{e.more ? <small>{e.more}</small> : null}</div>;
            })}
          </div>
        ))}
      </div>
      {found.length ? null : <p class="soft" role="status">Nothing matches.</p>}
    </Modal>
  );
}
