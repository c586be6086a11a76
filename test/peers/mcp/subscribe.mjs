// The client of the protocol's own SDK, of the era with a handshake, subscribes to resources of ava: over `ava mcp`
// and over HTTP. Prints a line a check: `ok NAME` or `not ok NAME`. Expects PEER_MODULES, AVA.
//
//	node subscribe.mjs URL TOKEN FOLDER
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [, , url, token, cwd] = process.argv;
const from = createRequire(`${process.env.PEER_MODULES}/package.json`);
const load = (name) => import(pathToFileURL(from.resolve(`@modelcontextprotocol/sdk/${name}.js`)));
const { Client } = await load("client/index");
const { StdioClientTransport } = await load("client/stdio");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp");
const { ResourceUpdatedNotificationSchema } = await load("types");
const check = (good, name) => console.log(good ? "ok" : "not ok", name);
const patience = 120000;

for (const [name, transport] of [
	["ava mcp", new StdioClientTransport({ command: process.env.AVA, args: ["mcp"], env: process.env })],
	["HTTP", new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })],
]) {
	const client = new Client({ name: "subscriber", version: "1" });
	let heard;
	client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => heard?.(params.uri));
	const changes = async () => {
		const update = new Promise((hears) => (heard = hears));
		const none = new Promise((hears) => setTimeout(hears, patience, "nothing").unref());
		const { structuredContent } = await client.callTool({ name: "ava_propose", arguments: { task: "where?", role: "code_reviewer", cwd } });
		execFileSync(process.env.AVA, ["reject", structuredContent.proposal_id], { stdio: "ignore" });
		return Promise.race([update, none]);
	};
	await client.connect(transport);
	check(client.getServerCapabilities().resources.subscribe, `${name}: resources can be subscribed to`);
	await client.subscribeResource({ uri: "ava://run/S-123456" });
	await client.subscribeResource({ uri: "ava://runs" });
	check((await changes()) === "ava://runs", `${name}: what changes is told`);
	await client.unsubscribeResource({ uri: "ava://run/S-123456" });
	check((await changes()) === "ava://runs", `${name}: another that ends takes nothing away`);
	await client.unsubscribeResource({ uri: "ava://runs" });
	await client.close();
}
