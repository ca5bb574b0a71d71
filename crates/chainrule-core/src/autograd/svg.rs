//! A drawing of a graph in layers: the layer of each box, its order there, its position, and the
//! SVG.
//!
//! An arrow over several layers runs through an invisible box in each layer between, so that it
//! passes beside the visible boxes.

use std::collections::HashSet;
use std::fmt::Write;

use super::graph::{GraphTensor, GraphTensorKind};

const LINE: f64 = 15.0;
const PAD: f64 = 8.0;
/// The strip with the op's name above a box.
const HEAD: f64 = 20.0;
/// The width of a character of the 12 px monospace font, rounded up.
const CHAR: f64 = 7.4;
const GAP_X: f64 = 26.0;
const GAP_Y: f64 = 34.0;
const MARGIN: f64 = 16.0;
/// Rounds of improving the order in the layers and the places, down and up.
const ROUNDS: usize = 12;

/// A box, or an invisible one that an arrow passes through.
struct Slot {
    /// The tensor it shows.
    tensor: Option<usize>,
    layer: usize,
    width: f64,
    height: f64,
    /// Its middle.
    x: f64,
    /// The slots linked to it, and the ports: its own above, those of the others below.
    above: Vec<(usize, f64)>,
    below: Vec<(usize, f64)>,
}

/// From the bottom of a slot to the top of one in the next layer.
struct Link {
    from: usize,
    to: usize,
    /// Its end on the box: 0 is the left end, 1 the right.
    port: f64,
}

struct GraphLayout {
    slots: Vec<Slot>,
    links: Vec<Link>,
    layers: Vec<Vec<usize>>,
}

pub(super) fn draw(tensors: &[GraphTensor]) -> String {
    let mut layout = GraphLayout::new(tensors);
    layout.order();
    layout.place();
    layout.write(tensors)
}

/// The layer of each tensor: results below their inputs, leaves right above their first use.
fn layers(tensors: &[GraphTensor]) -> Vec<usize> {
    // Inputs mostly have higher numbers than their results here, so one or two rounds suffice.
    let mut depth = vec![0usize; tensors.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (i, t) in tensors.iter().enumerate().rev() {
            let least = t.inputs.iter().map(|&j| depth[j] + 1).max().unwrap_or(0);
            if least > depth[i] {
                depth[i] = least;
                changed = true;
            }
        }
    }
    let mut nearest = vec![usize::MAX; tensors.len()];
    for (i, t) in tensors.iter().enumerate() {
        for &j in &t.inputs {
            nearest[j] = nearest[j].min(depth[i]);
        }
    }
    for (i, t) in tensors.iter().enumerate() {
        if t.inputs.is_empty() && nearest[i] != usize::MAX {
            depth[i] = nearest[i] - 1;
        }
    }
    depth
}

impl GraphLayout {
    fn new(tensors: &[GraphTensor]) -> GraphLayout {
        let depth = layers(tensors);
        let last = depth.iter().copied().max().unwrap_or(0);
        let mut layout = GraphLayout {
            slots: Vec::new(),
            links: Vec::new(),
            layers: vec![Vec::new(); last + 1],
        };
        for (i, t) in tensors.iter().enumerate() {
            let lines = t.lines();
            let widest = lines.iter().map(|l| columns(l)).max().unwrap_or(0);
            let widest = widest.max(t.op.map_or(0, columns));
            let head = if t.op.is_some() { HEAD } else { 0.0 };
            let width = widest as f64 * CHAR + 2.0 * PAD;
            let height = head + lines.len() as f64 * LINE + PAD;
            layout.slot(Some(i), depth[i], width, height);
        }
        for (i, t) in tensors.iter().enumerate() {
            for (k, &j) in t.inputs.iter().enumerate() {
                let mut from = j;
                for layer in depth[j] + 1..depth[i] {
                    let through = layout.slot(None, layer, 8.0, 0.0);
                    layout.link(from, through, 0.5);
                    from = through;
                }
                let port = (k + 1) as f64 / (t.inputs.len() + 1) as f64;
                layout.link(from, i, port);
            }
        }
        layout
    }

    fn slot(&mut self, tensor: Option<usize>, layer: usize, width: f64, height: f64) -> usize {
        self.slots.push(Slot {
            tensor,
            layer,
            width,
            height,
            x: 0.0,
            above: Vec::new(),
            below: Vec::new(),
        });
        self.layers[layer].push(self.slots.len() - 1);
        self.slots.len() - 1
    }

