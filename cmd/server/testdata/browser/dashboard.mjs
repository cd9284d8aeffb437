// Opens the dashboard as a person does and prints what is on it as JSON.
// usage: node dashboard.mjs CHROMIUM LINK SERVER
// LINK is the one that the service prints at its start, SERVER one whose details are
// to be opened. playwright-core is found by NODE_PATH.
import { createRequire } from "node:module";

const { chromium } = createRequire(import.meta.url)("playwright-core");
const [executablePath, link, server] = process.argv.slice(2);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-quic"] });
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(20_000);
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });

  await page.goto(link);
  await page.waitForSelector("#servers tbody tr");
  await page.getByRole("button", { name: /^Sign out/ }).waitFor();
  const rows = await page.locator("#servers tbody tr").allInnerTexts();
  const boldNames = await page.locator("#servers b").count();
  const address = page.url();

  await page.locator("#servers tbody").getByRole("button", { name: server, exact: true }).click();
  await page.getByRole("dialog").getByText("discovery.failed").first().waitFor();
  const detail = await page.getByRole("dialog").innerText();
  console.log(JSON.stringify({ address, rows, boldNames, detail, errors }));
} finally {
  await browser.close();
}
