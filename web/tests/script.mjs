// A script of the Python package that the studio runs: its own computation on all pages.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { live } from './browser.mjs';
import { inFolder } from './live.mjs';

/** A Python that has the package. */
export const python = process.env.STUDIO_PYTHON;

const SCRIPT = `import chainrule as cr
from chainrule import nn

cr.manual_seed(3)
layer = nn.Linear(4, 6)
W2 = (cr.randn(6, 3) * 0.3).requires_grad_()
optimizer = cr.optim.SGD([*layer.parameters(), W2], lr=0.1)
x, target = cr.randn(16, 4), cr.randn(16, 3)
for i in range(300):
    optimizer.zero_grad()
    h = layer(x).tanh()
    apart = h @ W2 - target
    loss = (apart * apart).mean()
    loss.backward()
    optimizer.step()
`;

const BACKWARD = `dapart = 2 * apart / 48
dh = dapart @ W2.T
dW2 = h.T @ dapart
da = dh * (1 - h * h)
dlayer_weight = da.T @ x
dlayer_bias = da.sum(0)
`;

export async function ownScript({ page }) {
  await inFolder(async (launch, folder) => {
    writeFileSync(join(folder, 'train.py'), SCRIPT);
    const { url } = await launch('-m chainrule._studio_file train.py --no-open');
    const [base, token] = url.split('#');
    const go = (to) => page.goto(`${base}#/${to}`);
    await page.goto(`${base}#${token}`);
    await live(page);
    await page.getByText('loss = (apart * apart).mean()').first().waitFor();

    await go('truth');
    const area = page.locator('textarea').first();
    await area.fill(BACKWARD);
    await page.getByText('All of it is right.').waitFor();
    // The gradients are compared where the tape is: its mistake is named, with the line that was typed.
    await area.fill(BACKWARD.replace('1 - h * h', '1 - h'));
    await page.getByRole('status').filter({ hasText: /Line [56]/ }).waitFor();
    await area.fill('dapart = apart @ nothing\n');
    await page.getByText('Line 1:').waitFor();

    await go('program');
    await page.getByRole('heading', { name: 'As run' }).waitFor();
    assert.ok((await page.getByText('tanh').count()) > 0);

    await go('algebra');
    assert.equal(await page.getByRole('combobox', { name: 'Function' }).locator('option:checked').textContent(), 'train.py (your program)');
    await page.getByText(/rewrites? turns? it into the/).waitFor();

    await go('training');
    await page.waitForFunction(() => document.querySelector('[aria-label=Run] [role=status] b')?.textContent === '300');
    await page.locator('.uplot canvas').first().waitFor();
  }, python);
}
