// The way from a run's events to what is drawn: turns, of which each is a call of the model with the steps behind it, and
// where each stands on the axis of time. The trace is fed with new events alone, in their order, so that no event is looked
// at twice. A call without its end is still open: at work, or cut by a crash.
import { signal } from "@preact/signals";
import type { AvaEvent, Status } from "./api";
import { duration, money, statusWords, tokens } from "./words";

export interface Step {
  at: string; // place in the address of the run: "turn/12", "turn/12/call/2", "turn/12/at/4711"
  kind: "model" | "tool" | "wait" | "thinking" | "said" | "note";
  turn: Turn;
  id: string; // the id of its call
  name: string;
  detail: string;
  from: number; // ms since 1970
  to: number | null;
  failed: boolean;
  cents: number;
  input: number;
  output: number; // tokens of a model, bytes of a tool
  events: AvaEvent[];
  found?: string; // the words that a filter looks in
}
export interface Turn {
  n: number;
  head: Step; // the call of the model; of turn 0, how it was set up
  steps: Step[];
  failed: number;
}

const time = (e: AvaEvent) => Date.parse(e.timestamp);
export const text = (v: unknown): string => (typeof v === "string" ? v : v == null ? "" : JSON.stringify(v));
const argsWords = (args: unknown) => (args && typeof args === "object" ? Object.values(args).map(text).join(" ") : text(args));
const limitWords = (l: { seconds?: number; costCents?: number | null; tokens?: number; iterations?: number }) =>
  [l.seconds && duration(l.seconds * 1000), l.costCents && money(l.costCents), l.tokens && `${tokens(l.tokens)} tokens`, l.iterations && `${l.iterations} model calls`].filter(Boolean).join(", ");

// Words for an event that is no call: its name, the rest, and whether it is bad.
const notes: Record<string, (c: AvaEvent["content"]) => [name: string, detail: string, bad?: boolean]> = {
  ExtendedThinking: (c) => ["Thinking", text(c.thinking)],
  Limit: (c) => (c.warned ? ["Limit near", `${c.warned.join(", ")} of ${limitWords(c.budget)}`] : ["Limits", limitWords(c.budget)]),
  ContextEdit: (c) => ["Context shortened", `${tokens(c.tokensBefore)} to ${tokens(c.tokensAfter)} tokens`],
  Checkpoint: (c) => ["Checkpoint", text(c.name)],
  Error: (c) => ["Error", text(c.message), true],
  Exhausted: (c) => ["Limit reached", text(c.resource), true],
  Custom: (c) => [text(c.customType), text(c.data)],
  SubagentComplete: (c) => [`Ended: ${statusWords[c.status as Status] ?? c.status}`, c.status === "success" ? text(c.summary) : "", c.status !== "success" && c.status !== "cancelled"],
};

export class Trace {
  readonly events: AvaEvent[] = [];
  readonly turns: Turn[] = [];
  readonly steps = new Map<string, Step>(); // the key is `at`
  readonly version = signal(0); // counts up when there is more: what is drawn of the rest reads it
  errors = 0; // events
  last = 0; // lsn
  from = 0;
  to = 0;
  private byNumber = new Map<number, Turn>();
  private open = new Map<string, Step>();

  feed(list: AvaEvent[]) {
    const had = this.events.length;
    for (const e of list) if (e.lsn > this.last) this.take(e);
    if (this.events.length > had) this.version.value++;
  }

  private take(e: AvaEvent) {
    const c = e.content, type = e.eventType;
    this.last = e.lsn;
    this.events.push(e);
    if (isError(e)) this.errors++;
    this.to = Math.max(this.to, time(e));
    this.from ||= time(e);
    if (type === "SubagentSpawn") Object.assign(this.turn(e).head, { name: "Setup", detail: text(c.task), events: [e] });
    else if (type === "InferStart") this.asked(e);
    else if (type === "InferEnd") this.end(e, "model", !!c.error || !!c.errorClass);
    else if (type === "ToolCall") this.begin(e, "tool", c.callId, c.name, argsWords(c.args), `call/${c.callId.replace(/.*\./, "")}`);
    else if (type === "ToolResult") this.end(e, "tool", c.success === false);
    else if (type === "Steering") this.said(e);
    else if (type === "Waiting" && (c.state === "asked" || c.state === "parked")) this.begin(e, "wait", c.callId, c.kind === "quota" ? "Parked" : c.kind === "pause" ? "Paused" : "Waits for you", c.question ?? c.limit ?? "");
    else if (type === "Waiting" && (c.state === "waits" || c.state === "paused")) this.open.get(`wait${c.callId}`)?.events.push(e); // another word about one that waits already
    else if (type === "Waiting") this.end(e, "wait", false);
    else if (type === "Check" && c.state === "begun") this.begin(e, "note", "check", "Check", c.command);
    else if (type === "Check") this.end(e, "note", c.outcome !== "passed", "check");
    else if (notes[type]) {
      const [name, detail, bad] = notes[type](c), s = this.begin(e, type === "ExtendedThinking" ? "thinking" : "note", "", name, detail);
      this.close(s, time(e), !!bad);
    }
  }

