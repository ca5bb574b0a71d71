// The graph on a canvas: only what is in view is drawn, text only where it can be read.

import type { Folded } from './fold';
import type { Box, Layout } from './layout';
import type { Values } from './protocol';

export interface View {
  x: number;
  y: number;
  scale: number;
}

export interface Marks {
  current: string | null;
  selected: string | null;
  /** Boxes whose gradient is there, with its strength from 0 to 1. */
  reached: ReadonlyMap<string, number>;
  /** The gradients themselves, of boxes that stand for one small tensor. */
  gradients: ReadonlyMap<string, Values>;
  /** Edges along which a gradient flows in this step, as `from>to` of the forward pass. */
  flowing: ReadonlySet<string>;
}

export interface Palette {
  panel: string;
  raised: string;
  line: string;
  text: string;
  soft: string;
  accent: string;
  warm: string;
  parameter: string;
  edge: string;
}

export function palette(element: Element): Palette {
  const probe = document.createElement('span');
  element.append(probe);
  const read = (name: string) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    panel: read('--panel'), raised: read('--raised'), line: read('--line'), text: read('--text'),
    soft: read('--soft'), accent: read('--accent'), warm: read('--warm'), parameter: read('--good'), edge: read('--edge'),
  };
  probe.remove();
  return colours;
}

const TEXT_FROM = 0.35;
export const BOX_HEIGHT = 52;
const STRIP_TOP = 36;
const STRIP = 9;

export function draw(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  ratio: number,
  view: View,
  layout: Layout,
  folded: Folded,
  marks: Marks,
  colours: Palette,
  thumbnail: (values: Values) => CanvasImageSource,
) {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, ratio * view.x, ratio * view.y);
  const left = -view.x / view.scale;
  const top = -view.y / view.scale;
  const right = left + width / view.scale;
  const bottom = top + height / view.scale;
  const seen = (b: Box) => b.x + b.width > left && b.x < right && b.y + b.height > top && b.y < bottom;

  context.lineWidth = Math.max(1.4, 0.8 / view.scale);
  context.strokeStyle = colours.edge;
  context.beginPath();
  for (const { from, to, via } of layout.edges) {
    const a = layout.boxes.get(from);
    const b = layout.boxes.get(to);
    if (!a || !b || marks.flowing.has(`${from}>${to}`)) continue;
    if (Math.max(a.y, b.y) < top || Math.min(a.y, b.y) > bottom) continue;
    curve(context, a, b, via);
  }
  context.stroke();
  context.strokeStyle = context.fillStyle = colours.warm;
  context.lineWidth = Math.max(2.6, 1.6 / view.scale);
  for (const { from, to, via } of layout.edges) {
    const a = layout.boxes.get(from);
    const b = layout.boxes.get(to);
    if (!a || !b || !marks.flowing.has(`${from}>${to}`)) continue;
    context.beginPath();
    curve(context, a, b, via);
    context.stroke();
    // The gradient runs against the direction of the computation.
    const x = a.x + a.width / 2;
    const y = a.y + a.height;
    context.beginPath();
    context.moveTo(x, y + 1);
    context.lineTo(x - 5, y + 10);
    context.lineTo(x + 5, y + 10);
    context.fill();
  }

  const text = view.scale >= TEXT_FROM;
  context.textAlign = 'center';
  for (const box of layout.boxes.values()) {
    if (!seen(box)) continue;
    const shown = folded.shown.get(box.id);
    if (!shown) continue;
    const current = marks.current === box.id;
    const strength = marks.reached.get(box.id);
    context.fillStyle = shown.kind === 'module' ? colours.raised : colours.panel;
    context.strokeStyle = current ? colours.warm : marks.selected === box.id ? colours.accent : colours.edge;
    context.lineWidth = current || marks.selected === box.id ? 3 : 1.3;
    context.beginPath();
    context.roundRect(box.x, box.y, box.width, box.height, 8);
    context.fill();
    if (strength !== undefined) {
      context.globalAlpha = 0.1 + 0.4 * strength;
      context.fillStyle = colours.warm;
      context.fill();
      context.globalAlpha = 1;
    }
    context.stroke();
    if (shown.kind === 'leaf' || shown.kind === 'root') {
      context.fillStyle = shown.kind === 'root' ? colours.accent : colours.parameter;
      context.fillRect(box.x + 8, box.y + box.height - 4.5, box.width - 16, 2.5);
    }
    const gradient = marks.gradients.get(box.id);
    if (gradient && view.scale >= 0.25) {
      context.imageSmoothingEnabled = gradient.data.length > 300;
      context.drawImage(thumbnail(gradient), box.x + 8, box.y + STRIP_TOP, box.width - 16, STRIP);
    }
    if (!text) continue;
    context.fillStyle = colours.text;
    context.font = '600 13px system-ui, sans-serif';
    context.fillText(shown.label, box.x + box.width / 2, box.y + 17, box.width - 10);
    context.fillStyle = colours.soft;
    context.font = '11px system-ui, sans-serif';
    context.fillText(shown.detail, box.x + box.width / 2, box.y + 32, box.width - 10);
  }
}

function curve(context: CanvasRenderingContext2D, a: Box, b: Box, via: readonly { x: number; y: number }[]) {
  let x = a.x + a.width / 2;
  let y = a.y + a.height;
  context.moveTo(x, y);
  for (const next of [...via, { x: b.x + b.width / 2, y: b.y }]) {
    const bend = (next.y - y) / 2;
    context.bezierCurveTo(x, y + bend, next.x, next.y - bend, next.x, next.y);
    ({ x, y } = next);
  }
}
