import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';

/** KaTeX's style sheet with the faces that formulas here use, in woff2 alone. */
const slimFonts: Plugin = {
  name: 'slim-katex-fonts',
  enforce: 'pre',
  transform(code, id) {
    if (!id.includes('katex') || !id.includes('.css')) return null;
    return code
      .replace(/@font-face\{[^}]*KaTeX_(Caligraphic|Fraktur|SansSerif|Script)[^}]*\}/g, '')
      .replace(/,\s*url\([^)]*\.(woff|ttf)\)\s*format\("[a-z]+"\)/g, '');
  },
};

/** Removes the last build's files, but not engine.wasm, which cargo builds. */
function cleanAssets(): Plugin {
  let folder = '';
  return {
    name: 'clean-assets',
    apply: 'build',
    configResolved: (config) => void (folder = join(config.root, config.build.outDir, 'assets')),
    buildStart: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export default defineConfig({
  base: './',
  plugins: [slimFonts, cleanAssets(), svelte()],
  build: {
    outDir: '../crates/chainrule-studio/page',
    emptyOutDir: false,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  worker: { format: 'es' },
});
