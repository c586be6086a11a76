// The page in a real browser, against a real daemon; run by test_page.sh. Prints `ok N - name` lines.
import { execFile, execFileSync, spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { promisify } from "node:util";
import { typingParts } from "./typing.mjs";

const { AVA, AVAD, T, CHROMIUM, PEER_MODULES, SHOTS } = process.env;
const require = createRequire(path.join(PEER_MODULES, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

let count = 0, failed = 0;
function ok(good, name, more = "") {
  count++;
  if (!good) failed++;
  console.log(`${good ? "ok" : "not ok"} ${count} - ${name}`);
  if (!good) console.log(String(more).slice(0, 3000).replace(/^/gm, "# "));
}
const run = promisify(execFile);
const ava = (...words) => execFileSync(AVA, words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 });
const root = process.env.AVA_DATA_ROOT;
const src = path.join(T, "src");
async function soon(f, what, ms = 60000) {
  const until = Date.now() + ms;
  for (let last; ; await new Promise((r) => setTimeout(r, 50))) {
    try {
      if ((last = await f())) return last;
    } catch (e) {
      last = e;
    }
    if (Date.now() > until) throw new Error(`${what}: ${last}`);
  }
}
async function seen(f, name, ms) {
  await soon(f, name, ms);
  ok(true, name);
}
function script(name, ...turns) {
  const file = path.join(T, `${name}.jsonl`);
  writeFileSync(file, turns.map((t) => JSON.stringify(t)).join("\n") + "\n");
  return `offline:${file}`;
}
const submit = (summary) => ({ tool_calls: [{ name: "submit_result", args: { output: null, summary, confidence: 0.5 } }] });
// The model of runs that name none: at work until it is stopped.
const SLOW = script("slow", { text: "I look.", tool_calls: [{ name: "read_file", args: { path: "kettle.h" } }] }, { ...submit("boiled"), delay_ms: 600000 }, { ...submit("boiled"), delay_ms: 600000 });
async function spawnRun(task, model, ...more) {
  const { stdout } = await run(AVA, ["run", task, "--role", "code_reviewer", "--model", model, "--yes", "--background", "--json", ...more], { cwd: src });
  return JSON.parse(stdout.trim().split("\n").at(-1)).subagent_id;
}
function call(method, path, body) {
  return new Promise((done, fail) => {
    const q = request({ socketPath: `${root}/ava.sock`, method, path, headers: body ? { "Content-Type": "application/json" } : {} }, (a) => {
      let text = "";
      a.on("data", (d) => (text += d)).on("end", () => done({ status: a.statusCode, text, body: /json/.test(a.headers["content-type"]) ? JSON.parse(text) : null }));
    });
    q.on("error", fail).end(body && JSON.stringify(body));
  });
}
function hook(kind, session, agent, more = {}) {
  execFileSync(AVA, ["hook"], { input: JSON.stringify({ session_id: session, hook_event_name: kind, agent_id: agent, agent_type: "Explore", cwd: src, ...more }) });
}

mkdirSync(src, { recursive: true });
writeFileSync(path.join(src, "kettle.h"), "int kettle_boil(void);\n");

// Where a page that was talked into something would go.
const fetched = [];
const spy = createServer((q, a) => {
  fetched.push(q.url);
  a.end();
});
await new Promise((r) => spy.listen(0, "127.0.0.1", r));
const elsewhere = `http://127.0.0.1:${spy.address().port}`;

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
const troubles = [];
function watch(page) {
  page.on("pageerror", (e) => troubles.push(`error: ${e.message}`));
  page.on("dialog", (d) => (troubles.push(`dialog: ${d.message()}`), d.dismiss()));
  page.on("console", (m) => /Content Security Policy|Trusted/i.test(m.text()) && troubles.push(`console: ${m.text()}`));
  return page;
}
const page = watch(await context.newPage());
const text = (selector) => page.locator(selector).innerText();
async function goTo(hash) {
  await page.evaluate((h) => (location.hash = h), hash);
}
// What ends or erases is asked once more.
async function twice(place, name) {
  for (const words of [name, /Press again$|for good$/]) await place.getByRole("button", { name: words, exact: words === name }).click();
}
async function shot(name) {
  if (SHOTS) await page.screenshot({ path: path.join(SHOTS, `${name}.png`) });
}

async function signingIn() {
  const url = ava("dashboard", "--no-open").trim();
  await page.goto(url.split("#")[0]);
  ok(/Not signed in/.test(await text("main")), "without a session the page says how to sign in");
  const began = Date.now();
  await page.goto(url);
  await page.waitForSelector("header.top");
  await soon(async () => (await text(".link")) === "live", "the stream");
  ok(true, `an address that is opened in a tab of the page signs it in (${Date.now() - began} ms)`);
  ok(!page.url().includes("code"), "and the code is out of the address", page.url());
  ok(/No runs yet/.test(await text("main")), "without runs it says what to do");
  await page.reload();
  await soon(async () => (await text(".link")) === "live", "the stream");
  ok(true, "a reload stays signed in");
  const other = await browser.newContext();
  const thief = watch(await other.newPage());
  await thief.goto(url);
  ok(/used already/.test(await soon(() => thief.locator("main").innerText(), "refusal")), "the same address signs nobody in again");
  await other.close();
}

async function proposing() {
  await page.keyboard.press("n");
  await page.fill("dialog textarea", "look at the kettle");
  await page.selectOption("dialog select", "code_reviewer");
  await page.fill("dialog input.mono", src);
  await page.click("dialog button.primary");
  const card = page.locator(".ask.card");
  await card.waitFor();
  ok(/look at the kettle/.test(await card.innerText()) && /read_file/.test(await card.innerText()) && /stops at/.test(await card.innerText()), "a task from the page is a quote on the board", await card.innerText());
  await shot("quote");
  await card.getByRole("button", { name: "Change" }).click();
  await card.getByLabel("What shall be different?").fill("max 10 cents");
  await page.keyboard.press("Enter");
  await soon(async () => (await card.innerText()).includes("$0.10"), "the new quote");
  ok(/instead of \$1\.00|changed/i.test(await card.innerText()), "a change in words is a new quote that says what changed", await card.innerText());
  await card.focus();
  await page.keyboard.press("y");
  await card.getByRole("button", { name: "Start it? y again" }).waitFor();
  await page.keyboard.press("y");
  const running = page.getByRole("region", { name: /^Running/ }).locator(".card");
  await running.waitFor();
  ok((await page.locator(".ask.card").count()) === 0, "yes, pressed twice, starts it by the keyboard");
  const id = await running.getAttribute("data-run");
  await running.getByRole("button", { name: "Steer" }).click();
  await running.locator("form input").fill("only the lid");
  await page.keyboard.press("Enter");
  await seen(() => ava("logs", id, "-o", "json").includes("only the lid"), "what is said to it reaches it");
  await running.focus();
  await page.keyboard.press("x");
  await page.keyboard.press("x");
  await page.getByRole("region", { name: /^Done/ }).locator(`[data-run="${id}"]`).waitFor();
  ok(JSON.parse(ava("status", id, "--json")).status === "cancelled", "cancelled from the page is cancelled");
  await page.locator(`[data-run="${id}"]`).getByRole("button", { name: "Resume" }).click();
  await card.waitFor();
  const first = (await card.getAttribute("data-ask"));
  await card.getByRole("button", { name: "Yes", exact: true }).click();
  await running.waitFor();
  const { body } = await call("GET", `/api/v1/proposals/${first}`);
  ok(body.state === "confirmed" && body.subagent_id === (await running.getAttribute("data-run")), "and goes on when its quote is answered", JSON.stringify(body));
  await twice(running, "Cancel");
  await soon(async () => (await running.count()) === 0, "its end");

  await page.keyboard.press("n");
  await page.fill("dialog textarea", "never mind");
  await page.click("dialog button.primary");
  await card.waitFor();
  await card.getByRole("button", { name: "No", exact: true }).click();
  await soon(async () => (await card.count()) === 0, "the quote to go");
  ok(ava("proposals", "--json").trim() === "[]", "no is no");
}

// Rights of all three: the sentence, and a yes that says so.
async function allThree() {
  await goTo("#/");
  const { status, body } = await call("POST", "/api/v1/runs", { task: "what do others say of the kettle?", role: "researcher", cwd: src, grants: ["fetch_any"], model: script("three", submit("they like it")) });
  const card = page.locator(`[data-ask="${body.proposal_id}"]`);
  await card.waitFor();
  const told = await card.innerText();
  ok(status === 201 && body.quote.allThree && /could read your data, read what strangers wrote and send data out/.test(told),
    "a quote with all three rights says in words what they are together", told);
  ok((await card.getByRole("button", { name: "Yes", exact: true }).count()) === 0, "and has no plain yes");
  await shot("all-three");
  await card.focus();
  await page.keyboard.press("y");
  await page.keyboard.press("y");
  const run = await soon(async () => {
    const p = (await call("GET", `/api/v1/proposals/${body.proposal_id}`)).body;
    return p.state === "confirmed" ? p.subagent_id : null;
  }, "the start");
  const said = (await call("GET", `/api/v1/logs?search=${body.proposal_id}&limit=1000`)).body.events.filter((e) => e.content.proposalId === body.proposal_id && e.content.allThree === true);
  ok(said.length === 1, "its yes is the one that says all three", JSON.stringify(said));
  await soon(async () => JSON.parse(ava("status", run, "--json")).status === "success", "its end");
  await goTo(`#/run/${run}`);
  await seen(async () => /Reads your data · Reads the web · Can send data out/.test(await text("main")), "a run's place says what it may");
}

async function custom() {
  const agents = path.join(process.env.XDG_CONFIG_HOME, "ava/agents"), project = path.join(src, ".claude/agents");
  mkdirSync(agents, { recursive: true });
  mkdirSync(project, { recursive: true });
  writeFileSync(path.join(agents, "teapot.md"), "---\nname: teapot\ndescription: Knows pots.\ntools: read_file\n---\nLook at pots.\n");
  writeFileSync(path.join(project, "lid.md"), "---\nname: lid\ndescription: Knows lids.\ntools: read_file\n---\nLook at lids.\n");
  await goTo("#/");
  await page.keyboard.press("n");
  await page.fill("dialog textarea", "which pot?");
  await page.fill("dialog input.mono", src);
  const lid = page.locator('dialog option[value="lid"]');
  await lid.waitFor({ state: "attached" });
  ok((await lid.evaluate((e) => e.disabled)) && /the project's/.test(await lid.innerText()), "roles are those of the folder, and one that nobody trusts cannot be chosen", await lid.innerText());
  await page.selectOption("dialog select", "teapot");
  await page.click("dialog button.primary");
  const card = page.locator(".ask.card");
  await card.waitFor();
  ok(/Role: teapot, from .*teapot\.md/.test(await card.innerText()), "a quote names the file of a role that is not built in", await card.innerText());
  await card.getByRole("button", { name: "No", exact: true }).click();
  await soon(async () => (await card.count()) === 0, "the quote to go");
}

async function claims() {
  const found = { path: "kettle.h", line: 1, quote: "int kettle_boil(void);" }, lost = { path: "none.h", line: 9, quote: "int lid(void);" };
  const id = await spawnRun("cite", script("cite", { tool_calls: [{ name: "read_file", args: { path: "kettle.h" } }] }, { tool_calls: [{ name: "submit_result", args: { output: { findings: [found, lost] }, summary: "One is true.", confidence: 0.5 } }] }));
  await soon(() => JSON.parse(ava("status", id, "--json")).status === "success", "its end");
  await goTo(`#/run/${id}`);
  await page.getByText("1 of 2 not found").waitFor();
  const bad = page.locator("main li", { hasText: "not found where it was said to be" });
  ok((await bad.count()) === 1 && (await bad.innerText()).includes("none.h:9"), "a citation that was not found is marked, the other one is not", await text("main"));
}

let patched = ""; // a run with a patch
async function changes() {
  const repo = path.join(T, "repo");
  mkdirSync(repo);
  writeFileSync(path.join(repo, "kettle.c"), "int boil;\n-- a\nint lid;\n");
  execFileSync("git", ["init", "-q", repo]);
  const { stdout } = await run(AVA, ["run", "make it better", "--role", "code_reviewer", "--grant", "rw", "--yes", "--background", "--json", "--model",
    script("patch", { tool_calls: [{ name: "read_file", args: { path: "kettle.c" } }] }, { tool_calls: [{ name: "edit_file", args: { path: "kettle.c", old_string: "-- a\n", new_string: "++ b\n" } }, { name: "write_file", args: { path: "lid.c", content: "int x;\n" } }, { name: "write_file", args: { path: ".envrc", content: "x" } }, { name: "run_bash", args: { command: "echo '<b>it boils' >/ava/work/note.txt" } }] }, submit("better"))], { cwd: repo });
  const id = JSON.parse(stdout.trim().split("\n").at(-1)).subagent_id;
  await soon(() => JSON.parse(ava("status", id, "--json")).status === "success", "its end");
  await goTo(`#/run/${id}`);
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "work/note.txt" }).click()]);
  ok(file.suggestedFilename() === "note.txt" && readFileSync(await file.path(), "utf8") === "<b>it boils\n", "a file that a run leaves is saved as it is", file.suggestedFilename());
  await page.getByRole("link", { name: /2 files, 2 lines added, 1 removed/ }).click();
  await page.locator(".diff .add").first().waitFor();
  ok((await page.locator(".diff .add").allInnerTexts()).join() === "+++ b,+int x;" && (await page.locator(".diff .del").allInnerTexts()).join() === "--- a",
    "a patch is shown line by line, also where lines look like heads", (await page.locator(".diff").innerText()));
  ok((await text("main")).includes(`ava apply ${id}`) && /new/.test(await page.getByRole("table", { name: "Files that change" }).innerText()), "with its files, and what to do with it", await text("main"));
  ok(readFileSync(path.join(repo, "kettle.c"), "utf8").includes("-- a"), "and nothing is written by a look");
  await shot("patch");
  patched = id;
  // Its Ask, in the conversation behind the result: what it says is what is written.
  const talk = JSON.parse(ava("asks", "--json")).find((a) => a.id === `${id}:patch`).session, card = page.locator(`[data-ask="${id}:patch"]`);
  const apply = card.getByRole("button", { name: "Apply", exact: true }), lid = path.join(repo, "lid.c");
  await goTo("#/");
  await seen(async () => (await page.locator(`[data-run="${id}"]`).innerText()).includes("Changes to apply or leave"), "the run's card says that changes wait");
  await goTo(`#/session/${talk}`);
  await seen(async () => /Complete/.test(await page.locator("li.result").innerText()) && (await card.innerText()).includes("+++ b"), "a conversation has the patch behind its result");
  ok((await card.innerText()).includes(`proposes to change 2 files in ${repo}`), "with its folder", await card.innerText());
  await shot("apply");
  writeFileSync(path.join(repo, "kettle.c"), "int other;\n");
  await apply.click();
  await seen(async () => /1 of 2 files clash/.test(await card.innerText()), "a file that changed since is told");
  ok(!existsSync(lid), "and nothing is written");
  await shot("apply-clash");
  writeFileSync(path.join(repo, "kettle.c"), "int boil;\n-- a\nint lid;\n");
  await apply.click();
  await soon(async () => (await card.count()) === 0, "the patch to go");
  ok(readFileSync(path.join(repo, "kettle.c"), "utf8").includes("++ b") && existsSync(lid), "Apply writes it", await text("body"));
  ok(/2 files written in/.test(await text("main")), "and the conversation says so", await text("main"));
  await shot("applied");
}

