//! The walk backward over the tape.
//!
//! Nodes and leaves are numbered in the order in which they were made, so the largest number in the
//! heap has already received everything it will: its parts are summed, and its rule passes them on.
//! No recursion, no visited set; a diamond of any depth takes time in proportion to its edges.
//! Broadcasting is undone here and nowhere else.

use std::any::Any;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::ops::{SliceOp, add_values, join, sum_to};
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

/// A mistake to be made in one place of a walk. Every part of it is asked at each place; `None`
/// leaves what is right.
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
    /// them. Asked only where there are several.
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
    /// hooks are left to the walk outside.
    pub floor: u64,
    pub observer: Option<&'a mut dyn Observer>,
    pub planted: Option<&'a dyn Planted>,
}

/// A part of the gradient of `target`, waiting in the heap.
struct PendingPart {
    number: u64,
    /// The order of arrival, so that sums are always taken in the same order.
    arrival: u64,
    target: Source,
    gradient: Tensor,
    /// The slice of the target that it is the gradient of, where it is not that of the whole.
    of: Option<Arc<Node>>,
}

impl PartialEq for PendingPart {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for PendingPart {}
impl PartialOrd for PendingPart {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for PendingPart {
    /// Largest number first; of one number, the first to arrive.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.number.cmp(&other.number).then(other.arrival.cmp(&self.arrival))
    }
}

impl Walk<'_> {
    /// Walks back from `roots` with their upstream gradients. The gradients of the targets come
    /// back, `None` where nothing arrived.
    pub fn run(mut self, roots: &[(&Tensor, Tensor)]) -> Result<Vec<Option<Tensor>>> {
        let mode = Mode::get();
        let mode =
            if self.create_graph { mode.without(Mode::NO_GRAD) } else { mode.with(Mode::NO_GRAD) };
        let unseen = match self.create_graph {
            true => mode,
            // A pass that is recorded is part of the computation that a watcher follows.
            false => mode.without(Mode::WATCHED),
        };
        let _guard = unseen.without(Mode::RECORD_ALL).without(Mode::SAVE_NOTHING).enter();
        let tracing = mode.has(Mode::TRACE);
        let _cause = tracing.then(|| log::enter(log::Cause::Walk));

        let needed = self.targets.map(|targets| needed(roots, targets, self.floor));
        let mut found = Found::new(self.targets);
        let mut heap = BinaryHeap::new();
        let mut arrival = 0;
        let mut push =
            |heap: &mut BinaryHeap<PendingPart>, target: Source, gradient: Tensor, of| {
                arrival += 1;
                heap.push(PendingPart { number: target.number(), arrival, target, gradient, of });
            };
        for (root, gradient) in roots {
            push(&mut heap, root.source().clone(), gradient.clone(), None);
        }
        while let Some(PendingPart { number, target, gradient, of, .. }) = heap.pop() {
            let alone = of.is_none() && heap.peek().is_none_or(|next| next.number != number);
            let gradient = if alone {
                gradient
            } else if let Some(kept) = self.planted.and_then(|planted| planted.overwrites(number)) {
                overwritten(kept, gradient, number, &mut heap)
            } else {
                total(&target, (of, gradient), &mut heap)?
            };
            let gradient = self.settle(&target, number, gradient, &mut found)?;
            if tracing {
                log::gradient(number, &gradient.value());
            }
            let Source::Node(node) = target else { continue };
            if number < self.floor {
                continue;
            }
            let mut wanted = node.wanted();
            if let Some(needed) = &needed {
                wanted = restrict(&node, needed);
                if !wanted.any() {
                    continue;
                }
            }
            if self.observer.is_none() && self.planted.is_none() && slice(&node).is_some() {
                self.saved(&node)?;
                let input = node.inputs[0].clone();
                if wanted.get(0) && input.requires_grad() {
                    push(&mut heap, input, gradient, Some(node));
                }
                continue;
            }
            let parts = self.apply_rule(&node, gradient, wanted)?;
            for (i, part) in parts.into_iter().enumerate() {
                let Some(part) = part.filter(|_| i < node.inputs.len() && wanted.get(i)) else {
                    continue;
                };
                let input = &node.inputs[i];
                let Some(meta) = input.meta().filter(|_| input.requires_grad()) else {
                    continue;
                };
                let wide = shown_meta(&*node.op, meta);
                let part = self.fit(&node, i, part, wide)?.try_to_dtype(meta.dtype)?;
                if let Some(observer) = &mut self.observer {
                    observer.pass(&node, i, &part);
                }
                push(&mut heap, input.clone(), part, None);
            }
        }
        Ok(found.gradients)
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

    /// The whole gradient of `target` is there: hooks see it, and it is kept where somebody wants
    /// it.
    fn settle(
        &mut self,
        target: &Source,
        number: u64,
        gradient: Tensor,
        found: &mut Found,
    ) -> Result<Tensor> {
        let mut gradient = gradient;
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
        Ok(gradient)
    }

    /// Values that the forward pass saved of a node; freed there, unless another walk follows.
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

/// The slice that a node is, if it is one. Its gradient waits as it is for those of the other
/// slices, and they are put into one array.
#[inline]
fn slice(node: &Node) -> Option<&SliceOp> {
    (node.op.as_ref() as &dyn Any).downcast_ref()
}

/// The sum of the first part of `target` and the further ones: those of slices joined, the others
/// in the order in which they arrived.
fn total(
    target: &Source,
    first: (Option<Arc<Node>>, Tensor),
    heap: &mut BinaryHeap<PendingPart>,
) -> Result<Tensor> {
    let (mut whole, mut slices) = (None, SmallVec::<[(Arc<Node>, Tensor); 3]>::new());
    let mut next = Some(first);
    while let Some((of, gradient)) = next {
        match of {
            Some(node) => slices.push((node, gradient)),
            None => {
                whole = Some(match whole.take() {
                    Some(before) => add_values(before, &gradient)?,
                    None => gradient,
                });
            }
        }
        let more = heap.peek().is_some_and(|next| next.number == target.number());
        next = if more { heap.pop().map(|part| (part.of, part.gradient)) } else { None };
    }
    let parts = slices.iter().map(|(node, g)| (slice(node).expect("a slice"), g));
    let parts: SmallVec<[_; 3]> = parts.collect();
    let joined = match target.meta() {
        Some(meta) if !parts.is_empty() => Some(join(meta, &parts)?),
        _ => None,
    };
    match (whole, joined) {
        (Some(whole), Some(joined)) => add_values(whole, &joined),
        (whole, joined) => Ok(whole.or(joined).expect("one part at least")),
    }
}

/// The mistake of an assignment where an addition is due: of the parts of tensor `number`, the one
/// that stands for all of them.
fn overwritten(
    kept: usize,
    first: Tensor,
    number: u64,
    heap: &mut BinaryHeap<PendingPart>,
) -> Tensor {
    let mut parts = vec![first];
    while heap.peek().is_some_and(|next| next.number == number) {
        parts.extend(heap.pop().map(|part| part.gradient));
    }
    let kept = kept.min(parts.len() - 1);
    parts.swap_remove(kept)
}

/// The gradients of the targets, as far as they were found.
struct Found {
    /// The places in the list of each number; a tensor may be asked for twice.
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
    // Nobody knows the sum of it and something that is not there; who reads it hears so.
    if notes.lost {
        return Ok(());
    }
    notes.grad = Some(match notes.grad.take() {
        None => gradient.clone(),
        Some(before) if create_graph => before.try_add(gradient)?,
        Some(before) => add_values(before, gradient)?,
    });
    Ok(())
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
