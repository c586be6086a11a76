// Changes that a run proposes for the files of its folder, as somebody reviews them: file by file, with
// words about lines that the run goes on from, and Apply, which writes them.
import { computed, signal, useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Sure } from "../acts";
import { ApiError, post, type Ask, type AskDone, type Item, type ItemPage, type Patch, type PatchText, type Result } from "../api";
import { diffOf, sideOf, wordsOf, type Step } from "../diff";
import { keep, kept } from "../kept";
import { address, go, place } from "../router";
import { asks, putAsk, refreshAsks } from "../store";
import { copy, Empty, focused, Modal, Problem, Reading, useGet, useSend } from "../ui";
import { escaped, visible } from "../words";
import "./changes.css";

interface Line {
  kind: "" | "add" | "del";
  old: number; // the number before; 0: the line is new
  now: number; // the number after; 0: the line is gone
  text: string;
  bare?: boolean; // ends without a newline
  words?: Step[]; // the words, where some of them stay
}
interface File {
  path: string;
  how: string; // "new", "deleted", another mode, or ""
  added: number;
  removed: number;
  hunks: Line[][];
}

// The head of a hunk says how many lines belong to it, so that within it a removed "-- a" is no head of a file.
function filesOf(patch: string): File[] {
  const files: File[] = [];
  let old = 0, now = 0, gone = 0, fresh = 0; // the next numbers, and how many lines are still to come
  for (const line of patch.split("\n")) {
    const file = files.at(-1), c = line[0], lines = file?.hunks.at(-1);
    if (lines && c === "\\") lines.at(-1)!.bare = true;
    else if (lines && (gone > 0 || fresh > 0)) {
      const kind = c === "+" ? "add" : c === "-" ? "del" : "";
      lines.push({ kind, old: kind === "add" ? 0 : old++, now: kind === "del" ? 0 : now++, text: line.slice(1) });
      if (kind === "add") file!.added++;
      else gone--;
      if (kind === "del") file!.removed++;
      else fresh--;
    } else if (line.startsWith("diff --git ")) files.push({ path: line.slice(13, 13 + (line.length - 16) / 2), how: "", added: 0, removed: 0, hunks: [] });
    else if (file) {
      const head = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
      if (head) [old, gone, now, fresh] = [1, 2, 3, 4].map((i) => Number(head[i] ?? 1)) as [number, number, number, number];
      if (head) file.hunks.push([]);
      else file.how ||= /^(new|deleted) file/.exec(line)?.[1] ?? (line.startsWith("new mode") ? `mode ${line.slice(-3)}` : "");
    }
  }
  return files;
}

// Lines beside each other: those that go beside those that come in their place, with the words that differ.
const LONG = 1000; // characters of a line whose words are compared
function pairsOf(lines: Line[]): [Line | undefined, Line | undefined][] {
  const pairs: [Line | undefined, Line | undefined][] = [];
  for (let i = 0; i < lines.length; ) {
    const gone: Line[] = [], come: Line[] = [];
    while (lines[i]?.kind === "del") gone.push(lines[i++]!);
    while (lines[i]?.kind === "add") come.push(lines[i++]!);
    if (!gone.length && !come.length) pairs.push([lines[i], lines[i++]]);
    for (let k = 0; k < Math.max(gone.length, come.length); k++) {
      const a = gone[k], b = come[k];
      pairs.push([a, b]);
      if (!a || !b || a.text.length + b.text.length > 2 * LONG) continue;
      const steps = diffOf(wordsOf(a.text), wordsOf(b.text)), same = steps.reduce((n, [kind, t]) => n + (kind ? 0 : t.trim().length), 0);
      if (same * 3 >= Math.max(a.text.trim().length, b.text.trim().length)) [a.words, b.words] = [sideOf(steps, "del"), sideOf(steps, "add")];
    }
  }
  return pairs;
}

// ---- words about lines, by run: they are there until they are sent or discarded

interface Note {
  path: string;
  line: Line;
  text: Signal<string>;
  open: Signal<boolean>; // true while it is written
}
const notesOf = new Map<string, Signal<Note[]>>();
function notes(run: string) {
  if (!notesOf.has(run)) notesOf.set(run, signal<Note[]>([]));
  return notesOf.get(run)!;
}
const placeOf = (n: Note) => `${n.path}:${n.line.now || n.line.old}${n.line.now ? "" : " (removed)"}`;
const said = (all: Note[]) =>
  `Somebody has read the changes of this run, and says of their lines:\n\n${all.map((n) => `${placeOf(n)}\n> ${n.line.text}\n${n.text.value.trim()}`).join("\n\n")}\n\nChange that, and keep the rest of the changes.`;

