// The dashboard: it asks the API and shows the answers. Text that comes from servers
// is put into the page as text alone.
"use strict";

const states = ["blocked", "skipped", "failed", "unreachable", "discovering", "ready", "disabled"];
const view = { servers: [], files: [], state: "", open: "", roles: [], name: "", ahead: 0 };
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

const keyed = (key) => document.querySelector(`[data-key="${CSS.escape(key)}"]`);

// put gives an element those children, and leaves what is as it should be where it is: a
// button that is replaced between press and release loses the click. The focus stays with
// what stands in the place of the element that had it; in the details it goes to their
// close button if nothing does.
function put(into, ...children) {
  const key = document.activeElement && document.activeElement.dataset.key;
  become(into, element("div", {}, ...children));
  if (!key || document.activeElement.dataset.key === key) return;
  const again = keyed(key) || ($("detail").open && $("close"));
  if (again) again.focus();
}

// become makes the content of one element that of another, node by node.
function become(there, wanted) {
  const old = [...there.childNodes];
  const children = [...wanted.childNodes];
  children.forEach((child, i) => {
    if (!old[i]) there.append(child);
    else if (old[i].isEqualNode(child)) return;
    else if (child.nodeType === Node.ELEMENT_NODE && old[i].cloneNode().isEqualNode(child.cloneNode())) become(old[i], child);
    else old[i].replaceWith(child);
  });
  old.slice(children.length).forEach((child) => child.remove());
}

class Refused extends Error {
  constructor(problem, status) {
    super(problem.detail ? `${problem.title}: ${problem.detail}` : problem.title);
    this.status = status;
  }
}

// The service's clock says how long ago its times are: the browser's may be another. The
// header has whole seconds, so a difference that may be its rounding is none.
function setClock(answer) {
  const ahead = Date.parse(answer.headers.get("Date")) - Date.now();
  view.ahead = Math.abs(ahead) > 5000 ? ahead : 0;
}
const now = () => Date.now() + view.ahead;