    fn link(&mut self, from: usize, to: usize, port: f64) {
        self.links.push(Link { from, to, port });
        self.slots[from].below.push((to, port));
        self.slots[to].above.push((from, port));
    }

    /// Orders each layer by the mean place of the neighbours, down and up in turn, and keeps the
    /// order with the fewest crossings.
    fn order(&mut self) {
        let mut best = (self.crossings(), self.layers.clone());
        for round in 0..ROUNDS {
            let down = round % 2 == 0;
            let rank = self.ranks();
            let mut rank: Vec<f64> = rank.into_iter().map(|r| r as f64).collect();
            let count = self.layers.len();
            for step in 0..count {
                let layer = if down { step } else { count - 1 - step };
                let mut order = self.layers[layer].clone();
                let wish = |&s: &usize| {
                    let slot = &self.slots[s];
                    let around = if down { &slot.above } else { &slot.below };
                    let place = |&(n, port): &(usize, f64)| match down {
                        true => rank[n],
                        false => rank[n] + port,
                    };
                    let sum: f64 = around.iter().map(place).sum();
                    match around.len() {
                        0 => rank[s],
                        n => sum / n as f64,
                    }
                };
                let mut wishes: Vec<(f64, usize)> = order.iter().map(|s| (wish(s), *s)).collect();
                wishes.sort_by(|a, b| a.0.total_cmp(&b.0));
                order.clear();
                for (place, (_, s)) in wishes.into_iter().enumerate() {
                    rank[s] = place as f64;
                    order.push(s);
                }
                self.layers[layer] = order;
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
        }
        self.layers = best.1;
    }

    /// The place of each slot in its layer.
    fn ranks(&self) -> Vec<usize> {
        let mut rank = vec![0; self.slots.len()];
        for layer in &self.layers {
            for (place, &s) in layer.iter().enumerate() {
                rank[s] = place;
            }
        }
        rank
    }

    fn crossings(&self) -> usize {
        let rank = self.ranks();
        let mut between: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.layers.len()];
        for link in &self.links {
            let end = rank[link.to] as f64 + link.port;
            between[self.slots[link.from].layer].push((rank[link.from], end));
        }
        let crossed = |links: &Vec<(usize, f64)>| {
            let mut count = 0;
            for (i, a) in links.iter().enumerate() {
                count += links[..i]
                    .iter()
                    .filter(|b| (a.0 < b.0 && a.1 > b.1) || (a.0 > b.0 && a.1 < b.1))
                    .count();
            }
            count
        };
        between.iter().map(crossed).sum()
    }

    /// Gives every slot its x: as near to its neighbours' mean as the order and the widths allow.
    fn place(&mut self) {
        for layer in self.layers.clone() {
            let mut x = 0.0;
            for s in layer {
                self.slots[s].x = x + self.slots[s].width / 2.0;
                x += self.slots[s].width + GAP_X;
            }
        }
        let count = self.layers.len();
        for round in 0..2 * ROUNDS {
            let down = round % 2 == 0;
            for step in 0..count {
                let layer = if down { step } else { count - 1 - step };
                self.settle(layer, round + 2 < 2 * ROUNDS, down);
            }
        }
    }

