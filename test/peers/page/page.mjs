// The page in a real browser, against a real daemon; run by test_page.sh. Prints `ok N - name` lines.
import { execFile, execFileSync, spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { promisify } from "node:util";
import { changesParts } from "./changes.mjs";
import { chatParts } from "./chat.mjs";
import { claudeParts } from "./claude.mjs";
import { compareParts } from "./compare.mjs";
import { inboxParts } from "./inbox.mjs";
import { picturesParts } from "./pictures.mjs";
import { restParts } from "./rest.mjs";
import { runParts } from "./run.mjs";
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
// A request whose route went while it was being answered needs no answer.
process.on("unhandledRejection", (e) => /Route is already handled/.test(e.message) || ok(false, "nothing fails unseen", e.stack));
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

// The server that a page which was talked into something would ask.
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
// Acts that end or erase are asked about once more.
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
  await page.waitForSelector("nav");
  await soon(async () => (await text(".link")) === "Live", "the stream");
  ok(true, `an address that is opened in a tab of the page signs it in (${Date.now() - began} ms)`);
  ok(!page.url().includes("code"), "and the code is out of the address", page.url());
  ok(/No runs yet/.test(await text("main")), "without runs it says what to do");
  await page.reload();
  await soon(async () => (await text(".link")) === "Live", "the stream");
  ok(true, "a reload stays signed in");
  const other = await browser.newContext();
  const thief = watch(await other.newPage());
  await thief.goto(url);
  ok(/used already/.test(await soon(() => thief.locator("main").innerText(), "refusal")), "the same address signs nobody in again");
  await other.close();
}

async function twoTabs() {
  await goTo("#/");
  const second = watch(await context.newPage());
  await second.addInitScript("{ const every = setInterval; window.setInterval = (f, ms) => every(f, ms === 240000 ? 300 : ms); }");
  await second.goto(page.url());
  await second.waitForSelector("nav");
  ok(true, "a second tab is signed in by the first");
  const id = await spawnRun("seen twice", SLOW), ended = (tab) => tab.getByRole("region", { name: /^Recently/ });
  await page.locator(`[data-run="${id}"]`).waitFor();
  await second.locator(`[data-run="${id}"]`).waitFor();
  ok(true, "what begins is on both");
  await second.locator(`[data-run="${id}"]`).getByRole("button", { name: "Cancel" }).click();
  await ended(page).locator(`[data-run="${id}"]`).waitFor();
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
  await ended(second).locator(`[data-run="${meanwhile}"]`).waitFor();
  ok((await streams()) === were, "a tab that nobody looks at keeps no connection, and knows all when it is looked at");
  await second.close();
}

async function restarting() {
  const id = await spawnRun("outlives the daemon", script("outlive", { tool_calls: [{ name: "read_file", args: { path: "kettle.h" } }] }, { ...submit("still here"), delay_ms: 3000 }));
  await goTo(`#/run/${id}/log`);
  await soon(async () => (await page.locator(".event").count()) > 3, "events");
  await soon(async () => (await text(".link")) === "Live", "the stream");
  process.kill(Number(readFileSync(path.join(root, "ava.lock"), "utf8")), "SIGKILL");
  await seen(async () => /^No daemon/.test(await text(".link")), "a daemon that is gone is shown to be gone"); // and what was under way has failed
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
  await page.locator(".rail .new").click();
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
  await soon(async () => (await text(".link")) === "Live", "the return", 30000);
  await soon(() => JSON.parse(ava("status", id, "--json")).status === "success", "its end", 30000);
  const want = ava("logs", id, "-o", "json").trim().split("\n").length;
  await soon(async () => (await page.locator(".events").getAttribute("aria-label")) === `${want} events`, `all ${want} events`);
  ok(true, "and when it is back nothing is lost or there twice");
  await page.keyboard.press("2");
  await page.locator("main .markdown").getByText("still here").waitFor();
  ok(true, "the run went on");
  const late = watch(await context.newPage());
  await late.goto(page.url().split("#")[0]);
  await seen(async () => /Not signed in/.test(await late.locator("main").innerText()), "what the browser keeps for other tabs ended with the daemon");
  await late.close();
}

