// All runs, as a list that is filtered, sorted and paged by the daemon, or as a board. The filters stand in
// the address, by the names that the daemon has for them.
import { computed, effect, signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Menu, moveCard, unfocused, useStand } from "../acts";
import { download, get, type Run, type RunList, type Status } from "../api";
import { setCardKeys, useKeys } from "../keys";
import { keep, kept } from "../kept";
import { address, go, place, put } from "../router";
import { cancelAct } from "../run_acts";
import { live, putRuns, runList, runs, stream } from "../store";
import { Ago, Elapsed, Empty, focused, Problem, StatusTag, toast } from "../ui";
import { about, costOf, cut, day, modelName, money, number, roleName, statusWords, tokens } from "../words";
import { Board } from "./board";
import "./runs.css";

const filters = { q: "", status: "", role: "", model: "", cwd: "", user: "", since: "", until: "", min_cents: "", group: "", tag: "", session: "" };
type Filter = keyof typeof filters;
type Query = Partial<Record<Filter | "sort", string>>;
const names = [...Object.keys(filters), "sort"] as (Filter | "sort")[];
const asked = computed<Query>(() => Object.fromEntries(names.map((n) => [n, place.value.query.get(n) ?? ""]).filter(([, v]) => v)));
const same = (a: Query, b: Query) => names.every((n) => (a[n] ?? "") === (b[n] ?? ""));
const put_ = (q: Query) => put({ ...filters, sort: "", ...q });

// ---- the list, kept while the page is elsewhere: people who come back find it as it was

interface Found {
  path: string;
  ids: string[]; // ids in the order of the daemon
  next: string;
  counts: RunList["counts"] | null;
  error: string;
}
const PAGE = 200, AGAIN_MS = 1000, TYPED_MS = 150;
const found = signal<Found>({ path: "", ids: [], next: "", counts: null, error: "" });
const above = signal(0); // new ones that are not shown yet, since somebody reads further down
let top = 0; // pixels that are scrolled
const steady = () => top > 0 || !!document.querySelector(".runs-list:hover"); // somebody reads, or is about to click
let reading = ""; // the address that is read
const pathOf = (q: Query) => `/api/v1/runs?${new URLSearchParams({ all: "1", limit: String(PAGE), ...q })}`;

const once = (ids: string[]) => [...new Set(ids)]; // a run whose figures grow is on two pages
// The first page. Of the list that stands already the rest stays, unless it does not follow on it.
async function readFirst(path: string, shown: boolean) {
  reading = path;
  try {
    const page = await get<RunList>(`${path}&counts=1`), ids = page.runs.map((r) => r.subagent_id), was = found.value;
    if (reading !== path) return;
    putRuns(page.runs);
    const known = new Set(was.ids), last = ids.length ? was.ids.indexOf(ids.at(-1)!) : -1, on = was.path === path;
    above.value = 0;
    if (on && !shown && ids.some((id) => !known.has(id))) {
      above.value = ids.filter((id) => !known.has(id)).length;
      found.value = { ...was, counts: page.counts ?? null };
    } else found.value = { path, ids: on && last >= 0 ? once([...ids, ...was.ids.slice(last + 1)]) : ids, next: on && last >= 0 ? was.next : page.next, counts: page.counts ?? null, error: "" };
  } catch (e) {
    if (reading === path) found.value = { ...found.value, ...(found.value.path === path ? {} : { path, ids: [], next: "", counts: null }), error: (e as Error).message };
  }
  if (reading === path) reading = "";
}
async function readMore() {
  const { path, next } = found.value;
  if (reading || !next) return;
  reading = path;
  try {
    const page = await get<RunList>(`${path}&before=${encodeURIComponent(next)}`);
    if (reading !== path) return;
    putRuns(page.runs);
    found.value = { ...found.value, ids: once([...found.value.ids, ...page.runs.map((r) => r.subagent_id)]), next: page.next };
  } catch (e) {
    found.value = { ...found.value, error: (e as Error).message };
  }
  if (reading === path) reading = "";
}
function useFound() {
  useEffect(() => {
    let timer = 0, late = 0;
    const off = effect(() => {
      const path = pathOf(asked.value);
      clearTimeout(timer);
      if (found.peek().path !== path) timer = window.setTimeout(() => ((top = 0), void readFirst(path, true)), found.peek().path ? TYPED_MS : 0);
    });
    const again = () => (late ||= window.setTimeout(() => ((late = 0), reading || void readFirst(pathOf(asked.value), !steady())), AGAIN_MS));
    if (found.value.path === pathOf(asked.value)) again();
    const offs = [off, stream.onAgain(again), stream.onItem((i) => (i.kind === "started" || i.kind === "result" || i.kind === "failed") && again())];
    return () => {
      offs.forEach((f) => f());
      clearTimeout(timer);
      clearTimeout(late);
    };
  }, []);
}

