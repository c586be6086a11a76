// Session files through pi's own SessionManager, for test_pi.sh.
//
//	node pi.mjs show FILE             what pi sees: {"roles":…,"texts":…,"entries":…}
//	node pi.mjs append FILE TEXT N    open it and append N messages of a person's
//	node pi.mjs busy FILE TEXT N      the same, opened anew for each of them
//	node pi.mjs model FILE            the model that it goes on with
//
// PEER_MODULES is the folder that npm installed into.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = `${process.env.PEER_MODULES}/node_modules/@mariozechner/pi-coding-agent/`;
const { exports } = JSON.parse(readFileSync(folder + "package.json", "utf8"));
const { AuthStorage, ModelRegistry, SessionManager } = await import(pathToFileURL(folder + exports["."].import));
const [verb, file, text, count] = process.argv.slice(2);

function textOf(message) {
	if (typeof message.content === "string") return message.content;
	return message.content.filter((b) => b.type === "text").map((b) => b.text).join("");
}

function person(words) {
	return { role: "user", content: [{ type: "text", text: words }], timestamp: Date.now() };
}

let session = SessionManager.open(file);
if (verb === "show") {
	const { messages } = session.buildSessionContext();
	console.log(JSON.stringify({
		roles: messages.map((m) => m.role),
		texts: messages.map(textOf),
		entries: session.getEntries().length,
	}));
} else if (verb === "model") {
	const { model } = session.buildSessionContext();
	const registry = ModelRegistry.create(AuthStorage.create(`${file}.auth`), `${file}.models`);
	const found = registry.find(model.provider, model.modelId);
	console.log(found ? `${found.provider}/${found.id}` : `none: ${model.provider}, ${model.modelId}`);
} else {
	for (let i = 0; i < Number(count); i++) {
		if (verb === "busy") session = SessionManager.open(file);
		session.appendMessage(person(`${text} ${i}`));
	}
}
