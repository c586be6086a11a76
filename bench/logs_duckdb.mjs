// One question to DuckDB, timed inside: logs_duckdb.mjs FILE SQL. Prints the
// milliseconds, best of five, then the number of rows. FILE is a database;
// with "load GLOB" in the place of the SQL the logs are loaded into it.
// @duckdb/node-api is taken from $DUCKDB_MODULES.
import { createRequire } from "node:module";

const require = createRequire(process.env.DUCKDB_MODULES + "/");
const { DuckDBInstance } = require("@duckdb/node-api");
const db = await (await DuckDBInstance.create(process.argv[2])).connect();
const ask = process.argv[3];

if (ask.startsWith("load ")) {
	const from = `read_json('${ask.slice(5)}', format='newline_delimited', columns={timestamp:'VARCHAR',` +
		"lsn:'UBIGINT', eventType:'VARCHAR', agentId:'VARCHAR', sessionId:'VARCHAR', content:'JSON', metadata:'JSON'})";
	const begin = performance.now();
	await db.run("create table e as select timestamp as t, lsn, eventType as type, agentId as agent, sessionId as session," +
		" metadata->>'modelId' as model, (metadata->>'inputTokens')::bigint as inp, (metadata->>'outputTokens')::bigint as outp," +
		` (metadata->>'costCents')::double as cost, content::varchar as content from ${from}`);
	await db.run("checkpoint");
	console.log(performance.now() - begin, 0);
} else {
	let least = Infinity, rows = 0;
	for (let i = 0; i < 5; i++) {
		const begin = performance.now();
		rows = (await (await db.run(ask)).getRows()).length;
		least = Math.min(least, performance.now() - begin);
	}
	console.log(least, rows);
}
