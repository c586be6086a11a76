// An Ask as the daemon made it: all of its text, its choices as buttons, its fields as inputs. An answer
// goes with the hash of what is shown here: what is something else by now is shown anew instead.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ApiError, get, post, type Ask, type Field } from "../api";
import { address } from "../router";
import { now, putAsk, refreshAsks } from "../store";
import { attempt, draft, focused, leave, Problem, Sure, toast, useSend } from "../ui";
import { cut, day, duration } from "../words";

const kinds: Record<string, string> = { quote: "Quote", question: "Question", approval: "May it?", limit: "Limit", quota: "Quota", note: "Memory", forget: "Memory", apply: "Changes" };
const kindOf = (a: Ask) => kinds[a.kind] ?? a.kind;

type Said = { choice: string } | { text: string } | { set: Record<string, unknown> };

function written({ run, done }: Ask) {
  const left = done?.leftOut?.length ? ` Left out: ${done.leftOut.join(", ")}; ava apply ${run} asks about each.` : "";
  return `Written: ${done?.files} ${done?.files === 1 ? "file" : "files"} in ${done?.cwd}.${left}`;
}

// What becomes of an answer is told; true: it was taken. One that is sent again has the id of the first.
function useAnswer(a: Ask) {
  const { problem, busy, send } = useSend(), last = useRef({ said: "", id: "" });
  const answer = (said: Said) =>
    send(async () => {
      const key = a.hash + JSON.stringify(said);
      if (last.current.said !== key) last.current = { said: key, id: crypto.randomUUID() };
      try {
        const is = await post<Ask>(`/api/v1/asks/${encodeURIComponent(a.id)}`, { ...said, hash: a.hash, request_id: last.current.id });
        putAsk(is, a.id);
        toast(is.state === "applied" ? written(is) : is.state === "open" ? "That is another quote: look at it again." : is.state === "confirmed" ? `${is.run} has started.` : a.kind === "quote" ? "Nothing was started." : "Answered.");
      } catch (e) {
        if (e instanceof ApiError && e.ask) putAsk(e.ask, a.id);
        else refreshAsks();
        throw e;
      }
    });
  return { problem, busy, answer };
}

const labelOf = (f: Field) => f.name.replace(/_/g, " ");

// The fields that were changed, of the form; what is no number is refused by the daemon, in its words.
function changed(form: HTMLFormElement, fields: Field[]): Record<string, unknown> {
  const data = new FormData(form), set: Record<string, unknown> = {};
  for (const f of fields) {
    const text = String(data.get(f.name) ?? "").trim(), number = Number(text.replace(",", "."));
    if (f.type === "list") data.has(f.name) && (set[f.name] = data.getAll(f.name));
    else if (f.type === "boolean") data.has(f.name) !== !!f.now && (set[f.name] = data.has(f.name));
    else if (text && text !== String(f.now ?? "")) set[f.name] = f.type === "string" || Number.isNaN(number) ? text : number;
  }
  return set;
}

function Input({ field: f }: { field: Field }) {
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
      <label>What shall be different?
        <input style="width: 100%" ref={focused} value={words} onInput={(e) => (words.value = e.currentTarget.value)} placeholder="yes, but max 20 cents" />
      </label>
      <div class="fields">{a.fields.map((f) => <Input key={f.name} field={f} />)}</div>
      <div class="row"><button class="primary" disabled={busy}>Yes, with these</button><small>What asks for more is quoted again.</small></div>
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

// `within` the card of its run, which has the keys.
export function AskCard({ ask, within }: { ask: Ask; within?: boolean }) {
  const full = useSignal<Ask | null>(null), patch = ask.kind === "apply", a = (patch && full.value) || ask;
  useEffect(() => {
    // The list has no patch in it, and no hash to answer with.
    if (patch) void attempt(async () => (full.value = await get<Ask>(`/api/v1/asks/${encodeURIComponent(ask.id)}`)));
  }, [ask.id]);
  const changing = useSignal(false), { problem, busy, answer } = useAnswer(a);
  const quote = a.kind === "quote", left = Date.parse(a.until) - now.value;
  const yes = a.choices.find((c) => c.id !== "no");
  return (
    <div class={within ? "ask answer" : "ask card panel"} data-ask={a.id} role="group" tabIndex={within ? undefined : 0} aria-label={within ? undefined : `${kindOf(a)}: ${cut(a.text, 120)}`}>
      {within ? null : (
        <div class="row">
          <span class="grow"><strong>{kindOf(a)}</strong> <small>{a.number ? `${a.number}, ` : ""}{a.id}</small></span>
          <small title={`until ${a.until}`}>{left > 0 ? duration(left) : "expired"}</small>
        </div>
      )}
      <div class={patch ? "ask-text mono" : "ask-text"} tabIndex={0} role="group" aria-label="What is asked">{a.text}</div>
      {a.whole || (patch && !a.hash) ? null : <p class="warning">This is not all of it: <a href={address("run", a.run, { tab: patch ? "patch" : "events" })}>{patch ? "the changes" : "the events"} of {a.run}</a> have the rest.</p>}
      <div class="row actions">
        {a.choices.map((c) => quote || c.id === "stop" ? (
          <Sure key={c.id} letter={!quote ? undefined : c === yes ? "y" : c.id === "no" ? "x" : undefined} once={quote} class={c === yes && quote ? "primary" : ""} disabled={busy.value} name={c.label}
            sure={!quote ? `${c.label} for good` : c.id === "no" ? "Leave it? x again" : "Start it? y again"} act={() => answer({ choice: c.id })} />
        ) : <button type="button" key={c.id} title={c.effect} disabled={busy.value || (patch && !a.hash)} onClick={() => answer({ choice: c.id })}>{c.label}</button>)}
        {a.fields.length ? <button disabled={busy.value} aria-expanded={changing.value} onClick={() => (changing.value = !changing.value)}>Change</button> : null}
      </div>
      {changing.value ? <Change ask={a} close={() => (changing.value = false)} answer={answer} busy={busy.value} /> : null}
      {quote || patch ? null : <Words ask={a} answer={answer} busy={busy.value} />}
      <Problem text={problem.value} />
      {quote || patch || a.kind === "quota" ? null : <small>Without an answer by {day(a.until)} {a.default ? `it takes “${cut(a.default, 80)}”` : a.kind === "question" ? "it goes on without" : "that is a no"}.</small>}
    </div>
  );
}
