//! Writing, second half: steps become instructions of the program.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Stage;
use super::operations::{NodeId, Operation, Plan, RowSlope};
use super::term::{Base, Dims, Fun, Var};
use crate::dtype::DType;
use crate::ir::{Id, Info, Instruction, Maker, Origin};
use crate::ops::make;
use crate::shape::{MAX_RANK, Shape};
use crate::tensor::op::Op;
use crate::tensor::value::{Layout, Meta, Value};

/// The instructions of one plan while they are being written.
pub(super) struct Writer<'a> {
    stage: &'a mut Stage,
    plan: &'a Plan,
    frame: Frame,
    done: FxHashMap<NodeId, (Id, Dims)>,
    out: Vec<Instruction>,
    /// The instruction that these replace.
    like: Instruction,
}

/// The state of a value in the new program.
pub(super) enum Written {
    /// It is computed by these.
    As(Vec<Instruction>),
    /// It is this other value.
    Same(Id),
}

impl Stage {
    /// The instructions that compute `c` times a step as the result `like`; `None` if that needs
    /// too many axes.
    pub(super) fn write(
        &mut self,
        plan: &Plan,
        c: f64,
        root: NodeId,
        like: &Instruction,
    ) -> Option<Written> {
        let target = self.dims[like.result().index()].clone();
        let frame = frame_of(plan, root, &target);
        // An empty axis has no first element.
        let lacks = |v: &Var| !target.contains(&Some(*v)) && self.terms.sizes[v.0 as usize] == 0;
        if frame.len() > MAX_RANK || plan.nodes[root].vars.iter().any(lacks) {
            return None;
        }
        let mut writer = Writer {
            stage: self,
            plan,
            frame,
            done: FxHashMap::default(),
            out: Vec::new(),
            like: like.clone(),
        };
        Some(writer.finish(c, root, target))
    }
}

/// Positions of axes that hold for all arrays of a plan (the frame). Axes that occur in no common
/// array may share one.
type Frame = Vec<SmallVec<[Var; 2]>>;

fn place_of(frame: &Frame, v: Var) -> Option<usize> {
    frame.iter().position(|slot| slot.contains(&v))
}

/// All axes that occur, in an order that fits most arrays.
fn frame_of(plan: &Plan, root: NodeId, target: &Dims) -> Frame {
    let needed = plan.needed(root);
    let mut frame: Frame = target.iter().map(|v| v.iter().copied().collect()).collect();
    let nodes = plan.nodes.iter().zip(&needed).filter(|(_, needed)| **needed);
    let have = nodes.clone().filter_map(|(n, _)| match &n.operation {
        Operation::Have(_, dims) => Some(dims.iter().flatten().copied().collect::<Vec<_>>()),
        _ => None,
    });
    let meet = |a: Var, b: Var| {
        let mut arrays = nodes.clone().map(|(n, _)| &n.vars);
        arrays.any(|vars| vars.contains(&a) && vars.contains(&b))
    };
    for (node, _) in nodes.clone() {
        if let Operation::Have(_, dims) = &node.operation {
            fill_slots(&mut frame, dims, meet);
        }
    }
    let rest = nodes.clone().map(|(n, _)| n.vars.to_vec());
    for vars in have.chain(rest) {
        for (i, v) in vars.iter().enumerate() {
            if place_of(&frame, *v).is_some() {
                continue;
            }
            // Before the next axis that has a position, else after the last one that has.
            let next = vars[i + 1..].iter().find_map(|w| place_of(&frame, *w));
            let last = vars[..i].iter().rev().find_map(|w| place_of(&frame, *w));
            let at = match (last, next) {
                (Some(last), _) => last + 1,
                (None, Some(next)) => next,
                (None, None) => frame.len(),
            };
            frame.insert(at, [*v].into_iter().collect());
        }
    }
    frame
}

