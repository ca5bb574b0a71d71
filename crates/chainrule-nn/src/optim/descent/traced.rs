//! A step inside a trace: the update of each parameter is an instruction.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::super::no_gradients;
use super::super::rule::{AnyRule, At, Updated};
use super::updates::{Rate, Updates};
use crate::dtype::{DType, Stored};
use crate::error::{Error, Result};
use crate::kernels::optim::Slices;
use crate::param::{Param, Parameters};
use crate::shape::Shape;
use crate::tensor::node::Source;
use crate::tensor::op::{Kernel, LEARNING_RATE, Op, Outcome, UpdateKernel, WholeKernel};
use crate::tensor::run::apply_extra;
use crate::tensor::value::{Meta, Value};
use crate::tensor::{Tensor, log, work};

impl Updates {
    pub(super) fn step_in_trace(&mut self) -> Result<()> {
        let _cause = log::enter(log::Cause::Update);
        let mut stepped = false;
        for (i, (p, state)) in self.parameters.iter().zip(&mut self.states).enumerate() {
            let Some(g) = p.grad() else { continue };
            let settings = &self.groups[self.group_of[i]];
            let slots = settings.rule.slots();
            state.prepare(&slots, p.meta())?;
            state.name(&p.name().unwrap_or_else(|| format!("p{i}")), &slots);
            let lasting = [&self.lr, &state.step].into_iter().chain(&state.slots);
            lasting.clone().for_each(log::lasting);
            let inputs: Vec<&Tensor> = [p, &g].into_iter().chain(lasting).collect();
            let update = Update { rule: settings.rule.clone(), rate: settings.rate(self.base_lr) };
            let (new, extra) = apply_extra(update, &inputs)?;
            p.try_set(&new)?;
            for (leaf, value) in std::iter::once(&state.step).chain(&state.slots).zip(extra) {
                leaf.try_set(&Tensor::from_parts(value, Source::None))?;
            }
            stepped = true;
        }
        if stepped { Ok(()) } else { Err(no_gradients(self.name)) }
    }
}

/// Update of one parameter. Inputs: the parameter, its gradient, the learning rate, the update
/// count, and the arrays of [`Rule::slots`]. Outputs: the new parameter, update count and arrays.
struct Update {
    rule: Arc<dyn AnyRule>,
    rate: Rate,
}

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.parameters(), f)
    }
}

impl Parameters for Update {
    /// Options of the rule, and the ratio of a group's learning rate to the base.
    fn parameters(&self) -> Param {
        let mut fields = self.rule.parameters().fields().to_vec();
        if let Rate { own: Some(own), base } = self.rate {
            fields.push(("scale", (own / base).parameters()));
        }
        Param::Struct("Update", fields)
    }
}

impl Op for Update {
    fn name(&self) -> &'static str {
        self.rule.name()
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(self.rule.numpy().into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(self.rule.steps(), inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let [p, g, lr, step, slots @ ..] = inputs else {
            let why = "an update takes a parameter, its gradient, the learning rate and the step";
            return Err(Error::argument(self.rule.name(), why));
        };
        let scalar = |meta: &Meta, dtype| meta.shape.rank() == 0 && meta.dtype == dtype;
        let fits = p.dtype.is_float()
            && p == g
            && slots.iter().all(|s| s == p)
            && slots.len() == self.rule.slots().len()
            && scalar(lr, DType::F64)
            && scalar(step, DType::I64);
        if !fits {
            let why = "the gradient and the arrays of an update must be like the parameter, the learning rate an f64, the step an i64";
            return Err(Error::argument(self.rule.name(), why));
        }
        Ok(*p)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }

    fn replaces(&self, output: usize) -> Option<usize> {
        Some(if output == 0 { 0 } else { LEARNING_RATE + output })
    }
}

impl WholeKernel for Update {
    fn run(&self, inputs: &[Arc<Value>], _: Meta) -> Result<Outcome> {
        let [p, g, lr, rest @ ..] = inputs else { unreachable!("infer counted them") };
        let mut values: SmallVec<[Arc<Value>; 8]> = [p].into_iter().chain(rest).cloned().collect();
        let mut kept: SmallVec<[&mut Arc<Value>; 8]> = values.iter_mut().collect();
        self.update(&mut kept, g, lr)?;
        drop(kept);
        let mut results = values.into_iter();
        let value = results.next().expect("the parameter");
        Ok(Outcome { value, extra: results.collect() })
    }

    fn update_kernel(&self) -> Option<&dyn UpdateKernel> {
        Some(self)
    }
}

impl UpdateKernel for Update {
    fn update(&self, kept: &mut [&mut Arc<Value>], gradient: &Value, lr: &Value) -> Result<()> {
        match gradient.dtype() {
            DType::F32 => self.update_as::<f32>(kept, gradient, lr),
            DType::F64 => self.update_as::<f64>(kept, gradient, lr),
            _ => unreachable!("infer admits floats"),
        }
    }

    fn descends(&self) -> bool {
        self.rule.is_plain()
    }

    fn descend(
        &self,
        kept: &mut [&mut Arc<Value>],
        add: &mut dyn FnMut(f64, &mut Value) -> Result<()>,
        lr: &Value,
    ) -> Result<()> {
        let [p, step] = kept else { unreachable!("a plain rule keeps no arrays") };
        let rate = self.rate.of(lr.first());
        make_own(p)?;
        let step = own::<i64>(step)?;
        add(-rate, Arc::get_mut(p).expect("nobody else holds it"))?;
        step[0] += 1;
        Ok(())
    }
}

/// Copies the elements if they are shared.
fn make_own(value: &mut Arc<Value>) -> Result<()> {
    if !Value::is_unique(value) {
        *value = value.copied()?.share();
    }
    Ok(())
}

/// Mutable elements; of a copy if they are shared.
fn own<T: Stored>(value: &mut Arc<Value>) -> Result<&mut [T]> {
    make_own(value)?;
    Ok(Value::unique(value).expect("it was made so"))
}

impl Update {
    fn update_as<T: Updated>(
        &self,
        kept: &mut [&mut Arc<Value>],
        g: &Value,
        lr: &Value,
    ) -> Result<()> {
        let [p, step, slots @ ..] = kept else { unreachable!("infer counted them") };
        let step = own::<i64>(step)?;
        let at = At { lr: self.rate.of(lr.first()), step: (step[0] + 1) as u64, shape: *p.shape() };
        let g = g.row_major()?;
        let g = g.slice::<T>().expect("made contiguous");
        let mut slices: Slices<'_, T> = slots.iter_mut().map(|s| own(s)).collect::<Result<_>>()?;
        T::update(&*self.rule, at, own(p)?, g, &mut slices)?;
        step[0] += 1;
        Ok(())
    }
}
