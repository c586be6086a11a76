// A door before ava's for conformance: it adds the token, and the tools of the test server that the scenarios of
// tasks call are proposals of ava, for runs that go by a script. Host and Origin pass as they come, but its own name
// becomes that of the daemon. Prints its port.
//
//	node door.mjs URL TOKEN FOLDER     FOLDER: for the scripts
import { writeFileSync } from "node:fs";
import http from "node:http";

const [, , url, token, folder] = process.argv;
const to = new URL(url);
const submit = { tool_calls: [{ name: "submit_result", args: { summary: "It is done.", output: {}, confidence: 1, caveats: [] } }] };
const ask = { tool_calls: [{ name: "ask_person", args: { question: "Delete it?", choices: ["yes", "no"] } }] };
const turns = {
	slow_compute: ({ seconds }) => [{ ...submit, delay_ms: seconds * 1000 }],
	failing_job: () => Array(12).fill({ text: "" }),
	confirm_delete: () => [ask, submit],
};
let scripts = 0;

// What is called in place of such a tool.
function instead({ name, arguments: given }) {
	if (name === "greet") return { name: "ava_status", arguments: { run: "S-000000" } };
	const script = `${folder}/script-${scripts++}.jsonl`;
	writeFileSync(script, turns[name](given).map((turn) => JSON.stringify(turn) + "\n").join(""));
	return { name: "ava_propose", arguments: { task: name, role: "code_reviewer", cwd: folder, model: `offline:${script}` } };
}

const server = http.createServer(async (req, res) => {
	const names = ["127.0.0.1", "localhost"].map((host) => `${host}:${server.address().port}`);
	const headers = { ...req.headers, authorization: `Bearer ${token}` };
	if (names.includes(headers.host)) headers.host = to.host;
	for (const name of names) headers.origin = headers.origin?.replace(name, to.host);
	if (!headers.origin) delete headers.origin;
	let body = "";
	for await (const part of req) body += part;
	try {
		const message = JSON.parse(body);
		if (message.method === "tasks/update") {
			// their form has other fields than that of a question
			for (const response of Object.values(message.params.inputResponses))
				if (response.content) response.content.answer = "yes";
			body = JSON.stringify(message);
		}
		if (message.method === "tools/call" && (message.params.name === "greet" || turns[message.params.name])) {
			Object.assign(message.params, instead(message.params));
			if (headers["mcp-name"]) headers["mcp-name"] = message.params.name;
			body = JSON.stringify(message);
		}
		headers["content-length"] = Buffer.byteLength(body);
		delete headers["transfer-encoding"];
	} catch {
		// what is no JSON passes as it came
	}
	const out = http.request({ host: to.hostname, port: to.port, path: to.pathname, method: req.method, headers }, (answer) => {
		res.writeHead(answer.statusCode, answer.headers);
		answer.pipe(res);
	});
	out.on("error", () => res.destroy());
	out.end(body);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
