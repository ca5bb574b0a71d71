// KaTeX, loaded with the first formula. It builds elements: the page needs no inline styles.

import { parts } from './parts.svelte';

let loaded: Promise<typeof import('katex')> | null = null;

export async function typeset(element: HTMLElement, tex: string, block: boolean) {
  loaded ??= parts.load(() => Promise.all([import('katex'), import('katex/dist/katex.min.css')])).then(([katex]) => katex);
  const katex = await loaded;
  katex.default.render(tex, element, { displayMode: block, throwOnError: false, trust: false, strict: false });
}