async function remembering() {
  await page.keyboard.press("g");
  await page.keyboard.press("m");
  await page.getByText("Nothing is remembered").waitFor();
  await page.fill('input[aria-label="Something to remember"]', "I drink green tea");
  await page.keyboard.press("Enter");
  const row = page.locator("[data-memory]");
  await row.waitFor();
  ok(ava("memory", "list", "--json").includes("I drink green tea"), "what is written on the page is remembered");
  await row.getByRole("button", { name: "Edit" }).click();
  await row.locator("input").fill("I drink black tea");
  await page.keyboard.press("Enter");
  await row.getByText("I drink black tea").waitFor();
  await row.getByRole("button", { name: "Pin" }).click();
  await row.getByText("each conversation begins with it").waitFor();
  ok(/black tea/.test(ava("memory", "list", "--json")), "it can be changed and pinned");
  ava("memory", "add", "I live near the sea");
  await page.getByText("I live near the sea").waitFor();
  ok(true, "what is remembered elsewhere appears");
  await page.fill('input[type="search"]', "sea");
  await seen(async () => (await row.count()) === 1 && /the sea/.test(await row.innerText()), "a search finds it");
  await shot("memory");
  await row.getByRole("button", { name: "Erase" }).click();
  ok(ava("memory", "list", "--json").includes("sea"), "erasing is asked twice");
  await row.getByRole("button", { name: "Erase for good" }).click();
  await page.getByText("Nothing has these words").waitFor();
  ok(!ava("memory", "list", "--json").includes("sea") && ava("memory", "list", "--json").includes("black tea"), "and what is erased is gone, and only that");
}

