//! Where a function has kinks: by what its ops do a little to either side of the point.
//!
//! The function is recorded at the point and on both sides of it, along a line that moves every element of the inputs. Each op of the tape is then
//! looked at on its own. Where its value on one side is not near that on the other, it jumps. Where nothing that it is given jumps, its forward
//! rule is applied at all three points to the same tangents: where it is smooth the results are nearly the same, and where they are not, there is
//! a kink. So a kink is found at the op that has it, element by element, however many smooth elements there are; those that cancel in the result are
//! found too, since at them a gradient depends on the side that each rule takes.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::tape::{Function, Tape, is_float};
use crate::check::compare::index_of;
use crate::check::richardson::largest;
use crate::error::Result;
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
    /// The line that called it.
    pub location: &'static Location<'static>,
    /// What it does there.
    pub what: Break,
    /// The element of its result.
    pub index: Vec<usize>,
    /// What the op was given there, if its inputs have the result's shape.
    pub at: Vec<f64>,
    /// How many elements of its result lie on a kink or beside one.
    pub count: usize,
}

/// How an op fails to be smooth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Its slope is another one on the other side, or at the point itself.
    Slope,
    /// Its value jumps.
    Jump,
    /// An operand that is not on the tape jumps: a condition, a mask or an index that was computed from the inputs.
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
        write!(f, " ({})", self.location)
    }
}

/// How far the sides of the point are from it, relative to the largest element of an input: a kink nearer than this is taken to be at the point.
pub(super) const AT: f64 = 1.0 / (1u64 << 34) as f64;

/// The same for kinks beside the point, which differences cannot keep clear of.
pub(super) const BESIDE: f64 = 1.0 / (1u64 << 20) as f64;

/// What goes down to less than half when the distance goes down to this is smooth.
const CLOSER: f64 = 1.0 / 16.0;

/// Slopes that are apart by less than this, relative to themselves, are the same.
const SLOPES: f64 = 1e-7;

/// The same relative to the largest tangents that the op is given, for slopes that cancel to nothing.
const TANGENTS: f64 = 1e-12;

/// Values that are apart by less than this, relative to the largest that the op is given or gives, do not jump.
const VALUES: f64 = 1e-9;

/// The kinks of one node of the tape at the point.
pub(super) struct Found {
    /// Its number; `None` for what concerns all that follows.
    pub number: Option<u64>,
    pub kink: Kink,
}

/// The elements of one node at which something is broken, with by how much.
struct Broken {
    /// The place in the order of the tape.
    place: usize,
    what: Break,
    elements: Vec<(usize, f64)>,
}

/// A function recorded at a point.
pub(super) struct Scan<'a> {
    pub f: &'a Function<'a>,
    pub inputs: &'a [Tensor],
    pub tape: &'a Tape,
    pub seed: u64,
    /// How often the function was called.
    pub calls: Cell<usize>,
}

/// The nodes of a tape in the order of the calls, with what they saved.
struct Steps(Vec<(Arc<Node>, SavedValues)>);

impl Steps {
    fn of(tape: &Tape) -> Steps {
        let nodes = super::tape::nodes(&tape.outputs);
        let saved = |node: &Arc<Node>| lock(&node.saved).clone();
        Steps(nodes.into_iter().map(|node| (node.clone(), saved(&node))).collect())
    }
}

impl Scan<'_> {
    /// The kinks within `distance`, if the inputs that `moves` names are moved. Two recorded calls, or four if there is anything.
    pub fn run(&self, moves: &dyn Fn(usize) -> bool, distance: f64) -> Result<Vec<Found>> {
        let steps = Steps::of(self.tape);
        let far = self.broken(&steps, moves, distance)?;
        if far.is_empty() {
            return Ok(Vec::new());
        }
        let close = self.broken(&steps, moves, distance * CLOSER)?;
        let mut out = Vec::new();
        for mut broken in far {
            if let Some(close) =
                close.iter().find(|c| (c.place, c.what) == (broken.place, broken.what))
            {
                let close: HashMap<usize, f64> = close.elements.iter().copied().collect();
                broken.elements.retain(|(j, apart)| close.get(j).is_some_and(|c| *c > 0.5 * apart));
                if !broken.elements.is_empty() {
                    let (node, saved) = &steps.0[broken.place];
                    let number = (broken.what != Break::Path).then_some(node.number);
                    out.push(Found { number, kink: kink(node, saved, &broken) });
                }
            }
        }
        Ok(out)
    }

    /// What differs among the sides and the point.
    fn broken(
        &self,
        steps: &Steps,
        moves: &dyn Fn(usize) -> bool,
        distance: f64,
    ) -> Result<Vec<Broken>> {
        let directions = self.directions(moves)?;
        // A side on which the function fails is beyond the edge of its domain; the differences will tell.
        let (Ok(up), Ok(down)) =
            (self.side(&directions, distance), self.side(&directions, -distance))
        else {
            return Ok(Vec::new());
        };
        let (up, down) = (Steps::of(&up), Steps::of(&down));
        let mut known: HashMap<u64, Option<Tensor>> = HashMap::new();
        for (leaf, u) in self.tape.leaves.iter().zip(&directions) {
            known.insert(leaf.source().number(), u.clone());
        }
        let (mut out, mut jumped) = (Vec::new(), HashSet::new());
        for (place, (node, saved)) in steps.0.iter().enumerate() {
            let at = Three { node, saved, up: up.0.get(place), down: down.0.get(place) };
            let Some(sides) = at.same_path() else {
                out.push(Broken { place, what: Break::Path, elements: vec![(0, 1.0)] });
                break;
            };
            let inherited = node.inputs.iter().any(|input| jumped.contains(&input.number()));
            if let Some(broken) = sides.jumps(place, inherited) {
                jumped.insert(node.number);
                if !inherited {
                    out.push(broken);
                }
            } else if !inherited && let Some(broken) = sides.slopes(place, &known) {
                out.push(broken);
            }
            known.insert(node.number, sides.tangent(&known)?);
        }
        let count = steps.0.len();
        if count > 0 && (up.0.len() > count || down.0.len() > count) {
            out.push(Broken { place: count - 1, what: Break::Path, elements: vec![(0, 1.0)] });
        }
        Ok(out)
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

/// One step at the point and on both sides.
struct Three<'a> {
    node: &'a Arc<Node>,
    saved: &'a SavedValues,
    up: Option<&'a (Arc<Node>, SavedValues)>,
    down: Option<&'a (Arc<Node>, SavedValues)>,
}