// Results of one part that others need: a run with a patch, and one whose result would like to be more than text.
const shared = { patched: "", attacked: "", places: {} };

async function everybody() {
  const done = JSON.parse(ava("ps", "-a", "--json")).find((r) => r.status === "success").subagent_id;
  const places = { inbox: "#/", runs: "#/runs", board: "#/runs?as=board", settings: "#/settings", run: `#/run/${done}/result`, steps: `#/run/${done}/activity`, step: `#/run/${done}/turn/1?show=input`, log: `#/run/${done}/log`, logs: "#/logs", costs: "#/costs", memory: "#/memory", orders: "#/orders", hostile: `#/run/${shared.attacked}`, patch: `#/run/${shared.patched}/changes`, claude: "#/claude/log", talk: `#/chat/${(await call("GET", "/api/v1/sessions")).body.sessions.find((s) => s.title === "make tea")?.session_id}` };
  for (const theme of ["light", "dark"]) {
    await page.evaluate((t) => (document.documentElement.dataset.theme = t), theme);
    for (const [name, hash] of Object.entries({ ...places, ...shared.places })) {
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
    for (const [name, hash] of Object.entries({ ...places, ...shared.places })) {
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
  await tab.waitForSelector("nav");
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
  await soon(async () => (await tab.locator(".link").innerText()) === "Live", "the return", 30000);
  await theirs.evaluate(() => new Promise(async (done) => {
    navigator.serviceWorker.onmessage = done;
    (await navigator.serviceWorker.ready).active.postMessage(0);
  }));
  await tab.locator(".rail .new").click();
  await tab.fill("dialog textarea", "for our eyes only");
  await tab.click("dialog button.primary");
  await seen(async () => /has left a worker/.test(await tab.locator("body").innerText()), "a tab that was taken over by a worker asks for nothing");
  await old.close();
}

async function signingOut() {
  await goTo("#/settings");
  await twice(page, "Sign out every browser");
  await seen(async () => /Not signed in/.test(await text("main")), "signed out is signed out");
}

const tools = { axe, page, context, browser, watch, ok, soon, seen, ava, call, run, spawnRun, script, submit, SLOW, src, root, T, goTo, text, shot, twice, hook, elsewhere, fetched, troubles, shared };
const { costing, ...others } = restParts(tools); // costs first: of more than 40 models the rest is one
const parts = {
  signingIn, ...picturesParts(tools), costing, ...typingParts(tools), ...inboxParts(tools), ...changesParts(tools), ...compareParts(tools), ...runParts(tools), ...chatParts(tools), ...claudeParts(tools), ...others, twoTabs, restarting, everybody, signingOut, workers,
};
const only = process.env.PARTS?.split(" "); // the parts to run, while one works on them
// Nothing of a part waits or is at work in the next one.
async function clean() {
  await page.setViewportSize({ width: 1440, height: 900 });
  for (const a of (await call("GET", "/api/v1/asks")).body.asks) if (a.kind === "quote") await call("POST", `/api/v1/asks/${a.id}`, { choice: "no", hash: a.hash });
  await call("POST", "/api/v1/runs/cancel", { all: true });
}
for (const [name, part] of Object.entries(parts)) {
  if (only && !only.includes(name)) continue;
  try {
    await part();
  } catch (e) {
    ok(false, name, e.stack);
    await shot(`failed-${name}`);
    if (name === "signingIn") break;
  }
  await clean().catch(() => {}); // where there is a daemon
}
ok(troubles.length === 0, "nothing went wrong in the browser", troubles.join("\n"));
await browser.close();
spy.close();
console.log(`1..${count}`);
process.exit(failed ? 1 : 0);