/// Lets an axis of size 1 in the frame, or one that `meet`s no axis of an array, stand for another
/// axis if the array then fits the frame.
fn fill_slots(frame: &mut Frame, dims: &Dims, meet: impl Fn(Var, Var) -> bool) {
    let Some(lead) = frame.len().checked_sub(dims.len()) else { return };
    let fits = |(k, v): (usize, &Option<Var>)| match v {
        Some(v) => match place_of(frame, *v) {
            Some(at) => at == lead + k,
            None => !frame[lead + k].iter().any(|w| meet(*v, *w)),
        },
        None => true,
    };
    if dims.iter().enumerate().all(fits) {
        for (k, v) in dims.iter().enumerate() {
            let slot = &mut frame[lead + k];
            slot.extend(v.filter(|v| !slot.contains(v)));
        }
    }
}

impl Writer<'_> {
    fn finish(&mut self, c: f64, root: NodeId, target: Dims) -> Written {
        let root_operation = &self.plan.nodes[root].operation;
        if let (1.0, Operation::Sum(inner, vars)) = (c, root_operation)
            && let Some(id) = self.sum_without_axes(*inner, vars, &target)
        {
            return self.named(id);
        }
        let (id, dims) = match c {
            1.0 => self.write(root),
            c => self.scaled(root, c),
        };
        let id = self.laid_out(id, &dims, &target);
        let shape = self.stage.program.info(self.like.result()).meta.shape;
        let id = match self.shape(id) == shape {
            true => id,
            false => self.push(make::expand(shape), &[id], shape),
        };
        self.named(id)
    }

    /// The last instruction gets the name that the value has.
    fn named(&mut self, id: Id) -> Written {
        let result = self.like.result();
        match self.out.iter_mut().find(|i| i.result() == id) {
            Some(last) => {
                last.outputs[0] = result;
                for instruction in &mut self.out {
                    for input in instruction.inputs.iter_mut().filter(|input| **input == id) {
                        *input = result;
                    }
                }
                Written::As(std::mem::take(&mut self.out))
            }
            None => Written::Same(id),
        }
    }

    /// A sum without the summed axes, if the rest is laid out as it should be.
    fn sum_without_axes(&mut self, inner: NodeId, vars: &[Var], target: &Dims) -> Option<Id> {
        let (id, dims) = self.write(inner);
        let left: Dims =
            dims.iter().filter(|v| !v.is_some_and(|v| vars.contains(&v))).copied().collect();
        if left != *target {
            return None;
        }
        let axes = axes_of(&dims, vars);
        let shape = axes_removed(&self.shape(id), &axes, false);
        (shape == self.stage.program.info(self.like.result()).meta.shape)
            .then(|| self.push(make::sum(&axes, false), &[id], shape))
    }

    fn shape(&self, id: Id) -> Shape {
        self.stage.program.info(id).meta.shape
    }

    fn size(&self, v: Option<Var>) -> usize {
        v.map_or(1, |v| self.stage.terms.sizes[v.0 as usize])
    }

    fn push(&mut self, op: Arc<dyn Op>, inputs: &[Id], shape: Shape) -> Id {
        let name = self.stage.names.unique(op.name());
        let meta = Meta::new(shape, self.stage.dtype);
        let id = self.stage.new_value(Info { meta, name, given: false, from: Origin::Result });
        self.out.push(Instruction {
            op,
            inputs: inputs.iter().copied().collect(),
            outputs: [id].into_iter().collect(),
            phase: self.like.phase,
            made_by: Maker::Algebra,
            location: self.like.location.clone(),
            scope: self.like.scope.clone(),
        });
        id
    }

    fn number(&mut self, c: f64) -> Id {
        self.stage.constant_value(c, Shape::SCALAR)
    }

    fn scaled(&mut self, n: NodeId, c: f64) -> (Id, Dims) {
        match &self.plan.nodes[n].operation {
            Operation::One => (self.number(c), Dims::new()),
            Operation::Hot(_) => self.hot(n, c),
            Operation::Sum(a, vars) if self.stage.is_mean(self.plan, n, c) => {
                self.reduced(make::mean, *a, vars)
            }
            _ => {
                let (id, dims) = self.write(n);
                let shape = self.shape(id);
                if c == -1.0 {
                    return (self.push(make::neg(), &[id], shape), dims);
                }
                let number = self.number(c);
                (self.push(make::mul(), &[id, number], shape), dims)
            }
        }
    }

    /// The array of a step, whose axes lie in the order of the frame.
    fn write(&mut self, n: NodeId) -> (Id, Dims) {
        if let Some(done) = self.done.get(&n) {
            return done.clone();
        }
        let plan = self.plan;
        let made = match &plan.nodes[n].operation {
            Operation::One => (self.number(1.0), Dims::new()),
            Operation::Have(id, dims) => self.aligned(*id, dims),
            Operation::Hot(_) => self.hot(n, 1.0),
            Operation::Add(a, b) => self.binary(make::add(), *a, *b),
            Operation::Sub(a, b) => self.binary(make::sub(), *a, *b),
            Operation::Mul(a, b) => self.binary(make::mul(), *a, *b),
            Operation::Div(a, b) => self.binary(make::div(), *a, *b),
            Operation::Scale(a, c) => self.scaled(*a, f64::from_bits(*c)),
            Operation::Pow(a, e) => self.power(*a, f64::from_bits(*e)),
            Operation::Apply(f, a) => self.apply(*f, *a),
            Operation::Sum(a, vars) => self.reduced(make::sum, *a, vars),
            Operation::Pick(a, _) => self.pick(n, *a),
            Operation::RowSlope(of, y, g, var) => self.row_slope(*of, [*y, *g], *var),
        };
        self.done.insert(n, made.clone());
        made
    }

    /// A sum or mean along these axes, which stay with size 1.
    fn reduced(
        &mut self,
        op: fn(&[usize], bool) -> Arc<dyn Op>,
        a: NodeId,
        vars: &[Var],
    ) -> (Id, Dims) {
        let (id, dims) = self.write(a);
        let axes = axes_of(&dims, vars);
        // Leading axes need not stay: operands are aligned from the last axis on.
        let keepdim = !axes.iter().copied().eq(0..axes.len());
        let shape = axes_removed(&self.shape(id), &axes, keepdim);
        let kept = dims.iter().map(|v| v.filter(|v| !vars.contains(v)));
        let dims = kept.skip(if keepdim { 0 } else { axes.len() }).collect();
        (self.push(op(&axes, keepdim), &[id], shape), dims)
    }

    fn binary(&mut self, op: Arc<dyn Op>, a: NodeId, b: NodeId) -> (Id, Dims) {
        let ((a, x), (b, y)) = (self.write(a), self.write(b));
        let rank = x.len().max(y.len());
        let at = |d: &Dims, k: usize| (k + d.len()).checked_sub(rank).and_then(|k| d[k]);
        let dims: Dims = (0..rank).map(|k| at(&x, k).or(at(&y, k))).collect();
        let shape = self.shape(a).broadcast(&self.shape(b)).expect("aligned");
        (self.push(op, &[a, b], shape), dims)
    }

    fn power(&mut self, a: NodeId, e: f64) -> (Id, Dims) {
        let (id, dims) = self.write(a);
        let shape = self.shape(id);
        let op = match e {
            2.0 => make::square(),
            -1.0 => make::reciprocal(),
            0.5 => make::sqrt(),
            -0.5 => make::rsqrt(),
            e => {
                let number = self.number(e);
                return (self.push(make::pow(), &[id, number], shape), dims);
            }
        };
        (self.push(op, &[id], shape), dims)
    }

    fn apply(&mut self, f: Fun, a: NodeId) -> (Id, Dims) {
        let (id, dims) = self.write(a);
        let shape = self.shape(id);
        let op = match f {
            Fun::Exp => make::exp(),
            Fun::Log => make::log(),
            Fun::Tanh => make::tanh(),
            Fun::Sigmoid => make::sigmoid(),
            Fun::Root(_) => unreachable!("a power"),
            Fun::LogSumExp(var) => {
                let axes = axes_of(&dims, &[var]);
                let shape = axes_removed(&shape, &axes, true);
                let dims = dims.iter().map(|v| v.filter(|v| *v != var)).collect();
                return (self.push(make::logsumexp(&axes, true), &[id], shape), dims);
            }
            Fun::Softmax(var) => return self.along_rows(make::softmax(), &[id], dims, var),
        };
        (self.push(op, &[id], shape), dims)
    }

    fn row_slope(&mut self, of: RowSlope, [y, g]: [NodeId; 2], var: Var) -> (Id, Dims) {
        let op = match of {
            RowSlope::Softmax => make::softmax_grad(),
            RowSlope::LogSoftmax => make::log_softmax_grad(),
        };
        let ((y, dims), (g, own)) = (self.write(y), self.write(g));
        let g = self.laid_out(g, &own, &dims);
        self.along_rows(op, &[y, g], dims, var)
    }

    /// An op that goes along the last axis.
    fn along_rows(&mut self, op: Arc<dyn Op>, ids: &[Id], dims: Dims, var: Var) -> (Id, Dims) {
        let axis = dims.iter().position(|v| *v == Some(var)).expect("the axis is there");
        let last = dims.len() - 1;
        let shape = self.shape(ids[0]);
        if axis == last {
            return (self.push(op, ids, shape), dims);
        }
        let mut swap: SmallVec<[u8; 8]> = (0..dims.len() as u8).collect();
        swap.swap(axis, last);
        let turned = permuted(&shape, &swap);
        let ids: SmallVec<[Id; 2]> =
            ids.iter().map(|id| self.push(make::permute(&swap), &[*id], turned)).collect();
        let made = self.push(op, &ids, turned);
        (self.push(make::permute(&swap), &[made], shape), dims)
    }

    /// One-hot rows with `c` for the 1.
    fn hot(&mut self, n: NodeId, c: f64) -> (Id, Dims) {
        let Operation::Hot(b) = self.plan.nodes[n].operation else { unreachable!("one-hot rows") };
        let Base::Hot { index, dims, var } = self.stage.terms.get(b).clone() else {
            unreachable!("one-hot rows")
        };
        let all: Dims = self.covering(dims.iter().flatten().copied().chain([var]));
        let rows: Dims = all.iter().map(|v| v.filter(|v| *v != var)).collect();
        let index = self.laid_out(index, &dims, &rows);
        let axis = all.iter().position(|v| *v == Some(var)).expect("its own axis");
        let shape = self.shape_of(&all);
        let ones = self.stage.constant_value(c, self.shape_of(&rows));
        (self.push(make::gather_grad(axis, shape), &[ones, index], shape), all)
    }

    fn pick(&mut self, n: NodeId, a: NodeId) -> (Id, Dims) {
        let Operation::Pick(_, b) = self.plan.nodes[n].operation else { unreachable!("a pick") };
        let Base::Hot { index, dims, var } = self.stage.terms.get(b).clone() else {
            unreachable!("one-hot rows")
        };
        let (id, array) = self.write(a);
        let rows: Dims = array.iter().map(|v| v.filter(|v| *v != var)).collect();
        let index = self.laid_out(index, &dims, &rows);
        let axis = array.iter().position(|v| *v == Some(var)).expect("its own axis");
        let shape = self.shape_of(&rows);
        (self.push(make::gather(axis), &[id, index], shape), rows)
    }

    fn shape_of(&self, dims: &[Option<Var>]) -> Shape {
        let sizes: SmallVec<[usize; 8]> = dims.iter().map(|v| self.size(*v)).collect();
        Shape::new(&sizes)
    }

    /// These axes in the order of the frame, from the first of them on.
    fn covering(&self, vars: impl Iterator<Item = Var>) -> Dims {
        let vars: Vec<Var> = vars.collect();
        let wanted = |slot: &SmallVec<[Var; 2]>| slot.iter().copied().find(|v| vars.contains(v));
        let first = self.frame.iter().position(|slot| wanted(slot).is_some());
        self.frame[first.unwrap_or(self.frame.len())..].iter().map(wanted).collect()
    }

    /// A value of the program, with its axes moved to their positions in the frame.
    fn aligned(&mut self, id: Id, dims: &Dims) -> (Id, Dims) {
        let wanted = self.covering(dims.iter().flatten().copied());
        let tail = |d: &Dims| -> Dims { d.iter().skip_while(|v| v.is_none()).copied().collect() };
        if tail(dims) == tail(&wanted) {
            return (id, dims.clone());
        }
        (self.laid_out(id, dims, &wanted), wanted)
    }

    /// Drops unwanted axes: the formula says that all elements along them are the same.
    fn without_others(&mut self, id: Id, dims: &Dims, wanted: &Dims) -> (Id, Dims) {
        let other = |v: &Option<Var>| v.is_some() && !wanted.contains(v);
        let axes: Vec<usize> = (0..dims.len()).filter(|a| other(&dims[*a])).collect();
        if axes.is_empty() {
            return (id, dims.clone());
        }
        let dtype = self.stage.program.info(id).meta.dtype;
        let (op, shape) = (make::first_along(&axes, &self.shape(id)), self.shape(id));
        let sizes = (0..shape.rank()).map(|a| if axes.contains(&a) { 1 } else { shape[a] });
        let id = self.push(op, &[id], Shape::new(&sizes.collect::<SmallVec<[usize; 8]>>()));
        self.stage.set_dtype(id, dtype);
        (id, dims.iter().map(|v| v.filter(|v| wanted.contains(&Some(*v)))).collect())
    }

    /// The array with its axes as `wanted` has them; axes that it does not have are of size 1.
    fn laid_out(&mut self, id: Id, dims: &Dims, wanted: &Dims) -> Id {
        let (id, dims) = self.without_others(id, dims, wanted);
        let dims = &dims;
        let has = |v: Var| dims.contains(&Some(v));
        let wanted: Dims = wanted.iter().map(|v| v.filter(|v| has(*v))).collect();
        if *dims == wanted {
            return id;
        }
        let order = |v: &Option<Var>| v.and_then(|v| wanted.iter().position(|w| *w == Some(v)));
        let (mut id, mut dims) = (id, dims.clone());
        let places: Vec<usize> = dims.iter().filter_map(order).collect();
        if !places.is_sorted() {
            let mut turn: SmallVec<[u8; 8]> = (0..dims.len() as u8).collect();
            turn.sort_by_key(|a| order(&dims[*a as usize]).map_or(0, |place| place + 1));
            let shape = permuted(&self.shape(id), &turn);
            let dtype = self.stage.program.info(id).meta.dtype;
            id = self.push(make::permute(&turn), &[id], shape);
            self.stage.set_dtype(id, dtype);
            dims = turn.iter().map(|a| dims[*a as usize]).collect();
        }
        let shape = self.shape_of(&wanted);
        if dims == wanted {
            return id;
        }
        let dtype = self.stage.program.info(id).meta.dtype;
        let id = self.push(make::reshape(shape), &[id], shape);
        self.stage.set_dtype(id, dtype);
        id
    }
}

