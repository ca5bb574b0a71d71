//! The graph of a computation as a drawing: DOT for Graphviz, or SVG drawn here.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;

use super::chart::{Chart, brief, number, statistics};
use super::svg;
use super::walk::Observer;
use crate::error::{Result, raise};
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source, lock};
use crate::tensor::value::Meta;

/// A drawing has at most this many tensors: those nearest to the loss.
const LIMIT: usize = 240;

/// Up to this many elements are written out, of more the mean and standard deviation.
const FEW: usize = 4;

/// The graph from leaves to loss, with values and gradients, to be drawn; made by
/// [`Tensor::graph`].
#[derive(Clone, Debug)]
pub struct Graph {
    tensors: Vec<GraphTensor>,
    left_out: usize,
}

/// A tensor in a [`Graph`], and the op that made it.
#[derive(Clone, Debug)]
pub struct GraphTensor {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The op that made it; `None` for leaves and constants.
    pub op: Option<&'static str>,
    /// Positions of the op's inputs in [`Graph::tensors`], in the op's order.
    pub inputs: Vec<usize>,
    /// Whether gradients flow to it; constants have none.
    pub requires_grad: bool,
    /// The value, if the tape has it: of leaves, what is saved for backward, and all inside
    /// [`crate::record_all`].
    pub value: Option<Tensor>,
    /// The gradient of the loss with respect to it.
    pub gradient: Option<Tensor>,
    /// The shape and dtype, where they are known.
    pub(super) meta: Option<Meta>,
    /// For the box that stands for everything left out: how many tensors that is.
    pub(super) stands_for: usize,
}

impl Graph {
    /// The tensors, the loss first.
    pub fn tensors(&self) -> &[GraphTensor] {
        &self.tensors
    }

    /// Number of tensors left out because the graph is large.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The drawing in Graphviz's language: boxes for tensors, ellipses for ops.
    pub fn to_dot(&self) -> String {
        let mut dot = String::from(
            "digraph chainrule {\n  rankdir=LR;\n  node [fontname=\"monospace\", fontsize=10];\n",
        );
        for (i, t) in self.tensors.iter().enumerate().rev() {
            let lines: Vec<String> = t.lines().iter().map(|line| escape(line)).collect();
            let look = match t.kind() {
                GraphTensorKind::Constant | GraphTensorKind::LeftOut => ", style=dashed",
                GraphTensorKind::Leaf => ", style=filled, fillcolor=\"#e8f3e6\"",
                GraphTensorKind::Result => "",
            };
            let label = lines.join("\\n");
            let _ = writeln!(dot, "  t{i} [shape=box{look}, label=\"{label}\"];");
            if let Some(op) = t.op {
                let op = escape(op);
                let _ = writeln!(dot, "  o{i} [shape=ellipse, label=\"{op}\"];\n  o{i} -> t{i};");
            }
            for input in &t.inputs {
                let _ = writeln!(dot, "  t{input} -> o{i};");
            }
        }
        dot.push_str("}\n");
        dot
    }

    /// The drawing as SVG, from the leaves above to the loss below. No other program is needed.
    pub fn to_svg(&self) -> String {
        svg::draw(&self.tensors)
    }
}

/// Kind of a drawn tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GraphTensorKind {
    Leaf,
    Constant,
    Result,
    LeftOut,
}

impl GraphTensor {
    pub(super) fn kind(&self) -> GraphTensorKind {
        match self.op {
            _ if self.stands_for > 0 => GraphTensorKind::LeftOut,
            Some(_) => GraphTensorKind::Result,
            None if self.requires_grad => GraphTensorKind::Leaf,
            None => GraphTensorKind::Constant,
        }
    }

    /// The text of its box: name, shape, value, gradient.
    pub(super) fn lines(&self) -> Vec<String> {
        if self.stands_for > 0 {
            return vec![format!("{} earlier tensors", self.stands_for)];
        }
        let mut lines = Vec::new();
        match (&self.name, self.kind()) {
            (Some(name), _) => lines.push(cut(name)),
            (None, GraphTensorKind::Leaf) => lines.push("leaf".into()),
            (None, GraphTensorKind::Constant) => lines.push("constant".into()),
            _ => {}
        }
        if let Some(meta) = self.meta
            && (meta.shape.rank() > 0 || self.value.is_none() && self.gradient.is_none())
        {
            lines.push(format!("{} {}", meta.dtype, meta.shape));
        }
        let described = [("value", &self.value), ("grad ", &self.gradient)];
        for (what, tensor) in described {
            if let Some(tensor) = tensor {
                lines.push(format!("{what} {}", describe(tensor)));
            }
        }
        if lines.is_empty() {
            lines.push("?".into());
        }
        lines
    }
}

