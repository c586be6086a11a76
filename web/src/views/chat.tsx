// The list of conversations, and one: its Items in order, each Ask that waits where it was asked, and each
// run that came of a quote where that was made.
import { useComputed, useSignal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Card, Menu, ActButton, moveCard, useActs, useStand } from "../acts";
import { get, once, post, type Ask, type Item, type ItemPage, type Session, type Status } from "../api";
import { Icon } from "../icons";
import { useKeys } from "../keys";
import { Markdown } from "../markdown";
import { address, go, place, put } from "../router";
import { runActs } from "../run_acts";
import { askOf, asks, claudeSessions, health, refreshRun, refreshSessions, runs, sessionOf, sessions, stream } from "../store";
import { watch } from "../stream";
import { Ago, attempt, draft, Elapsed, Empty, focused, hear, Problem, StatusTag, useGet, useSend } from "../ui";
import { about, cut, date, day, exactly, modelName, money, plain, roleName, unreadable } from "../words";
import { AskCard } from "./ask";
import "./chat.css";

const NEWEST = 1000; // Items that are read of a conversation
const FIRST = 150; // rows that are drawn before somebody asks for more
const hers = (i: Item) => i.kind === "said" && i.detail.by === "ava";
const pathOf = (id: string) => `/api/v1/sessions/${encodeURIComponent(id)}`;
const ends = (i: Item) => (i.kind === "result" || i.kind === "failed") && !!i.run; // an end has its Ask behind it
const opens = (i: Item) => i.kind === "proposed" || i.kind === "asked" || (hers(i) && !!i.ask);

// The newest Items of a conversation, then those that come. Only the newest "doing" is kept.
function useItems(id: string) {
  const items = useSignal<Item[]>([]), doing = useSignal<Item | null>(null), odd = useSignal(""), why = useSignal(""), missing = useSignal("");
  useEffect(() => {
    let last = 0;
    const add = (list: Item[]) => {
      const fresh = list.filter((i) => i.lsn > last);
      if (!fresh.length) return;
      last = fresh.at(-1)!.lsn;
      items.value = [...items.value, ...fresh];
    };
    const page = async (stop: AbortSignal) => {
      const after = last, { items: list, more, brokenLines, broken } = await get<ItemPage>(`/api/v1/items?session=${encodeURIComponent(id)}&limit=${NEWEST}${after ? `&after=${after}` : ""}`, stop);
      if (brokenLines) odd.value = unreadable(brokenLines, broken[0] ?? "");
      add(list);
      if (!last && !sessionOf(id)) await get(`${pathOf(id)}/messages`, stop).catch((e) => (missing.value = (e as Error).message));
      return !!after && more;
    };
    const { put, end } = stream.following<Item>(page, add, (w) => (why.value = w));
    const off = stream.onItem((i) => {
      if (i.session !== id) return;
      if (i.kind === "doing") doing.value = i.detail.call ? doing.value : i; // a call of Ava's own tools is no trouble
      else put(i);
      if (hers(i)) hear(`Ava: ${cut(plain(i.text), 300)}`);
      if (i.kind !== "doing" && i.run === doing.value?.run) doing.value = null;
    });
    return () => (off(), end());
  }, [id]);
  return { items, doing, odd: why.value || odd.value, missing };
}

// ---- words of Ava while she writes them

