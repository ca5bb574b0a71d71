//! The stage itself: reads a program, and writes what the roots need in the cheapest form.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::accuracy::Accuracy;
use super::axes::AxisMap;
use super::emit::Written;
use super::operations::{NodeId, Plan, log_slope_weight};
use super::plan::Known;
use super::rules::RuleId;
use super::steps::Noted;
use super::term::{Base, Dims, TermId, Terms, ZERO};
use crate::Program;
use crate::dtype::DType;
use crate::error::Result;
use crate::ir::{Id, Instruction, Maker, Origin, Phase};
use crate::names::Names;
use crate::shape::Shape;
use crate::tensor::op::Kernel;
use crate::tensor::reading::{Reading, SlopeReading};
use crate::tensor::value::Layout;

/// Cost of a value: its own, plus the values that it needs, which may be shared with others.
#[derive(Clone, Debug, Default)]
pub(super) struct Price {
    pub own: f64,
    pub needs: SmallVec<[Id; 4]>,
}

/// A program on its way through the algebra.
pub(super) struct Stage {
    pub program: Program,
    pub terms: Terms,
    pub dims: Vec<Dims>,
    pub renamed: FxHashMap<(usize, usize), Dims>,
    /// The term of each value.
    pub values: Vec<TermId>,
    /// Cost of each value that is not computed anyway.
    pub prices: Vec<Price>,
    /// Whether a value is computed anyway.
    pub live: Vec<bool>,
    /// Uses of each value, as an operand or a result.
    pub uses: Vec<u32>,
    /// One more than the place of the instruction that defines a value; 0 if none does.
    pub position: Vec<usize>,
    pub known: Known,
    pub best_of: FxHashMap<TermId, TermId>,
    pub cost_of: FxHashMap<TermId, f64>,
    /// The steps found while costs were computed; forgotten when another value becomes known.
    pub last_plans: FxHashMap<TermId, (Plan, f64, NodeId)>,
    pub names: Names,
    pub numbers: FxHashMap<(u64, DType, Vec<usize>), Id>,
    /// Dtype of the current value.
    pub dtype: DType,
    /// The current instruction.
    pub at: usize,
    /// Whether the instruction at hand is one of the forward pass.
    pub is_forward: bool,
    pub noted: Vec<Noted>,
    /// Constants that are no single number.
    pub arrays: Vec<(Id, TermId, Vec<f64>)>,
    /// The values and terms at sample points, with their rounding errors.
    pub accuracy: Accuracy,
    /// The cost of an instruction beside its elements.
    pub overhead: f64,
    /// Whether a formula of the forward pass lacks an axis of its value.
    pub is_degenerate: bool,
    /// In checked mode.
    pub seed: Option<u64>,
    /// Whether no value may take more instructions than it had.
    pub is_strict: bool,
    /// Whether the uses of rules will be put into words.
    pub tells: bool,
}

impl Stage {
    /// `None` if the axes of the program cannot be distinguished.
    pub fn new(program: &Program, on: &[bool], seed: Option<u64>, overhead: f64) -> Option<Stage> {
        let axes = AxisMap::of(program)?;
        let n = program.values.len();
        let mut names = Names::default();
        for info in &program.values {
            names.unique(&info.name);
        }
        let mut position = vec![0; n];
        let mut live = vec![true; n];
        for (at, instruction) in program.instructions.iter().enumerate() {
            for id in &instruction.outputs {
                position[id.index()] = at + 1;
                live[id.index()] = instruction.phase == Phase::Forward;
            }
        }
        let mut uses = vec![0; n];
        let taken = program.instructions.iter().flat_map(|i| i.inputs.iter().copied());
        taken.chain(program.roots()).for_each(|id| uses[id.index()] += 1);
        let floats = || program.values.iter().map(|v| v.meta.dtype).filter(|d| d.is_float());
        let narrow = floats().any(|d| d == DType::F32);
        let terms = Terms::new(on, axes.sizes);
        Some(Stage {
            program: program.clone(),
            terms,
            dims: axes.dims,
            renamed: axes.renamed,
            values: vec![ZERO; n],
            prices: vec![Price::default(); n],
            live,
            uses,
            position,
            known: Known::default(),
            best_of: FxHashMap::default(),
            cost_of: FxHashMap::default(),
            last_plans: FxHashMap::default(),
            names,
            numbers: FxHashMap::default(),
            dtype: if narrow { DType::F32 } else { DType::F64 },
            at: 0,
            is_forward: true,
            noted: Vec::new(),
            arrays: Vec::new(),
            accuracy: Accuracy::default(),
            is_degenerate: false,
            overhead,
            seed,
            is_strict: false,
            tells: true,
        })
    }

