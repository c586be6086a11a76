// What Ava remembers of the person, all of it theirs to see, search, add to, change and erase. Rows that
// a conversation adds come by their event.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, post, type Memory } from "../api";
import { stream } from "../store";
import { attempt, draft, Empty, focused, Problem, Sure, useSend } from "../ui";
import { day } from "../words";

const SHOWN = 200;
const how: Record<string, string> = { said: "you said it", confirmed: "you confirmed it", added: "you added it", edited: "you edited it" };

function Row({ memory: m, changed }: { memory: Memory; changed: () => void }) {
  const editing = useSignal(false), text = draft(`memory ${m.id} ${m.updated_at}`, m.text), { problem, busy, send } = useSend();
  const change = async (body: Partial<Memory>) => {
    if (!(await send(() => post(`/api/v1/memories/${m.id}`, body), "Changed."))) return;
    editing.value = false;
    changed();
  };
  const erase = async () => {
    if (await attempt(async () => {
      const { warning } = await post<{ warning: string }>("/api/v1/memories/remove", { ids: [m.id] });
      if (warning) throw new Error(warning);
    }, "Erased.")) changed();
  };
  return (
    <li class="panel" data-memory={m.id}>
      {!editing.value ? <p>{m.text}</p> : (
        <form class="row" onKeyDown={(e) => e.key === "Escape" && (editing.value = false)}
          onSubmit={(e) => { e.preventDefault(); if (text.value.trim() && !busy.value) void change({ text: text.value }); }}>
          <input class="grow" ref={focused} aria-label={`Text of ${m.id}`} maxLength={1000} value={text} onInput={(e) => (text.value = e.currentTarget.value)} />
          <button class="primary" disabled={busy.value || !text.value.trim()}>Keep</button>
        </form>
      )}
      <Problem text={problem.value} />
      <div class="row">
        <small class="grow">{m.id} · {m.kind}{m.pinned ? ", each conversation begins with it" : ""} · {how[m.source.how] ?? m.source.how}, {day(m.updated_at)}{m.cwd ? ` · ${m.cwd}` : ""}{m.tags.length ? ` · ${m.tags.join(", ")}` : ""}</small>
        <button class="plain" onClick={() => change({ pinned: !m.pinned })}>{m.pinned ? "Unpin" : "Pin"}</button>
        <button class="plain" aria-expanded={editing.value} onClick={() => (editing.value = !editing.value)}>{editing.value ? "Leave it" : "Edit"}</button>
        <Sure class="plain" name="Erase" sure="Erase for good" act={erase} />
      </div>
    </li>
  );
}

export function MemoryView() {
  const found = useSignal<Memory[] | null>(null), problem = useSignal(""), words = useSignal(""), text = draft("memory"), { problem: refused, busy, send } = useSend();
  const read = async () => {
    try {
      const asked = words.value.trim(), q = asked ? `&q=${encodeURIComponent(asked)}` : "";
      const { memories } = await get<{ memories: Memory[] }>(`/api/v1/memories?limit=${SHOWN}${q}`);
      if (asked === words.value.trim()) found.value = memories;
      problem.value = "";
    } catch (e) {
      problem.value = (e as Error).message;
    }
  };
  useEffect(() => {
    const timer = setTimeout(read, words.value ? 150 : 0);
    return () => clearTimeout(timer);
  }, [words.value]);
  useEffect(() => {
    const off = stream.onItem((i) => i.detail.memory && void read());
    return () => void off();
  }, []);
  const add = async (e: Event) => {
    e.preventDefault();
    if (!text.value.trim() || busy.value || !(await send(() => post("/api/v1/memories", { text: text.value }), "Noted."))) return;
    text.value = "";
    void read();
  };
  return (
    <>
      <h1>Memory</h1>
      <div class="charts">
        <p class="soft">What Ava knows about you from earlier conversations: your words, nobody else's. Every conversation and every run of yours may read it.</p>
        <form class="row" onSubmit={add}>
          <input class="grow" aria-label="Something to remember" placeholder="I prefer short answers" maxLength={1000} value={text} onInput={(e) => (text.value = e.currentTarget.value)} />
          <button class="primary" disabled={busy.value || !text.value.trim()}>Remember</button>
        </form>
        <Problem text={refused.value} />
        <input type="search" aria-label="Search what is remembered" placeholder="search" value={words} onInput={(e) => (words.value = e.currentTarget.value)} />
        {problem.value ? <p role="alert" class="tag red">{problem.value}</p> : null}
        {!found.value ? (problem.value ? null : <p class="soft">Reading…</p>) : found.value.length === 0 ? (
          <Empty title={words.value ? "Nothing has these words" : "Nothing is remembered"}>
            <p>Say “remember that …” in a conversation, or write it above.</p>
          </Empty>
        ) : (
          <ul class="memories">{found.value.map((m) => <Row key={m.id} memory={m} changed={read} />)}</ul>
        )}
        {found.value?.length === SHOWN ? <p class="soft">The first {SHOWN}: a search finds the others.</p> : null}
      </div>
    </>
  );
}
