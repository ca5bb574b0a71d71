//! The walk backward over the tape.
//!
//! Nodes and leaves are numbered in the order in which they were made, so the largest number in the
//! heap has already received everything it will: its parts are summed, and its rule passes them on.
//! No recursion, no visited set; a diamond of any depth takes time in proportion to its edges.
//! Broadcasting is undone here and nowhere else.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use smallvec::SmallVec;

use super::inspect::has_nan;
use super::pending::{Pending, slice};
use crate::error::{Error, Result};
use crate::ops::{add_values, sum_to};
use crate::tensor::node::{Mode, Node, Notes, SavedValues, Source, lock};
use crate::tensor::op::{Grads, Op, Saved, Wanted, shown, shown_meta};
use crate::tensor::value::Meta;
use crate::tensor::{Tensor, log};

/// Sees each step of a walk.
pub trait Observer {
    /// A node's whole gradient is known, before its rule is applied.
    fn arrive(&mut self, target: &Source, gradient: &Tensor) {
        let _ = (target, gradient);
    }

    /// `node` passes `part` on to its input `i`.
    fn pass(&mut self, node: &Arc<Node>, i: usize, part: &Tensor) {
        let _ = (node, i, part);
    }
}

/// A mistake to make in one place of a walk. Each of its methods is called at every place; `None`
/// leaves the right result.
pub trait Planted {
    /// A rule used in place of the op's own.
    fn rule(
        &self,
        node: &Arc<Node>,
        op: &dyn Op,
        at: &Saved<'_>,
        gradient: &Tensor,
        wanted: Wanted,
    ) -> Option<Result<Grads>> {
        let _ = (node, op, at, gradient, wanted);
        None
    }

    /// A replacement of `part`'s sum over the axes along which input `i` was stretched. Asked only
    /// where there are such axes.
    fn unbroadcast(
        &self,
        node: &Arc<Node>,
        i: usize,
        part: &Tensor,
        to: Meta,
    ) -> Option<Result<Tensor>> {
        let _ = (node, i, part, to);
        None
    }

    /// The part of the gradient of tensor `number`, counted as they arrive, that stands for all of
    /// them. Called only where there are several.
    fn overwrites(&self, number: u64) -> Option<usize> {
        let _ = number;
        None
    }
}

/// A closure plants a rule.
impl<F> Planted for F
where
    F: Fn(&Arc<Node>, &dyn Op, &Saved<'_>, &Tensor, Wanted) -> Option<Result<Grads>>,
{
    fn rule(
        &self,
        node: &Arc<Node>,
        op: &dyn Op,
        at: &Saved<'_>,
        gradient: &Tensor,
        wanted: Wanted,
    ) -> Option<Result<Grads>> {
        self(node, op, at, gradient, wanted)
    }
}

/// Options of a walk.
#[derive(Default)]
pub struct Walk<'a> {
    /// Record the rules' own operations, so that gradients can be differentiated.
    pub create_graph: bool,
    /// Keep what the tape saved, for another walk.
    pub keep_graph: bool,
    /// The tensors whose gradients are asked for; without them, leaves and retained intermediates
    /// accumulate theirs.
    pub targets: Option<&'a [Tensor]>,
    /// Tensors numbered below this are not walked through: they are found as targets, and their
    /// hooks are left to the surrounding walk.
    pub floor: u64,
    pub observer: Option<&'a mut dyn Observer>,
    pub planted: Option<&'a dyn Planted>,
}