interface Writing {
  text: string;
  thinking: string;
  behind: number; // lsn of her Item before it
  item: number; // lsn of the Item that it has become; 0: none yet
}
const NOTHING: Writing = { text: "", thinking: "", behind: 0, item: 0 };
// Two streams tell it: the words come by one of their own, the Item that takes their place by that of the
// tab. The words stand until that Item is there, whichever comes first, and are drawn once a frame.
function useWriting(id: string, items: Signal<Item[]>) {
  const writing = useSignal(NOTHING), newest = useComputed(() => items.value.findLast(hers)?.lsn ?? 0);
  useEffect(() => {
    let w = NOTHING, frame = 0;
    const draw = () => (frame ||= requestAnimationFrame(() => ((frame = 0), (writing.value = w))));
    const off = watch(`/api/v1/events?session=${encodeURIComponent(id)}&items=only`, (type, value, lsn) => {
      if (type === "text" || type === "thinking") {
        if (w === NOTHING || w.item || !value.text) w = { ...NOTHING, behind: Math.max(newest.peek(), w.item) };
        w = { ...w, [type]: w[type] + value.text };
      } else if (type === "item" && hers(value)) w = { ...w, item: lsn };
      else if (type === "turn") {
        if (value.state === "idle" && !w.item) w = NOTHING; // stopped
        refreshSessions();
      } else if (type === "open") w = NOTHING;
      draw();
    });
    return () => {
      off();
      cancelAnimationFrame(frame);
    };
  }, [id]);
  const on = useComputed(() => {
    const w = writing.value;
    return !!(w.text || w.thinking) && (w.item ? newest.value < w.item : newest.value <= w.behind);
  });
  return { writing, on };
}
const THOUGHT = 400; // characters of what she thinks that are shown, the newest
function Words({ of, stick }: { of: ReadonlySignal<Writing>; stick: () => void }) {
  const { text, thinking } = of.value;
  useLayoutEffect(stick);
  return text ? <Markdown text={text} /> : <p class="soft thought">{thinking.slice(-THOUGHT)}</p>;
}

// ---- rows

interface Row {
  key: string | number;
  at: string;
  item?: Item;
  ask?: Ask;
  begun?: Item[]; // the runs that a quote became
  brief?: boolean; // the end of a run whose card has it
}

// Items, and each open Ask once: with the Item that opened it, behind what Ava said about it at once, or by
// its time where that Item was not read. Of a quote that was taken there are its runs instead, at the same
// place: what tells of their beginning and end stands in their cards.
function rowsOf(items: Item[], open: Ask[]): Row[] {
  const rows: Row[] = [], held: Row[] = [], of = new Map(open.map((a) => [a.id, a]));
  const opening = new Map(items.filter((i) => opens(i) || ends(i)).map((i) => [i.ask, i.lsn])); // the newest: a row of the memory is asked about again
  const alone = open.filter((a) => !opening.has(a.id)).sort((a, b) => a.since.localeCompare(b.since));
  const begun = new Map<string, Item[]>(), cards = new Set<string>();
  for (const i of items) if (i.kind === "started") begun.set(i.ask || i.run, [...(begun.get(i.ask || i.run) ?? []), i]);
  const askRow = (ask: Ask): Row => ({ key: ask.id, at: ask.since, ask });
  for (const item of items) {
    const ask = opening.get(item.ask) === item.lsn ? of.get(item.ask) : undefined, quote = item.kind === "proposed" && begun.has(item.ask);
    while (alone.length && alone[0]!.since < item.at) rows.push(askRow(alone.shift()!));
    if (!ask && !quote && !hers(item)) rows.push(...held.splice(0));
    const row: Row = { key: item.lsn, at: item.at, item };
    if (ends(item)) rows.push({ ...row, brief: cards.has(item.run) }, ...(ask ? [askRow(ask)] : []));
    else if (ask) held.push({ ...askRow(ask), at: item.at });
    else if (quote || (item.kind === "started" && !cards.has(item.run))) {
      const all = quote ? begun.get(item.ask)! : [item];
      (quote ? held : rows).push({ key: item.ask || item.run, at: item.at, begun: all });
      for (const i of all) cards.add(i.run);
    } else if (item.kind !== "started" && !(item.kind === "answered" && item.detail.answer === "yes" && !item.detail.changes && begun.has(item.ask))) rows.push(row);
  }
  return [...rows, ...held, ...alone.map(askRow)];
}

// The Ask that a line may answer: the card that is the last of all, with its end in view for a second without
// a break. Where the line was begun before something else, nothing is.
const READ = 1000; // ms
function useShown(rows: Row[], list: { current: HTMLElement | null }) {
  const last = rows.at(-1)?.ask?.id ?? "", at = useRef({ last, id: "", since: 0, began: "" });
  at.current.last = last;
  const seen = () => {
    const { last } = at.current, card = last && !document.hidden && list.current?.querySelector<HTMLElement>(`[data-ask="${CSS.escape(last)}"]`);
    if (!card) return "";
    const end = card.getBoundingClientRect().bottom, box = list.current!.getBoundingClientRect();
    return end <= Math.min(box.bottom, innerHeight) + 1 && end > Math.max(box.top, 0) ? last : "";
  };
  const look = () => {
    const id = seen();
    if (id !== at.current.id) at.current = { ...at.current, id, since: performance.now() };
    return id;
  };
  useLayoutEffect(() => void look());
  useEffect(() => {
    const all = ["scroll", "resize", "visibilitychange"];
    for (const type of all) addEventListener(type, look, true);
    return () => all.forEach((type) => removeEventListener(type, look, true));
  }, []);
  return {
    begin: () => (at.current.began = look()),
    shown: () => (at.current.began === look() && performance.now() - at.current.since >= READ ? at.current.id : ""),
  };
}

