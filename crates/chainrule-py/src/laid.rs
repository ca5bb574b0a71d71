//! The layout of the results of elementwise ops, which is PyTorch's: they lie in memory as their
//! operands do.
//!
//! Random numbers drawn for a result, and a `view` of it, show the order. Kernels write row-major
//! results; an op on transposed operands is therefore computed on operands that are transposed
//! back, and its result is transposed again.

use chainrule::ops::binding::{Argument, Arguments};
use chainrule::ops::{Family, OpId};
use chainrule::{Result, Shape, Tensor};
use chainrule_core::tensor::node::Source;
use smallvec::SmallVec;

/// A number for each axis.
type PerAxis = SmallVec<[i64; 8]>;

/// The axes of a result from the outermost in memory to the innermost, and the way back.
pub struct Order {
    axes: PerAxis,
    back: PerAxis,
}

impl Order {
    /// The order in which an elementwise op on these has its result; none for the usual one.
    #[inline]
    pub fn of(operands: &[&Tensor]) -> Option<Order> {
        match operands.iter().all(|t| t.rank() < 2 || t.other_strides().is_none()) {
            true => None,
            false => Order::of_strides(operands),
        }
    }

    #[inline(never)]
    fn of_strides(operands: &[&Tensor]) -> Option<Order> {
        let rank = operands.iter().map(|t| t.rank()).max()?;
        let sizes: PerAxis = (0..rank)
            .map(|axis| {
                let size = |t: &&Tensor| match (axis + t.rank()).checked_sub(rank) {
                    Some(own) => t.shape()[own] as i64,
                    None => 1,
                };
                operands.iter().map(size).find(|&n| n != 1).unwrap_or(1)
            })
            .collect();
        let strides: SmallVec<[PerAxis; 3]> =
            operands.iter().map(|t| strides_in(t, &sizes)).collect();
        // From the innermost axis on.
        let mut axes: PerAxis = (0..rank as i64).rev().collect();
        for i in 1..rank {
            let mut at = i;
            for before in (0..i).rev() {
                match swaps(&strides, &sizes, axes[before] as usize, axes[at] as usize) {
                    Some(true) => {
                        axes.swap(before, at);
                        at = before;
                    }
                    Some(false) => break,
                    None => {}
                }
            }
        }
        axes.reverse();
        if axes.iter().enumerate().all(|(i, &axis)| i as i64 == axis) {
            return None;
        }
        let mut back: PerAxis = axes.clone();
        for (i, &axis) in axes.iter().enumerate() {
            back[axis as usize] = i as i64;
        }
        Some(Order { axes, back })
    }

    /// An operand with its axes in this order.
    pub fn put(&self, t: &Tensor) -> Result<Tensor> {
        let missing = self.axes.len() - t.rank();
        if missing == 0 {
            return t.try_permute(&self.axes[..]);
        }
        let mut sizes: SmallVec<[usize; 8]> = SmallVec::from_elem(1, missing);
        sizes.extend(t.shape().iter().copied());
        t.try_reshape(Shape::new(&sizes))?.try_permute(&self.axes[..])
    }

    /// A result with its axes as they were; one number for all elements stays.
    pub fn back(&self, t: &Tensor) -> Result<Tensor> {
        match t.rank() == self.back.len() {
            true => t.try_permute(&self.back[..]),
            false => Ok(t.clone()),
        }
    }
}

/// Ops whose kernels give a layout that suits them, where PyTorch's results are row-major.
const OTHERWISE: &[OpId] = &[OpId::attention, OpId::batch_norm, OpId::log_softmax, OpId::softmax];

/// Whether the elements lie in memory as PyTorch has them, as far as the tape tells: the tensor is
/// no view of the result of an op that lays it otherwise.
pub fn is_known(t: &Tensor) -> bool {
    let mut source = t.source();
    while let Source::Node(node) = source {
        let Some(id) = node.op.id() else { return false };
        match node.inputs.first() {
            Some(input) if id.entry().family == Family::Shape => source = input,
            _ => return !OTHERWISE.contains(&id),
        }
    }
    true
}

/// The strides of an operand along the axes of the result, 0 where it is broadcast.
fn strides_in(t: &Tensor, sizes: &[i64]) -> PerAxis {
    let (shape, value) = (t.shape(), t.value());
    let own = match value.layout().strides {
        own if own.iter().all(|&s| s >= 0) && is_known(t) => own,
        _ => shape.contiguous_strides(),
    };
    let missing = sizes.len() - shape.rank();
    let along = |(axis, &size): (usize, &i64)| match axis.checked_sub(missing) {
        Some(at) if shape[at] != 1 || size == 1 => own[at] as i64,
        _ => 0,
    };
    sizes.iter().enumerate().map(along).collect()
}

/// Whether an inner axis and an outer one have to change places, as the first operand says that
/// tells them apart.
fn swaps(strides: &[PerAxis], sizes: &[i64], inner: usize, outer: usize) -> Option<bool> {
    for own in strides {
        let (a, b) = (own[inner], own[outer]);
        if a == 0 || b == 0 {
            continue;
        }
        if a != b {
            return Some(a > b);
        }
        if sizes[inner] > sizes[outer] {
            return Some(true);
        }
    }
    None
}

/// An elementwise op of one operand.
#[inline]
pub fn of_one(t: &Tensor, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    match Order::of(&[t]) {
        None => f(t),
        Some(order) => order.back(&f(&order.put(t)?)?),
    }
}

/// An elementwise op of two operands.
#[inline]
pub fn of_two(
    a: &Tensor,
    b: &Tensor,
    f: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    match Order::of(&[a, b]) {
        None => f(a, b),
        Some(order) => order.back(&f(&order.put(a)?, &order.put(b)?)?),
    }
}

/// An elementwise op of several operands.
pub fn of_all(operands: &[&Tensor], f: impl FnOnce(&[Tensor]) -> Result<Tensor>) -> Result<Tensor> {
    let as_they_are = || operands.iter().map(|&t| t.clone()).collect::<SmallVec<[Tensor; 3]>>();
    match Order::of(operands) {
        None => f(&as_they_are()),
        Some(order) => {
            let put = operands.iter().map(|t| order.put(t));
            order.back(&f(&put.collect::<Result<SmallVec<[Tensor; 3]>>>()?)?)
        }
    }
}

/// An elementwise op of a tensor and of those among its arguments.
pub fn of_call(
    own: &Tensor,
    arguments: &Arguments<'_>,
    call: fn(&Tensor, &Arguments<'_>) -> Result<Tensor>,
) -> Result<Tensor> {
    let tensor = |value: &Argument| match value {
        Argument::Tensor(t) => Some(t.clone()),
        _ => None,
    };
    let others: SmallVec<[Tensor; 2]> = arguments.values.iter().filter_map(tensor).collect();
    let operands: SmallVec<[&Tensor; 3]> = std::iter::once(own).chain(&others).collect();
    let Some(order) = Order::of(&operands) else { return call(own, arguments) };
    let put = |value: &Argument| match value {
        Argument::Tensor(t) => order.put(t).map(Argument::Tensor),
        value => Ok(value.clone()),
    };
    let values = arguments.values.iter().map(put).collect::<Result<Vec<_>>>()?;
    let arguments = Arguments { values: &values, ..*arguments };
    order.back(&call(&order.put(own)?, &arguments)?)
}