fn axes_of(dims: &[Option<Var>], vars: &[Var]) -> Vec<usize> {
    (0..dims.len()).filter(|a| dims[*a].is_some_and(|v| vars.contains(&v))).collect()
}

fn axes_removed(shape: &Shape, axes: &[usize], keepdim: bool) -> Shape {
    let sizes = shape.iter().enumerate().filter_map(|(a, &d)| match axes.contains(&a) {
        true => keepdim.then_some(1),
        false => Some(d),
    });
    Shape::new(&sizes.collect::<SmallVec<[usize; 8]>>())
}

fn permuted(shape: &Shape, from: &[u8]) -> Shape {
    let sizes: SmallVec<[usize; 8]> = from.iter().map(|a| shape[*a as usize]).collect();
    Shape::new(&sizes)
}

impl Stage {
    pub(super) fn new_value(&mut self, info: Info) -> Id {
        self.program.values.push(info);
        Id(self.program.values.len() as u32 - 1)
    }

    fn set_dtype(&mut self, id: Id, dtype: DType) {
        self.program.values[id.index()].meta.dtype = dtype;
    }

    /// A constant with the same number everywhere.
    pub(super) fn constant_value(&mut self, c: f64, shape: Shape) -> Id {
        let dtype = self.dtype;
        let key = (c.to_bits(), dtype, shape.to_vec());
        if let Some(id) = self.numbers.get(&key) {
            return *id;
        }
        let one = Arc::new(match dtype {
            DType::F32 => Value::scalar(c as f32),
            _ => Value::scalar(c),
        });
        let value = match shape.rank() {
            0 => one,
            _ => Arc::new(Value::view(&one, shape, Layout { offset: 0, strides: [0; MAX_RANK] })),
        };
        let name = self.names.unique("number");
        let meta = Meta::new(shape, dtype);
        let info = Info { meta, name, given: false, from: Origin::Constant(value) };
        let id = self.new_value(info);
        self.numbers.insert(key, id);
        id
    }
}
