// The page's source as modules, for tests in Node.

import { fileURLToPath } from 'node:url';
import { createServer } from 'vite';

/** Modules of the page's source, in TypeScript. */
export async function load(...paths) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const server = await createServer({ root, configFile: false, server: { middlewareMode: true, hmr: false, ws: false }, appType: 'custom', logLevel: 'error' });
  try {
    return await Promise.all(paths.map((path) => server.ssrLoadModule(path)));
  } finally {
    await server.close();
  }
}

export async function loadLessons() {
  const [{ lessons }, { Draw }] = await load('/src/lessons/index.ts', '/src/lessons/kit.ts');
  return { lessons, Draw };
}

export function quizzes(lessons) {
  return lessons.flatMap((lesson) => lesson.pages.flatMap((page, i) => page.blocks.flatMap((block) => ('quiz' in block ? [{ lesson: lesson.id, page: i + 1, quiz: block.quiz }] : []))));
}
