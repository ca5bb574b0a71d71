// Every lesson from its first page to its last: each question with a wrong answer and with the right one,
// each exercise with a usual mistake and with a solution.

import assert from 'node:assert/strict';
import { loadLessons } from './lessons.mjs';
import { wanted } from './reference.mjs';

const typed = (list) => (list.length === 0 ? '[]' : list.join(', '));

async function verdict(form) {
  const note = form.locator('.verdict .note');
  await note.waitFor({ timeout: 20_000 });
  return note.innerText();
}

async function answerCode(form, question) {
  const options = form.locator('.option');
  const right = question.options.findIndex((o) => o.why === '');
  const wrong = (right + 1) % question.options.length;
  await options.nth(wrong).click();
  await form.getByRole('button', { name: 'Check' }).click();
  const said = await verdict(form);
  assert.match(said, /Not yet/, `${question.id}: ${question.options[wrong].code} passed`);
  await options.nth(right).click();
  await form.getByRole('button', { name: 'Check' }).click();
  assert.match(await verdict(form), /Right/, `${question.id}: ${question.options[right].code} did not pass`);
}

async function answerTyped(form, question) {
  const field = form.locator('input');
  const numbers = Object.fromEntries([question.want, ...question.also].map((want) => [want, wanted(question.source, want).data]));
  const right = question.at === undefined ? numbers[question.want] : [numbers[question.want][question.at]];
  const far = (list) => list.length !== right.length || list.some((x, i) => Math.abs(x - right[i]) > Math.max(0.02 * Math.abs(right[i]), 2e-3));
  const usual = question.wrong.map((w) => ({ list: [w.is(numbers)].flat(), why: w.why })).find((w) => far(w.list) && w.list.every(Number.isFinite));
  const wrong = usual ?? { list: right.map((x) => x + 3), why: '' };
  await field.fill(typed(wrong.list));
  await form.getByRole('button', { name: 'Check' }).click();
  const said = await verdict(form);
  assert.match(said, /Not yet/, `${question.id}: ${typed(wrong.list)} passed for ${typed(right)}\n${question.source}`);
  if (usual) assert.ok(said.replace(/\s+/g, '').length > 12, `${question.id} gives no reason: ${said}`);
  await field.fill(typed(right.map((x) => Number(x.toPrecision(6)))));
  await form.getByRole('button', { name: 'Check' }).click();
  const praise = await verdict(form);
  assert.match(praise, /Right/, `${question.id}: ${typed(right)} did not pass: ${praise}\n${question.source}`);
}

async function solve(section, exercise) {
  const area = section.locator('textarea');
  await area.fill(exercise.slip);
  await section.getByRole('button', { name: 'Check' }).click();
  await section.locator('table').waitFor();
  assert.equal(await section.locator('.note.good').count(), 0, `${exercise.id}: the slip passed`);
  await area.fill(exercise.solution ?? exercise.reference);
  await section.getByRole('button', { name: 'Check' }).click();
  await section.locator('.note.good').waitFor({ timeout: 20_000 });
}

/** Plants a mistake, guesses wrong, and then finds it with the place that the page tells. */
export async function hunt(page) {
  await page.getByRole('button', { name: 'Plant a mistake' }).click();
  await page.locator('.hunt tr.wrong, .hunt tr.shape').first().waitFor();
  await page.getByRole('button', { name: 'Tell me' }).click();
  const place = (await page.locator('.hunt .note').innerText()).split(/[:,]/)[0].trim();
  const options = await page.locator('.hunt form option').allInnerTexts();
  const right = options.findIndex((option) => option.startsWith(`${place} =`));
  assert.ok(right > 0, `${place} is not among ${options}`);
  const check = page.locator('.hunt form').getByRole('button', { name: 'Check' });
  await page.locator('.hunt form select').selectOption({ index: right === 1 ? 2 : 1 });
  await check.click();
  await page.getByText('Not there.').waitFor();
  await page.locator('.hunt form select').selectOption({ index: right });
  await check.click();
  await page.getByText('Found.').waitFor();
}

/** Answers a block wrong and then right; 1 if there was something to answer. */
async function solveBlock(page, block, Draw) {
  if ('quiz' in block) {
    const form = page.locator(`[data-quiz="${block.quiz.id}"]`);
    const question = block.quiz.make(new Draw(Number(await form.getAttribute('data-seed'))));
    await (question.kind === 'code' ? answerCode(form, question) : answerTyped(form, question));
  } else if ('exercise' in block) {
    await solve(page.locator(`[data-exercise="${block.exercise.id}"]`), block.exercise);
  } else if ('backward' in block) {
    await page.getByRole('button', { name: 'Show a solution' }).click();
    await page.getByText('All of it is right.').waitFor({ timeout: 20_000 });
  } else if ('hunt' in block) {
    await hunt(page);
  } else return 0;
  return 1;
}

export async function everyLesson(page, url) {
  const { lessons, Draw } = await loadLessons();
  const faults = [];
  let solved = 0;
  for (const lesson of lessons) {
    await page.goto(`${url}#/lessons/${lesson.id}/1`);
    for (const [at, content] of lesson.pages.entries()) {
      await page.getByRole('heading', { level: 1, name: content.title, exact: true }).waitFor();
      for (const block of content.blocks) {
        try {
          solved += await solveBlock(page, block, Draw);
        } catch (error) {
          // One report of all that is wrong, not of the first thing alone.
          faults.push(`${lesson.id}, page ${at + 1}: ${error.message}`);
        }
      }
      // Pictures that the engine could not make say so.
      await page.waitForTimeout(150);
      for (const text of await page.locator('.note.warn:not([role=status])').allInnerTexts()) faults.push(`${lesson.id}, page ${at + 1}: ${text}`);
      await page.locator('button.next').click();
    }
  }
  assert.deepEqual(faults, []);
  await page.goto(`${url}#/lessons`);
  await page.getByText(`${solved} of ${solved} solved`).waitFor();
  // The place is kept: a new visit finds it.
  await page.reload();
  await page.getByText(`${solved} of ${solved} solved`).waitFor();
  return solved;
}