    /// Cost of an instruction with everything it needs.
    pub fn original_cost(&self, at: usize) -> f64 {
        let instruction = &self.program.instructions[at];
        let inputs = instruction.inputs.iter().copied();
        own_cost(&self.program, instruction, self.overhead) + self.pay(&mut Vec::new(), inputs)
    }

    /// The price of the result of an instruction: as it is written, or `cost` if another form of it
    /// is cheaper.
    pub fn price(&self, at: usize, cost: f64) -> Price {
        let instruction = &self.program.instructions[at];
        if cost < self.original_cost(at) {
            return Price { own: cost, needs: SmallVec::new() };
        }
        let needs = instruction.inputs.iter().copied().filter(|id| !self.live[id.index()]);
        Price { own: own_cost(&self.program, instruction, self.overhead), needs: needs.collect() }
    }

    /// The program with each value that the roots need in its cheapest form.
    pub fn write_all(&mut self) -> Result<Program> {
        let count = self.program.instructions.len();
        let mut needed = vec![false; self.program.values.len()];
        let roots: Vec<Id> = self.program.roots().collect();
        for id in &roots {
            self.need(&mut needed, *id);
        }
        let mut same: FxHashMap<Id, Id> = FxHashMap::default();
        let mut written: Vec<Vec<Instruction>> = Vec::with_capacity(count);
        for at in (0..count).rev() {
            let instruction = self.program.instructions[at].clone();
            let draws = instruction.op.generator().is_some();
            if !draws && !instruction.outputs.iter().any(|id| needed[id.index()]) {
                written.push(Vec::new());
                continue;
            }
            let beside = instruction.outputs[1..].iter().any(|id| needed[id.index()]);
            let fresh = if draws || beside { None } else { self.rewritten(at, &instruction)? };
            let list = match fresh {
                Some(Written::As(list)) => list,
                Some(Written::Same(id)) => {
                    same.insert(instruction.result(), id);
                    needed.resize(self.program.values.len(), false);
                    self.need(&mut needed, id);
                    written.push(Vec::new());
                    continue;
                }
                None => vec![instruction],
            };
            needed.resize(self.program.values.len(), false);
            for id in list.iter().flat_map(|i| i.inputs.iter()) {
                self.need(&mut needed, *id);
            }
            written.push(list);
        }
        written.reverse();
        self.program.instructions = written.into_iter().flatten().collect();
        self.replace(&same);
        Ok(self.program.clone())
    }

    fn need(&mut self, needed: &mut [bool], id: Id) {
        needed[id.index()] = true;
        if let Some(live) = self.live.get_mut(id.index()) {
            *live = true;
        }
    }

    /// The instructions that replace this one and everything only it needs, if such are cheaper.
    fn rewritten(&mut self, at: usize, instruction: &Instruction) -> Result<Option<Written>> {
        let result = instruction.result();
        let meta = self.program.info(result).meta;
        if instruction.phase != Phase::Backward || !meta.dtype.is_float() {
            return Ok(None);
        }
        self.dtype = meta.dtype;
        let t = self.values[result.index()];
        if let Some(c) = self.terms.as_number(t) {
            self.become_number(result, c, meta.shape);
            return Ok(Some(Written::As(Vec::new())));
        }
        if self.is_itself(t, result) {
            return Ok(None);
        }
        if let Some(taken_in) = self.with_number(t, instruction) {
            return Ok(Some(Written::As(vec![taken_in])));
        }
        let original = self.original_cost(at);
        let (mut plan, c, n, cost) = self.cheapest_plan(at, t);
        if cost >= original || !self.is_accurate_for(&mut plan, c, n, result) {
            return Ok(None);
        }
        self.verify_plan(&plan, c, n, t, instruction)?;
        let mut written = self.write(&plan, c, n, instruction);
        if let Some(Written::As(list)) = &written
            && self.is_strict
        {
            let taken = list.iter().flat_map(|i| i.inputs.iter().copied());
            let then = list.len() + self.count_of(taken);
            let now = 1 + self.count_of(instruction.inputs.iter().copied());
            written = written.filter(|_| then <= now);
        }
        if written.is_some() {
            self.note_plan(result, t, &plan, c, n);
        }
        Ok(written)
    }