impl Walk<'_> {
    /// Walks back from `roots` with their upstream gradients. The gradients of the targets come
    /// back, `None` where nothing arrived.
    pub fn run(mut self, roots: &[(&Tensor, Tensor)]) -> Result<Vec<Option<Tensor>>> {
        let _mode = self.mode().enter();
        let _cause = log::is_on().then(|| log::enter(log::Cause::Walk));
        let needed = self.targets.map(|targets| needed(roots, targets, self.floor));
        let mut found = Found::new(self.targets);
        let mut pending = Pending::default();
        for (root, gradient) in roots {
            pending.push(root.source().clone(), gradient.clone(), None);
        }
        while let Some((target, gradient)) = pending.pop(self.planted)? {
            let gradient = self.settle(&target, gradient, &mut found)?;
            let Source::Node(node) = target else { continue };
            if let Some(wanted) = self.wanted(&node, needed.as_ref()) {
                self.pass_on(node, gradient, wanted, &mut pending)?;
            }
        }
        Ok(found.gradients)
    }

    /// The mode in which the rules run.
    fn mode(&self) -> Mode {
        let mode = Mode::get().without(Mode::RECORD_ALL).without(Mode::SAVE_NOTHING);
        match self.create_graph {
            // A pass that is recorded is part of the computation that a watcher follows.
            true => mode.without(Mode::NO_GRAD),
            false => mode.with(Mode::NO_GRAD).without(Mode::WATCHED),
        }
    }

    /// The inputs of `node` that its gradient goes on to; `None` where the walk ends.
    #[inline]
    fn wanted(&self, node: &Node, needed: Option<&HashSet<u64>>) -> Option<Wanted> {
        if node.number < self.floor {
            return None;
        }
        match needed {
            None => Some(node.wanted()),
            Some(needed) => Some(restrict(node, needed)).filter(|wanted| wanted.any()),
        }
    }

    /// Gives the inputs of `node` their parts of its gradient.
    #[inline]
    fn pass_on(
        &mut self,
        node: Arc<Node>,
        gradient: Tensor,
        wanted: Wanted,
        pending: &mut Pending,
    ) -> Result<()> {
        if self.waits_as_slice(&node) {
            self.saved(&node)?;
            let input = node.inputs[0].clone();
            if wanted.get(0) && input.requires_grad() {
                pending.push(input, gradient, Some(node));
            }
            return Ok(());
        }
        let parts = self.apply_rule(&node, gradient, wanted)?;
        for (i, (input, part)) in node.inputs.iter().zip(parts).enumerate() {
            let Some(part) = part.filter(|_| wanted.get(i)) else { continue };
            let Some(meta) = input.meta().filter(|_| input.requires_grad()) else { continue };
            let wide = shown_meta(&*node.op, meta);
            let part = self.fit(&node, i, part, wide)?.try_to_dtype(meta.dtype)?;
            if let Some(observer) = &mut self.observer {
                observer.pass(&node, i, &part);
            }
            if Mode::get().has(Mode::CHECK_NAN) && has_nan(&part.value()) {
                return Err(nan(&node, i));
            }
            pending.push(input.clone(), part, None);
        }
        Ok(())
    }

    /// Whether the gradient of `node`, a slice, is kept as it is until those of the other slices
    /// are there, so that all go into one array. Observers and planted mistakes see each rule
    /// separately.
    #[inline]
    fn waits_as_slice(&self, node: &Node) -> bool {
        self.observer.is_none() && self.planted.is_none() && slice(node).is_some()
    }

    /// Brings a rule's gradient to the shape of the input, summing over what was broadcast.
    #[inline]
    fn fit(&self, node: &Arc<Node>, i: usize, part: Tensor, meta: Meta) -> Result<Tensor> {
        if part.meta() == meta {
            return Ok(part);
        }
        if let Some(planted) = self.planted
            && let Some(wrong) = planted.unbroadcast(node, i, &part, meta)
        {
            return wrong;
        }
        fit(node, i, &part, meta)
    }

    /// The whole gradient of `target` is known: hooks see it, and it is kept if anything asks for
    /// it.
    fn settle(
        &mut self,
        target: &Source,
        mut gradient: Tensor,
        found: &mut Found,
    ) -> Result<Tensor> {
        // A graph may be older than the leaf's present memory.
        let heir = match target {
            Source::Leaf(leaf) => leaf.heir().filter(|h| h.meta() == Some(gradient.meta())),
            _ => None,
        };
        let target = heir.as_ref().unwrap_or(target);
        let number = target.number();
        let (mut retain, mut hooks) = (matches!(target, Source::Leaf(_)), Vec::new());
        if number >= self.floor
            && let Some(notes) = target.notes()
            && let Some(notes) = notes.as_ref()
        {
            retain |= notes.retain;
            hooks = notes.hooks();
        }
        for hook in hooks {
            if let Some(replaced) = hook(&gradient) {
                if replaced.meta() != gradient.meta() {
                    let why = "a hook must return a gradient of the same shape and dtype";
                    return Err(Error::shape(
                        "register_hook",
                        &[&gradient.shape(), &replaced.shape()],
                        why,
                    ));
                }
                gradient = replaced;
            }
        }
        if let Some(observer) = &mut self.observer {
            observer.arrive(target, &gradient);
        }
        match self.targets {
            Some(_) => found.keep(number, &gradient),
            None if retain => accumulate(target, &gradient, self.create_graph)?,
            None => {}
        }
        if log::is_on() {
            log::gradient(number, &gradient.value());
        }
        Ok(gradient)
    }

    /// The values that the forward pass saved for a node; they are freed, unless another walk
    /// follows.
    fn saved(&self, node: &Node) -> Result<SavedValues> {
        let saved = if self.keep_graph || self.create_graph {
            lock(&node.saved).clone()
        } else {
            lock(&node.saved).take()
        };
        if saved.freed {
            let why = "its saved values were freed by an earlier backward; keep the graph there (Backward::keep_graph) to walk it again";
            return Err(Error::gradient(node.op.name(), why).at(node.location));
        }
        Ok(saved)
    }

    fn apply_rule(&self, node: &Arc<Node>, gradient: Tensor, wanted: Wanted) -> Result<Grads> {
        let op = node.op.as_ref();
        let rule = || log::Cause::Rule { op: op.name(), node: node.number, called: node.location };
        let _cause = log::is_on().then(|| log::enter(rule()));
        let saved = self.saved(node)?;
        let at = Saved::new(node, &saved, self.create_graph);
        let gradient = shown(op, gradient)?;
        if let Some(planted) = self.planted
            && let Some(grads) = planted.rule(node, op, &at, &gradient, wanted)
        {
            return grads;
        }
        if self.create_graph
            && let Some(grads) = super::by_definition(op, &at, &gradient, wanted)
        {
            return grads;
        }
        op.vjp(&at, &gradient, wanted).map_err(|e| e.at(node.location))
    }
}

