//! The case of a verdict: the observed gradients to explain, and the effect on them of changing
//! some parts.
//!
//! Below a mistake the backward pass is linear in the gradient that reaches it. A replay therefore
//! does not start at the loss: the difference that the mistake makes to the parts that its node
//! passes on is walked down by itself, and added to the right gradients.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::numbers::{Closeness, agree, largest};
use super::tape::{RecordedPass, root};
use crate::autograd::walk::{Planted, Walk};
use crate::compare::unit;
use crate::error::{Error, Result};
use crate::rounding::{LossGraph, Noise};
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source};
use crate::tensor::op::{Grads, Op, Saved, Wanted};
use chainrule_core::ops::add_values;

/// One given gradient, and the right one.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub number: u64,
    pub label: String,
    pub tensor: Tensor,
    pub right: Vec<f64>,
    pub given: Vec<f64>,
    pub wrong: bool,
    /// Rounding between the two, if the given one is right.
    pub slack: f64,
}

/// The right pass, the given gradients, and the number of walks so far.
pub(crate) struct Case {
    pub tape: RecordedPass,
    pub observed: Vec<Observed>,
    pub closeness: Closeness,
    targets: Vec<Tensor>,
    pub roots: Vec<(Tensor, Tensor)>,
    /// The position in the list of each tensor's number.
    places: HashMap<u64, usize>,
    pub walks: usize,
    /// The nodes whose gradient is pure rounding, such as that of a maximum which is subtracted.
    dead: HashSet<u64>,
    /// Whether these are left out, as somebody who writes a backward by hand may do.
    is_cut: bool,
}

/// A pass without the paths that carry nothing.
struct WithoutDead<'a>(&'a HashSet<u64>);

impl Planted for WithoutDead<'_> {
    fn rule(
        &self,
        node: &Arc<Node>,
        _: &dyn Op,
        _: &Saved<'_>,
        _: &Tensor,
        _: Wanted,
    ) -> Option<Result<Grads>> {
        let nothing = || node.inputs.iter().map(|_| None).collect();
        self.0.contains(&node.number).then(|| Ok(nothing()))
    }
}

/// A change of the gradient of a tensor.
pub(crate) type GradientChange = (Source, Tensor);

impl Case {
    /// The case of the gradients `given` for some tensors behind `roots`.
    pub fn new(roots: &[(&Tensor, Tensor)], given: &[(&Tensor, &Tensor)]) -> Result<Case> {
        let targets: Vec<Tensor> = given.iter().map(|(t, _)| (*t).clone()).collect();
        for (tensor, gradient) in given {
            check(tensor, gradient)?;
        }
        let tape = RecordedPass::record(roots, &targets)?;
        let mut observed = Vec::new();
        for (tensor, gradient) in given {
            let number = tensor.source().number();
            let right = match tape.gradients.get(&number) {
                Some(right) => right.to_f64_vec(),
                None => vec![0.0; tensor.numel()],
            };
            observed.push(Observed {
                number,
                label: label(tensor.source()),
                tensor: (*tensor).clone(),
                right,
                given: gradient.to_f64_vec(),
                wrong: false,
                slack: 0.0,
            });
        }
        let all = observed.iter().map(|o| largest(&o.right)).fold(0.0, f64::max);
        let dtype = roots[0].0.dtype();
        let narrow = given.iter().any(|(_, g)| g.dtype() != dtype);
        let dtype = if narrow { chainrule_core::DType::F32 } else { dtype };
        let closeness = Closeness::of(dtype, all);
        // Rounding is measured where the pass has one loss.
        let coarser = given.iter().map(|(_, g)| unit(g.dtype())).fold(0.0, f64::max);
        let coarser = (coarser / unit(roots[0].0.dtype())).max(1.0);
        let measured = match roots {
            [(loss, upstream)] => Some((*loss, upstream)),
            _ => None,
        };
        judge(&mut observed, closeness, measured, coarser)?;
        let places = observed.iter().enumerate().map(|(i, o)| (o.number, i)).collect();
        let roots = roots.iter().map(|(t, g)| ((*t).clone(), g.clone())).collect();
        let dead = dead(&tape, closeness);
        let walks = 0;
        Ok(Case { tape, observed, closeness, targets, roots, places, walks, dead, is_cut: false })
    }

    /// Leaves out the paths that carry nothing in the right pass. Returns whether there are any.
    pub fn cut(&mut self) -> bool {
        self.is_cut = !self.dead.is_empty();
        self.is_cut
    }

    /// The tensors whose gradients are given.
    pub fn targets(&self) -> &[Tensor] {
        &self.targets
    }

    /// The given gradients, in the order of the tensors.
    pub fn targets_given(&self) -> Vec<Vec<f64>> {
        self.observed.iter().map(|o| o.given.clone()).collect()
    }

