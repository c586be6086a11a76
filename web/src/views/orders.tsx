// Standing orders: when each is due next, what it spends, and what became of it; one of them with its runs.
import { ActRow, Card, moveCard, useActs, useStand, type Act } from "../acts";
import { once, post, type Item, type Order, type Run, type TriggerList } from "../api";
import { useKeys } from "../keys";
import { address, go } from "../router";
import { cancelAct } from "../run_acts";
import { live, runs } from "../store";
import { attempt, copy, Elapsed, Empty, Problem, Reading, StatusTag, useGet } from "../ui";
import { costOf, cut, day, exactly, modelName, money, roleName } from "../words";
import "./orders.css";

const SHOWN = 200;
const stateWords: Record<Order["state"], string> = { active: "active", paused: "paused", asks: "asks you", done: "over", removed: "removed" };
const looks: Record<Order["state"], string> = { active: "blue", paused: "", asks: "yellow", done: "", removed: "" };
const change = (o: Order, what: string, done: string, reload: () => void) => attempt(() => post(`/api/v1/orders/${o.order_id}/${what}`, {}), done).then(reload);
// Its run starts, is paused or changes by what the stream says; a run's end changes what it has spent.
const changes = (i: Item) => i.kind !== "doing" && i.kind !== "said";

// One more run spends: the key is pressed twice. A removed order cannot be had back.
function orderActs(o: Order, last: Run | undefined, reload: () => void): Act[] {
  const acts: Act[] = [], id = o.order_id;
  if (o.ask) acts.push({ id: "ask", name: "Answer", kind: "primary", run: () => go("inbox", o.ask!) });
  else if (o.state === "asks") acts.push({ id: "again", name: "Ask again", kind: "primary", title: "Quotes it anew: nobody answered the last quote", run: () => change(o, "unpause", "It is quoted anew: the Inbox has it.", reload) });
  if (last && live(last)) acts.push({ ...cancelAct([last.subagent_id], "Cancel", `“${cut(last.task, 40)}”`), name: "Cancel its run" });
  if (o.state === "active") acts.push({ id: "pause", name: "Pause", key: "p", does: "pause the order, or let it go on", run: () => change(o, "pause", "Paused. Nothing is due until you let it go on.", reload) });
  if (o.state === "paused") acts.push({ id: "unpause", name: "Go on", key: "p", does: "let the order go on", run: () => change(o, "unpause", "It goes on.", reload) });
  if (o.state === "active" || o.state === "paused") {
    const most = o.max_cost_cents == null ? "" : `, up to ${money(o.max_cost_cents)}`;
    acts.push({ id: "run", name: "Run now", key: "r", does: "start a run of it now", sure: `Start one${most}? Press again`, once: true, title: `Starts one run${most}`,
      run: () => attempt(async () => go("run", (await once<{ subagent_id: string }>(`/api/v1/orders/${id}/run`, {})).subagent_id)) });
  }
  acts.push({ id: "rm", name: "Remove", kind: "danger", sure: "Remove for good", title: "No run is started any more; those that it started stay", run: () => change(o, "rm", "Removed.", reload).then(() => go("orders")) });
  acts.push({ id: "link", name: "Copy link", run: () => copy(location.href.split("#")[0] + address("orders", id), "the link") });
  return acts;
}

const spent = (of: number | null, most: number | null, when: string) => `${money(of)}${most == null ? "" : ` of ${money(most)}`} ${when}`;
const nRuns = (n: number) => `${n} run${n === 1 ? "" : "s"}`;
const facts = (o: Order) => [
  spent(o.spent_day_cents, o.day_cents, "today"), spent(o.spent_month_cents, o.month_cents, "this month"), o.count ? `${o.fired} of ${nRuns(o.count)}` : nRuns(o.fired),
  ...(o.waiting ? [`${o.waiting} waiting`] : []),
];

function Row({ order: o, reload }: { order: Order; reload: () => void }) {
  const id = o.order_id, last = o.run ? runs.value.get(o.run) : undefined, acts = orderActs(o, last, reload), on = useActs(acts);
  return (
    <Card name={id} label={`${cut(o.task, 120)}, ${stateWords[o.state]}`} keys={[{ key: "Enter", does: "open the order", run: () => go("orders", id) }, ...on.keys]} class="panel order">
      <div class="row">
        <a class="grow ellipsis" href={address("orders", id)} data-order={id} title={o.task}><strong>{o.task}</strong></a>
        <span class={`tag ${looks[o.state]}`}>{stateWords[o.state]}</span>
      </div>
      <p class="soft">{o.next[0] ? <>Next <time dateTime={o.next[0]} title={exactly(o.next[0])}>{day(o.next[0])}</time> · </> : null}{o.text}</p>
      <p class="soft">{facts(o).join(" · ")}{o.run ? <> · last run <a href={address("run", o.run)}>{o.run}</a>{last ? <> <StatusTag status={last.status} /></> : null}</> : null}</p>
      {o.why ? <p class="problem">{o.state === "asks" ? `Its runs would no longer be what you confirmed: ${o.why}` : o.why}</p> : null}
      <ActRow acts={acts} on={on} first={acts.length - 2} />
    </Card>
  );
}

