//! Chart of the graph below a tensor: its nodes and leaves in order, a label for each, the values
//! that the tape still holds, and short texts for them. Traces and drawings are made from it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::backward::upstream;
use super::walk::{Observer, Walk, reachable};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::tensor::node::{Leaf, Node, Source, lock};
use crate::tensor::op::Op;
use crate::tensor::value::Value;

/// The nodes and leaves behind a tensor.
pub(super) struct Chart {
    /// In rising order: each after its inputs.
    pub nodes: Vec<Arc<Node>>,
    pub leaves: Vec<Arc<Leaf>>,
    labels: HashMap<u64, String>,
    values: HashMap<u64, Arc<Value>>,
}

impl Chart {
    pub fn of(root: &Tensor) -> Chart {
        let nodes = reachable([root.source()].into_iter(), 0);
        let inputs = nodes.iter().flat_map(|node| node.inputs.iter());
        let mut sources: BTreeMap<u64, Source> = BTreeMap::new();
        for source in inputs.chain([root.source()]) {
            if source.requires_grad() {
                sources.insert(source.number(), source.clone());
            }
        }
        let mut chart = Chart {
            values: known_values(&nodes, root),
            nodes,
            leaves: Vec::new(),
            labels: HashMap::new(),
        };
        for (i, (&number, source)) in sources.iter().enumerate() {
            let label = source.shown_name().unwrap_or_else(|| match source {
                Source::Node(node) => format!("{}#{}", node.op.name(), i + 1),
                _ => nameless(source, chart.leaves.len() + 1),
            });
            chart.labels.insert(number, label);
            if let Source::Leaf(leaf) = source {
                chart.values.insert(number, leaf.value());
                chart.leaves.push(leaf.clone());
            }
        }
        chart
    }

    /// The name of a tensor; without one, `op#number`, numbered from the first leaf on, or
    /// [`nameless`].
    pub fn label(&self, source: &Source) -> String {
        let label = self.labels.get(&source.number());
        label.cloned().unwrap_or_else(|| "constant".into())
    }

    /// The value of a tensor, if anything still holds it.
    pub fn value(&self, source: &Source) -> Option<Tensor> {
        let value = self.values.get(&source.number())?;
        Some(Tensor::from_parts(value.clone(), Source::None))
    }

    /// Walks back from `root`, changing no gradient and freeing nothing, with `observer` looking
    /// on.
    pub fn walk(&self, op: &'static str, root: &Tensor, observer: &mut dyn Observer) -> Result<()> {
        let upstream = upstream(op, root, None)?;
        let leaf = |leaf: &Arc<Leaf>| Tensor::from_parts(leaf.value(), Source::Leaf(leaf.clone()));
        let targets: Vec<Tensor> = self.leaves.iter().map(leaf).collect();
        let walk = Walk {
            keep_graph: true,
            targets: Some(&targets),
            observer: Some(observer),
            ..Walk::default()
        };
        walk.run(&[(root, upstream)]).map(|_| ())
    }
}

/// A substitute for the name of a nameless leaf: its number among the leaves, and its shape.
pub fn nameless(source: &Source, number: usize) -> String {
    match source.meta() {
        Some(meta) if meta.shape.rank() > 0 => format!("parameter {number} {}", meta.shape),
        _ => format!("parameter {number}"),
    }
}

/// The known values of intermediates: saved for backward, kept by `record_all`, or held by the
/// root.
pub(super) fn known_values(nodes: &[Arc<Node>], root: &Tensor) -> HashMap<u64, Arc<Value>> {
    let mut values = HashMap::from([(root.source().number(), root.value())]);
    for node in nodes {
        let saved = lock(&node.saved);
        for (source, value) in node.inputs.iter().zip(&saved.inputs) {
            if let (true, Some(value)) = (source.number() != 0, value) {
                values.insert(source.number(), value.clone());
            }
        }
        let recorded = lock(&node.notes).as_ref().and_then(|n| n.value.clone());
        if let Some(value) = saved.output.clone().or(recorded) {
            values.insert(node.number, value);
        }
    }
    values
}

