//! Kinks of a function, found by the behaviour of its ops a little to either side of the point.
//!
//! The function is recorded at the point and on both sides of it, along a line that moves every
//! element of the inputs. Each op of the tape is then looked at on its own. An op whose value on
//! one side is not near that on the other jumps. If none of its operands jumps, its forward rule is
//! applied at all three points to the same tangents: at a smooth point the results are nearly the
//! same; otherwise there is a kink. A kink is thus found at the op that has it, element by element,
//! however many smooth elements there are; those that cancel in the result are found too, since at
//! them a gradient depends on the side that each rule takes.

use std::cell::{Cell, OnceCell};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::tape::{Function, Tape, is_float};
use crate::compare::index_of;
use crate::error::Result;
use crate::program::Place;
use crate::richardson::largest;
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::tensor::node::{Mode, Node, SavedValues, Source, lock};
use crate::tensor::op::Saved;
use crate::tensor::value::Value;

/// A place where a function is not smooth.
#[derive(Clone, Debug, PartialEq)]
pub struct Kink {
    /// The op.
    pub op: &'static str,
    /// The line that called it, if it is known.
    pub location: Option<Place>,
    /// Kind of the break.
    pub what: Break,
    /// The element of its result.
    pub index: Vec<usize>,
    /// Operands of the op there, if its inputs have the result's shape.
    pub at: Vec<f64>,
    /// Elements of its result on a kink or beside one.
    pub count: usize,
}

/// Kind of a break in smoothness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Its slope differs on the other side, or at the point itself.
    Slope,
    /// Its value jumps.
    Jump,
    /// An operand that is not on the tape jumps: a condition, a mask or an index that was computed
    /// from the inputs.
    Operand(usize),
    /// On the other side the function calls other ops from here on.
    Path,
}

impl fmt::Display for Kink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            Break::Slope => write!(f, "kink of {} at {:?}", self.op, self.index)?,
            Break::Jump => write!(f, "jump of {} at {:?}", self.op, self.index)?,
            Break::Operand(i) => {
                let op = self.op;
                write!(f, "operand {i} of {op}, computed off the tape, jumps at {:?}", self.index)?;
            }
            Break::Path => {
                write!(f, "the function goes another way beside the point, from {} on", self.op)?
            }
        }
        if !self.at.is_empty() {
            write!(f, ", given {:?}", self.at)?;
        }
        if self.count > 1 {
            write!(f, " and {} more", self.count - 1)?;
        }
        match &self.location {
            Some(at) => write!(f, " ({at})"),
            None => Ok(()),
        }
    }
}

/// Distance of the sides from the point, relative to the largest element of an input: a kink nearer
/// than this is taken to be at the point.
pub(super) const AT: f64 = 1.0 / (1u64 << 34) as f64;

/// The same for kinks beside the point, which differences cannot avoid.
pub(super) const BESIDE: f64 = 1.0 / (1u64 << 20) as f64;

/// Distance of the sides in arithmetic narrower than f64, in units; slopes and values that are
/// nearer than that count as the same.
const UNITS: f64 = 1024.0;

/// A difference that falls below half when the distance shrinks by this factor belongs to a smooth
/// function.
const CLOSER: f64 = 1.0 / 16.0;

/// Slopes that differ by less than this, relative to themselves, are the same.
const SLOPES: f64 = 1e-7;

/// The same relative to the largest tangents that the op is given, for slopes that cancel to
/// nothing.
const TANGENTS: f64 = 1e-12;

/// Values that differ by less than this, relative to the largest input or output of the op, do not
/// jump.
const VALUES: f64 = 1e-9;

/// The same relative to the largest number seen up to there: a value that cancelled to nothing does
/// not jump. Numbers above the limit, such as those of masks, count as the limit.
const CANCELLED: f64 = 1e3 * f64::EPSILON;
const FAR: f64 = 1e4;

/// A kink of one node of the tape at the point.
pub(super) struct NodeKink {
    /// Its number; `None` for a break that concerns all that follows.
    pub number: Option<u64>,
    pub kink: Kink,
}

/// The elements of one step that break off, each with the size of the break.
struct BrokenStep {
    what: Break,
    elements: Vec<(usize, f64)>,
}

impl BrokenStep {
    fn path() -> BrokenStep {
        BrokenStep { what: Break::Path, elements: vec![(0, 1.0)] }
    }
}

/// A function recorded at a point.
pub(super) struct Scan<'a> {
    pub f: &'a Function<'a>,
    pub inputs: &'a [Tensor],
    pub tape: &'a Tape,
    pub seed: u64,
    /// The rounding unit of the function's arithmetic, and of its gradient's.
    pub unit: f64,
    pub slopes: f64,
    /// Number of calls of the function.
    pub calls: Cell<usize>,
}

