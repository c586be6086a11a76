// Two runs beside each other, and runs that belong together. Parts of page.mjs, which hands in what they need.
export function compareParts({ page, ok, soon, seen, ava, call, spawnRun, script, submit, SLOW, src, goTo, text, shot, shared }) {
  const read = (file) => ({ tool_calls: [{ name: "read_file", args: { path: file } }] });
  const found = (summary, output) => ({ tool_calls: [{ name: "submit_result", args: { output, summary, confidence: 0.5 } }] });

  async function comparing() {
    const a = await spawnRun("look at the kettle", script("one", read("kettle.h"), found("It boils.", { lid: 1, boils: true }))), b = await spawnRun("look at the teapot", script("two", read("kettle.h"), read("teapot.h"), found("It pours.", { lid: 1, boils: false })), "--max-cost-cents", "7");
    for (const id of [a, b]) await soon(() => JSON.parse(ava("status", id, "--json")).status === "success", "its end");
    await goTo(`#/compare/${a}/${b}`);
    const facts = page.getByRole("table", { name: "How the two runs differ" });
    await facts.waitFor();
    const row = (name) => facts.getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: false }) });
    ok(/differs/.test(await row("Spending limit").innerText()) && /\$0\.07/.test(await row("Spending limit").innerText()) && !/differs/.test(await row("Role").innerText()), "rows that differ are marked", await facts.innerText());
    ok(/2\s+3 ×1\.5/.test(await row("Model calls").first().innerText()), "figures have their ratio", await row("Model calls").first().innerText());
    await seen(async () => (await page.getByRole("region", { name: "Output, first" }).locator(".del").allInnerTexts()).join().includes('"boils": true'), "lines of the output that differ are marked");
    ok((await page.getByRole("region", { name: "Output, second" }).locator(".add").allInnerTexts()).join().includes('"boils": false'), "on both sides");
    ok((await page.getByRole("region", { name: "What it was asked, second" }).locator("mark").allInnerTexts()).join().includes("teapot"), "and words of the task");
    const turns = page.locator("table.calls");
    ok((await turns.locator("tbody tr").nth(0).locator(".differs").count()) === 0 && /teapot\.h/.test(await turns.locator("tbody tr").nth(1).locator(".differs").last().innerText()), "calls stand side by side, turn by turn", await turns.innerText());
    shared.places.compare = `#/compare/${a}/${b}`;
    await page.getByRole("button", { name: "Swap" }).click();
    await seen(async () => page.url().endsWith(`#/compare/${b}/${a}`) && /teapot/.test(await page.getByRole("region", { name: "What it was asked, first" }).innerText()), "swapped, the other one is first");
    await goTo(`#/compare/${a}/S-000000`);
    await seen(async () => /There is no run S-000000/.test(await text("main")), "one that is not known is told");
    await goTo("#/compare");
    await seen(async () => /Choose two runs/.test(await text("main")), "and that there are none");
  }

  const begin = async (body) => (await call("POST", "/api/v1/groups", { confirmed: true, cwd: src, ...body })).body.group_id;
  async function grouping() {
    const rows = page.getByRole("list", { name: "Its runs" }).locator("[data-run]");
    const group = await begin({ max_cost_cents: 90, runs: [["first of the group", script("g1", read("kettle.h"), submit("done"))], ["second of the group", SLOW]].map(([task, model]) => ({ task, role: "code_reviewer", model })) });
    await goTo(`#/group/${group}`);
    await seen(async () => /2 runs in parallel/.test(await text("h1")) && /1 of 2 ended · \$0\.00 of \$0\.90/.test(await text("main")), "a group says how far it is and what it cost");
    ok(/first of the group\s*complete[^]*second of the group/.test((await rows.allInnerTexts()).join("\n").replace(/\n+/g, " ")), "with its runs in order", (await rows.allInnerTexts()).join("\n"));
    shared.places.group = `#/group/${group}`;
    await page.getByRole("button", { name: "Cancel all" }).click();
    await page.getByRole("button", { name: "Keep them" }).click();
    ok((await page.getByRole("button", { name: "Cancel all" }).count()) === 1, "cancelling can be taken back");
    // Runs come with their group, and in lists behind what happens to them.
    const places = [`**/api/v1/groups/${group}`, "**/api/v1/runs?*"];
    for (const place of places)
      await page.route(place, async (r) => {
        const answer = await r.fetch(), g = await answer.json();
        await r.fulfill(g.runs ? { json: { ...g, runs: g.runs.map((x) => ({ ...x, cost_cents: null })) } } : { response: answer });
      });
    await page.reload();
    await seen(async () => /ended · cost unknown of \$0\.90/.test(await text("main")), "a cost that is not known is not nothing");
    for (const place of places) await page.unroute(place);
    await page.reload();
    await page.getByRole("button", { name: "Cancel all" }).click();
    await seen(async () => /2 of 2 ended · 1 without success/.test(await text("main")) && (await page.getByRole("button", { name: "Cancel all" }).count()) === 0, "else all that run are cancelled");
    ok(/cancelled/.test(await rows.last().innerText()), "and it shows", await rows.last().innerText());
    const chain = await begin({ chain: true, runs: ["one", "two", "three"].map((n, i) => ({ task: `step ${n}`, role: "code_reviewer", model: i === 1 ? script("stuck", { text: "Done." }, { text: "Done." }, { text: "Done." }) : script("step", read("kettle.h"), submit("done")) })) });
    await goTo(`#/group/${chain}`);
    await seen(async () => /Chain of 3 runs[^]*› 2\s*step two[^]*step three[^]*not started[^]*One was not started, since a run before did not succeed/.test(await text("main")), "a chain that stopped says why");
    await rows.first().locator("xpath=ancestor::*[@data-card]").focus();
    for (const key of ["j", "Enter"]) await page.keyboard.press(key);
    await seen(async () => /#\/run\/S-/.test(page.url()) && /step two/.test(await text("main")), "j and Enter open a run of it");
    await goTo("#/group/G-000000");
    await seen(async () => /There is no group G-000000/.test(await text("main")), "one that is not known is told");
  }
  return { comparing, grouping };
}
