// Texts as JSON.parse reads them, for json_peers.py; in and out as json_echo.c. Beyond double: its largest.
import { readFileSync } from "node:fs";

const all = readFileSync(0), out = [];
const largest = (key, v) => (v === Infinity ? Number.MAX_VALUE : v === -Infinity ? -Number.MAX_VALUE : v);
for (let at = 0; at < all.length; ) {
  const end = all.indexOf(10, at), from = end + 1, to = from + Number(all.toString("latin1", at, end));
  try {
    out.push(JSON.stringify(JSON.parse(all.toString("utf8", from, to)), largest));
  } catch {
    out.push("!");
  }
  at = to;
}
process.stdout.write(out.join("\n") + "\n");