/// A node of a tape, with what it saved.
type Step = (Arc<Node>, SavedValues);

/// The nodes of a tape in the order of the calls.
struct Steps(Vec<Step>);

impl Steps {
    fn of(tape: &Tape) -> Steps {
        let nodes = super::tape::nodes(&tape.outputs);
        let saved = |node: &Arc<Node>| lock(&node.saved).clone();
        Steps(nodes.into_iter().map(|node| (node.clone(), saved(&node))).collect())
    }
}

impl Scan<'_> {
    /// The kinks within `distance`, if the inputs that `moves` names are moved. It takes two
    /// recorded calls, and two closer ones if those may have found something.
    pub fn run(&self, moves: &dyn Fn(usize) -> bool, distance: f64) -> Result<Vec<NodeKink>> {
        let distance = distance.max(self.within(self.unit));
        let steps = Steps::of(self.tape);
        let directions = self.directions(moves)?;
        // A side on which the function fails is beyond the edge of its domain; the differences will
        // show it.
        let Some(far) = self.both(&directions, distance) else { return Ok(Vec::new()) };
        let closer = OnceCell::new();
        let closer = || closer.get_or_init(|| self.both(&directions, distance * CLOSER)).as_ref();
        let mut known: HashMap<u64, Option<Tensor>> = HashMap::new();
        for (leaf, u) in self.tape.leaves.iter().zip(&directions) {
            known.insert(leaf.source().number(), u.clone());
        }
        let (mut out, mut jumped, mut seen) = (Vec::new(), HashSet::new(), 0f64);
        for (place, step) in steps.0.iter().enumerate() {
            let Some(sides) = far.at(place, step) else {
                out.push(self.found(step, BrokenStep::path()));
                return Ok(out);
            };
            let close = || closer().and_then(|both| both.at(place, step));
            let inherited = step.0.inputs.iter().any(|input| jumped.contains(&input.number()));
            seen = seen.max(sides.size()).min(FAR);
            let jumps = confirmed(sides.jumps(seen), || Some(close()?.jumps(seen)));
            if jumps.iter().any(|broken| broken.what == Break::Jump) {
                jumped.insert(step.0.number);
            }
            let mut broken = jumps;
            if broken.is_empty() && !inherited {
                broken = confirmed(sides.slopes(&known), || Some(close()?.slopes(&known)));
            }
            if !inherited {
                // An operand that jumps is the cause of all other jumps.
                broken.truncate(1);
                out.extend(broken.into_iter().map(|broken| self.found(step, broken)));
            }
            known.insert(step.0.number, sides.tangent(&known)?);
        }
        if let Some(last) = steps.0.last()
            && far.is_longer_than(&steps)
        {
            out.push(self.found(last, BrokenStep::path()));
        }
        Ok(out)
    }

    fn found(&self, (node, saved): &Step, broken: BrokenStep) -> NodeKink {
        let number = (broken.what != Break::Path).then_some(node.number);
        NodeKink { number, kink: kink(node, saved, &broken) }
    }

    /// The steps on both sides, if the function can be called there.
    fn both(&self, directions: &[Option<Tensor>], distance: f64) -> Option<Both> {
        let up = self.side(directions, distance).ok()?;
        let down = self.side(directions, -distance).ok()?;
        let limits =
            JumpTolerances { values: self.within(self.unit), slopes: self.within(self.slopes) };
        Some(Both { up: Steps::of(&up), down: Steps::of(&down), limits })
    }

    /// Tolerance of numbers rounded to this unit; nothing in f64, whose limits are their own.
    fn within(&self, unit: f64) -> f64 {
        if unit > f64::EPSILON { UNITS * unit } else { 0.0 }
    }

    /// A direction for each input that moves, with no element near 0.
    fn directions(&self, moves: &dyn Fn(usize) -> bool) -> Result<Vec<Option<Tensor>>> {
        let generator = &mut Generator::manual_seed(self.seed ^ 0x51de);
        let draw = |(i, x): (usize, &Tensor)| -> Result<Option<Tensor>> {
            if !is_float(x) || !moves(i) {
                return Ok(None);
            }
            let u = Tensor::try_rand(x.shape(), x.dtype(), generator)?.to_f64_vec();
            let away = |u: f64| if u < 0.5 { u - 1.0 } else { u };
            let u: Vec<f64> = u.into_iter().map(away).collect();
            Ok(Some(Tensor::try_from_slice(&u, x.shape())?))
        };
        self.inputs.iter().enumerate().map(draw).collect()
    }

    fn side(&self, directions: &[Option<Tensor>], distance: f64) -> Result<Tape> {
        let moved = |(x, u): (&Tensor, &Option<Tensor>)| match u {
            Some(u) => {
                let reach = largest(std::slice::from_ref(x)).max(0.1);
                x.try_add(&u.try_mul(distance * reach)?)
            }
            None => Ok(x.clone()),
        };
        let inputs: Vec<Tensor> =
            self.inputs.iter().zip(directions).map(moved).collect::<Result<_>>()?;
        self.calls.set(self.calls.get() + 1);
        Tape::record(self.f, &inputs, true)
    }
}

