// Acts of a person with mouse and keyboard, and what they then have before their eyes: a click, letters one
// after the other, and rectangles. Nothing here puts words into a field by itself (page.fill), since that
// gives the field the focus that the page owes. Parts of page.mjs, which hands in what they need.
export function typingParts({ page, context, watch, ok, soon, seen, ava, call, spawnRun, script, submit, SLOW, src, goTo, shot, twice }) {
  const type = (words, delay = 15) => page.keyboard.type(words, { delay });
  const quote = async (task) => (await call("POST", "/api/v1/runs", { task, role: "code_reviewer", cwd: src, model: SLOW, max_cost_cents: 50 })).body.proposal_id;
  const proposal = async (id) => (await call("GET", `/api/v1/proposals/${id}`)).body;
  const status = (id) => JSON.parse(ava("status", id, "--json")).status;
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme ?? "");
  const hasFocus = (place) => place.evaluate((e) => e === document.activeElement);
  // Elements in view are whole, within the window, and nothing lies over their middle.
  const inView = (place) => place.evaluate((e) => {
    const r = e.getBoundingClientRect(), top = document.elementFromPoint((r.left + r.right) / 2, (r.top + r.bottom) / 2);
    return r.width > 0 && r.top >= 0 && r.left >= 0 && r.bottom <= innerHeight && r.right <= innerWidth && (e === top || e.contains(top) || !!top?.contains(e) && getComputedStyle(e).pointerEvents === "none");
  });

  async function changing() {
    await goTo("#/");
    const id = await quote("look at the lid"), box = page.locator(`[data-ask="${id}"]`), card = box.locator(".card"), look = await theme();
    await card.getByRole("button", { name: "Change" }).click();
    await type("yes, but max 20 cents");
    const field = card.getByLabel("What should be different?");
    ok((await field.inputValue()) === "yes, but max 20 cents" && (await proposal(id)).state === "pending", "words typed behind a click on Change stand in its field and start nothing", await card.innerText());
    await page.keyboard.press("Escape");
    ok((await field.count()) === 0 && (await hasFocus(card)), "Escape closes it, and the card has the keyboard");
    await card.locator(".ask-text").click();
    await type("yes, but max 20 cents");
    await type("yes, no", 0);
    const { state } = await proposal(id);
    ok(state === "pending" && (await page.locator("dialog").count()) === 0 && (await theme()) === look, "words typed at a card that is chosen start nothing, end nothing and change nothing", state);
    await card.getByRole("button", { name: "Change" }).click();
    ok((await field.inputValue()) === "yes, but max 20 cents", "what was written is there when it is opened again");
    await page.keyboard.press("Enter");
    const last = await soon(async () => {
      const p = await proposal(id), q = p.replaced_by ? await proposal(p.replaced_by) : p;
      return (p.replaced_by || p.state === "confirmed") && q;
    }, "the change");
    ok(last.quote.costCents <= 20, "sent, they are what holds", JSON.stringify(last.quote));
    if (last.state === "pending") await page.locator(`[data-ask="${last.proposal_id}"]`).getByRole("button", { name: "No", exact: true }).click();
    else await call("POST", `/api/v1/runs/${last.subagent_id}/cancel`, {});
  }

  async function steering() {
    await goTo("#/");
    const id = await spawnRun("boil slowly", SLOW), card = page.locator(`[data-run="${id}"] .card`), look = await theme();
    const message = card.getByRole("button", { name: "Message" });
    await message.click();
    await type("fix the parser first");
    ok((await card.locator("form input").inputValue()) === "fix the parser first" && status(id) === "running", "words typed behind a click on Message stand in its field and end nothing", await card.innerText());
    await page.keyboard.press("Enter");
    await seen(() => ava("logs", id, "-o", "json").includes("fix the parser first"), "and are said to the run");
    await soon(() => hasFocus(card), "the card to have the keyboard again");
    await type("fix the next one: xylophone");
    await page.waitForTimeout(600); // longer than letters of a word are apart
    await page.keyboard.press("s");
    await type("x is next");
    ok((await card.locator("form input").inputValue()) === "x is next" && status(id) === "running" && (await theme()) === look, "words typed at its card end nothing; s opens the field", await card.innerText());
    await page.keyboard.press("Escape");
    await message.focus();
    await page.keyboard.press("x");
    const kept = card.getByRole("button", { name: "Keep it" });
    ok((await kept.count()) === 0, "a key is for the card, not for a button on it");
    await card.focus();
    await page.waitForTimeout(600);
    for (let i = 0; i < 4; i++) await page.keyboard.down("x"); // held down
    await page.keyboard.up("x");
    ok(status(id) === "running" && (await inView(kept)) && /Cancelling “boil slowly”/.test(await page.locator(".toast").last().innerText()), "x, however long it is held down, cancels in three seconds, and says so", await card.innerText());
    await page.waitForTimeout(600);
    await page.keyboard.press("x");
    ok((await kept.count()) === 1, "x once more is no change of mind");
    await kept.click();
    ok((await kept.count()) === 0 && (await page.locator(".toast", { hasText: "Cancelling" }).count()) === 0, "its button keeps it");
    await card.focus();
    await page.waitForTimeout(600);
    await page.keyboard.press("x");
    await kept.waitFor();
    await page.waitForTimeout(600);
    await page.keyboard.press("z");
    await soon(async () => (await kept.count()) === 0, "the undo");
    await page.waitForTimeout(3200); // longer than it would take
    ok(status(id) === "running", "and so does z");
    await card.getByRole("button", { name: "Cancel" }).dblclick();
    ok((await kept.count()) === 1, "a double click is one");
    await soon(() => status(id) === "cancelled", "its end");
    await page.getByRole("region", { name: /^Recently/ }).locator(`[data-run="${id}"]`).waitFor();
    ok((await page.locator(`[data-run="${id}"]`).count()) === 1, "and what was cancelled has ended");
  }

  async function letters() {
    await goTo("#/");
    const id = await spawnRun("boil on", SLOW), card = page.locator(`[data-run="${id}"] .card`);
    await card.waitFor();
    const off = async () => {
      await goTo("#/settings");
      await page.getByLabel(/single.letter/i).click();
      await goTo("#/");
    };
    await off();
    await page.reload();
    await card.waitFor();
    await card.focus();
    for (const key of ["x", "n", "?"]) await page.keyboard.press(key);
    ok((await card.getByRole("button", { name: "Keep it" }).count()) === 0 && status(id) === "running" && (await page.locator("dialog").count()) === 0, "letters that are turned off do nothing, also after a reload");
    await off();
    await card.focus();
    await page.keyboard.press("n");
    ok((await page.locator("dialog").count()) === 1, "and can be turned on again");
    await page.keyboard.press("Escape");
    await call("POST", `/api/v1/runs/${id}/cancel`, {});
  }

  async function writing() {
    await goTo("#/");
    await page.getByRole("banner").getByRole("button", { name: "New task" }).click();
    await type("next: explain the lid");
    const task = page.locator("dialog textarea"), folder = page.getByLabel("Folder it may read");
    ok((await task.inputValue()) === "next: explain the lid", "words typed behind a click on New task are the task");
    await folder.click({ clickCount: 3 });
    await type("/none/at/all", 0);
    await page.keyboard.press("Enter");
    const alert = page.locator("dialog").getByRole("alert");
    await alert.waitFor();
    const [field, told] = await Promise.all([folder.boundingBox(), alert.boundingBox()]);
    ok(/\/none\/at\/all/.test(await alert.innerText()) && (await inView(alert)) && told.y >= field.y + field.height && told.y - field.y - field.height < 30, "a folder that is none is told under its field, in view", await alert.innerText());
    await shot("refused");
    await page.keyboard.press("Escape");
    await soon(async () => (await page.locator("dialog").count()) === 0, "the end of the dialog");
    await page.getByRole("banner").getByRole("button", { name: "New task" }).click();
    ok((await task.inputValue()) === "next: explain the lid" && (await folder.inputValue()) === "/none/at/all", "Escape keeps what was written");
    await folder.click({ clickCount: 3 });
    await type(src, 0);
    await page.keyboard.press("Enter");
    const card = page.locator(`.ask.card[data-card^="P-"]`);
    await card.waitFor();
    await page.getByRole("banner").getByRole("button", { name: "New task" }).click();
    ok((await task.inputValue()) === "", "what was sent is no draft");
    await type("the lid\nthe spout", 0);
    await page.getByLabel("Each line is a task of its own").click();
    await page.getByLabel("Spending limit ($)").click();
    await type("much", 0);
    await page.keyboard.press("Control+Enter");
    ok(/“much” is not a number of dollars/.test(await alert.innerText()) && (await alert.boundingBox()).y > (await page.getByLabel("Spending limit ($)").boundingBox()).y, "what is no amount is told below it", await alert.innerText());
    await page.getByLabel("Spending limit ($)").click({ clickCount: 3 });
    await type("0.30", 0);
    await page.keyboard.press("Control+Enter");
    const group = card.filter({ hasText: "2 runs" });
    await group.waitFor();
    ok(/the lid · the spout/.test(await group.innerText()) && /\$0\.30/.test(await group.innerText()), "lines are tasks of a group, with one quote", await group.innerText());
    await page.waitForTimeout(400); // a click on what has just moved is none
    await group.getByRole("button", { name: "No", exact: true }).click();
    await soon(async () => (await card.count()) === 1, "the quote to go");
    await card.getByRole("button", { name: "No", exact: true }).click();
    const toast = page.locator(".toast").last();
    await toast.waitFor();
    await page.getByRole("button", { name: "Keys" }).click();
    await page.locator("dialog").waitFor();
    ok(await inView(page.locator("dialog .toast").last()), "what was done is told above a dialog");
    await page.keyboard.press("Escape");
    ava("memory", "add", "I like it hot");
    const row = JSON.parse(ava("memory", "list", "--json")).find((m) => m.text === "I like it hot").id;
    await goTo("#/memory");
    const memory = page.locator(`[data-memory="${row}"]`);
    await memory.getByRole("button", { name: "Edit" }).click();
    await page.keyboard.press("End");
    await type(", not next to boiling");
    ok((await memory.locator("input").inputValue()) === "I like it hot, not next to boiling", "words typed behind a click on Edit change what is remembered");
    await memory.getByRole("button", { name: "Erase" }).dblclick();
    ok(ava("memory", "list", "--json").includes(row), "a double click erases nothing");
    await twice(memory, "Erase");
    await soon(() => !ava("memory", "list", "--json").includes(row), "its end");
  }

  async function choosing() {
    await goTo("#/");
    const ask = (args) => script(`choose${Object.keys(args).length}`, { tool_calls: [{ name: "ask_person", args }] }, submit("tea"));
    const id = await spawnRun("ask me again", ask({ question: "Milk or lemon?", choices: ["milk", "lemon"], default: "milk" })), card = page.locator(`[data-ask^="${id}"]`);
    await card.getByText("Milk or lemon?").waitFor();
    const told = await card.innerText();
    ok(told.split("Milk or lemon?").length === 2 && /Without an answer by .*\d\d:\d\d.* it takes “milk”/.test(told), "a question stands on its card once, with when it answers itself and how", told);
    await card.getByLabel("Answer to: Milk or lemon?").click();
    await type("neither, next to some sugar");
    await page.keyboard.press("Enter");
    await seen(() => ava("logs", id, "-o", "json").includes('"answer":"neither, next to some sugar"'), "a question with choices takes other words");
    const { body } = await call("POST", "/api/v1/runs", { task: "ask before", role: "code_reviewer", cwd: src, ask_before: ["read_file"], confirmed: true, model: script("approve", { tool_calls: [{ name: "read_file", args: { path: "kettle.h" } }] }, submit("no lid")) });
    const asks = page.locator(`[data-ask^="${body.subagent_id}"]`), field = asks.getByRole("textbox");
    await field.click();
    await type("not here");
    await page.keyboard.press("Enter");
    ok(/answer yes or no/.test(await asks.getByRole("alert").innerText()) && (await field.inputValue()) === "not here", "what is neither yes nor no is told in the form, which keeps it");
    await goTo(`#/run/${body.subagent_id}`);
    ok(/waits for you/.test(await page.locator(".facts-line").innerText()) && (await page.locator("main .ask-text").count()) === 1, "its page says so, and asks once", await page.locator("main").innerText());
    await page.getByLabel(/^Answer to/).click();
    await page.keyboard.press("Home");
    await type("no: ");
    await page.keyboard.press("Enter");
    await seen(() => ava("logs", body.subagent_id, "-o", "json").includes("no: not here"), "a no takes its reason");
  }

  async function talking() {
    const said = (i) => ({ text: `Answer ${i}.\n\n${"It boils at a hundred degrees, and sooner on a mountain. ".repeat(6)}\n\nEnd ${i}.` });
    const { body } = await call("POST", "/api/v1/sessions", { model: script("chatty", ...Array.from({ length: 12 }, (_, i) => said(i + 1))), cwd: src });
    const id = body.session_id, messages = async () => (await call("GET", `/api/v1/sessions/${id}/messages`)).text;
    const say = async (i) => {
      await call("POST", `/api/v1/sessions/${id}/messages`, { text: `question ${i}` });
      await soon(async () => (await messages()).includes(`End ${i}.`), `answer ${i}`);
    };
    for (let i = 1; i <= 4; i++) await say(i);
    const list = page.locator("ol.said"), end = (i) => page.locator("ol.said p", { hasText: new RegExp(`^End ${i}\\.$`) });
    const visible = async (place) => (await inView(place)) && place.evaluate((e) => {
      const r = e.getBoundingClientRect(), box = e.closest("ol").getBoundingClientRect();
      return r.top >= box.top - 1 && r.bottom <= box.bottom + 1; // whole pixels are scrolled
    });
    for (const [width, height] of [[1440, 900], [390, 844]]) {
      await page.setViewportSize({ width, height });
      await goTo("#/logs");
      await goTo(`#/chat/${id}`);
      await end(4).waitFor();
      ok(await soon(() => visible(end(4)), "the newest line", 5000).catch(() => false), `a conversation opens at its newest line, ${width} pixels wide`, JSON.stringify([await end(4).boundingBox(), await list.boundingBox()]));
    }
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.getByLabel("Message Ava").click();
    await type("question 5");
    await page.keyboard.press("Enter");
    await end(5).waitFor();
    await seen(() => visible(end(5)), "what is answered is in view");
    const box = await list.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.wheel(0, -600);
    await soon(() => list.evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight > 300), "the reader to be above");
    const top = await list.evaluate((e) => e.scrollTop);
    await say(6);
    await end(6).waitFor();
    const pill = page.getByRole("button", { name: /^New below/ });
    ok((await list.evaluate((e) => e.scrollTop)) === top && (await inView(pill)), "who reads above is left there, and told that there is more below");
    await shot("below");
    await pill.click();
    await soon(() => visible(end(6)), "the newest line");
    ok((await pill.count()) === 0, "and comes to it by a click");
    await goTo("#/chat/nothing");
    ok(/There is no conversation nothing/.test(await soon(async () => /There is no/.test(await page.locator("main").innerText()) && page.locator("main").innerText(), "the refusal")), "a conversation that is not there is said to be none");
    await goTo("#/nowhere");
    ok(/There is no page “nowhere”/.test(await page.locator("main").innerText()), "and so is an address");
  }

  // A conversation from a task to its result, by words and by buttons.
  async function conversing() {
    const drink = script("drink", { tool_calls: [{ name: "ask_person", args: { question: "Milk or lemon?", choices: ["milk", "lemon"], default: "milk" } }] }, submit("It is tea, with **lemon**."));
    const propose = (task) => ({ text: "I could do that.", tool_calls: [{ name: "spawn_subagent", args: { task, role: "code_reviewer", model: drink } }] });
    const whole = `Look at ${"every lid of every kettle, and at what hangs on it; ".repeat(80)}to the END OF IT.`;
    const model = script("host", propose("make tea"), { text: "Shall I?" }, { text: "Only when you say so." }, { text: "Lemon it is." }, { text: "The tea is ready." }, propose(whole), { text: "That is long." },
      { text: "For the tea. Shall I rest?" }, ...Array.from({ length: 6 }, () => ({ text: "As you like." })));
    const id = (await call("POST", "/api/v1/sessions", { model, cwd: src })).body.session_id;
    const list = page.locator("ol.said"), card = list.locator(".ask"), field = page.getByLabel("Message Ava");
    const runs = async () => (await call("GET", "/api/v1/runs?all=1")).body.runs.filter((r) => r.session_id === id);
    // The end of it stands in the list and in the window, and is the last of the list.
    const last = (place) => place.evaluate((e) => {
      const r = e.getBoundingClientRect(), li = e.closest("li"), box = li.parentElement.getBoundingClientRect();
      return li === li.parentElement.lastElementChild && r.bottom <= box.bottom + 1 && r.bottom <= innerHeight && r.bottom > box.top;
    });
    const say = async (words) => {
      await field.click();
      await type(words);
      await page.keyboard.press("Enter");
    };
    await goTo(`#/chat/${id}`);
    await page.evaluate(() => { // no time goes by in what the page measures
      const now = performance.now();
      performance.now = () => now;
    });
    await say("make tea");
    await list.getByText("Shall I?").waitFor();
    await card.waitFor();
    ok((await list.locator("li").allInnerTexts()).findIndex((t) => t.includes("Shall I?")) === (await list.locator("li").count()) - 2 && (await last(card)), "a quote stands at the end of the conversation, behind the words about it, in view", await list.innerText());
    await say("yes");
    await page.evaluate(() => delete performance.now);
    await list.getByText("Only when you say so.").waitFor();
    ok((await runs()).length === 0 && !(await last(card)), "a yes within a second of its coming starts nothing, and behind other words it is not the last thing", await list.innerText());
    await card.getByRole("button", { name: "Yes", exact: true }).click();
    const here = list.locator("[data-run]");
    await here.waitFor();
    const question = list.locator(".ask", { hasText: "Milk or lemon?" });
    await question.waitFor();
    await seen(async () => (await list.locator("li:not(.open)", { hasText: "make tea" }).count()) === 2 && (await card.filter({ hasText: "Quote" }).count()) === 0 && (await here.getByRole("link", { name: /^Open/ }).count()) === 1, "its run stands where the quote was, once");
    ok((await runs()).length === 1 && (await card.count()) === 1, "its button starts it, once; what the run asks is a card of the conversation", await list.innerText());
    for (const [width, height] of [[390, 844], [1280, 900]]) {
      await page.setViewportSize({ width, height });
      const good = await soon(async () => (await last(question)) && (await inView(question.getByRole("button", { name: "lemon" }))), "the question", 5000).catch(() => false);
      ok(good, `at its end, in view, ${width} pixels wide`, JSON.stringify(await question.boundingBox()));
      await shot(`question-${width}`);
    }
    await page.waitForTimeout(1100);
    await say("lemon");
    await here.locator(".markdown").waitFor();
    ok(ava("logs", (await runs())[0].subagent_id, "-o", "json").includes('"answer":"lemon"') && /complete/i.test(await here.innerText()) && (await here.locator(".markdown strong").innerText()) === "lemon", "words behind the question are its answer; the result stands where the run does", await here.innerText());
    ok((await list.innerText()).split("It is tea").length === 2, "and nowhere else", await list.innerText());
    await list.locator("li.result").getByRole("button", { name: /^Show the result/ }).click();
    await seen(() => inView(here.locator(".markdown")), "a line where it came leads there");
    await page.getByRole("button", { name: /^New below/ }).count() && (await page.getByRole("button", { name: /^New below/ }).click());
    await list.evaluate((e) => e.scrollTo(0, e.scrollHeight));
    await list.getByText("The tea is ready.").waitFor();
    await seen(() => last(list.locator("li").last()), "what came last is in view");

    await say("and the lids");
    await list.getByText("That is long.").waitFor();
    await card.waitFor();
    for (const [width, height] of [[390, 844], [1280, 900]]) {
      await page.setViewportSize({ width, height });
      ok(await soon(async () => (await last(card)) && (await inView(card.getByRole("button", { name: "Yes", exact: true }))), "the quote", 5000).catch(() => false), `a long quote has its choices in view, ${width} pixels wide`);
      await shot(`quote-${width}`);
    }
    const words = card.locator(".ask-text");
    ok((await words.innerText()).replace(/\s+/g, " ").includes(whole) && (await words.evaluate((e) => e.scrollHeight > e.clientHeight)), "its task is there whole, and is scrolled within", await words.innerText());
    await page.waitForTimeout(1100);
    await say("what for?");
    await list.getByText("For the tea. Shall I rest?").waitFor();
    await page.waitForTimeout(1100);
    await say("yes");
    await list.getByText("As you like.").waitFor();
    ok((await runs()).length === 1, "a yes behind a question of hers is said to her and starts nothing", await list.innerText());
    // A card that is not what the quote is any more: its hash is another one.
    await page.route(/\/api\/v1\/asks$/, async (r) => {
      const answer = await r.fetch(), json = await answer.json();
      await r.fulfill({ response: answer, json: { asks: json.asks.map((a) => ({ ...a, hash: "0".repeat(64), text: "An older quote." })) } });
    });
    await page.reload();
    await card.getByText("An older quote.").waitFor();
    await page.unroute(/\/api\/v1\/asks$/); // the list is read again behind the answer
    await card.getByRole("button", { name: "Yes", exact: true }).click();
    await seen(async () => /no longer what was shown/.test(await card.getByRole("alert").innerText()) && (await words.innerText()).includes("END OF IT"), "a yes to what a quote is no longer is refused, and the card shows what it is");
    ok((await runs()).length === 1, "and nothing was started");
    await card.getByRole("button", { name: "Change" }).click();
    await card.getByLabel("Spend at most (cents)").click({ clickCount: 3 });
    await type("7");
    await card.getByLabel("Model calls at most").click({ clickCount: 3 });
    await type("9");
    await shot("change");
    await card.getByRole("button", { name: "Yes, with these" }).click();
    const second = await soon(async () => (await runs()).length === 2 && (await runs())[0], "the run");
    ok(second.limits.max_cost_cents === 7 && second.limits.max_iterations === 9, "fields that lower it start it with what they say", JSON.stringify(second.limits));
    await list.getByText(/^Confirmed, /).waitFor();
    const clipped = await list.locator("li").evaluateAll((all) => all.filter((e) => e.scrollHeight > e.clientHeight + 1).map((e) => e.innerText));
    ok(clipped.length === 0, "each row is seen whole", clipped.join("\n"));
    await question.waitFor(); // an open card stays, for those who look at it
    await page.waitForTimeout(600); // figures of the run come a moment later, and make its card higher
    ok(await last(question), "the newest stays in view where cards above it grow", JSON.stringify(await question.boundingBox()));
    await shot("conversation");
  }

  // Notes that come of words that are not the person's are Asks as well, also when they are answered elsewhere.
  async function noting() {
    const note = (text) => ({ tool_calls: [{ name: "memory_write", args: { text } }] });
    const model = script("notes", note("The kettle is red."), { text: "So it seems." }, note("The lid is green."), { text: "And that." });
    const id = (await call("POST", "/api/v1/sessions", { model, cwd: src })).body.session_id;
    const list = page.locator("ol.said"), card = list.locator("[data-ask]"), has = (text) => ava("memory", "list", "--json").includes(text);
    const say = async (words) => {
      await page.getByLabel("Message Ava").click();
      await type(words);
      await page.keyboard.press("Enter");
    };
    await goTo(`#/chat/${id}`);
    await say("look at it");
    await card.getByText("The kettle is red.").waitFor();
    ok(!has("kettle is red") && (await list.locator("li").last().locator("[data-ask]").count()) === 1, "a question about the memory is the last of the conversation", await list.innerText());
    await card.getByRole("button", { name: "Yes", exact: true }).click();
    await soon(async () => has("kettle is red") && (await card.count()) === 0, "the note");
    await say("and the lid");
    await card.getByText("The lid is green.").waitFor();
    const ask = await card.getAttribute("data-ask");
    ava("answer", ask, "no");
    await soon(async () => (await card.count()) === 0, "the card to go");
    ok(!has("lid is green") && (await list.locator("li.said.ava").getByText("The lid is green.").count()) === 1, "one that is answered elsewhere goes, and what was asked stays", await list.innerText());
    ava("memory", "rm", JSON.parse(ava("memory", "list", "--json")).find((m) => /kettle is red/.test(m.text)).id);
    await goTo("#/");
  }

  // Boards of any size, of runs that nobody has: one of each kind, its words as long as they come.
  async function columns() {
    const kinds = ["success", "running", "queued", "waiting", "error", "cancelled"], odd = [599.7, 3599.6, 7199.9];
    const made = (i) => {
      const s = kinds[i % kinds.length], ended = s === "success" || s === "error" || s === "cancelled";
      return {
        subagent_id: `S-${(0xabc000 + i).toString(16)}`, trace_id: "extraordinarily-unwearied-porcupine-of-the-north", role: "code_reviewer", task: `Task ${i}: src/${"a_long_name_without_any_blank/".repeat(4)}x.c`,
        model: "m", status: s, started_at: new Date(Date.now() - i * 1000).toISOString(), ...(ended ? { ended_at: new Date().toISOString() } : {}), iteration: 3, tokens_used: 123456, cost_cents: 12,
        elapsed_seconds: odd[i % 3], current_activity: `Reading ${"a_long_name_without_any_blank/".repeat(4)}`, limits: { timeout: 600, max_tokens: 1000000 }, session_id: "", user_id: "u", origin: "web", cwd: src,
      };
    };
    for (const n of [0, 3, 60]) {
      const board = watch(await context.newPage());
      const runs = Array.from({ length: n }, (_, i) => made(i));
      const long = "a_long_name_without_any_blank_that_goes_on_and_on", now = new Date().toISOString(), choices = ["one", long].map((id) => ({ id, label: id, effect: "" }));
      const asks = runs.filter((r) => r.status === "waiting").map((r) => ({ id: `${r.subagent_id}:c1`, kind: "question", hash: "0", session: "", run: r.subagent_id, text: `Which? ${long.repeat(3)}`, whole: true, choices, fields: [], since: now, until: now, state: "open" }));
      await board.route(/\/api\/v1\/asks$/, (r) => r.fulfill({ json: { asks } }));
      await board.route(/\/api\/v1\/runs\?/, (r) => r.fulfill({ json: { runs, next: "", counts: { total: n, by_status: {}, cost_cents: 0 } } }));
      await board.route(/\/api\/v1\/runs\/S-abc/, (r) => r.fulfill({ json: runs.find((x) => r.request().url().includes(x.subagent_id)) }));
      await board.goto(`${page.url().split("#")[0]}#/runs?as=board`);
      await board.waitForSelector(n ? ".card" : ".empty");
      for (const width of [390, 768, 1280, 1920]) {
        await board.setViewportSize({ width, height: 900 });
        const bad = await board.evaluate(() => {
          const bad = [], box = (e) => e.getBoundingClientRect(), name = (e) => `${e.className} ${e.textContent.slice(0, 30)}`;
          const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
          const columns = [...document.querySelectorAll(".column")];
          columns.forEach((c, i) => columns.slice(i + 1).forEach((d) => apart(box(c), box(d)) || bad.push(`${name(c)} lies over ${name(d)}`)));
          for (const c of columns)
            for (const e of c.querySelectorAll("*")) {
              if (e.closest(".visually-hidden") || e.parentElement.closest(".ellipsis") || !box(e).width) continue; // a text cut with "…" ends where its box ends
              if (box(e).right > box(c).right + 0.5 || box(e).left < box(c).left - 0.5) bad.push(`${name(e)} leaves its column`);
              const text = [...e.childNodes].some((t) => t.nodeType === 3 && t.data.trim());
              if (text && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === "visible" && getComputedStyle(e).display !== "inline") bad.push(`${name(e)} is cut`);
            }
          if (document.documentElement.scrollWidth > innerWidth) bad.push("the page is wider than its window");
          return bad;
        });
        ok(bad.length === 0, `with ${n} cards no column lies over another, ${width} pixels wide`, bad.slice(0, 8).join("\n"));
      }
      if (n === 60) {
        const times = (await board.locator(".card small .number").allInnerTexts()).join(" ");
        ok(/10m 0s/.test(times) && /1h 0m/.test(times) && /2h 0m/.test(times) && !/\b60[ms]\b/.test(times), "no time is said to have 60 seconds or minutes beside others", times.slice(0, 500));
      }
      await board.close();
    }
  }

  // A tab that computes answers nobody for a while.
  async function busyTab() {
    await goTo("#/");
    const url = page.url(), busy = page.evaluate(() => {
      for (const until = performance.now() + 2500; performance.now() < until;);
    });
    const second = watch(await context.newPage());
    await second.goto(url);
    await second.waitForSelector("nav");
    ok(true, "a second tab is signed in also while the first one is busy");
    await busy;
    await second.close();
  }

  return { changing, steering, letters, writing, choosing, talking, conversing, noting, columns, busyTab };
}