async function ask(path, options = {}) {
  const answer = await fetch(path, { headers: { Accept: "application/json" }, ...options });
  setClock(answer);
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

// tell shows a text in the element of that id, and hides the element without one. Each
// place belongs to who writes there: what a person's wish came to stays until the next
// wish, however often the page reads anew in between.
function tell(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
  $(id).hidden = !text;
}

// moment shows a time relative to now, and in full when pointed at.
function moment(text) {
  if (!text) return "";
  const at = new Date(text);
  const seconds = Math.round((at - now()) / 1000);
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
  put($("states"), button("", `all ${view.servers.length}`),
    ...states.filter((s) => counts.get(s)).map((s) => button(s, `${s} ${counts.get(s)}`)));
}

function row(server) {
  const due = server.next_attempt_at && new Date(server.next_attempt_at) <= now();
  const next = server.skip && server.skip.until === null ? "until cleared" : due ? "due" : moment(server.next_attempt_at);
  const cell = (label, content, kind) => element("td", { "data-label": label, class: content ? kind : "none" }, content);
  return element("tr", {},
    element("th", { scope: "row" },
      element("button", {
        type: "button", "data-key": `server:${server.name}`, "aria-haspopup": "dialog", click: () => openDetail(server.name),
      }, server.name),
      server.description && element("div", { class: "quiet description", title: server.description }, server.description)),
    element("td", {}, badge(server.state)),
    element("td", { class: "why" }, server.state_reason,
      server.cause && server.cause.hint ? element("div", { class: "quiet" }, server.cause.hint) : null),
    cell("Needs", server.needs === "nothing" ? "" : server.needs, "word"),
    cell("Next attempt", next, "word"),
    cell("Tools", toolsOf(server), "number"));
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
  showStates();
  put($("servers").tBodies[0], ...shown.map(row));
  $("empty").hidden = shown.length > 0;
  $("empty").textContent = view.servers.length ? "No server fits."
    : ["No server is configured.", ...view.files.map((f) => `One that is added to ${f} is there as soon as the file is saved.`)].join(" ");
}

// showFaults tells what keeps the config, or entries of it, from being in force. What is
// wrong with a server that is listed stands there.
function showFaults(config) {
  const listed = new Set(view.servers.map((s) => s.name));
  const faults = config.errors.filter((e) => !listed.has(e.server));
  const place = (e) => e.line ? `${e.file}, line ${e.line}, column ${e.column}` : e.file;
  const lines = faults.map((e) => `${place(e)}: ${e.detail}`);
  tell("faults", lines.length ? ["A part of the config is not in force:", ...lines].join("\n") : "");
}

async function refresh() {
  try {
    const [servers, config] = await Promise.all([allPages("/api/servers"), ask("/api/config")]);
    view.servers = servers;
    view.files = config.files;
    showFaults(config);
    show();
    if (view.open) await showDetail();
    tell("notice", "");
  } catch (error) {
    if (error.status === 401) $("sign-in").hidden = false;
    tell("notice", error.message);
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
  tell("refusal", "");
  $("detail").showModal();
  showDetail().catch((error) => tell("refusal", error.message));
}

function closedDetail() {
  const name = view.open;
  view.open = "";
  const opener = keyed(`server:${name}`);
  if (opener) opener.focus();
}

async function showDetail() {
  const name = view.open;
  const path = `/api/servers/${encodeURIComponent(name)}`;
  const [server, why, history] = await Promise.all([ask(path), ask(`${path}/why`), ask(`${path}/history?limit=25`)]);
  if (view.open !== name) return;
  const opened = new Set([...$("detail-body").querySelectorAll("details[open]")].map((d) => d.dataset.event));
  const body = element("div", {},
    element("p", { class: "reason" }, badge(server.state), " ", why.summary),
    why.rule && why.rule.hint ? element("p", {}, why.rule.hint) : "",
    actions(server), facts(server, why),
    ...section("What would bring it back", clearings(why)),
    ...section("What this rests on", chain(why)),
    ...section("History", historyOf(history)));
  for (const d of body.querySelectorAll("details")) d.open = opened.has(d.dataset.event);
  put($("detail-body"), ...body.childNodes);
}

// literal writes a value as JSON in which nothing hides: characters that turn the text
// around them are escaped.
const literal = (value) => JSON.stringify(value)
  .replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

const section = (title, content) => content ? [element("h3", {}, title), content] : [];

function actions(server) {
  if (!view.roles.includes("operate")) {
    return element("p", { class: "quiet" }, "Sign in to act on it.");
  }
  const path = `/api/servers/${encodeURIComponent(server.name)}`;
  const act = (label, work) => element("button", {
    type: "button", "data-key": `act:${label}`,
    click: async (event) => {
      const button = event.currentTarget;
      if (button.ariaBusy === "true") return; // a disabled one would lose the focus
      button.ariaBusy = "true";
      tell("refusal", "");
      try { await work(); } catch (error) { tell("refusal", error.message); }
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
  add("Entry", literal(server.config));
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
    tell("sign-in-refusal", "");
  } catch (error) {
    tell("sign-in-refusal", error.message);
    askForToken();
  }
}

function askForToken() {
  $("sign-in").hidden = false;
  $("token").focus();
}

async function showWho() {
  const who = await ask("/api/session");
  view.roles = who.roles;
  view.name = who.name;
  put($("who"), who.name
    ? element("button", { type: "button", click: async () => { await ask("/api/session", { method: "DELETE" }); location.reload(); } }, `Sign out ${who.name}`)
    : element("button", { type: "button", click: askForToken }, "Sign in"));
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
  $("detail").addEventListener("close", closedDetail);
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
  await showWho().catch((error) => tell("notice", error.message));
  await refresh();
  follow();
  setInterval(refresh, 30000); // skips end without an event
}

start();
