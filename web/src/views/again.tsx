// Further acts on a run, from its own page: once more with another model, a named place in it, beside another
// run, out of the page.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Act } from "../acts";
import { download, post, type Result, type Run } from "../api";
import { go } from "../router";
import { resumeRun } from "../run_acts";
import { health, live, runList } from "../store";
import type { Trace } from "../trace";
import { attempt, Modal, Problem, useGet, useSend } from "../ui";
import { cut, day, modelName, statusWords } from "../words";

const asking = signal<"" | "model" | "checkpoint" | "compare">("");

export function moreActs(r: Run, trace: Trace, result: Result | null, read: boolean): Act[] {
  const id = r.subagent_id, acts: Act[] = [];
  const file = (name: string, type: string, text: () => string) => download(new Blob([text()], { type }), `${id}.${name}`);
  if (live(r)) acts.push({ id: "checkpoint", name: "Checkpoint…", title: "Name where it is, to fork it from there later", run: () => (asking.value = "checkpoint") });
  else acts.push({ id: "retry-with", name: "Retry with another model…", run: () => (asking.value = "model") });
  acts.push({ id: "compare", name: "Compare with…", run: () => (asking.value = "compare") });
  acts.push({ id: "export", name: "Export log", title: "All events, a line of JSON each", disabled: !read, run: () => file("jsonl", "application/jsonl", () => trace.events.map((e) => `${JSON.stringify(e)}\n`).join("")) });
  if (result) acts.push({ id: "export-result", name: "Export result", run: () => file("result.json", "application/json", () => JSON.stringify(result, null, 2)) });
  if (!live(r) && health.value && "otel" in health.value) acts.push({ id: "push", name: "Push trace", title: "Send its trace to the collector", run: () => attempt(() => post(`/api/v1/runs/${id}/push`), "The trace is on its way.") });
  return acts;
}

// The one question that each of them has.
export function Again({ run: r }: { run: Run }) {
  const id = r.subagent_id, { problem, busy, send } = useSend(), text = useSignal(""), what = asking.value;
  const models = useGet<{ models: { id: string }[] }>(what === "model" ? "/api/v1/models" : "").data?.models ?? [];
  useEffect(() => () => void (asking.value = ""), []);
  if (!what) return null;
  const close = () => {
    asking.value = text.value = "";
    problem.value = "";
  };
  const others = runList.value.filter((o) => o.subagent_id !== id).sort((a, b) => Number(b.task === r.task) - Number(a.task === r.task));
  const choices: [value: string, name: string][] = what === "model" ? models.map((m) => [m.id, m.id === r.model ? `${modelName(m.id)} (as it was)` : modelName(m.id)])
    : others.map((o) => [o.subagent_id, `${cut(o.task, 60)} · ${statusWords[o.status]} · ${day(o.started_at)}`]);
  const [title, label, button] = what === "model" ? ["Retry with another model", "Model", "Get a quote"] : what === "compare" ? ["Compare with another run", "Run", "Compare"] : ["Name where the run is", "Name", "Name it"];
  const value = text.value.trim() || (what === "checkpoint" ? "" : (choices[0]?.[0] ?? ""));
  const submit = async (e: Event) => {
    e.preventDefault();
    if (!value || busy.value) return;
    if (what === "checkpoint" && !(await send(() => post(`/api/v1/runs/${id}/checkpoint`, { name: value }), `“${value}” is named: resume from it when the run has ended.`))) return;
    close();
    if (what === "model") await resumeRun(r, { from: 1, model: value });
    else if (what === "compare") go("compare", id, {}, value);
  };
  return (
    <Modal title={title} close={close}>
      <form onSubmit={submit} class="stack">
        <label>{label}
          {what === "checkpoint" ? <input class="wide" value={text} maxLength={64} placeholder="before-the-rewrite" onInput={(e) => (text.value = e.currentTarget.value)} />
            : <select class="wide" value={value} onChange={(e) => (text.value = e.currentTarget.value)}>{choices.map(([v, name]) => <option key={v} value={v}>{name}</option>)}</select>}
        </label>
        <Problem text={problem.value} />
        <div class="row"><button class="primary" disabled={busy.value || !value}>{button}</button></div>
      </form>
    </Modal>
  );
}
