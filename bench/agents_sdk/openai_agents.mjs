// N agents x K turns with @openai/agents, streaming, over chat completions.
// node openai_agents.mjs URL N TURNS
import { Agent, Runner, tool, setTracingDisabled, OpenAIChatCompletionsModel } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

const [url, n, turns] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
setTracingDisabled(true);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "bench", maxRetries: 0 });
const read = tool({
  name: "read_file",
  description: "Read a file.",
  parameters: z.object({ path: z.string() }),
  execute: async () => "1\tone\n2\ttwo\n3\tthree",
});
const runner = new Runner({ tracingDisabled: true });

async function agent(id) {
  const one = new Agent({
    name: "bench",
    instructions: "s".repeat(4096),
    model: new OpenAIChatCompletionsModel(client, "gpt-4o"),
    tools: [read],
  });
  const run = await runner.run(one, `Task ${id}.`, { stream: true, maxTurns: turns + 1 });
  for await (const event of run) void event;
  await run.completed;
}

const ends = await Promise.allSettled(Array.from({ length: n }, (_, id) => agent(id)));
const failed = ends.filter((end) => end.status === "rejected");
if (failed.length > 0) console.error(String(failed[0].reason));
console.log(JSON.stringify({ failed: failed.length }));
process.exit(failed.length > 0 ? 1 : 0);
