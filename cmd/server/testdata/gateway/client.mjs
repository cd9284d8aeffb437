// Drives the gateway with the TypeScript SDK's client and prints what it saw as JSON.
//
//   node client.mjs ERA NOTE http URL
//   node client.mjs ERA NOTE stdio PROGRAM ARG...
//
// NOTE is a file that the filesystem server may read.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [era, note, kind, target, ...args] = process.argv.slice(2);
const modern = era === "2026-07-28";
const client = new Client(
  { name: "typescript", version: "1" },
  { versionNegotiation: { mode: modern ? { pin: era } : "legacy" } },
);
const transport =
  kind === "http"
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command: target, args, env: process.env, stderr: "inherit" });

let changes = 0;
client.setNotificationHandler("notifications/tools/list_changed", () => { changes++; });

const seen = {};
const attempt = async (what, fn) => {
  try {
    seen[what] = await fn();
  } catch (err) {
    seen[what] = { failed: String(err), code: err.code };
  }
};
const call = (name, args = {}, options) => client.callTool({ name, arguments: args }, options);

await client.connect(transport);
seen.version = client.getNegotiatedProtocolVersion?.() ?? "";
await attempt("tools", async () => (await client.listTools()).tools.map((t) => t.name));
await attempt("call", () => call("everything__echo", { message: "hello" }));
await attempt("file", () => call("filesystem__read_text_file", { path: note }));
await attempt("graph", () => call("memory__search_nodes", { query: "Bern" }));
await attempt("thought", () =>
  call("thinking__sequentialthinking", { thought: "begin", thoughtNumber: 1, totalThoughts: 1, nextThoughtNeeded: false }));
await attempt("progress", async () => {
  const steps = [];
  await call("everything__trigger-long-running-operation", { duration: 1, steps: 4 }, { onprogress: (p) => steps.push(p.progress) });
  return steps;
});
await attempt("cancel", async () => {
  const abort = new AbortController();
  return call("everything__trigger-long-running-operation", { duration: 60, steps: 60 }, {
    signal: abort.signal,
    onprogress: () => abort.abort("enough"),
  });
});
await attempt("error", () => call("everything__get-sum", { a: "x" }));
await attempt("outside", () => call("filesystem__read_text_file", { path: "/etc/hostname" }));
await attempt("missing", () => call("broken__anything"));
await attempt("why", () => call("ledger__why", { server: "broken" }));
await attempt("resources", async () => (await client.listResources()).resources.map((r) => r.uri));
await attempt("resource", async () => client.readResource({ uri: seen.resources[0] }));
await attempt("templates", async () => (await client.listResourceTemplates()).resourceTemplates.map((r) => r.uriTemplate));
await attempt("prompts", async () => (await client.listPrompts()).prompts.map((p) => p.name));
await attempt("prompt", async () => client.getPrompt({ name: "everything__simple-prompt", arguments: {} }));
await attempt("completion", async () =>
  (await client.complete({
    ref: { type: "ref/prompt", name: "everything__completable-prompt" },
    argument: { name: "department", value: "S" },
  })).completion.values);
await attempt("update", async () => {
  const uri = seen.resources[0];
  const updated = new Promise((resolve) => {
    client.setNotificationHandler("notifications/resources/updated", (n) => resolve(n.params.uri));
  });
  const listening = modern ? await client.listen({ resourceSubscriptions: [uri] }) : await client.subscribeResource({ uri });
  await call("everything__toggle-subscriber-updates"); // on
  const told = await updated;
  await call("everything__toggle-subscriber-updates"); // off
  await (modern ? listening.close() : client.unsubscribeResource({ uri }));
  return told;
});
if (modern) {
  await attempt("listen", async () => { await client.listen({ toolsListChanged: true }); return true; });
}
// The test changes the config when it reads this line.
console.log("ready for a change");
const deadline = Date.now() + 120_000;
while (changes === 0 && Date.now() < deadline) {
  await new Promise((resolve) => setTimeout(resolve, 50));
}
seen.changes = changes;
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
