// A task from the page. It is quoted like any other; nothing runs before the quote is answered.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { post, type RoleList } from "../api";
import { go } from "../router";
import { refreshAsks, rolesOf, sessions } from "../store";
import { draft, Modal, Problem, useSend } from "../ui";
import { money, sourceWords } from "../words";

export const newTask = signal(false);

export function NewTask() {
  const task = draft("task"), role = draft("role"), cents = draft("cents"), folder = draft("folder", sessions.value.find((s) => s.cwd)?.cwd ?? "");
  const { problem, busy, send } = useSend();
  const list = useSignal<RoleList>({ roles: [], broken: [] });
  const submit = async (e: Event) => {
    e.preventDefault();
    if (busy.value) return;
    const body: Record<string, unknown> = { task: task.value, request_id: crypto.randomUUID(), origin: "web" };
    if (role.value) body.role = role.value;
    if (folder.value.trim()) body.cwd = folder.value.trim();
    if (cents.value.trim()) body.max_cost_cents = Number(cents.value.replace(",", "."));
    const good = await send(async () => {
      if (Number.isNaN(body.max_cost_cents)) throw new Error(`“${cents.value}” is no number of cents`);
      await post("/api/v1/runs", body);
    });
    if (!good) return;
    task.value = cents.value = "";
    newTask.value = false;
    refreshAsks();
    go("board");
  };
  // Of the folder; while it is typed, those of the last one that there was.
  useEffect(() => {
    const stop = new AbortController(), cwd = folder.value.trim();
    const timer = setTimeout(() => rolesOf(cwd.startsWith("/") ? cwd : "", stop.signal).then((l) => (list.value = l), () => {}), cwd ? 200 : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [folder.value]);
  // Beside the field that it names.
  const of = !problem.value ? "" : /\bfolder\b/.test(problem.value) ? "folder" : /\bcents?\b|\bcost/.test(problem.value) ? "cents" : /\brole\b/.test(problem.value) ? "role" : "task";
  const under = (field: string) => (of === field ? <Problem text={problem.value} /> : null);
  const chosen = list.value.roles.find((r) => r.name === role.value && r.usable);
  return (
    <Modal title="New task" close={() => (newTask.value = false)}>
      <form onSubmit={submit} style="display: grid; gap: 12px">
        <label>What shall be done?
          <textarea rows={4} required autofocus value={task} onInput={(e) => (task.value = e.currentTarget.value)} aria-invalid={of === "task"} />
        </label>
        {under("task")}
        <label>By whom
          <select style="width: 100%" value={role} onChange={(e) => (role.value = e.currentTarget.value)}>
            <option value="">chosen from the task</option>
            {list.value.roles.map((r) => <option key={r.name + r.path} value={r.name} disabled={!r.usable}>{r.display}{r.source === "built-in" ? "" : ` (${sourceWords[r.source]})`}: {r.summary}{r.usable ? "" : ` (${r.why})`}</option>)}
          </select>
        </label>
        {under("role")}
        {chosen ? <small>{chosen.model}, stops at {chosen.timeout} s and {money(chosen.max_cost_cents)}, tools: {chosen.tools.join(", ")}{chosen.path ? <>, from <code>{chosen.path}</code></> : null}</small> : null}
        {list.value.broken.length ? <small>{list.value.broken.length} files of roles cannot be read: <code>ava roles check</code> says why.</small> : null}
        <label>Folder it may read (none: no files)
          <input style="width: 100%" class="mono" value={folder} onInput={(e) => (folder.value = e.currentTarget.value)} placeholder="/home/me/project" aria-invalid={of === "folder"} />
        </label>
        {under("folder")}
        <label>At most, in cents
          <input inputMode="decimal" value={cents} onInput={(e) => (cents.value = e.currentTarget.value)} placeholder="as the role says" aria-invalid={of === "cents"} />
        </label>
        {under("cents")}
        <div class="row"><button class="primary" disabled={busy.value || !task.value.trim()}>Get a quote</button></div>
      </form>
    </Modal>
  );
}