    /// Instructions that these values need and that are not computed anyway.
    fn count_of(&self, ids: impl IntoIterator<Item = Id>) -> usize {
        let mut seen: Vec<Id> = Vec::new();
        let mut open: Vec<Id> = ids.into_iter().collect();
        while let Some(id) = open.pop() {
            let at = self.position.get(id.index()).and_then(|at| at.checked_sub(1));
            let Some(at) = at.filter(|_| !self.live[id.index()] && !seen.contains(&id)) else {
                continue;
            };
            seen.push(id);
            open.extend(self.program.instructions[at].inputs.iter().copied());
        }
        seen.len()
    }

    /// The steps of a term as the result of an instruction, with their cost. If they compute a
    /// multiple of a value, the coefficient may move to a better place.
    fn cheapest_plan(&mut self, at: usize, t: TermId) -> (Plan, f64, NodeId, f64) {
        let mut planned = |is_exact: bool| {
            let mut plan = Plan::new(at + 1);
            plan.is_exact = is_exact;
            let (c, n) = self.plan_term(&mut plan, t);
            let shape = self.program.info(self.program.instructions[at].result()).meta.shape;
            let free = c == 1.0 || self.is_mean(&plan, n, c);
            let number = if free { 0.0 } else { shape.numel() as f64 + self.overhead };
            let cost = plan.cost_to(n) + number;
            (plan, c, n, cost)
        };
        let plan = planned(false);
        if !plan.0.is_multiple(plan.1, plan.2) {
            return plan;
        }
        let other = planned(true);
        if other.3 < plan.3 { other } else { plan }
    }

    /// A number times the result of an op that is linear in a scalar operand used nowhere else: the
    /// same op with another number.
    fn with_number(&mut self, t: TermId, instruction: &Instruction) -> Option<Instruction> {
        if !self.terms.on(RuleId::ConstantFactor) {
            return None;
        }
        let [(m, c)] = self.terms.summands(t)[..] else { return None };
        let [(b, 1.0)] = self.terms.factors(m)[..] else { return None };
        let Base::Value { id, dims } = self.terms.get(b).clone() else { return None };
        let result = instruction.result();
        let same = dims == self.dims[id.index()] && dims == self.dims[result.index()];
        if !same || self.live[id.index()] || self.uses[id.index()] != 1 {
            return None;
        }
        let mut made = self.program.instructions[self.position[id.index()].checked_sub(1)?].clone();
        let metas = [id, result].map(|id| self.program.info(id).meta);
        if made.outputs.len() != 1 || metas[0] != metas[1] || made.op.generator().is_some() {
            return None;
        }
        let groups = super::ops::linear_in(&*made.op, made.inputs.len());
        let number = |k: usize| self.terms.as_number(self.values[made.inputs[k].index()]);
        let (k, x) = groups.into_iter().find_map(|group| match group.len() {
            1 => Some((group.start, number(group.start)?)),
            _ => None,
        })?;
        let operand = self.program.info(made.inputs[k]).meta;
        let scaled = super::term::tidy(c * x);
        if operand.dtype != self.dtype || !(1e-30..1e30).contains(&scaled.abs()) {
            return None;
        }
        made.inputs[k] = self.constant_value(scaled, operand.shape);
        made.outputs[0] = result;
        made.made_by = Maker::Algebra;
        self.note_number(result, t, &made);
        Some(made)
    }

    /// Whether the term is just this value.
    pub fn is_itself(&self, t: TermId, id: Id) -> bool {
        let [(m, 1.0)] = self.terms.summands(t)[..] else { return false };
        let [(b, 1.0)] = self.terms.factors(m)[..] else { return false };
        matches!(self.terms.get(b), Base::Value { id: own, .. } if *own == id)
    }

