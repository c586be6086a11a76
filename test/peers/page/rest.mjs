// Memory, logs, costs, settings and the palette. Parts of page.mjs, which hands in what they need.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";

export function restParts({ axe, page, ok, soon, seen, ava, call, text, shot, goTo, spawnRun, script, submit }) {
  const address = () => page.evaluate(() => location.hash);
  const focusIn = (selector) => page.evaluate((s) => !!document.activeElement.closest(s), selector);

  async function remembering() {
    await page.keyboard.press("g");
    await page.keyboard.press("m");
    await page.getByText("Nothing remembered yet").waitFor();
    await page.click('input[aria-label="Something to remember"]');
    await page.keyboard.type("I drink green tea");
    await page.keyboard.press("Enter");
    const row = page.locator("[data-memory]");
    await row.waitFor();
    ok(ava("memory", "list", "--json").includes("I drink green tea"), "what is written on the page is remembered");
    await row.getByRole("button", { name: "Edit" }).click();
    await page.keyboard.press("Control+a");
    await page.keyboard.type("I drink black tea");
    await page.keyboard.press("Enter");
    await row.getByText("I drink black tea").waitFor();
    await row.getByRole("button", { name: "Pin" }).click();
    await row.getByText("read at the start of each conversation").waitFor();
    ok(/black tea/.test(ava("memory", "list", "--json")), "it can be changed and pinned");
    ava("memory", "add", "I live near the sea");
    await page.getByText("I live near the sea").waitFor();
    ok(true, "what is remembered elsewhere appears");
    await row.first().click();
    await page.keyboard.press("/");
    await page.keyboard.type("sea");
    await seen(async () => (await row.count()) === 1 && /the sea/.test(await row.innerText()), "a search finds it");
    ok((await address()) === "#/memory?q=sea", "and stands in the address", await address());
    await shot("memory");
    await row.getByRole("button", { name: "Erase" }).click();
    ok(ava("memory", "list", "--json").includes("sea"), "erasing is asked twice");
    await row.getByRole("button", { name: "Erase for good" }).click();
    await page.getByText("No memory has these words").waitFor();
    ok(!ava("memory", "list", "--json").includes("sea") && ava("memory", "list", "--json").includes("black tea"), "and what is erased is gone, and only that");
  }

  async function searching() {
    const verifies = [];
    page.on("request", (r) => /api.v1.verify/.test(r.url()) && verifies.push(r.url()));
    await goTo("#/logs");
    await page.reload();
    const seals = page.getByRole("region", { name: "Seals" });
    await seals.getByText("Not checked").waitFor();
    await page.waitForTimeout(3500);
    ok(verifies.length === 0, "logs are not verified before somebody asks");
    await seals.getByRole("button", { name: "Check" }).click();
    await seals.getByText(/Log intact|Nothing sealed yet/).waitFor();
    ok(verifies.length === 1, "then it is said whether they are intact");
    const id = await spawnRun("lifts the lid", script("lid", submit("only the lid was lifted")));
    await soon(() => JSON.parse(ava("status", id, "--json")).status === "success", "its end");
    await page.click('input[type="search"]');
    await page.keyboard.type("only the lid was");
    await page.keyboard.press("Enter");
    await seen(async () => /SubagentComplete/.test(await text(".events")), "a search over all logs finds the event");
    ok(/search=only/.test(await address()), "the search stands in the address", await address());
    await page.getByLabel("Type").selectOption("SubagentComplete");
    await seen(async () => /type=SubagentComplete/.test(await address()) && (await page.locator(".event").count()) === 1, "a type alone is chosen at once");
    await page.click('input[aria-label="Since"]');
    await page.keyboard.type("soonish");
    await page.keyboard.press("Enter");
    await seen(async () => /is no time/.test(await page.getByRole("alert").innerText()), "a time that is none is told in the daemon's words");
    await goTo("#/logs");
    await seen(async () => (await page.getByRole("alert").count()) === 0 && (await page.locator('input[aria-label="Since"]').inputValue()) === "", "the address says what the form says");
  }

  async function costing() {
    const read = (name, input = 4000) => script(name, { tool_calls: [{ name: "read_file", args: { path: "kettle.h" } }], usage: { input, output: 90 } }, submit("seen"));
    const dear = await spawnRun("costs something", read("dear", 9000000), "--max-tokens", "90000000"); // more than any other part
    await soon(() => JSON.parse(ava("status", dear, "--json")).status === "success", "its end");
    await goTo("#/logs");
    await page.locator("h1").first().click();
    await page.keyboard.press("g");
    await page.keyboard.press("c");
    const by = (name) => page.getByRole("group", { name, exact: true });
    await by("Time").getByRole("button", { name: "1h" }).click();
    await by("What").getByRole("button", { name: "tokens" }).click();
    await seen(async () => (await address()) === "#/costs?since=1h&what=tokens" && /dear\.jsonl/.test(await text(".legend")), "costs by model, without the paths of scripts, by an address");
    const bars = page.locator(".bars svg a");
    ok((await bars.count()) >= 24 && (await page.locator(".bars svg rect:not(.ground)").count()) > 0, "a bar for each part of the time");
    const before = await page.locator(".bars figcaption").innerText();
    await page.locator(".bars svg a[tabindex='0']").focus();
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowLeft");
    ok((await bars.evaluateAll((all) => all.indexOf(document.activeElement))) === (await bars.count()) - 2, "arrow keys go from bar to bar");
    ok((await bars.evaluateAll((all) => all.filter((a) => a.tabIndex === 0).length)) === 1, "which are one stop of Tab");
    const said = await page.locator(".bars figcaption").innerText();
    ok(said !== before && /^\d\d:\d\d: /.test(said), "what a bar stands for is said, by a clock of 24 hours", said);
    const head = page.getByRole("columnheader", { name: /^Tokens/ }).first();
    if ((await head.getAttribute("aria-sort")) !== "descending") ok(false, "what is drawn is what the table is sorted by");
    const figures = async () => (await page.locator("table", { has: page.getByRole("columnheader", { name: "Model" }) }).last().locator("tbody tr").evaluateAll((rows) => rows.map((r) => r.cells[4].innerText))).map((t) => parseFloat(t) * (/k/.test(t) ? 1000 : /M/.test(t) ? 1e6 : 1));
    const down = await figures();
    ok((await head.getAttribute("aria-sort")) === "descending" && down.every((n, i) => !i || n <= down[i - 1]), "a table is sorted by the head of a column", down.join());
    await head.getByRole("button").focus();
    await page.keyboard.press("Enter");
    const up = await figures();
    ok((await head.getAttribute("aria-sort")) === "ascending" && up.every((n, i) => !i || n >= up[i - 1]), "and the other way round, by the keyboard", up.join());
    await by("By").getByRole("button", { name: "role" }).click();
    await page.getByRole("link", { name: "CodeReviewer", exact: true }).waitFor();
    ok(/role=code_reviewer/.test(await page.getByRole("link", { name: "CodeReviewer", exact: true }).getAttribute("href")), "a row leads to its runs");
    const ended = async () => parseInt(await page.locator(".figure", { hasText: "Runs ended" }).locator("strong").innerText(), 10), were = await ended();
    await soon(() => JSON.parse(ava("status", dear, "--json")).status === "success", "its end");
    await spawnRun("costs more", read("more"));
    await seen(async () => (await ended()) > were, "the figures follow what ends");
    await page.locator(".bars svg a", { has: page.locator("rect:not(.ground)") }).last().focus();
    await page.keyboard.press("Enter");
    await seen(async () => /^#\/runs\?since=.*&until=/.test(await address()), "Enter on a bar shows the runs of its time");
    await page.goBack();
    await page.locator(".bars").waitFor();
    ok(/read_file/.test(await text("main")) && /p90/.test(await text("main")), "tools have their times and failures");
    await page.getByLabel("Compare with the time before").check();
    await seen(async () => /the time before/.test(await text(".figures")), "the time before is beside it");
    // Answers as they are where a day has a budget and models cost something.
    const change = (of) => async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: of(await answer.json()) });
    };
    await page.route("**/api/v1/health", change((h) => ({ ...h, today: { ...h.today, cost_cents: 1000, budget_cents: 1001, budget_used_cents: 1000 } })));
    await page.route("**/api/v1/stats?*", change((s) => ({ ...s, rows: s.rows.map((r) => ({ ...r, cost_parts: r.cost_parts.map((_, i) => i + 1) })) })));
    await page.goto(page.url().replace(/#.*/, "#/costs?since=24h&by=role"));
    await page.reload();
    await seen(async () => /\$10\.00 of \$10/.test(await text(".figures")) && /at this pace used up at \d\d:\d\d|lasts the day/.test(await text(".figures")), "of a day's budget it is said when it is used up");
    ok((await page.locator(".figures meter").count()) === 1, "with a meter");
    await page.locator(".bars rect.c0").first().waitFor();
    const high = await page.locator(".bars rect.c0").evaluateAll((all) => all.map((r) => r.getBoundingClientRect().height));
    ok(high.length === 24 && high.every((h, i) => !i || h > high[i - 1]), "bars are as high as what they cost", high.join());
    ok((await page.locator(".bars line.limit").count()) === 1, "with the line of the budget");
    const [other] = await Promise.all([page.context().waitForEvent("page"), page.locator(".bars rect.c0").nth(20).click({ modifiers: ["Control"] })]);
    await seen(() => /#\/costs/.test(page.url()) && /&role=/.test(other.url()), "Ctrl and a click open them in a tab of their own");
    await other.close();
    await page.locator(".bars rect.c0").nth(20).click();
    await seen(async () => /^#\/runs\?since=.*&until=.*&role=/.test(await address()), "a part of a bar shows its runs alone");
    await page.unroute("**/api/v1/health");
    await page.unroute("**/api/v1/stats?*");
    await page.goBack();
    await page.reload();
    await page.locator(".bars").waitFor();
    await page.keyboard.press("?");
    ok(/new task/.test(await text("dialog")), "? lists the keys");
    await page.keyboard.press("Escape");
  }

  // Days of a place that has 25 hours in one of them; words of the address that are words of JavaScript.
  async function clocks() {
    const tab = await page.context().newPage(), tools = await page.context().newCDPSession(tab);
    await tools.send("Emulation.setTimezoneOverride", { timezoneId: "Europe/Berlin" });
    await tab.addInitScript("{ const D = Date, late = D.parse('2026-11-10T12:00:00Z') - D.now(); window.Date = class extends D { constructor(...t) { t.length ? super(...t) : super(D.now() + late); } static now() { return D.now() + late; } }; }");
    await tab.goto(`${page.url().split("#")[0]}#/costs?since=30d`);
    const bars = tab.locator(".bars svg a"), starts = async () => (await bars.evaluateAll((all) => all.map((a) => a.getAttribute("href")))).map((to) => new URLSearchParams(to.split("?")[1]).get("since"));
    await tab.route("**/api/v1/stats?*", async (r) => r.fulfill({ json: await (async (s) => ({ ...s, rows: [{ name: "m", runs: 1, uncosted: 0, output: 0, calls: 1, failed: 0, cost_cents: 30, tokens: 30, input: 1, cached: 0, cost_parts: Array(30).fill(1), token_parts: Array(30).fill(1) }] }))(await (await r.fetch()).json()) }));
    await tab.reload();
    await bars.first().waitFor();
    const all = await starts();
    ok(all.length === 30 && all[0] === "2026-10-11T22:00:00.000Z" && all[29] === "2026-11-09T23:00:00.000Z" && /^Oct 12: /.test(await bars.first().getAttribute("aria-label")), "a bar is a day from midnight to midnight, also where a day has 25 hours", all.join());
    await tab.goto(`${page.url().split("#")[0]}#/costs?since=constructor&by=toString`);
    await seen(async () => (await tab.getByRole("button", { name: "7d" }).getAttribute("aria-pressed")) === "true", "a span that is none is a week");
    await tab.close();
  }

  async function settling() {
    await goTo("#/settings");
    await page.getByLabel("Density").selectOption("compact");
    await page.getByLabel("Theme").selectOption("dark");
    await page.reload();
    await page.getByLabel("Density").waitFor();
    ok(await page.evaluate(() => document.documentElement.dataset.density === "compact" && document.documentElement.dataset.theme === "dark"), "theme and density are kept by the browser");
    await seen(async () => /ava telegram pair/.test(await text("main")), "settings say how a messenger is set up");
    await page.getByLabel("Density").selectOption("");
    await page.getByLabel("Theme").selectOption("");
    ok(await page.evaluate(() => !document.documentElement.dataset.density && !document.documentElement.dataset.theme), "and go back to what the system has");
    await page.getByRole("button", { name: "Sign out every browser" }).click();
    ok(!/Not signed in/.test(await text("main")), "signing out is asked twice");
  }

  async function commanding() {
    await goTo("#/costs");
    await page.locator(".figures").waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("mmry");
    const chosen = page.locator('dialog [role="option"][aria-selected="true"]');
    await seen(async () => /^Memory/i.test(await chosen.innerText()), "the palette finds a place by letters of its name, typed at once");
    await page.evaluate(axe);
    const found = await page.evaluate(async () => (await window.axe.run({ resultTypes: ["violations"] })).violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)}`));
    ok(found.length === 0, "axe finds nothing on the palette", found.join("\n"));
    await page.keyboard.press("Enter");
    await seen(async () => (await address()) === "#/memory", "and goes there");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("costs something");
    await page.getByRole("group", { name: "Runs" }).getByRole("option").first().click();
    await seen(async () => /^#\/run\/S-/.test(await address()), "a run is found by words of its task, and opened by the mouse");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("new task");
    await page.keyboard.press("Enter");
    await seen(async () => focusIn("dialog form"), "a command is done, and what it opens has the keyboard");
    await page.keyboard.press("Escape");
  }
  // A standing order: shown, paused, let go on, run now, looked at with its runs, and removed.
  async function ordering() {
    await page.keyboard.press("g");
    await page.keyboard.press("o");
    await page.getByText("No standing orders yet").waitFor();
    const add = (when, task, ...more) => ava("schedule", "add", when, task, "--no-files", "--model", script("ordered", submit("looked")), "--yes", ...more);
    add("Mon..Fri 08:00 Europe/Berlin", "look at the kettle", "--day-cents", "200", "--count", "9");
    add("@trigger", "say what came");
    await page.reload();
    const cards = page.locator(".order"), first = cards.first();
    const list = () => JSON.parse(ava("schedule", "--json")), id = list()[0].order_id;
    await first.waitFor();
    ok((await cards.count()) === 2 && /Next .*Monday to Friday at 08:00, Europe\/Berlin/.test(await first.innerText()), "orders are listed, with what is due next", await first.innerText());
    ok(/\$0\.00 of \$2\.00 today · \$0\.00 this month · 0 of 9 runs/.test(await first.innerText()), "and with what they spend", await first.innerText());
    ok(/only when a trigger says so/.test(await cards.nth(1).innerText()), "one without times says so");
    await first.focus();
    await page.keyboard.press("p");
    await seen(async () => list()[0].state === "paused" && /paused/.test(await first.innerText()) && !/Next/.test(await first.innerText()), "p pauses the one that has the focus");
    await seen(async () => (await first.evaluate((c) => c.contains(document.activeElement))), "which keeps it");
    await first.getByRole("button", { name: "Go on" }).click();
    await seen(async () => list()[0].state === "active" && /Next/.test(await first.innerText()), "and it goes on");
    await first.focus();
    await page.keyboard.press("r");
    ok(/Press again/.test(await first.getByRole("button", { name: /Press again/ }).innerText()), "a run is started by a key that is pressed twice");
    await page.keyboard.press("r");
    const run = await soon(() => list()[0].run, "its run");
    await seen(async () => (await address()).startsWith(`#/run/${run}`), "and is shown");
    await soon(() => JSON.parse(ava("status", run, "--json")).status === "success", "its end");
    await goTo(`#/orders/${id}`);
    await page.locator(`[data-run="${run}"]`).getByText("complete").waitFor();
    const facts = await page.locator("dl.facts").innerText();
    ok(/Overlap/.test(facts) && /after 9 runs/.test(facts) && /1 of 9 runs/.test(facts), "an order has an address, with what was confirmed and its runs", facts);
    ok(!/Triggers/.test(facts), "of triggers there is no word where there are none");
    await shot("order");
    const few = list()[1].order_id;
    await goTo(`#/orders/${few}`);
    await seen(async () => page.getByText(`ava trigger add NAME ${few}`).isVisible(), "an order without times says how it gets a trigger");
    ava("trigger", "add", "push", few, "--signed", "github");
    await page.reload();
    await seen(async () => /push \(signed: github\)/.test(await page.locator("dl.facts").innerText()), "and then has it");
    await goTo(`#/orders/${id}`);
    await page.getByRole("button", { name: "Remove" }).click();
    ok(list().length === 2, "removing is asked twice");
    await page.getByRole("button", { name: "Remove for good" }).click();
    await seen(async () => (await address()) === "#/orders" && list().length === 1 && (await cards.count()) === 1, "and what is removed is gone from the list");
    ok(JSON.parse(ava("status", run, "--json")).status === "success", "its run stays");
    const asked = (await call("POST", "/api/v1/orders", { task: "look at the lid", order: { when: "every 2h" } })).body.proposal_id;
    await goTo("#/");
    const quote = page.locator(`[data-ask="${asked}"]`);
    await quote.waitFor();
    ok(/Standing order[\s\S]*every 2 hours/.test(await quote.innerText()), "the quote of an order stands in the inbox, whole", await quote.innerText());
    await quote.getByRole("button", { name: "Yes", exact: true }).click();
    await seen(async () => list().some((o) => o.task === "look at the lid"), "and is answered as any quote");
    // A role that changed makes its order ask; when nobody said yes to that, the order is quoted anew.
    const agents = path.join(process.env.XDG_CONFIG_HOME, "ava", "agents"), role = (words) => writeFileSync(path.join(agents, "lid.md"), `---\nname: lid\ndescription: looks\n---\n${words}\n`);
    mkdirSync(agents, { recursive: true });
    role("Look.");
    add("@weekly", "look again", "--role", "lid");
    const odd = list().find((o) => o.task === "look again").order_id, its = () => list().find((o) => o.order_id === odd).ask;
    role("Look twice.");
    await call("POST", `/api/v1/orders/${odd}/run`, {});
    ava("reject", await soon(its, "its quote"));
    await goTo(`#/orders/${odd}`);
    await page.getByRole("button", { name: "Ask again" }).click();
    await page.getByRole("button", { name: "Answer" }).click();
    await seen(async () => (await address()).includes(its()), "an order that asks, and whose quote is over, asks again");
    ava("schedule", "rm", odd);
    await goTo("#/orders/O-00000000");
    await page.getByText("There is no order O-00000000").waitFor();
    ok(true, "an order that is none says so");
    await goTo("#/orders");
    await shot("orders");
  }
  return { remembering, ordering, searching, costing, clocks, settling, commanding };
}