  private turn(e: AvaEvent): Turn {
    const n = e.metadata.iteration ?? this.turns.at(-1)?.n ?? 0;
    let t = this.byNumber.get(n);
    if (!t) {
      t = { n, steps: [], failed: 0 } as unknown as Turn;
      t.head = this.step(e, t, n ? "model" : "note", "", n ? "Model" : "Setup", "", `turn/${n}`);
      t.head.to = t.head.from;
      t.head.events = [];
      this.byNumber.set(n, t);
      this.turns.push(t);
    }
    return t;
  }
  private step(e: AvaEvent, turn: Turn, kind: Step["kind"], id: string, name: string, detail: string, at: string): Step {
    const s: Step = { at, kind, turn, id, name, detail, from: time(e), to: null, failed: false, cents: 0, input: 0, output: 0, events: [e] };
    this.steps.set(at, s);
    return s;
  }
  private begin(e: AvaEvent, kind: Step["kind"], id: string, name: string, detail: string, part = `at/${e.lsn}`): Step {
    const t = this.turn(e), at = `turn/${t.n}/${part}`, s = this.step(e, t, kind, id, name, detail, this.steps.has(at) ? `turn/${t.n}/at/${e.lsn}` : at);
    t.steps.push(s);
    this.open.set(kind + id, s);
    return s;
  }
  // An attempt that failed gives the head of its turn to the next one.
  private asked(e: AvaEvent) {
    const t = this.turn(e), was = t.head;
    if (was.events.length) {
      const at = `turn/${t.n}/at/${was.events[0]!.lsn}`;
      this.steps.set(at, { ...was, at });
      t.steps.push(this.steps.get(at)!);
    }
    Object.assign(was, { id: e.content.callId, name: e.content.model, detail: "", from: time(e), to: null, failed: false, events: [e] });
    this.open.set(`model${was.id}`, was);
  }
  // A message to the run: queued first, then what became of it.
  private said(e: AvaEvent) {
    const c = e.content, was = this.open.get(`said${c.steerId}`);
    if (was && c.steerId) {
      was.events.push(e);
      this.close(was, was.from, c.outcome === "too_late");
      if (was.failed) was.name += " (too late)";
    } else {
      const s = this.begin(e, "said", c.steerId ?? "", c.by ? `Message of ${c.by}` : "Message", text(c.text));
      s.to = s.from;
    }
  }
  private end(e: AvaEvent, kind: Step["kind"], failed: boolean, id = e.content.callId) {
    const s = this.open.get(kind + id), m = e.metadata;
    if (!s) return;
    if (m.duration != null && kind !== "wait") s.from = Math.max(s.from, time(e) - m.duration);
    s.cents = m.costCents ?? 0;
    s.input = m.inputTokens ?? 0;
    s.output = m.outputTokens ?? e.content.bytes ?? 0;
    s.events.push(e);
    if (kind === "note") s.detail += `: ${text(e.content.output).split("\n")[0]}`;
    if (kind === "model") s.detail = text(failed ? e.content.error || e.content.errorClass : e.content.responsePreview);
    this.close(s, time(e), failed);
  }
  private close(s: Step, to: number, failed: boolean) {
    s.to = to;
    s.failed = failed;
    s.found = undefined;
    if (failed) s.turn.failed++;
    this.open.delete(s.kind + s.id);
  }

  // The call of the model that is under way.
  get asking(): Step | null {
    const head = this.turns.at(-1)?.head;
    return head?.kind === "model" && head.to == null ? head : null;
  }
  // The reason for a run that failed: the call of its last turn that did, else what was said of it.
  get failing(): Step | null {
    const t = this.turns.at(-1);
    if (!t) return null;
    const bad = [t.head, ...t.steps].filter((s) => s.failed);
    return bad.findLast((s) => s.kind === "model" || s.kind === "tool") ?? bad[0] ?? t.head;
  }
}

// One line about an event, for a list of thousands.
export function lineOf(e: AvaEvent): string {
  const c = e.content;
  switch (e.eventType) {
    case "InferStart": return `${c.model} is asked`;
    case "InferEnd": return c.error ? `failed: ${text(c.error)}` : `${e.metadata.inputTokens ?? 0} in, ${e.metadata.outputTokens ?? 0} out, ${c.stopReason ?? ""}`;
    case "ToolCall": return `${c.name} ${text(c.args)}`;
    case "ToolResult": return `${c.name}: ${c.success === false ? "failed: " : ""}${text(c.output)}`;
    case "Activity": case "Steering": case "UserMessage": case "AssistantMessage": return text(c.text);
    case "ExtendedThinking": return text(c.thinking);
    case "Error": return `${c.class}: ${c.message}`;
    case "SubagentSpawn": return `${c.role}: ${c.task}`;
    case "SubagentComplete": return `${c.status}: ${c.summary ?? ""}`;
    case "Waiting": return `${c.state}: ${c.question ?? c.answer ?? ""}`;
    case "Check": return c.state === "begun" ? c.command : `${c.outcome}: ${text(c.output).split("\n")[0]}`;
    case "Limit": return notes.Limit!(c).join(": ");
    default: return text(c);
  }
}
export const isError = (e: AvaEvent) =>
  e.eventType === "Error" || e.eventType === "Exhausted" || (e.eventType === "ToolResult" && e.content.success === false) ||
  (e.eventType === "InferEnd" && !!(e.content.error || e.content.errorClass));
