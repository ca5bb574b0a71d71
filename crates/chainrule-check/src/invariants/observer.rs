//! All laws that apply in a backward pass, checked while it runs.

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::{Before, InvariantReport, Norm, cross_entropy_rows};
use crate::autograd::walk::Observer;
use crate::error::Result;
use crate::param::{Param, Parameters};
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source, lock};
use crate::tensor::reading::Reading;
use crate::tensor::role::{LossRole, NormRole, Role};
use crate::tensor::value::Value;
use chainrule_core::ops::Reduction;

/// A law that was tested in a backward pass.
#[derive(Clone, Debug)]
pub struct TestedInvariant {
    /// The op whose gradient it is about.
    pub op: &'static str,
    /// The line that called it.
    pub location: &'static Location<'static>,
    /// Report of the law.
    pub report: InvariantReport,
}

impl fmt::Display for TestedInvariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` at {}: {}", self.op, self.location, self.report)
    }
}

/// Checks the laws of this module in backward passes: of `cross_entropy`, `batch_norm`,
/// `layer_norm` and `rms_norm`, and of a linear layer, a product or a bias before such a norm.
///
/// ```
/// use chainrule::{DType, Generator, Tensor, check::Invariants};
/// let g = &mut Generator::manual_seed(1);
/// let w = Tensor::randn([4, 3], DType::F32, g).parameter();
/// let b = Tensor::zeros([3]).parameter();
/// let mut invariants = Invariants::new();
/// for _ in 0..3 {
///     let x = Tensor::randn([8, 4], DType::F32, g);
///     let logits = (x.matmul(&w) + &b).batch_norm(None, None, 1e-5, 0);
///     let loss = logits.cross_entropy(&x.narrow(1, 0, 3).argmax(1, false));
///     w.zero_grad();
///     invariants.backward(&loss)?; // instead of loss.backward()
/// }
/// assert_eq!(invariants.tested(), 3 * 5);
/// assert!(invariants.broken().is_empty(), "{invariants}");
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Invariants {
    tested: usize,
    broken: Vec<TestedInvariant>,
    /// Norms whose own gradient has not arrived yet: the norm and the gradient of its result, by
    /// the node's number.
    norms: HashMap<u64, (Norm, Tensor)>,
    /// Inputs of norms: the norm, the gradient of its result, and the gradient that it passes on.
    before: HashMap<u64, Passed>,
    /// The inputs of linear layers and products before a norm, by the node's number.
    saved: HashMap<u64, Vec<Option<Tensor>>>,
    /// The gradients with respect to the losses of the rows of a cross-entropy, by the node's
    /// number.
    rows: HashMap<u64, Tensor>,
    /// The gradients of weights that wait for those of their biases.
    weights: HashMap<u64, Tensor>,
}

#[derive(Clone, Debug)]
struct Passed {
    norm: Norm,
    incoming: Tensor,
    gradient: Tensor,
    batch: bool,
    /// Whether this gradient is the only one that arrived.
    alone: bool,
}

impl Invariants {
    /// None is tested yet.
    pub fn new() -> Invariants {
        Invariants::default()
    }

    /// The backward pass from a single element, as [`Tensor::try_backward`], and the laws on the
    /// way.
    pub fn backward(&mut self, loss: &Tensor) -> Result<()> {
        let done = loss.backward_with().observed(Some(self));
        self.forget();
        done
    }

    /// Number of laws tested, at every place of each.
    pub fn tested(&self) -> usize {
        self.tested
    }

    /// Those that did not hold.
    pub fn broken(&self) -> &[TestedInvariant] {
        &self.broken
    }

    pub(crate) fn forget(&mut self) {
        self.norms.clear();
        self.before.clear();
        self.saved.clear();
        self.rows.clear();
        self.weights.clear();
    }

    /// A law whose preconditions cannot be checked from the tape gives an error, and is not tested.
    fn test(&mut self, node: &Node, report: Result<InvariantReport>) {
        let Ok(report) = report else { return };
        self.tested += 1;
        if !report.holds() {
            self.broken.push(TestedInvariant {
                op: node.op.name(),
                location: node.location,
                report,
            });
        }
    }

    /// Tests the gradient that a norm passes on to its input.
    fn passed_by_norm(&mut self, node: &Arc<Node>, part: &Tensor) {
        let Some((norm, incoming)) = self.norms.remove(&node.number) else { return };
        let role = node.op.role();
        if role != Role::Norm(NormRole::RootMeanSquare) {
            self.test(node, norm.sums(&incoming, part));
        }
        self.test(node, norm.products(&incoming, part));
        let batch = role == Role::Norm(NormRole::Batch);
        let passed = Passed { norm, incoming, gradient: part.clone(), batch, alone: false };
        self.before.insert(node.inputs[0].number(), passed);
    }

    /// Tests the gradients that a layer before a norm passes on to its parameters.
    fn passed_before(&mut self, node: &Arc<Node>, i: usize, part: &Tensor, passed: &Passed) {
        let (role, adds) = (node.op.role(), node.op.reading() == Reading::Add);
        match (role, i) {
            _ if adds && part.shape() != passed.gradient.shape() => {
                let bias = passed.batch && matches!(node.inputs[i], Source::Leaf(_));
                let law = bias.then(|| passed.norm.bias(&passed.incoming, part));
                law.into_iter().for_each(|law| self.test(node, law));
            }
            // The product to which a bias is added before batch norm: the law is the same for it.
            _ if adds && passed.batch && matches!(node.inputs[i], Source::Node(_)) => {
                let on = Passed { alone: false, gradient: part.clone(), ..passed.clone() };
                self.before.insert(node.inputs[i].number(), on);
            }
            (Role::LinearLayer | Role::Product, 1) => {
                let linear = role == Role::LinearLayer;
                if linear && node.inputs.len() > 2 && !passed.batch {
                    self.weights.insert(node.number, part.clone());
                } else {
                    self.test_weight(node, part, None, passed);
                }
            }
            (Role::LinearLayer, 2) if passed.batch => {
                self.test(node, passed.norm.bias(&passed.incoming, part))
            }
            (Role::LinearLayer, 2) => {
                if let Some(weight) = self.weights.remove(&node.number) {
                    self.test_weight(node, &weight, Some(part), passed);
                }
            }
            _ => {}
        }
    }