/// The elements, or their mean and standard deviation.
fn describe(t: &Tensor) -> String {
    if t.numel() <= FEW {
        return brief(t, FEW);
    }
    let s = statistics(&t.to_f64_vec());
    format!("{} \u{b1} {}", number(s.mean), number(s.std))
}

/// The name, shortened to fit in a box.
fn cut(name: &str) -> String {
    const LONGEST: usize = 40;
    if name.chars().count() <= LONGEST {
        return name.to_string();
    }
    let start: String = name.chars().take(LONGEST - 1).collect();
    format!("{start}\u{2026}")
}

/// The text escaped for a string of Graphviz's language.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[derive(Default)]
struct Gradients(HashMap<u64, Tensor>);

impl Observer for Gradients {
    fn arrive(&mut self, target: &Source, gradient: &Tensor) {
        self.0.insert(target.number(), gradient.clone());
    }
}

/// Collects the tensors from the loss down, until there are enough.
struct GraphCollector<'a> {
    chart: &'a Chart,
    gradients: Gradients,
    tensors: Vec<GraphTensor>,
    places: HashMap<u64, usize>,
    /// Nodes that are shown and whose inputs are still to be visited.
    open: BTreeMap<u64, (usize, Arc<Node>)>,
    /// The box for everything left out.
    rest: Option<usize>,
}

impl GraphCollector<'_> {
    fn add(&mut self, source: &Source) -> usize {
        let number = source.number();
        if let Some(&place) = self.places.get(&number) {
            return place;
        }
        if self.tensors.len() >= LIMIT {
            return self.rest();
        }
        let place = self.tensors.len();
        self.places.insert(number, place);
        let op = match source {
            Source::Node(node) => {
                self.open.insert(number, (place, node.clone()));
                Some(node.op.name())
            }
            _ => None,
        };
        self.tensors.push(GraphTensor {
            name: source.shown_name(),
            op,
            inputs: Vec::new(),
            requires_grad: true,
            value: self.chart.value(source),
            gradient: self.gradients.0.get(&number).cloned(),
            meta: source.meta(),
            stands_for: 0,
        });
        place
    }

    fn constant(&mut self, value: Option<Tensor>) -> usize {
        if self.tensors.len() >= LIMIT {
            return self.rest();
        }
        self.tensors.push(GraphTensor {
            name: None,
            op: None,
            inputs: Vec::new(),
            requires_grad: false,
            meta: value.as_ref().map(Tensor::meta),
            value,
            gradient: None,
            stands_for: 0,
        });
        self.tensors.len() - 1
    }

    fn rest(&mut self) -> usize {
        if let Some(place) = self.rest {
            return place;
        }
        let place = self.tensors.len();
        self.tensors.push(GraphTensor {
            name: None,
            op: None,
            inputs: Vec::new(),
            requires_grad: true,
            value: None,
            gradient: None,
            meta: None,
            stands_for: 1,
        });
        self.rest = Some(place);
        place
    }

    fn add_inputs(&mut self, place: usize, node: &Node) {
        let saved = lock(&node.saved).inputs.clone();
        for (i, source) in node.inputs.iter().enumerate() {
            let input = if source.requires_grad() {
                self.add(source)
            } else {
                let value = saved.get(i).and_then(Option::as_ref);
                self.constant(value.map(|v| Tensor::from_parts(v.clone(), Source::None)))
            };
            let inputs = &mut self.tensors[place].inputs;
            if Some(input) != self.rest || !inputs.contains(&input) {
                inputs.push(input);
            }
        }
    }

    fn finish(mut self) -> Graph {
        while let Some((_, (place, node))) = self.open.pop_last() {
            self.add_inputs(place, &node);
        }
        let all = self.chart.nodes.len() + self.chart.leaves.len();
        let left_out = all - self.places.len();
        if let Some(rest) = self.rest {
            self.tensors[rest].stands_for = left_out.max(1);
        }
        Graph { tensors: self.tensors, left_out }
    }
}

impl Tensor {
    /// The graph that this single element was computed by, with values and gradients, to be drawn.
    /// No gradient changes and the graph is kept; hooks are called.
    ///
    /// The values of leaves are known, and those that the tape saved for backward; compute inside
    /// [`crate::record_all`] to have all. A large graph shows the 240 tensors nearest to this one,
    /// and one dashed box stands for the rest. Panics if this has more than one element or depends
    /// on no parameter; [`Tensor::try_graph`] returns the error.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::scalar(0.5f64).parameter().named("x");
    /// let graph = x.tanh().graph();
    /// assert_eq!(graph.tensors().len(), 2);
    /// assert!(graph.to_dot().contains("tanh") && graph.to_svg().starts_with("<svg"));
    /// ```
    #[track_caller]
    pub fn graph(&self) -> Graph {
        match self.try_graph() {
            Ok(graph) => graph,
            Err(e) => raise(e),
        }
    }

