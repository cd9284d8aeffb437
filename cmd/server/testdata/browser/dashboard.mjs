// Opens the dashboard as a person does and prints what is on it as JSON.
// usage: node dashboard.mjs CHROMIUM LINK SERVER
// LINK is the one that the service prints at its start, SERVER one whose details are
// to be opened and acted on; a refusal of that is made up. playwright-core is found by
// NODE_PATH.
import { createRequire } from "node:module";

const { chromium } = createRequire(import.meta.url)("playwright-core");
const [executablePath, link, server] = process.argv.slice(2);

// How long is waited for what must happen, in milliseconds.
const timeout = 120_000;
const browser = await chromium.launch({ executablePath, timeout, args: ["--no-sandbox", "--disable-gpu", "--disable-quic"] });
try {
  const context = await browser.newContext();
  context.setDefaultTimeout(timeout);
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  // The browser itself complains of every answer that is an error; those are wanted here.
  const made = /status of 401|status of 409/;
  page.on("console", (message) => {
    if (message.type() === "error" && !made.test(message.text())) errors.push(message.text());
  });
  // Read anew as often as where many servers do things, each time when the last is done.
  await page.addInitScript(async () => {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      await globalThis.refresh?.();
    }
  });
  const reread = () => page.waitForResponse((answer) => new URL(answer.url()).pathname === "/api/servers");
  const focused = () => page.evaluate(() => document.activeElement.textContent);

  // Signed in with a token that is none. What it says to that stays when it reads anew.
  const wrong = new URL(link);
  wrong.hash = "#token=mcpledger_none";
  await page.goto(wrong.href);
  await page.locator("#sign-in-refusal").waitFor();
  await reread();
  await page.waitForSelector("#servers tbody tr");
  const wrongToken = await page.locator("#sign-in").innerText();
  await page.goto("about:blank");

  await page.goto(link);
  await page.waitForSelector("#servers tbody tr");
  await page.getByRole("button", { name: /^Sign out/ }).waitFor();
  const rows = await page.locator("#servers tbody tr").allInnerTexts();
  const boldNames = await page.locator("#servers b").count();
  const faults = await page.locator("#faults").innerText();
  const address = page.url();

  // A slow finger: the page reads anew between press and release.
  await page.locator("#servers tbody").getByRole("button", { name: server, exact: true }).hover();
  await page.mouse.down();
  await Promise.all([reread(), page.evaluate(() => refresh())]);
  await page.mouse.up();
  await page.getByRole("dialog").getByText("discovery.failed").first().waitFor();
  const detail = await page.getByRole("dialog").innerText();

  await page.route("**/discover", (route) => route.fulfill({
    status: 409, contentType: "application/problem+json", body: JSON.stringify({ title: "Refused", detail: "made up" }),
  }));
  const act = page.getByRole("dialog").getByRole("button", { name: "Discover now" });
  await act.press("Enter");
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await Promise.all([reread(), page.evaluate(() => refresh())]);
  const refused = await page.getByRole("dialog").getByRole("alert").innerText();
  const focusAfterAct = await focused();
  await page.keyboard.press("Escape");
  // The page hears of it a moment later. Without the focus back in time, what has it is told.
  await page.waitForFunction((name) => document.activeElement.textContent === name, server).catch(() => {});
  const focusAfterClose = await focused();

  await page.setViewportSize({ width: 360, height: 740 });
  await page.waitForFunction(() => innerWidth === 360);
  const reasonFits = await page.evaluate(() => {
    const { left, right } = document.querySelector("#servers tbody tr td.why").getBoundingClientRect();
    return left >= 0 && right <= 360;
  });

  // On a machine whose clock runs a day ahead.
  const ahead = await context.newPage();
  await ahead.addInitScript(() => {
    const now = Date.now;
    Date.now = () => now() + 86_400_000;
  });
  await ahead.goto(link);
  await ahead.locator("#servers tbody").getByRole("button", { name: server, exact: true }).click();
  await ahead.getByRole("dialog").getByText("discovery.failed").first().waitFor();
  const lastAttempt = await ahead.locator("dt", { hasText: "Last attempt" }).locator("+ dd").innerText();

  console.log(JSON.stringify({
    address, rows, boldNames, detail, errors, wrongToken, refused, focusAfterAct, focusAfterClose, reasonFits, faults,
    lastAttempt,
  }));
} finally {
  await browser.close();
}
