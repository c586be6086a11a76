// What a run proposes for the files of its folder: which, how much, what was left out and why, and the
// lines themselves. What writes them is the card of their Ask, above, or `ava apply`.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, type Patch } from "../api";
import { attempt, Empty } from "../ui";

const SHOWN = 5000; // lines; what is longer is read in a terminal

// Lines of a diff with what they are. Within a hunk its head says how many lines belong to it, so that a
// removed "-- a" is no head of a file.
function linesOf(text: string): [kind: string, line: string][] {
  let old = 0, fresh = 0;
  return text.replace(/\n$/, "").split("\n").slice(0, SHOWN).map((line) => {
    const head = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (old > 0 || fresh > 0) {
      const c = line[0];
      if (c !== "+" && c !== "\\") old--;
      if (c !== "-" && c !== "\\") fresh--;
      return [c === "+" ? "add" : c === "-" ? "del" : "", line];
    }
    if (!head) return [line.startsWith("diff ") ? "file" : "soft", line];
    old = Number(head[1] ?? 1);
    fresh = Number(head[2] ?? 1);
    return ["hunk", line];
  });
}

function Diff({ text }: { text: string }) {
  const all = linesOf(text);
  return (
    <>
      <pre class="diff mono" tabIndex={0} role="region" aria-label="The changes, line by line">{all.map(([kind, line], i) => <span key={i} class={kind}>{line || " "}</span>)}</pre>
      {all.length === SHOWN ? <p class="soft">Only the first {SHOWN} lines are shown.</p> : null}
    </>
  );
}

export function PatchPart({ id, patch }: { id: string; patch: Patch | undefined }) {
  const text = useSignal<string | null>(null);
  useEffect(() => {
    if (patch) void attempt(async () => (text.value = (await get<{ patch: string }>(`/api/v1/runs/${id}/patch`)).patch));
  }, [id, !patch]);
  if (!patch) return <Empty title="It proposes no changes"><p>A run can change files, in a copy of its own, with the grant <code>rw</code> only; this one changed none.</p></Empty>;
  return (
    <div class="charts">
      <section class="panel">
        <p>Nothing of this is in your files yet. <code>ava apply {id}</code> in a terminal shows it and writes it, and so does Apply above, while it waits.</p>
        <table>
          <caption class="visually-hidden">Files that change</caption>
          <thead><tr><th scope="col">file</th><th scope="col">how</th><th scope="col" class="number">added</th><th scope="col" class="number">removed</th></tr></thead>
          <tbody>{patch.changed.map((f) => <tr key={f.path}><th scope="row"><code>{f.path}</code></th><td>{f.how}</td><td class="number">{f.added}</td><td class="number">{f.removed}</td></tr>)}</tbody>
        </table>
        {patch.files > patch.changed.length ? <p class="soft">and {patch.files - patch.changed.length} more files</p> : null}
        {patch.left_out_files ? (
          <details open><summary>Left out: {patch.left_out_files}</summary>
            <ul>{patch.left_out.map((f) => <li key={f.path}><code>{f.path}</code> <span class="soft">{f.why}</span></li>)}</ul>
          </details>
        ) : null}
      </section>
      {text.value == null ? <p class="soft">Reading…</p> : <Diff text={text.value} />}
    </div>
  );
}