    /// Moves the slots of a layer towards their neighbours: those on one side, or on both in the
    /// last rounds. Least squares under the condition that nothing overlaps: slots that would
    /// collide are pooled in a block that moves as one.
    fn settle(&mut self, layer: usize, one_side: bool, down: bool) {
        struct SlotBlock {
            /// The sum of the wanted positions, each less the slot's offset in the block, and the
            /// sum of the weights.
            wish: f64,
            weight: f64,
            start: usize,
        }
        let order = self.layers[layer].clone();
        let mut offsets = vec![0.0; order.len()];
        for k in 1..order.len() {
            let (a, b) = (&self.slots[order[k - 1]], &self.slots[order[k]]);
            offsets[k] = offsets[k - 1] + (a.width + b.width) / 2.0 + GAP_X;
        }
        let mut blocks: Vec<SlotBlock> = Vec::new();
        for (k, &s) in order.iter().enumerate() {
            let slot = &self.slots[s];
            let above = slot.above.iter().filter(|_| down || !one_side);
            let below = slot.below.iter().filter(|_| !down || !one_side);
            let above = above.map(|&(n, port)| self.slots[n].x - (port - 0.5) * slot.width);
            let below = below.map(|&(n, port)| {
                let other = &self.slots[n];
                other.x + (port - 0.5) * other.width
            });
            let (n, sum) = above.chain(below).fold((0, 0.0), |(n, sum), x| (n + 1, sum + x));
            // A box without a wanted position stays; arrows over several layers should be straight.
            let (wish, weight) = match (n, slot.tensor) {
                (0, _) => (slot.x, 0.1),
                (n, None) => (sum / n as f64, 3.0),
                (n, Some(_)) => (sum / n as f64, 1.0),
            };
            let mut block = SlotBlock { wish: (wish - offsets[k]) * weight, weight, start: k };
            while let Some(before) =
                blocks.pop_if(|b| b.wish / b.weight > block.wish / block.weight)
            {
                block.wish += before.wish;
                block.weight += before.weight;
                block.start = before.start;
            }
            blocks.push(block);
        }
        let mut end = order.len();
        for block in blocks.iter().rev() {
            for k in block.start..end {
                self.slots[order[k]].x = block.wish / block.weight + offsets[k];
            }
            end = block.start;
        }
    }

    /// The top of each layer and its height.
    fn bands(&self) -> Vec<(f64, f64)> {
        let mut top = MARGIN;
        let mut bands = Vec::new();
        for layer in &self.layers {
            let height = layer.iter().map(|&s| self.slots[s].height).fold(0.0, f64::max);
            bands.push((top, height));
            top += height + GAP_Y;
        }
        bands
    }

    fn write(&self, tensors: &[GraphTensor]) -> String {
        let bands = self.bands();
        let left = self.slots.iter().map(|s| s.x - s.width / 2.0).fold(f64::INFINITY, f64::min);
        let right = self.slots.iter().map(|s| s.x + s.width / 2.0).fold(0.0, f64::max);
        let shift = MARGIN - left;
        let width = right - left + 2.0 * MARGIN;
        let height = bands.last().map_or(0.0, |(top, height)| top + height) + MARGIN;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"12\">\n\
             <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
             <path d=\"M0 0.5 L8 4 L0 7.5 z\" fill=\"#6b7280\"/></marker></defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        self.write_links(&bands, shift, &mut out);
        for slot in &self.slots {
            if let Some(i) = slot.tensor {
                let (top, height) = bands[slot.layer];
                let y = top + (height - slot.height) / 2.0;
                write_box(&tensors[i], slot, slot.x - slot.width / 2.0 + shift, y, &mut out);
            }
        }
        out.push_str("</svg>\n");
        out
    }

    fn write_links(&self, bands: &[(f64, f64)], shift: f64, out: &mut String) {
        let mut drawn = HashSet::new();
        for link in &self.links {
            let (from, to) = (&self.slots[link.from], &self.slots[link.to]);
            let (x0, x1) = (from.x + shift, to.x + (link.port - 0.5) * to.width + shift);
            let (top, height) = bands[from.layer];
            // A box ends above the bottom of its layer if others are higher; an arrow that passes
            // through goes on to the bottom.
            let y0 = top + (height + from.height) / 2.0;
            let bottom = top + height;
            let (top, height) = bands[to.layer];
            let y1 = if to.tensor.is_some() { top + (height - to.height) / 2.0 } else { top };
            let mut path = match from.tensor {
                Some(_) => format!("M{x0:.1} {y0:.1} L{x0:.1} {bottom:.1}"),
                None => format!("M{x0:.1} {:.1} L{x0:.1} {bottom:.1}", bands[from.layer].0),
            };
            let middle = (bottom + top) / 2.0;
            let _ = write!(path, " C{x0:.1} {middle:.1} {x1:.1} {middle:.1} {x1:.1} {top:.1}");
            if y1 > top {
                let _ = write!(path, " L{x1:.1} {y1:.1}");
            }
            let head = if to.tensor.is_some() { " marker-end=\"url(#arrow)\"" } else { "" };
            if drawn.insert(path.clone()) {
                let _ = writeln!(
                    out,
                    "<path d=\"{path}\" fill=\"none\" stroke=\"#6b7280\" stroke-width=\"1.2\"{head}/>"
                );
            }
        }
    }
}

