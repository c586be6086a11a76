import { readFileSync } from "node:fs";

// One run, its steps, result and messages. Parts of page.mjs, which hands in what they need.
export function runParts({ page, ok, soon, seen, ava, call, run, spawnRun, script, submit, SLOW, src, goTo, text, shot, hook, elsewhere, fetched, troubles, shared }) {
  async function claims() {
    const found = { path: "kettle.h", line: 1, quote: "int kettle_boil(void);" }, lost = { path: "none.h", line: 9, quote: "int lid(void);" };
    const id = await spawnRun("cite", script("cite", { tool_calls: [{ name: "read_file", args: { path: "kettle.h" } }] }, { tool_calls: [{ name: "submit_result", args: { output: { findings: [found, lost] }, summary: "One is true.", confidence: 0.5 } }] }));
    await soon(() => JSON.parse(ava("status", id, "--json")).status === "success", "its end");
    await goTo(`#/run/${id}`);
    await page.getByText("1 of 2 not found").waitFor();
    const bad = page.locator("main li", { hasText: "not found where it was said to be" });
    ok((await bad.count()) === 1 && (await bad.innerText()).includes("none.h:9"), "a citation that was not found is marked, the other one is not", await text("main"));
  }

  // Elements in view have both ends in the list that scrolls, and in the window.
  const inView = (locator) => locator.evaluate((el) => {
    const r = el.getBoundingClientRect(), box = el.closest(".events, .body, main").getBoundingClientRect();
    return r.top >= box.top - 1 && r.bottom <= box.bottom + 1 && r.bottom <= innerHeight && r.height > 0;
  });
  const row = (words) => page.getByRole("treeitem").filter({ hasText: words });
  const inspector = page.locator(".inspector");

  async function withoutResult() {
    const done = { text: "The task is done." };
    const id = await spawnRun("say that you are done", script("talk", done, done, done));
    await soon(() => JSON.parse(ava("status", id, "--json")).status === "no_result", "its end");
    await goTo(`#/run/${id}`);
    await page.locator(".run-failure").getByText("Ended without a result").waitFor();
    ok(/resume/.test(await text(".run-failure")), "a run that handed in nothing has failed, and what to do stands above", await text(".run-failure"));
    ok((await page.getByRole("tab", { name: "Activity" }).getAttribute("aria-selected")) === "true", "and it opens on what it did");
    await goTo(`#/run/${id}/result`);
    await page.locator("main .result .markdown").getByText("The task is done.").waitFor();
    ok(/unverified/.test(await text("main")) && /no tool was called/i.test(await text("main")), "what it said is shown as that", await text("main"));
    ok(!/confidence/.test(await text("main")), "without a confidence that nobody stated", await text("main"));
    await shot("no-result");
  }

  async function looking() {
    const id = await spawnRun("two looks", script("looks", { text: "hm", tool_calls: [{ name: "read_file", args: { path: "kettle.h" } }, { name: "read_file", args: { path: "none.h" } }], usage: { input: 1000, output: 40 } }, { ...submit("It boils."), usage: { input: 2000, output: 60 } }));
    await soon(() => JSON.parse(ava("status", id, "--json")).status === "success", "its end");
    await goTo(`#/run/${id}`);
    await page.getByText("It boils.").first().waitFor();
    ok((await page.getByRole("tab", { name: "Result" }).getAttribute("aria-selected")) === "true" && (await text("h1")) === "two looks", "a run that ended well opens on its result, under its task");
    await page.keyboard.press("1");
    await row("none.h").waitFor();
    ok((await page.locator(".step.bad").count()) === 1 && /failed/.test(await row("none.h").innerText()), "its steps say which failed, in words");
    ok((await page.locator(".step .track i").count()) === 5, "and each call has its bar", await page.locator(".step .track i").count());
    await row("none.h").click();
    ok(page.url().endsWith(`/run/${id}/turn/1/call/2`), "a step has an address", page.url());
    await inspector.getByText("no file none.h").waitFor();
    await inspector.getByRole("tab", { name: "Input" }).click();
    ok(/path\s+none\.h/.test(await inspector.innerText()), "what went into it is told as names and values", await inspector.innerText());
    await inspector.getByRole("tab", { name: "Raw" }).click();
    ok(/"eventType": "ToolCall"[^]*"eventType": "ToolResult"/.test(await inspector.innerText()), "and its events, from the first to the last", await inspector.innerText());
    await page.goto(page.url());
    await page.reload();
    await inspector.getByText('"eventType": "ToolCall"').waitFor();
    ok((await row("none.h").getAttribute("aria-selected")) === "true", "the address alone shows the same");
    await goTo(`#/run/${id}/turn/2?show=input`);
    await inspector.getByText("int kettle_boil(void);").waitFor();
    ok(/no file none\.h/.test(await inspector.innerText()), "a call of the model shows what was new in what it was asked", await inspector.innerText());
    ok(!/two looks/.test(await inspector.innerText()), "and not what came before");
    await inspector.getByRole("button", { name: "Show what came before" }).click();
    await inspector.getByText("two looks").first().waitFor();
    ok(true, "which is there when asked for");
    await goTo(`#/run/${id}/turn/1`);
    await inspector.locator(".markdown", { hasText: "hm" }).waitFor();
    await inspector.getByRole("link", { name: "read_file" }).nth(1).click();
    await inspector.getByText("no file none.h").waitFor();
    ok(page.url().includes("/turn/1/call/2"), "what it said leads to what it called");
    await goTo(`#/run/${id}/turn/99`);
    await seen(async () => /no such step/.test(await inspector.innerText()), "an address of no step is told");
    await page.keyboard.press("4");
    const want = ava("logs", id, "-o", "json").trim().split("\n").length;
    await seen(async () => (await page.locator(".events").getAttribute("aria-label")) === `${want} events`, "the raw log is that of the run");
    await page.getByLabel(/errors first/i).check();
    ok(/failed/.test(await page.locator(".event").first().innerText()), "errors come first when asked for", await page.locator(".event").first().innerText());
    await page.locator(".event").first().click();
    ok(/"eventType": "ToolResult"/.test(await page.locator("dialog pre").innerText()), "an event is shown as it stands");
    await page.keyboard.press("Escape");
    ok(await soon(async () => (await page.locator("dialog").count()) === 0, "the end of the dialog"), "and Escape closes it");
    await goTo("#/run/S-000000");
    ok(await soon(async () => /There is no run S-000000/.test(await text("main")), "the refusal"), "a run that is not there is said to be none");
  }

  // The keyboard alone: through the tree, into what is beside it, and back.
  async function stepping() {
    const id = await spawnRun("three steps", script("steps3", { text: "Where is it?", tool_calls: [{ name: "read_file", args: { path: "kettle.h" } }, { name: "search_codebase", args: { pattern: "lid" } }] }, submit("found")));
    await soon(() => JSON.parse(ava("status", id, "--json")).status === "success", "its end");
    await goTo(`#/run/${id}/activity`);
    await row("search_codebase").waitFor();
    const tree = page.getByRole("tree"), at = async () => page.locator(`#${await tree.getAttribute("aria-activedescendant")}`).innerText();
    await tree.focus();
    await page.keyboard.press("ArrowDown");
    ok(/read_file/.test(await at()), "the arrows go through the steps", await at());
    await page.keyboard.press("ArrowDown");
    ok(/search_codebase/.test(await at()) && /search_codebase/.test(await inspector.innerText()), "and what is beside them goes along");
    await page.keyboard.press("ArrowRight");
    ok(await soon(() => page.evaluate(() => document.activeElement.id === "step-panel"), "the focus"), "the right arrow goes into it");
    await page.keyboard.press("ArrowLeft");
    ok(await soon(() => page.evaluate(() => document.activeElement.getAttribute("role") === "tree"), "the focus"), "and the left one back");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    ok((await row("Where is it?").getAttribute("aria-expanded")) === "false" && (await row("read_file").count()) === 0, "and closes the turn");
    await page.keyboard.press("ArrowRight");
    ok((await row("read_file").count()) === 1, "which the right one opens again");
    await page.getByLabel("Filter steps").click();
    await page.keyboard.type("lid");
    await soon(async () => (await row("read_file").count()) === 0, "the filter");
    ok((await row("search_codebase").count()) === 1 && /q=lid/.test(page.url()), "words leave the steps that have them, and stand in the address", page.url());
    await goTo(`#/run/${id}`);
    await page.getByRole("tab", { name: "Result" }).focus();
    await page.keyboard.press("ArrowLeft");
    ok(await soon(async () => page.url().endsWith("/activity") && (await page.getByRole("tab", { name: "Activity" }).evaluate((el) => el === document.activeElement)), "the tab"), "the arrows go through the tabs");
    const tabs = await page.locator(".tab-row [role=tab]").evaluateAll((all) => all.filter((el) => el.tabIndex === 0).length);
    ok(tabs === 1, "of which one is in the order of Tab", tabs);
    await page.setViewportSize({ width: 390, height: 844 });
    await row("read_file").click();
    await inspector.getByText("int kettle_boil").waitFor();
    ok(!(await tree.isVisible()), "where there is no room beside the steps, one takes their place");
    await inspector.getByRole("button", { name: "Steps" }).click();
    ok((await tree.isVisible()) && !(await inspector.isVisible()), "and goes again");
    await page.setViewportSize({ width: 1440, height: 900 });
  }

  async function failedRun() {
    const id = await spawnRun("the model is gone", "anthropic/claude-haiku-4-5", "--max-iterations", "1");
    await soon(() => !["running", "queued", "starting"].includes(JSON.parse(ava("status", id, "--json")).status), "its end");
    await goTo(`#/run/${id}`);
    await page.locator(".run-failure").waitFor();
    await soon(async () => (await page.locator('[role=treeitem][aria-selected="true"]').count()) === 1, "the step");
    const chosen = page.locator('[role=treeitem][aria-selected="true"]');
    ok((await inView(chosen)) && /failed/.test(await chosen.innerText()), "a run that failed opens on the step that did", await chosen.innerText());
    ok(await soon(async () => /ava resume/.test(await text(".run-failure")), "what to do", 5000), "with what one can do above", await text(".run-failure"));
  }

  // The newest is in view while the run goes on, unless one reads something else.
  async function following() {
    const many = Array.from({ length: 100 }, (_, i) => ({ text: `Step ${i}.`, tool_calls: [{ name: "search_codebase", args: { pattern: `p${i}` } }], delay_ms: i < 60 ? 0 : 400 }));
    const id = await spawnRun("go on", script("follow", ...many, { ...submit("at last"), delay_ms: 600000 }), "--max-iterations", "200", "--max-tokens", "90000000");
    await goTo(`#/run/${id}`);
    await row("Step 62.").waitFor();
    ok(await soon(() => inView(row("Step 62.")), "the newest"), "a live run is followed: its newest step is in view");
    await page.locator(".events").hover();
    await page.mouse.wheel(0, -600);
    await soon(async () => (await page.getByRole("button", { name: "Follow" }).getAttribute("aria-pressed")) === "false", "that it is not followed");
    await page.getByRole("button", { name: "New below" }).waitFor();
    const top = await page.locator(".events").evaluate((el) => el.scrollTop);
    await page.waitForTimeout(700);
    ok((await page.locator(".events").evaluate((el) => el.scrollTop)) === top, "who scrolled up stays where they read, and is told of what is new");
    await page.getByRole("button", { name: "New below" }).click();
    const end = row("Step 99.");
    await end.waitFor({ timeout: 60000 });
    ok(await soon(() => inView(end), "the newest"), "a click leads to the newest again");
    await soon(async () => (await page.locator(".step.speaking").count()) === 1, "the model");
    ok(await inView(page.locator(".step.speaking")), "and what the model is saying stands below it");
    await row("Step 98.").click();
    ok(/Step 98/.test(await inspector.innerText()), "one can look at another one meanwhile");
    ava("cancel", id);
    await seen(async () => (await page.getByRole("button", { name: "Follow" }).count()) === 0 && page.url().includes("/turn/99"), "and stays with it when the run ends");
  }

  // Words of a model are read while it writes them.
  async function speaking() {
    const id = await spawnRun("say it slowly [[mock fault=stall:1500x*]]", "anthropic/claude-haiku-4-5");
    await goTo(`#/run/${id}`);
    const said = page.locator(".step.speaking");
    await soon(async () => /The task asks|Looking/.test(await said.innerText()), "the words");
    ok(await inView(said), "a live run shows what its model says, below the step that says it", await said.innerText());
    ok(/The task asks|Looking/.test(await inspector.innerText()), "and all of it beside it", await inspector.innerText());
    ava("cancel", id);
    await seen(async () => (await said.count()) === 0, "until it has ended");
  }

  async function again() {
    const id = await spawnRun("once more", script("once", { text: "One.", tool_calls: [{ name: "read_file", args: { path: "kettle.h" } }] }, { text: "Two.", tool_calls: [{ name: "read_file", args: { path: "kettle.h" } }] }, { ...submit("x"), delay_ms: 600000 }));
    await soon(() => JSON.parse(ava("status", id, "--json")).iteration === 3, "its third turn");
    const more = page.getByLabel("More", { exact: true }).and(page.locator("main summary"));
    await goTo(`#/run/${id}`);
    await row("Two.").waitFor();
    if (!(await page.getByRole("button", { name: "Checkpoint…" }).isVisible())) await more.click();
    await page.getByRole("button", { name: "Checkpoint…" }).click();
    await page.getByRole("textbox", { name: "Name" }).click();
    await page.keyboard.type("two");
    await page.keyboard.press("Enter");
    await seen(async () => (await row("Checkpoint").count()) === 1, "a run that goes on can be given a name where it is");
    ava("cancel", id);
    await goTo(`#/run/${id}/turn/2`);
    await inspector.getByRole("button", { name: "Fork from here" }).click();
    await seen(() => /inbox\/P-/.test(page.url()), "a call of the model can be forked from, which makes a quote");
    const quote = (await call("GET", "/api/v1/asks")).body.asks.find((a) => page.url().endsWith(a.id));
    ok(/from model call 2/.test(quote.text), "of a run that begins anew before it", JSON.stringify(quote));
    await goTo(`#/run/${id}/activity`);
    await row("Two.").waitFor();
    await more.click();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export log" }).click()]);
    const lines = readFileSync(await file.path(), "utf8").trim().split("\n").map((l) => JSON.parse(l).lsn);
    const want = ava("logs", id, "-o", "json").trim().split("\n").map((l) => JSON.parse(l).lsn);
    ok(file.suggestedFilename() === `${id}.jsonl` && lines.join() === want.join(), "its log can be had as a file, an event a line", `${lines.length} ${want.length}`);
    await more.click();
    await page.getByRole("button", { name: "Retry with another model…" }).click();
    const models = (await call("GET", "/api/v1/models")).body.models;
    await page.locator("dialog select").selectOption(models.at(-1).id);
    await page.getByRole("button", { name: "Get a quote" }).click();
    await seen(async () => (await call("GET", "/api/v1/asks")).body.asks.some((a) => page.url().endsWith(a.id) && a.text.includes(models.at(-1).id)), "and it can be tried with another model");
    for (const a of (await call("GET", "/api/v1/asks")).body.asks) if (a.kind === "quote") await call("POST", `/api/v1/asks/${a.id}`, { choice: "no", hash: a.hash });
  }

  async function long() {
    const id = await spawnRun("long", script("long", ...Array.from({ length: 12 }, (_, i) => ({ tool_calls: Array.from({ length: 100 }, (_, k) => ({ name: "search_codebase", args: { pattern: `w${i}x${k}` } })) })), submit("done")), "--max-iterations", "30", "--max-tokens", "90000000");
    await soon(() => JSON.parse(ava("status", id, "--json")).status !== "running", "its end", 60000);
    const want = ava("logs", id, "-o", "json").trim().split("\n").length;
    const scrolling = () => page.evaluate(async () => {
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
    for (const [tab, rows, least] of [["log", ".event", want], ["activity", ".step", 1200]]) {
      await goTo(`#/run/${id}/${tab}`);
      await soon(async () => (await page.locator(".events > div").evaluate((el) => el.clientHeight)) >= least * 26, "all of them");
      const elements = await page.locator(rows).count();
      ok(least > 1000 && elements < 100, `of ${least} lines of the ${tab} only those in sight are elements (${elements})`);
      const worst = await scrolling();
      ok(worst < 1000, `scrolling through them never hangs (${Math.round(worst)} ms at the longest)`);
    }
    await goTo(`#/run/${id}/turn/11/call/77`);
    ok(await soon(() => inView(page.locator('[aria-selected="true"][role=treeitem]')), "the step"), "the address of a step far below brings it into view");
  }

  async function hostile() {
    const bad = `### Where\n\n# <img src=x onerror="fetch('${elsewhere}/img')">\n\n[click](javascript:fetch('${elsewhere}/js')) ![x](${elsewhere}/pic?k) </script><script>fetch('${elsewhere}/script')</script>\n\n` +
      `<svg onload="fetch('${elsewhere}/svg')"></svg> [d](data:text/html,<script>alert(1)</script>) <a href="${elsewhere}/a" ping="${elsewhere}/ping">x</a>\n\n| a | <iframe src="${elsewhere}/frame"> |\n|---|---|\n| b | [e](vbscript:x) |\n\n###### Deep\n\n[\u202eturned](https://example.org/x)`;
    const id = shared.attacked = await spawnRun(`task <img src=x onerror="fetch('${elsewhere}/task')">`, script("hostile", submit(bad)));
    await soon(() => JSON.parse(ava("status", id, "--json")).status === "success", "its end");
    hook("SubagentStop", "hostile", "h1", { last_assistant_message: bad });
    const before = troubles.length;
    await goTo("#/");
    await goTo(`#/run/${id}`);
    await page.locator(".markdown").first().waitFor();
    ok((await page.locator("main img, main script, main iframe, main svg:not(.icon), main a[href^='javascript'], main a[href^='data']").count()) === 0, "what a model says makes no elements of its own", await page.locator("main .markdown").first().innerHTML());
    ok(await page.locator("main .host", { hasText: "example.org" }).evaluate((el) => {
      const words = document.createTreeWalker(el, NodeFilter.SHOW_TEXT), range = document.createRange();
      while (!words.nextNode().data.includes("example.org"));
      const node = words.currentNode, first = node.data.indexOf("example"), x = (i) => (range.setStart(node, i), range.setEnd(node, i + 1), range.getBoundingClientRect().left);
      return x(first) < x(first + 10);
    }), "marks in a link do not turn the host that it leads to around");
    await goTo("#/claude/hostile");
    await page.locator('[data-agent="h1"]').first().click();
    await page.locator("dialog .markdown").waitFor();
    ok((await page.locator("dialog img, dialog script, dialog iframe, dialog svg").count()) === 0, "nor does what an agent said");
    await page.keyboard.press("Escape");
    await page.waitForTimeout(300);
    ok(fetched.length === 0 && troubles.length === before, "and nothing is fetched, run or refused by the policy", [...fetched, ...troubles.slice(before)].join("\n"));
    hook("SubagentStop", "blank", "h2", { last_assistant_message: `${"\n".repeat(60000)}x` });
    const shows = (hash, selector) => page.evaluate(async ([h, what]) => {
      const began = performance.now();
      location.hash = h;
      while (!document.querySelector(what) && performance.now() - began < 60000) await new Promise(requestAnimationFrame);
      return Math.round(performance.now() - began);
    }, [hash, selector]);
    const blank = await shows("#/claude/blank", '[data-agent="h2"]');
    ok(blank < 3000, `an agent that says lines and lines without words is shown in ${blank} ms`);
    const links = await spawnRun("links", script("links", submit(`Before.\n\n${"[a](".repeat(2000)}\n\n${"*a ".repeat(3000)}\n\n- one **two**\n`)));
    await soon(() => JSON.parse(ava("status", links, "--json")).status === "success", "its end");
    const linked = await shows(`#/run/${links}`, "main .result .markdown strong");
    ok(linked < 3000, `links that begin and never end are shown in ${linked} ms, and what is behind them as it should be`);
    const big = await spawnRun("big", script("big", submit("[".repeat(1 << 20))));
    await soon(() => JSON.parse(ava("status", big, "--json")).status !== "running", "its end");
    await goTo("#/");
    const took = await shows(`#/run/${big}`, "main pre.plain, main .markdown");
    ok(took < 15000, `a megabyte of brackets is shown in ${took} ms`);
  }

  // The daemon is asked a second time where an answer is lost, and not more often than twice a second.
  async function unheard() {
    const id = await spawnRun("asking", SLOW), logs = /api\/v1\/logs\?run=/, steer = /\/steer$/, quotes = /\/api\/v1\/(runs|asks\/P-.*|proposals)$/;
    let n = 0;
    await page.route(logs, (r) => (n++ ? r.continue() : r.abort()));
    await goTo(`#/run/${id}`);
    await seen(() => row("I look.").isVisible(), "steps that could not be read at first are read a moment later", 10000);
    await page.unroute(logs);
    const twice = []; // ids of what was sent
    const lose = async (r) => {
      if (r.request().method() !== "POST") return r.continue();
      twice.push(r.request().postDataJSON().request_id);
      if (twice.length % 2 === 0) return r.continue();
      await r.fetch();
      await r.abort();
    };
    await page.route(steer, lose);
    await page.getByRole("button", { name: "Message" }).click();
    await page.keyboard.type("mind the lid");
    await page.keyboard.press("Enter");
    await page.locator("main form [role=alert]").waitFor();
    await page.keyboard.press("Enter");
    await soon(() => twice.length === 2, "the second one");
    await page.getByText("Sent. It reads that").waitFor();
    ok(twice[0] === twice[1] && ava("logs", id, "-o", "json").split('"mind the lid"').length === 2, "a message whose answer is lost is sent again, and heard once", twice.join());
    await page.unroute(steer);
    await page.route(quotes, lose);
    await page.locator(".rail .new").click();
    await page.locator("dialog textarea").click();
    await page.keyboard.type("a task that is quoted once");
    await page.keyboard.press("Control+Enter");
    await page.locator("dialog [role=alert]").waitFor();
    await page.keyboard.press("Control+Enter");
    await seen(() => /inbox\/P-/.test(page.url()), "and so is a task");
    const open = async () => (await call("GET", "/api/v1/asks")).body.asks.filter((a) => a.kind === "quote");
    ok((await open()).filter((a) => a.text.includes("quoted once")).length === 1, "which is one quote", JSON.stringify(await open()));
    await page.unroute(quotes);
    ava("cancel", id);

    let asked = 0;
    await page.route(/api\/v1\/proposals$/, async (r) => {
      asked++;
      await new Promise((done) => setTimeout(done, 100));
      await r.continue().catch(() => {}); // too late
    });
    await goTo("#/runs");
    await goTo("#/inbox");
    for (let i = 0; i < 12; i++) {
      await call("POST", "/api/v1/runs", { task: `quote ${i}`, role: "code_reviewer", cwd: src, model: SLOW });
      await page.waitForTimeout(100);
    }
    ok(asked > 1 && asked < 7, "while much happens a view reads, rests, and reads again", asked);
    await page.unroute(/api\/v1\/proposals$/);
    for (const a of await open()) await call("POST", `/api/v1/asks/${a.id}`, { choice: "no", hash: a.hash });
  }
  return { claims, withoutResult, looking, stepping, failedRun, following, speaking, again, long, hostile, unheard };
}