/// The reverse rule of an op as the table states it, or a description in its place.
pub(super) fn rule(op: &dyn Op) -> String {
    match op.entry() {
        Some(entry) if !entry.gradient.is_empty() => entry.gradient.to_string(),
        _ => format!("the reverse rule of {}", op.name()),
    }
}

/// The elements if there are at most `few`, otherwise shape and statistics. The standard deviation
/// is that of a sample (n - 1).
pub(super) fn brief(t: &Tensor, few: usize) -> String {
    let elements = t.to_f64_vec();
    if elements.len() <= few {
        let mut words = elements.into_iter().map(number);
        return nested(&t.shape(), &mut words);
    }
    let Statistics { mean, std, min, max } = statistics(&elements);
    format!(
        "{} mean {} std {} min {} max {}",
        t.shape(),
        number(mean),
        number(std),
        number(min),
        number(max)
    )
}

fn nested(sizes: &[usize], words: &mut dyn Iterator<Item = String>) -> String {
    match sizes {
        [] => words.next().unwrap_or_default(),
        [size, rest @ ..] => {
            let items: Vec<String> = (0..*size).map(|_| nested(rest, words)).collect();
            format!("[{}]", items.join(", "))
        }
    }
}

pub(super) struct Statistics {
    pub mean: f64,
    /// Standard deviation of a sample: divided by n - 1. Not a number for fewer than two elements.
    pub std: f64,
    /// A nan among the elements is the minimum and the maximum.
    pub min: f64,
    pub max: f64,
}

pub(super) fn statistics(elements: &[f64]) -> Statistics {
    let n = elements.len() as f64;
    let mean = elements.iter().sum::<f64>() / n;
    let squares: f64 = elements.iter().map(|x| (x - mean) * (x - mean)).sum();
    let pick = |less: fn(f64, f64) -> bool| {
        let best = |a: f64, b: f64| if a.is_nan() || less(a, b) { a } else { b };
        elements.iter().copied().reduce(best).unwrap_or(f64::NAN)
    };
    Statistics {
        mean,
        std: (squares / (n - 1.0)).sqrt(),
        min: pick(|a, b| a < b),
        max: pick(|a, b| a > b),
    }
}

/// A number with six significant digits, without trailing zeros.
pub(super) fn number(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string().replace("NaN", "nan");
    }
    let scientific = format!("{x:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    match exponent.parse::<i32>() {
        Ok(e) if (-4..6).contains(&e) => trim(&format!("{x:.*}", (5 - e) as usize)),
        _ => format!("{}e{exponent}", trim(mantissa)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_digits() {
        // As printf writes them with %.6g, but for the exponent's width.
        let cases = [
            (24.70408163265306, "24.7041"),
            (138.83381924198252, "138.834"),
            (-0.5, "-0.5"),
            (0.0, "0"),
            (1.0 / 3.0, "0.333333"),
            (100000.0, "100000"),
            (999999.5, "1e6"),
            (1234567.0, "1.23457e6"),
            (0.0001, "0.0001"),
            (0.00001234, "1.234e-5"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (x, text) in cases {
            assert_eq!(number(x), text);
        }
    }

    #[test]
    fn large_tensors_are_summed_up() {
        let small = Tensor::from([[1.0f64, 2.5], [-3.0, 4.0]]);
        assert_eq!(brief(&small, 8), "[[1, 2.5], [-3, 4]]");
        // The standard deviation of 0 .. 9 as a sample is sqrt(82.5 / 9).
        let large = Tensor::arange(0, 10);
        assert_eq!(brief(&large, 8), "[10] mean 4.5 std 3.02765 min 0 max 9");
        let with_nan = statistics(&[1.0, f64::NAN, 2.0]);
        assert!(with_nan.min.is_nan() && with_nan.max.is_nan());
        assert_eq!(brief(&Tensor::zeros([0, 2]), 8), "[]");
    }
}
