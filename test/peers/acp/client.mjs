// An editor made of the protocol's own SDK: client.mjs FOLDER WORD prints one line of JSON, what came of a
// session that asked for WORD and of loading that session again.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.PEER_MODULES + "/");
const acp = await import(pathToFileURL(require.resolve("@agentclientprotocol/sdk")));
const [cwd, word] = process.argv.slice(2);
const program = spawn(process.env.AVA, ["acp", "--wait"], { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(program.stdin), Readable.toWeb(program.stdout));
const seen = { updates: 0, asked: [], text: "", replayed: "" };
let loading = false;

const editor = acp
	.client({ name: "test" })
	.onRequest(acp.methods.client.session.requestPermission, (ctx) => {
		seen.asked.push(ctx.params.options.map((o) => o.optionId));
		return { outcome: { outcome: "selected", optionId: "yes" } };
	})
	.onNotification(acp.methods.client.session.update, (ctx) => {
		const { sessionUpdate, content } = ctx.params.update;
		seen.updates++;
		if (loading && content?.text) seen.replayed += content.text;
		else if (sessionUpdate === "agent_message_chunk") seen.text += content.text;
	});

await editor.connectWith(stream, async (ava) => {
	const hello = await ava.request(acp.methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION });
	const { sessionId } = await ava.request(acp.methods.agent.session.new, { cwd, mcpServers: [] });
	const done = await ava.request(acp.methods.agent.session.prompt, {
		sessionId,
		prompt: [{ type: "text", text: `Find where ${word} is defined` }],
	});
	loading = true;
	await ava.request(acp.methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
	const { sessions } = await ava.request(acp.methods.agent.session.list, {});
	Object.assign(seen, { version: hello.protocolVersion, stop: done.stopReason, sessions: sessions.length });
});
console.log(JSON.stringify(seen));
program.stdin.end();