async function asking() {
  const id = await spawnRun("ask me", script("ask", { tool_calls: [{ name: "ask_person", args: { question: "Milk or lemon?", choices: ["milk", "lemon"] } }] }, submit("tea with it")));
  const card = page.locator(`[data-run="${id}"]`);
  await card.getByText("Milk or lemon?").first().waitFor();
  ok(await page.getByRole("region", { name: /^Waiting/ }).locator(`[data-run="${id}"]`).count(), "a run that asks waits on the board");
  await card.getByRole("button", { name: "lemon" }).click();
  await page.getByRole("region", { name: /^Done/ }).locator(`[data-run="${id}"]`).waitFor();
  ok(ava("logs", id, "-o", "json").includes('"answer":"lemon"'), "the answer of the page is its answer");
}

async function parking() {
  await goTo("#/");
  const id = await spawnRun("look when the quota is back [[mock fault=429:retry-after=7200x1]]", "anthropic/claude-sonnet-4-5");
  const card = page.getByRole("region", { name: /^Waiting/ }).locator(`[data-run="${id}"]`);
  await card.getByText(/^parked until \d\d:\d\d: limit of anthropic/).waitFor();
  const answers = await card.locator(".answer button[type=button]").allInnerTexts();
  ok(answers.at(0) === "wait" && answers.at(-1) === "stop", "a run whose quota comes back is parked on the board, until when and with its answers", answers.join());
  ok(await card.getByRole("img", { name: "parked" }).count(), "and is said to be");
  await shot("parked");
  await card.getByRole("button", { name: "wait" }).click();
  await soon(() => ava("logs", id, "-o", "json").includes('"state":"waits"'), "the answer");
  await goTo(`#/run/${id}?tab=trace`);
  const waits = page.locator(".span", { hasText: "parked" });
  ok(/open/.test(await soon(() => waits.innerText(), "the trace")), "told to wait it waits on, in the trace too", await text("main"));
  await shot("parked-run");
  await twice(page, "stop");
  await soon(() => JSON.parse(ava("status", id, "--json")).status === "error", "its end");
  await goTo("#/");
  await page.getByRole("region", { name: /^Failed/ }).locator(`[data-run="${id}"]`).waitFor();
  ok(true, "told to stop it has failed");
}