// ---- rows: a run, or a group of them where the list is in the order of time

interface Row {
  id: string; // id of a run or of a group
  of: string[]; // the runs of a group
  within: boolean;
}
const opened = signal<ReadonlySet<string>>(new Set());
const groupOf = (id: string) => runs.value.get(id)?.group_id ?? "";
const rows = computed<Row[]>(() => {
  const { ids } = found.value, one = (id: string, within = false) => ({ id, of: [], within });
  if (asked.value.sort || asked.value.group) return ids.map((id) => one(id));
  const groups = new Map<string, string[]>();
  for (const id of ids) if (groupOf(id)) groups.set(groupOf(id), [...(groups.get(groupOf(id)) ?? []), id]);
  return ids.flatMap((id) => {
    const group = groupOf(id), of = groups.get(group) ?? [];
    if (of.length < 2) return [one(id)];
    if (of[0] !== id) return [];
    const inOrder = [...of].sort((a, b) => (runs.value.get(a)?.group_index ?? 0) - (runs.value.get(b)?.group_index ?? 0));
    return [{ id: group, of: inOrder, within: false }, ...(opened.value.has(group) ? inOrder.map((r) => one(r, true)) : [])];
  });
});

const current = signal(""); // the row that has the keyboard
const picked = signal<ReadonlySet<string>>(new Set());
let pickedLast = "";
function toggle(set: typeof picked, id: string) {
  const next = new Set(set.value);
  if (!next.delete(id)) next.add(id);
  set.value = next;
}
const runsOf = (r: Row) => (r.of.length ? r.of : [r.id]);
// `to` takes all rows between this one and the one before.
function pick(row: Row, to = false) {
  const all = rows.value, from = all.findIndex((r) => r.id === pickedLast), at = all.indexOf(row);
  const list = to && from >= 0 ? all.slice(Math.min(from, at), Math.max(from, at) + 1) : [row], next = new Set(picked.value);
  const off = !to && runsOf(row).every((id) => next.has(id));
  for (const id of list.flatMap(runsOf)) off ? next.delete(id) : next.add(id);
  picked.value = next;
  pickedLast = row.id;
}

const columns: [name: string, sort?: string][] = [["Task"], ["Role"], ["Turn"], ["Time", "time"], ["Tokens", "tokens"], ["Cost", "cost"], ["Started", ""]];

