// Sessions of Claude Code. Parts of page.mjs, which hands in what they need.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";

export function claudeParts({ page, ok, soon, seen, run, T, goTo, text, hook }) {
  // Cards as somebody else's hook writes them; `at` is seconds from now.
  function card(session, agentId, at, more = {}) {
    const folder = path.join(process.env.CLAUDE_CONFIG_DIR, "agent-activity", session), iso = (s) => new Date(Date.now() + s * 1000).toISOString();
    mkdirSync(folder, { recursive: true });
    const { stopped, ...rest } = more;
    writeFileSync(path.join(folder, `.${agentId}`), JSON.stringify({ agentId, type: "worker", status: stopped == null ? "active" : "stopped", startedAt: iso(at), updatedAt: iso(stopped ?? at), ...(stopped == null ? {} : { stoppedAt: iso(stopped) }), ...rest }));
    renameSync(path.join(folder, `.${agentId}`), path.join(folder, `${agentId}.json`));
  }

  async function agentLog() {
    for (let i = 0; i < 10; i++) hook("SubagentStart", "log", `g${i}`, { agent_type: `T${i}` });
    hook("SubagentStop", "log", "g9", { agent_type: "T9", last_assistant_message: "**Found** it: " + "x".repeat(100) });
    await goTo("#/claude/log");
    await seen(async () => (await page.locator(".agentlog .agent").count()) === 8, "the Agent Log shows the 8 newest");
    ok(/^src/.test(await page.locator('.list a[href$="claude/log"]').innerText()) && /10 active|9 active/.test(await page.locator('.list a[href$="claude/log"]').innerText()), "the list says whose session it is, and how many are at work", await page.locator(".list").innerText());
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
    const counted = page.locator('.list a[href$="claude/ghosts"] small');
    await seen(async () => /2 active/.test(await counted.innerText()), "nor counted in the list");
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
    ok(/stopped, no signal for 5m/.test(await text("dialog")), "one that nobody saw stop is said to be so, and makes no ghost of the next", await text("dialog"));
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
    await goTo("#/claude");
    await seen(async () => (await page.locator('.list a[href$="claude/alone"]').count()) === 1, "a session that has tasks and no agents is in the list");
    await goTo("#/claude/alone");
    await seen(async () => /the only one/.test(await text("main")) && /2\.json\s+This file cannot be read: line 1/.test(await text("main")), "its board has both files, and says why one cannot be read");
    ok((await page.locator(".tree").count()) === 0, "and no empty list of agents");
    await goTo("#/claude");
    await seen(async () => (await page.locator(".agentlog .agent").count()) > 0 && (await page.locator(".list [aria-current]").count()) === 1, "where none is named the newest session that has agents is shown, and its Agent Log");
    await page.setViewportSize({ width: 390, height: 844 });
    await page.locator('.list a[href$="claude/alone"]').click();
    await soon(async () => (await page.locator(".list").isHidden()) && /the only one/.test(await text("main")), "the session alone");
    await page.getByRole("link", { name: "All sessions" }).click();
    await seen(() => page.locator('.list a[href$="claude/alone"]').isVisible(), "on a phone there is the list, or one of it with a way back");
    await page.setViewportSize({ width: 1440, height: 900 });
    await goTo("#/");
    await seen(async () => (await page.locator(".agentlog").count()) === 0, "elsewhere there is no Agent Log");
  }
  return { agentLog, ghosts, odd };
}
