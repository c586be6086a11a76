// N agents x K turns with Anthropic's own SDK: messages.stream() and the usual
// tool loop around it. node anthropic.mjs URL N TURNS
import Anthropic from "@anthropic-ai/sdk";

const [url, n, turns] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const client = new Anthropic({ baseURL: url, apiKey: "bench", maxRetries: 0 });
const system = "s".repeat(4096);
const tools = [
  {
    name: "read_file",
    description: "Read a file.",
    input_schema: { type: "object", properties: { path: { type: "string" } } },
  },
];

async function agent(id) {
  const messages = [{ role: "user", content: `Task ${id}.` }];
  for (let turn = 1; ; turn++) {
    const stream = client.messages.stream({
      model: "claude-haiku-4-5", max_tokens: 2048, system, tools, messages,
    });
    const reply = await stream.finalMessage();
    if (turn === turns) return;
    messages.push({ role: "assistant", content: reply.content });
    messages.push({
      role: "user",
      content: reply.content
        .filter((block) => block.type === "tool_use")
        .map((block) => ({
          type: "tool_result", tool_use_id: block.id, content: "1\tone\n2\ttwo\n3\tthree",
        })),
    });
  }
}

const ends = await Promise.allSettled(Array.from({ length: n }, (_, id) => agent(id)));
const failed = ends.filter((end) => end.status === "rejected");
if (failed.length > 0) console.error(String(failed[0].reason));
console.log(JSON.stringify({ failed: failed.length }));
process.exit(failed.length > 0 ? 1 : 0);
