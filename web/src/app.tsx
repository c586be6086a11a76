// The frame: what there is at the left, the place in the middle, Claude Code's agents below.
import { signedIn } from "./api";
import { health, problem } from "./store";
import { link } from "./stream";
import { place } from "./router";
import { Empty, Toasts } from "./ui";
import { money } from "./words";

function SignIn() {
  return (
    <Empty title="Not signed in">
      <p>{problem.value || "This browser has no session with the daemon."}</p>
      <p>Run <code>ava dashboard</code> in a terminal and open the address that it prints.</p>
    </Empty>
  );
}

export function App() {
  if (!signedIn.value) return <main><SignIn /></main>;
  return (
    <>
      <header class="top">
        <strong>ava</strong>
        <span>{health.value ? `${health.value.runs.running} at work · ${money(health.value.today.cost_cents)} today` : ""}</span>
        <span class={`link ${link.value}`} role="status">{link.value === "live" ? "live" : "reconnecting…"}</span>
      </header>
      <main>{place.value.view}</main>
      <Toasts />
    </>
  );
}
