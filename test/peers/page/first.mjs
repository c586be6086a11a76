// first.mjs URL: the page as a person sees it who opens it for the first time. PEER_MODULES, CHROMIUM: as for page.mjs.
import { createRequire } from "node:module";
import path from "node:path";

const { chromium } = createRequire(path.join(process.env.PEER_MODULES, "package.json"))("playwright-core");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const page = await browser.newPage();
await page.goto(process.argv[2].trim());
await page.getByText("No runs yet").waitFor({ timeout: 60000 });
await page.locator(".link", { hasText: "live" }).waitFor({ timeout: 60000 });
await browser.close();
