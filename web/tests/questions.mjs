// Each question, drawn many times: it has an answer that differences confirm, and its wrong answers are wrong.

import assert from 'node:assert/strict';
import { loadLessons, quizzes } from './lessons.mjs';
import { wanted } from './reference.mjs';

const DRAWS = 12;
const { lessons, Draw } = await loadLessons();
const all = quizzes(lessons);
const ids = all.map(({ quiz }) => quiz.id);
assert.equal(new Set(ids).size, ids.length, 'two questions have one name');
assert.ok(all.length >= 60, `${all.length} questions`);

const MOVES = ['lab', 'trace', 'broadcast', 'steps', 'arena', 'film', 'sides'];
for (const lesson of lessons) {
  const blocks = lesson.pages.flatMap((page) => page.blocks);
  assert.ok(blocks.some((block) => MOVES.some((kind) => kind in block)), `${lesson.id} has nothing to move`);
  assert.ok(blocks.filter((block) => 'quiz' in block).length >= 3, `${lesson.id} has few questions`);
}

for (const { quiz } of all) {
  const told = new Map();
  for (let seed = 1; seed <= DRAWS; seed++) {
    const question = quiz.make(new Draw(seed * 7919));
    if (question.kind === 'code') {
      assert.ok(question.options.length >= 3, `${quiz.id} has few options`);
      assert.equal(question.options.filter((o) => o.why === '').length, 1, `${quiz.id}: each wrong line needs its reason`);
      continue;
    }
    const numbers = {};
    for (const want of [question.want, ...question.also]) {
      try {
        numbers[want] = wanted(question.source, want).data;
      } catch (error) {
        throw new Error(`${quiz.id}, ${want}: ${error.message}\n${question.source}`);
      }
      assert.ok(numbers[want].every(Number.isFinite), `${quiz.id}: ${want} is not finite`);
    }
    const right = question.at === undefined ? numbers[question.want] : [numbers[question.want][question.at]];
    assert.ok(right.every((x) => x !== undefined), `${quiz.id}: no element ${question.at}`);
    if (question.kind === 'number') assert.equal(right.length, 1, `${quiz.id}: one number is typed, the answer has ${right.length}`);
    question.wrong.forEach((wrong, i) => {
      const other = [wrong.is(numbers)].flat();
      const distinct = other.length !== right.length || other.some((x, k) => Math.abs(x - right[k]) > Math.max(0.01 * Math.abs(right[k]), 6e-4));
      told.set(i, (told.get(i) ?? 0) + (distinct ? 1 : 0));
    });
  }
  for (const [i, count] of told) assert.ok(count >= DRAWS / 4, `${quiz.id}: wrong answer ${i} is right in ${DRAWS - count} of ${DRAWS} draws`);
}
console.log(`${all.length} questions in ${lessons.length} lessons hold`);
