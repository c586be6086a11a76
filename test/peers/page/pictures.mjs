// Pictures of a page without runs, at four widths and in both themes, compared with those of test/golden/page, an eighth as wide and
// high: what moves, goes or lies over something else is found, and another release of a font is not. WRITE=1 makes them anew.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const { SRCDIR, WRITE } = process.env;
const folder = path.join(SRCDIR, "test/golden/page");
const WIDTHS = [390, 768, 1280, 1920], VIEWS = { inbox: "#/", runs: "#/runs", chat: "#/chat", costs: "#/costs", memory: "#/memory", settings: "#/settings", none: "#/nowhere" };
const FAR = 40, MOST = 0.005; // of 255: a point that is another one; the part of all points that may be

export function picturesParts({ page, context, ok, goTo }) {
  async function pictures() {
    const eye = await context.newPage(); // which looks at pictures: points of one, and a picture of points
    const small = (png) => eye.evaluate(async (src) => {
      const image = new Image();
      image.src = src;
      await image.decode();
      const canvas = document.createElement("canvas"), of = canvas.getContext("2d"), by = image.width > 300 ? 8 : 1;
      of.imageSmoothingQuality = "high";
      [canvas.width, canvas.height] = [Math.round(image.width / by), Math.round(image.height / by)];
      of.filter = "grayscale(1)";
      of.drawImage(image, 0, 0, canvas.width, canvas.height);
      const { data } = of.getImageData(0, 0, canvas.width, canvas.height);
      return { png: canvas.toDataURL().split(",")[1], points: [...data].filter((_, i) => i % 4 === 0) };
    }, `data:image/png;base64,${png}`);
    if (WRITE) mkdirSync(folder, { recursive: true });
    for (const theme of ["light", "dark"])
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 });
        const odd = [];
        for (const [name, hash] of Object.entries(VIEWS)) {
          await goTo(hash);
          await page.evaluate((t) => (document.documentElement.dataset.theme = t), theme);
          const file = path.join(folder, `${name}-${width}-${theme}.png`);
          let other = 1;
          // On a busy machine a view is not whole at once.
          for (let tries = 0; other > MOST && tries < (WRITE ? 1 : 30); tries++) {
            await page.waitForTimeout(300);
            const is = await small((await page.screenshot({ mask: [page.locator("dd, code, select")], maskColor: "#808080" })).toString("base64"));
            if (WRITE) writeFileSync(file, Buffer.from(is.png, "base64"));
            const was = existsSync(file) ? await small(readFileSync(file).toString("base64")) : { points: [] };
            other = was.points.length === is.points.length ? is.points.filter((p, i) => Math.abs(p - was.points[i]) > FAR).length / is.points.length : 1;
          }
          if (other > MOST) odd.push(`${name}: ${(100 * other).toFixed(1)} % of its points`);
        }
        ok(odd.length === 0, `views look as they did, ${width} pixels wide, ${theme}`, odd.join("\n"));
      }
    await page.evaluate(() => delete document.documentElement.dataset.theme);
    await eye.close();
  }
  return { pictures };
}
