//! The contributions to a gradient, one for each use of its tensor.

use std::panic::Location;
use std::sync::Arc;

use super::backward::upstream;
use super::walk::{Observer, Walk};
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source};

/// Contribution of one use of a tensor to its gradient; see [`Tensor::contributions`].
#[derive(Clone, Debug)]
pub struct Contribution {
    op: &'static str,
    tensor: Option<String>,
    location: Option<&'static Location<'static>>,
    position: usize,
    gradient: Tensor,
}

impl Contribution {
    /// The op that used the tensor; `backward` for the upstream gradient of the loss itself.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// The name of the op's result, if it has one.
    pub fn tensor(&self) -> Option<&str> {
        self.tensor.as_deref()
    }

    /// The line that called the op.
    pub fn location(&self) -> Option<&'static Location<'static>> {
        self.location
    }

    /// Position of the tensor among the op's inputs.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The contribution of the op.
    pub fn gradient(&self) -> &Tensor {
        &self.gradient
    }
}

struct ContributionCollector {
    number: u64,
    found: Vec<Contribution>,
}

impl Observer for ContributionCollector {
    fn pass(&mut self, node: &Arc<Node>, i: usize, part: &Tensor) {
        if node.inputs[i].number() == self.number {
            self.found.push(Contribution {
                op: node.op.name(),
                tensor: Source::Node(node.clone()).shown_name(),
                location: Some(node.location),
                position: i,
                gradient: part.clone(),
            });
        }
    }
}

impl Tensor {
    /// Contribution of each use of `t` to the gradient of this single element with respect to it,
    /// from the last use to the first. The contributions sum to that gradient (before hooks of
    /// `t`). No gradient changes and the graph is kept.
    ///
    /// `t` may be a leaf or any intermediate. There are no contributions if this does not depend on
    /// `t`. Errors if `t` is a constant, and as [`Tensor::try_backward`] does.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::scalar(3.0f64).parameter();
    /// let loss = &x * &x + &x;
    /// let parts = loss.contributions(&x).unwrap();
    /// let of: Vec<_> =
    ///     parts.iter().map(|c| (c.op(), c.position(), c.gradient().item())).collect();
    /// assert_eq!(of, [("add", 1, 1.0), ("mul", 0, 3.0), ("mul", 1, 3.0)]);
    /// ```
    pub fn contributions(&self, t: &Tensor) -> Result<Vec<Contribution>> {
        let upstream = upstream("contributions", self, None)?;
        if !t.requires_grad() {
            let why = "the tensor is a constant, to whose gradient nothing contributes; make it with parameter() before it is used";
            return Err(Error::gradient("contributions", why));
        }
        if self.is_same(t) {
            return Ok(vec![Contribution {
                op: "backward",
                tensor: None,
                location: None,
                position: 0,
                gradient: upstream,
            }]);
        }
        let mut collector =
            ContributionCollector { number: t.source().number(), found: Vec::new() };
        let walk = Walk {
            keep_graph: true,
            targets: Some(std::slice::from_ref(t)),
            observer: Some(&mut collector),
            ..Walk::default()
        };
        walk.run(&[(self, upstream)])?;
        Ok(collector.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::grad;

    #[test]
    fn contributions_sum_to_the_gradient() {
        let w = Tensor::from([[0.5f64, -1.0], [2.0, 0.25]]).parameter();
        let h = (w.matmul(&w) + &w).tanh().named("h");
        let scaled = (&h * &w).named("scaled");
        let loss = (&scaled + &h).sum_all();
        for t in [&w, &h, &scaled] {
            let parts = loss.contributions(t).unwrap();
            let total = grad(&loss, &[t]).unwrap().remove(0).unwrap();
            let mut sum = t.zeros_like();
            for part in &parts {
                sum = &sum + part.gradient();
            }
            for (a, b) in sum.to_f64_vec().iter().zip(total.to_f64_vec()) {
                assert!((a - b).abs() <= 1e-14, "{a} {b}");
            }
        }
        let parts = loss.contributions(&w).unwrap();
        let from: Vec<_> = parts.iter().map(|c| (c.op(), c.tensor(), c.position())).collect();
        let expected = [
            ("mul", Some("scaled"), 1),
            ("add", None, 1),
            ("matmul", None, 0),
            ("matmul", None, 1),
        ];
        assert_eq!(from, expected);
        let lines: Vec<_> = parts.iter().map(|c| c.location().unwrap().line()).collect();
        assert_eq!(lines, [lines[1] + 1, lines[1], lines[1], lines[1]]);
        assert!(parts.iter().all(|c| c.location().unwrap().file().ends_with("contributions.rs")));
        assert!(w.grad().is_none());
    }

    #[test]
    fn the_loss_itself_and_strangers() {
        let x = Tensor::scalar(3.0f64).parameter();
        let other = Tensor::scalar(1.0f64).parameter();
        let loss = &x * 2.0;
        let own = loss.contributions(&loss).unwrap();
        assert_eq!((own[0].op(), own[0].gradient().item(), own.len()), ("backward", 1.0, 1));
        assert!(loss.contributions(&other).unwrap().is_empty());
        let error = loss.contributions(&Tensor::scalar(1.0f64)).unwrap_err().to_string();
        assert!(error.contains("is a constant"), "{error}");
    }
}
