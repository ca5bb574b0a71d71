// The page with the program that serves it: trainings that run, are held, killed and gone on with.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { live } from './browser.mjs';

const built = fileURLToPath(new URL('../../target/release/chainrule', import.meta.url));
export const program = process.env.STUDIO_PROGRAM ?? built;
export const isThere = existsSync(program);

/** Starts the program in a folder; the address that it prints, and the process. */
async function start(words, folder, command) {
  const child = spawn(command, words.split(' '), { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  const url = await new Promise((done, failed) => {
    const read = (part) => {
      text += part;
      const found = /http:\/\/127\.0\.0\.1:\d+\/#token=\S+/.exec(text);
      if (found) done(found[0]);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('exit', () => failed(new Error(`no address: ${text}`)));
    child.on('error', failed);
  });
  const gone = new Promise((done) => child.once('exit', done));
  return { url, child, gone };
}

const step = (page) => page.locator('[aria-label=Run] [role=status] b').first().innerText().then(Number);
const passes = (page, n) => page.waitForFunction((n) => Number(document.querySelector('[aria-label=Run] [role=status] b')?.textContent) > n, n);
const TRAIN = 'train names --steps 2000000 --hidden 20 --monitor-every 50';

export async function inFolder(run, command = program) {
  const folder = mkdtempSync(join(tmpdir(), 'chainrule-page-'));
  const started = [];
  const launch = async (words) => {
    const one = await start(words, folder, command);
    started.push(one);
    return one;
  };
  try {
    await run(launch, folder);
  } finally {
    for (const { child, gone } of started) {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await gone;
    }
    await removed(folder);
  }
}

/** Removes a folder in which a fork may still write: a process of its own, it saves its last files when its parent has ended. */
async function removed(folder, tries = 100) {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    if (error.code !== 'ENOTEMPTY' || tries === 0) throw error;
    await new Promise((done) => setTimeout(done, 100));
    await removed(folder, tries - 1);
  }
}

/** A training with a page beside it: watched, held, stepped, steered; and the page when it is killed. */
export async function heldAndKilled({ page, errors }) {
  await inFolder(async (launch) => {
    const { url, child, gone } = await launch(`${TRAIN} --studio --out run`);
    await page.goto(url);
    await live(page);
    await passes(page, 60);
    await page.getByRole('heading', { name: /Values and gradients of step/ }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Go on' }).waitFor();
    await page.waitForTimeout(300);
    const held = await step(page);
    await page.waitForTimeout(300);
    assert.equal(await step(page), held, 'it is held');
    await page.getByRole('button', { name: 'One step' }).click();
    await page.waitForFunction((n) => Number(document.querySelector('[aria-label=Run] [role=status] b')?.textContent) === n + 1, held);
    await page.getByRole('spinbutton', { name: 'Rate' }).fill('0.0125');
    await page.getByRole('button', { name: 'Use rate 0.0125' }).click();
    await page.getByRole('button', { name: 'Go on' }).click();
    await passes(page, held + 20);
    await page.getByRole('status').filter({ hasText: 'rate 0.0125' }).waitFor();
    // The page is opened anew, and has the whole run.
    await page.reload();
    await passes(page, held + 20);
    child.kill('SIGKILL');
    await gone;
    await page.getByRole('alert').filter({ hasText: 'lost' }).waitFor();
    assert.ok((await step(page)) > held, 'what was seen stays');
    // A browser says itself that it cannot connect.
    errors.splice(0, errors.length, ...errors.filter((e) => !/WebSocket connection|ERR_CONNECTION_REFUSED/.test(e)));
  });
}

/** A training whose state is kept, and which goes on from there as another run beside it. */
export async function forked({ page }) {
  await inFolder(async (launch, folder) => {
    const { url } = await launch(`${TRAIN} --studio --out run`);
    await page.goto(url);
    await live(page);
    await passes(page, 30);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Go on' }).waitFor();
    await page.waitForTimeout(300);
    const at = await step(page);
    await page.getByRole('button', { name: 'Checkpoint' }).click();
    const fork = page.getByRole('button', { name: `Fork at ${at}` });
    await fork.waitFor();
    assert.equal(await step(page), at, 'it is held all the while');
    await page.getByRole('spinbutton', { name: 'Rate' }).fill('0.0125');
    await fork.click();
    // The fork is shown by itself, trains with its own rate, and is steered from here.
    await page.getByRole('combobox', { name: 'Run' }).locator('option').nth(1).waitFor({ state: 'attached', timeout: 20_000 });
    await page.getByRole('combobox', { name: 'Run' }).selectOption({ label: `run-at-${at}-fork` });
    await passes(page, at + 20);
    await page.getByRole('status').filter({ hasText: 'rate 0.0125' }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Go on' }).waitFor();
    await page.waitForTimeout(1500);
    const held = await step(page);
    await page.waitForTimeout(500);
    assert.equal(await step(page), held, 'the fork is held');
    await page.getByRole('combobox', { name: 'Run' }).selectOption({ index: 0 });
    assert.equal(await step(page), at, 'the first run is where it was');
    await page.getByRole('button', { name: 'Go on' }).click();
    await passes(page, at + 20);
    for (const file of ['config.toml', 'last.ckpt', 'metrics.jsonl']) assert.ok(existsSync(join(folder, `run-at-${at}`, file)), file);
  });
}

/** A run that is read from its folder while another process trains there, is killed and goes on. */
export async function followedAndResumed({ page }) {
  await inFolder(async (launch, folder) => {
    const first = await launch(`${TRAIN} --studio --save-every 200 --out run`);
    await new Promise((done) => setTimeout(done, 1500));
    const server = await launch('studio run --no-open');
    await page.goto(server.url);
    await live(page);
    await passes(page, 400);
    await page.getByText('read from its files').waitFor();
    first.child.kill('SIGKILL');
    await first.gone;
    await page.getByText('its process ended before the run did').waitFor({ timeout: 20_000 });
    const at = await step(page);
    assert.ok(existsSync(join(folder, 'run', 'metrics.jsonl')));
    const again = await launch('train names --resume run --studio');
    await page.getByText('read from its files').waitFor();
    await passes(page, at + 50);
    again.child.kill('SIGINT');
    await again.gone;
    await page.getByText('The run has ended: stopped by its user.').waitFor({ timeout: 20_000 });
    // The server is ended; the page says so.
    server.child.kill('SIGKILL');
    await page.getByRole('alert').filter({ hasText: 'lost' }).waitFor();
  });
}

/** `--example names` opens on the backward pass, and a solution can be shown. */
export async function namesFromTheProgram({ page }) {
  await inFolder(async (launch) => {
    const { url } = await launch('studio --example names --no-open');
    await page.goto(url);
    await live(page);
    await page.locator('.graph canvas').waitFor();
    await page.getByText(/values, \d+ steps back/).waitFor();
    await page.getByRole('link', { name: 'Truth' }).click();
    await page.getByRole('button', { name: 'Start over' }).click();
    await page.getByText('26 not written yet').waitFor();
    await page.getByRole('button', { name: 'Show a solution' }).click();
    await page.getByText('All of it is right.').waitFor({ timeout: 20_000 });
  });
}
