// Changes of a run: read, commented on, and applied. Parts of page.mjs, which hands in what they need.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const { AVA } = process.env;

export function changesParts({ page, ok, soon, seen, ava, call, run, spawnRun, script, submit, SLOW, T, goTo, text, shot, shared }) {
  const repo = path.join(T, "repo");
  async function changing(task, name, ...calls) {
    const { stdout } = await run(AVA, ["run", task, "--role", "code_reviewer", "--grant", "rw", "--yes", "--background", "--json", "--model",
      script(name, { tool_calls: [{ name: "read_file", args: { path: "kettle.c" } }] }, ...(calls.length ? [{ tool_calls: calls }] : []), submit("better"))], { cwd: repo });
    const id = JSON.parse(stdout.trim().split("\n").at(-1)).subagent_id;
    await soon(() => JSON.parse(ava("status", id, "--json")).status === "success", "its end");
    return id;
  }
  const write = (name, content) => ({ name: "write_file", args: { path: name, content } });
  const inView = (what) => what.evaluate((el) => {
    const r = el.getBoundingClientRect();
    return r.height > 0 && r.top >= 0 && r.bottom <= innerHeight && r.left >= 0 && r.right <= innerWidth;
  });
  const file = (name) => page.locator("details.file").filter({ has: page.locator("summary", { hasText: name }) });

  async function changes() {
    mkdirSync(repo);
    writeFileSync(path.join(repo, "kettle.c"), "int boil;\n-- a\nint lid;\n");
    execFileSync("git", ["init", "-q", repo]);
    const id = (shared.patched = await changing("make it better", "patch", { name: "edit_file", args: { path: "kettle.c", old_string: "int boil;\n-- a\n", new_string: "int boils;\n++ b\n" } },
      write("lid.c", "int x;\n"), write("the table.txt", "row\n".repeat(450)), write(".envrc", "x"), { name: "run_bash", args: { command: `echo '<b>it boils' >/ava/work/note.txt; head -c 9 /dev/zero >${repo}/blob` } }));
    await goTo(`#/run/${id}`);
    const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "work/note.txt" }).click()]);
    ok(saved.suggestedFilename() === "note.txt" && readFileSync(await saved.path(), "utf8") === "<b>it boils\n", "a file that a run leaves is saved as it is", saved.suggestedFilename());
    await goTo(`#/run/${id}/changes`);
    await page.locator(".diff .add").first().waitFor();
    ok((await page.locator(".diff .add").allInnerTexts()).join() === "int boils;,++ b,int x;" && (await page.locator(".diff .del").allInnerTexts()).join() === "int boil;,-- a",
      "a patch is shown line by line, also where lines look like heads", await text("main"));
    ok((await page.locator(".diff mark").allInnerTexts()).join() === "boil,boils", "the words that differ within a line are marked", (await page.locator(".diff mark").allInnerTexts()).join());
    const list = page.getByRole("navigation", { name: "Files that change" });
    ok(/kettle.c\s*\+2 −2[^]*lid.c\s*\+1 −0[^]*the table.txt\s*\+450 −0/.test(await list.innerText()) && (await inView(list)), "beside the list of its files", await list.innerText());
    const left = page.locator("details", { hasText: "Left out" });
    ok(/^Left out: 1 file\s+blob\s+binary/.test(await left.innerText()), "with what was left out of it, and why", await left.innerText());
    ok((await file("the table.txt").getAttribute("open")) === null, "a long file is folded");
    await list.getByRole("link", { name: "the table.txt" }).click();
    await seen(() => inView(file("the table.txt").locator(".line").first()), "until it is asked for: then it is open, and in view");
    ok(page.url().endsWith(`#/run/${id}/changes/the%20table.txt`), "and the address says so", page.url());
    ok((await page.locator(".diff.two").count()) > 0, "a wide page shows both sides beside each other");
    await page.getByRole("button", { name: "Side by side" }).click();
    ok((await page.locator(".diff.two").count()) === 0, "or one below the other");
    await page.setViewportSize({ width: 390, height: 844 });
    const choice = page.getByRole("combobox", { name: "File" });
    await choice.selectOption("lid.c");
    await seen(async () => (await inView(file("lid.c").locator(".line").first())) && !(await list.isVisible()), "on a phone the file is chosen from a list");
    await page.setViewportSize({ width: 1440, height: 900 });
    ok(readFileSync(path.join(repo, "kettle.c"), "utf8").includes("-- a"), "and nothing is written by a look");
    await shot("patch");
  }

  // Words about lines, with the keyboard alone and with the mouse; the run goes on from them.
  async function commenting() {
    const id = shared.patched, notes = page.getByRole("region", { name: "Comments" });
    await goTo(`#/run/${id}/changes`);
    await file("kettle.c").locator("button.no").first().waitFor();
    await file("kettle.c").locator("summary").focus();
    for (const key of ["Tab", "ArrowDown", "ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    await page.keyboard.type("yes, but x");
    ok((await page.getByLabel("Comment on kettle.c:2").inputValue()) === "yes, but x", "Enter on a line's number opens a field, which has the focus", await text("main"));
    await page.keyboard.press("Control+Enter");
    ok(/^Line 2: comment$/.test(await page.evaluate(() => document.activeElement.getAttribute("aria-label"))), "and gives the focus back", await page.evaluate(() => document.activeElement.outerHTML));
    ok(JSON.parse(ava("asks", "--json")).some((a) => a.id === `${id}:patch`), "what is typed there answers nothing");
    await goTo("#/runs");
    await goTo(`#/run/${id}/changes`);
    await seen(async () => (await file("kettle.c").locator(".note").innerText()).includes("yes, but x"), "a comment survives leaving the view");
    await file("lid.c").locator("button.no").first().click();
    await page.keyboard.type("name it lid");
    await page.keyboard.press("Escape");
    await seen(async () => /2 comments/.test(await notes.innerText()) && (await inView(notes)), "comments are gathered, in view");
    await file("kettle.c").locator("button.no").first().click();
    await page.keyboard.press("Escape");
    ok((await page.locator(".note").count()) === 2, "a field that was left empty is none");
    await shot("comments");
    await notes.getByRole("button", { name: "Resume with these…" }).click();
    await seen(() => /#\/inbox\/P-/.test(page.url()), "they become a quote for going on");
    const quote = page.url().split("/").at(-1), { body } = await call("GET", `/api/v1/asks/${quote}`);
    ok(/kettle\.c:2\n *\| > \+\+ b\n *\| yes, but x\n[ |\n]*lid\.c:1\n *\| > int x;\n *\| name it lid/.test(body.text) && body.text.includes(id), "which has place, line and words of each", body.text);
    await call("POST", `/api/v1/asks/${quote}`, { choice: "no" });
    await goTo(`#/run/${id}/changes`);
    await file("lid.c").locator("button.no").first().waitFor();
    ok((await page.locator(".note").count()) === 0, "and are sent once");
  }

  async function applying() {
    const id = shared.patched, { body } = await call("GET", `/api/v1/runs/${id}/patch`), lid = path.join(repo, "lid.c"), kettle = path.join(repo, "kettle.c");
    // The Ask of the patch, in the conversation behind the result, shows the very patch that is written.
    const talk = JSON.parse(ava("asks", "--json")).find((a) => a.id === `${id}:patch`).session;
    await goTo(`#/chat/${talk}`);
    await seen(async () => (await page.locator(`[data-ask="${id}:patch"]`).innerText()).includes("+++ b"), "a conversation has the patch behind its result");
    // A card of something else by now: the daemon has another hash.
    const card = page.locator(`[data-ask="${id}:patch"]`), one = /\/api\/v1\/asks\/S-[^/]*patch$/, write = card.locator("[data-act=yes]");
    await page.route(one, async (r) => {
      if (r.request().method() === "POST") return r.continue();
      const answer = await r.fetch(), json = await answer.json();
      await r.fulfill({ response: answer, json: { ...json, hash: "0".repeat(64), text: "S-1 (X) proposes to change 3 files in an older place" } });
    });
    await page.reload();
    await card.getByText("in an older place").waitFor();
    await write.click();
    ok((await write.innerText()) === "Write 3 files" && !(await card.getByRole("alert").count()), "a click there asks before files are written", await card.innerText());
    await page.unroute(one);
    await write.click();
    await seen(async () => /no longer what was shown/.test(await card.getByRole("alert").innerText()) && (await card.innerText()).includes("+++ b"), "what is no longer what was shown is shown anew");
    await goTo(`#/run/${id}/changes`);
    const apply = page.getByRole("button", { name: "Apply to repo…" }), dialog = page.getByRole("dialog", { name: "Apply to repo?" });
    await apply.click();
    ok((await dialog.innerText()).includes(`3 files in ${repo}`) && (await dialog.innerText()).includes(body.hash.slice(0, 12)), "Apply says first what is written where, with the hash of the patch", await dialog.innerText());
    await page.evaluate(async () => {
      document.querySelector("dialog [aria-label=Close]").click();
      await Promise.resolve();
      [...document.querySelectorAll("button")].find((b) => b.textContent === "Apply to repo…").click();
      await new Promise((done) => setTimeout(done, 100));
    });
    ok(await dialog.isVisible(), "a dialog that is opened again as soon as it was closed stays open");
    writeFileSync(kettle, "int other;\n");
    await dialog.getByRole("button", { name: "Apply" }).click();
    await seen(async () => /1 of 3 files clash/.test(await dialog.getByRole("alert").innerText()) && (await inView(dialog.getByRole("alert"))), "a file that changed since is told, where one looks");
    ok(!existsSync(lid), "and nothing is written");
    await shot("apply-clash");
    await page.keyboard.press("Escape");
    writeFileSync(kettle, "int boil;\n-- a\nint lid;\n");
    await apply.focus();
    await page.keyboard.press("Enter");
    await dialog.getByRole("button", { name: "Apply" }).focus();
    await page.keyboard.press("Enter");
    const written = page.getByText(`Written: 3 files in ${repo}.`);
    await written.waitFor();
    ok(readFileSync(kettle, "utf8").includes("++ b") && existsSync(lid) && (await inView(written)), "Apply writes it, and says so", await text("main"));
    ok((await apply.count()) === 0, "once");
    const newest = /items\?session=(?!.*after=)/; // which do not have it where much was said since
    await page.route(newest, (r) => r.fulfill({ json: { items: [] } }));
    await goTo("#/runs");
    await goTo(`#/run/${id}/changes`);
    await seen(() => written.isVisible(), "also when one comes back, however much was said since");
    await page.unroute(newest);
    await shot("applied");
  }

  async function unapplied() {
    const none = await changing("make it as it is", "unchanged");
    await goTo(`#/run/${none}/changes`);
    await seen(async () => /It changed no files/.test(await text("main")) && !/\brw\b|grant/.test(await text("main")), "a run that changed nothing says that, and no more");
    const working = await spawnRun("change it slowly", SLOW, "--grant", "rw");
    await goTo(`#/run/${working}/changes`);
    await seen(async () => /Its changes come when it ends/.test(await text("main")), "one at work says when they come");
    await call("POST", `/api/v1/runs/${working}/cancel`, {});
    const long = await changing("write a long table", "longpatch", write("long.txt", "a row of a long table\n".repeat(4000)));
    await goTo(`#/run/${long}/changes/long.txt`);
    await seen(async () => (await text("main")).includes(`In a terminal: ava apply ${long}`), "what is too long for its Ask names the command");
    ok((await page.getByRole("button", { name: /^Apply to/ }).count()) === 0, "and has no button");
    await soon(async () => (await file("long.txt").locator(".line").count()) === 1000, "the first lines");
    await page.getByRole("button", { name: "Show more lines" }).click();
    await seen(async () => (await file("long.txt").locator(".line").count()) === 2000, "its lines are shown as they are asked for");
    const left = await changing("write a note", "leftpatch", write("note.txt", "x\n"));
    await goTo(`#/run/${left}/changes`);
    await page.getByRole("button", { name: "Leave it" }).click();
    await seen(async () => /nothing was written/.test(await text("main")) && !existsSync(path.join(repo, "note.txt")), "what is left is not written");
    ok(!JSON.parse(ava("asks", "--json")).some((a) => a.id === `${left}:patch`), "and waits no more");
  }
  // Characters that hide or turn round what one reads are seen, in lines and in names; addresses have the names as they are.
  async function hiding() {
    const name = "li\u202ed.c", id = await changing("hide something", "hides", write(name, "int\u200b a; /* \u2066 */\tint b;\n")), marks = async (place) => (await place.locator("mark.hidden").allInnerTexts()).join();
    await goTo(`#/run/${id}/changes`);
    const part = page.locator("details.file"), line = part.locator(".diff .add");
    await line.waitFor();
    ok((await marks(line)) === "\\u{200b},\\u{2066}" && (await line.innerText()).includes("*/\tint b;") && (await inView(line.locator("mark").first())), "hidden characters of a line are marked", await line.innerText());
    ok((await marks(part.locator("summary"))) === "\\u{202e}" && (await marks(page.getByRole("navigation", { name: "Files that change" }))) === "\\u{202e}", "and those of a file's name", await part.innerText());
    await page.getByRole("button", { name: "Apply to repo…" }).click();
    ok((await marks(page.getByRole("dialog"))) === "\\u{202e}", "also where one says yes to it", await page.getByRole("dialog").innerText());
    await page.keyboard.press("Escape");
    await page.getByRole("navigation", { name: "Files that change" }).getByRole("link").click();
    ok(page.url().endsWith(encodeURIComponent(name)), "the address has the name as it is", page.url());
    await page.getByRole("button", { name: "Leave it" }).click();
  }
  return { changes, commenting, applying, unapplied, hiding };
}