// The newest of a list stays in view, unless the reader looks at what is above: then `below` says that
// there is more.
const AT_END = 24; // pixels
function useNewest(n: string) {
  const list = useRef<HTMLOListElement>(null), at = useRef(true), below = useSignal(false), size = useRef<ResizeObserver>();
  const follow = () => {
    const el = list.current;
    at.current = true;
    below.value = false;
    if (el) el.scrollTop = el.scrollHeight;
  };
  const stick = () => at.current && follow();
  // Cards grow without a new row: when more is known of them.
  const watchSizes = () => list.current && [list.current, ...list.current.children].forEach((e) => size.current?.observe(e));
  useLayoutEffect(() => {
    if (at.current) follow();
    else below.value = true;
    watchSizes();
  }, [n]);
  useEffect(() => {
    const el = list.current;
    if (!el) return;
    const look = () => {
      at.current = el.scrollHeight - el.scrollTop - el.clientHeight < AT_END;
      if (at.current) below.value = false;
    };
    size.current = new ResizeObserver(stick);
    watchSizes();
    el.addEventListener("scroll", look);
    return () => {
      size.current?.disconnect();
      el.removeEventListener("scroll", look);
    };
  }, []);
  return { list, below, follow, stick };
}

// What is read here to its end needs not be told again in a terminal or an editor.
function useAcknowledged(id: string, lsn: number, atEnd: boolean) {
  const told = useRef(0);
  useEffect(() => {
    const tell = () => {
      if (document.hidden || !atEnd || lsn <= told.current) return;
      told.current = lsn;
      void post(`${pathOf(id)}/ack`, { channel: "terminal", lsn }).catch(() => (told.current = 0)); // with the next Item
    };
    tell();
    document.addEventListener("visibilitychange", tell);
    return () => document.removeEventListener("visibilitychange", tell);
  }, [id, lsn, atEnd]);
}

const When = ({ at }: { at: string }) => <time class="when number" dateTime={at} title={exactly(at)}>{day(at)}</time>;
const titles: Partial<Record<Item["kind"], (i: Item) => string>> = { proposed: () => "Quote", asked: (i) => `${roleName(i.role) || "Ava"} asked` };

function ItemRow({ item: i, brief }: { item: Item; brief?: boolean }) {
  const speech = i.kind === "said", title = titles[i.kind]?.(i) ?? i.title;
  const show = () => document.querySelector(`.said [data-run="${i.run}"]`)?.scrollIntoView({ block: "center" });
  return (
    <>
      <small class="by">{i.run && !speech ? <a href={address("run", i.run)}>{title}</a> : <b>{title}</b>} <When at={i.at} /></small>
      {brief ? <button class="plain" onClick={show}>Show the result ↑</button> : <Told item={i} title={title} />}
    </>
  );
}
function Told({ item: i, title = "" }: { item: Item; title?: string }) {
  const speech = i.kind === "said" || ends(i);
  return (
    <>
      {!i.text || title.includes(i.text) ? null : speech ? <Markdown text={i.text} /> : <p class="soft">{cut(i.text, 400)}</p>}
      {i.cut ? <small>There is more{i.run ? <> in <a href={address("run", i.run)}>{i.run}</a></> : ""}.</small> : null}
      {i.kind === "failed" && i.detail.next ? <Markdown text={String(i.detail.next)} /> : null}
    </>
  );
}

