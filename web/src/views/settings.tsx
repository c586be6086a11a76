// Settings of the page in this browser, its session with the daemon, and the daemon's own connections.
import type { ComponentChildren } from "preact";
import { Sure } from "../acts";
import { signOut, type ClusterAnswer, type Messenger } from "../api";
import { canNotify, notifies, setNotifies } from "../attention";
import { looks, setLook } from "../kept";
import { lettersAct, setLettersAct } from "../keys";
import { health } from "../store";
import { attempt, undoing, useGet } from "../ui";
import { money } from "../words";
import "./rest.css";

function Looks({ name, label, values }: { name: keyof typeof looks; label: string; values: [value: string, label: string][] }) {
  return <label class="row"><span class="label">{label}</span> <select value={looks[name]} onChange={(e) => setLook(name, e.currentTarget.value)}>{values.map(([v, l]) => <option key={v} value={v}>{l}</option>)}</select></label>;
}
async function leaveAll() {
  if (undoing.value.size) throw new Error("A cancel is about to begin: wait three seconds, or take it back.");
  await signOut();
}

function messenger(name: string, d?: Messenger): ComponentChildren {
  if (!d) return <>Not set up. <code>doc/{name.toUpperCase()}.md</code> says where its token goes; then <code>ava {name} pair</code></>;
  return <>{d.state}{d.bot ? ` as ${d.bot}` : ""}, {d.paired.length ? `paired with ${d.paired.map((p) => p.name || p.id).join(", ")}` : "paired with nobody"}{d.problem ? <span class="problem">: {d.problem}</span> : ""}. <code>ava {name} pair</code> lets somebody in, <code>ava {name} unpair ID</code> out.</>;
}

export function Settings() {
  const h = health.value, budget = h?.today.budget_cents, c = useGet<ClusterAnswer>("/api/v1/cluster").data?.cluster;
  return (
    <>
      <h1>Settings</h1>
      <div class="charts settings">
        <section class="panel stack" aria-labelledby="browser">
          <h2 id="browser">This browser</h2>
          <Looks name="theme" label="Theme" values={[["", "As the system"], ["light", "Light"], ["dark", "Dark"]]} />
          <Looks name="density" label="Density" values={[["", "Comfortable"], ["compact", "Compact"]]} />
          <label class="row"><input type="checkbox" checked={lettersAct} onChange={(e) => setLettersAct(e.currentTarget.checked)} /> <span>Single-letter shortcuts (<kbd>?</kbd> lists them)</span></label>
          <label class="row"><input type="checkbox" checked={notifies} disabled={!canNotify()} onChange={(e) => void setNotifies(e.currentTarget.checked)} /> Notify me when I am needed{canNotify() ? "" : " (blocked in the browser's settings)"}</label>
          <p><Sure name="Sign out every browser" sure="Sign out every browser? Press again" act={() => attempt(leaveAll)} /></p>
        </section>
        {h ? (
          <section class="panel stack" aria-labelledby="daemon">
            <h2 id="daemon">The daemon</h2>
            <dl class="facts">
              <dt>Version</dt><dd>{h.version}, process {h.pid}</dd>
              <dt>Model</dt><dd>{h.model}{h.model_why ? <small>, {h.model_why}</small> : null}</dd>
              <dt>Runs</dt><dd>{h.slots.used} of {h.slots.max} at once, {h.queued} queued</dd>
              <dt>Daily budget</dt><dd>{budget ? money(budget) : "None"} <small>(<code>budget.day_cents</code> in <code>config.yaml</code>)</small></dd>
              <dt>Cluster</dt><dd>{c ? <>{c.state === "member" ? `Member as ${c.name}` : `${c.state}, as ${c.name}`}, {c.runs_taken} runs taken from other machines, {c.waiting_runs} wait for the database{c.problem && c.state !== "member" ? <span class="problem">: {c.problem}</span> : ""}. <code>ava cluster status</code> has all machines</> : <>None. <code>doc/CLUSTER.md</code> says how machines share runs</>}</dd>
              <dt>Telegram</dt><dd>{messenger("telegram", h.telegram)}</dd>
              <dt>Matrix</dt><dd>{messenger("matrix", h.matrix)}</dd>
              <dt>Traces</dt><dd>{h.otel ? <>{h.otel.pushed} pushed to {h.otel.endpoint}{h.otel.given_up ? `, ${h.otel.given_up} given up` : ""}{h.otel.problem ? <span class="problem">: {h.otel.problem}</span> : ""}</> : <>Not pushed anywhere. Set <code>otel.endpoint</code> in <code>config.yaml</code></>}</dd>
              <dt>MCP servers</dt><dd>Listed in <code>mcp.json</code>; <code>ava doctor</code> checks them</dd>
            </dl>
            <p class="soft">The daemon reads <code>~/.config/ava/config.yaml</code> when it starts: <code>ava restart</code> after a change.</p>
          </section>
        ) : null}
      </div>
    </>
  );
}
