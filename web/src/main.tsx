import { render } from "preact";
import { signedIn, signIn } from "./api";
import { App } from "./app";
import { beginAttention } from "./attention";
import { problem, start } from "./store";
import "./style.css";

async function begin() {
  problem.value = await signIn();
  render(<App />, document.getElementById("app")!);
  if (!signedIn.value) return;
  try {
    await start();
    beginAttention();
  } catch (e) {
    problem.value = (e as Error).message;
  }
}

// The address of `ava dashboard` in a tab that has the page already: only what is behind the # changes,
// and nothing would be read anew.
addEventListener("hashchange", () => location.hash.startsWith("#code=") && location.reload());
void begin();
