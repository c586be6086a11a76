// The page while runs are at work, in Chromium; run by paint.py with the address of a sign-in. Prints a line of JSON about
// one of `board` (where many runs change), `run` (one that has many events and gets more), `list` (of many runs, scrolled
// from end to end). Busy: the part of the time that the page's main thread had tasks, by Chromium's own count.
import { createRequire } from "node:module";
import path from "node:path";

const [url, what, place, seconds] = process.argv.slice(2);
const { chromium } = createRequire(path.join(process.env.PEER_MODULES, "package.json"))("playwright-core");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
// Frames are counted where it scrolls: to ask for each of them is work of its own.
await page.addInitScript(() => {
  window.longest = 0;
  window.blocked = 0;
  window.frames = 0;
  window.keys = [];
  new PerformanceObserver((list) => {
    for (const e of list.getEntries()) {
      window.longest = Math.max(window.longest, e.duration);
      window.blocked += e.duration;
    }
  }).observe({ type: "longtask" });
  addEventListener("keydown", (e) => requestAnimationFrame(() => setTimeout(() => window.keys.push(performance.now() - e.timeStamp))), true);
});
await page.goto(url);
await page.waitForSelector("nav");
await page.evaluate((hash) => (location.hash = hash), place);
await page.waitForTimeout(3000);
const devtools = await page.context().newCDPSession(page);
await devtools.send("Performance.enable");
const tasks = async () => (await devtools.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value;
await page.evaluate(() => (window.longest = window.blocked = window.frames = 0));
const began = Date.now(), were = await tasks();
if (what === "list") {
  await page.evaluate(async (ms) => {
    const el = [...document.querySelectorAll("main, main *")].filter((e) => e.scrollHeight > e.clientHeight + 50 && /auto|scroll/.test(getComputedStyle(e).overflowY)).sort((a, b) => b.scrollHeight - a.scrollHeight)[0];
    for (const until = performance.now() + ms; performance.now() < until; ) {
      el.scrollTop = el.scrollTop + el.clientHeight * 0.4 >= el.scrollHeight - el.clientHeight ? 0 : el.scrollTop + el.clientHeight * 0.4;
      await new Promise(requestAnimationFrame);
      window.frames++;
    }
  }, seconds * 1000);
} else {
  while (Date.now() < began + seconds * 1000) {
    await page.waitForTimeout(600);
    await page.keyboard.press("j");
  }
}
const took = (Date.now() - began) / 1000, busy = ((await tasks()) - were) / took;
const seen = await page.evaluate(() => ({ longest: window.longest, blocked: window.blocked / 1000, frames: window.frames, keys: window.keys.sort((a, b) => a - b) }));
await browser.close();
console.log(JSON.stringify({ busy, fps: seen.frames / took, longest: seen.longest, blocked: seen.blocked, key: seen.keys[seen.keys.length >> 1] ?? null, slowest_key: seen.keys.at(-1) ?? null }));