function Cells({ row }: { row: Row }) {
  const of = row.of.map((id) => runs.value.get(id)!), r = of[0] ?? runs.value.get(row.id);
  if (!r) return null;
  const some = of.length > 0, all = some ? of : [r], worst = of.find(live) ?? of.find((x) => x.status !== "success") ?? r;
  const open = opened.value.has(row.id);
  return (
    <>
      <span role="gridcell" class="task">
        {some ? <button class="plain" tabIndex={-1} aria-expanded={open} aria-label={open ? "Close the group" : "Open the group"} onClick={() => toggle(opened, row.id)}>{open ? "▾" : "▸"}</button> : null}
        <StatusTag status={some ? worst.status : r.status} word={false} />
        <a tabIndex={-1} class="ellipsis" href={some ? address("group", row.id) : address("run", r.subagent_id)} title={cut(r.task, 500)}>{r.task}</a>
        {some ? <small>{of.length} runs</small> : null}
        {!some && r.machine ? <small class="machine">on {r.machine}</small> : null}
        {some ? null : r.tags?.map((t) => <span key={t} class="tag">{t}</span>)}
      </span>
      <span role="gridcell" class="ellipsis">{some ? "group" : roleName(r.role)}</span>
      <span role="gridcell" class="number" title={r.progress}>{some ? `${of.filter((x) => !live(x)).length}/${of.length}` : r.iteration}</span>
      <span role="gridcell" class="number">{some ? null : <Elapsed run={r} />}</span>
      <span role="gridcell" class="number">{about(...all)}{tokens(all.reduce((n, x) => n + x.tokens_used, 0))}</span>
      <span role="gridcell" class="number">{costOf(...all)}</span>
      <span role="gridcell" class="number"><Ago at={r.started_at} /></span>
    </>
  );
}