/// The error for a rule that gave NaN.
fn nan(node: &Node, i: usize) -> Error {
    let line = node.place().map(|at| format!(", called at {at},")).unwrap_or_default();
    let why = format!("its backward{line} returned nan values for input {i}");
    Error::gradient(node.op.name(), why)
}

/// The gradients of the targets found so far.
struct Found {
    /// The positions of each number in the list; a tensor may be asked for twice.
    places: HashMap<u64, SmallVec<[usize; 1]>>,
    gradients: Vec<Option<Tensor>>,
}

impl Found {
    fn new(targets: Option<&[Tensor]>) -> Found {
        let targets = targets.unwrap_or_default();
        let mut places: HashMap<u64, SmallVec<[usize; 1]>> = HashMap::new();
        for (i, t) in targets.iter().enumerate() {
            places.entry(t.source().number()).or_default().push(i);
        }
        Found { places, gradients: vec![None; targets.len()] }
    }

    fn keep(&mut self, number: u64, gradient: &Tensor) {
        for &i in self.places.get(&number).into_iter().flatten() {
            self.gradients[i] = Some(gradient.clone());
        }
    }
}

/// The sum of a gradient over the axes along which input `i` of shape and dtype `meta` was
/// stretched, or the error if it cannot be that.
pub fn fit(node: &Node, i: usize, part: &Tensor, meta: Meta) -> Result<Tensor> {
    let got = part.meta();
    if got == meta {
        return Ok(part.clone());
    }
    if got.dtype != meta.dtype || got.shape.broadcast(&meta.shape) != Some(got.shape) {
        let why = format!(
            "its backward gave a gradient of {} {} for input {i}, which is {} {}",
            got.dtype, got.shape, meta.dtype, meta.shape
        );
        return Err(Error::gradient(node.op.name(), why).at(node.location));
    }
    sum_to(part, &meta.shape)
}

/// Adds to the gradient of a leaf or a retained intermediate.
fn accumulate(target: &Source, gradient: &Tensor, create_graph: bool) -> Result<()> {
    if log::is_on() {
        log::touch_gradient(target, true);
    }
    let Some(mut notes) = target.notes() else {
        return Ok(());
    };
    let notes: &mut Box<Notes> = notes.get_or_insert_default();
    if log::is_on() {
        log::graded(target, notes.grad.as_ref())?;
    }
    // The sum with a gradient that has been used up is unknown; reading it is an error that says
    // so.
    if notes.lost {
        return Ok(());
    }
    let before = match notes.home {
        None => notes.grad.take(),
        Some(_) => notes.grad_now(),
    };
    let sum = match before {
        None => gradient.clone(),
        Some(before) if create_graph => before.try_add(gradient)?,
        Some(before) => add_values(before, gradient)?,
    };
    notes.put_grad(Some(sum))
}

/// The inputs of `node` through which a target can be reached.
fn restrict(node: &Node, needed: &HashSet<u64>) -> Wanted {
    let mut wanted = Wanted::NONE;
    for (i, input) in node.inputs.iter().enumerate() {
        if needed.contains(&input.number()) {
            wanted = wanted.with(i);
        }
    }
    wanted
}

/// The numbers of the targets and of all nodes between them and the roots.
fn needed(roots: &[(&Tensor, Tensor)], targets: &[Tensor], floor: u64) -> HashSet<u64> {
    let mut needed: HashSet<u64> = targets.iter().map(|t| t.source().number()).collect();
    let lowest = needed.iter().copied().min().unwrap_or(u64::MAX).max(floor);
    for node in reachable(roots.iter().map(|(root, _)| root.source()), lowest) {
        if node.inputs.iter().any(|input| needed.contains(&input.number())) {
            needed.insert(node.number);
        }
    }
    needed.remove(&0);
    needed
}

/// All nodes that lead to the roots and are numbered above `lowest`, in rising order: each after
/// its inputs.
pub fn reachable<'a>(roots: impl Iterator<Item = &'a Source>, lowest: u64) -> Vec<Arc<Node>> {
    let mut seen = HashSet::new();
    let mut open: SmallVec<[Arc<Node>; 8]> = SmallVec::new();
    let mut out = Vec::new();
    let visit = |source: &Source, seen: &mut HashSet<u64>, open: &mut SmallVec<[Arc<Node>; 8]>| {
        if let Source::Node(node) = source
            && node.number > lowest
            && seen.insert(node.number)
        {
            open.push(node.clone());
        }
    };
    roots.for_each(|root| visit(root, &mut seen, &mut open));
    while let Some(node) = open.pop() {
        node.inputs.iter().for_each(|input| visit(input, &mut seen, &mut open));
        out.push(node);
    }
    out.sort_unstable_by_key(|node| node.number);
    out
}