fn write_box(t: &GraphTensor, slot: &Slot, x: f64, y: f64, out: &mut String) {
    let (w, h) = (slot.width, slot.height);
    let (fill, dash) = match t.kind() {
        GraphTensorKind::Leaf => ("#e8f3e6", ""),
        GraphTensorKind::Constant => ("#f3f4f6", ""),
        GraphTensorKind::Result => ("#ffffff", ""),
        GraphTensorKind::LeftOut => ("#ffffff", " stroke-dasharray=\"4 3\""),
    };
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"4\" fill=\"{fill}\" stroke=\"#374151\"{dash}/>"
    );
    let mut baseline = y + LINE;
    if let Some(op) = t.op {
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {:.1} v-{:.1} q0 -4 4 -4 h{:.1} q4 0 4 4 v{:.1} z\" fill=\"#dbe7fb\" stroke=\"#374151\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            y + HEAD,
            HEAD - 4.0,
            w - 8.0,
            HEAD - 4.0,
            x + w / 2.0,
            y + HEAD - 6.0,
            escape(op)
        );
        baseline += HEAD;
    }
    for (k, line) in t.lines().iter().enumerate() {
        let bold = if k == 0 && t.name.is_some() { " font-weight=\"bold\"" } else { "" };
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" xml:space=\"preserve\"{bold}>{}</text>",
            x + PAD,
            baseline + k as f64 * LINE,
            escape(line)
        );
    }
}

/// Columns of the text in a monospace font; East Asian characters take two.
fn columns(text: &str) -> usize {
    text.chars().map(|c| if c >= '\u{1100}' { 2 } else { 1 }).sum()
}

/// As text of XML, which has no way to write control characters.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;

    /// Skips, leaves used in many places, an operand used twice: arrows that cross and pass by.
    fn tangle() -> crate::autograd::Graph {
        let x = Tensor::from([[0.5f64, -1.0], [2.0, 0.25]]).parameter();
        let x = x.named("<signs> & a name of more than forty characters");
        let mut layers = vec![x.tanh()];
        for i in 0..12 {
            let last = &layers[i];
            let skip = &layers[i / 2];
            layers.push((last.matmul(skip) * (&x + last) + i as i64).tanh());
        }
        layers[12].sum_all().graph()
    }

    #[test]
    fn nothing_overlaps_and_texts_fit() {
        let graph = tangle();
        let mut layout = GraphLayout::new(graph.tensors());
        let before = layout.crossings();
        layout.order();
        assert!(layout.crossings() < before);
        layout.place();
        for layer in &layout.layers {
            for pair in layer.windows(2) {
                let (a, b) = (&layout.slots[pair[0]], &layout.slots[pair[1]]);
                let gap = (b.x - b.width / 2.0) - (a.x + a.width / 2.0);
                assert!(gap >= GAP_X - 1e-6, "{gap}");
            }
        }
        for slot in &layout.slots {
            let Some(i) = slot.tensor else { continue };
            let t = &graph.tensors()[i];
            for line in t.lines() {
                assert!(columns(&line) as f64 * CHAR + 2.0 * PAD <= slot.width);
            }
            let head = if t.op.is_some() { HEAD } else { 0.0 };
            assert!(head + t.lines().len() as f64 * LINE < slot.height);
        }
    }

    #[test]
    fn arrows_go_down_one_layer_at_a_time() {
        let graph = tangle();
        let layout = GraphLayout::new(graph.tensors());
        for link in &layout.links {
            assert_eq!(layout.slots[link.from].layer + 1, layout.slots[link.to].layer);
        }
        let wanted: usize = graph.tensors().iter().map(|t| t.inputs.len()).sum();
        let arrived = layout.links.iter();
        let arrived = arrived.filter(|l| layout.slots[l.to].tensor.is_some());
        assert_eq!(arrived.count(), wanted);
    }

    #[test]
    fn names_cannot_break_the_xml() {
        assert_eq!(escape("a<b>&\"\n\u{7}"), "a&lt;b&gt;&amp;&quot;  ");
        let svg = tangle().to_svg();
        assert!(svg.contains("&lt;signs&gt; &amp; a name"));
        assert!(!svg.contains("& <"));
        assert_eq!(columns("\u{6f22}x"), 3);
    }
}
