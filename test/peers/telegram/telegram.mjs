// Pairing, a quote answered by a button, its run and its result, with the server and the client of
// telegram-test-api. Run by test_telegram_peer.sh; prints `ok N - name` lines.
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import path from "node:path";
import { promisify } from "node:util";

const { AVA, T, PEER_MODULES, XDG_CONFIG_HOME } = process.env;
const TelegramServer = createRequire(path.join(PEER_MODULES, "package.json"))("telegram-test-api");
const TOKEN = "4712:AAkettle_0123456789abcdefghijklmnop";

let count = 0, failed = 0;
function ok(good, name, more = "") {
  count++;
  if (!good) failed++;
  console.log(`${good ? "ok" : "not ok"} ${count} - ${name}`);
  if (!good) console.log(String(more).slice(0, 2000).replace(/^/gm, "# "));
}
// The service is in this process: it must go on meanwhile.
const ava = async (...words) => (await promisify(execFile)(AVA, words, { cwd: path.join(T, "src") })).stdout;

const port = await new Promise((done) => {
  const s = createServer().listen(0, "127.0.0.1", () => {
    const { port } = s.address();
    s.close(() => done(port));
  });
});
const server = new TelegramServer({ port, host: "127.0.0.1", storeTimeout: 600 });
await server.start();
writeFileSync(path.join(XDG_CONFIG_HOME, "ava/config.yaml"), `telegram:\n  url: http://127.0.0.1:${port}\n  pace_ms: 0\n  edit_ms: 200\n`);
writeFileSync(path.join(XDG_CONFIG_HOME, "ava/env"), `TELEGRAM_BOT_TOKEN=${TOKEN}\n`, { mode: 0o600 });

const person = server.getClient(TOKEN, { userId: 77, chatId: 77 });
// The newest message to a chat whose text fits, as it stands now.
const shown = (fits, chat = 77) => server.storage.botMessages.filter((u) => String(u.message.chat_id) === String(chat) && fits.test(u.message.text)).at(-1);
async function wait(fits, what) {
  for (let i = 0; i < 600; i++) {
    const there = shown(fits);
    if (there) return there;
    await new Promise((r) => setTimeout(r, 50));
  }
  throw new Error(`${what} did not come; there is: ${JSON.stringify(server.storage.botMessages.map((u) => u.message.text))}`);
}

try {
  const code = String(JSON.parse(await ava("telegram", "pair", "--json")).code);
  ok(/\d{4}/.test(code), "a code is had from a daemon that has just reached the service", code);
  const stranger = server.getClient(TOKEN, { userId: 78, chatId: 78 });
  await stranger.sendMessage(stranger.makeMessage("find where the kettle boils"));
  await person.sendMessage(person.makeMessage(code));
  const hello = await wait(/./, "a greeting");
  ok(true, `the code pairs: "${hello.message.text.split("\n")[0]}"`);
  await person.sendMessage(person.makeMessage("Review kettle.c: where does the kettle boil?"));
  const quote = await wait(/I'll spawn/, "a quote");
  const buttons = quote.message.reply_markup.inline_keyboard.flat();
  ok(buttons.some((b) => b.text === "Yes") && buttons.every((b) => Buffer.byteLength(b.callback_data) <= 64), "a task is a quote with buttons", JSON.stringify(buttons));
  const press = (data) => person.sendCallback(person.makeCallbackQuery(data, { message: { message_id: quote.messageId, text: quote.message.text } }));
  const yes = buttons.find((b) => b.text === "Yes").callback_data;
  await press(yes);
  await press(yes);
  const result = await wait(/From S-/, "a result");
  ok(/`?ava result S-/.test(result.message.text), "yes starts it, and its result comes", result.message.text);
  const runs = JSON.parse(await ava("ps", "-a", "--json"));
  ok(runs.length === 1 && runs[0].status === "success", "two presses are one run", JSON.stringify(runs));
  ok(!shown(/./, 78), "who is not paired hears nothing");
  ok(/Confirmed: S-/.test(shown(/I'll spawn/).message.text), "and the quote says what became of it", shown(/I'll spawn/).message.text);
  await person.sendCommand(person.makeCommand("/runs"));
  await wait(new RegExp(runs[0].subagent_id), "the list");
  ok(true, "/runs lists it");
} catch (e) {
  ok(false, "the conversation", e.stack);
}
console.log(`1..${count}`);
await server.stop();
process.exit(failed ? 1 : 0);
