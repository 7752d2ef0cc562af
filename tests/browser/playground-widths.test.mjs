// How the playground looks from the narrowest page to wide ones: nothing is wider
// than the page or covered, labels can be read. Screenshots of all of it are kept
// under target/screenshots.

import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, create, menu, playground, say, screenshot, shows, state, terminal } from "./playground-support.mjs";
import { callStep, serveModel } from "../node/support.mjs";

const { open } = playground();

const WIDTHS = [400, 820, 1000, 1280, 1600];
/** Below it one part shows at a time. */
const NARROW = 820;
/** CSS pixels of the smallest text, and what text has to differ from its ground by (WCAG 1.4.3). */
const LEAST_PX = 12;
const LEAST_CONTRAST = 4.5;

/** What is wrong with the texts that are seen. */
function faults(page) {
  return page.evaluate(([leastPx, leastContrast]) => {
    const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
    const known = new Map();
    const parse = (color) => {
      if (!known.has(color)) {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = color;
        context.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
        known.set(color, [r, g, b, a / 255]);
      }
      return known.get(color);
    };
    const over = ([r, g, b, a], below) => [r, g, b].map((share, index) => share * a + below[index] * (1 - a));
    const groundOf = (element) => {
      const layers = [];
      for (let each = element; each; each = each.parentElement) {
        const color = parse(getComputedStyle(each).backgroundColor);
        layers.push(color);
        if (color[3] === 1) break;
      }
      return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
    };
    const light = (shares) => {
      const [r, g, b] = shares.map((share) => (share / 255 <= 0.04045 ? share / 255 / 12.92 : ((share / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const element = node.parentElement;
      if (node.data.trim() === "" || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
      // The terminal draws its own, and what cannot be pressed is faint on purpose.
      if (element.closest(".xterm, .unseen, .skip, option, script, style, :disabled")) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const { width, bottom, top, left, right } = range.getBoundingClientRect();
      if (width < 1 || bottom < 0 || top > innerHeight || right < 0 || left > innerWidth) continue;
      const { color, fontSize } = getComputedStyle(element);
      const name = `“${node.data.trim().slice(0, 30)}” in ${element.localName}.${element.className}`;
      if (parseFloat(fontSize) < leastPx) found.add(`${name}: ${fontSize}`);
      const ground = groundOf(element);
      const [one, other] = [light(over(parse(color), ground)), light(ground)].sort((a, b) => b - a);
      const contrast = (one + 0.05) / (other + 0.05);
      if (contrast < leastContrast) found.add(`${name}: contrast ${contrast.toFixed(2)}`);
    }
    return [...found];
  }, [LEAST_PX, LEAST_CONTRAST]);
}

/** Whether what is in the middle of an element is that element. */
function isUncovered(page, selector) {
  return page.locator(selector).first().evaluate((element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    const at = document.elementFromPoint(left + width / 2, top + height / 2);
    return width > 0 && (element.contains(at) || at?.contains(element) === true && at.closest("button, .tab-box") !== null);
  });
}

/** Parts of the bar above that lie on each other. */
function overlaps(page) {
  return page.evaluate(() => {
    const boxes = [...document.querySelectorAll(".bar > *, .strip > *, .compose > *, .usage > *")]
      .filter((each) => each.checkVisibility() && !each.matches(".menu, .grow"))
      .map((each) => [each, each.getBoundingClientRect()])
      .filter(([, { width }]) => width > 0);
    return boxes.flatMap(([one, a]) => boxes
      .filter(([other, b]) => one !== other && one.parentElement === other.parentElement && a.left < b.left && a.right > b.left + 1 && a.bottom > b.top + 1 && b.bottom > a.top + 1)
      .map(([other]) => `${one.className || one.id} and ${other.className || other.id}`));
  });
}

for (const width of WIDTHS) {
  for (const colorScheme of width === 400 || width === 1280 ? ["light", "dark"] : ["light"]) {
    test(`${width} pixels, ${colorScheme}: nothing is wider than the page, too small, too faint or covered`, async (t) => {
      const { page, problems } = await open(t, { viewport: { width, height: 800 }, colorScheme });
      const wrong = {};
      const look = async (name) => {
        await page.waitForTimeout(250);
        await screenshot(page, `${width}-${colorScheme}-${name}`);
        const found = [...(await faults(page)), ...(await overlaps(page))];
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        if (wide > width) found.push(`it is ${wide} wide`);
        if (found.length > 0) wrong[name] = found;
      };
      await look("start");
      await page.click("#run-demo");
      await page.waitForSelector(".tool[data-state='done']");
      await look("working");
      await state(page, "IDLE");
      await look("done");
      await page.click("#project");
      await look("menu");
      for (const [label, path] of [["Docs", "/blob/main/docs/playground.md"], ["Source", ""]]) {
        const links = page.locator(`a:text-is("${label}"):visible`);
        assert.match(await links.first().getAttribute("href"), new RegExp(`^https://github\\.com/[^/]+/[^/]+${path}$`));
      }
      await page.keyboard.press("Escape");
      await page.click("#model");
      await page.selectOption("#set-provider", "anthropic");
      await page.evaluate(() => (document.querySelector("dialog .more").open = true));
      await look("settings");
      await page.keyboard.press("Escape");
      await menu(page, "Projects…");
      await page.waitForSelector(".shelf .name");
      await look("projects");
      await page.keyboard.press("Escape");
      const model = await serveModel(t, { steps: [
        callStep("shell", { command: "printf '\\033[31mred \\033[32mgreen \\033[33myellow \\033[34mblue \\033[35mmagenta \\033[36mcyan \\033[90mgrey \\033[7minverse\\033[0m \\033[41mon red\\033[0m \\033[38;5;226mbright\\033[0m\\n'; exit 1" }, "c"),
        callStep("write_file", { file_path: "new.html", content: "<p>new\n".repeat(40) }, "w"),
        callStep("edit_file", { file_path: "style.css", old_string: "{", new_string: `{ /* ${"a long remark ".repeat(12)} */` }, "e"),
        { text: "First half", disconnect: "after_text" },
        { error: { status: 401, message: "invalid x-api-key" } },
      ] });
      await choose(page, { baseUrl: model.url });
      await say(page, "Make a page, and show me what you do with it.");
      await page.waitForSelector(".notice.error", { timeout: 60_000 });
      await page.hover(".item.user >> nth=-1");
      await look("cards");
      await page.evaluate(() => document.querySelectorAll(".chat details").forEach((details) => (details.open = true)));
      await page.locator(".item.user").last().scrollIntoViewIfNeeded();
      await look("cards-open");
      await create(page, "empty");
      await look("empty");
      assert.match(await page.innerText(".hello"), /reads and changes the files on this page and runs commands in the sandbox/);
      await page.click(".starts button:text-is('Web page')");
      if (width < NARROW) {
        for (const pane of ["files", "editor", "terminal", "preview"]) {
          await page.click(`.dock [data-pane="${pane}"]`);
          if (pane === "terminal") {
            await terminal(page, "echo 4 passed");
            await shows(page, "4 passed");
          }
          await look(pane);
        }
        await page.click('.dock [data-pane="editor"]');
      } else {
        await page.waitForSelector(".preview-toggle");
        // The preview leaves its own switch and the tabs where they are.
        for (const on of [false, true]) {
          if ((await page.getAttribute(".preview-toggle", "aria-pressed")) !== String(on)) await page.click(".preview-toggle");
          assert.equal(await page.locator(".preview").isVisible(), on);
          for (const part of [".preview-toggle", ".tab", ...(on ? [".preview select"] : [".cm-content"])]) assert.equal(await isUncovered(page, part), true, `${part}, preview ${on}`);
          await look(on ? "preview" : "editor");
        }
        await page.click(".tab >> nth=0");
        assert.equal(await page.locator(".cm-content").isVisible(), true);
      }
      await page.click(".cm-content");
      await page.keyboard.press("Control+f");
      await page.waitForSelector(".cm-search");
      await look("search");
      assert.deepEqual(wrong, {});
      assert.deepEqual(problems.filter((text) => !/401/.test(text)), []);
    });
  }
}

test("the bar says in a line what the page is for, and leads to docs and source", async (t) => {
  const { page } = await open(t);
  assert.equal(await page.innerText(".tagline"), "A coding agent and its sandbox, in this tab");
  assert.deepEqual(await page.locator(".about-links a").allInnerTexts(), ["Docs", "Source"]);
});
