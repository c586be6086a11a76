// A conversation: its Items in order, and what waits for an answer where it was asked.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { get, post, type Ask, type Item } from "../api";
import { Markdown } from "../markdown";
import { address } from "../router";
import { asks, runList, sessions, stream } from "../store";
import { attempt, draft, Empty, Problem, useSend } from "../ui";
import { cut, day, money, unreadable } from "../words";
import { AskCard } from "./ask";
import { Runs } from "./board";

const NEWEST = 1000; // Items that are read of a conversation
interface Page {
  items: Item[];
  brokenLines: number;
  broken: string[];
}

// The newest Items of a conversation, then those that come. Of what is being done there is the newest.
function useItems(id: string) {
  const items = useSignal<Item[]>([]), doing = useSignal<Item | null>(null), odd = useSignal(""), missing = useSignal("");
  useEffect(() => {
    let last = 0;
    const add = (list: Item[]) => {
      const fresh = list.filter((i) => i.lsn > last);
      if (!fresh.length) return;
      last = fresh.at(-1)!.lsn;
      items.value = [...items.value, ...fresh];
    };
    const late: Item[] = []; // came by the stream while the others were read
    let reading = true;
    const read = async () => {
      reading = true;
      const page = await get<Page>(`/api/v1/items?session=${encodeURIComponent(id)}&limit=${NEWEST}${last ? `&after=${last}` : ""}`);
      if (page.brokenLines) odd.value = unreadable(page.brokenLines, page.broken[0] ?? "");
      add(page.items);
      reading = false;
      add(late.splice(0));
      if (last || sessions.value.some((s) => s.session_id === id)) return;
      await get(`/api/v1/sessions/${encodeURIComponent(id)}/messages`).catch((e) => (missing.value = (e as Error).message));
    };
    void attempt(read);
    const offs = [
      stream.onItem((i) => {
        if (i.session !== id) return;
        if (i.kind === "doing") doing.value = i.detail.call ? doing.value : i; // a call of Ava's own tools is no trouble
        else if (reading) late.push(i);
        else add([i]);
        if (i.kind !== "doing" && i.run === doing.value?.run) doing.value = null;
      }),
      stream.onAgain(() => read().catch(() => {})),
    ];
    return () => offs.forEach((off) => off());
  }, [id]);
  return { items, doing, odd, missing };
}

type Row = { item: Item; ask: Ask | undefined } | { item?: undefined; ask: Ask };
const hers = (i: Item) => i.kind === "said" && i.detail.by === "ava";
const ends = (i: Item) => i.kind === "result" || i.kind === "failed"; // its Ask stands behind it
const opens = (i: Item) => i.kind === "proposed" || i.kind === "asked" || (hers(i) && !!i.ask);

// Items, and each open Ask once: with the Item that opened it, behind what Ava said about it at once, or by
// its time where that Item was not read.
function rowsOf(items: Item[], open: Ask[]): Row[] {
  const rows: Row[] = [], held: Row[] = [], of = new Map(open.map((a) => [a.id, a]));
  const opening = new Map(items.filter((i) => opens(i) || ends(i)).map((i) => [i.ask, i.lsn])); // the newest: a row of the memory is asked about again
  const alone = open.filter((a) => !opening.has(a.id)).sort((a, b) => a.since.localeCompare(b.since));
  for (const item of items) {
    const ask = opening.get(item.ask) === item.lsn ? of.get(item.ask) : undefined;
    while (alone.length && alone[0]!.since < item.at) rows.push({ ask: alone.shift()! });
    if (!ask && !hers(item)) rows.push(...held.splice(0));
    if (ask && ends(item)) rows.push({ item, ask: undefined }, { ask });
    else (ask ? held : rows).push({ item, ask });
  }
  return [...rows, ...held, ...alone.map((ask) => ({ ask }))];
}

// The Ask that a line may answer: the card that is the last of all, seen to its end, for a second. Where the
// line was begun before something else, nothing is.
const READ = 1000; // ms
function useShown(rows: Row[], list: { current: HTMLElement | null }) {
  const last = rows.at(-1)?.ask?.id ?? "", at = useRef({ id: "", since: 0, began: "" });
  if (at.current.id !== last) at.current = { ...at.current, id: last, since: performance.now() };
  const seen = () => {
    const card = last && list.current?.querySelector<HTMLElement>(`[data-ask="${CSS.escape(last)}"]`);
    if (!card) return "";
    const end = card.getBoundingClientRect().bottom, box = list.current!.getBoundingClientRect();
    return end <= Math.min(box.bottom, innerHeight) + 1 && end > Math.max(box.top, 0) ? last : "";
  };
  return {
    begin: () => (at.current.began = seen()),
    shown: () => (at.current.began === seen() && performance.now() - at.current.since >= READ ? seen() : ""),
  };
}

