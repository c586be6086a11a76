// readability.mjs ROUNDS OUT FILE...: each page with linkedom, @mozilla/readability and turndown
// (with its tables), as often as told; its Markdown goes to OUT, and for each page a line of
// JSON with the milliseconds of processor time of each round. The first round warms up and is not told.
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { parseHTML } from "linkedom";
import { Readability } from "@mozilla/readability";
import TurndownService from "turndown";
import { gfm } from "turndown-plugin-gfm";

const [rounds, out, ...files] = process.argv.slice(2);
const turndown = new TurndownService({ headingStyle: "atx", codeBlockStyle: "fenced" });
turndown.use(gfm);

function convert(html) {
	const { document } = parseHTML(html);
	const article = new Readability(document, { maxElemsToParse: 0 }).parse();
	return article?.content ? `# ${article.title}\n\n${turndown.turndown(article.content)}` : "";
}

function spent(since) {
	const { user, system } = process.cpuUsage(since);
	return (user + system) / 1000;
}

for (const file of files) {
	const html = readFileSync(file, "utf8");
	const took = [];
	let markdown = "";
	let failed = null;
	for (let i = 0; i <= Number(rounds); i++) {
		const begin = process.cpuUsage();
		try {
			markdown = convert(html);
		} catch (problem) {
			failed = String(problem).split("\n")[0];
		}
		if (i > 0)
			took.push(spent(begin));
	}
	writeFileSync(`${out}/${basename(file)}.md`, markdown);
	console.log(JSON.stringify({ name: basename(file), took, failed }));
}