/// The steps on both sides of the point.
struct Both {
    up: Steps,
    down: Steps,
    limits: JumpTolerances,
}

/// The relative distance below which values are the same.
#[derive(Clone, Copy)]
struct JumpTolerances {
    values: f64,
    slopes: f64,
}

impl Both {
    /// One step at the point and on both sides; `None` if it is not the same one there.
    fn at<'a>(&'a self, place: usize, step: &'a Step) -> Option<Sides<'a>> {
        let (up, down) = (self.up.0.get(place)?, self.down.0.get(place)?);
        let inputs = |node: &Node| -> Vec<bool> {
            node.inputs.iter().map(|input| matches!(input, Source::None)).collect()
        };
        let kind = |(node, _): &Step| (node.op.name(), node.meta, inputs(node));
        (kind(up) == kind(step) && kind(down) == kind(step))
            .then_some(Sides { points: [step, up, down], limits: self.limits })
    }

    fn is_longer_than(&self, steps: &Steps) -> bool {
        self.up.0.len().max(self.down.0.len()) > steps.0.len()
    }
}

/// Breaks seen from afar that do not shrink from close by.
fn confirmed(
    far: Vec<BrokenStep>,
    close: impl FnOnce() -> Option<Vec<BrokenStep>>,
) -> Vec<BrokenStep> {
    if far.is_empty() {
        return far;
    }
    let close = close().unwrap_or_default();
    let mut out = Vec::new();
    for mut broken in far {
        let Some(close) = close.iter().find(|c| c.what == broken.what) else { continue };
        let close: HashMap<usize, f64> = close.elements.iter().copied().collect();
        broken.elements.retain(|(j, apart)| close.get(j).is_some_and(|c| *c > 0.5 * apart));
        if !broken.elements.is_empty() {
            out.push(broken);
        }
    }
    out
}

/// One step at the point and on both sides.
struct Sides<'a> {
    points: [&'a Step; 3],
    limits: JumpTolerances,
}

