//! Checked mode: each rewrite evaluated in numbers, before and after.

use std::sync::Arc;

use super::numbers::{self, Array, LARGEST, Numbers};
use super::operations::{NodeId, Operation, Plan, RowSlope};
use super::rules::{RuleId, rules};
use super::stage::Stage;
use super::term::{Base, Dims, Fun, TermId, Vars};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ir::Instruction;
use crate::shape::Shape;
use crate::tensor::run::compute_as;
use crate::tensor::value::{Meta, Value};

impl Stage {
    fn wrong(&self, rule: RuleId, at: &Instruction, before: String, after: TermId) -> Error {
        let why = format!(
            "the rule `{}` changes the value of `{}`: {before} is not {}",
            rules()[rule as usize].name,
            self.program.info(at.result()).name,
            self.text(after)
        );
        Error::argument("simplify", why)
    }

    fn is_too_large(&self, t: TermId) -> bool {
        let summands = self.terms.summands(t).iter();
        let product = |(m, _): &(super::term::ProductId, f64)| {
            let reduced = self.terms.factors(*m).iter().map(|(b, _)| match self.terms.get(*b) {
                Base::Reduce(_, inner) => self.terms.numel(self.terms.product_vars(*inner)),
                _ => 0,
            });
            reduced.max().unwrap_or(0)
        };
        self.terms.numel(self.terms.vars(t)).max(summands.map(product).max().unwrap_or(0)) > LARGEST
    }

    /// Checks the uses of rules at the current instruction, and its own result, against the term.
    pub(super) fn verify(
        &self,
        instruction: &Instruction,
        inputs: &[TermId],
        t: TermId,
        known: bool,
    ) -> Result<()> {
        let Some(seed) = self.seed else { return Ok(()) };
        let all = inputs.iter().chain([&t]);
        if all.copied().any(|t| self.is_too_large(t)) {
            return Ok(());
        }
        let mut numbers = Numbers::new(seed);
        for event in &self.terms.events {
            let Some(before) = numbers.before(&self.terms, &event.before) else { continue };
            let after = numbers.term(&self.terms, event.after);
            if !numbers::agree(&before, &after, &self.terms) {
                let text = self.before_text(&event.before);
                return Err(self.wrong(event.rule, instruction, text, event.after));
            }
        }
        if !known {
            return Ok(());
        }
        let Some(result) = self.run_op(&mut numbers, instruction, inputs) else { return Ok(()) };
        let term = numbers.term(&self.terms, t);
        match numbers::agree(&result, &term, &self.terms) {
            true => Ok(()),
            false => {
                let rule = self.terms.events.last().map_or(RuleId::Slope, |e| e.rule);
                let text = format!("{}(...)", instruction.op.name());
                Err(self.wrong(rule, instruction, text, t))
            }
        }
    }

    /// The op applied to the numbers of its operands' terms.
    fn run_op(
        &self,
        numbers: &mut Numbers,
        instruction: &Instruction,
        inputs: &[TermId],
    ) -> Option<Array> {
        let mut values = Vec::new();
        for (k, id) in instruction.inputs.iter().enumerate() {
            let meta = self.program.info(*id).meta;
            let dims = self.renamed.get(&(self.at, k)).unwrap_or(&self.dims[id.index()]);
            let value = match meta.dtype {
                DType::I64 => {
                    let (axis, whole) = super::ops::gather(instruction)?;
                    let classes = self.program.info(whole).meta.shape[axis];
                    Value::build::<i64>("checked", meta.shape, |out| {
                        for (i, o) in out.iter_mut().enumerate() {
                            *o = numbers.class(*id, i, classes) as i64;
                        }
                    })
                }
                d if d.is_float() => {
                    let data = numbers.term(&self.terms, inputs[k]);
                    let data = self.spread(&data, dims, &meta.shape);
                    Value::build::<f64>("checked", meta.shape, |out| out.copy_from_slice(&data))
                }
                _ => return None,
            };
            values.push(Arc::new(value.ok()?));
        }
        let meta = self.program.info(instruction.result()).meta;
        let wide = Meta::new(meta.shape, DType::F64);
        let outcome = compute_as(&*instruction.op, &values, wide).ok()?;
        let dims = &self.dims[instruction.result().index()];
        Some(from_value(&outcome.value, dims))
    }

    fn spread(&self, data: &Array, dims: &Dims, shape: &Shape) -> Vec<f64> {
        let out = data.laid_out(dims, &self.terms);
        debug_assert_eq!(out.len(), shape.numel());
        out
    }