    /// Like [`Tensor::graph`], but returns the error.
    pub fn try_graph(&self) -> Result<Graph> {
        let chart = Chart::of(self);
        let mut gradients = Gradients::default();
        chart.walk("graph", self, &mut gradients)?;
        let mut collector = GraphCollector {
            chart: &chart,
            gradients,
            tensors: Vec::new(),
            places: HashMap::new(),
            open: BTreeMap::new(),
            rest: None,
        };
        collector.add(self.source());
        Ok(collector.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record_all;

    #[test]
    fn tensors_ops_values_and_gradients() {
        // By hand: loss = (a * b + 1)^2 as d * d, at a = 2, b = -3: d = -5, dd = -10, da = 30, db =
        // -20.
        let a = Tensor::scalar(2.0f64).parameter().named("a");
        let b = Tensor::scalar(-3.0f64).parameter().named("b");
        let loss = record_all(|| {
            let d = (&a * &b + 1.0).named("d");
            &d * &d
        });
        let graph = loss.graph();
        let find = |name: &str| {
            let mut all = graph.tensors().iter();
            all.find(|t| t.name.as_deref() == Some(name)).unwrap()
        };
        let numbers = |t: &GraphTensor| {
            let of = |t: &Option<Tensor>| t.as_ref().unwrap().item();
            (of(&t.value), of(&t.gradient))
        };
        assert_eq!(numbers(&graph.tensors()[0]), (25.0, 1.0));
        assert_eq!(numbers(find("d")), (-5.0, -10.0));
        assert_eq!(numbers(find("a")), (2.0, 30.0));
        assert_eq!(numbers(find("b")), (-3.0, -20.0));
        let square = &graph.tensors()[0];
        assert_eq!((square.op, square.inputs.len()), (Some("mul"), 2));
        assert_eq!(square.inputs[0], square.inputs[1]);
        // a, b, a*b, the constant 1, d and the loss.
        assert_eq!((graph.tensors().len(), graph.left_out()), (6, 0));
        assert!(a.grad().is_none());
        loss.backward();
        assert_eq!(a.grad().unwrap().item(), 30.0);
    }

    #[test]
    fn dot_text() {
        let x = Tensor::scalar(0.0f32).parameter().named("a \"b\" \\ c\nd");
        let dot = x.tanh().graph().to_dot();
        let expected = "digraph chainrule {
  rankdir=LR;
  node [fontname=\"monospace\", fontsize=10];
  t1 [shape=box, style=filled, fillcolor=\"#e8f3e6\", label=\"a \\\"b\\\" \\\\ c d\\nvalue 0\\ngrad  1\"];
  t0 [shape=box, label=\"value 0\\ngrad  1\"];
  o0 [shape=ellipse, label=\"tanh\"];
  o0 -> t0;
  t1 -> o0;
}
";
        assert_eq!(dot, expected);
    }

    #[test]
    fn large_graphs_stay_bounded() {
        let x = Tensor::scalar(1.0f64).parameter();
        let mut y = x.clone();
        for _ in 0..1000 {
            y = &y + &x;
        }
        let graph = y.graph();
        // 1000 sums and a leaf, of which 240 are shown, and one box for the others.
        assert_eq!((graph.tensors().len(), graph.left_out()), (241, 761));
        let rest = graph.tensors().iter().find(|t| t.stands_for > 0).unwrap();
        assert_eq!(rest.lines(), ["761 earlier tensors"]);
        let boxes = graph.to_svg().matches("<rect").count();
        assert_eq!(boxes, 241 + 1);

        let many: Vec<Tensor> = (0..1000).map(|i| Tensor::scalar(i as f64).parameter()).collect();
        let many: Vec<&Tensor> = many.iter().collect();
        let graph = Tensor::try_stack(&many, 0).unwrap().sum_all().graph();
        assert!(graph.tensors().len() <= 241 && graph.left_out() > 700);
    }

    #[test]
    fn large_tensors_are_summed_up() {
        let x = Tensor::from([1.0f64, 2.0, 3.0, 4.0, 5.0]).parameter().named("x");
        let graph = (&x * 2.0).sum_all().graph();
        let lines = graph.tensors().last().unwrap().lines();
        // The standard deviation of 1 .. 5 as a sample is sqrt(10 / 4).
        let x = graph.tensors().iter().find(|t| t.name.is_some()).unwrap().lines();
        assert_eq!(x, ["x", "f64 [5]", "value 3 \u{b1} 1.58114", "grad  2 \u{b1} 0"]);
        assert_eq!(lines, ["constant", "value 2"]);
    }
}
