// Notes that Ava remembers of the person, all of them theirs to see, search, add to, change and erase.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { post, type Memory } from "../api";
import { useKeys } from "../keys";
import { place, put } from "../router";
import { Sure } from "../acts";
import { attempt, draft, Empty, focused, Problem, Reading, useGet, useSend } from "../ui";
import { day } from "../words";

const SHOWN = 200;
const how: Record<string, string> = { said: "you said it", confirmed: "you confirmed it", added: "you added it", edited: "you edited it" };

function Row({ memory: m, changed }: { memory: Memory; changed: () => void }) {
  const editing = useSignal(false), text = draft(`memory ${m.id} ${m.updated_at}`, m.text), { problem, busy, send } = useSend();
  const change = async (body: Partial<Memory>) => {
    if (!(await send(() => post(`/api/v1/memories/${m.id}`, body), "Saved"))) return;
    editing.value = false;
    changed();
  };
  const erase = async () => {
    if (await attempt(async () => {
      const { warning } = await post<{ warning: string }>("/api/v1/memories/remove", { ids: [m.id] });
      if (warning) throw new Error(warning);
    }, "Erased")) changed();
  };
  return (
    <li class="panel" data-memory={m.id}>
      {!editing.value ? <p>{m.text}</p> : (
        <form class="row" onKeyDown={(e) => e.key === "Escape" && (editing.value = false)}
          onSubmit={(e) => { e.preventDefault(); if (text.value.trim() && !busy.value) void change({ text: text.value }); }}>
          <input class="grow" ref={focused} aria-label={`Text of ${m.id}`} maxLength={1000} value={text} onInput={(e) => (text.value = e.currentTarget.value)} />
          <button class="primary" disabled={busy.value || !text.value.trim()}>Save</button>
        </form>
      )}
      <Problem text={problem.value} />
      <div class="row">
        <small class="grow">{m.id} · {m.kind}{m.pinned ? ", read at the start of each conversation" : ""} · {how[m.source.how] ?? m.source.how}, {day(m.updated_at)}{m.cwd ? ` · ${m.cwd}` : ""}{m.tags.length ? ` · ${m.tags.join(", ")}` : ""}</small>
        <button class="plain" onClick={() => change({ pinned: !m.pinned })}>{m.pinned ? "Unpin" : "Pin"}</button>
        <button class="plain" aria-expanded={editing.value} onClick={() => (editing.value = !editing.value)}>{editing.value ? "Cancel" : "Edit"}</button>
        <Sure class="plain" name="Erase" sure="Erase for good" act={erase} />
      </div>
    </li>
  );
}

export function MemoryView() {
  const asked = place.value.query.get("q") ?? "", words = useSignal(asked), text = draft("memory"), { problem: refused, busy, send } = useSend();
  const { data, error, reload } = useGet<{ memories: Memory[] }>(`/api/v1/memories?limit=${SHOWN}${asked ? `&q=${encodeURIComponent(asked)}` : ""}`, (i) => !!i.detail.memory);
  const found = data?.memories, field = useRef<HTMLInputElement>(null);
  useKeys([{ key: "/", does: "search", run: () => field.current?.focus() }]);
  useEffect(() => {
    const timer = setTimeout(() => put({ q: words.value.trim() }), 150);
    return () => clearTimeout(timer);
  }, [words.value]);
  const add = async (e: Event) => {
    e.preventDefault();
    if (!text.value.trim() || busy.value || !(await send(() => post("/api/v1/memories", { text: text.value }), "Saved"))) return;
    text.value = "";
    reload();
  };
  return (
    <>
      <h1>Memory</h1>
      <div class="charts">
        <p class="soft">What Ava knows about you from earlier conversations, in your own words. All your conversations and runs can read it.</p>
        <form class="row" onSubmit={add}>
          <input class="grow" aria-label="Something to remember" placeholder="I prefer short answers" maxLength={1000} value={text} onInput={(e) => (text.value = e.currentTarget.value)} />
          <button class="primary" disabled={busy.value || !text.value.trim()}>Remember</button>
        </form>
        <Problem text={refused.value} />
        <input type="search" ref={field} aria-label="Search memories" placeholder="Search" value={words} onInput={(e) => (words.value = e.currentTarget.value)} />
        {!found || error ? <Reading error={error} /> : !found.length ? (
          <Empty title={asked ? "No memory has these words" : "Nothing remembered yet"}>
            <p>Say “remember that …” in a conversation, or write it above.</p>
          </Empty>
        ) : (
          <ul class="memories plain-list">{found.map((m) => <Row key={m.id} memory={m} changed={reload} />)}</ul>
        )}
        {found?.length === SHOWN ? <p class="soft">Showing {SHOWN}. Search to find more.</p> : null}
      </div>
    </>
  );
}
