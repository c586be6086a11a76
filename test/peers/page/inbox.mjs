// The inbox, what is answered in it, and the list of runs. Parts of page.mjs, which hands in what they need.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";

export function inboxParts({ page, context, browser, watch, ok, soon, seen, ava, call, run, spawnRun, script, submit, SLOW, src, goTo, text, shot }) {
  const type = (words) => page.keyboard.type(words, { delay: 5 });
  const hasFocus = (place) => place.evaluate((e) => e === document.activeElement);
  const region = (name) => page.getByRole("region", { name });
  const status = (id) => JSON.parse(ava("status", id, "--json")).status;
  const inView = (place) => place.evaluate((e) => {
    const r = e.getBoundingClientRect();
    return r.height > 0 && r.top >= 0 && r.bottom <= innerHeight;
  });

  async function proposing() {
    await page.keyboard.press("n");
    await type("look at the kettle");
    await page.selectOption("dialog select", "code_reviewer");
    await page.locator("dialog input.mono").click({ clickCount: 3 });
    await type(src);
    await page.getByLabel("Spending limit ($)").click();
    await type("0.80");
    await page.keyboard.press("Control+Enter");
    const card = page.locator(`.ask.card[data-card^="P-"]`);
    await card.waitFor();
    await soon(() => hasFocus(card), "the card to have the keyboard");
    const told = await card.innerText();
    ok(/#\/inbox\/P-/.test(page.url()) && (await inView(card)) && /look at the kettle/.test(told) && /read_file/.test(told) && /stops at 5 min, \$0\.80/.test(told), "a task from the page is a quote in the inbox, which has the keyboard, with all that a yes means", told);
    await shot("quote");
    await card.getByRole("button", { name: "Change" }).click();
    await type("max 90 cents");
    await page.keyboard.press("Enter");
    await soon(async () => (await card.innerText()).includes("$0.90"), "the new quote");
    ok(/instead of \$0\.80|changed/i.test(await card.innerText()), "a change in words is a new quote that says what changed", await card.innerText());
    await card.focus();
    await page.waitForTimeout(600); // longer than keys heed no card that the focus came to by itself
    await page.keyboard.press("y");
    await card.getByRole("button", { name: "Start it? y again" }).waitFor();
    await page.keyboard.press("y");
    const running = region(/^Running/).locator(".card");
    await running.waitFor();
    ok((await page.locator(`.ask.card[data-card^="P-"]`).count()) === 0, "yes, pressed twice, starts it by the keyboard");
    const id = await running.getAttribute("data-card");
    await running.getByRole("button", { name: "Message" }).click();
    await type("only the lid");
    await page.keyboard.press("Enter");
    await seen(() => ava("logs", id, "-o", "json").includes("only the lid"), "what is said to it reaches it");
    await running.getByRole("button", { name: "Cancel" }).click();
    const ended = region(/^Recently/).locator(`[data-run="${id}"]`);
    await ended.waitFor();
    ok(status(id) === "cancelled", "cancelled from the page is cancelled");
    await ended.getByRole("button", { name: "Resume" }).click();
    await card.waitFor();
    const first = await card.locator("xpath=..").getAttribute("data-ask");
    await soon(() => hasFocus(card), "the card to have the keyboard");
    ok(page.url().endsWith(`#/inbox/${first}`), "Resume leads to its quote", page.url());
    await card.getByRole("button", { name: "Yes", exact: true }).click();
    await running.waitFor();
    const { body } = await call("GET", `/api/v1/proposals/${first}`);
    ok(body.state === "confirmed" && body.subagent_id === (await running.getAttribute("data-card")), "and goes on when its quote is answered", JSON.stringify(body));
    await call("POST", "/api/v1/runs/cancel", { ids: [body.subagent_id] });
    await soon(async () => (await running.count()) === 0, "its end");

    await page.keyboard.press("n");
    await type("never mind");
    await page.locator("dialog button.primary").click();
    await card.waitFor();
    await card.getByRole("button", { name: "No", exact: true }).click();
    await soon(async () => (await card.count()) === 0, "the quote to go");
    ok(ava("proposals", "--json").trim() === "[]", "no is no");
  }

  // Several quotes are three lines each, with the rest behind a fold; what the address names is open.
  async function folding() {
    const made = [];
    for (const [i, task] of [`the lid ${"and all that hangs on it ".repeat(8)}to the END OF IT`, "the spout"].entries())
      made.push((await call("POST", "/api/v1/runs", { task, role: "code_reviewer", cwd: src, model: SLOW, max_cost_cents: 40 + i })).body.proposal_id);
    await goTo("#/runs");
    await goTo("#/");
    const [long, short] = made.map((id) => page.locator(`[data-ask="${id}"]`));
    await short.waitFor();
    await soon(async () => /up to \$/.test(await short.innerText()), "its facts");
    ok(/the spout\n.*\nCodeReviewer · .*min · up to \$/s.test(await short.innerText()) && (await short.boundingBox()).height < 140 && !/stops at/.test(await short.innerText()), "one of several quotes is its task, its facts and its choices", await short.innerText());
    await long.locator("summary").click();
    const words = long.locator(".ask-text");
    ok((await inView(words)) && /END OF IT/.test((await words.innerText()).replace(/\s+/g, " ")) && /stops at/.test(await words.innerText()), "its fold has all that is confirmed", await words.innerText());
    await goTo(`#/inbox/${made[1]}`);
    await soon(() => hasFocus(short.locator(".card")), "the card to have the keyboard");
    ok((await inView(short)) && /stops at/.test(await short.innerText()), "the one that the address names is open, in view, and has the keyboard");
    await goTo("#/");
    // A mouse that stands still while another card comes below it.
    await long.waitFor();
    const newest = () => page.locator("[data-ask]").first(), state = async (id) => (await call("GET", `/api/v1/proposals/${id}`)).body.state;
    const { x, y, width, height } = await newest().getByRole("button", { name: "Yes", exact: true }).boundingBox();
    await page.mouse.move(x + width / 2, y + height / 2);
    const third = (await call("POST", "/api/v1/runs", { task: "the handle", role: "code_reviewer", cwd: src, model: SLOW })).body.proposal_id;
    await soon(async () => (await newest().getAttribute("data-ask")) === third && (await newest().getByRole("button", { name: "Yes", exact: true }).count()) === 1, "the third above");
    await page.mouse.down();
    await page.mouse.up();
    ok((await state(third)) === "pending", "what comes newest stands above, and a click that was meant for the one below is none");
    await newest().getByRole("button", { name: "Yes", exact: true }).click({ position: { x: 9, y: 9 } });
    await soon(async () => (await state(third)) === "confirmed", "the start");
    await call("POST", "/api/v1/runs/cancel", { ids: [(await call("GET", `/api/v1/proposals/${third}`)).body.subagent_id] });
    for (const id of made) await call("POST", `/api/v1/proposals/${id}/reject`, {});
    await soon(async () => (await page.locator("[data-ask]").count()) === 0, "the quotes to go");
  }

  // Runs that failed for the same reason are one card.
  async function failing() {
    await goTo("#/");
    const none = script("none-at-all"), ids = [];
    for (let i = 0; i < 3; i++) ids.push(await spawnRun(`fails alike ${i}`, none).catch((e) => JSON.parse(e.stdout.trim().split("\n").at(-1)).subagent_id));
    const other = await spawnRun("says nothing", script("mute", { text: "So." }, { text: "So." }, { text: "So." }));
    const card = page.locator(".failure", { hasText: "3 runs failed alike" }), alone = page.locator(`.failure[data-card="${other}"]`);
    await card.waitFor();
    await alone.waitFor();
    const needs = Number(/\d+/.exec(await region(/^Needs you/).getAttribute("aria-label"))[0]);
    ok(/none-at-all.*the script has ended/s.test(await card.innerText()) && /Ended without a result.*Resume lets it go on/s.test(await alone.innerText()), "runs that failed alike are one card that says why, with what to do", await region(/^Needs you/).innerText());
    ok((await page.title()).startsWith(`(${needs}) `) && (await text(".rail .count.needs")) === String(needs) && (await region(/^Needs you/).locator(".card").count()) === needs, "and there is one number: of cards, in the rail and in the title", await page.title());
    await shot("failures");
    await card.getByRole("button", { name: "Show" }).click();
    ok((await card.locator("[data-run]").count()) === 3, "which opens");
    await card.getByRole("button", { name: "Retry all" }).click();
    await soon(async () => (await page.locator("[data-ask]").count()) === 3 && (await card.count()) === 0, "the quotes");
    ok(/fails alike/.test(await page.locator("[data-ask]").first().innerText()), "Retry all asks with a quote for each, in place of the card");
    for (const p of JSON.parse(ava("proposals", "--json"))) await call("POST", `/api/v1/proposals/${p.proposal_id}/reject`, {});
    await soon(async () => (await page.locator("[data-ask]").count()) === 0, "the quotes to go");
    await page.waitForTimeout(400); // a click on what has just moved is none
    await alone.getByRole("button", { name: "Dismiss" }).click();
    await soon(async () => (await alone.count()) === 0, "the card to go");
    await page.locator(".toast", { hasText: "Dismissed" }).last().getByRole("button", { name: "Undo" }).click();
    await seen(() => inView(alone), "a dismissal can be taken back");
    await page.waitForTimeout(400);
    await alone.getByRole("button", { name: "Dismiss" }).click();
    await soon(async () => (await alone.count()) === 0, "the card to go");
    await page.reload();
    await region(/^Recently/).locator(`[data-run="${other}"]`).waitFor();
    ok((await alone.count()) === 0 && (await card.count()) === 0, "what is dismissed stays so after a reload, among what has ended");
    await goTo("#/");
  }

  // The list of runs: what is filtered, sorted, selected and opened, by mouse and keys.
  async function listing() {
    await goTo("#/runs");
    await page.mouse.move(5, 5); // over the list it would hold new rows back
    const grid = page.getByRole("grid", { name: "Runs" }), row = (id) => grid.locator(`[data-run="${id}"]`), count = page.locator(".runs [role=status]");
    const order = ["first", "second", "third"];
    const group = (await call("POST", "/api/v1/groups", { confirmed: true, cwd: src, runs: order.map((i) => ({ task: `lid of the ${i} group`, role: "code_reviewer", model: script(`member-${i}`, submit(`lid ${i}`)) })) })).body.group_id;
    const one = grid.locator(`[data-group="${group}"]`);
    await one.waitFor();
    await soon(async () => /3 runs/.test(await one.innerText()) && /3\/3/.test(await one.innerText()), "all of its runs");
    ok((await grid.getByText("lid of the").count()) === 1, "a group is one row", await one.innerText());
    await one.getByRole("button", { name: "Open the group" }).click();
    ok(JSON.stringify(await grid.locator(".within a").allInnerTexts()) === JSON.stringify(order.map((i) => `lid of the ${i} group`)), "which opens, in the order of the group");
    await page.keyboard.press("/");
    await type("second group");
    await soon(async () => (await count.innerText()).startsWith("1 run ·"), "the search");
    ok(/q=second(\+|%20)group/.test(page.url()) && (await grid.locator("[data-run]").count()) === 1, "what is searched for stands in the address", page.url());
    await page.reload();
    await soon(async () => (await count.innerText()).startsWith("1 run ·"), "the same");
    await page.getByRole("button", { name: /^Remove the filter/ }).click();
    await page.getByRole("button", { name: "Failed today" }).click();
    const failed = JSON.parse(ava("ps", "-a", "--json")).filter((r) => !/success|cancelled|running|waiting|queued|parked/.test(r.status)).length;
    await soon(async () => (await count.innerText()).startsWith(`${failed} run`), `${failed} failed ones`);
    ok((await grid.locator(".status.failed").count()) === (await grid.locator("[data-run]").count()), "a saved view has those alone");
    await page.getByRole("button", { name: "All", exact: true }).click();
    await one.waitFor();
    await grid.getByRole("button", { name: /^Tokens/ }).click();
    await soon(async () => (await grid.getByRole("columnheader", { name: /^Tokens/ }).getAttribute("aria-sort")) === "descending", "the order");
    const figures = async () => (await call("GET", "/api/v1/runs?all=1&sort=tokens&limit=5")).body.runs.map((r) => r.subagent_id);
    await soon(async () => JSON.stringify((await grid.locator("[data-run]").evaluateAll((l) => l.slice(0, 5).map((e) => e.dataset.run)))) === JSON.stringify(await figures()), "the most tokens first");
    await page.goBack().catch(() => {});
    await goTo("#/runs?q=fails");
    await soon(async () => (await count.innerText()).startsWith("3 runs"), "three");
    const ids = await grid.locator("[data-run]").evaluateAll((l) => l.map((e) => e.dataset.run));
    await page.keyboard.press("j");
    await page.waitForTimeout(600); // longer than letters of a word are apart
    await page.keyboard.press("x");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Space");
    const bar = page.getByRole("toolbar", { name: "Selected runs" });
    ok(/2 selected/.test(await bar.innerText()) && (await hasFocus(grid)) && (await grid.getAttribute("aria-activedescendant")) === `row-${ids[1]}`, "keys select", await bar.innerText());
    await row(ids[0]).getByRole("checkbox").click();
    await row(ids[0]).getByRole("checkbox").click();
    await row(ids[2]).getByRole("checkbox").click({ modifiers: ["Shift"] });
    ok(/3 selected/.test(await bar.innerText()) && (await bar.getByRole("button", { name: "Compare" }).isDisabled()), "Shift selects all between; two can be compared, three not");
    const [file] = await Promise.all([page.waitForEvent("download"), bar.getByRole("button", { name: "Export JSON" }).click()]);
    ok(file.suggestedFilename() === "runs.json", "and they are exported");
    await shot("selected");
    await row(ids[2]).getByRole("checkbox").click();
    await bar.getByRole("button", { name: "Compare" }).click();
    ok(page.url().includes("#/compare/") && ids.slice(0, 2).every((id) => page.url().includes(id)), "two of them are compared", page.url());
    await page.goBack();
    await bar.getByRole("button", { name: "Clear" }).click();
    await grid.focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("Enter");
    await soon(() => page.url().includes(`#/run/${ids[0]}`), "the run");
    await page.goBack();
    await soon(() => hasFocus(grid), "the list to have the keyboard");
    ok((await grid.getAttribute("aria-activedescendant")) === `row-${ids[0]}`, "Enter opens the run, and who comes back stands where they stood");
    await goTo("#/runs?min_cents=none");
    await seen(async () => /min_cents/.test(await page.getByRole("alert").innerText()), "a filter that is none is told");
    await goTo("#/");
  }

  // Runs that nobody has, more than fit a screen or a page: read as one scrolls, and nothing that one reads moves.
  async function scrolling() {
    const list = watch(await context.newPage()), N = 10000, now = Date.now();
    const made = (i) => ({
      subagent_id: `S-${(0xa00000 + i).toString(16)}`, trace_id: "t", role: "code_reviewer", task: `Task ${i}`, model: "m", status: i < N ? "success" : "running", started_at: new Date(now - (N - i) * 1000).toISOString(),
      ended_at: i < N ? new Date(now).toISOString() : undefined, iteration: 3, tokens_used: i, cost_cents: 1, elapsed_seconds: 1, current_activity: "", limits: {}, session_id: "", user_id: "u", origin: "web", cwd: src, group_id: "", group_index: 0, tags: [],
    });
    let all = Array.from({ length: N }, (_, i) => made(N - 1 - i)), pages = 0;
    await list.route(/\/api\/v1\/runs\?/, (r) => {
      const q = new URL(r.request().url()).searchParams, limit = Number(q.get("limit")), before = q.get("before");
      if (q.has("ids")) return r.fulfill({ json: { runs: all.filter((x) => q.get("ids").split(",").includes(x.subagent_id)) } });
      const at = before ? all.findIndex((x) => x.subagent_id === before) + 1 : 0, runs = all.slice(at, at + limit);
      if (before) pages++;
      return r.fulfill({ json: { runs, next: at + limit < all.length ? runs.at(-1).subagent_id : "", counts: { total: all.length, by_status: {}, cost_cents: all.length } } });
    });
    await list.goto(`${page.url().split("#")[0]}#/runs`);
    const grid = list.getByRole("grid", { name: "Runs" });
    await grid.locator("[data-run]").first().waitFor();
    ok((await grid.locator("[data-run]").count()) < 80 && /10000 runs · \$100\.00/.test(await list.locator(".runs [role=status]").innerText()), "of 10,000 runs those in sight are elements");
    const frames = await grid.evaluate(async (e) => {
      const gaps = [];
      let at = performance.now();
      for (let i = 0; i < 120; i++) {
        e.scrollTop += 400;
        await new Promise(requestAnimationFrame);
        gaps.push(performance.now() - at);
        at = performance.now();
      }
      return gaps.sort((a, b) => a - b);
    });
    console.log(`# frame while scrolling: median ${frames[60].toFixed(1)} ms, 95 % ${frames[114].toFixed(1)} ms`);
    await soon(() => pages > 2, "further pages");
    for (let last = -1; last !== pages; ) {
      last = pages;
      await grid.focus();
      await list.keyboard.press("End");
      await soon(async () => pages > last || (await grid.getAttribute("aria-activedescendant")) === "row-S-a00000", "the end").catch(async (e) => { throw new Error(`${e.message} ${pages} ${await grid.evaluate((x) => [x.getAttribute("aria-activedescendant"), x.scrollTop, x.scrollHeight, x.clientHeight, document.activeElement.outerHTML.slice(0, 200)].join(" "))}`); });
    }
    ok(await grid.locator('[data-run="S-a00000"]').isVisible(), `End, page after page, comes to the last (${pages} pages)`);
    await list.keyboard.press("Home");
    await grid.evaluate((e) => (e.scrollTop = 3200));
    await soon(async () => (await grid.locator('[data-run]').evaluateAll((l) => l.length && !l.some((e) => e.textContent.includes("Task 9999")))), "rows further down");
    const line = () => grid.evaluate((e) => document.elementFromPoint(e.getBoundingClientRect().left + 200, e.getBoundingClientRect().top + 300).closest("[data-run]").dataset.run), before = await line();
    all = [made(N + 1), made(N), ...all];
    const one = await spawnRun("brings the list to life", script("life", submit("so"))); // the Items of this run make the page look again
    const pill = list.getByRole("button", { name: "2 new runs ↑" });
    await pill.waitFor();
    ok((await line()) === before, "what begins meanwhile moves nothing that one reads");
    await pill.click();
    await grid.locator(`[data-run="${made(N + 1).subagent_id}"]`).waitFor();
    ok((await grid.evaluate((e) => e.scrollTop)) === 0 && (await pill.count()) === 0, "and is shown by a click", one);
    await list.setViewportSize({ width: 390, height: 844 });
    await soon(async () => (await grid.locator("[data-run]").first().boundingBox()).height === 50, "two lines");
    ok(await list.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "on a phone a row has two lines and fits");
    await list.close();
  }

  // Runs of any figures: those on two pages, those of unknown cost, those that begin below the pointer.
  async function holding() {
    const list = watch(await context.newPage()), now = Date.now();
    const made = (i, more) => ({
      subagent_id: `S-b0000${i}`, trace_id: "t", role: "code_reviewer", task: `Task ${i}`, model: "m", status: "success", started_at: new Date(now - i * 1000).toISOString(), ended_at: new Date(now).toISOString(), iteration: 3,
      tokens_used: 1, cost_cents: 1, elapsed_seconds: 1, current_activity: "", limits: {}, session_id: "", user_id: "u", origin: "web", cwd: src, group_id: "", group_index: 0, tags: [], ...more,
    });
    let first = [made(1), made(2, { group_id: "G-b00001" }), made(3, { group_id: "G-b00001", cost_cents: null }), made(4, { group_id: "G-b00002" }), made(5, { group_id: "G-b00002", cost_cents: 2, estimated: true }), made(6)];
    await list.route(/\/api\/v1\/runs\?/, (r) => {
      const q = new URL(r.request().url()).searchParams;
      return r.fulfill({ json: { runs: q.has("ids") ? [] : q.has("before") ? [made(6), made(7)] : first, next: q.has("before") ? "" : "x", counts: { total: 7, by_status: {}, cost_cents: 1 } } });
    });
    await list.goto(`${page.url().split("#")[0]}#/runs`);
    const grid = list.getByRole("grid", { name: "Runs" }), row = (i) => grid.locator(`[data-run="S-b0000${i}"]`), group = (i) => grid.locator(`[data-group="G-b0000${i}"]`);
    await row(7).waitFor();
    ok((await row(6).count()) === 1, "a run that is on two pages is one row");
    ok(/cost unknown/.test(await group(1).innerText()) && /~2\b[^]*~\$0\.03/.test(await group(2).innerText()), "a group costs what is not known where one of it does, and about what it costs where one is estimated", await grid.innerText());
    await row(1).getByRole("link").hover();
    const line = () => row(1).evaluate((e) => e.getBoundingClientRect().top), before = await line();
    first = [made(0), ...first];
    await spawnRun("begins below the pointer", script("below", submit("so"))); // its Items make the page look again
    await list.getByRole("button", { name: "1 new run ↑" }).waitFor();
    ok((await line()) === before, "what begins while somebody points at the list moves nothing");
    await list.mouse.move(5, 5);
    await seen(() => row(0).isVisible(), "and is there when they do not");
    await list.goto(list.url().replace(/#.*/, "#/runs?status=constructor"));
    await seen(async () => /constructor ×/.test(await list.locator(".runs .bars").innerText()), "a word of the address is no word of the program");
    await list.close();
  }

  // Acts on what is selected are for what one sees; each is taken back by itself.
  async function selecting() {
    const ids = [];
    for (const n of ["one", "two", "three"]) ids.push(await spawnRun(`steady ${n}`, SLOW));
    const [a, b, c] = ids, box = (id) => page.locator(`.runs-list [data-run="${id}"]`).getByRole("checkbox"), bar = page.getByRole("toolbar", { name: "Selected runs" }), cancel = (n) => bar.getByRole("button", { name: `Cancel ${n}`, exact: true });
    await goTo("#/runs?q=steady");
    for (const id of [a, b]) await box(id).click();
    await goTo("#/runs?q=steady+two");
    await seen(async () => /1 selected\s*1 more is not in this list/.test(await bar.innerText()) && (await inView(bar)), "what is selected elsewhere is said");
    await cancel(1).click();
    await seen(() => status(b) === "cancelled" && status(a) === "running", "and is left alone");
    await goTo("#/runs?q=steady");
    await box(c).waitFor();
    await box(b).click();
    await cancel(1).click();
    ok(await bar.getByRole("button", { name: "Keep them" }).isVisible(), "a button that takes back says so", await bar.innerText());
    await box(a).click();
    await box(c).click();
    await cancel(1).click();
    await seen(() => [a, c].every((id) => status(id) === "cancelled"), "another selection is cancelled as well, and takes nothing back");
    await bar.getByRole("button", { name: "Clear" }).click();
    await page.getByLabel("Filter", { exact: true }).click();
    await page.getByLabel("Cost over ($)").click();
    await type("40,000");
    await page.keyboard.press("Enter");
    await seen(async () => /min_cents/i.test(await page.locator("main").getByRole("alert").innerText()) && (await inView(page.locator("main").getByRole("alert"))), "an amount that may be two is asked about, not cut");
    await goTo("#/");
  }

  // The next task begins anew, also where its fields are folded away.
  async function anew() {
    const dollars = page.getByLabel("Spending limit ($)"), dialog = page.locator("dialog"), card = page.locator(".ask.card");
    await page.keyboard.press("n");
    await type("look at the lid");
    await page.locator("dialog input.mono").fill(src);
    await dollars.click();
    await type("40,000");
    await dialog.getByText("More", { exact: true }).click();
    await page.getByLabel(/May propose changes/).check();
    await dialog.getByLabel("Model").fill(SLOW);
    await page.keyboard.press("Control+Enter");
    await seen(async () => /“40,000” is not a number of dollars/.test(await dialog.getByRole("alert").innerText()), "40,000 is not taken for 40");
    await dollars.fill("0,5");
    await page.keyboard.press("Control+Enter");
    await card.waitFor();
    ok(/\$0\.50/.test(await card.innerText()), "and 0,5 is a half", await card.innerText());
    await page.keyboard.press("n");
    await dialog.getByText("More", { exact: true }).click();
    ok(!(await page.getByLabel(/May propose changes/).isChecked()) && (await dialog.getByLabel("Model").inputValue()) === "", "what the last task was given is not given to the next");
    await page.keyboard.press("Escape");
    await card.getByRole("button", { name: "Change…" }).click();
    await card.getByLabel("Spend at most (cents)").fill("40,000");
    await card.getByRole("button", { name: "Yes, with these" }).click();
    await seen(async () => /number/.test(await card.getByRole("alert").innerText()) && (await inView(card.getByRole("alert"))), "nor in a change of a quote");
    await card.getByRole("button", { name: "No", exact: true }).click();
    await soon(async () => (await card.count()) === 0, "the quote to go");
  }

  // Rights of all three: the sentence, and a yes that says so.
  async function allThree() {
    await goTo("#/");
    const { status, body } = await call("POST", "/api/v1/runs", { task: "what do others say of the kettle?", role: "researcher", cwd: src, grants: ["fetch_any"], model: script("three", submit("they like it")) });
    const card = page.locator(`[data-ask="${body.proposal_id}"] .card`);
    await card.waitFor();
    const told = await card.innerText();
    ok(status === 201 && body.quote.allThree && /could read your data, read the web and send data out/.test(told),
      "a quote with all three rights says in words what they are together", told);
    ok((await card.getByRole("button", { name: "Yes", exact: true }).count()) === 0, "and has no plain yes");
    await shot("all-three");
    await card.focus();
    await page.waitForTimeout(600);
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
    const card = page.locator(`.ask.card[data-card^="P-"]`);
    await card.waitFor();
    ok(/Role: teapot, from .*teapot\.md/.test(await card.innerText()), "a quote names the file of a role that is not built in", await card.innerText());
    await card.getByRole("button", { name: "No", exact: true }).click();
    await soon(async () => (await card.count()) === 0, "the quote to go");
  }

  async function asking() {
    const id = await spawnRun("ask me", script("ask", { tool_calls: [{ name: "ask_person", args: { question: "Milk or lemon?", choices: ["milk", "lemon"] } }] }, submit("tea with it")));
    const card = region(/^Needs you/).locator(`[data-ask^="${id}"]`);
    await card.getByText("Milk or lemon?").first().waitFor();
    await soon(async () => /ask me/.test(await card.innerText()), "its task");
    ok((await page.locator(`[data-run="${id}"]`).count()) === 0, "a run that asks stands once, under what needs a person");
    await card.getByRole("button", { name: "lemon" }).click();
    await region(/^Recently/).locator(`[data-run="${id}"]`).waitFor();
    ok(ava("logs", id, "-o", "json").includes('"answer":"lemon"'), "the answer of the page is its answer");
  }

  async function parking() {
    await goTo("#/");
    const id = await spawnRun("look when the quota is back [[mock fault=429:retry-after=7200x1]]", "anthropic/claude-sonnet-4-5");
    const card = region(/^Needs you/).locator(`[data-ask^="${id}"]`), run = region(/^Running/).locator(`[data-run="${id}"]`);
    await card.getByText(/limit of anthropic/).first().waitFor();
    const answers = await card.locator("[data-act]").allInnerTexts();
    ok(answers.at(0) === "wait" && answers.at(-1) === "stop", "a run whose quota comes back asks, with its answers", answers.join());
    await shot("parked");
    await card.getByRole("button", { name: "wait" }).click();
    await soon(() => ava("logs", id, "-o", "json").includes('"state":"waits"'), "the answer");
    await goTo("#/runs?as=board");
    const parked = page.getByRole("region", { name: /^Waiting/ }).locator(`[data-run="${id}"]`);
    await parked.waitFor();
    ok(/parked/.test(await parked.innerText()), "told to wait it is parked", await parked.innerText());
    for (const words of ["stop", "stop for good"]) await parked.getByRole("button", { name: words, exact: true }).click();
    await soon(() => status(id) === "error", "its end");
    await goTo("#/");
    await page.locator(`.failure[data-card="${id}"]`).waitFor();
    ok((await run.count()) === 0, "told to stop it has failed");
    await page.locator(`.failure[data-card="${id}"]`).getByRole("button", { name: "Dismiss" }).click();
  }
  // Visitors who are not signed in come where they wanted to go as soon as they are.
  async function arriving() {
    const { subagent_id: id, task } = JSON.parse(ava("ps", "-a", "--json"))[0], fresh = await browser.newContext(), tab = watch(await fresh.newPage());
    await tab.goto(`${page.url().split("#")[0]}#/run/${id}`);
    await tab.getByText("Not signed in").waitFor();
    await tab.goto(ava("dashboard", "--no-open").trim());
    await tab.locator("h1").first().waitFor();
    ok(tab.url().endsWith(`#/run/${id}`) && (await tab.locator("main").getAttribute("aria-label")).startsWith(task.slice(0, 50)), "who signs in comes to the address that they asked for", tab.url());
    await tab.goto(tab.url().split("#")[0]);
    ok((await tab.locator("main").getAttribute("aria-label")) === "Inbox", "once");
    await fresh.close();
  }
  return { proposing, allThree, custom, asking, parking, folding, failing, listing, scrolling, holding, selecting, anew, arriving };
}
