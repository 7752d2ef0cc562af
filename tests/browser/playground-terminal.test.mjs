// The playground in Chromium: the terminal with what is pasted into it, and without
// a keyboard.

import assert from "node:assert/strict";
import { test } from "node:test";
import { playground, screenshot, shows, terminal } from "./playground-support.mjs";

const { open } = playground();

test("a large paste arrives, and the terminal goes on", async (t) => {
  const { page, problems } = await open(t);
  await page.click(".terminal .screen");
  await page.evaluate((text) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    document.querySelector(".xterm-helper-textarea").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
  }, `cat > pasted.txt <<'END'\n${"0123456789 0123456789 0123456789\n".repeat(6_000)}END`);
  await page.keyboard.press("Enter");
  await page.keyboard.type("wc -c pasted.txt\n");
  await shows(page, "198000 pasted.txt");
  await page.keyboard.press("Control+c");
  await terminal(page, "echo al''ive");
  await shows(page, "alive");
  assert.deepEqual(problems, []);
});

test("a paste does not end itself", async (t) => {
  const { page } = await open(t);
  await page.click(".terminal");
  await page.evaluate((text) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    document.querySelector(".xterm-helper-textarea").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
  }, "echo a\x1b[201~\ntouch ran.txt\n");
  await page.keyboard.press("Control+c");
  await page.keyboard.type("ls ran.txt; echo over\n");
  await shows(page, "No such file or directory");
});

for (const [name, options] of Object.entries({
  "on a phone": { viewport: { width: 400, height: 800 }, hasTouch: true, isMobile: true },
  "on a wide screen": { viewport: { width: 1600, height: 900 } },
})) {
  test(`a button stops what runs in the terminal ${name}`, async (t) => {
    const { page, problems } = await open(t, options);
    if (options.hasTouch) await page.tap('.dock [data-pane="terminal"]');
    const stop = page.locator(".pane-terminal .stop");
    assert.equal(await stop.isDisabled(), true);
    await terminal(page, "while :; do :; done", { wait: false });
    await page.waitForSelector(".pane-terminal .stop:enabled");
    await screenshot(page, `terminal-stop-${options.viewport.width}`);
    if (options.hasTouch) await stop.tap();
    else {
      await stop.focus();
      await page.keyboard.press("Enter");
    }
    await page.waitForFunction(() => !document.querySelector(".terminal.running"));
    assert.equal(await stop.isDisabled(), true);
    await terminal(page, "echo al''ive");
    await shows(page, "alive");
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= options.viewport.width, `${wide} wide`);
    assert.deepEqual(problems, []);
  });
}
