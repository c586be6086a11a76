// From a run's events to what is drawn: turns with their model calls and tools, each with its place
// on the axis of time. An intent without its end is still open: at work, or cut by a crash.
import type { AvaEvent } from "./api";

export interface Span {
  id: string; // callId
  kind: "infer" | "tool" | "wait";
  name: string;
  detail: string;
  from: number; // ms since 1970
  to: number | null;
  failed: boolean;
  cents: number;
  input: number;
  output: number;
  events: AvaEvent[];
}
export interface Turn {
  n: number;
  spans: Span[];
  thinking: string[];
  notes: AvaEvent[];
}

const NOTES = new Set(["Steering", "ContextEdit", "Checkpoint", "Error", "Exhausted", "Custom", "Limit"]);
const at = (e: AvaEvent) => Date.parse(e.timestamp);

function text(v: unknown): string {
  return typeof v === "string" ? v : v == null ? "" : JSON.stringify(v);
}

export function turnsOf(events: AvaEvent[]): Turn[] {
  const turns: Turn[] = [], open = new Map<string, Span>();
  const turn = (n: number | undefined) => {
    const want = n ?? turns.at(-1)?.n ?? 0;
    let t = turns.find((x) => x.n === want);
    if (!t) turns.push((t = { n: want, spans: [], thinking: [], notes: [] }));
    return t;
  };
  const begin = (e: AvaEvent, kind: Span["kind"], name: string, detail: string) => {
    const s: Span = { id: e.content.callId, kind, name, detail, from: at(e), to: null, failed: false, cents: 0, input: 0, output: 0, events: [e] };
    open.set(kind + s.id, s);
    turn(e.metadata.iteration).spans.push(s);
  };
  const end = (e: AvaEvent, kind: Span["kind"], failed: boolean) => {
    const s = open.get(kind + e.content.callId);
    if (!s) return;
    s.to = at(e);
    if (e.metadata.duration != null && kind !== "wait") s.from = Math.max(s.from, s.to - e.metadata.duration);
    s.failed = failed;
    s.cents = e.metadata.costCents ?? 0;
    s.input = e.metadata.inputTokens ?? 0;
    s.output = e.metadata.outputTokens ?? 0;
    s.events.push(e);
    open.delete(kind + s.id);
  };
  for (const e of events) {
    const c = e.content;
    if (e.eventType === "InferStart") begin(e, "infer", c.model, "");
    else if (e.eventType === "InferEnd") end(e, "infer", !!c.error || !!c.errorClass);
    else if (e.eventType === "ToolCall") begin(e, "tool", c.name, text(c.args));
    else if (e.eventType === "ToolResult") end(e, "tool", c.success === false);
    else if (e.eventType === "Waiting" && (c.state === "asked" || c.state === "parked")) begin(e, "wait", c.kind === "quota" ? "parked" : "waits for a person", c.question ?? "");
    else if (e.eventType === "Waiting" && c.state === "waits") open.get(`wait${c.callId}`)?.events.push(e); // said of one that waits on
    else if (e.eventType === "Waiting") end(e, "wait", false);
    else if (e.eventType === "ExtendedThinking") turn(e.metadata.iteration).thinking.push(c.thinking ?? "");
    else if (NOTES.has(e.eventType)) turn(e.metadata.iteration).notes.push(e);
  }
  return turns;
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
    default: return text(c);
  }
}
export const isError = (e: AvaEvent) =>
  e.eventType === "Error" || e.eventType === "Exhausted" || (e.eventType === "ToolResult" && e.content.success === false) ||
  (e.eventType === "InferEnd" && !!(e.content.error || e.content.errorClass));