    fn become_number(&mut self, id: Id, c: f64, shape: Shape) {
        let number = self.constant_value(c, Shape::SCALAR);
        let Origin::Constant(one) = self.program.info(number).from.clone() else {
            unreachable!("a constant was made")
        };
        let value = match shape.rank() {
            0 => one,
            _ => {
                let strides = [0; crate::shape::MAX_RANK];
                let layout = Layout { offset: 0, strides };
                std::sync::Arc::new(crate::tensor::value::Value::view(&one, shape, layout))
            }
        };
        self.program.values[id.index()].from = Origin::Constant(value);
    }

    /// Replaces values by equal ones; names that the user gave are kept.
    fn replace(&mut self, same: &FxHashMap<Id, Id>) {
        let find = |mut id: Id| {
            while let Some(next) = same.get(&id) {
                id = *next;
            }
            id
        };
        let mut replaced: Vec<Id> = same.keys().copied().collect();
        replaced.sort_unstable();
        for from in &replaced {
            let to = find(*from);
            let (a, b) = (&self.program.values[from.index()], &self.program.values[to.index()]);
            let made = !matches!(b.from, Origin::Input(_) | Origin::Cell(_) | Origin::Constant(_));
            if a.given && !b.given && made {
                let name = std::mem::take(&mut self.program.values[from.index()].name);
                let other = std::mem::replace(&mut self.program.values[to.index()].name, name);
                self.program.values[from.index()].name = other;
                self.program.values[to.index()].given = true;
                self.program.values[from.index()].given = false;
            }
        }
        for instruction in &mut self.program.instructions {
            instruction.inputs.iter_mut().for_each(|id| *id = find(*id));
        }
        self.program.outputs.iter_mut().for_each(|o| o.id = find(o.id));
        for id in self.program.cells.iter_mut().filter_map(|c| c.write.as_mut()) {
            *id = find(*id);
        }
    }
}

/// Cost of an instruction by itself.
fn own_cost(program: &Program, instruction: &Instruction, overhead: f64) -> f64 {
    let numel = program.info(instruction.result()).meta.shape.numel() as f64;
    let first = instruction.inputs.first();
    let taken = first.map_or(0, |id| program.info(*id).meta.shape.numel()) as f64;
    let each = match instruction.op.reading() {
        Reading::Exp | Reading::Log | Reading::Tanh | Reading::Sigmoid | Reading::Pow => 8.0,
        Reading::Slope(SlopeReading::Pow) => 8.0,
        Reading::LogSoftmaxGrad => log_slope_weight(program.info(instruction.result()).meta.dtype),
        Reading::Div | Reading::VarGrad { .. } => 1.5,
        Reading::Power(2.0) => 1.0,
        Reading::Power(_) | Reading::Slope(SlopeReading::Tanh | SlopeReading::Sigmoid) => 2.0,
        Reading::SoftmaxGrad | Reading::Slope(SlopeReading::Rsqrt) => 3.0,
        Reading::Slope(
            SlopeReading::Sqrt
            | SlopeReading::Reciprocal
            | SlopeReading::Square
            | SlopeReading::Log1p,
        )
        | Reading::Opaque
        | Reading::Equal
        | Reading::Add
        | Reading::Sub
        | Reading::Neg
        | Reading::Mul
        | Reading::Log1p
        | Reading::Expm1
        | Reading::LogSigmoid
        | Reading::Softmax
        | Reading::LogSoftmax
        | Reading::Fold { .. }
        | Reading::Permute(_)
        | Reading::Expand
        | Reading::Reshape
        | Reading::Gather { .. }
        | Reading::GatherGrad { .. }
        | Reading::OneHot
        | Reading::Cast
        | Reading::NotNegative
        | Reading::Positive => 1.0,
    };
    match instruction.op.kernel() {
        Kernel::View(_) => 0.0,
        Kernel::Reduce(..) => taken + overhead,
        _ => each * numel + overhead,
    }
}

/// Cost of all instructions.
pub(super) fn total_cost(program: &Program, overhead: f64) -> f64 {
    program.instructions.iter().map(|i| own_cost(program, i, overhead)).sum()
}
