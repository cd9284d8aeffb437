// Drives the gateway with the TypeScript SDK's client and prints what it saw as JSON.
//
//   node client.mjs ERA http URL
//   node client.mjs ERA stdio PROGRAM ARG...
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [era, kind, target, ...args] = process.argv.slice(2);
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

await client.connect(transport);
seen.version = client.getNegotiatedProtocolVersion?.() ?? "";
await attempt("tools", async () => (await client.listTools()).tools.map((t) => t.name));
await attempt("call", () => client.callTool({ name: "everything__echo", arguments: { message: "hello" } }));
await attempt("progress", async () => {
  const steps = [];
  await client.callTool(
    { name: "everything__trigger-long-running-operation", arguments: { duration: 1, steps: 4 } },
    { onprogress: (p) => steps.push(p.progress) },
  );
  return steps;
});
await attempt("cancel", async () => {
  const abort = new AbortController();
  setTimeout(() => abort.abort("enough"), 300);
  return client.callTool(
    { name: "everything__trigger-long-running-operation", arguments: { duration: 30, steps: 30 } },
    { signal: abort.signal },
  );
});
await attempt("error", () => client.callTool({ name: "everything__get-sum", arguments: { a: "x" } }));
await attempt("missing", () => client.callTool({ name: "broken__anything", arguments: {} }));
await attempt("why", () => client.callTool({ name: "ledger__why", arguments: { server: "broken" } }));
await attempt("resources", async () => (await client.listResources()).resources.map((r) => r.uri));
await attempt("resource", async () => client.readResource({ uri: seen.resources[0] }));
await attempt("prompts", async () => (await client.listPrompts()).prompts.map((p) => p.name));
await attempt("prompt", async () => client.getPrompt({ name: "everything__simple-prompt", arguments: {} }));
if (modern) {
  await attempt("listen", async () => { await client.listen({ toolsListChanged: true }); return true; });
}
// The test changes the config when it reads this line.
console.log("ready for a change");
const deadline = Date.now() + 20000;
while (changes === 0 && Date.now() < deadline) {
  await new Promise((resolve) => setTimeout(resolve, 50));
}
seen.changes = changes;
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