const ROW = 32, PHONE = 50, MORE = 8;
const narrow = matchMedia("(max-width: 700px)");
function List() {
  const all = rows.value, el = useRef<HTMLDivElement>(null), at = useSignal(0), room = useSignal(25), tall = useSignal(narrow.matches ? PHONE : ROW);
  const first = Math.max(0, at.value - MORE), last = Math.min(all.length, at.value + room.value + 2 * MORE);
  const look = () => {
    const e = el.current!;
    top = e.scrollTop;
    at.value = Math.floor(top / tall.value / MORE) * MORE; // drawn again every few rows
    if (top + e.clientHeight * 3 > e.scrollHeight) void readMore();
    if (above.value && !steady()) void readFirst(found.value.path, true);
  };
  const stand = (to: number) => {
    const row = all[Math.max(0, Math.min(all.length - 1, to))], e = el.current!, y = all.indexOf(row!) * tall.value;
    if (!row) return;
    current.value = row.id;
    e.focus({ preventScroll: true });
    const head = tall.value === ROW ? ROW : 0; // sticks over the first
    if (y < e.scrollTop) e.scrollTop = y;
    else if (y + tall.value + head > e.scrollTop + e.clientHeight) e.scrollTop = y + tall.value + head - e.clientHeight;
  };
  const here = () => all.findIndex((r) => r.id === current.value), row = () => all[here()];
  const fold = (open: boolean) => row()?.of.length && opened.value.has(row()!.id) !== open && toggle(opened, row()!.id);
  const moves: Record<string, () => unknown> = {
    ArrowDown: () => stand(here() + 1), ArrowUp: () => stand(here() - 1), Home: () => stand(0), End: () => stand(all.length), PageDown: () => stand(here() + room.value - 2), PageUp: () => stand(here() - room.value + 2),
    ArrowRight: () => fold(true), ArrowLeft: () => fold(false), " ": () => row() && pick(row()!), Enter: () => row() && (row()!.of.length ? toggle(opened, row()!.id) : go("run", row()!.id)),
  };
  const onKey = (e: KeyboardEvent) => {
    if (e.target !== e.currentTarget || e.ctrlKey || e.metaKey || e.altKey || !moves[e.key]) return;
    e.preventDefault();
    moves[e.key]!();
  };
  useKeys([
    { key: "j", does: "next run", run: () => stand(here() + 1) },
    { key: "k", does: "previous run", run: () => stand(here() - 1) },
  ], [all]);
  useLayoutEffect(() => {
    const e = el.current!, see = new ResizeObserver(() => (room.value = Math.ceil(e.clientHeight / tall.value)));
    const width = () => (tall.value = narrow.matches ? PHONE : ROW);
    see.observe(e);
    narrow.addEventListener("change", width);
    e.scrollTop = top;
    if (current.value && unfocused()) e.focus({ preventScroll: true });
    return () => {
      see.disconnect();
      narrow.removeEventListener("change", width);
    };
  }, []);
  useLayoutEffect(look, [all, tall.value]);
  const { sort = "" } = asked.value, seen = all.slice(first, last);
  return (
    <div class="runs-list" role="grid" aria-label="Runs" aria-multiselectable="true" aria-rowcount={found.value.next ? -1 : all.length + 1} tabIndex={0} ref={(e) => {
        el.current = e;
        if (e) setCardKeys(e, [{ key: "x", does: "select", run: () => row() && pick(row()!) }]);
      }}
      aria-activedescendant={seen.some((r) => r.id === current.value) ? `row-${current.value}` : undefined} onScroll={look} onMouseLeave={look} onKeyDown={onKey}>
      <div class="heads" role="row" aria-rowindex={1}>
        <span role="columnheader"><span class="visually-hidden">Selected</span></span>
        {columns.map(([name, by], i) => (
          <span key={name} role="columnheader" class={i < 2 ? "" : "number"} aria-sort={by === sort ? "descending" : undefined}>
            {by == null ? name : <button class="plain" title={`Sort by ${name.toLowerCase()}`} onClick={() => put({ sort: by })}>{name}{by === sort ? " ↓" : ""}</button>}
          </span>
        ))}
      </div>
      <div role="rowgroup" style={{ height: `${all.length * tall.value}px` }}>
        {seen.map((r, i) => { // keys by place: a row that leaves at one end is drawn anew at the other
          const on = runsOf(r).every((id) => picked.value.has(id));
          return (
            <div key={(first + i) % (room.value + 3 * MORE)} id={`row-${r.id}`} role="row" aria-rowindex={first + i + 2} aria-selected={on} data-run={r.of.length ? undefined : r.id} data-group={r.of.length ? r.id : undefined}
              class={`${r.within ? "within " : ""}${r.id === current.value ? "current" : ""}`} style={{ transform: `translateY(${(first + i) * tall.value}px)` }} onClick={() => (current.value = r.id)}>
              <span role="gridcell"><input type="checkbox" tabIndex={-1} aria-label={`Select ${r.id}`} checked={on} onClick={(e) => pick(r, e.shiftKey)} /></span>
              <Cells row={r} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

// ---- filters

interface View {
  name: string;
  query: Query;
}
const views: View[] = [
  { name: "All", query: {} }, { name: "Running", query: { status: "live" } }, { name: "Waiting", query: { status: "waiting,parked,paused" } },
  { name: "Failed today", query: { status: "failed", since: "today" } }, { name: "Over $1", query: { min_cents: "100" } },
];
const OWN = 20; // views of one's own
function ownViews(): View[] {
  try {
    return JSON.parse(kept("views") || "[]");
  } catch {
    return [];
  }
}
const own = signal(ownViews());
const keepViews = (list: View[]) => keep("views", JSON.stringify((own.value = list.slice(-OWN))));

const classes: Record<string, string> = { live: "not ended", ended: "ended", failed: "failed" };
const statusNames = new Map(Object.entries({ ...statusWords, ...classes }));
const statusText = (list: string) => list.split(",").map((s) => statusNames.get(s) ?? s).join(" or ");
const when = (t: string) => (/^\d{4}-/.test(t) ? day(t) : t);
const said: Record<Filter, (v: string) => string> = {
  q: (v) => `“${v}”`, status: statusText, role: roleName, model: modelName, cwd: (v) => `in ${v}`, user: (v) => `by ${v}`, since: (v) => `since ${when(v)}`, until: (v) => `until ${when(v)}`,
  min_cents: (v) => `over ${Number(v) >= 0 ? money(Number(v)) : v}`, group: (v) => `group ${v}`, tag: (v) => `tag ${v}`, session: () => "one conversation",
};

// A choice among the values that the known runs have.
function Choose({ name, label, of }: { name: Filter | "sort"; label: string; of: [value: string, text: string][] }) {
  const now = asked.value[name] ?? "", all = !now || of.some(([v]) => v === now) ? of : [...of, [now, now] as [string, string]];
  return (
    <label>{label}
      <select value={now} onChange={(e) => put({ [name]: e.currentTarget.value })}>{name === "sort" ? null : <option value="">any</option>}{all.map(([v, text]) => <option key={v} value={v}>{text}</option>)}</select>
    </label>
  );
}
function Filters() {
  const of = (get: (r: Run) => string, text = (v: string) => v) => [...new Set(runList.value.map(get))].filter(Boolean).sort().map((v): [string, string] => [v, text(v)]);
  const statuses = Object.keys(statusWords) as Status[];
  return (
    <div class="filters">
      <Choose name="status" label="Status" of={[...Object.entries(classes), ...statuses.filter((s) => s !== "starting" && s !== "error").map((s): [string, string] => [s, statusWords[s]])]} />
      <Choose name="role" label="Role" of={of((r) => r.role, roleName)} />
      <Choose name="model" label="Model" of={of((r) => r.model, modelName)} />
      <Choose name="cwd" label="Folder" of={of((r) => r.cwd)} />
      <Choose name="tag" label="Tag" of={[...new Set(runList.value.flatMap((r) => r.tags ?? []))].sort().map((t) => [t, t])} />
      <Choose name="since" label="Started" of={[["1 hour ago", "in the last hour"], ["today", "today"], ["24 hours ago", "in the last 24 hours"], ["7 days ago", "in the last 7 days"], ["30 days ago", "in the last 30 days"]]} />
      <label>Cost over ($) <input inputMode="decimal" size={8} defaultValue={String(Number(asked.value.min_cents) / 100 || (asked.value.min_cents ?? ""))} onChange={(e) => {
        const dollars = number(e.currentTarget.value.trim());
        put({ min_cents: typeof dollars === "string" ? dollars : dollars > 0 ? String(Math.round(dollars * 100)) : "" });
      }} /></label>
      <Choose name="sort" label="Sort by" of={[["", "newest"], ["cost", "cost"], ["time", "time"], ["tokens", "tokens"]]} />
    </div>
  );
}

function Bars() {
  const q = asked.value, naming = useSignal(false), search = useRef<HTMLInputElement>(null), chips = (Object.keys(filters) as Filter[]).filter((n) => q[n]);
  const { counts, ids } = found.value, mine = own.value.some((v) => same(v.query, q)) || views.some((v) => same(v.query, q));
  useKeys([{ key: "/", does: "search runs", run: () => search.current?.focus() }]);
  const saveView = (e: SubmitEvent) => {
    e.preventDefault();
    const name = String(new FormData(e.currentTarget as HTMLFormElement).get("name")).trim();
    if (name) keepViews([...own.value.filter((v) => v.name !== name), { name: cut(name, 40), query: q }]);
    naming.value = false;
  };
  return (
    <div class="bars">
      <div class="row">
        <input type="search" class="grow" ref={search} aria-label="Search runs" placeholder="Search task, ID, role, folder  /" value={q.q ?? ""} onInput={(e) => put({ q: e.currentTarget.value })} />
        <Menu label="Filter" name={<span>Filter ▾</span>}><Filters /></Menu>
        <button class="plain" title="List or board (b)" onClick={flip}>{isBoard() ? "List" : "Board"}</button>
      </div>
      <div class="row views" role="group" aria-label="Saved views">
        {[...views, ...own.value].map((v, i) => (
          <span key={v.name} class="row-tight">
            <button class={same(v.query, q) ? "tag blue" : "tag"} aria-pressed={same(v.query, q)} onClick={() => put_(v.query)}>{v.name}</button>
            {i >= views.length ? <button class="plain" aria-label={`Forget the view ${v.name}`} onClick={() => keepViews(own.value.filter((x) => x !== v))}>×</button> : null}
          </span>
        ))}
        {mine ? null : naming.value ? <form onSubmit={saveView}><input name="name" ref={focused} aria-label="Name of the view" placeholder="Name, Enter" size={14} onKeyDown={(e) => e.key === "Escape" && (naming.value = false)} /></form> : <button class="plain" onClick={() => (naming.value = true)}>Save view</button>}
        <span class="grow" />
        <small class="number" role="status">{counts ? `${counts.total} ${counts.total === 1 ? "run" : "runs"} · ${money(counts.cost_cents)}` : `${ids.length} runs`}</small>
      </div>
      {chips.length ? <div class="row">
        {chips.map((n) => <span key={n} class="tag" title={q[n]}>{cut(said[n](q[n]!), 60)} <button class="plain" aria-label={`Remove the filter ${said[n](q[n]!)}`} onClick={() => put({ [n]: "" })}>×</button></span>)}
      </div> : null}
    </div>
  );
}

function Picked() {
  const ids = found.value.ids.filter((id) => picked.value.has(id)), of = ids.map((id) => runs.value.get(id)!).filter(Boolean), working = of.filter(live).map((r) => r.subagent_id);
  const away = picked.value.size - ids.length, cancel = cancelAct(working, `Cancel ${working.length || ""}`, `${working.length} ${working.length === 1 ? "run" : "runs"}`);
  const save = () => {
    download(new Blob([JSON.stringify(of, null, 2)], { type: "application/json" }), "runs.json");
    toast(`Exported ${of.length} ${of.length === 1 ? "run" : "runs"}.`);
  };
  return picked.value.size === 0 ? null : (
    <div class="row picked" role="toolbar" aria-label="Selected runs">
      <strong>{ids.length} selected</strong>{away ? <small>{away} more {away === 1 ? "is" : "are"} not in this list</small> : null}
      <button class="danger" disabled={!working.length} onClick={cancel.run}>{cancel.name}</button>
      <button disabled={ids.length !== 2} title="Two of them" onClick={() => go("compare", ids[0], {}, ids[1]!)}>Compare</button>
      <button disabled={!of.length} onClick={save}>Export JSON</button>
      <button class="plain" onClick={() => (picked.value = new Set())}>Clear</button>
    </div>
  );
}

const isBoard = () => place.value.query.get("as") === "board";
const flip = () => put({ as: isBoard() ? "" : "board" });
function BoardOf() {
  useStand();
  useKeys([
    { key: "j", does: "next card", run: () => moveCard(1) },
    { key: "k", does: "previous card", run: () => moveCard(-1) },
  ]);
  return <Board list={found.value.ids.map((id) => runs.value.get(id)!).filter(Boolean)} />;
}

export function Runs() {
  useFound();
  useKeys([{ key: "b", does: "list or board", run: flip }]);
  const { path, ids, error, next } = found.value, none = !ids.length && path && !error;
  const filtered = useMemo(() => !same(asked.value, {}), [asked.value]);
  return (
    <div class="runs">
      <h1 class="visually-hidden">Runs</h1>
      <Bars />
      <Problem text={error} />
      {above.value ? <button class="new-above" onClick={() => void readFirst(path, true).then(() => ((top = 0), document.querySelector(".runs-list")?.scrollTo(0, 0)))}>{above.value} new {above.value === 1 ? "run" : "runs"} ↑</button> : null}
      {none ? <Empty title={filtered ? "No matching runs" : "No runs yet"}>{filtered ? <p><button onClick={() => put_({})}>Show all runs</button></p> : null}</Empty> : isBoard() ? <BoardOf /> : <List />}
      {isBoard() && next ? <p><button onClick={() => void readMore()}>Show more</button></p> : null}
      <Picked />
    </div>
  );
}