function NoteCard({ run, note: n }: { run: string; note: Note }) {
  const at = useRef<HTMLDivElement>(null);
  const drop = () => (notes(run).value = notes(run).value.filter((x) => x !== n));
  const done = () => {
    at.current?.parentElement?.querySelector<HTMLElement>(`[data-line="${n.line.kind}${n.line.now || n.line.old}"]`)?.focus({ preventScroll: true });
    n.open.value = false;
    if (!n.text.value.trim()) drop();
  };
  const key = (e: KeyboardEvent) => (e.key === "Escape" || (e.key === "Enter" && (e.ctrlKey || e.metaKey))) && (e.preventDefault(), done());
  return (
    <div class="note" ref={at}>
      {n.open.value ? (
        <>
          <textarea rows={2} ref={focused} aria-label={`Comment on ${placeOf(n)}`} placeholder="What should be different here?" maxLength={4000} value={n.text} onInput={(e) => (n.text.value = e.currentTarget.value)} onKeyDown={key} />
          <button onClick={done}>Done</button>
        </>
      ) : (
        <>
          <p class="grow">{n.text}</p>
          <button class="plain" onClick={() => (n.open.value = true)}>Edit</button>
          <button class="plain" onClick={drop}>Remove</button>
        </>
      )}
    </div>
  );
}

// The quote for going on has the comments in its context, and the inbox shows it.
function Notes({ run }: { run: string }) {
  const all = notes(run).value, full = all.filter((n) => n.text.value.trim()), { problem, busy, send } = useSend(), asked = useRef(["", ""]);
  if (!full.length) return null;
  const resume = () =>
    send(async () => {
      const context = said(full);
      if (asked.current[0] !== context) asked.current = [context, crypto.randomUUID()];
      const { proposal_id } = await post<{ proposal_id: string }>(`/api/v1/runs/${run}/resume`, { context, origin: "web", request_id: asked.current[1] });
      notes(run).value = [];
      refreshAsks();
      go("inbox", proposal_id);
    });
  return (
    <section class="notes panel" aria-label="Comments">
      <div class="row">
        <strong class="grow">{full.length} {full.length === 1 ? "comment" : "comments"}</strong>
        <Sure name="Discard" sure="Press again to discard" act={() => (notes(run).value = [])} />
        <button class="primary" disabled={busy.value} onClick={resume}>Resume with {full.length === 1 ? "this" : "these"}…</button>
      </div>
      <Problem text={problem.value} />
    </section>
  );
}

// ---- files

const width = signal(innerWidth), chosen = signal(kept("diff"));
addEventListener("resize", () => (width.value = innerWidth));
const beside = computed(() => width.value > 800 && (chosen.value ? chosen.value === "two" : width.value >= 1400));

const SHOWN = 1000; // lines of a file, and each time that more are asked for
const SMALL = 400; // lines of a file that is open at first

function Side({ line: l, numbers, comment }: { line: Line | undefined; numbers: ("old" | "now")[]; comment: (l: Line) => void }) {
  if (!l) return <><span class="no" /><code class="none" /></>;
  return (
    <>
      <button class="no" tabIndex={-1} data-line={l.kind + (l.now || l.old)} aria-label={`Line ${l.now || l.old}${l.now ? "" : ", removed"}: comment`} onClick={() => comment(l)}>
        {numbers.map((n) => <span key={n} data-n={l[n] || ""} />)}
      </button>
      <code class={l.kind}>{l.words ? l.words.map(([kind, text], i) => (kind ? <mark key={i}>{visible(text)}</mark> : visible(text))) : visible(l.text)}{l.bare ? <small> no newline at the end</small> : null}</code>
    </>
  );
}

