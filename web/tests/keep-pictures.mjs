// Takes the pictures of the README and of the book from those of the tests: `npm run pictures`.

import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pictures } from './browser.mjs';

const images = fileURLToPath(new URL('../../docs/src/images', import.meta.url));
const kept = { backward: 'studio-backward', truth: 'studio-truth', 'lesson-depth': 'studio-lesson', training: 'studio-training' };
for (const [from, to] of Object.entries(kept)) copyFileSync(join(pictures, `${from}-light.png`), join(images, `${to}.png`));
console.log(`${Object.keys(kept).length} pictures in ${images}`);
