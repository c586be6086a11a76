// A conversation: what was said, what there is to answer, and the runs that came of it.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { ApiError, get, post, type Proposal, type Run } from "../api";
import { Markdown } from "../markdown";
import { address } from "../router";
import { pending, runList, sessions, theStream } from "../store";
import { attempt, draft, Empty, Problem, useSend } from "../ui";
import { day, money, unreadable } from "../words";
import { Runs } from "./board";

interface Entry {
  type: string;
  id?: string;
  timestamp: string;
  message?: { role: string; content?: unknown };
}
type Block = { type?: string; text?: string; thinking?: string } | null;

// pi writes what a person said as a text too, and others what they like.
const parts = (e: Entry, type: "text" | "thinking") => {
  const content = e.type === "message" ? e.message?.content : undefined;
  const blocks: Block[] = typeof content === "string" ? [{ type: "text", text: content }] : Array.isArray(content) ? content : [];
  return blocks.filter((c) => c?.type === type).map((c) => String(c![type] ?? "")).join("\n");
};
const said = (e: Entry) => (e.message?.role === "user" || e.message?.role === "assistant" ? parts(e, "text") : "");
const thought = (e: Entry) => (e.message?.role === "assistant" ? parts(e, "thinking") : "");

// Whether to note or forget a row of the memory.
interface Ask { id: string; kind: string; hash: string; text: string; since: string }
function MemoryAsk({ ask, again }: { ask: Ask; again: () => void }) {
  const { problem, busy, send } = useSend();
  const say = async (choice: string) => {
    await send(() => post(`/api/v1/asks/${ask.id}`, { choice, hash: ask.hash, by: "web" }), "Answered.");
    again();
  };
  return (
    <div class="card panel" data-ask={ask.id}>
      <p>{ask.text}</p>
      <div class="row">
        <button class="primary" disabled={busy.value} onClick={() => say("yes")}>Yes</button>
        <button disabled={busy.value} onClick={() => say("no")}>No</button>
      </div>
      <Problem text={problem.value} />
    </div>
  );
}

// The Ask that a line may answer: the newest quote or question, if nobody said anything behind it but
// Ava her words about it in the same turn, and it was there for a second.
const READ = 1000; // ms
function shownLast(quotes: Proposal[], runs: Run[], rows: Ask[], entries: Entry[]): string {
  const asks = quotes.map((p) => ({ id: p.proposal_id, at: Date.parse(p.created_at) }));
  for (const a of rows) asks.push({ id: a.id, at: Date.parse(a.since) });
  for (const r of runs)
    if (r.waiting_for) asks.push({ id: `${r.subagent_id}:${r.waiting_for.call_id}`, at: Date.parse(r.waiting_for.asked_at) });
  const newest = asks.reduce((a, b) => (b.at >= a.at ? b : a), { id: "", at: 0 });
  const behind = entries.filter((e) => Date.parse(e.timestamp) > newest.at && said(e));
  const about = newest.id.startsWith("P-") ? 1 : 0;
  const alone = behind.length <= about && behind.every((e) => e.message?.role === "assistant");
  return alone && Date.now() - newest.at >= READ ? newest.id : "";
}

// The newest of a list stays in view, unless the reader looks at what is above: then `below` says that
// there is more.
const AT_END = 24; // pixels
function useNewest(n: number) {
  const list = useRef<HTMLOListElement>(null), at = useRef(true), below = useSignal(false);
  const follow = () => {
    const el = list.current;
    at.current = true;
    below.value = false;
    if (el) el.scrollTop = el.scrollHeight;
  };
  useLayoutEffect(() => {
    if (at.current) follow();
    else below.value = true;
  }, [n]);
  useEffect(() => {
    const el = list.current;
    if (!el) return;
    const look = () => {
      at.current = el.scrollHeight - el.scrollTop - el.clientHeight < AT_END;
      if (at.current) below.value = false;
    };
    const size = new ResizeObserver(() => at.current && follow());
    size.observe(el);
    el.addEventListener("scroll", look);
    return () => {
      size.disconnect();
      el.removeEventListener("scroll", look);
    };
  }, []);
  return { list, below, follow };
}