function Lines({ run, file }: { run: string; file: File }) {
  const most = useSignal(SHOWN), at = useRef<HTMLDivElement>(null), two = beside.value;
  const pairs = useMemo(() => file.hunks.map(pairsOf), [file]), mine = notes(run).value.filter((n) => n.path === file.path);
  // Tab reaches one number of a file, the arrows the others.
  useEffect(() => void (at.current?.querySelector(".no[tabindex='0']") ?? at.current?.querySelector("button.no")?.setAttribute("tabindex", "0")));
  const move = (e: KeyboardEvent) => {
    const by = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0, now = e.target as HTMLElement, all = [...at.current!.querySelectorAll<HTMLElement>("button.no")];
    const next = by && now.matches(".no") ? all[all.indexOf(now) + by] : null;
    if (!next) return;
    e.preventDefault();
    now.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };
  const comment = (line: Line) => {
    const had = notes(run).value.find((n) => n.path === file.path && n.line.kind === line.kind && n.line.old === line.old && n.line.now === line.now);
    if (had) had.open.value = true;
    else notes(run).value = [...notes(run).value, { path: file.path, line, text: signal(""), open: signal(true) }];
  };
  const under = (...lines: (Line | undefined)[]) =>
    mine.filter((n) => lines.some((l) => l && l.kind === n.line.kind && l.old === n.line.old && l.now === n.line.now)).map((n) => <NoteCard key={placeOf(n)} run={run} note={n} />);
  let left = most.value;
  return (
    <div class={two ? "diff two" : "diff"} ref={at} onKeyDown={move}>
      {file.hunks.map((lines, h) => {
        if (left <= 0) return null;
        const rows: [Line | undefined, Line | undefined][] = two ? pairs[h]!.slice(0, left) : lines.slice(0, left).map((l) => [l, l]);
        left -= rows.length;
        return (
          <div key={h} class="hunk">
            {rows.map(([a, b], i) => (
              <div key={i}>
                <div class="line"><Side line={a} numbers={two ? ["old"] : ["old", "now"]} comment={comment} />{two ? <Side line={b} numbers={["now"]} comment={comment} /> : null}</div>
                {two && a !== b ? under(a, b) : under(a)}
              </div>
            ))}
          </div>
        );
      })}
      {left <= 0 ? <button class="plain" onClick={() => (most.value += SHOWN)}>Show more lines</button> : null}
    </div>
  );
}

const idOf = (path: string) => `file ${path}`;
const Counts = ({ of }: { of: { added: number; removed: number } }) => <span class="counts number"><b>+{of.added}</b> <i>−{of.removed}</i></span>;

function FilePart({ run, file: f, small }: { run: string; file: File; small: boolean }) {
  const here = place.value.rest[1] === f.path, open = useSignal(small || here);
  useEffect(() => {
    if (!here) return;
    open.value = true;
    document.getElementById(idOf(f.path))?.scrollIntoView({ block: "start" });
  }, [here]);
  return (
    <details id={idOf(f.path)} class="file" open={open.value} onToggle={(e) => (open.value = e.currentTarget.open)}>
      <summary><code class="grow">{visible(f.path)}</code>{f.how ? <span class="tag">{f.how}</span> : null}<Counts of={f} /></summary>
      {open.value ? f.hunks.length ? <Lines run={run} file={f} /> : <p class="soft">No lines: {f.how === "new" || f.how === "deleted" ? "the file is empty" : "only its mode"}.</p> : null}
    </details>
  );
}

function Files({ run, files, left }: { run: string; files: File[]; left: ComponentChildren }) {
  const at = (path: string) => address("run", run, {}, "changes", path), here = place.value.rest[1] ?? "";
  let before = 0;
  return (
    <div class="changes">
      <nav aria-label="Files that change">
        <ul class="plain-list">{files.map((f) => <li key={f.path}><a href={at(f.path)} title={escaped(f.path)} aria-current={here === f.path ? "location" : undefined}><span class="ellipsis"><bdi>{visible(f.path)}</bdi></span><Counts of={f} /></a></li>)}</ul>
      </nav>
      <div class="stack">
        <div class="row">
          <select class="grow" aria-label="File" value={here} onChange={(e) => (location.hash = at(e.currentTarget.value))}>
            {here ? null : <option value="">{files.length} {files.length === 1 ? "file" : "files"}</option>}
            {files.map((f) => <option key={f.path} value={f.path}>{escaped(f.path)} +{f.added} −{f.removed}</option>)}
          </select>
          <small class="grow hint">Click a line's number to comment on it.</small>
          <button class="besides" aria-pressed={beside.value} onClick={() => keep("diff", (chosen.value = beside.value ? "one" : "two"))}>Side by side</button>
        </div>
        {left}
        {files.map((f) => {
          before += f.added + f.removed;
          return <FilePart key={f.path} run={run} file={f} small={f.added + f.removed <= SMALL && before <= 5 * SMALL} />;
        })}
        <Notes run={run} />
      </div>
    </div>
  );
}

// ---- the Ask for it

const folderOf = (t: PatchText) => escaped(t.cwd.split("/").pop()!);
const filesWord = (n: number) => `${n} ${n === 1 ? "file" : "files"}`;

