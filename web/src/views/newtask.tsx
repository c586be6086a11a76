// A task from the page, or several. It is quoted like any other; nothing runs before the quote is answered.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { once, type ModelList, type RoleList } from "../api";
import { go } from "../router";
import { refreshAsks, rolesOf, sessions } from "../store";
import { draft, Modal, Problem, useGet, useSend } from "../ui";
import { money, number, sourceWords } from "../words";

export const newTask = signal(false);

// Words in an error that tell beside which field it stands.
const fields: [name: string, says: RegExp][] = [["folder", /\b(folder|cwd)\b/], ["dollars", /\bdollars?\b|\bcents?\b|\bcost/], ["model", /\bmodels?\b/], ["role", /\brole\b/], ["more", /\b(preset|grants?|on_limit)\b/]];
const NONE = "as the role says";

export function NewTask() {
  const task = draft("task"), role = draft("role"), dollars = draft("dollars"), folder = draft("folder", sessions.value.find((s) => s.cwd)?.cwd ?? "");
  const model = draft("model"), preset = draft("preset"), thinking = draft("thinking"), limit = draft("on_limit"), grants = draft("grants"), several = draft("several");
  const { problem, busy, send } = useSend(), list = useSignal<RoleList>({ roles: [], broken: [] });
  const models = useGet<ModelList>("/api/v1/models").data?.models ?? [];
  const tasks = several.value ? task.value.split("\n").map((t) => t.trim()).filter(Boolean) : [task.value.trim()].filter(Boolean);
  const submit = async (e: Event) => {
    e.preventDefault();
    if (busy.value || !tasks.length) return;
    const given = { role: role.value, model: model.value.trim(), cwd: folder.value.trim(), preset: preset.value, on_limit: limit.value };
    const one: Record<string, unknown> = Object.fromEntries(Object.entries(given).filter(([, v]) => v));
    const most = number(dollars.value.trim());
    if (dollars.value.trim()) one.max_cost_cents = Math.round(Number(most) * 1e6) / 1e4;
    if (thinking.value) one.extended_thinking = thinking.value === "on";
    if (grants.value) one.grants = grants.value.split(" ");
    await send(async () => {
      if (typeof most === "string") throw new Error(`“${dollars.value}” is not a number of dollars`);
      const all = { origin: "web" };
      const made = tasks.length > 1 ? await once<Made>("/api/v1/groups", { ...all, runs: tasks.map((t) => ({ ...one, task: t })) }) : await once<Made>("/api/v1/runs", { ...all, ...one, task: tasks[0] });
      for (const written of [task, dollars, model, preset, thinking, limit, grants, several]) written.value = "";
      newTask.value = false;
      refreshAsks();
      if (made.state === "confirmed" && made.subagent_id) go("run", made.subagent_id);
      else go("inbox", made.proposal_id);
    });
  };
  // Roles of the folder; while it is typed, those of the last one that there was.
  useEffect(() => {
    const stop = new AbortController(), cwd = folder.value.trim();
    const timer = setTimeout(() => rolesOf(cwd.startsWith("/") ? cwd : "", stop.signal).then((l) => (list.value = l), () => {}), cwd ? 200 : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [folder.value]);
  const of = problem.value ? fields.find(([, says]) => says.test(problem.value))?.[0] ?? "task" : "";
  const under = (field: string) => (of === field ? <Problem text={problem.value} /> : null);
  const chosen = list.value.roles.find((r) => r.name === role.value && r.usable);
  const grant = (name: string, on: boolean) => (grants.value = [...grants.value.split(" ").filter((g) => g && g !== name), ...(on ? [name] : [])].join(" "));
  const keys = (e: KeyboardEvent) => {
    if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey)) return;
    e.preventDefault();
    (e.currentTarget as HTMLFormElement).requestSubmit();
  };
  return (
    <Modal title="New task" close={() => (newTask.value = false)}>
      <form class="stack" onSubmit={submit} onKeyDown={keys}>
        <label>What should it do?
          <textarea rows={4} required autofocus value={task} onInput={(e) => (task.value = e.currentTarget.value)} aria-invalid={of === "task"} />
        </label>
        {under("task")}
        <label class="row"><input type="checkbox" checked={!!several.value} onChange={(e) => (several.value = e.currentTarget.checked ? "on" : "")} /> Each line is a task of its own</label>
        <label>Role
          <select class="wide" value={role} onChange={(e) => (role.value = e.currentTarget.value)}>
            <option value="">chosen from the task</option>
            {list.value.roles.map((r) => <option key={r.name + r.path} value={r.name} disabled={!r.usable}>{r.display}{r.source === "built-in" ? "" : ` (${sourceWords[r.source]})`}: {r.summary}{r.usable ? "" : ` (${r.why})`}</option>)}
          </select>
        </label>
        {under("role")}
        {chosen ? <small>{chosen.model}, stops at {chosen.timeout} s and {money(chosen.max_cost_cents)}, tools: {chosen.tools.join(", ")}{chosen.path ? <>, from <code>{chosen.path}</code></> : null}</small> : null}
        {list.value.broken.length ? <small>{list.value.broken.length} files of roles cannot be read: <code>ava roles check</code> says why.</small> : null}
        <label>Folder it may read (none: no files)
          <input class="wide mono" value={folder} onInput={(e) => (folder.value = e.currentTarget.value)} placeholder="/home/me/project" aria-invalid={of === "folder"} />
        </label>
        {under("folder")}
        <label>Spending limit ($)
          <input inputMode="decimal" value={dollars} onInput={(e) => (dollars.value = e.currentTarget.value)} placeholder={NONE} aria-invalid={of === "dollars"} />
        </label>
        {under("dollars")}
        <label>Model
          <input class="wide" list="models" value={model} onInput={(e) => (model.value = e.currentTarget.value)} placeholder={NONE} aria-invalid={of === "model"} />
        </label>
        <datalist id="models">{models.map((m) => <option key={m.id} value={m.id} />)}</datalist>
        {under("model")}
        <details open={of === "more" || undefined}>
          <summary>More</summary>
          <div class="stack">
            <label>Effort
              <select value={preset} onChange={(e) => (preset.value = e.currentTarget.value)}><option value="">{NONE}</option><option>quick</option><option>standard</option><option>deep</option></select>
            </label>
            <label>Extended thinking
              <select value={thinking} onChange={(e) => (thinking.value = e.currentTarget.value)}><option value="">{NONE}</option><option>on</option><option>off</option></select>
            </label>
            <label>At a limit
              <select value={limit} onChange={(e) => (limit.value = e.currentTarget.value)}><option value="">{NONE}</option><option value="stop">stop</option><option value="ask">ask me for as much again</option></select>
            </label>
            <label class="row"><input type="checkbox" checked={/\brw\b/.test(grants.value)} onChange={(e) => grant("rw", e.currentTarget.checked)} /> May propose changes to the files of its folder</label>
            <label class="row"><input type="checkbox" checked={/\bfetch_any\b/.test(grants.value)} onChange={(e) => grant("fetch_any", e.currentTarget.checked)} /> May read any web page, not only those that its task names</label>
            {under("more")}
          </div>
        </details>
        <div class="row"><button class="primary" disabled={busy.value || !tasks.length}>{tasks.length > 1 ? `Get a quote for ${tasks.length} tasks` : "Get a quote"}</button><small><kbd>Ctrl</kbd> <kbd>Enter</kbd></small></div>
      </form>
    </Modal>
  );
}
interface Made {
  proposal_id: string;
  state: string;
  subagent_id?: string;
}
