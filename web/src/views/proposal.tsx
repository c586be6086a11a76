// A quote in full, as the daemon computed it, and its answers: yes to exactly this (its hash goes
// along), no, or a change in words, which starts at once when it only lowers something and is a new
// quote otherwise. Where a run would have all three rights the yes says so, as the daemon demands.
import { useSignal } from "@preact/signals";
import { post, type Proposal, type Quote } from "../api";
import { now, refreshProposals } from "../store";
import { attempt, draft, focused, leave, Problem, Sure, toast, useSend } from "../ui";
import { cut, duration, money, rightsWords, roleName, sourceWords, tokens } from "../words";

// A run of it has all three rights, and nobody has granted that beforehand.
const asksAllThree = (q: Quote): boolean => q.members?.some(asksAllThree) ?? (q.allThree && !q.grants.includes("all_three"));

export function QuoteFacts({ quote }: { quote: Quote }) {
  return (
    <dl class="facts">
      <dt>Time</dt><dd>{quote.minutes[0] === quote.minutes[1] ? `about ${quote.minutes[0]} min` : `${quote.minutes[0]} to ${quote.minutes[1]} min`}</dd>
      <dt>Cost</dt><dd>{quote.costCents == null ? "unknown, held by tokens" : `up to ${money(quote.costCents)}`}</dd>
      <dt>Tokens</dt><dd>about {tokens(quote.tokens)}</dd>
      <dt>Model</dt><dd>{quote.model}{quote.fallback?.length ? `, else ${quote.fallback.join(", ")}` : ""}</dd>
      <dt>Tools</dt><dd>{quote.tools.join(", ")}</dd>
      {quote.grants.length ? <><dt>Grants</dt><dd>{quote.grants.join(", ")}</dd></> : null}
      <dt>Rights</dt><dd>{quote.allThree ? <strong class="tag red">all three together</strong> : null} {rightsWords(quote.rights)}</dd>
      {quote.roleFile ? <><dt>Role</dt><dd>{sourceWords[quote.roleFile.source]}: <code>{quote.roleFile.path}</code></dd></> : null}
      {quote.rationale ? <><dt>Why</dt><dd>{quote.rationale}</dd></> : null}
    </dl>
  );
}

function taskOf(p: Proposal): string {
  const c = p.config as { task?: string; members?: { task?: string }[] };
  return c.task ?? c.members?.map((m, i) => `${i + 1}. ${m.task}`).join("\n") ?? "";
}
function limitsOf(p: Proposal): string {
  const l = (p.config as { limits?: { seconds?: number; costCents?: number; tokens?: number; iterations?: number } }).limits;
  if (!l) return "";
  return [l.seconds && (l.seconds % 60 ? duration(l.seconds * 1000) : `${l.seconds / 60} min`), l.costCents != null && money(l.costCents), l.tokens && `${tokens(l.tokens)} tokens`, l.iterations && `${l.iterations} replies`]
    .filter(Boolean).join(", ");
}

export function ProposalCard({ proposal: p }: { proposal: Proposal }) {
  const changing = useSignal(false), words = draft(`change ${p.proposal_id}`), { problem, busy, send } = useSend();
  const allThree = asksAllThree(p.quote);
  const left = Date.parse(p.expires_at) - now.value;
  const confirm = async (body: { answer?: string }) => {
    const good = await send(async () => {
      const a = await post<Proposal>(`/api/v1/proposals/${p.proposal_id}/confirm`, { ...body, by: "web", config_hash: p.config_hash });
      if (a.state === "confirmed") toast(`${a.subagent_id} has started.`);
      else if (a.state === "pending") toast("That is another quote: look at it again.");
    });
    if (good) {
      words.value = "";
      changing.value = false;
    }
    refreshProposals();
  };
  const reject = () =>
    attempt(() => post(`/api/v1/proposals/${p.proposal_id}/reject`, { by: "web" }), "Nothing was started.").then(refreshProposals);
  return (
    <li class="card panel proposal" data-proposal={p.proposal_id} tabIndex={0} aria-label={`Quote: ${roleName(p.quote.role)}, ${cut(taskOf(p), 120)}`}>
      <div class="row">
        <span class="grow"><strong>{p.quote.role === "group" ? `${p.quote.members?.length ?? ""} runs` : roleName(p.quote.role)}</strong> <small>{p.proposal_id}</small></span>
        <small title={`expires ${p.expires_at}`}>{left > 0 ? duration(left) : "expired"}</small>
      </div>
      <p class="task">{taskOf(p)}</p>
      {p.changes ? <p class="tag yellow">changed: {p.changes}</p> : null}
      <QuoteFacts quote={p.quote} />
      {limitsOf(p) ? <p class="soft">Stops at {limitsOf(p)}.</p> : null}
      {p.quote.members?.length ? (
        <details><summary>The {p.quote.members.length} runs</summary>{p.quote.members.map((m, i) => <div class="panel" key={i}><strong>{roleName(m.role)}</strong><QuoteFacts quote={m} /></div>)}</details>
      ) : null}
      {allThree ? (
        <p class="warning">{p.quote.members ? "One of these runs" : "This run"} could read your data, read what strangers wrote and send data out: what a stranger wrote could make it send your data out. Say “yes, all three” if you want that, or change the quote to leave a tool out.</p>
      ) : null}
      <div class="row actions">
        <Sure letter="y" once class={allThree ? "danger" : "primary"} disabled={busy.value} name={allThree ? "Yes, all three" : "Yes, start"} sure="Start it? y again"
          act={() => confirm(allThree ? { answer: "yes, all three" } : {})} />
        <button disabled={busy.value} aria-expanded={changing.value} onClick={() => (changing.value = !changing.value)}>Change</button>
        <Sure letter="x" once disabled={busy.value} name="No" sure="Leave it? x again" act={reject} />
      </div>
      {changing.value ? (
        <form onKeyDown={(e) => e.key === "Escape" && leave(e.currentTarget, () => (changing.value = false))}
          onSubmit={(e) => { e.preventDefault(); if (words.value.trim() && !busy.value) void confirm({ answer: words.value }); }}>
          <label>What shall be different?
            <input style="width: 100%" ref={focused} value={words} onInput={(e) => (words.value = e.currentTarget.value)} placeholder={allThree ? "yes, without web_search" : "yes, but max 20 cents"} />
          </label>
        </form>
      ) : null}
      <Problem text={problem.value} />
    </li>
  );
}