function Confirm({ id, text: t, files, close }: { id: string; text: PatchText; files: File[]; close: () => void }) {
  const { problem, busy, send } = useSend(), request = useRef(crypto.randomUUID());
  const apply = async () => {
    const good = await send(async () => {
      try {
        await answer(id, { choice: "yes", hash: t.hash, request_id: request.current });
      } catch (e) {
        if (e instanceof ApiError && e.ask) putAsk(e.ask, e.ask.id);
        throw e;
      }
    });
    if (good) close();
  };
  return (
    <Modal title={`Apply to ${folderOf(t)}?`} close={close}>
      <p>{filesWord(files.length)} in <code>{visible(t.cwd)}</code> will be written, all or none: if one has changed there since, nothing is.</p>
      <ul class="plain-list scroll">{files.map((f) => <li key={f.path} class="row"><code class="grow">{visible(f.path)}</code>{f.how ? <span class="tag">{f.how}</span> : null}<Counts of={f} /></li>)}</ul>
      <p class="soft">Patch <code title={t.hash}>{t.hash.slice(0, 12)}</code></p>
      <Problem text={problem.value} />
      <div class="row"><button class="primary" disabled={busy.value} onClick={apply}>Apply</button><button onClick={close}>Not now</button></div>
    </Modal>
  );
}
const answer = async (id: string, said: Record<string, string>) => putAsk(await post<AskDone>(`/api/v1/asks/${id}:patch`, said), `${id}:patch`);

// The outcome of its Ask, answered in whichever door: its conversation has it, after the result.
function Became({ id, cwd }: { id: string; cwd: string }) {
  const ask = `${id}:patch`, told = useGet<ItemPage>(`/api/v1/items?run=${id}`).data?.items.find((i) => i.ask === ask), mine = (i: Item) => i.ask === ask && i.kind === "answered";
  const d = useGet<ItemPage>(told ? `/api/v1/items?session=${told.session}&after=${told.lsn}&limit=1000` : "", mine).data?.items.findLast(mine)?.detail, left = (d?.left_out ?? []) as string[];
  if (!d) return null;
  if (d.answer !== "yes") return <p class="wide">Left as it is: nothing was written.</p>;
  return <p class="wide">Written: {filesWord(Number(d.files))} in <code>{visible(cwd)}</code>.{left.length ? visible(` Left out, since programs or agents obey them: ${left.join(", ")}.`) : ""}</p>;
}

function Apply({ id, text: t, files }: { id: string; text: PatchText; files: File[] }) {
  const sure = useSignal(false), waits = asks.value.has(`${id}:patch`), command = `ava apply ${id}`;
  const ask = useGet<Ask>(waits ? `/api/v1/asks/${id}:patch` : "").data, { problem, busy, send } = useSend();
  return (
    <div class="row apply" role="status">
      <span class="grow">{filesWord(t.about.files)} <Counts of={t.about} /> for <code>{visible(t.cwd)}</code> <small>patch <code title={t.hash}>{t.hash.slice(0, 12)}</code></small></span>
      {waits && ask?.whole ? (
        <>
          <button class="primary" onClick={() => (sure.value = true)}>Apply to {folderOf(t)}…</button>
          <button disabled={busy.value} title="Writes nothing" onClick={() => send(() => answer(id, { choice: "no", request_id: crypto.randomUUID() }))}>Leave it</button>
        </>
      ) : waits && ask ? (
        <span>Too long to be applied here. In a terminal: <code>{command}</code> <button class="plain" onClick={() => copy(command, command)}>Copy</button></span>
      ) : waits ? null : <Became id={id} cwd={t.cwd} />}
      <Problem text={problem.value} />
      {sure.value ? <Confirm id={id} text={t} files={files} close={() => (sure.value = false)} /> : null}
    </div>
  );
}

// ---- the view

// A run without a patch: whether it could have made one.
function NoPatch({ id }: { id: string }) {
  const { data, error } = useGet<Result>(`/api/v1/runs/${id}/result`, (i) => i.run === id);
  if (!data) return <Reading error={error} />;
  if (!("duration_seconds" in data)) return <Empty title="Its changes come when it ends" />;
  if (data.copy_kept) return <Empty title="No patch could be made of its changes"><p>They are kept in <code>{data.copy_kept}</code>, below the data root.</p></Empty>;
  return <Empty title="It changed no files">{data.copy_unchanged ? null : <p>It could only read them.</p>}</Empty>;
}

export function PatchPart({ id, patch }: { id: string; patch: Patch | undefined }) {
  const { data, error } = useGet<PatchText>(patch ? `/api/v1/runs/${id}/patch` : ""), files = useMemo(() => filesOf(data?.patch ?? ""), [data?.hash]);
  if (!patch) return <NoPatch id={id} />;
  if (!data) return <Reading error={error} />;
  const left = patch.left_out_files ? (
    <details open class="panel"><summary>Left out: {filesWord(patch.left_out_files)}</summary>
      <ul>{patch.left_out.map((f) => <li key={f.path}><code>{visible(f.path)}</code> <span class="soft">{f.why}</span></li>)}</ul>
      {patch.left_out_files > patch.left_out.length ? <p class="soft">and {patch.left_out_files - patch.left_out.length} more</p> : null}
    </details>
  ) : null;
  return (
    <div class="stack">
      <Apply id={id} text={data} files={files} />
      <Files run={id} files={files} left={left} />
    </div>
  );
}
