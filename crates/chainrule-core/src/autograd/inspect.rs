//! Looking at what was recorded: the intermediates behind a result, and the first value that is not
//! finite.

use std::fmt;

use super::walk::reachable;
use crate::dtype::DType;
use crate::error::raise;
use crate::tensor::node::{Source, lock};
use crate::tensor::place::Place;
use crate::tensor::value::Value;
use crate::tensor::{Tensor, log, widen};

/// The first op of a computation whose result is not finite. Its `Display` is one line.
#[derive(Clone, Debug)]
pub struct NonFinite {
    /// The op's name.
    pub op: &'static str,
    /// The name of its result, if it has one.
    pub name: Option<String>,
    /// The line that called it, if it is known.
    pub location: Option<Place>,
    /// The value found: NaN or an infinity.
    pub value: f64,
    /// Whether a parameter among its inputs was not finite already.
    pub from_parameter: bool,
}

impl fmt::Display for NonFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.op)?;
        if let Some(name) = &self.name {
            write!(f, " (`{name}`)")?;
        }
        if let Some(at) = &self.location {
            write!(f, " at {at}")?;
        }
        write!(f, " gave {}", self.value)?;
        if self.from_parameter {
            write!(f, " from a parameter that was not finite")?;
        }
        Ok(())
    }
}

impl Tensor {
    /// The intermediates behind this tensor, itself included, in the order in which they were
    /// computed: those that keep their values, which are the ones computed inside
    /// [`record_all`](crate::record_all).
    ///
    /// ```
    /// use chainrule::{Tensor, record_all};
    /// let w = Tensor::from([1.0f32]).parameter();
    /// let loss = record_all(|| (&w * 2.0).named("h").tanh().sum_all());
    /// let ops: Vec<_> = loss.recorded().iter().map(|t| t.op_name().unwrap()).collect();
    /// assert_eq!(ops, ["mul", "tanh", "sum"]);
    /// ```
    pub fn recorded(&self) -> Vec<Tensor> {
        let nodes = reachable([self.source()].into_iter(), 0);
        let kept = nodes.into_iter().filter_map(|node| {
            let value = lock(&node.notes).as_ref()?.value.clone()?;
            Some(Tensor::from_parts(value, Source::Node(node)))
        });
        kept.collect()
    }

    /// The first op behind this tensor whose result is not finite, if there is one. Looks at what
    /// was computed inside [`record_all`](crate::record_all).
    ///
    /// ```
    /// use chainrule::{Tensor, record_all};
    /// let w = Tensor::from([0.0f32]).parameter();
    /// let loss = record_all(|| (w.log() * 2.0).exp().sum_all());
    /// assert_eq!(loss.first_non_finite().unwrap().op, "log");
    /// ```
    pub fn first_non_finite(&self) -> Option<NonFinite> {
        self.recorded().iter().find_map(|t| {
            let value = non_finite(&t.value())?;
            let Source::Node(node) = t.source() else { return None };
            let bad = |input: &Source| matches!(input, Source::Leaf(leaf) if non_finite(&leaf.value()).is_some());
            Some(NonFinite {
                op: node.op.name(),
                name: t.name(),
                location: node.place(),
                value,
                from_parameter: node.inputs.iter().any(bad),
            })
        })
    }

    /// Whether every element is finite; integers and bools are.
    #[track_caller]
    pub fn is_finite(&self) -> bool {
        let value = self.value_ref();
        if let Err(e) = log::check_read("is_finite", &value) {
            raise(e)
        }
        non_finite(&value).is_none()
    }
}

/// The first element that is NaN or infinite.
fn non_finite(value: &Value) -> Option<f64> {
    match value.dtype() {
        DType::F32 => {
            let mut all = vec![0.0f32; value.numel()];
            value.copy_to(&mut all);
            all.into_iter().find(|x| !x.is_finite()).map(f64::from)
        }
        DType::F64 => {
            let mut all = vec![0.0f64; value.numel()];
            value.copy_to(&mut all);
            all.into_iter().find(|x| !x.is_finite())
        }
        DType::F16 | DType::BF16 => {
            let wide = widen::cast(value, DType::F32).unwrap_or_else(|e| raise(e));
            non_finite(&wide)
        }
        _ => None,
    }
}
