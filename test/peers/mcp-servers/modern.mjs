// A server of the newer era (2026-07-28), made with the TypeScript SDK, since the reference servers
// still speak the older one: modern.mjs MODULES [PORT]. With a port over HTTP, else over pipes.
import { createServer } from "node:http"
import { createRequire } from "node:module"
import { Readable } from "node:stream"
import { pathToFileURL } from "node:url"

const [modules, port] = process.argv.slice(2)
const from = createRequire(`${modules}/x.js`)
const load = (name) => import(pathToFileURL(from.resolve(name)))
const { McpServer, createMcpHandler } = await load("@modelcontextprotocol/server")
const { serveStdio } = await load("@modelcontextprotocol/server/stdio")
const { z } = await load("zod")

function make() {
	const server = new McpServer({ name: "modern", version: "1" })
	const answer = (text) => ({ content: [{ type: "text", text }] })
	server.registerTool("add", { description: "adds", inputSchema: z.object({ a: z.number(), b: z.number() }) },
		({ a, b }) => answer(`sum ${a + b}`))
	server.registerTool("grow", { description: "adds a tool", inputSchema: z.object({}) }, () => {
		server.registerTool("late", { description: "came later", inputSchema: z.object({}) }, () => answer("late"))
		return answer("grown")
	})
	return server
}

async function serve(handler, req, res) {
	const body = req.method === "POST" ? Readable.toWeb(req) : undefined
	const answer = await handler.fetch(new Request(`http://127.0.0.1${req.url}`,
		{ method: req.method, headers: req.headers, body, duplex: "half" }))
	res.writeHead(answer.status, Object.fromEntries(answer.headers))
	for await (const part of answer.body ?? []) res.write(part)
	res.end()
}

if (port) {
	const handler = createMcpHandler(make)
	createServer((req, res) => serve(handler, req, res)).listen(Number(port), "127.0.0.1")
} else {
	await serveStdio(make)
}