async function withoutResult() {
  const done = { text: "The task is done." };
  const id = await spawnRun("say that you are done", script("talk", done, done, done));
  const card = page.getByRole("region", { name: /^Failed/ }).locator(`[data-run="${id}"]`);
  await card.waitFor();
  ok(/no result/.test(await card.innerText()), "a run that handed in nothing has failed: no result", await card.innerText());
  await shot("no-result-board");
  await goTo(`#/run/${id}`);
  await page.locator("main .markdown").getByText("The task is done.").waitFor();
  ok(/unverified/.test(await text("main")) && /no tool was called/i.test(await text("main")), "and what it said is shown as that", await text("main"));
  await shot("no-result");
}

async function thinking() {
  const first = { text: "Here I am.", delay_ms: 600000 };
  const { body } = await call("POST", "/api/v1/sessions", { model: script("ponder", first, first), cwd: src });
  await call("POST", `/api/v1/sessions/${body.session_id}/messages`, { text: "hello" });
  await goTo(`#/session/${body.session_id}`);
  await page.getByText(/^Ava is (thinking|waiting for the first word of the model) \(/).waitFor();
  ok(true, "while Ava thinks her conversation says so, and for how long");
  await shot("thinking");

  // The first line of the task tells the service how to answer (doc/MOCK.md).
  const away = (await call("POST", "/api/v1/sessions", { model: "anthropic/claude-haiku-4-5", cwd: src })).body.session_id;
  await call("POST", `/api/v1/sessions/${away}/messages`, { text: "hello [[mock fault=529x99]]" });
  await goTo(`#/session/${away}`);
  await page.getByText(/^anthropic is overloaded, trying again.*\. Ava is/).waitFor();
  ok(true, "and what keeps her from an answer");
  await call("POST", `/api/v1/sessions/${away}/stop`, {});
}

async function looking() {
  const id = await spawnRun("two looks", script("looks", { text: "hm", tool_calls: [{ name: "read_file", args: { path: "kettle.h" } }, { name: "read_file", args: { path: "none.h" } }], usage: { input: 1000, output: 40 } }, { ...submit("It boils."), usage: { input: 2000, output: 60 } }));
  await soon(() => JSON.parse(ava("status", id, "--json")).status === "success", "its end");
  await goTo(`#/run/${id}`);
  await page.getByText("It boils.").waitFor();
  await page.keyboard.press("2");
  await soon(async () => /Turn 1/.test(await text("main")) && /none\.h/.test(await text("main")), "the trace");
  ok((await page.locator(".span.bad").count()) === 1, "the trace has its calls, and which failed");
  await page.keyboard.press("3");
  await seen(async () => (await page.locator(".lane").count()) === 5, "the timeline has a bar a call");
  await page.keyboard.press("4");
  const want = ava("logs", id, "-o", "json").trim().split("\n").length;
  await seen(async () => (await page.locator(".events").getAttribute("aria-label")) === `${want} events`, "the events are those of the log");
  await page.getByLabel(/errors first/).check();
  ok(/failed/.test(await page.locator(".event").first().innerText()), "errors come first when asked for", await page.locator(".event").first().innerText());
  await page.locator(".event").first().click();
  ok(/"eventType": "ToolResult"/.test(await page.locator("dialog pre").innerText()), "an event is shown as it stands");
  await page.keyboard.press("Escape");
  ok(await soon(async () => (await page.locator("dialog").count()) === 0, "the end of the dialog"), "and Escape closes it");
  await goTo("#/run/S-000000");
  ok(await soon(async () => /There is no run S-000000/.test(await text("main")), "the refusal"), "a run that is not there is said to be none");
}

async function long() {
  const id = await spawnRun("long", script("long", ...Array.from({ length: 12 }, (_, i) => ({ tool_calls: Array.from({ length: 100 }, (_, k) => ({ name: "search_codebase", args: { pattern: `w${i}x${k}` } })) })), submit("done")), "--max-iterations", "30", "--max-tokens", "90000000");
  await soon(() => JSON.parse(ava("status", id, "--json")).status !== "running", "its end", 60000);
  const want = ava("logs", id, "-o", "json").trim().split("\n").length;
  await goTo(`#/run/${id}?tab=events`);
  await soon(async () => (await page.locator(".events").getAttribute("aria-label")) === `${want} events`, "all events");
  const elements = await page.locator(".event").count();
  ok(want > 2000 && elements < 100, `of ${want} events only those in sight are elements (${elements})`);
  const worst = await page.evaluate(async () => {
    const el = document.querySelector(".events");
    let worst = 0, last = performance.now();
    for (let i = 0; i < 60; i++) {
      el.scrollTop = (el.scrollHeight / 60) * i;
      await new Promise(requestAnimationFrame);
      worst = Math.max(worst, performance.now() - last);
      last = performance.now();
    }
    return worst;
  });
  ok(worst < 250, `scrolling through them never hangs (${Math.round(worst)} ms at the longest)`);
  await goTo(`#/run/${id}?tab=trace`);
  const turn = page.locator("details", { hasText: "Turn 12" }).last();
  await turn.waitFor();
  const spans = page.locator(".span"), closed = await spans.count();
  await turn.locator("summary").first().click();
  await soon(async () => (await spans.count()) > closed, "its calls");
  ok(closed < 500, `a trace of 1,200 calls has the first ones open (${closed}), and the others when they are asked for`);
  await goTo(`#/run/${id}?tab=time`);
  await page.locator(".lane").first().waitFor();
  ok((await page.locator(".lane").count()) < 100, "and a timeline those in sight", await page.locator(".lane").count());
}

let attacked = ""; // a run whose result would like to be more than text
async function hostile() {
  const bad = `### Where\n\n# <img src=x onerror="fetch('${elsewhere}/img')">\n\n[click](javascript:fetch('${elsewhere}/js')) ![x](${elsewhere}/pic?k) </script><script>fetch('${elsewhere}/script')</script>\n\n` +
    `<svg onload="fetch('${elsewhere}/svg')"></svg> [d](data:text/html,<script>alert(1)</script>) <a href="${elsewhere}/a" ping="${elsewhere}/ping">x</a>\n\n| a | <iframe src="${elsewhere}/frame"> |\n|---|---|\n| b | [e](vbscript:x) |\n\n###### Deep`;
  const id = attacked = await spawnRun(`task <img src=x onerror="fetch('${elsewhere}/task')">`, script("hostile", submit(bad)));
  await soon(() => JSON.parse(ava("status", id, "--json")).status === "success", "its end");
  hook("SubagentStop", "hostile", "h1", { last_assistant_message: bad });
  const before = troubles.length;
  await goTo("#/");
  await goTo(`#/run/${id}`);
  await page.locator(".markdown").first().waitFor();
  ok((await page.locator("main img, main script, main iframe, main svg, main a[href^='javascript'], main a[href^='data']").count()) === 0, "what a model says makes no elements of its own", await page.locator("main .markdown").first().innerHTML());
  await goTo("#/claude/hostile");
  await page.locator('[data-agent="h1"]').first().click();
  await page.locator("dialog .markdown").waitFor();
  ok((await page.locator("dialog img, dialog script, dialog iframe, dialog svg").count()) === 0, "nor does what an agent said");
  await page.keyboard.press("Escape");
  await page.waitForTimeout(300);
  ok(fetched.length === 0 && troubles.length === before, "and nothing is fetched, run or refused by the policy", [...fetched, ...troubles.slice(before)].join("\n"));
  const big = await spawnRun("big", script("big", submit("[".repeat(1 << 20))));
  await soon(() => JSON.parse(ava("status", big, "--json")).status !== "running", "its end");
  const took = await page.evaluate(async (h) => {
    const began = performance.now();
    location.hash = h;
    const shown = () => document.querySelector("main pre.plain, main .markdown");
    while (!shown() && performance.now() - began < 60000) await new Promise(requestAnimationFrame);
    return performance.now() - began;
  }, `#/run/${big}`);
  ok(took < 15000, `a megabyte of brackets is shown in ${Math.round(took)} ms`);
}

async function agentLog() {
  for (let i = 0; i < 10; i++) hook("SubagentStart", "log", `g${i}`, { agent_type: `T${i}` });
  hook("SubagentStop", "log", "g9", { agent_type: "T9", last_assistant_message: "**Found** it: " + "x".repeat(100) });
  await goTo("#/claude/log");
  await seen(async () => (await page.locator(".agentlog .agent").count()) === 8, "the Agent Log shows the 8 newest");
  const card = page.locator('.agentlog [data-agent="g9"]');
  await soon(async () => /Found/.test(await card.innerText()), "its message");
  const line = await card.locator("small").last().evaluate((e) => e.textContent);
  ok([...line].length === 61 && line.endsWith("…") && line.startsWith("Found it"), "60 characters of what was said, without its marks, and an ellipsis", line);
  await card.click();
  ok((await page.locator("dialog .markdown strong").innerText()) === "Found" && /g9/.test(await text("dialog")), "a card opens with the whole message, as Markdown");
  await page.keyboard.press("Escape");
  await page.locator(".agentlog > button").click();
  ok((await page.evaluate(() => localStorage.getItem("agentFooterCollapsed"))) === "true" && (await page.locator(".agentlog .agent").count()) === 0, "it is folded, under its name in the storage");
  await page.reload();
  await page.waitForSelector(".agentlog");
  ok((await page.locator(".agentlog .agent").count()) === 0, "and stays so");
  await page.locator(".agentlog > button").click();
  hook("SubagentStart", "log", "deep1", { agent_type: "Plan" });
  const meta = path.join(process.env.CLAUDE_CONFIG_DIR, "agent-activity/log");
  const child = JSON.parse(readFileSync(path.join(meta, "deep1.json")));
  hook("SubagentStart", "log", "deep2", { agent_type: "Code" });
  writeFileSync(path.join(meta, "deep2.json"), JSON.stringify({ ...child, agentId: "deep2", type: "Code", parentAgentId: "deep1", depth: 2 }));
  await seen(async () => (await page.locator('.tree li li [data-agent="deep2"]').count()) === 1, "agents stand in the tree in which they were spawned");
}

// Cards as somebody else's hook writes them; `at` is seconds from now.
function card(session, agentId, at, more = {}) {
  const folder = path.join(process.env.CLAUDE_CONFIG_DIR, "agent-activity", session), iso = (s) => new Date(Date.now() + s * 1000).toISOString();
  mkdirSync(folder, { recursive: true });
  const { stopped, ...rest } = more;
  writeFileSync(path.join(folder, `.${agentId}`), JSON.stringify({ agentId, type: "worker", status: stopped == null ? "active" : "stopped", startedAt: iso(at), updatedAt: iso(stopped ?? at), ...(stopped == null ? {} : { stoppedAt: iso(stopped) }), ...rest }));
  renameSync(path.join(folder, `.${agentId}`), path.join(folder, `${agentId}.json`));
}
async function ghosts() {
  await goTo("#/claude/ghosts");
  const shown = async () => (await page.locator(".agentlog .agent").evaluateAll((all) => all.map((e) => e.dataset.agent))).sort().join();
  card("ghosts", "worker", -90, { stopped: -80 });
  card("ghosts", "recap", -70, { stopped: -69 }); // 10 s after it
  card("ghosts", "approval", -60); // 9 s after the recap, and never stopped
  card("ghosts", "beside", -40, { stopped: -35 }); // overlaps what never stopped
  card("ghosts", "again", -4); // 31 s after that
  card("ghosts", "other", -66, { type: "reviewer" });
  await seen(async () => (await shown()) === "again,beside,other,worker", "ghosts of a shutdown are not shown, what overlaps and what comes later is");
  const counted = page.locator('aside a[href$="claude/ghosts"] small');
  await seen(async () => /2 active/.test(await counted.innerText()), "nor counted at the side");
  card("ghosts", "waits", -3, { status: "idle", type: "tester" });
  const idle = page.locator('.agentlog [data-agent="waits"] .dot');
  await idle.waitFor();
  const [red, green, blue] = (await idle.evaluate((e) => getComputedStyle(e).backgroundColor)).match(/\d+/g).map(Number);
  ok(red > 200 && green > 150 && blue < 80, "one that waits has a yellow dot", [red, green, blue]);
  card("ghosts", "long", -400, { stopped: -390, type: "early" });
  await seen(async () => (await page.locator('.agentlog .cold').evaluateAll((all) => all.map((e) => e.dataset.agent))).join() === "long", "one that stopped longer than the cooldown ago is pale, and no other");
  // Nobody saw it stop: it was seen 310 s ago, and the next one began 10 s after that.
  card("lost", "first", -310);
  card("lost", "next", -300, { stopped: -290 });
  await goTo("#/claude/lost");
  await soon(async () => (await shown()) === "first,next", "both");
  ok(/quiet for 5m/.test(await page.locator('.agentlog [data-agent="first"]').innerText()), "how long one worked that nobody saw stop is not made up");
  await page.locator('.agentlog [data-agent="first"]').click();
  ok(/stopped, nobody knows why/.test(await text("dialog")), "one that nobody saw stop is said to be so, and makes no ghost of the next", await text("dialog"));
  await page.keyboard.press("Escape");
  card("stale", "dies", -293);
  await goTo("#/claude/stale");
  const dot = page.locator('.agentlog [data-agent="dies"] .dot');
  await dot.waitFor();
  const was = await dot.getAttribute("aria-label");
  await soon(async () => (await dot.getAttribute("aria-label")) === "stopped", "its end", 40000);
  ok(was === "active", "an agent that gives no more signs of life stops on a page that is open", was);
}

async function odd() {
  const tasks = path.join(process.env.CLAUDE_CONFIG_DIR, "tasks/odd");
  card("odd", "a", -5, { parentAgentId: "b" });
  card("odd", "b", -4, { parentAgentId: "a" });
  card("odd", "c", -3, { parentAgentId: "b", type: "leaf" });
  card("odd", "d", -2, { lastMessage: 5, usage: null, description: ["x"], type: "odd" });
  await goTo("#/claude/odd");
  await seen(async () => (await page.locator(".tree [data-agent]").count()) === 4 && (await page.locator('.tree li li [data-agent="c"]').count()) === 1, "agents that say to be below each other, or nothing that makes sense, are shown");
  mkdirSync(tasks, { recursive: true });
  for (const id of [10, 9, 2]) writeFileSync(path.join(tasks, `${id}.json`), JSON.stringify({ id: String(id), subject: `step ${id}`, status: "pending" }));
  writeFileSync(path.join(tasks, "11.json"), JSON.stringify({ id: 11, subject: {}, description: 7, owner: [], blockedBy: "x", status: "pending" }));
  const pending = page.getByRole("region", { name: "Pending, 4" });
  await pending.waitFor();
  const order = (await pending.locator("li").allInnerTexts()).map((t) => /#(\d+)/.exec(t)?.[1]).join();
  ok(order === "2,9,10,11", "its tasks appear as they come, in the order of their numbers", order);
  await goTo("#/run/%zz");
  ok(await soon(async () => /There is no run/.test(await text("main")), "the refusal"), "an address that is none is told");
  const alone = path.join(process.env.CLAUDE_CONFIG_DIR, "tasks/alone");
  mkdirSync(alone);
  writeFileSync(path.join(alone, "1.json"), '{"id":"1","subject":"the only one","status":"in_progress"}');
  writeFileSync(path.join(alone, "2.json"), '{"id":"2","sub');
  await seen(async () => (await page.locator('aside a[href$="claude/alone"]').count()) === 1, "a session that has tasks and no agents is at the side");
  await goTo("#/claude/alone");
  await seen(async () => /the only one/.test(await text("main")) && /2\.json\s+This file cannot be read: line 1/.test(await text("main")), "its board has both files, and says why one cannot be read");
  ok((await page.locator(".tree").count()) === 0, "and no empty list of agents");
  await goTo("#/");
  await seen(async () => (await page.locator(".agentlog .agent").count()) > 0, "the Agent Log stays with the newest session that has agents");
}

async function twoTabs() {
  await goTo("#/");
  const second = watch(await context.newPage());
  await second.addInitScript("{ const every = setInterval; window.setInterval = (f, ms) => every(f, ms === 240000 ? 300 : ms); }");
  await second.goto(page.url());
  await second.waitForSelector("header.top");
  ok(true, "a second tab is signed in by the first");
  const id = await spawnRun("seen twice", SLOW);
  await page.locator(`[data-run="${id}"]`).waitFor();
  await second.locator(`[data-run="${id}"]`).waitFor();
  ok(true, "what begins is on both");
  await twice(second.locator(`[data-run="${id}"]`), "Cancel");
  await page.getByRole("region", { name: /^Done/ }).locator(`[data-run="${id}"]`).waitFor();
  ok(true, "what one ends, the other one shows ended");
  const look = (hidden) => second.evaluate((h) => {
    Object.defineProperty(document, "hidden", { configurable: true, value: h });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  const streams = async () => Number(/^ava_event_streams (\d+)/m.exec((await call("GET", "/metrics")).text)[1]), were = await streams();
  await look(true);
  await soon(async () => (await streams()) === were - 1, "the end of its stream", 30000);
  await second.waitForResponse((r) => /api.v1.health/.test(r.url()) && r.ok());
  ok(true, "but it asks now and then, so that the daemon stays");
  const meanwhile = await spawnRun("not seen at once", script("meanwhile", submit("done")));
  await soon(() => JSON.parse(ava("status", meanwhile, "--json")).status === "success", "its end");
  await look(false);
  await second.getByRole("region", { name: /^Done/ }).locator(`[data-run="${meanwhile}"]`).waitFor();
  ok((await streams()) === were, "a tab that nobody looks at keeps no connection, and knows all when it is looked at");
  await second.close();
}

async function restarting() {
  const id = await spawnRun("outlives the daemon", script("outlive", { tool_calls: [{ name: "read_file", args: { path: "kettle.h" } }] }, { ...submit("still here"), delay_ms: 3000 }));
  await goTo(`#/run/${id}?tab=events`);
  await soon(async () => (await page.locator(".event").count()) > 3, "events");
  process.kill(Number(readFileSync(path.join(root, "ava.lock"), "utf8")), "SIGKILL");
  await seen(async () => (await text(".link")) !== "live", "a daemon that is gone is shown to be gone");
  // Another program at our address: what it is sent, and what a page of its own finds there.
  const sent = [];
  const squatter = createServer((q, a) => {
    let body = "";
    q.on("data", (d) => (body += d)).on("end", () => {
      sent.push({ path: q.url, authorization: q.headers.authorization, body });
      if (q.method === "GET") a.setHeader("Content-Type", "text/html").end("<title>theirs</title>");
      else a.setHeader("Content-Type", "application/json").end(JSON.stringify({ challenge: "0".repeat(32), proof: "0".repeat(64) }));
    });
  });
  const port = Number(new URL(page.url()).port);
  await new Promise((done) => squatter.listen(port, "127.0.0.1", done));
  await soon(() => sent.length > 2, "what the page sends to whoever answers");
  await page.getByRole("button", { name: "New task" }).click();
  await page.fill("dialog textarea", "for our eyes only");
  await page.click("dialog button.primary");
  await seen(async () => /Another program answers/.test(await text("body")), "who is asked for something says that another program answers");
  await page.keyboard.press("Escape");
  ok(sent.every((s) => s.path === "/api/v1/login" && !s.authorization && !/eyes only/.test(s.body)), "whoever has the port is sent a greeting and nothing else", JSON.stringify(sent));
  const theirs = watch(await context.newPage());
  await theirs.goto(page.url().split("#")[0]);
  const key = await theirs.evaluate(() => new Promise((done) => {
    const opening = indexedDB.open("ava", 1);
    opening.onsuccess = () => {
      const asking = opening.result.transaction("keys").objectStore("keys").get("browser");
      asking.onsuccess = async () => done({ extractable: asking.result.extractable, uses: asking.result.usages.join(), raw: await crypto.subtle.exportKey("raw", asking.result).then(() => "given", () => "kept") });
    };
  }));
  ok(key.extractable === false && key.uses === "sign" && key.raw === "kept", "a page of theirs cannot read the key that it finds", JSON.stringify(key));
  await theirs.close();
  squatter.closeAllConnections();
  await new Promise((done) => squatter.close(done));
  const daemon = spawn(AVAD, [], { stdio: ["ignore", "inherit", "inherit"], detached: true });
  appendFileSync(path.join(T, "pids"), `${daemon.pid}\n`);
  await soon(async () => (await text(".link")) === "live", "the return", 30000);
  await soon(() => JSON.parse(ava("status", id, "--json")).status === "success", "its end", 30000);
  const want = ava("logs", id, "-o", "json").trim().split("\n").length;
  await soon(async () => (await page.locator(".events").getAttribute("aria-label")) === `${want} events`, `all ${want} events`);
  ok(true, "and when it is back nothing is lost or there twice");
  await page.keyboard.press("1");
  await page.locator("main .markdown").getByText("still here").waitFor();
  ok(true, "the run went on");
  const late = watch(await context.newPage());
  await late.goto(page.url().split("#")[0]);
  await seen(async () => /Not signed in/.test(await late.locator("main").innerText()), "what the browser keeps for other tabs ended with the daemon");
  await late.close();
}

async function searching() {
  await page.keyboard.press("g");
  await page.keyboard.press("l");
  await page.locator("header.top .seal").getByText(/as it was sealed|nothing is sealed yet/).waitFor();
  ok(true, "whether the logs are as they were sealed stands above every view");
  await page.fill('input[type="search"]', "only the lid");
  await page.keyboard.press("Enter");
  await seen(async () => /Steering/.test(await text(".events")), "a search over all logs finds the event");
  await page.fill('input[aria-label="Since"]', "soonish");
  await page.keyboard.press("Enter");
  await seen(async () => (await page.getByRole("alert").count()) === 1, "a time that is none is told in the daemon's words");
  await page.keyboard.press("Escape");
  await page.locator("h1").first().click();
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await soon(async () => /p99/.test(await text("main")) && (await page.locator(".chart canvas").count()) === 2, "the charts");
  ok(/read_file/.test(await text("main")), "costs and health have charts and tables");
  await page.keyboard.press("?");
  ok(/new task/.test(await text("dialog")), "? lists the keys");
  await page.keyboard.press("Escape");
}

async function everybody() {
  const done = JSON.parse(ava("ps", "-a", "--json")).find((r) => r.status === "success").subagent_id;
  const places = { board: "#/", run: `#/run/${done}`, trace: `#/run/${done}?tab=trace`, timeline: `#/run/${done}?tab=time`, events: `#/run/${done}?tab=events`, logs: "#/logs", costs: "#/costs", memory: "#/memory", hostile: `#/run/${attacked}`, patch: `#/run/${patched}?tab=patch`, claude: "#/claude/log", talk: `#/session/${(await call("GET", "/api/v1/sessions")).body.sessions.find((s) => s.title === "make tea")?.session_id}` };
  for (const theme of ["light", "dark"]) {
    await page.evaluate((t) => (document.documentElement.dataset.theme = t), theme);
    for (const [name, hash] of Object.entries(places)) {
      await goTo(hash);
      await page.waitForTimeout(400);
      await page.evaluate(axe);
      const found = await page.evaluate(async () => (await window.axe.run({ resultTypes: ["violations"] })).violations.map((v) => `${v.id}: ${v.help}\n  ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 200)} ${n.failureSummary ?? ""}`).join("\n  ")}`));
      ok(found.length === 0, `axe finds nothing on ${name}, ${theme}`, found.join("\n"));
      await shot(`${name}-${theme}`);
    }
  }
  for (const width of [360, 390, 768, 1280, 1920, 2560]) {
    await page.setViewportSize({ width, height: 900 });
    for (const [name, hash] of Object.entries(places)) {
      await goTo(hash);
      await page.waitForTimeout(150);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) ok(false, `${name} fits ${width} pixels`, `${over} too many`);
      await shot(`width-${width}-${name}`);
    }
    ok(true, `the page fits ${width} pixels`);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
}

// A worker that a page of theirs left may take an open tab over at any time, also when the daemon is back.
async function workers() {
  const old = await browser.newContext();
  const tab = watch(await old.newPage());
  const url = ava("dashboard", "--no-open").trim();
  const port = Number(new URL(url).port);
  await tab.goto(url);
  await tab.waitForSelector("header.top");
  process.kill(Number(readFileSync(path.join(root, "ava.lock"), "utf8")), "SIGKILL");
  const squatter = createServer((q, a) => {
    if (q.url === "/w.js") a.setHeader("Content-Type", "text/javascript").end("addEventListener(\"install\", () => skipWaiting()); addEventListener(\"fetch\", () => {}); addEventListener(\"message\", (e) => e.waitUntil(clients.claim().then(() => e.source.postMessage(1))));");
    else a.setHeader("Content-Type", "text/html").end("<title>theirs</title>");
  });
  await soon(() => new Promise((done, fail) => squatter.once("error", fail).listen(port, "127.0.0.1", () => done(true))), "the port");
  const theirs = watch(await old.newPage());
  await theirs.goto(new URL(url).origin);
  await theirs.evaluate(async () => (await navigator.serviceWorker.register("/w.js"), await navigator.serviceWorker.ready));
  squatter.closeAllConnections();
  await new Promise((done) => squatter.close(done));
  const daemon = spawn(AVAD, [], { stdio: ["ignore", "inherit", "inherit"], detached: true });
  appendFileSync(path.join(T, "pids"), `${daemon.pid}\n`);
  await soon(async () => (await tab.locator(".link").innerText()) === "live", "the return", 30000);
  await theirs.evaluate(() => new Promise(async (done) => {
    navigator.serviceWorker.onmessage = done;
    (await navigator.serviceWorker.ready).active.postMessage(0);
  }));
  await tab.getByRole("button", { name: "New task" }).click();
  await tab.fill("dialog textarea", "for our eyes only");
  await tab.click("dialog button.primary");
  await seen(async () => /has left a worker/.test(await tab.locator("body").innerText()), "a tab that was taken over by a worker asks for nothing");
  await old.close();
}

async function signingOut() {
  await goTo("#/");
  await twice(page, "Sign out every browser");
  await seen(async () => /Not signed in/.test(await text("main")), "signed out is signed out");
}

const typing = typingParts({ page, context, watch, ok, soon, seen, ava, call, spawnRun, script, submit, SLOW, src, goTo, shot, twice });
const parts = { signingIn, ...typing, proposing, allThree, custom, asking, claims, changes, remembering, parking, withoutResult, thinking, looking, long, hostile, agentLog, ghosts, odd, twoTabs, restarting, searching, everybody, signingOut, workers };
const only = process.env.PARTS?.split(" "); // some of it, while one works on it
for (const [name, part] of Object.entries(parts)) {
  if (only && !only.includes(name)) continue;
  try {
    await part();
  } catch (e) {
    ok(false, name, e.stack);
    await shot(`failed-${name}`);
    if (name === "signingIn") break;
  }
}
ok(troubles.length === 0, "nothing went wrong in the browser", troubles.join("\n"));
await browser.close();
spy.close();
console.log(`1..${count}`);
process.exit(failed ? 1 : 0);