function Orders() {
  const { data, error, reload } = useGet<{ orders: Order[] }>("/api/v1/orders", changes);
  useStand();
  useKeys([{ key: "j", does: "next order", run: () => moveCard(1) }, { key: "k", does: "previous order", run: () => moveCard(-1) }]);
  return (
    <>
      <h1>Orders</h1>
      <div class="charts">
        <p class="soft">Runs that start by the clock, or by a trigger, as you confirmed them once.</p>
        {!data || error ? <Reading error={error} /> : !data.orders.length ? (
          <Empty title="No standing orders yet">
            <p>Say “every Monday at 8, …” in a conversation, or in a terminal:</p>
            <p><code>ava schedule add 'Mon 08:00' 'say what changed last week'</code></p>
          </Empty>
        ) : (
          <ul class="plain-list stack" aria-label="Standing orders">{data.orders.map((o) => <li key={o.order_id}><Row order={o} reload={reload} /></li>)}</ul>
        )}
      </div>
    </>
  );
}

function RunRow({ run: r }: { run: Run }) {
  const id = r.subagent_id;
  return (
    <Card name={id} label={`${id}, ${r.status}`} keys={[{ key: "Enter", does: "open the run", run: () => go("run", id) }]} class="panel">
      <div class="row" data-run={id}>
        <a href={address("run", id)}>{id}</a>
        <small class="grow">{day(r.started_at)}</small>
        <StatusTag status={r.status} />
        <small class="number">{costOf(r)}</small>
        <small><Elapsed run={r} /></small>
      </div>
    </Card>
  );
}

function One({ id }: { id: string }) {
  const { data: o, error, reload } = useGet<Order>(`/api/v1/orders/${encodeURIComponent(id)}`, changes);
  const { data: list } = useGet<{ runs: Run[] }>(o ? `/api/v1/runs?all=1&limit=${SHOWN}&session=${encodeURIComponent(o.session_id)}` : "", changes);
  const { data: from } = useGet<TriggerList>("/api/v1/triggers"), triggers = from?.triggers.filter((t) => t.order_id === id) ?? [];
  const its = list?.runs.filter((r) => r.order === id).map((r) => runs.value.get(r.subagent_id) ?? r) ?? [];
  const acts = o ? orderActs(o, o.run ? runs.value.get(o.run) : undefined, reload) : [], on = useActs(acts);
  useStand();
  useKeys([
    { key: "j", does: "next run", run: () => moveCard(1) },
    { key: "k", does: "previous run", run: () => moveCard(-1) },
    { key: "u", does: "back to the orders", run: () => go("orders") },
  ]);
  if (!o) return error ? <Empty title={/^there is no order/.test(error) ? `There is no order ${cut(id, 40)}` : error}><p><a href={address("orders")}>All orders</a></p></Empty> : <Reading error="" />;
  const rows: [string, preact.ComponentChildren][] = [
    ["When", o.text],
    ["Next", o.next.length ? o.next.map((t) => day(t)).join(", ") : o.state === "paused" ? "nothing while it is paused" : "none"],
    ["Each run", `${roleName(o.role)}, ${modelName(o.model)}, ${o.max_cost_cents == null ? "cost unknown" : `up to ${money(o.max_cost_cents)}`}`],
    ["Folder", o.cwd || "no files"],
    ["Spent", facts(o).join(" · ")],
    ["Ends", [o.until ? exactly(o.until) : "", o.count ? `after ${nRuns(o.count)}` : ""].filter(Boolean).join(", or ") || (o.text.startsWith("once, ") ? "when no time is left" : "when you remove it")],
    ["Overlap", o.overlap === "queue" ? "one waits while its run is at work; deliveries wait, ten at the most" : "left out while its run is at work"],
    ["Missed times", o.missed === "once" ? "one run for all of them" : o.missed === "skip" ? "left out" : "all, ten at the most"],
  ];
  if (triggers.length || o.when === "@trigger")
    rows.push(["Triggers", triggers.map((t) => `${t.name}${t.signed ? ` (signed: ${t.signed})` : ""}`).join(", ") || <>none yet: <code>ava trigger add NAME {id}</code></>]);
  return (
    <div class="stack">
      <p><a href={address("orders")}>‹ Orders</a></p>
      <div class="row"><h1 class="grow">{o.task} <small>{id} · {stateWords[o.state]}</small></h1></div>
      <ActRow acts={acts} on={on} />
      <Problem text={o.why} />
      <dl class="facts">{rows.map(([name, what]) => [<dt key={name}>{name}</dt>, <dd key={`${name}.`}>{what}</dd>])}</dl>
      <h2>Its runs</h2>
      {its.length ? <ol class="plain-list stack" aria-label="Its runs">{its.map((r) => <li key={r.subagent_id}><RunRow run={r} /></li>)}</ol> : <p class="soft">None yet.</p>}
    </div>
  );
}

export const OrdersView = ({ id }: { id: string }) => (id ? <One key={id} id={id} /> : <Orders />);
