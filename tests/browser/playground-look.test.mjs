// How the playground looks and reads: screenshots at both ends of the range of
// widths, light and dark, kept under target/screenshots; the preview; focus.

import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, playground, say, screenshot, shows, state, terminal } from "./playground-support.mjs";
import { serveModel } from "../node/support.mjs";

const { open } = playground();

const SIZES = { narrow: { width: 400, height: 800 }, middle: { width: 1024, height: 768 }, wide: { width: 1600, height: 900 } };

for (const [size, viewport] of Object.entries(SIZES)) {
  for (const colorScheme of ["light", "dark"]) {
    test(`${size}, ${colorScheme}: nothing is wider than the page`, async (t) => {
      const { page, problems } = await open(t, { viewport, colorScheme });
      const fits = async (name) => {
        await screenshot(page, `${size}-${colorScheme}-${name}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= viewport.width, `${name} is ${wide} wide`);
      };
      await fits("start");
      await page.click("#run-demo");
      await page.waitForSelector(".tool[data-state='done']");
      await fits("working");
      await state(page, "IDLE");
      await page.waitForTimeout(300);
      await fits("done");
      await page.click("#model");
      await page.selectOption("#set-provider", "anthropic");
      await fits("settings");
      await page.keyboard.press("Escape");
      if (size === "narrow") {
        for (const pane of ["files", "editor", "terminal", "preview"]) {
          await page.click(`.dock [data-pane="${pane}"]`);
          if (pane === "terminal") {
            await terminal(page, "sh test.sh");
            await shows(page, "4 passed");
          }
          await page.waitForTimeout(300);
          await fits(pane);
        }
      }
      assert.deepEqual(problems, []);
    });
  }
}

test("the preview shows the project and follows it, in an origin of its own", async (t) => {
  const { page, problems } = await open(t, { viewport: SIZES.wide });
  const frame = page.frameLocator(".preview iframe");
  await frame.locator("text=/rock---roll").waitFor();
  assert.equal(await page.getAttribute(".preview iframe", "sandbox"), "allow-scripts allow-forms allow-modals");
  await terminal(page, "echo 'document.body.dataset.answer = `${origin} ${1 + 1}`; console.log(\"from the page\")' >> app.js");
  await frame.locator('body[data-answer="null 2"]').waitFor();
  await page.waitForSelector(".console:has-text('from the page')");
  await terminal(page, "printf 'export const word = \"module\";' > part.js; printf '<script type=module>import { word } from \"./part.js\"; document.body.append(word)</script>' > index.html");
  await frame.locator("text=module").waitFor();
  await terminal(page, "printf '<script>fetch(\"https://example.com/\").catch(() => document.body.append(\"no network\"))</script>' > index.html");
  await frame.locator("text=no network").waitFor();
  assert.deepEqual(problems.filter((text) => !/Content Security Policy|Content-Security-Policy/.test(text)), []);
});

test("the keyboard reaches every part", async (t) => {
  const { page } = await open(t, { viewport: SIZES.wide });
  const focused = () => page.evaluate(() => document.activeElement.closest("[id^=pane-]")?.id ?? document.activeElement.className);
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "skip");
  await page.keyboard.press("Enter");
  for (const [key, pane] of [["1", "chat"], ["2", "files"], ["3", "editor"], ["4", "terminal"], ["5", "preview"]]) {
    await page.keyboard.press(`Alt+${key}`);
    assert.equal(await focused(), `pane-${pane}`);
  }
  await page.keyboard.press("Alt+2");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  assert.equal(await page.getAttribute(".tab[aria-selected='true']", "data-path"), "test.sh");
});

test("text that streams in moves nothing above it", async (t) => {
  const { page } = await open(t, { viewport: SIZES.wide });
  const lines = Array.from({ length: 30 }, (_, index) => `Paragraph ${index} with some words in it.\n\n`);
  const slow = await serveModel(t, { steps: [{ texts: lines, delta_delay_ms: 15 }] });
  await choose(page, { baseUrl: slow.url });
  await say(page, "write");
  await page.waitForSelector(".prose p:nth-child(3)");
  const moved = await page.evaluate(() => new Promise((resolve) => {
    const first = document.querySelector(".prose p");
    const scroller = document.querySelector(".scroller");
    const places = new Set();
    const frame = () => {
      places.add(Math.round(first.getBoundingClientRect().top + scroller.scrollTop));
      if (document.querySelector('.status[data-state="PROCESSING"]')) requestAnimationFrame(frame);
      else resolve({ places: [...places], same: first.isConnected });
    };
    frame();
  }));
  assert.deepEqual([moved.places.length, moved.same], [1, true]);
});

test("python3 and node run in the terminal", async (t) => {
  const { page } = await open(t);
  await terminal(page, "python3 -c 'print(6 * 7)'");
  await shows(page, "42");
  await terminal(page, "node -e 'console.log([1, 2, 3].map((n) => n * n).join())'");
  await shows(page, "1,4,9");
});
