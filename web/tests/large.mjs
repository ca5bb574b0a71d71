// Graphs of thousands of values: folded, zoomed and panned; and servers that fail.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { live } from './browser.mjs';

const GPT = fileURLToPath(new URL('../../crates/chainrule-studio/src/engine/examples/gpt.py', import.meta.url));
const BLOCKS = 40;
const PAN_MS = 2000;

/** A language model of many blocks opens folded, opens block by block, and is panned as a whole. */
export async function panned({ page, url }) {
  page.setDefaultTimeout(60_000);
  const text = readFileSync(GPT, 'utf8').replace('range(2)', `range(${BLOCKS})`);
  await page.addInitScript((code) => localStorage.setItem('chainrule-own', code), text);
  await page.goto(`${url}#/backward?example=neuron`);
  await page.locator('.graph canvas').waitFor();
  await page.getByRole('combobox', { name: 'Computation' }).selectOption('own');
  const told = page.getByText(/\d+ values, \d+ steps back/);
  await page.waitForFunction(() => Number(/(\d+) values/.exec(document.querySelector('.top')?.textContent ?? '')?.[1]) > 1000, null, { timeout: 60_000 });
  const values = Number(/(\d+) values/.exec(await told.innerText())[1]);
  assert.ok(values >= 2000, `${values} values`);
  // All blocks as one box, then one block open, then all of it.
  await page.getByRole('button', { name: 'Fold what repeats' }).click();
  const frames = async () => {
    await page.getByRole('button', { name: 'Fit' }).click();
    const box = await page.locator('.graph canvas').boundingBox();
    return page.evaluate(async ([x, y, wide, tall, time]) => {
      const canvas = document.querySelector('.graph canvas');
      const send = (type, dx, dy) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: x + wide / 2 + dx, clientY: y + tall / 2 + dy, bubbles: true }));
      canvas.setPointerCapture = () => {};
      const before = canvas.toDataURL();
      send('pointerdown', 0, 0);
      const gaps = [];
      const start = performance.now();
      let last = start;
      while (last - start < time) {
        const now = await new Promise((done) => requestAnimationFrame(done));
        gaps.push(now - last);
        last = now;
        const turn = (now - start) / 300;
        send('pointermove', 80 * Math.sin(turn), 60 * (1 - Math.cos(turn)));
      }
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      const moved = canvas.toDataURL() !== before;
      send('pointerup', 0, 0);
      gaps.sort((a, b) => a - b);
      return { rate: (1000 * gaps.length) / (last - start), middle: gaps[gaps.length >> 1], moved };
    }, [box.x, box.y, box.width, box.height, PAN_MS]);
  };
  const few = await frames();
  await page.getByRole('button', { name: 'Unfold all' }).click();
  const all = await frames();
  for (let i = 0; i < 12; i++) await page.getByRole('button', { name: 'Zoom in' }).click();
  await page.getByRole('button', { name: 'To the end' }).click();
  const shown = await page.locator('.detail').innerText();
  assert.ok(shown.length > 20);
  // The rates are told and not judged: they depend on what else the machine does.
  console.log(`  ${values} values: ${all.rate.toFixed(0)} frames a second while panning (middle gap ${all.middle.toFixed(1)} ms), folded ${few.rate.toFixed(0)}`);
  assert.ok(few.moved && all.moved, 'panning moves the picture');
}

/** A file server that fails for the engine: the page says so, and comes up when it is back. */
export async function failingServer({ page, url, errors }) {
  let broken = true;
  await page.route('**/engine.wasm', (route) => (broken ? route.fulfill({ status: 500, body: 'no' }) : route.continue()));
  await page.goto(`${url}#/backward?example=neuron`);
  await page.getByRole('alert').filter({ hasText: '500 for engine.wasm' }).waitFor();
  broken = false;
  await live(page);
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await page.locator('.graph canvas').waitFor();
  // The browser tells of the failed request itself.
  errors.splice(0, errors.length, ...errors.filter((e) => !/status of 500/.test(e)));
}

/** A server that is gone when a part of the page is asked for: the page says so, and has it later. */
export async function missingPart({ page, url, errors }) {
  let gone = true;
  await page.route(/assets\/(Training|uPlot).*\.js/, (route) => (gone ? route.abort('connectionreset') : route.continue()));
  await page.goto(`${url}#/lessons`);
  await live(page);
  const told = page.getByRole('alert').filter({ hasText: 'did not load' });
  await page.evaluate(() => (location.hash = '#/training'));
  await told.waitFor();
  gone = false;
  await page.getByRole('button', { name: 'Start a run' }).click();
  await page.locator('.uplot canvas').first().waitFor();
  await told.waitFor({ state: 'detached' });
  // The browser tells of the failed requests itself.
  errors.splice(0, errors.length, ...errors.filter((e) => !/ERR_CONNECTION_RESET/.test(e)));
}

/** A program that takes a question and does not answer for long. */
export async function lateAnswer({ page, url }) {
  let held = null;
  await page.routeWebSocket('**/socket', (ws) => {
    ws.onMessage((text) => {
      const message = JSON.parse(text);
      if (message.token) ws.send(JSON.stringify({ event: 'hello', version: '0', given: [{ given: 0, title: 'mine', source: 'x = leaf(3.0)\ny = x * x\n', seed: 1 }], export: false }));
      else held = () => ws.send(JSON.stringify({ id: message.id, error: { message: 'the program is there again' } }));
    });
  });
  await page.goto(`${url}#token=abc&/backward`);
  await live(page);
  await page.getByRole('alert').filter({ hasText: 'has not answered' }).waitFor();
  held();
  await page.getByRole('alert').filter({ hasText: 'there again' }).waitFor();
  await page.getByRole('alert').filter({ hasText: 'has not answered' }).waitFor({ state: 'detached' });
}

/** The program view: each line that runs is measured, and the map is that of the planner. */
export async function measuredProgram({ page, url }) {
  await page.goto(`${url}#/program?example=names`);
  await page.locator('svg .block').first().waitFor();
  await page.getByText('Measured on this machine just now').waitFor();
  const listings = page.locator('.two section');
  assert.equal(await listings.count(), 2);
  for (const i of [0, 1]) {
    const costs = await listings.nth(i).locator('.cost .mono').allInnerTexts();
    assert.ok(costs.length > 10 && costs.every((text) => /^[\d.]+ (µs|ms)/.test(text)), costs.slice(0, 5).join('; '));
  }
  const fused = await listings.nth(1).locator('.cost .soft').allInnerTexts();
  assert.ok(fused.some((text) => /for \d+ lines/.test(text)), 'groups have one time');
  await page.getByText(/The results are those of the traced program/).waitFor();
  await page.getByText(/memory [\d.]+ kB, and no layout can do with less/).waitFor();
  const size = /memory ([\d.]+ kB)/.exec(await page.locator('.page .row').first().innerText())[1];
  assert.equal(await page.locator('svg .axis').last().textContent(), size, 'the map is as high as the arena');
  // A block and its line are one.
  await page.locator('svg .block').nth(3).click();
  const current = page.locator('tr.current');
  await current.waitFor();
  assert.ok((await page.locator('svg g.current title').first().textContent()).startsWith(`${(await current.locator('button').innerText()).split(/[ ,]/)[0]}:`));
}