export function SessionView({ id }: { id: string }) {
  const entries = useSignal<Entry[]>([]), rows = useSignal<Ask[]>([]), odd = useSignal(""), text = draft(`say ${id}`), missing = useSignal("");
  const { problem, busy, send } = useSend(), { list, below, follow } = useNewest(entries.value.length);
  const s = sessions.value.find((x) => x.session_id === id);
  const load = async () => {
    const file = await get<{ entries: Entry[]; unreadable?: number; unreadable_first?: string }>(`/api/v1/sessions/${id}/messages`);
    const all = await get<{ asks: Ask[] }>(`/api/v1/asks?session=${id}`);
    rows.value = all.asks.filter((a) => a.kind === "note" || a.kind === "forget");
    entries.value = file.entries;
    odd.value = file.unreadable ? unreadable(file.unreadable, file.unreadable_first ?? "") : "";
  };
  useEffect(() => {
    void attempt(async () => {
      try {
        await load();
      } catch (e) {
        if (!(e instanceof ApiError && (e.status === 404 || e.status === 400))) throw e;
        missing.value = e.message;
      }
    });
    const offs = [
      theStream().onEvent((e) => e.sessionId === id && /Message$/.test(e.eventType) && load().catch(() => {})),
      theStream().onAgain(() => load().catch(() => {})),
    ];
    return () => offs.forEach((off) => off());
  }, [id]);
  const quotes = pending.value.filter((p) => p.session_id === id), runs = runList.value.filter((r) => r.session_id === id);
  const say = async (e: Event) => {
    e.preventDefault();
    const body = { text: text.value, request_id: crypto.randomUUID(), shown: shownLast(quotes, runs, rows.value, entries.value) };
    if (!text.value.trim() || busy.value) return;
    follow();
    if (await send(() => post(`/api/v1/sessions/${id}/messages`, body))) text.value = "";
  };
  if (missing.value) return <Empty title={`There is no conversation ${id}`}><p>{missing.value}</p><p><a href={address("board")}>All runs</a></p></Empty>;
  return (
    <>
      <h1>{s?.title || "Conversation"}</h1>
      {s ? <p class="soft">{[s.cwd || "no folder", s.model, money(s.cost_cents), `begun ${day(s.created_at)}`].filter(Boolean).join(" · ")}</p> : null}
      {odd.value ? <p class="soft">{odd.value}</p> : null}
      <div class="talk">
        <section class="panel" aria-label="What was said">
          <ol class="said" ref={list} tabIndex={0} aria-label="Messages">
            {entries.value.map((e) => {
              const words = said(e);
              return words ? (
                <li key={e.id} class={e.message!.role}>
                  <small>{e.message!.role === "user" ? "You" : "Ava"}, {day(e.timestamp)}</small>
                  {thought(e) ? <details><summary class="soft">Thinking</summary><pre class="plain">{thought(e)}</pre></details> : null}
                  <Markdown text={words} />
                </li>
              ) : null;
            })}
          </ol>
          {rows.value.map((a) => <MemoryAsk key={a.id} ask={a} again={() => void load().catch(() => {})} />)}
          {s?.status === "busy" ? <p class="soft">{s.trouble ? `${s.trouble}. ` : ""}Ava is {s.doing ? s.doing[0]!.toLowerCase() + s.doing.slice(1) : "at work"}</p> : null}
          {below.value ? <button class="below" onClick={follow}>New below ↓</button> : null}
          <form class="row" onSubmit={say}>
            <input class="grow" aria-label="Say something to Ava" placeholder={s?.status === "busy" ? "Ava is at it…" : "say something to Ava"} value={text}
              onInput={(e) => (text.value = e.currentTarget.value)} />
            <button class="primary" disabled={busy.value || !text.value.trim()}>Say</button>
          </form>
          <Problem text={problem.value} />
        </section>
        <section aria-label="Its quotes and runs"><Runs list={runs} quotes={quotes} /></section>
      </div>
    </>
  );
}
