//! A function recorded at a point, to be walked backward and forward as often as needed.

use crate::autograd::functional::push_forward_all;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::autograd::walk::{Observer, Walk, reachable};
use crate::error::Result;
use crate::program::Place;
use crate::tensor::node::{Mode, Node, Source, lock};
use crate::tensor::op::Saved;
use crate::tensor::{Tensor, no_grad};

/// An op, and the line that called it.
pub(super) type OpCall = (&'static str, Option<Place>);

/// The function under check.
pub(super) type Function<'a> = dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + 'a;

/// The record of one call.
pub(super) struct Tape {
    /// The inputs: leaves for the floats, the others as they were given.
    pub leaves: Vec<Tensor>,
    pub outputs: Vec<Tensor>,
    /// Number of passes over it, backward and forward.
    pub passes: Cell<usize>,
}

impl Tape {
    /// Calls `f` once. With `everything` the tape keeps what forward mode needs; without, what an
    /// ordinary backward pass has.
    pub fn record(f: &Function<'_>, inputs: &[Tensor], everything: bool) -> Result<Tape> {
        let leaf = |x: &Tensor| if is_float(x) { x.try_parameter() } else { Ok(x.clone()) };
        let leaves: Vec<Tensor> = inputs.iter().map(leaf).collect::<Result<_>>()?;
        let mode = Mode::get().without(Mode::NO_GRAD);
        let _guard = if everything { mode.with(Mode::SAVE_ALL) } else { mode }.enter();
        let outputs = f(&leaves)?;
        Ok(Tape { leaves, outputs, passes: Cell::new(0) })
    }

    /// The gradient of `<v, output o>` with respect to every input: `None` where no path on the
    /// tape leads there.
    pub fn reverse(&self, o: usize, v: &Tensor) -> Result<Vec<Option<Tensor>>> {
        self.reverse_all(&[(o, v.clone())])
    }

    /// The same of a sum over several outputs.
    pub fn reverse_all(&self, all: &[(usize, Tensor)]) -> Result<Vec<Option<Tensor>>> {
        let mut out = vec![None; self.leaves.len()];
        let roots = all.iter().map(|(o, v)| (&self.outputs[*o], v.clone()));
        let roots: Vec<(&Tensor, Tensor)> = roots.filter(|(y, _)| y.requires_grad()).collect();
        if roots.is_empty() {
            return Ok(out);
        }
        self.passes.set(self.passes.get() + 1);
        let floats: Vec<usize> = (0..out.len()).filter(|&i| is_float(&self.leaves[i])).collect();
        let targets: Vec<Tensor> = floats.iter().map(|&i| self.leaves[i].clone()).collect();
        let walk = Walk { keep_graph: true, targets: Some(&targets), ..Walk::default() };
        let found = walk.run(&roots)?;
        floats.into_iter().zip(found).for_each(|(i, gradient)| out[i] = gradient);
        Ok(out)
    }

    /// The first op on the way back whose rule gives something that is not finite, and the line
    /// that called it.
    pub fn not_finite_from(&self, o: usize, v: &Tensor) -> Result<Option<OpCall>> {
        struct First(Option<OpCall>);
        impl Observer for First {
            fn pass(&mut self, node: &Arc<Node>, _: usize, part: &Tensor) {
                if self.0.is_none() && !part.is_finite() {
                    self.0 = Some((node.op.name(), node.place()));
                }
            }
        }
        let mut first = First(None);
        if self.outputs[o].requires_grad() {
            let targets: Vec<Tensor> =
                self.leaves.iter().filter(|x| is_float(x)).cloned().collect();
            let observer: Option<&mut dyn Observer> = Some(&mut first);
            let walk =
                Walk { keep_graph: true, targets: Some(&targets), observer, ..Walk::default() };
            walk.run(&[(&self.outputs[o], v.clone())])?;
        }
        Ok(first.0)
    }

    /// The sum of the magnitudes of all products of a gradient and a tangent, at every node on the
    /// way: what rounding of the derivative along a probe goes by, before anything cancels. Needs a
    /// tape of everything.
    pub fn terms(&self, o: usize, v: &Tensor, i: usize, u: &Tensor) -> Result<f64> {
        struct Terms {
            tangents: HashMap<u64, Tensor>,
            sum: f64,
        }
        impl Observer for Terms {
            fn arrive(&mut self, target: &Source, gradient: &Tensor) {
                if let Some(t) = self.tangents.get(&target.number()) {
                    let (g, t) = (gradient.to_f64_vec(), t.to_f64_vec());
                    self.sum += g.iter().zip(t).map(|(g, t)| (g * t).abs()).sum::<f64>();
                }
            }
        }
        let mut terms = Terms { tangents: self.tangents(i, u), sum: 0.0 };
        if self.outputs[o].requires_grad() {
            let targets = std::slice::from_ref(&self.leaves[i]);
            let observer: Option<&mut dyn Observer> = Some(&mut terms);
            let walk =
                Walk { keep_graph: true, targets: Some(targets), observer, ..Walk::default() };
            walk.run(&[(&self.outputs[o], v.clone())])?;
        }
        Ok(terms.sum)
    }

    /// The tangents of all nodes, by their numbers, as far as forward rules give them.
    fn tangents(&self, i: usize, u: &Tensor) -> HashMap<u64, Tensor> {
        self.passes.set(self.passes.get() + 2);
        let _guard = Mode::get().with(Mode::NO_GRAD).enter();
        let mut known = HashMap::from([(self.leaves[i].source().number(), u.clone())]);
        for node in nodes(&self.outputs) {
            let of = |input: &Source| known.get(&input.number()).cloned();
            let tangents: Vec<Option<Tensor>> = node.inputs.iter().map(of).collect();
            let saved = lock(&node.saved).clone();
            if tangents.iter().any(Option::is_some)
                && let Ok(tangent) = node.op.jvp(&Saved::new(&node, &saved, false), &tangents)
            {
                known.insert(node.number, tangent);
            }
        }
        known
    }

    /// The derivative of every output when input `i` moves along `u`. Needs a tape of everything.
    pub fn forward(&self, i: usize, u: &Tensor) -> Result<Vec<Tensor>> {
        self.passes.set(self.passes.get() + 1);
        let leaf = std::slice::from_ref(&self.leaves[i]);
        push_forward_all(&self.outputs, leaf, std::slice::from_ref(u), false)
    }
}

/// The nodes that lead to the outputs, in the order of the calls.
pub(super) fn nodes(outputs: &[Tensor]) -> Vec<Arc<Node>> {
    reachable(outputs.iter().map(Tensor::source), 0)
}

/// The values of the outputs, unrecorded.
pub(super) fn values(f: &Function<'_>, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    no_grad(|| f(inputs))
}

pub(super) fn is_float(x: &Tensor) -> bool {
    x.dtype().is_float()
}