/// The same, where all three are the same step.
struct Sides<'a> {
    points: [(&'a Arc<Node>, &'a SavedValues); 3],
}

impl<'a> Three<'a> {
    fn same_path(&self) -> Option<Sides<'a>> {
        let (up, down) = (self.up?, self.down?);
        let kinds = |node: &Node| -> Vec<bool> {
            node.inputs.iter().map(|input| matches!(input, Source::None)).collect()
        };
        let same = |other: &Node| {
            (other.op.name(), other.meta, kinds(other))
                == (self.node.op.name(), self.node.meta, kinds(self.node))
        };
        (same(&up.0) && same(&down.0)).then_some(Sides {
            points: [(self.node, self.saved), (&up.0, &up.1), (&down.0, &down.1)],
        })
    }
}

impl Sides<'_> {
    fn node(&self) -> &Arc<Node> {
        self.points[0].0
    }

    fn output(&self, point: usize) -> Vec<f64> {
        self.points[point].1.output.as_ref().map_or(Vec::new(), numbers)
    }

    fn input(&self, point: usize, i: usize) -> Vec<f64> {
        self.points[point].1.inputs.get(i).and_then(Option::as_ref).map_or(Vec::new(), numbers)
    }

    /// Where the value is another one on another side, or an operand that is not on the tape is. If what the op is given jumps, only whether its value does
    /// is told.
    fn jumps(&self, place: usize, inherited: bool) -> Option<Broken> {
        let node = self.node();
        let count = node.inputs.len();
        let given = (0..count).map(|i| greatest(&self.input(0, i))).fold(0.0, f64::max);
        let constant = |i: &usize| matches!(node.inputs[*i], Source::None);
        for i in (0..count).filter(constant).take_while(|_| !inherited) {
            let all = [0, 1, 2].map(|point| self.input(point, i));
            let elements = apart(&all, |_| VALUES * greatest(&all[0]));
            if !elements.is_empty() {
                return Some(Broken { place, what: Break::Operand(i), elements });
            }
        }
        let all = [0, 1, 2].map(|point| self.output(point));
        let size = given.max(greatest(&all[0]));
        let elements = apart(&all, |_| VALUES * size);
        (!elements.is_empty()).then_some(Broken { place, what: Break::Jump, elements })
    }

    /// Where the forward rule gives another slope on another side.
    fn slopes(&self, place: usize, known: &HashMap<u64, Option<Tensor>>) -> Option<Broken> {
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
        let floor = TANGENTS * given.max(0.1 * largest);
        let own = |j: usize| all.iter().map(|d| d[j].abs()).fold(0.0, f64::max);
        let elements = apart(&all, |j| floor.max(SLOPES * own(j)));
        (!elements.is_empty()).then_some(Broken { place, what: Break::Slope, elements })
    }

    fn tangents(&self, known: &HashMap<u64, Option<Tensor>>) -> Vec<Option<Tensor>> {
        let of = |input: &Source| known.get(&input.number()).cloned().flatten();
        self.node().inputs.iter().map(of).collect()
    }

    /// The tangent at the point; any, if no rule gives it. `None` if nothing moves.
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

    /// The gradients that the reverse rule gives for some cotangent, of all operands one after the other.
    fn reverse(&self, point: usize) -> Option<Vec<f64>> {
        let _guard = Mode::get().with(Mode::NO_GRAD).enter();
        let (node, saved) = self.points[point];
        let gradients =
            node.op.vjp(&Saved::new(node, saved, false), &self.any().ok()?, node.wanted());
        Some(gradients.ok()?.iter().flatten().flat_map(Tensor::to_f64_vec).collect())
    }

    fn rule(&self, point: usize, tangents: &[Option<Tensor>]) -> Option<Tensor> {
        let _guard = Mode::get().with(Mode::NO_GRAD).enter();
        let (node, saved) = self.points[point];
        let tangent = node.op.jvp(&Saved::new(node, saved, false), tangents).ok()?;
        (tangent.meta() == node.meta).then_some(tangent)
    }
}

/// The elements in which three arrays are apart by more than is allowed there.
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

fn kink(node: &Node, saved: &SavedValues, broken: &Broken) -> Kink {
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
        location: node.location,
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
