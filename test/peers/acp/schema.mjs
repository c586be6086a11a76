// Each line that `ava acp` wrote (acp.py keeps them with the method that they answer) against the protocol's schema:
// prints how many there were of a kind, and what is wrong; ends with 1 when something is.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.env.PEER_MODULES + "/");
const Ajv = require("ajv/dist/2020").default;
const sdk = process.env.PEER_MODULES + "/node_modules/@agentclientprotocol/sdk";
const ajv = new Ajv({ strict: false, validateFormats: false });
ajv.addSchema(JSON.parse(readFileSync(`${sdk}/schema/v1/schema.json`)), "acp");

const shapes = {
	"session/update": "SessionNotification",
	"$/cancel_request": "CancelRequestNotification",
	"session/request_permission": "RequestPermissionRequest",
	"elicitation/create": "CreateElicitationRequest",
};
const answers = {
	initialize: "InitializeResponse",
	"session/new": "NewSessionResponse",
	"session/load": "LoadSessionResponse",
	"session/resume": "ResumeSessionResponse",
	"session/list": "ListSessionsResponse",
	"session/close": "CloseSessionResponse",
	"session/prompt": "PromptResponse",
	"session/set_config_option": "SetSessionConfigOptionResponse",
};
const counts = {};
let wrong = 0;

for (const text of readFileSync(process.argv[2], "utf8").split("\n").filter(Boolean)) {
	const { answers: method, line } = JSON.parse(text);
	const name = line.method ? shapes[line.method] : line.error ? "Error" : answers[method];
	const value = line.method ? line.params : (line.error ?? line.result);
	const validate = name && ajv.getSchema(`acp#/$defs/${name}`);
	const kind = line.method === "session/update" ? value.update.sessionUpdate : (name ?? `${line.method ?? method}`);
	counts[kind] = (counts[kind] ?? 0) + 1;
	if (validate?.(value) && line.jsonrpc === "2.0") continue;
	wrong++;
	if (wrong < 10) console.log(`wrong: ${text.slice(0, 500)} ${JSON.stringify(validate?.errors?.slice(0, 3))}`);
}
console.log(JSON.stringify(counts));
process.exit(wrong === 0 ? 0 : 1);
