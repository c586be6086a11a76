// Acts on a run, and their forms, wherever the run stands.
import { signal } from "@preact/signals";
import type { Act } from "./acts";
import { once, post, type Run } from "./api";
import { address, go } from "./router";
import { failed, live } from "./store";
import { attempt, copy, draft, focused, leave, Problem, undoable, undoing, useSend } from "./ui";
import { cut } from "./words";

export const messaging = signal(""); // the run whose field is open

export const canResume = (r: Run) => !live(r) && r.status !== "success";
// A quote for going on, with what is different; the page goes to it.
export async function resumeRun(r: Run, more: Record<string, unknown> = {}) {
  await attempt(async () => {
    const ask = await once<{ proposal_id: string }>(`/api/v1/runs/${r.subagent_id}/resume`, { ...more, origin: "web" });
    go("inbox", ask.proposal_id);
  });
}
// A quote for each, to go on or once more from the beginning.
export const retryRuns = (list: Run[], more: Record<string, unknown>) =>
  attempt(async () => {
    for (const r of list) await once(`/api/v1/runs/${r.subagent_id}/resume`, { ...more, origin: "web" });
  }, list.length === 1 ? "The quote is ready." : `${list.length} quotes are ready.`);
const cancelRuns = (ids: string[]) => attempt(() => post("/api/v1/runs/cancel", { ids }));

// Each set of runs is cancelled, and kept, by itself: the button of another one never takes this back.
export function cancelAct(ids: string[], name: string, words: string): Act {
  const all = ids.join();
  return { id: "cancel", name: !undoing.value.has(all) ? name : name === "Cancel" ? "Keep it" : "Keep them", key: undoing.value.has(all) ? undefined : "x", does: "cancel; z takes it back for three seconds", kind: "danger", run: () => undoable(all, `Cancelling ${words}.`, () => void cancelRuns(ids)) };
}

export function runActs(r: Run): Act[] {
  const id = r.subagent_id, acts: Act[] = [];
  if (r.status === "running") acts.push({ id: "message", name: "Message", key: "s", does: "message the run", run: () => (messaging.value = messaging.value === id ? "" : id) });
  if (live(r)) acts.push(cancelAct([id], "Cancel", `“${cut(r.task, 40)}”`));
  if (live(r)) acts.push(r.pause
    ? { id: "pause", name: "Unpause", does: "let the run go on", run: () => void attempt(() => post(`/api/v1/runs/${id}/unpause`, {}), "It goes on.") }
    : { id: "pause", name: "Pause", does: "let the run stand still from the end of its turn on", run: () => void attempt(() => post(`/api/v1/runs/${id}/pause`, {}), "It stands still from the end of its turn on.") });
  const resume: Act = { id: "resume", name: "Resume", key: "r", does: "get a quote for going on", title: "A quote for going on from where it ended", run: () => resumeRun(r) };
  const retry: Act = { id: "retry", name: "Retry", title: "A quote for the whole task once more", run: () => resumeRun(r, { from: 1 }) };
  if (failed(r)) acts.push(...(r.status === "error" ? [retry, resume] : [resume, retry])); // first what is likely to help
  else if (canResume(r)) acts.push(resume);
  acts.push({ id: "link", name: "Copy link", run: () => copy(location.href.split("#")[0] + address("run", id), "the link") });
  acts.push({ id: "id", name: "Copy ID", run: () => copy(id, id) });
  return acts;
}

// The number of acts that are worth a button beside their run.
export const mainActs = (acts: Act[]) => acts.filter((a) => a.id !== "link" && a.id !== "id").length;

// Words for a run that is at work. `close`: of a form that was opened for it, which has the focus.
export function MessageForm({ run, close }: { run: Run; close?: () => void }) {
  const text = draft(`message ${run.subagent_id}`), { problem, busy, send } = useSend();
  const submit = async (e: SubmitEvent) => {
    const form = e.currentTarget as HTMLFormElement;
    e.preventDefault();
    if (!text.value.trim() || busy.value) return;
    if (!(await send(() => once(`/api/v1/runs/${run.subagent_id}/steer`, { text: text.value }), "Sent. It reads that at its next turn."))) return;
    text.value = "";
    if (close) leave(form, close);
  };
  return (
    <form class="message" onKeyDown={(e) => e.key === "Escape" && close && leave(e.currentTarget, close)} onSubmit={submit}>
      <div class="row">
        <input class="grow" ref={close ? focused : null} aria-label={`Message to ${run.subagent_id}`} placeholder="Message this run…" maxLength={2000} value={text}
          onInput={(e) => (text.value = e.currentTarget.value)} />
        <button disabled={busy.value || !text.value.trim()}>Send</button>
      </div>
      <Problem text={problem.value} />
    </form>
  );
}
