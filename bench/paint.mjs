// The time until the page shows its first cards, in Chromium; run by paint.py with the address of a sign-in.
// Prints a line of JSON: medians of first paint and of the first card over fresh loads, in ms, and how many cards.
import { createRequire } from "node:module";
import path from "node:path";

const [url, rounds] = process.argv.slice(2);
const { chromium } = createRequire(path.join(process.env.PEER_MODULES, "package.json"))("playwright-core");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
await page.addInitScript(() => {
  const see = new MutationObserver(() => {
    if (!document.querySelector("main .card")) return;
    see.disconnect();
    requestAnimationFrame(() => setTimeout(() => (window.firstCard = performance.now())));
  });
  see.observe(document, { childList: true, subtree: true });
});
await page.goto(url);
await page.waitForSelector("nav");
const all = [];
for (let i = 0; i < Number(rounds); i++) {
  await page.reload();
  await page.evaluate(async () => {
    while (!window.firstCard) await new Promise(requestAnimationFrame);
  });
  all.push(await page.evaluate(() => ({
    paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
    card: window.firstCard,
    cards: document.querySelectorAll("main .card").length,
  })));
}
await browser.close();
const middle = (k) => all.map((x) => x[k]).sort((a, b) => a - b)[all.length >> 1];
console.log(JSON.stringify({ paint: middle("paint"), card: middle("card"), cards: middle("cards") }));