// A run where its quote was made: what it does, then what came of it.
function RunHere({ item, end, doing }: { item: Item; end: Item | undefined; doing: Signal<Item | null> }) {
  const id = item.run, r = runs.value.get(id), status = (end?.detail.status ?? (askOf(id) ? "waiting" : (r?.status ?? "running"))) as Status;
  const does = status !== "running" ? "" : doing.value?.run === id ? doing.value.text : (r?.current_activity || r?.progress);
  useEffect(() => void (r || refreshRun(id)), []);
  const acts = r ? runActs(r).filter((a) => a.id !== "message") : [], on = useActs(acts);
  const keys = [...on.keys, { key: "Enter", does: "open the run", run: () => go("run", id) }];
  return (
    <div data-run={id}>
      <Card name={id} label={end?.title ?? item.title} keys={keys} class="panel">
        <div class="row head">
          <StatusTag status={status} />
          <strong class="grow ellipsis" title={item.text}>{item.text || item.title}</strong>
          <a href={address("run", id)} aria-label={`Open ${id}`}>Open</a>
          {acts.length ? <Menu label="More">{acts.map((a) => <ActButton key={a.id} act={{ kind: "plain", ...a }} on={on} />)}</Menu> : null}
        </div>
        <small class="ellipsis">
          {end ? <>{end.title} <When at={end.at} /></> : <>{roleName(item.role)}{r ? <> · <Elapsed run={r} /> · {r.cost_cents ? about(r) : ""}{money(r.cost_cents)}</> : null}{does ? ` · ${does}` : ""}</>}
        </small>
        {end ? <Told item={end} /> : null}
      </Card>
    </div>
  );
}

// ---- saying something

const MINE = 100; // lines that the arrows bring back
function Say({ id, s, mine, begin, shown, follow }: { id: string; s: Session | undefined; mine: () => string[]; begin: () => void; shown: () => string; follow: () => void }) {
  const text: Signal<string> = draft(`say ${id}`), { problem, busy, send } = useSend(), field = useRef<HTMLTextAreaElement>(null), back = useRef(0);
  useLayoutEffect(() => grown(field.current), [text.value]);
  const write = (words: string) => {
    if (!text.value) begin();
    text.value = words;
  };
  const say = async (e: Event) => {
    const last = shown();
    e.preventDefault();
    if (!text.value.trim() || busy.value) return;
    follow();
    if (!(await send(() => once(`${pathOf(id)}/messages`, { text: text.value }, { shown: last })))) return;
    text.value = "";
    back.current = 0;
    refreshSessions();
  };
  const key = (e: KeyboardEvent) => {
    const said = e.key.startsWith("Arrow") ? mine() : [], step = e.key === "ArrowUp" ? 1 : e.key === "ArrowDown" ? -1 : 0;
    if (sends(e)) return void say(e);
    if (e.key === "Escape") field.current?.blur();
    if (!text.value) back.current = 0;
    const next = back.current + step;
    if (!step || text.value !== (said[back.current - 1] ?? "") || next < 0 || next > said.length) return;
    e.preventDefault();
    back.current = next;
    write(said[next - 1] ?? "");
  };
  return (
    <form class="composer" onSubmit={say}>
      {s?.status === "busy" ? (
        <div class="row busy">
          <span class="grow soft ellipsis">{s.trouble ? `${s.trouble}. ` : ""}Ava is {s.doing ? s.doing[0]!.toLowerCase() + s.doing.slice(1) : "working"}</span>
          <button type="button" onClick={() => void attempt(() => post(`${pathOf(id)}/stop`))}>Stop</button>
        </div>
      ) : null}
      <div class="row field">
        <textarea class="grow" ref={field} rows={1} aria-label="Message Ava" placeholder="Message Ava…" value={text} onInput={(e) => write(e.currentTarget.value)} onKeyDown={key} />
        <button class="primary" disabled={busy.value || !text.value.trim()}>Send</button>
      </div>
      <Problem text={problem.value} />
    </form>
  );
}
const sends = (e: KeyboardEvent) => e.key === "Enter" && !e.shiftKey && !e.isComposing;
// The field is as high as its words, within the limits of the sheet.
function grown(el: HTMLTextAreaElement | null) {
  if (!el) return;
  el.style.height = "auto";
  el.style.height = `${el.scrollHeight + el.offsetHeight - el.clientHeight}px`;
}