    /// The numbers of the tensors whose given gradients are wrong, or right.
    pub fn numbers(&self, wrong: bool) -> HashSet<u64> {
        self.observed.iter().filter(|o| o.wrong == wrong).map(|o| o.number).collect()
    }

    /// Whether the wrong gradients are wrong by more than two equal ones may differ here; otherwise
    /// any change, or none, would explain them.
    pub fn can_be_told(&self) -> bool {
        let own_size = Closeness { floor: 0.0, ..self.closeness };
        self.observed.iter().all(|o| !o.wrong || !own_size.same(&o.right, &o.given))
    }

    /// The wrong one that is nearest to the loss.
    pub fn first_wrong(&self) -> Option<&Observed> {
        self.observed.iter().filter(|o| o.wrong).max_by_key(|o| o.number)
    }

    /// Effect of `changes` on the gradient of the changed tensor nearest to the loss, if that is
    /// observed: it needs no walk.
    pub fn at_once(&self, changes: &[GradientChange]) -> Option<(usize, Vec<f64>)> {
        let highest = changes.iter().map(|(source, _)| source.number()).max()?;
        let place = *self.places.get(&highest)?;
        let mut sum = vec![0.0; self.observed[place].right.len()];
        for (_, change) in changes.iter().filter(|(source, _)| source.number() == highest) {
            sum.iter_mut().zip(change.to_f64_vec()).for_each(|(s, x)| *s += x);
        }
        Some((place, sum))
    }

    /// Effect of `changes` on every observed gradient.
    pub fn effect(&mut self, changes: &[GradientChange]) -> Result<Vec<Vec<f64>>> {
        self.walks += 1;
        let mut merged: Vec<GradientChange> = Vec::new();
        for (source, change) in changes {
            match merged.iter_mut().find(|(s, _)| s.number() == source.number()) {
                Some((_, sum)) => *sum = add_values(sum.clone(), change)?,
                None => merged.push((source.clone(), change.clone())),
            }
        }
        let roots: Vec<(Tensor, Tensor)> =
            merged.into_iter().map(|(source, g)| (root(&source, &g), g)).collect();
        let roots: Vec<(&Tensor, Tensor)> = roots.iter().map(|(t, g)| (t, g.clone())).collect();
        let cut = WithoutDead(&self.dead);
        let planted: Option<&dyn Planted> = if self.is_cut { Some(&cut) } else { None };
        let targets = Some(self.targets.as_slice());
        let walk = Walk { keep_graph: true, targets, planted, ..Walk::default() };
        let found = walk.run(&roots)?;
        let dense = |(g, o): (Option<Tensor>, &Observed)| match g {
            Some(g) => g.to_f64_vec(),
            None => vec![0.0; o.right.len()],
        };
        Ok(found.into_iter().zip(&self.observed).map(dense).collect())
    }

    /// Whether the right gradient of one tensor with `change` is the given one.
    pub fn explains_one(&self, place: usize, change: &[f64], factor: f64) -> bool {
        let o = &self.observed[place];
        // The change is the difference of larger numbers, so it carries their rounding.
        let allowed = self.closeness.allowed(&o.right, &o.given) + o.slack;
        let mut all = o.right.iter().zip(change).zip(&o.given);
        all.all(|((r, c), g)| agree(if *c == 0.0 { *r } else { r + factor * c }, *g, allowed))
    }

    /// Whether `changes` make the right gradients into the given ones.
    pub fn explains(&mut self, changes: &[GradientChange]) -> Result<bool> {
        if let Some((place, change)) = self.at_once(changes)
            && !self.explains_one(place, &change, 1.0)
        {
            return Ok(false);
        }
        let effect = self.effect(changes)?;
        Ok((0..effect.len()).all(|i| self.explains_one(i, &effect[i], 1.0)))
    }

    /// The number by which `changes` must be multiplied to make the right gradients into the given
    /// ones.
    pub fn factor(&mut self, changes: &[GradientChange]) -> Result<Option<f64>> {
        if let Some((place, change)) = self.at_once(changes) {
            let factor = self.factor_of(std::slice::from_ref(&(place, change.as_slice())));
            if !factor.is_some_and(|f| self.explains_one(place, &change, f)) {
                return Ok(None);
            }
        }
        let effect = self.effect(changes)?;
        let pairs: Vec<(usize, &[f64])> =
            effect.iter().enumerate().map(|(i, c)| (i, c.as_slice())).collect();
        let factor = self.factor_of(&pairs);
        Ok(factor.filter(|&f| pairs.iter().all(|(i, c)| self.explains_one(*i, c, f))))
    }