// The newest of a list stays in view, unless the reader looks at what is above: then `below` says that
// there is more.
const AT_END = 24; // pixels
function useNewest(n: string) {
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

function ItemRow({ item: i }: { item: Item }) {
  const speech = i.kind === "said", ended = i.kind === "result" || i.kind === "failed";
  const title = opens(i) && !speech ? i.ask : i.title; // one that waits no more
  return (
    <>
      <small>{i.run && !speech ? <a href={address("run", i.run)}>{title}</a> : title}, {day(i.at)}</small>
      {!i.text || title.includes(i.text) ? null : speech || ended ? <Markdown text={i.text} /> : <p class="soft">{cut(i.text, 400)}</p>}
      {i.cut ? <small>There is more{i.run ? <> in <a href={address("run", i.run)}>{i.run}</a></> : ""}.</small> : null}
      {i.kind === "failed" && i.detail.next ? <p class="soft">{String(i.detail.next)}</p> : null}
    </>
  );
}

function Say({ id, busy: atIt, begin, shown, follow }: { id: string; busy: boolean; begin: () => void; shown: () => string; follow: () => void }) {
  const text: Signal<string> = draft(`say ${id}`), { problem, busy, send } = useSend();
  const say = async (e: Event) => {
    const body = { text: text.value, request_id: crypto.randomUUID(), shown: shown() };
    e.preventDefault();
    if (!text.value.trim() || busy.value) return;
    follow();
    if (await send(() => post(`/api/v1/sessions/${id}/messages`, body))) text.value = "";
  };
  return (
    <>
      <form class="row" onSubmit={say}>
        <input class="grow" aria-label="Say something to Ava" placeholder={atIt ? "Ava is at it…" : "say something to Ava"} value={text}
          onInput={(e) => {
            if (!text.value) begin();
            text.value = e.currentTarget.value;
          }} />
        <button class="primary" disabled={busy.value || !text.value.trim()}>Say</button>
      </form>
      <Problem text={problem.value} />
    </>
  );
}

export function SessionView({ id }: { id: string }) {
  const { items, doing, odd, missing } = useItems(id), s = sessions.value.find((x) => x.session_id === id);
  const rows = rowsOf(items.value, [...asks.value.values()].filter((a) => a.session === id));
  const { list, below, follow } = useNewest(`${items.value.at(-1)?.lsn} ${rows.map((r) => r.ask?.hash ?? "").join("")}`), { begin, shown } = useShown(rows, list);
  if (missing.value) return <Empty title={`There is no conversation ${id}`}><p>{missing.value}</p><p><a href={address("board")}>All runs</a></p></Empty>;
  return (
    <>
      <h1>{s?.title || "Conversation"}</h1>
      {s ? <p class="soft">{[s.cwd || "no folder", s.model, money(s.cost_cents), `begun ${day(s.created_at)}`].filter(Boolean).join(" · ")}</p> : null}
      {odd.value ? <p class="soft">{odd.value}</p> : null}
      <div class="talk">
        <section class="panel" aria-label="The conversation">
          <ol class="said" ref={list} tabIndex={0} aria-label="Messages">
            {items.value.length >= NEWEST ? <li><small>Older ones are in <a href={address("logs")}>the logs</a>.</small></li> : null}
            {rows.map((r) => (
              <li key={r.ask?.id ?? r.item!.lsn} class={r.ask ? "open" : `${r.item!.kind} ${r.item!.detail.by ?? ""}`}>{r.ask ? <AskCard ask={r.ask} /> : <ItemRow item={r.item!} />}</li>
            ))}
          </ol>
          {doing.value ? <p class="soft ellipsis">{doing.value.title}: {doing.value.text}</p> : null}
          {s?.status === "busy" ? <p class="soft">{s.trouble ? `${s.trouble}. ` : ""}Ava is {s.doing ? s.doing[0]!.toLowerCase() + s.doing.slice(1) : "at work"}</p> : null}
          {below.value ? <button class="below" onClick={follow}>New below ↓</button> : null}
          <Say id={id} busy={s?.status === "busy"} begin={begin} shown={shown} follow={follow} />
        </section>
        <section aria-label="Its runs"><Runs list={runList.value.filter((r) => r.session_id === id)} open={[]} asked={false} /></section>
      </div>
    </>
  );
}
