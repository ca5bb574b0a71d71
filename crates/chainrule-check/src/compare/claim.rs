//! A user's claim, and the mistakes that the claim itself can have.

use std::borrow::Borrow;
use std::fmt;

use crate::rounding::LossGraph;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::node::Source;

/// A hand-written gradient: `(name, &tensor, gradient)`, or `(name, gradient)` for a tensor that
/// bears this name on the tape.
#[derive(Clone, Debug)]
pub struct ByHand {
    pub(super) name: String,
    pub(super) tensor: Option<Tensor>,
    pub(super) gradient: Tensor,
}

impl ByHand {
    /// The gradient that is claimed.
    pub(crate) fn gradient(&self) -> &Tensor {
        &self.gradient
    }

    /// The tensor that the claim is about, if it is behind `loss`.
    pub(crate) fn on_tape(&self, loss: &Tensor) -> Option<Tensor> {
        let tape = LossGraph::of(loss);
        tape.tensor(tape.find(self).ok()?)
    }
}

impl<N: Into<String>, T: Borrow<Tensor>, G: Borrow<Tensor>> From<(N, T, G)> for ByHand {
    fn from((name, tensor, gradient): (N, T, G)) -> ByHand {
        let tensor = Some(tensor.borrow().clone());
        ByHand { name: name.into(), tensor, gradient: gradient.borrow().clone() }
    }
}

impl<N: Into<String>, G: Borrow<Tensor>> From<(N, G)> for ByHand {
    fn from((name, gradient): (N, G)) -> ByHand {
        ByHand { name: name.into(), tensor: None, gradient: gradient.borrow().clone() }
    }
}

impl<'a, N: Clone + Into<String>, T: Borrow<Tensor>, G: Borrow<Tensor>> From<&'a (N, T, G)>
    for ByHand
{
    fn from((name, tensor, gradient): &'a (N, T, G)) -> ByHand {
        ByHand::from((name.clone(), tensor.borrow(), gradient.borrow()))
    }
}

impl<'a, N: Clone + Into<String>, G: Borrow<Tensor>> From<&'a (N, G)> for ByHand {
    fn from((name, gradient): &'a (N, G)) -> ByHand {
        ByHand::from((name.clone(), gradient.borrow()))
    }
}

/// Why a hand-written gradient could not be compared.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Incomparable {
    /// No tensor behind the loss bears the name. These do.
    NoSuchName(Vec<String>),
    /// Several tensors behind the loss bear the name.
    Ambiguous(usize),
    /// The tensor was not recorded: no parameter leads to it, or it was detached or computed under
    /// `no_grad`.
    NotRecorded,
    /// The loss does not depend on the tensor.
    NotBehindTheLoss,
    /// The gradient has another shape than its tensor.
    Shape {
        /// The shape of the hand-written gradient.
        by_hand: Box<Shape>,
        /// The shape of the tensor and of its gradient.
        tensor: Box<Shape>,
    },
    /// The gradient is not made of floats.
    NotFloat(chainrule_core::DType),
}

impl Incomparable {
    /// Whether the tensor is on the tape, so that the gradient is at fault.
    pub(super) fn is_of_the_gradient(&self) -> bool {
        matches!(self, Incomparable::Shape { .. } | Incomparable::NotFloat(_))
    }
}

/// The axes over which a gradient must be summed to get the shape of its tensor, if that is all
/// that is missing.
fn unsummed(by_hand: &Shape, tensor: &Shape) -> Option<Vec<usize>> {
    if by_hand.broadcast(tensor) != Some(*by_hand) {
        return None;
    }
    let lead = by_hand.rank() - tensor.rank();
    let axes = 0..by_hand.rank();
    Some(axes.filter(|&i| i < lead || by_hand[i] != tensor[i - lead]).collect())
}

impl fmt::Display for Incomparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Incomparable::NoSuchName(names) if names.is_empty() => {
                write!(
                    f,
                    "no tensor behind the loss has a name; give it with Tensor::named, or give the tensor itself"
                )
            }
            Incomparable::NoSuchName(names) => {
                write!(f, "no tensor behind the loss has this name; there are {}", names.join(", "))
            }
            Incomparable::Ambiguous(n) => {
                write!(f, "{n} tensors behind the loss have this name; give the tensor itself")
            }
            Incomparable::NotRecorded => write!(
                f,
                "the tensor was not recorded: no parameter leads to it, or it was detached or computed under no_grad"
            ),
            Incomparable::NotBehindTheLoss => {
                write!(f, "the loss does not depend on the tensor; was it computed again?")
            }
            Incomparable::Shape { by_hand, tensor } => {
                write!(f, "the gradient has shape {by_hand}, the tensor {tensor}")?;
                match unsummed(by_hand, tensor) {
                    Some(axes) => write!(f, ": a sum over {} is missing", axis_list(&axes)),
                    None => Ok(()),
                }
            }
            Incomparable::NotFloat(dtype) => {
                write!(f, "the gradient is {dtype}; it must be f32 or f64")
            }
        }
    }
}

fn axis_list(axes: &[usize]) -> String {
    let numbers: Vec<String> = axes.iter().map(usize::to_string).collect();
    match numbers.as_slice() {
        [one] => format!("axis {one}"),
        many => format!("axes {}", many.join(" and ")),
    }
}

impl LossGraph {
    /// The number of the tensor that a claim is about.
    pub fn find(&self, claim: &ByHand) -> Result<u64, Incomparable> {
        let Some(tensor) = &claim.tensor else {
            return self.find_name(&claim.name);
        };
        match tensor.source().number() {
            0 => Err(Incomparable::NotRecorded),
            number if self.sources.contains_key(&number) => Ok(number),
            _ if !tensor.requires_grad() => Err(Incomparable::NotRecorded),
            _ => Err(Incomparable::NotBehindTheLoss),
        }
    }

    fn find_name(&self, name: &str) -> Result<u64, Incomparable> {
        let named = |source: &Source| source.name().is_some_and(|n| n == name);
        let found: Vec<u64> =
            self.sources.iter().filter(|(_, source)| named(source)).map(|(&n, _)| n).collect();
        match found.as_slice() {
            [one] => Ok(*one),
            [] => {
                let mut all: Vec<&u64> = self.sources.keys().collect();
                all.sort_unstable();
                let mut names: Vec<String> =
                    all.iter().filter_map(|n| self.sources[n].name()).collect();
                names.dedup();
                Err(Incomparable::NoSuchName(names))
            }
            many => Err(Incomparable::Ambiguous(many.len())),
        }
    }
}