    /// Whether a pass with something planted in it gives just the given gradients.
    pub fn gives(&mut self, planted: &dyn Planted) -> Result<bool> {
        self.walks += 1;
        let roots: Vec<(&Tensor, Tensor)> =
            self.roots.iter().map(|(t, g)| (t, g.clone())).collect();
        let targets = Some(self.targets.as_slice());
        let walk = Walk { keep_graph: true, targets, planted: Some(planted), ..Walk::default() };
        // A wrong rule may ask for shapes that are not there.
        let Ok(found) = walk.run(&roots) else { return Ok(false) };
        let is_given = |(g, o): (Option<Tensor>, &Observed)| {
            let found = g.map_or_else(|| vec![0.0; o.right.len()], |g| g.to_f64_vec());
            let allowed = self.closeness.allowed(&o.right, &o.given) + o.slack;
            let mut pairs = found.iter().zip(&o.given);
            found.len() == o.given.len() && pairs.all(|(f, g)| agree(*f, *g, allowed))
        };
        Ok(found.into_iter().zip(&self.observed).all(is_given))
    }

    /// The ratio of (given minus right) to the change, where the change is largest.
    fn factor_of(&self, changes: &[(usize, &[f64])]) -> Option<f64> {
        let mut best: Option<(f64, f64)> = None;
        for &(place, change) in changes {
            let o = &self.observed[place];
            for ((r, g), c) in o.right.iter().zip(&o.given).zip(change) {
                if c.is_finite() && (g - r).is_finite() && c.abs() > best.map_or(0.0, |b| b.0) {
                    best = Some((c.abs(), (g - r) / c));
                }
            }
        }
        best.map(|(_, factor)| factor)
    }
}

/// Tells the wrong gradients from the right ones: each element by its own size, however small, and
/// where it is off by more, by the rounding of the pass, which is `coarser` where the numbers are;
/// without that by the size of the largest.
fn judge(
    observed: &mut [Observed],
    closeness: Closeness,
    measured: Option<(&Tensor, &Tensor)>,
    coarser: f64,
) -> Result<()> {
    let relative = closeness.relative;
    for o in observed.iter_mut() {
        let near = |(r, g): (&f64, &f64)| agree(*r, *g, relative * r.abs().max(g.abs()));
        o.wrong = !o.right.iter().zip(&o.given).all(near);
    }
    if observed.iter().any(|o| o.wrong) {
        match measured {
            Some((loss, upstream)) => {
                let (tape, none) = (LossGraph::of(loss), HashMap::new());
                let numbers = observed.iter().map(|o| o.number).collect();
                let noise = Noise::of(&tape, (loss, upstream), &numbers, &none)?;
                for o in observed.iter_mut().filter(|o| o.wrong) {
                    o.wrong = !noise.covers(o.number, (&o.given, &o.right), relative, coarser);
                }
            }
            None => {
                let wrong = observed.iter_mut().filter(|o| o.wrong);
                wrong.for_each(|o| o.wrong = !closeness.same(&o.right, &o.given));
            }
        }
    }
    for o in observed.iter_mut().filter(|o| !o.wrong) {
        let apart = o.right.iter().zip(&o.given).map(|(r, g)| (r - g).abs());
        o.slack = apart.filter(|x| x.is_finite()).fold(0.0, f64::max);
    }
    Ok(())
}

/// The nodes whose gradient is rounding, compared with the gradients that it is made from.
fn dead(tape: &RecordedPass, closeness: Closeness) -> HashSet<u64> {
    let size = |n: &u64| tape.gradients.get(n).map_or(0.0, |g| largest(&g.to_f64_vec()));
    let is_dead = |n: &u64| {
        let parts = tape.parts.get(n).into_iter().flatten();
        let above = parts.map(|p| size(&p.node.number)).fold(0.0, f64::max);
        above > 0.0 && size(n) <= 0.01 * closeness.relative * above
    };
    tape.nodes.keys().filter(|n| is_dead(n)).copied().collect()
}

/// The name of a tensor, or its op and number.
pub(crate) fn label(source: &Source) -> String {
    source.shown_name().unwrap_or_else(|| match source {
        Source::Node(node) => format!("{}#{}", node.op.name(), node.number),
        _ => match source.meta() {
            Some(meta) if meta.shape.rank() > 0 => format!("a parameter {}", meta.shape),
            Some(_) => "a parameter".to_owned(),
            None => "a constant".to_owned(),
        },
    })
}

fn check(tensor: &Tensor, gradient: &Tensor) -> Result<()> {
    if !tensor.requires_grad() {
        let why = "a tensor that was given a gradient is a constant; make it with parameter() before it is used";
        return Err(Error::gradient("verdict", why));
    }
    if tensor.shape() != gradient.shape() {
        let why = "the given gradient must have the shape of its tensor";
        return Err(Error::shape("verdict", &[&tensor.shape(), &gradient.shape()], why));
    }
    if !gradient.dtype().is_float() {
        return Err(Error::dtype("verdict", &[gradient.dtype()], "a gradient has floats"));
    }
    Ok(())
}
