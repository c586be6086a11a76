// An Ask as the daemon made it: all of its text, its choices as buttons, its fields as inputs. An answer
// goes with the hash of what is shown here: what is something else by now is shown anew instead.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ActRow, Card, useActs, type Act } from "../acts";
import { ApiError, get, once, type Ask, type AskDone, type AskField } from "../api";
import { address } from "../router";
import { putAsk, refreshAsks, runs } from "../store";
import { attempt, draft, focused, leave, Left, Problem, toast, useSend } from "../ui";
import { cut, day, number } from "../words";

const kinds: Record<string, string> = { quote: "Quote", order: "Standing order", question: "Question", approval: "Permission", limit: "Limit", quota: "Quota", note: "Memory", forget: "Memory", apply: "Changes" };
export const kindOf = (a: Ask) => kinds[a.kind] ?? a.kind;
const isQuote = (a: Ask) => a.kind === "quote" || a.kind === "order";

type Said = { choice: string } | { text: string } | { set: Record<string, unknown> };

function written({ run, done }: AskDone) {
  const left = done?.leftOut?.length ? ` Left out: ${done.leftOut.join(", ")}; ava apply ${run} asks about each.` : "";
  return `Written: ${done?.files} ${done?.files === 1 ? "file" : "files"} in ${done?.cwd}.${left}`;
}

// The outcome of an answer is told; true: it was taken. It was not: `again` asks what the Ask is now.
function useAnswer(a: Ask, again: () => void) {
  const { problem, busy, send } = useSend();
  const answer = (said: Said) =>
    send(async () => {
      try {
        const is = await once<Ask | AskDone>(`/api/v1/asks/${encodeURIComponent(a.id)}`, { ...said, hash: a.hash });
        putAsk(is, a.id);
        toast(is.state === "applied" ? written(is) : is.state === "open" ? "The quote has changed. Look at it again." : is.state === "confirmed" ? (a.kind === "order" ? "The order stands." : "Started.") : isQuote(a) ? "Not started." : "Answer sent.");
      } catch (e) {
        again();
        if (e instanceof ApiError && e.ask) putAsk(e.ask, a.id);
        else refreshAsks();
        throw e;
      }
    });
  return { problem, busy, answer };
}

const labels: Record<string, string> = { max_cost_cents: "Spend at most (cents)", timeout: "Stop after (seconds)", max_tokens: "Tokens at most", max_iterations: "Model calls at most" };
const labelOf = (f: AskField) => labels[f.name] ?? f.name.replace(/_/g, " ");

// The changed fields of the form; a number that is none is refused by the daemon, in its words.
function changed(form: HTMLFormElement, fields: AskField[]): Record<string, unknown> {
  const data = new FormData(form), set: Record<string, unknown> = {};
  for (const f of fields) {
    const text = String(data.get(f.name) ?? "").trim();
    if (f.type === "list") data.has(f.name) && (set[f.name] = data.getAll(f.name));
    else if (f.type === "boolean") data.has(f.name) !== !!f.now && (set[f.name] = data.has(f.name));
    else if (text && text !== String(f.now ?? "")) set[f.name] = f.type === "string" ? text : number(text);
  }
  return set;
}

function Input({ field: f }: { field: AskField }) {
  const label = labelOf(f);
  if (f.type === "list")
    return f.choices?.length ? (
      <fieldset>
        <legend>{label}</legend>
        {f.choices.map((c) => <label key={c} class="row"><input type="checkbox" name={f.name} value={c} /> {c}</label>)}
      </fieldset>
    ) : null;
  if (f.type === "boolean") return <label class="row"><input type="checkbox" name={f.name} defaultChecked={!!f.now} /> {label}</label>;
  if (f.choices)
    return (
      <label>{label} <select name={f.name} defaultValue={String(f.now ?? "")}>{[...new Set([String(f.now ?? ""), ...f.choices])].map((c) => <option key={c} value={c}>{c || "as it is"}</option>)}</select></label>
    );
  return <label>{label} <input name={f.name} defaultValue={String(f.now ?? "")} inputMode={f.type === "string" ? "text" : "decimal"} /></label>;
}

// Other values, or other words. What only lowers it starts at once; anything else is a new quote.
function Change({ ask: a, close, answer, busy }: { ask: Ask; close: () => void; answer: (said: Said) => Promise<boolean>; busy: boolean }) {
  const words = draft(`change ${a.id}`);
  const submit = async (e: SubmitEvent) => {
    const form = e.currentTarget as HTMLFormElement, text = words.value.trim(), set = changed(form, a.fields);
    e.preventDefault();
    if (busy || (!text && !Object.keys(set).length)) return;
    if (!(await answer({ ...(text ? { text } : {}), ...(Object.keys(set).length ? { set } : {}) } as Said))) return;
    words.value = "";
    close();
  };
  return (
    <form class="change" onKeyDown={(e) => e.key === "Escape" && leave(e.currentTarget, close)} onSubmit={submit}>
      <label>What should be different?
        <input class="wide" ref={focused} value={words} onInput={(e) => (words.value = e.currentTarget.value)} placeholder="yes, but max 20 cents" />
      </label>
      <div class="fields">{a.fields.map((f) => <Input key={f.name} field={f} />)}</div>
      <div class="row"><button class="primary" disabled={busy}>Yes, with these</button><small>Asking for more makes a new quote.</small></div>
    </form>
  );
}