// Models to choose from: for a conversation that has begun only those that can read what it was told.
function Models({ session, value, first, onChange, disabled }: { session?: string; value: string; first?: string; onChange: (model: string) => void; disabled?: boolean }) {
  const { data } = useGet<{ models: { id: string }[] }>(`/api/v1/models${session ? `?session=${encodeURIComponent(session)}` : ""}`);
  const all = [...new Set([value, ...(data?.models.map((m) => m.id) ?? [])])].filter(Boolean);
  return (
    <select aria-label="Model" title={value} value={value} disabled={disabled} onChange={(e) => onChange(e.currentTarget.value)}>
      {first ? <option value="">{first}</option> : null}
      {all.map((m) => <option key={m} value={m} title={m}>{modelName(m)}</option>)}
    </select>
  );
}

function Talk({ id }: { id: string }) {
  const { items, doing, odd, missing } = useItems(id), { writing, on } = useWriting(id, items), s = sessionOf(id), many = useSignal(FIRST);
  const now: Item[] = on.value ? [{ lsn: -1, at: new Date().toISOString(), kind: "said", session: id, run: "", role: "", ask: "", title: "Ava", text: "", detail: { by: "ava" } }] : [];
  const rows = rowsOf([...items.value, ...now], [...asks.value.values()].filter((a) => a.session === id));
  const end = new Map(items.value.filter(ends).map((i) => [i.run, i]));
  const { list, below, follow, stick } = useNewest(`${items.value.at(-1)?.lsn} ${on.value} ${rows.map((r) => r.ask?.hash ?? "").join("")}`), { begin, shown } = useShown(rows, list);
  useAcknowledged(id, s?.status === "idle" ? (items.value.at(-1)?.lsn ?? 0) : 0, !below.value);
  useStand();
  useKeys([
    { key: "j", does: "next card", run: () => moveCard(1) },
    { key: "k", does: "previous card", run: () => moveCard(-1) },
  ]);
  if (missing.value) return <Empty title={`There is no conversation ${id}`}><h1 class="visually-hidden">Unknown conversation</h1><p>{missing.value}</p><p><a href={address("chat")}>All conversations</a></p></Empty>;
  const mine = () => items.value.filter((i) => i.kind === "said" && !hers(i) && !i.run && !i.cut).map((i) => i.text).reverse().slice(0, MINE);
  const model = (m: string) => void attempt(async () => (await post(`${pathOf(id)}/model`, { model: m }), refreshSessions()));
  const earlier = () => {
    const el = list.current!, high = el.scrollHeight;
    many.value = NEWEST * 2;
    requestAnimationFrame(() => (el.scrollTop += el.scrollHeight - high)); // the lines that were read stay where they were
  };
  let last = new Date().toDateString();
  const divided = (r: Row): ComponentChildren => {
    const was = last;
    last = new Date(r.at).toDateString();
    return was === last ? null : <li key={`day ${r.key}`} class="day"><small>{date(r.at)}</small></li>;
  };
  return (
    <section class="talk" aria-label="Conversation">
      <header class="row head">
        <a class="back" href={address("chat")} aria-label="All conversations">‹</a>
        <h1 class="grow ellipsis" title={s?.title}>{s?.title || "Conversation"}</h1>
        {s ? <small class="ellipsis facts" title={`${s.cwd || "no folder"}, started ${exactly(s.created_at)}`}>{s.cwd.replace(/.*\/(?=.)/, "") || "no folder"} · <span class="number">{money(s.cost_cents)}</span></small> : null}
        {s ? <Models session={id} value={s.model} onChange={model} disabled={s.status === "busy"} /> : null}
      </header>
      {odd ? <p class="soft" role="status">{odd}</p> : null}
      <ol class="said" ref={list} tabIndex={0} aria-label="Messages">
        {rows.length > many.value ? <li class="day"><button class="plain" onClick={earlier}>Show earlier</button></li>
          : items.value.length >= NEWEST ? <li class="day"><small>Older ones are in <a href={address("logs", "", { session: id })}>the logs</a>.</small></li> : null}
        {rows.slice(-many.value).flatMap((r) => [
          divided(r),
          <li key={r.key} class={r.ask ? "open" : r.begun ? "runs" : `${r.item!.kind} ${r.item!.detail.by ?? ""}`}>
            {r.ask ? <AskCard key={r.ask.id} ask={r.ask} /> : r.begun ? r.begun.map((i) => <RunHere key={i.run} item={i} end={end.get(i.run)} doing={doing} />)
              : r.key === -1 ? <><small class="by"><b>Ava</b></small><Words of={writing} stick={stick} /></> : <ItemRow item={r.item!} brief={r.brief} />}
          </li>,
        ])}
      </ol>
      {below.value ? <button class="below" onClick={follow}>New below ↓</button> : null}
      <Say id={id} s={s} mine={mine} begin={begin} shown={shown} follow={follow} />
    </section>
  );
}

