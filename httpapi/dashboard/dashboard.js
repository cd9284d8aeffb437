// The dashboard: it asks the API and shows the answers. Text that comes from servers
// is put into the page as text alone.
"use strict";

const states = ["blocked", "skipped", "failed", "unreachable", "discovering", "ready", "disabled"];
const view = { servers: [], state: "", open: "", roles: [], name: "" };
const $ = (id) => document.getElementById(id);

// element makes an element with attributes and children; strings become text.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((c) => c !== null && c !== ""));
  return made;
}

// keepingFocus renders and gives the focus back to what stands in the place of the
// element that had it.
function keepingFocus(render) {
  const key = document.activeElement && document.activeElement.dataset.key;
  render();
  const again = key && document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (again) again.focus();
}

class Refused extends Error {
  constructor(problem, status) {
    super(problem.detail ? `${problem.title}: ${problem.detail}` : problem.title);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  const answer = await fetch(path, { headers: { Accept: "application/json" }, ...options });
  if (answer.status === 204) return null;
  const body = await answer.json().catch(() => ({ title: `The service answered ${answer.status}` }));
  if (!answer.ok) throw new Refused(body, answer.status);
  return body;
}

const send = (method, path, body) => ask(path, {
  method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});

async function allPages(path) {
  const items = [];
  for (let cursor = ""; cursor !== null;) {
    const page = await ask(`${path}?limit=1000${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  return items;
}

function complain(error) {
  $("notice").textContent = error ? error.message : "";
  $("notice").hidden = !error;
}

// moment shows a time relative to now, and in full when pointed at.
function moment(text) {
  if (!text) return "";
  const at = new Date(text);
  const seconds = Math.round((at - Date.now()) / 1000);
  const [size, unit] = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]]
    .find(([size]) => Math.abs(seconds) >= size) || [1, "second"];
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(Math.trunc(seconds / size), unit);
  return element("time", { datetime: text, title: at.toLocaleString() }, words);
}

const badge = (state) => element("span", { class: `state ${state}` }, state);

function showStates() {
  const counts = new Map(states.map((s) => [s, 0]));
  for (const s of view.servers) counts.set(s.state, (counts.get(s.state) || 0) + 1);
  const button = (state, label) => element("button", {
    type: "button", "data-key": `state:${state}`, "aria-pressed": String(view.state === state),
    click: () => { view.state = state; show(); },
  }, label);
  $("states").replaceChildren(button("", `all ${view.servers.length}`),
    ...states.filter((s) => counts.get(s)).map((s) => button(s, `${s} ${counts.get(s)}`)));
}

function row(server) {
  const due = server.next_attempt_at && new Date(server.next_attempt_at) <= Date.now();
  const next = server.skip && server.skip.until === null ? "until cleared" : due ? "due" : moment(server.next_attempt_at);
  return element("tr", {},
    element("th", { scope: "row" },
      element("button", {
        type: "button", "data-key": `server:${server.name}`, "aria-haspopup": "dialog", click: () => openDetail(server.name),
      }, server.name),
      server.description && element("div", { class: "quiet" }, server.description)),
    element("td", {}, badge(server.state)),
    element("td", { class: "why" }, server.state_reason,
      server.cause && server.cause.hint ? element("div", { class: "quiet" }, server.cause.hint) : null),
    element("td", {}, server.needs === "nothing" ? "" : server.needs),
    element("td", {}, next),
    element("td", { class: "number" }, toolsOf(server)));
}

// How many tools a server offers, and of how many that are known where its state keeps
// them back.
function toolsOf(server) {
  const { source, tools } = server.catalogue;
  if (source === "none") return "";
  return tools === 0 || ["ready", "unreachable"].includes(server.state) ? String(tools) : `0 of ${tools}`;
}

function show() {
  const wanted = $("search").value.toLowerCase();
  const shown = view.servers.filter((s) => (!view.state || s.state === view.state) &&
    [s.name, s.description, s.state_reason].some((t) => t.toLowerCase().includes(wanted)));
  shown.sort((a, b) => states.indexOf(a.state) - states.indexOf(b.state) || (a.name < b.name ? -1 : 1));
  keepingFocus(() => {
    showStates();
    $("servers").tBodies[0].replaceChildren(...shown.map(row));
  });
  $("empty").hidden = shown.length > 0;
  $("empty").textContent = view.servers.length ? "No server fits." : "No server is configured.";
}

async function refresh() {
  try {
    view.servers = await allPages("/api/servers");
    complain(null);
    show();
    if (view.open) await showDetail();
  } catch (error) {
    if (error.status === 401) $("sign-in").hidden = false;
    complain(error);
  }
}

// soon calls refresh once for events that come together.
let pending = 0;
function soon() {
  if (!pending) pending = setTimeout(() => { pending = 0; refresh(); }, 300);
}

function openDetail(name) {
  view.open = name;
  $("detail-title").textContent = name;
  $("detail-body").replaceChildren(element("p", {}, "Loading…"));
  $("detail").showModal();
  showDetail().catch(complain);
}

async function showDetail() {
  const name = view.open;
  const path = `/api/servers/${encodeURIComponent(name)}`;
  const [server, why, history] = await Promise.all([ask(path), ask(`${path}/why`), ask(`${path}/history?limit=25`)]);
  if (view.open !== name) return;
  const opened = new Set([...$("detail-body").querySelectorAll("details[open]")].map((d) => d.dataset.event));
  keepingFocus(() => {
    $("detail-body").replaceChildren(
      element("p", { class: "reason" }, badge(server.state), " ", why.summary),
      why.rule && why.rule.hint ? element("p", {}, why.rule.hint) : "",
      actions(server), facts(server, why),
      ...section("What would bring it back", clearings(why)),
      ...section("What this rests on", chain(why)),
      ...section("History", historyOf(history)));
    for (const d of $("detail-body").querySelectorAll("details")) d.open = opened.has(d.dataset.event);
  });
}

const section = (title, content) => content ? [element("h3", {}, title), content] : [];

function actions(server) {
  if (!view.roles.includes("operate")) {
    return element("p", { class: "quiet" }, "Sign in to act on it.");
  }
  const path = `/api/servers/${encodeURIComponent(server.name)}`;
  const act = (label, work) => element("button", {
    type: "button", "data-key": `act:${label}`,
    click: async (event) => {
      event.target.disabled = true;
      try { await work(); } catch (error) { complain(error); $("detail").close(); }
      await refresh();
    },
  }, label);
  return element("div", { class: "actions" },
    server.state === "disabled" ? "" : act("Discover now", () => send("POST", `${path}/discover`, { reason: "asked on the dashboard" })),
    server.skip ? act("Clear the skip", () => ask(`${path}/skip`, { method: "DELETE" })) : "");
}

function facts(server, why) {
  const list = element("dl");
  const add = (name, value) => { if (value) list.append(element("dt", {}, name), element("dd", {}, value)); };
  add("Needs", server.needs === "nothing" ? "" : server.needs);
  add("Class", server.cause && `${server.cause.class}, ${server.cause.disposition}`);
  add("Rule", why.rule && `${why.rule.id} (${why.rule.set})`);
  add("Next attempt", moment(why.next_attempt_at));
  add("Last attempt", server.last_attempt && element("span", {}, `${server.last_attempt.outcome} `, moment(server.last_attempt.at)));
  add("Verified", moment(server.verified_at));
  add("Tools", toolsOf(server) && `${toolsOf(server)}, ${server.catalogue.source}`);
  add("Says it is", [server.server_info.name, server.server_info.version].filter(Boolean).join(" "));
  add("Transport", server.transport);
  add("Entry", JSON.stringify(server.config));
  add("File", server.source_file);
  return list;
}

function clearings(why) {
  if (!why.clears_on.length) return null;
  return element("ul", {}, ...why.clears_on.map((c) => element("li", {},
    c.what.replaceAll("_", " "), c.at ? " " : "", moment(c.at), c.detail ? `: ${c.detail}` : "")));
}

function evidence(id, content) {
  const { stderr_tail: stderr, ...rest } = content;
  return element("details", { "data-event": id }, element("summary", { "data-key": `seen:${id}` }, "What was seen"),
    stderr ? element("pre", {}, stderr) : "", element("pre", {}, JSON.stringify(rest, null, 2)));
}

function chain(why) {
  if (!why.chain.length) return null;
  return element("ol", { class: "chain" }, ...why.chain.map((link) => element("li", {},
    moment(link.time), ` ${link.type}: ${link.note || link.role.replaceAll("_", " ")}`,
    link.evidence ? evidence(link.event_id, link.evidence) : "")));
}

function historyOf(history) {
  if (!history.items.length) return null;
  return element("ol", { class: "chain" }, ...history.items.map((e) => element("li", {},
    moment(e.time), ` ${e.type}`, e.classification ? ` (${[e.classification.class, e.classification.text].filter(Boolean).join(": ")})` : "",
    e.actor ? ` by ${e.actor}` : "")));
}

async function signIn(token) {
  try {
    await send("POST", "/api/session", { token });
    $("sign-in").hidden = true;
    complain(null);
  } catch (error) {
    complain(error);
  }
}

async function showWho() {
  const who = await ask("/api/session");
  view.roles = who.roles;
  view.name = who.name;
  $("who").replaceChildren(who.name
    ? element("button", { type: "button", click: async () => { await ask("/api/session", { method: "DELETE" }); location.reload(); } }, `Sign out ${who.name}`)
    : element("button", { type: "button", click: () => { $("sign-in").hidden = false; $("token").focus(); } }, "Sign in"));
}

function follow() {
  const stream = new EventSource("/api/events/stream");
  stream.onopen = () => { $("live").textContent = "Live"; soon(); };
  stream.onmessage = soon;
  stream.onerror = () => {
    $("live").textContent = "Not connected, trying again…";
    // A stream that was refused is not tried again by the browser.
    if (stream.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
  };
}

async function start() {
  $("search").addEventListener("input", show);
  $("close").addEventListener("click", () => $("detail").close());
  $("detail").addEventListener("close", () => { view.open = ""; });
  $("sign-in-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    await signIn($("token").value);
    $("token").value = "";
    await showWho();
    await refresh();
  });
  // The link printed at start carries a token where no server sees it.
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", location.pathname);
    await signIn(token);
  }
  await showWho().catch(complain);
  await refresh();
  follow();
  setInterval(refresh, 30000); // skips end without an event
}

start();