impl Sides<'_> {
    fn node(&self) -> &Arc<Node> {
        &self.points[0].0
    }

    fn output(&self, point: usize) -> Vec<f64> {
        self.points[point].1.output.as_ref().map_or(Vec::new(), numbers)
    }

    fn input(&self, point: usize, i: usize) -> Vec<f64> {
        self.points[point].1.inputs.get(i).and_then(Option::as_ref).map_or(Vec::new(), numbers)
    }

    /// The largest number that the step takes or gives.
    fn size(&self) -> f64 {
        let inputs = (0..self.node().inputs.len()).map(|i| greatest(&self.input(0, i)));
        inputs.fold(greatest(&self.output(0)), f64::max)
    }

    /// Jumps of the value, and of operands that are not on the tape, between the sides.
    fn jumps(&self, seen: f64) -> Vec<BrokenStep> {
        let floor = CANCELLED * seen;
        let node = self.node();
        let mut out = Vec::new();
        let mut size: f64 = 0.0;
        for i in 0..node.inputs.len() {
            let own = self.input(0, i);
            size = size.max(greatest(&own));
            if matches!(node.inputs[i], Source::None) {
                let all = [own, self.input(1, i), self.input(2, i)];
                let allowed = floor.max(VALUES.max(self.limits.values) * greatest(&all[0]));
                out.push(BrokenStep {
                    what: Break::Operand(i),
                    elements: apart(&all, |_| allowed),
                });
            }
        }
        let all = [0, 1, 2].map(|point| self.output(point));
        size = size.max(greatest(&all[0]));
        let allowed = floor.max(VALUES.max(self.limits.values) * size);
        out.push(BrokenStep { what: Break::Jump, elements: apart(&all, |_| allowed) });
        out.retain(|broken| !broken.elements.is_empty());
        out
    }

    /// Slopes by the forward rule that differ between the sides.
    fn slopes(&self, known: &HashMap<u64, Option<Tensor>>) -> Vec<BrokenStep> {
        let elements = self.bends(known).unwrap_or_default();
        if elements.is_empty() {
            Vec::new()
        } else {
            vec![BrokenStep { what: Break::Slope, elements }]
        }
    }

    fn bends(&self, known: &HashMap<u64, Option<Tensor>>) -> Option<Vec<(usize, f64)>> {
        let tangents = self.tangents(known);
        if tangents.iter().all(Option::is_none) {
            return None;
        }
        let slope = |point: usize| self.rule(point, &tangents).map(|t| t.to_f64_vec());
        let (all, given) = match slope(0) {
            Some(own) => {
                let given = tangents.iter().flatten().map(|t| greatest(&t.to_f64_vec()));
                ([own, slope(1)?, slope(2)?], given.fold(0.0, f64::max))
            }
            None => ([self.reverse(0)?, self.reverse(1)?, self.reverse(2)?], 1.0),
        };
        let largest = all.iter().map(|d| greatest(d)).fold(0.0, f64::max);
        let limits = (TANGENTS.max(self.limits.slopes), SLOPES.max(self.limits.slopes));
        let floor = limits.0 * given.max(0.1 * largest);
        let own = |j: usize| all.iter().map(|d| d[j].abs()).fold(0.0, f64::max);
        Some(apart(&all, |j| floor.max(limits.1 * own(j))))
    }

    fn tangents(&self, known: &HashMap<u64, Option<Tensor>>) -> Vec<Option<Tensor>> {
        let of = |input: &Source| known.get(&input.number()).cloned().flatten();
        self.node().inputs.iter().map(of).collect()
    }

    /// The tangent at the point; an arbitrary one if no rule gives it. `None` if nothing moves.
    fn tangent(&self, known: &HashMap<u64, Option<Tensor>>) -> Result<Option<Tensor>> {
        let tangents = self.tangents(known);
        if tangents.iter().all(Option::is_none) {
            return Ok(None);
        }
        match self.rule(0, &tangents) {
            Some(tangent) => Ok(Some(tangent)),
            None => self.any().map(Some),
        }
    }

    fn any(&self) -> Result<Tensor> {
        let meta = self.node().meta;
        Tensor::try_randn(meta.shape, meta.dtype, &mut Generator::manual_seed(1))
    }

    /// The gradients that the reverse rule gives for some cotangent, of all operands one after the
    /// other.
    fn reverse(&self, point: usize) -> Option<Vec<f64>> {
        let _guard = Mode::get().with(Mode::NO_GRAD).enter();
        let (node, saved) = &self.points[point];
        let gradients =
            node.op.vjp(&Saved::new(node, saved, false), &self.any().ok()?, node.wanted());
        Some(gradients.ok()?.iter().flatten().flat_map(Tensor::to_f64_vec).collect())
    }

    fn rule(&self, point: usize, tangents: &[Option<Tensor>]) -> Option<Tensor> {
        let _guard = Mode::get().with(Mode::NO_GRAD).enter();
        let (node, saved) = &self.points[point];
        let tangent = node.op.jvp(&Saved::new(node, saved, false), tangents).ok()?;
        (tangent.meta() == node.meta).then_some(tangent)
    }
}

/// The elements in which three arrays differ by more than is allowed there.
fn apart(all: &[Vec<f64>; 3], allowed: impl Fn(usize) -> f64) -> Vec<(usize, f64)> {
    let [a, b, c] = all;
    if a.len() != b.len() || a.len() != c.len() {
        return vec![(0, f64::INFINITY)];
    }
    let between = |x: f64, y: f64| match () {
        _ if x == y || (x.is_nan() && y.is_nan()) => 0.0,
        _ if x.is_nan() || y.is_nan() => f64::INFINITY,
        _ => (x - y).abs(),
    };
    let mut out = Vec::new();
    for (j, ((&a, &b), &c)) in a.iter().zip(b).zip(c).enumerate() {
        if a == b && a == c {
            continue;
        }
        let apart = between(a, b).max(between(a, c)).max(between(b, c));
        if apart > allowed(j) {
            out.push((j, apart));
        }
    }
    out
}

fn kink(node: &Node, saved: &SavedValues, broken: &BrokenStep) -> Kink {
    let (j, _) = broken.elements[0];
    let own = |v: &Option<Arc<Value>>| {
        let v = v.as_ref().filter(|v| v.meta.shape == node.meta.shape)?;
        numbers(v).get(j).copied()
    };
    let at: Option<Vec<f64>> = saved.inputs.iter().map(own).collect();
    let shape = match broken.what {
        Break::Operand(i) => saved.inputs[i].as_ref().map_or(node.meta.shape, |v| v.meta.shape),
        _ => node.meta.shape,
    };
    let same = shape == node.meta.shape && broken.what != Break::Path;
    Kink {
        op: node.op.name(),
        location: node.place(),
        what: broken.what,
        index: index_of(j, &shape),
        at: if same { at.unwrap_or_default() } else { Vec::new() },
        count: broken.elements.len(),
    }
}

fn numbers(value: &Arc<Value>) -> Vec<f64> {
    Tensor::from_parts(value.clone(), Source::None).to_f64_vec()
}

/// The largest finite magnitude.
fn greatest(x: &[f64]) -> f64 {
    x.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()))
}