// ---- a new one, and the list

const folders = () => [...new Set([...sessions.value, ...runs.value.values(), ...claudeSessions.value].map((x) => x.cwd).filter(Boolean))].sort();
function New() {
  const text = draft("new conversation"), cwd = draft("new conversation's folder", sessions.value.find((s) => s.cwd)?.cwd ?? ""), model = useSignal(""), { problem, busy, send } = useSend();
  const id = useRef(crypto.randomUUID());
  const begin = (e: Event) => {
    e.preventDefault();
    if (!text.value.trim() || busy.value) return;
    void send(async () => {
      const s = await post<Session>("/api/v1/sessions", { session_id: id.current, ...(cwd.value ? { cwd: cwd.value } : {}), ...(model.value ? { model: model.value } : {}) });
      await once(`${pathOf(s.session_id)}/messages`, { text: text.value });
      text.value = "";
      refreshSessions();
      go("chat", s.session_id);
    });
  };
  return (
    <section class="talk" aria-label="New conversation">
      <header class="row head"><a class="back" href={address("chat")} aria-label="All conversations">‹</a><h1>New conversation</h1></header>
      <form class="stack panel begin" onSubmit={begin}>
        <label>Message
          <textarea ref={place.value.id ? focused : null} rows={4} placeholder="Ask Ava, or tell her what to get done" value={text} onInput={(e) => (text.value = e.currentTarget.value)} onKeyDown={(e) => sends(e) && begin(e)} />
        </label>
        <label>Folder that Ava may read
          <input class="wide mono" list="folders" placeholder="none" value={cwd} onInput={(e) => (cwd.value = e.currentTarget.value)} />
        </label>
        <datalist id="folders">{folders().map((f) => <option key={f} value={f} />)}</datalist>
        <label>Model <Models value={model.value} first={`Default (${modelName(health.value?.model ?? "")})`} onChange={(m) => (model.value = m)} /></label>
        <Problem text={problem.value} />
        <div class="row"><button class="primary" disabled={busy.value || !text.value.trim()}>Start</button></div>
      </form>
    </section>
  );
}

const MANY = 10; // conversations, from which on they are searched
function List({ id }: { id: string }) {
  const all = sessions.value, q = place.value.query.get("q") ?? "", words = q.toLowerCase().split(/\s+/);
  const found = all.filter((s) => words.every((w) => `${s.title} ${s.cwd}`.toLowerCase().includes(w)));
  return (
    <nav class="list" aria-label="Conversations">
      <h1>Chat</h1>
      <a class="begin" href={address("chat", "new")} aria-current={id === "new" ? "page" : undefined}><Icon name="plus" /> New conversation</a>
      {all.length > MANY ? <input type="search" aria-label="Search conversations" placeholder="Search" value={q} onInput={(e) => put({ q: e.currentTarget.value })} /> : null}
      {found.map((s) => (
        <a key={s.session_id} href={address("chat", s.session_id, { q })} aria-current={id === s.session_id ? "page" : undefined}>
          <div class="ellipsis">{s.title || "Untitled"}</div>
          <small><Ago at={s.updated_at} />{s.status === "busy" ? " · Ava is working" : ""}{s.live_runs ? ` · ${s.live_runs} running` : ""}{s.waiting ? <b class="needs"> · {s.waiting} waiting</b> : null}</small>
        </a>
      ))}
      {found.length ? null : <p class="soft">{q ? "No matching conversations." : "No conversations yet."}</p>}
    </nav>
  );
}

export function Chat({ id }: { id: string }) {
  return (
    <div class={id ? "sides inner" : "sides"}>
      <List id={id} />
      {id && id !== "new" ? <Talk key={id} id={id} /> : <New key="new" />}
    </div>
  );
}
