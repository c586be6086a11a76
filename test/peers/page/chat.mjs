// Conversations. Parts of page.mjs, which hands in what they need.
export function chatParts({ page, context, watch, ok, soon, seen, call, script, submit, src, goTo, text, shot }) {
  const type = (words, delay = 15) => page.keyboard.type(words, { delay });
  const field = page.getByLabel("Message Ava"), list = page.locator("ol.said"), sides = page.getByRole("navigation", { name: "Conversations" });
  const box = (place) => place.evaluate((e) => {
    const r = e.getBoundingClientRect();
    return { top: r.top, bottom: r.bottom, height: r.height, left: r.left, right: r.right, seen: r.top >= 0 && r.bottom <= innerHeight && r.left >= 0 && r.right <= innerWidth };
  });
  const begun = async (model) => (await call("POST", "/api/v1/sessions", { model, cwd: src })).body.session_id;
  const say = (id, words) => call("POST", `/api/v1/sessions/${id}/messages`, { text: words });

  async function thinking() {
    const first = { text: "Here I am.", delay_ms: 600000 };
    const id = await begun(script("ponder", first, first));
    await say(id, "hello");
    await goTo(`#/chat/${id}`);
    await page.getByText(/^Ava is (thinking|waiting for the first word of the model) \(/).waitFor();
    ok(true, "while Ava thinks her conversation says so, and for how long");
    await shot("thinking");
    const stop = page.getByRole("button", { name: "Stop" });
    ok((await box(stop)).seen && (await page.getByRole("combobox", { name: "Model" }).isDisabled()), "there is a Stop in view, and no other model meanwhile");
    await stop.click();
    await soon(async () => (await stop.count()) === 0, "the end of her turn");
    ok((await call("GET", `/api/v1/sessions/${id}`)).body.status === "idle", "which ends her turn");

    // The first line of the task tells the service how to answer (doc/MOCK.md).
    const away = await begun("anthropic/claude-haiku-4-5");
    await say(away, "hello [[mock fault=529x99]]");
    await goTo(`#/chat/${away}`);
    await page.getByText(/^anthropic is overloaded, trying again.*\. Ava is/).waitFor();
    ok(true, "and what keeps her from an answer");
    await call("POST", `/api/v1/sessions/${away}/stop`, {});
  }

  // A conversation begun from the list: a folder, a model, the first words.
  async function beginning() {
    const model = script("welcome", { text: "What a fine folder." }, { text: "Another voice." });
    await goTo("#/chat");
    await sides.getByRole("link", { name: "New conversation" }).click();
    await soon(async () => (await page.getByLabel("Message").evaluate((e) => e === document.activeElement)), "the field to have the focus");
    await type("what is here?");
    const folder = page.getByLabel("Folder that Ava may read");
    await folder.click({ clickCount: 3 });
    await type("/none/at/all");
    await page.getByRole("button", { name: "Start" }).click();
    await soon(async () => /\/none\/at\/all/.test(await page.locator("main [role=alert]").innerText()), "the refusal");
    await goTo("#/chat");
    await goTo("#/chat/new");
    ok((await page.getByLabel("Message").inputValue()) === "what is here?" && (await folder.inputValue()) === "/none/at/all", "a folder that is none is told in the form, and what was written stays");
    ok((await page.locator("#folders option").evaluateAll((all) => all.map((o) => o.value))).includes(src), "folders that were used are proposed");
    await folder.click({ clickCount: 3 });
    await type(src);
    await page.getByLabel("Message").click();
    await page.keyboard.press("Enter");
    await list.getByText("what is here?").waitFor();
    const id = /chat\/([0-9a-f-]{36})/.exec(page.url())?.[1], of = async () => (await call("GET", `/api/v1/sessions/${id}`)).body;
    await soon(async () => (await sides.locator(`a[href*="${id}"][aria-current]`).count()) === 1, "its line in the list");
    ok((await of()).cwd === src, "Enter begins it, in its folder; it is in the list", page.url());
    await call("POST", `/api/v1/sessions/${id}/stop`, {});
    await soon(async () => (await of()).status === "idle", "her turn to end");
    await call("POST", `/api/v1/sessions/${id}/model`, { model });
    await goTo("#/chat");
    await goTo(`#/chat/${id}`);
    const models = page.getByRole("combobox", { name: "Model" });
    await soon(async () => (await models.inputValue()) === model && (await models.locator("option").count()) > 1, "other models");
    const other = await models.locator("option").evaluateAll((all, m) => all.map((o) => o.value).find((v) => v !== m), model);
    await models.selectOption(other);
    await soon(async () => (await of()).model === other, "the other model");
    ok(true, "another model is chosen in its head");
    await goTo("#/chat");
    ok((await sides.locator("a").count()) > 1, "the list has all of them", await sides.innerText());
    await page.setViewportSize({ width: 390, height: 844 });
    await sides.locator(`a[href*="${id}"]`).click();
    await soon(async () => (await sides.isHidden()) && (await box(field)).seen, "the conversation alone");
    await page.getByRole("link", { name: "All conversations" }).click();
    await seen(() => sides.isVisible(), "on a phone there is the list, or one of it with a way back");
    await page.setViewportSize({ width: 1440, height: 900 });
    for (let i = 0; i < 11; i++) await say(await begun(script(`many${i}`, { text: "Yes." })), `kettle number ${i}, ${i === 7 ? "copper" : "tin"}`);
    const search = page.getByLabel("Search conversations");
    await search.click();
    await type("COPPER kettle");
    await seen(async () => (await sides.locator('a[href*="/chat/"]').count()) === 2, "more than ten of them are searched by words");
    ok(/q=COPPER/.test(page.url()), "which the address has", page.url());
    await goTo("#/");
  }

  // Messages of several lines, and earlier ones brought back.
  async function lines() {
    const id = await begun(script("lines", ...Array.from({ length: 4 }, (_, i) => ({ text: `Heard ${i + 1}.` }))));
    await goTo(`#/chat/${id}`);
    await field.click();
    const one = (await box(field)).height;
    await type("first line");
    await page.keyboard.press("Shift+Enter");
    await type("second line");
    ok((await field.inputValue()) === "first line\nsecond line" && (await box(field)).height > one + 10, "Shift+Enter makes another line, and the field grows");
    await page.keyboard.press("Enter");
    await list.getByText("Heard 1.").waitFor();
    ok((await field.inputValue()) === "" && (await box(field)).height === one && /second line/.test(await list.locator("li.person").innerText()), "Enter says it, and the field is as it was");
    await type("next");
    await page.keyboard.press("Enter");
    await list.getByText("Heard 2.").waitFor();
    const at = async () => field.inputValue(), said = [];
    for (const key of ["ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown"]) {
      await page.keyboard.press(key);
      said.push(await at());
    }
    ok(said.join("|") === "next|first line\nsecond line|first line\nsecond line|next|", "the arrows go through what was said", said.join("|"));
    await page.keyboard.press("ArrowUp");
    await type("!");
    await page.keyboard.press("ArrowUp");
    ok((await at()) === "next!", "what was changed is no history", await at());
    await goTo("#/logs");
    await goTo(`#/chat/${id}`);
    ok((await at()) === "next!", "what was not sent is there when one comes back");
    await field.click();
    await page.keyboard.press("Escape");
    ok((await at()) === "next!" && !(await field.evaluate((e) => e === document.activeElement)), "Escape leaves the field, and what was written stays", await at());
    await field.click();
    await page.keyboard.press("Control+A");
    await page.keyboard.press("Delete");
    for (let i = 0; i < 20; i++) await page.keyboard.press("Shift+Enter");
    const { height, seen: whole } = await box(field);
    ok(height < one * 8 && height > one * 4 && whole, "it grows to eight lines and no more", height);
    await page.keyboard.press("Control+A");
    await page.keyboard.press("Delete");
    await goTo("#/");
  }

  // Words of Ava while she writes them stand once, also when they are said.
  async function streaming() {
    const id = await begun("anthropic/claude-haiku-4-5"), words = page.locator("ol.said li.ava .markdown");
    await goTo(`#/chat/${id}`);
    await page.evaluate(() => {
      window.grew = new Set();
      window.twice = 0;
      const look = () => {
        const all = [...document.querySelectorAll("ol.said li.ava .markdown")].map((e) => e.textContent);
        if (all.length) window.grew.add(all.at(-1));
        if (all.length > 1) window.twice++;
      };
      window.looking = new MutationObserver(look);
      window.looking.observe(document.querySelector("ol.said"), { subtree: true, childList: true, characterData: true });
    });
    await field.click();
    await type('hello [[mock turns=0 latency=4000 chunks=40 text="The **kettle** boils at a hundred degrees, and sooner on a mountain."]]', 0);
    await page.keyboard.press("Enter");
    await words.waitFor();
    await soon(async () => (await page.evaluate(() => window.grew.size)) > 3, "words as they come", 10000);
    const busy = await call("GET", `/api/v1/sessions/${id}`);
    ok(busy.body.status === "busy", "what Ava writes is seen while she writes it", JSON.stringify(await page.evaluate(() => [...window.grew])));
    await soon(async () => (await call("GET", `/api/v1/sessions/${id}`)).body.status === "idle", "the end of her turn");
    await soon(async () => (await call("GET", `/api/v1/items?session=${id}`)).body.items.some((i) => i.detail.by === "ava"), "what she said");
    await soon(async () => (await words.count()) === 1 && /sooner on a mountain\.$/.test(await words.innerText()) && (await words.locator("strong").innerText()) === "kettle", "all of it");
    ok((await page.evaluate(() => (window.looking.disconnect(), window.twice))) === 0, "and stands there once, also when it is said");
    await goTo("#/");
  }
  // The newest rows of a long conversation stand at once, the others when they are asked for.
  async function longTalk() {
    const id = await begun(script("long", { text: "That is all." }, { text: "It is." }));
    await say(id, "is that all?");
    await page.route(/api\/v1\/items\?session=/, async (r) => {
      const answer = await r.fetch(), json = await answer.json(), day = (i) => new Date(Date.UTC(2026, 0, 1 + Math.floor(i / 100), 12)).toISOString();
      const items = Array.from({ length: 300 }, (_, i) => ({ ...json.items[0], lsn: (i + 1) / 1000, at: day(i), text: `question ${i}.` }));
      await r.fulfill({ response: answer, json: { ...json, items: [...items, ...json.items] } });
    });
    await goTo(`#/chat/${id}`);
    await list.getByText("That is all.").waitFor();
    ok((await list.locator("li.person").count()) < 200 && (await box(list.getByText("That is all."))).seen, "a long conversation opens at its newest rows");
    await list.locator("li.person", { hasText: "question 250." }).evaluate((e) => (window.stood = e));
    await field.click();
    await type("really?");
    await page.keyboard.press("Enter");
    await list.getByText("It is.").waitFor();
    ok(await page.evaluate(() => window.stood.isConnected && /question 250/.test(window.stood.innerText)), "a row that comes leaves those above it as they are");
    const more = page.getByRole("button", { name: "Show earlier" });
    await more.scrollIntoViewIfNeeded();
    const top = list.locator("li.person").first(), was = (await box(top)).top, words = await top.innerText();
    await more.click();
    await list.getByText("question 0.").waitFor({ state: "attached" });
    const now = await box(list.locator("li.person", { hasText: words.match(/question \d+\./)[0] }).first());
    ok(Math.abs(now.top - was) < 60 && (await list.locator("li.person").count()) === 302, "earlier ones come above it, and what is read stays where it is", `${was} ${now.top}`);
    ok((await list.locator("li.day").allInnerTexts()).length === 4, "days are apart", (await list.locator("li.day").allInnerTexts()).join());
    await page.unroute(/api\/v1\/items\?session=/);
    await goTo("#/");
  }
  // A card may be answered by a line when its end was in view for a second, however long it was there.
  async function seeing() {
    const note = { tool_calls: [{ name: "memory_write", args: { text: "The spout is bent." } }] };
    const id = await begun(script("seeing", { text: "Water.\n\n".repeat(60) }, note, { text: "So it seems." }, ...Array.from({ length: 4 }, () => ({ text: "Well." }))));
    await say(id, "what is in it?");
    await goTo(`#/chat/${id}`);
    await list.locator("li.ava .markdown").waitFor();
    await list.hover();
    await page.mouse.wheel(0, -600);
    await soon(() => list.evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight > 300), "the reader to be above");
    await say(id, "and the spout?");
    const card = list.locator("[data-ask]"), sent = [];
    await card.waitFor();
    await page.waitForTimeout(1300);
    await page.route(/\/messages$/, (r) => (sent.push(r.request().postDataJSON().shown), r.abort()));
    await page.evaluate(() => { // no time goes by in what the page measures
      window.at = performance.now();
      performance.now = () => window.at;
    });
    await list.hover();
    await page.mouse.wheel(0, 100000);
    await soon(async () => (await box(card)).seen, "the card");
    await field.click();
    await type("yes");
    const enter = async () => {
      const n = sent.length;
      await page.keyboard.press("Enter");
      await soon(() => sent.length > n, "what is sent");
      await page.locator("main [role=alert]").waitFor();
    };
    await enter();
    ok(sent[0] === "", "a card that was below what one read is not answered as soon as it comes into view", sent.join());
    await soon(async () => (await box(card)).seen, "the card, above what went wrong");
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))); // the page has seen it, too
    await page.evaluate(() => (window.at += 1100));
    await enter();
    ok(sent[1] === (await card.getAttribute("data-ask")), "but after a second", sent.join());
    await list.hover();
    await page.mouse.wheel(0, -600);
    await soon(() => list.evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight > 300), "the reader to be above");
    await page.mouse.wheel(0, 100000);
    await soon(async () => (await box(card)).seen, "the card");
    await field.click();
    await enter();
    ok(sent[2] === "", "and from the beginning where it was out of view meanwhile", sent.join());
    await page.evaluate(() => delete performance.now);
    await page.unroute(/\/messages$/);
    await page.keyboard.press("Control+A");
    await page.keyboard.press("Delete");
    await call("POST", `/api/v1/asks/${await card.getAttribute("data-ask")}`, { choice: "no" });
    await goTo("#/");
  }

  // An answer that is lost on its way: what was sent is sent again, and heard once.
  async function lost() {
    const id = await begun(script("lost", ...Array.from({ length: 4 }, () => ({ text: "Yes." }))));
    await goTo(`#/chat/${id}`);
    await field.click();
    await type("boil it once");
    let n = 0;
    await page.route(/\/messages$/, async (r) => {
      if (r.request().method() !== "POST" || n++) return r.continue();
      await r.fetch();
      await r.abort();
    });
    await page.keyboard.press("Enter");
    await page.locator("main [role=alert]").waitFor();
    await list.getByText("Yes.").waitFor();
    ok((await field.inputValue()) === "boil it once", "without an answer what was written stays");
    await page.keyboard.press("Enter");
    await soon(async () => n === 2 && (await field.inputValue()) === "", "that it is sent");
    await page.unroute(/\/messages$/);
    await say(id, "and now?");
    await soon(async () => (await list.locator("li.ava").count()) === 2, "what comes next");
    ok((await list.locator("li.person", { hasText: "boil it once" }).count()) === 1, "sent again, it is said once", await list.innerText());
    await goTo("#/");
  }

  // A reading that fails is tried again; pages are read to the end, also when one was away.
  async function reading() {
    const id = await begun(script("reading", { text: "Here it is." }, { text: "And there." }));
    await say(id, "where?");
    await soon(async () => (await call("GET", `/api/v1/items?session=${id}`)).body.items.some((i) => i.detail.by === "ava"), "the answer");
    const items = /api\/v1\/items\?session=/;
    let n = 0;
    await page.route(items, (r) => (n++ ? r.continue() : r.abort()));
    await goTo(`#/chat/${id}`);
    await say(id, "and the lid?");
    await seen(async () => /Here it is\.[^]*And there\./.test(await list.innerText()), "a conversation that could not be read at first is read a moment later, with what came meanwhile", 10000);
    await page.unroute(items);
    const other = watch(await context.newPage());
    await other.addInitScript("{ const after = setTimeout; window.setTimeout = (f, ms) => after(f, ms === 10000 ? 50 : ms); }");
    await other.goto(page.url());
    await other.getByText("And there.").waitFor();
    const look = (hidden) => other.evaluate((h) => {
      Object.defineProperty(document, "hidden", { configurable: true, value: h });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
    const one = (await call("GET", `/api/v1/items?session=${id}`)).body.items.find((i) => i.text === "where?");
    await other.route(items, (r) => {
      const after = Number(/after=(\d+)/.exec(r.request().url())[1]), k = after > 1e9 ? 2 : 1;
      return r.fulfill({ json: { items: [{ ...one, lsn: 1e9 + k, text: `while away ${k}` }], next: 1e9 + k, more: k === 1, brokenLines: 0, broken: [] } });
    });
    await look(true);
    await soon(async () => (await other.locator(".link").innerText()) !== "Live", "the end of its stream");
    await look(false);
    await seen(() => other.getByText("while away 2").isVisible(), "what came while one was away is read to its end", 10000);
    await other.close();
    await goTo("#/");
  }

  // An address names a conversation, and nothing else.
  async function addressed() {
    const posted = [], at = /\/api\/v1\//;
    await page.route(at, (r) => (r.request().method() === "POST" ? (posted.push(new URL(r.request().url()).pathname), r.abort()) : /messages/.test(r.request().url()) ? undefined : r.continue()));
    await goTo(`#/chat/${encodeURIComponent("../runs/cancel?")}`);
    await field.click();
    await type("hello");
    await page.keyboard.press("Enter");
    await soon(() => posted.length, "what is sent");
    ok(posted[0].startsWith("/api/v1/sessions/"), "an id of the address leads to no other place of the daemon", posted.join());
    await page.unroute(at);
    await page.keyboard.press("Control+A");
    await page.keyboard.press("Delete");
    await goTo("#/");
  }
  // Words that were read in the page are not told again "while you were away".
  async function acknowledging() {
    const id = await begun(script("away", { text: "Only once." }, { text: "Seen as it came." }));
    const left = async () => (await call("GET", `/api/v1/sessions/${id}/unseen`)).body.items.length;
    await say(id, "hello");
    await soon(async () => (await left()) === 1, "her words to wait for somebody");
    await goTo(`#/chat/${id}`);
    await list.getByText("Only once.").waitFor();
    await soon(async () => (await left()) === 0, "the page to acknowledge what it shows");
    await field.fill("and then?");
    await page.keyboard.press("Enter");
    await list.getByText("Seen as it came.").waitFor();
    await soon(async () => (await left()) === 0, "and what comes while it is open");
    ok(true, "what the page has shown waits for no terminal");
    await goTo("#/");
  }
  return { acknowledging, thinking, beginning, lines, streaming, longTalk, seeing, lost, reading, addressed };
}