function Words({ ask: a, answer, busy }: { ask: Ask; answer: (said: Said) => Promise<boolean>; busy: boolean }) {
  const text = draft(`answer ${a.id}`);
  const submit = async (e: Event) => {
    e.preventDefault();
    if (text.value.trim() && !busy && (await answer({ text: text.value }))) text.value = "";
  };
  return (
    <form class="row" onSubmit={submit}>
      <input class="grow" aria-label={`Answer to: ${cut(a.text, 80)}`} value={text} onInput={(e) => (text.value = e.currentTarget.value)}
        placeholder={a.kind === "approval" ? "no: not in this folder" : a.choices.length ? "or say something else" : "your answer"} />
      <button class="primary" disabled={busy || !text.value.trim()}>Answer</button>
    </form>
  );
}

const kindsOfLate = (a: Ask) => (a.default ? `it takes “${cut(a.default, 80)}”` : a.kind === "question" ? "it goes on without" : "that is a no");

// Three lines, with the rest of the words behind a fold of the card, which is open at the start or not.
export interface Brief {
  title: string;
  facts: string;
  open: boolean;
}

// An Ask with its words, its answers and its fields. Alone it is a card and has the keys; `within` the card
// of its run it is a part of that.
export function AskCard({ ask, within, brief }: { ask: Ask; within?: boolean; brief?: Brief }) {
  const full = useSignal<Ask | null>(null), shown = useSignal(!brief || brief.open), patch = ask.kind === "apply", a = (patch && full.value) || ask;
  // The list has no patch in it, and no hash to answer with.
  const look = () => void (patch && shown.value && attempt(async () => (full.value = await get<Ask>(`/api/v1/asks/${encodeURIComponent(ask.id)}`))));
  useEffect(look, [ask.id, shown.value]);
  const changing = useSignal(false), { problem, busy, answer } = useAnswer(a, look);
  const quote = isQuote(a), yes = a.choices.find((c) => c.id !== "no"), r = runs.value.get(a.run);
  const acts = a.choices.map((c): Act => ({
    id: c.id, name: c.label, title: c.effect, kind: c === yes && (quote || patch) ? "primary" : "", disabled: busy.value || (patch && !a.hash) || (changing.value && c === yes), once: quote,
    key: !quote ? undefined : c === yes ? "y" : c.id === "no" ? "x" : undefined, does: c === yes ? "yes to the quote, pressed twice" : "no to the quote, pressed twice",
    sure: quote ? (c.id === "no" ? "Leave it? x again" : "Start it? y again") : patch && c === yes ? `Write ${/ change (\d+ files?) in /.exec(a.text)?.[1] ?? "the files"}` : c.id === "stop" ? `${c.label} for good` : undefined,
    run: () => answer({ choice: c.id }),
  }));
  if (a.fields.length) acts.push({ id: "change", name: "Change…", key: quote ? "c" : undefined, does: "change the quote", disabled: busy.value, run: () => (changing.value = !changing.value) });
  const on = useActs(acts);
  const words = <div class={patch ? "ask-text mono" : "ask-text"} tabIndex={0} role="group" aria-label="What is asked">{a.text}</div>;
  const body = (
    <>
      {brief ? <details open={shown.value} onToggle={(e) => (shown.value = e.currentTarget.open)}><summary>{brief.facts}</summary>{words}</details> : words}
      {a.whole || (patch && (!a.hash || !shown.value)) ? null : <p class="warning">This is not all of it: <a href={address("run", a.run, {}, patch ? "changes" : "log")}>{patch ? "the changes" : "the log"} of {a.run}</a> have the rest.</p>}
      {patch && brief ? <div class="row"><a class="button" href={address("run", a.run, {}, "changes")}>Review</a>{shown.value ? <ActRow acts={acts} on={on} /> : null}</div> : <ActRow acts={acts} on={on} />}
      {changing.value ? <Change ask={a} close={() => (changing.value = false)} answer={answer} busy={busy.value} /> : null}
      {quote || patch ? null : <Words ask={a} answer={answer} busy={busy.value} />}
      <Problem text={problem.value} />
      {quote || patch || a.kind === "quota" ? null : <small>Without an answer by {day(a.until)} {kindsOfLate(a)}.</small>}
    </>
  );
  if (within) return <div class="ask answer" data-ask={a.id}>{body}</div>;
  return (
    <div data-ask={a.id}>
      <Card name={a.id} label={`${kindOf(a)}: ${cut(a.text, 120)}`} keys={on.keys} class="ask panel">
        <div class="row">
          <span class="tag yellow">{kindOf(a)}</span>
          <span class="grow ellipsis" title={brief?.title}>{r ? <a href={address("run", a.run)}>{r.task}</a> : brief ? <strong>{brief.title}</strong> : <small>{a.number ? `${a.number}, ` : ""}{a.id}</small>}</span>
          <small>{a.machine ? `on ${a.machine} · ` : ""}<Left until={a.until} /></small>
        </div>
        {body}
      </Card>
    </div>
  );
}
