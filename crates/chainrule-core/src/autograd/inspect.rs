//! Looking at what was recorded: the intermediates behind a result, and the first value that is not
//! finite.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::chart::{Chart, known_values};
use super::walk::{Observer, reachable};
use crate::dtype::DType;
use crate::error::raise;
use crate::ops::OpId;
use crate::tensor::node::{Node, Source, lock};
use crate::tensor::place::Place;
use crate::tensor::run::{Values, replay};
use crate::tensor::value::Value;
use crate::tensor::{Tensor, log, widen};

/// The first op of a computation whose result, or whose part of a gradient, is not finite. Its
/// `Display` is one line.
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
    /// Whether it is the op's part of a gradient, while all values are finite.
    pub in_backward: bool,
    /// The input that caused it, by position, and its value, where they are known.
    pub input: Option<(usize, f64)>,
    /// The name of that input, if it has one.
    pub input_name: Option<String>,
    /// Whether no earlier op whose result the tape lacks can have caused it.
    pub is_first: bool,
}

impl fmt::Display for NonFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.in_backward {
            write!(f, "the gradient of ")?;
        }
        write!(f, "`{}`", self.op)?;
        if let Some(name) = &self.name {
            write!(f, " (`{name}`)")?;
        }
        if let Some(at) = &self.location {
            write!(f, " at {at}")?;
        }
        write!(f, " gave {}", self.value)?;
        if let Some((i, x)) = self.input {
            match &self.input_name {
                Some(name) => write!(f, ", where input {i}, `{name}`, is {x}")?,
                None => write!(f, ", where input {i} is {x}")?,
            }
        }
        if self.from_parameter {
            write!(f, " from a parameter that was not finite")?;
        }
        if !self.is_first {
            write!(f, "; an op before it may have, whose result was not kept: use record_all")?;
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

    /// The first op behind this tensor whose result is not finite, if this tensor is not finite; if
    /// it is, the first op whose part of the gradient is not. `None` if there is neither, or the
    /// graph was freed. An infinity that a constant puts in, as a mask does before a softmax, is
    /// named where nothing else is found.
    ///
    /// Results that the tape does not have are computed again from the inputs that it has, so that
    /// nothing has to be recorded beforehand; inside [`record_all`](crate::record_all) it has all.
    /// The backward pass changes no gradient, and calls hooks.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let w = Tensor::from([0.0f32, 4.0]).parameter();
    /// let loss = (w.log() * 2.0).exp().sum_all();
    /// let first = (loss * 2.0 - w.log().sum_all()).first_non_finite().unwrap();
    /// assert_eq!((first.op, first.input), ("log", Some((0, 0.0))));
    ///
    /// // The value is finite, and 0 times the infinite slope of the root at 0 is not.
    /// let loss = (w.sqrt() * Tensor::from([0.0f32, 1.0])).sum_all();
    /// let first = loss.first_non_finite().unwrap();
    /// assert!(first.in_backward && first.op == "sqrt" && first.input == Some((0, 0.0)));
    /// ```
    pub fn first_non_finite(&self) -> Option<NonFinite> {
        let nodes = reachable([self.source()].into_iter(), 0);
        let mut known = known_values(&nodes, self);
        let in_forward = first_result(&nodes, &mut known);
        let has_gradient = self.requires_grad() && self.numel() == 1;
        if !has_gradient || non_finite(&self.value()).is_some() {
            return in_forward;
        }
        // Infinities that a mask puts in and a softmax removes do no harm.
        let mut search = Search { is_good: true, found: None };
        match Chart::of(self).walk("first_non_finite", self, &mut search) {
            Ok(_) => first_part(search.found?, &known),
            Err(_) => in_forward,
        }
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

/// The first op whose result is not finite. An infinity that the program put in as a constant is
/// named where there is nothing else.
fn first_result(nodes: &[Arc<Node>], known: &mut HashMap<u64, Arc<Value>>) -> Option<NonFinite> {
    let (mut is_first, mut put_in) = (true, None);
    for node in nodes {
        let inputs = inputs(node, known);
        let Some(value) = known.get(&node.number).cloned().or_else(|| again(node, &inputs)) else {
            is_first = false;
            continue;
        };
        known.insert(node.number, value.clone());
        let Some((at, x)) = non_finite(&value) else { continue };
        // An infinity that was put in is passed on as it is.
        let has_infinity = |v: &Arc<Value>| non_finite(v).is_some();
        if put_in.is_some() && !has_nan(&value) && inputs.iter().flatten().any(has_infinity) {
            continue;
        }
        let found = || NonFinite::of(node, x, false, culprit(&inputs, &value, at)).after(is_first);
        if !is_put_in(node, &inputs, &value) {
            return Some(found());
        }
        put_in.get_or_insert_with(found);
    }
    put_in
}

/// The result of an op of the tape, computed once more, if all inputs are known.
fn again(node: &Node, inputs: &[Option<Arc<Value>>]) -> Option<Arc<Value>> {
    let all: Values = inputs.iter().cloned().collect::<Option<_>>()?;
    replay(&*node.op, &all).ok().filter(|value| value.meta == node.meta)
}

/// Ops that move and add numbers.
const MOVING: [OpId; 4] = [OpId::where_, OpId::add, OpId::sub, OpId::cat];

/// Numbers up to this share of the largest one have a finite sum.
const SMALL: f64 = 0.25;

/// Whether the infinities of a result come from a constant, such as a mask that is added before a
/// softmax: the op computes none from the inputs that the tape knows.
fn is_put_in(node: &Node, inputs: &[Option<Arc<Value>>], result: &Value) -> bool {
    let most = match result.dtype() {
        DType::F64 => f64::MAX,
        DType::F16 => 65504.0,
        _ => f64::from(f32::MAX),
    };
    let is_small = |value: &Value| {
        numbers(value).is_none_or(|all| all.into_iter().all(|x| x.abs() < SMALL * most))
    };
    let tracked = node.inputs.iter().zip(inputs).filter(|(source, _)| source.requires_grad());
    node.op.id().is_some_and(|id| MOVING.contains(&id))
        && tracked.clone().count() < node.inputs.len()
        && tracked.into_iter().all(|(_, value)| value.as_ref().is_some_and(|v| is_small(v)))
        && !has_nan(result)
}

/// The op of the backward pass that gave the part which is not finite.
fn first_part(
    (node, i, part): (Arc<Node>, usize, Arc<Value>),
    known: &HashMap<u64, Arc<Value>>,
) -> Option<NonFinite> {
    let (at, x) = non_finite(&part)?;
    let inputs = inputs(&node, known);
    let own = inputs.get(i).and_then(Option::as_ref).and_then(|input| element(input, &part, at));
    let input = own.map(|x| (i, x)).or_else(|| culprit(&inputs, &part, at));
    Some(NonFinite::of(&node, x, true, input))
}

impl NonFinite {
    fn of(
        node: &Arc<Node>,
        value: f64,
        in_backward: bool,
        input: Option<(usize, f64)>,
    ) -> NonFinite {
        let bad = |input: &Source| matches!(input, Source::Leaf(leaf) if non_finite(&leaf.value()).is_some());
        NonFinite {
            op: node.op.name(),
            name: Source::Node(node.clone()).shown_name(),
            location: node.place(),
            value,
            from_parameter: !in_backward && node.inputs.iter().any(bad),
            in_backward,
            input,
            input_name: input.and_then(|(i, _)| node.inputs.get(i)?.shown_name()),
            is_first: true,
        }
    }

    /// Whether no earlier op can have caused it.
    fn after(self, is_first: bool) -> NonFinite {
        NonFinite { is_first, ..self }
    }
}

/// Searches for the first op that passes on something not finite though everything it received was
/// finite.
struct Search {
    is_good: bool,
    found: Option<(Arc<Node>, usize, Arc<Value>)>,
}

impl Observer for Search {
    fn arrive(&mut self, _: &Source, gradient: &Tensor) {
        self.is_good = non_finite(&gradient.value()).is_none();
    }

    fn pass(&mut self, node: &Arc<Node>, i: usize, part: &Tensor) {
        if self.is_good && self.found.is_none() && non_finite(&part.value()).is_some() {
            self.found = Some((node.clone(), i, part.value()));
        }
    }
}

/// The values of a node's inputs: as saved, as the leaves hold them, or as known by number.
fn inputs(node: &Node, known: &HashMap<u64, Arc<Value>>) -> Vec<Option<Arc<Value>>> {
    let saved = lock(&node.saved);
    let value = |(i, source): (usize, &Source)| match saved.inputs.get(i) {
        Some(Some(value)) => Some(value.clone()),
        _ => match source {
            Source::Leaf(leaf) => Some(leaf.value()),
            other => known.get(&other.number()).filter(|_| other.number() != 0).cloned(),
        },
    };
    node.inputs.iter().enumerate().map(value).collect()
}

/// The input responsible for that element: one that is not finite there or anywhere, or the number
/// it is computed from where each result uses one number of each input. If inputs are finite and
/// summed over, the one with the largest number is blamed, since it causes an overflow.
fn culprit(inputs: &[Option<Arc<Value>>], result: &Value, at: usize) -> Option<(usize, f64)> {
    let known = || inputs.iter().enumerate().filter_map(|(i, v)| Some((i, v.as_ref()?)));
    let floats = || known().filter(|(_, v)| v.dtype().is_float());
    let here = || floats().filter_map(|(i, v)| Some((i, element(v, result, at)?)));
    let bad = here().find(|(_, x)| !x.is_finite());
    if bad.is_some() {
        return bad;
    }
    if here().count() == floats().count() {
        return here().rfind(|(_, x)| *x == 0.0).or_else(|| here().next());
    }
    if let Some(bad) = floats().find_map(|(i, v)| Some((i, non_finite(v)?.1))) {
        return Some(bad);
    }
    let each = floats().filter_map(|(i, v)| Some((i, numbers(v)?)));
    let each = each.flat_map(|(i, all)| all.into_iter().map(move |x| (i, x)));
    each.max_by(|(_, x), (_, y)| x.abs().total_cmp(&y.abs()))
}

/// The element of an input of the result's shape, or of one element.
fn element(input: &Value, result: &Value, at: usize) -> Option<f64> {
    let at = match input.numel() {
        1 => 0,
        _ if input.shape() == result.shape() => at,
        _ => return None,
    };
    numbers(input)?.get(at).copied()
}

/// The elements of a value with a fraction.
fn numbers(value: &Value) -> Option<Vec<f64>> {
    match value.dtype() {
        DType::F32 => {
            let mut all = vec![0.0f32; value.numel()];
            value.copy_to(&mut all);
            Some(all.into_iter().map(f64::from).collect())
        }
        DType::F64 => {
            let mut all = vec![0.0f64; value.numel()];
            value.copy_to(&mut all);
            Some(all)
        }
        DType::F16 | DType::BF16 => {
            let wide = widen::cast(value, DType::F32).unwrap_or_else(|e| raise(e));
            numbers(&wide)
        }
        _ => None,
    }
}

/// Whether an element is NaN.
pub(super) fn has_nan(value: &Value) -> bool {
    numbers(value).is_some_and(|all| all.into_iter().any(f64::is_nan))
}

/// The first element that is NaN or infinite, and its place.
fn non_finite(value: &Value) -> Option<(usize, f64)> {
    numbers(value)?.into_iter().enumerate().find(|(_, x)| !x.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{no_grad, record_all};

    #[test]
    fn results_that_were_not_kept_are_computed_again() {
        let w = Tensor::from([1.0f64, 0.0, 2.0]).parameter();
        // The tape keeps no result of these.
        let of = || ((&w + &w) - (&w * 3.0)).neg().log().mul(Tensor::scalar(0.5)).sum_all();
        let (plain, recorded) =
            (of().first_non_finite().unwrap(), record_all(of).first_non_finite());
        let recorded = recorded.unwrap();
        assert_eq!((plain.op, plain.value, plain.in_backward), ("log", f64::NEG_INFINITY, false));
        assert_eq!((recorded.op, recorded.value, recorded.is_first), ("log", plain.value, true));
        assert_eq!(plain.input, Some((0, 0.0)));
        assert!(plain.location.unwrap().file().ends_with("inspect.rs"));
    }

    #[test]
    fn a_gradient_that_is_not_finite_has_its_op_and_input() {
        // Each value is finite; the slope of the root at 0 is infinite, and 0 times it is NaN.
        let x = Tensor::from([0.0f64, 4.0]).parameter();
        let masked = x.sqrt().mul(Tensor::from([0.0f64, 1.0])).sum_all();
        let found = masked.first_non_finite().unwrap();
        assert!(found.in_backward && found.value.is_nan());
        assert_eq!((found.op, found.input), ("sqrt", Some((0, 0.0))));
        // An infinity is found, too, and no gradient was left behind.
        let found = x.sqrt().sum_all().first_non_finite().unwrap();
        assert_eq!((found.op, found.value), ("sqrt", f64::INFINITY));
        assert!(x.grad().is_none());
        assert!(x.square().sum_all().first_non_finite().is_none());
    }

    #[test]
    fn an_input_of_a_sum_is_found_by_its_numbers() {
        let w = Tensor::from([[1.0f64, f64::INFINITY], [2.0, 3.0]]).parameter();
        let x = Tensor::from([[1.0f64, 1.0]]);
        let found = |w: &Tensor| {
            let one = Tensor::scalar(0.5f64);
            (x.matmul(w) * one).sum_all().first_non_finite().unwrap()
        };
        let seen = found(&w.named("w"));
        assert_eq!((seen.op, seen.input), ("matmul", Some((1, f64::INFINITY))));
        assert!(seen.to_string().contains("where input 1, `w`, is inf"), "{seen}");
        // The largest number makes a sum of finite ones too large.
        let large = Tensor::from([[1.0f64, 2.0], [1.7e308, 1.7e308]]).parameter();
        let seen = (large.sum_all() * 1.0).first_non_finite().unwrap();
        assert_eq!((seen.op, seen.input), ("sum", Some((0, 1.7e308))));
    }

    #[test]
    fn a_mask_of_infinities_is_not_what_went_wrong() {
        let x = Tensor::from([[0.5f64, 1.0], [2.0, 3.0]]).parameter();
        let masked = |mask: [[bool; 2]; 2]| {
            x.masked_fill(&Tensor::from(mask), f64::NEG_INFINITY).softmax(-1)
        };
        let shares = || masked([[false, true], [false, false]]);
        let weights = Tensor::from([1.0f64, 2.0]);
        // Values and gradients are finite.
        assert!((shares() * &weights).sum_all().first_non_finite().is_none());
        // The logarithm of the share 0 is not, and neither is a row that is masked as a whole.
        let found = (shares() * shares().log()).sum_all().first_non_finite().unwrap();
        assert_eq!((found.op, found.input), ("log", Some((0, 0.0))));
        let all = masked([[true, true], [false, false]]);
        let found = (all * &weights).sum_all().first_non_finite().unwrap();
        assert_eq!((found.op, found.input), ("softmax", Some((0, f64::NEG_INFINITY))));
        // The mask is named if nothing else is wrong, where the tape has what it gave.
        let filled = x.masked_fill(&x.gt(2.0), f64::INFINITY);
        let found = filled.square().sum_all().first_non_finite().unwrap();
        assert_eq!((found.op, found.value), ("where", f64::INFINITY));
        // A branch that is not taken: the value is finite, and its slope is not.
        let zero = Tensor::from([0.0f64, 4.0]).parameter();
        let found = zero.gt(1.0).where_(&zero.log(), &zero).sum_all().first_non_finite().unwrap();
        assert_eq!((found.op, found.in_backward, found.input), ("log", true, Some((0, 0.0))));
    }

    #[test]
    fn a_parameter_that_is_bad_is_told() {
        let w = Tensor::from([f64::NAN, 1.0]).parameter();
        let found = (&w * 2.0).sum_all().first_non_finite().unwrap();
        assert!(found.from_parameter && found.op == "mul");
        assert!(no_grad(|| (&w * 2.0).sum_all()).first_non_finite().is_none());
    }
}
