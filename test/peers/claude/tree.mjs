// Claude Code's agents on the page while they work and when they have stopped; run by
// test_claude_code.sh. Prints a line a check: `ok NAME` or `not ok NAME`.
//
//	node tree.mjs SESSION AGENTS GO     AGENTS: the daemon's answer; GO: the file that lets them end
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const { AVA, CHROMIUM, PEER_MODULES, SHOTS } = process.env;
const [session, file, go] = process.argv.slice(2);
const { chromium } = createRequire(path.join(PEER_MODULES, "package.json"))("playwright-core");
const agents = JSON.parse(readFileSync(file, "utf8")).sort((a, b) => a.depth - b.depth);

function check(good, name, more = "") {
	console.log(good ? "ok" : "not ok", name);
	if (!good) console.error(`# ${name}: ${more}`);
}

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
const leaf = (n) => page.locator(`.tree > ul${" > li > ul".repeat(n)} > li > [data-agent="${agents[n].agentId}"]`);
async function shot(name) {
	if (SHOTS) await page.screenshot({ path: path.join(SHOTS, `${name}.png`) });
}

try {
	await page.goto(execFileSync(AVA, ["dashboard", "--no-open"], { encoding: "utf8" }).trim());
	await page.waitForSelector("nav");
	await page.evaluate((h) => (location.hash = h), `#/claude/${session}`);
	await leaf(2).waitFor();
	const shown = [];
	for (let n = 0; n < 3; n++) shown.push(await leaf(n).innerText());
	check((await page.locator(".tree [data-agent]").count()) === 3 && shown.every((s, n) => s.includes(agents[n].type) && s.includes(agents[n].description)),
		"the page has the tree of three, each below the one that spawned it", shown.join(" | "));
	check((await page.locator(".tree .dot.active").count()) === 3, "all of it at work");
	await page.locator(".tree").getByText("Bash until").waitFor();
	check(true, "with what the last one does");
	await shot("claude-active");
	writeFileSync(go, "");
	await page.locator(".tree .dot.stopped").nth(2).waitFor();
	for (let n = 0; n < 3; n++) await leaf(n).getByText(/tokens/).waitFor();
	check((await leaf(2).count()) === 1 && (await page.locator(".tree").innerText()).includes("The lid is on."), "and when they have stopped, without being asked, what they said and used", await page.locator(".tree").innerText());
	await leaf(2).click();
	check((await page.locator("dialog .markdown strong").innerText()) === "black", "one opens with its last words");
	await shot("claude-stopped");
} catch (e) {
	check(false, "the page", e.stack);
	await shot("claude-failed");
}
await browser.close();
