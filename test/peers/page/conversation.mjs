// The golden conversation (test/golden/conversation) as a person sees it on the page: each row of it when it came.
// Compared with page.txt, or written there anew where there is an argument; and that has the sentences of terminal.txt.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";

const { AVA, AVA_DATA_ROOT, CHROMIUM, PEER_MODULES, SRCDIR, T } = process.env;
const { chromium } = createRequire(path.join(PEER_MODULES, "package.json"))("playwright-core");
const golden = path.join(SRCDIR, "test/golden/conversation");
const read = (name) => readFileSync(path.join(golden, name), "utf8");
let count = 0;
function ok(good, name, more = "") {
  console.log(`${good ? "ok" : "not ok"} ${++count} - ${name}`);
  if (!good) console.log(String(more).slice(0, 3000).replace(/^/gm, "# "));
  process.exitCode ||= good ? 0 : 1;
}
const begin = (body) => new Promise((done, fail) => {
  const q = request({ socketPath: `${AVA_DATA_ROOT}/ava.sock`, method: "POST", path: "/api/v1/sessions", headers: { "Content-Type": "application/json" } }, (a) => {
    let text = "";
    a.on("data", (d) => (text += d)).on("end", () => done(JSON.parse(text)));
  });
  q.on("error", fail).end(JSON.stringify(body));
});
// A text without the parts that differ each time.
function plain(text) {
  text = text.replaceAll(T, "T");
  for (const letter of "PSM") [...new Set(text.match(new RegExp(`${letter}-[0-9a-f]{6}\\b`, "g")))].forEach((id, n) => (text = text.replaceAll(id, `${letter}-${n + 1}`)));
  return text.replace(/~[\d-]+ minutes?/g, "~1 minute").replace(/(\(|· )\d+(\.\d+)?s(?=, | ·)/g, "$11s").replace(/\d{4}-\d\d-\d\d/g, "DAY").replace(/\b\d?\d:\d\d(:\d\d)?( [AP]M)?/g, "12:00").replace(/^\d+[mh] \d+[sm]$/gm, "9m 59s").replace(/^until [A-Z][a-z]{2} \d+$/gm, "9m 59s").replace(/by [A-Z][a-z]{2} \d+, 12/g, "by 12");
}
const words = (text) => plain(text).replace(/[\s*`│|]+/g, "");

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 3000 } });
await page.goto(execFileSync(AVA, ["dashboard", "--no-open"], { encoding: "utf8" }).trim());
await page.locator(".link", { hasText: "Live" }).waitFor();
const { session_id: id } = await begin({ cwd: path.join(T, "src") });
await page.evaluate((s) => (location.hash = `#/chat/${s}`), id);
const field = page.getByLabel("Message Ava"), seen = new Set();
// Each row with its number, as it is now: two of them may have the same words.
const rows = () => page.locator("ol.said > li").evaluateAll((all) => all.map((li) => [(li.dataset.row ??= window.rows = (window.rows ?? 0) + 1), li.innerText]));
const fresh = async () => (await rows()).filter(([n, text]) => !seen.has(`${n} ${plain(text)}`));
let all = "";
for (const [said, last] of JSON.parse(read("said.json"))) {
  await field.fill(said);
  await page.keyboard.press("Enter");
  for (let came = [], until = Date.now() + 60000; ; ) {
    came = (await fresh()).map(([, text]) => text);
    if (came.some((t) => t.includes(last)) && (last !== "Proceed?" || (await page.locator(".ask").count()) > 0)) break;
    if (Date.now() > until) throw new Error(`${last} is not seen: ${came.join("\n")}`);
    await page.waitForTimeout(50);
  }
  await page.waitForTimeout(1500); // nobody reads faster
  for (const [n, text] of await fresh()) {
    all += text + "\n----\n";
    seen.add(`${n} ${plain(text)}`);
  }
}
await browser.close();
all = plain(all);
if (process.argv[2]) writeFileSync(path.join(golden, "page.txt"), all);
ok(read("page.txt") === all, "the page shows the golden conversation", all);
// The lines of the terminal, but for who speaks and how to answer there.
const lines = read("terminal.txt").split("\n").filter((l) => /^(•|Ava: |I'll|Quote|Proceed)/.test(l) && !l.startsWith("Ava (")).map((l) => l.replace(/^(Ava|Quote [^:]*): /, ""));
const missing = lines.filter((l) => !words(all).includes(words(l)));
ok(!missing.length, "in the words of the terminal", missing.join("\n"));
console.log(`1..${count}`);