    fn test_weight(&mut self, node: &Node, grad: &Tensor, bias: Option<&Tensor>, passed: &Passed) {
        let Some(saved) = self.saved.get(&node.number) else { return };
        let value = |i: usize| saved.get(i)?.clone();
        // The values of parameters: backward may not have kept those of biases.
        let leaf = |i: usize| match &node.inputs.get(i)? {
            Source::Leaf(leaf) => Some(Tensor::from_parts(leaf.value(), Source::None)),
            _ => value(i),
        };
        let (Some(input), Some(weight)) = (value(0), leaf(1)) else { return };
        let transposed = node.op.role() == Role::LinearLayer;
        let turn = |w: &Tensor| if transposed { w.try_t() } else { Ok(w.clone()) };
        let (Ok(weight), Ok(weight_grad)) = (turn(&weight), turn(grad)) else { return };
        let own = bias.and(leaf(2));
        if bias.is_some() && own.is_none() {
            return;
        }
        let layer = Before {
            input: &input,
            weight: &weight,
            weight_grad: &weight_grad,
            bias: own.as_ref().zip(bias),
        };
        self.test(node, passed.norm.weight(&passed.incoming, layer));
    }
}

impl Observer for Invariants {
    fn arrive(&mut self, target: &Source, gradient: &Tensor) {
        let Source::Node(node) = target else { return };
        if let Some(passed) = self.before.get_mut(&node.number) {
            // Another consumer of this value would have added a gradient of its own.
            passed.alone = Arc::ptr_eq(&passed.gradient.value(), &gradient.value());
            if matches!(node.op.role(), Role::LinearLayer | Role::Product) {
                let constant = |value: &Arc<Value>| Tensor::from_parts(value.clone(), Source::None);
                let saved = lock(&node.saved);
                let inputs = saved.inputs.iter().map(|value| value.as_ref().map(constant));
                self.saved.insert(node.number, inputs.collect());
            }
        }
        match node.op.role() {
            Role::Norm(_) => {
                if let Some(norm) = norm(node) {
                    self.norms.insert(node.number, (norm, gradient.clone()));
                }
            }
            Role::Loss(LossRole::CrossEntropy) => {
                if let Some(rows) = upstream(node, gradient) {
                    self.rows.insert(node.number, rows);
                }
            }
            _ => {}
        }
    }

    fn pass(&mut self, node: &Arc<Node>, i: usize, part: &Tensor) {
        match node.op.role() {
            Role::Norm(NormRole::Batch | NormRole::Layer | NormRole::RootMeanSquare) if i == 0 => {
                self.passed_by_norm(node, part)
            }
            Role::Loss(LossRole::CrossEntropy) if i == 0 => {
                if let Some(rows) = self.rows.remove(&node.number) {
                    self.test(node, cross_entropy_rows(part, &rows));
                }
            }
            _ => {
                if let Some(passed) = self.before.get(&node.number).filter(|p| p.alone).cloned() {
                    self.passed_before(node, i, part, &passed);
                }
            }
        }
    }
}

impl fmt::Display for Invariants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} laws tested, {} broken", self.tested, self.broken.len())?;
        self.broken.iter().try_for_each(|seen| write!(f, "\n{seen}"))
    }
}

/// A norm as the tape has it.
fn norm(node: &Node) -> Option<Norm> {
    let own = node.op.parameters();
    let saved = lock(&node.saved);
    let value = |i: usize| {
        let value = saved.inputs.get(i)?.clone()?;
        Some(Tensor::from_parts(value, Source::None))
    };
    let x = value(0)?;
    let Role::Norm(role) = node.op.role() else { return None };
    let norm = match role {
        NormRole::Batch => Norm::batch(&x).correction(own.field("correction")?.size()?),
        NormRole::Layer => Norm::layer(&x).axes(last_axes(&own)?),
        NormRole::RootMeanSquare => Norm::rms(&x).axes(last_axes(&own)?),
        NormRole::Group => return None,
    };
    let norm = norm.eps(own.field("eps")?.number()?);
    match own.field("gain").is_some_and(Param::is_true) {
        true => Some(norm.gain(&value(1)?)),
        false => Some(norm),
    }
}

/// The gradient with respect to each row's loss, unless classes have weights.
fn upstream(node: &Node, gradient: &Tensor) -> Option<Tensor> {
    let own = node.op.parameters();
    if own.field("weight") != Some(&Param::None) {
        return None;
    }
    let ignored = own.field("ignore_index").and_then(Param::number);
    let targets = lock(&node.saved).inputs.get(1)?.clone()?;
    let targets = Tensor::from_parts(targets, Source::None).to_f64_vec();
    let counted = targets.iter().filter(|&&t| Some(t) != ignored).count().max(1);
    match own.field("reduction") == Some(&Reduction::Mean.parameters()) {
        true => gradient.try_div(counted as f64).ok(),
        false => Some(gradient.clone()),
    }
}

/// Number of last axes that are a row, if it is those.
fn last_axes(own: &Param) -> Option<usize> {
    let over = own.field("over").filter(|over| over.name() == "Last")?;
    over.items().first()?.size()
}