    /// Checks the steps of a plan against the term that they compute.
    pub(super) fn verify_plan(
        &self,
        plan: &Plan,
        c: f64,
        root: NodeId,
        t: TermId,
        like: &Instruction,
    ) -> Result<()> {
        let Some(seed) = self.seed else { return Ok(()) };
        let large = plan.nodes.iter().any(|n| self.terms.numel(&n.vars) > LARGEST);
        if large || self.is_too_large(t) {
            return Ok(());
        }
        let mut numbers = Numbers::new(seed);
        let needed = plan.needed(root);
        let mut arrays: Vec<Option<Array>> = Vec::new();
        for (n, node) in plan.nodes.iter().enumerate() {
            let array = needed[n]
                .then(|| self.operation_in_numbers(&mut numbers, &node.operation, &arrays));
            arrays.push(array);
        }
        let root = arrays[root].take().expect("the root is needed");
        let number = Array { vars: Vars::new(), data: vec![c] };
        let got = self.combined(&root, &number, |a, b| a * b);
        let want = numbers.term(&self.terms, t);
        match numbers::agree(&got, &want, &self.terms) {
            true => Ok(()),
            false => Err(self.wrong(RuleId::Reuse, like, "what was written".to_string(), t)),
        }
    }

    fn combined(&self, a: &Array, b: &Array, f: impl Fn(f64, f64) -> f64) -> Array {
        numbers::combined(a, b, &self.terms, f)
    }

    fn operation_in_numbers(
        &self,
        numbers: &mut Numbers,
        step: &Operation,
        done: &[Option<Array>],
    ) -> Array {
        let of = |n: &NodeId| done[*n].clone().expect("steps come after what they need");
        match step {
            Operation::One => Array { vars: Vars::new(), data: vec![1.0] },
            Operation::Have(id, dims) if *dims != self.dims[id.index()] => {
                let t = self.terms.find_value(*id, dims).expect("it was read");
                numbers.term(&self.terms, t)
            }
            Operation::Have(id, _) => numbers.term(&self.terms, self.values[id.index()]),
            Operation::Hot(b) => {
                let t = self.terms.find_power(*b).expect("it was read");
                numbers.term(&self.terms, t)
            }
            Operation::Add(a, b) => self.combined(&of(a), &of(b), |a, b| a + b),
            Operation::Sub(a, b) => self.combined(&of(a), &of(b), |a, b| a - b),
            Operation::Mul(a, b) => self.combined(&of(a), &of(b), |a, b| a * b),
            Operation::Div(a, b) => self.combined(&of(a), &of(b), |a, b| a / b),
            Operation::Scale(a, c) => {
                let c = Array { vars: Vars::new(), data: vec![f64::from_bits(*c)] };
                self.combined(&of(a), &c, |a, b| a * b)
            }
            Operation::Pow(a, e) => {
                let e = Array { vars: Vars::new(), data: vec![f64::from_bits(*e)] };
                self.combined(&of(a), &e, f64::powf)
            }
            Operation::Apply(f, a) => numbers::apply(*f, of(a), &self.terms),
            Operation::Sum(a, vars) => of(a).sum(vars, &self.terms),
            Operation::RowSlope(RowSlope::LogSoftmax, l, g, var) => {
                let (p, g) = (numbers::apply(Fun::Exp, of(l), &self.terms), of(g));
                let part = self.combined(&p, &g.sum(&[*var], &self.terms), |a, b| a * b);
                self.combined(&g, &part, |a, b| a - b)
            }
            Operation::RowSlope(RowSlope::Softmax, p, g, var) => {
                let (p, g) = (of(p), of(g));
                let total = self.combined(&p, &g, |a, b| a * b).sum(&[*var], &self.terms);
                self.combined(&p, &self.combined(&g, &total, |a, b| a - b), |a, b| a * b)
            }
            Operation::Pick(a, b) => {
                let t = self.terms.find_power(*b).expect("it was read");
                let hot = numbers.term(&self.terms, t);
                let Base::Hot { var, .. } = *self.terms.get(*b) else { unreachable!("one-hot") };
                self.combined(&of(a), &hot, |a, b| a * b).sum(&[var], &self.terms)
            }
        }
    }
}

impl super::term::Terms {
    /// The term of a value with these axes, if it has been made.
    fn find_value(&self, id: crate::ir::Id, dims: &Dims) -> Option<TermId> {
        self.find_power(self.find_base(&Base::Value { id, dims: dims.clone() })?)
    }
}

/// The elements with their axes in rising order.
fn from_value(value: &Arc<Value>, dims: &Dims) -> Array {
    let data = super::lower::elements(value);
    let order: Vec<_> = dims.iter().flatten().copied().collect();
    let vars = super::term::rising(order.iter().copied().collect());
    let sizes: Vec<usize> = dims
        .iter()
        .zip(value.shape().iter())
        .filter(|(v, _)| v.is_some())
        .map(|(_, &d)| d)
        .collect();
    let mut step = 1;
    let mut steps = vec![0; order.len()];
    for k in (0..order.len()).rev() {
        steps[k] = step;
        step *= sizes[k];
    }
    let place = |i: usize| {
        let mut rest = i;
        let mut at = 0;
        for v in vars.iter().rev() {
            let k = order.iter().position(|w| w == v).expect("the same axes");
            at += rest % sizes[k] * steps[k];
            rest /= sizes[k];
        }
        at
    };
    let data = (0..data.len()).map(|i| data[place(i)]).collect();
    Array { vars, data }
}
