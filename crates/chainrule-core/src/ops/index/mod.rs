//! Ops that pick elements by index, and that put elements at indexed places of a new tensor.
//! Indices are i64 and count from 0; one outside is an error. Only `index`, `index_put` and `take`
//! count negative ones from the end. An element that is picked several times gets the sum of its
//! gradients, added up in the order of the indices; an index itself has no gradient.

pub(super) mod embedding;
pub(super) mod gather;
// The op `index` is one of the family of the same name.
#[allow(clippy::module_inception)]
pub(super) mod index;
pub(super) mod index_add;
pub(super) mod index_copy;
pub(super) mod index_put;
pub(super) mod index_select;
pub(super) mod masked_fill;
pub(super) mod masked_select;
pub(super) mod nonzero;
pub(super) mod one_hot;
pub(super) mod scatter;
pub(super) mod scatter_add;
pub(super) mod searchsorted;
pub(super) mod take;

include!(concat!(env!("OUT_DIR"), "/index.rs"));

mod place;
mod wrap;

pub(super) use gather::{GatherGrad, gathered_jvp, gathered_vjp};
pub(super) use index_select::IndexSelectGrad;
pub(super) use place::{accumulated, overwritten};

use std::fmt::Arguments;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::gather::first_outside;
use crate::tensor::Tensor;
use crate::tensor::value::Meta;

/// The error for indices that are no integers.
fn expect_indices(op: &'static str, indices: &Meta) -> Result<()> {
    if !indices.dtype.is_integer() {
        let why = "the indices must be i64; convert with to_dtype";
        return Err(Error::dtype(op, &[indices.dtype], why));
    }
    Ok(())
}

/// The error for an index outside `0..size`; `what` names the thing of that size.
fn expect_inside(
    op: &'static str,
    indices: &[i64],
    size: usize,
    what: Arguments<'_>,
) -> Result<()> {
    let Some(at) = first_outside(indices, size) else {
        return Ok(());
    };
    let range = match size {
        0 => "it is empty".to_string(),
        _ => format!("indices run from 0 to {}", size - 1),
    };
    let why =
        format!("index {} at position {at} is outside {what} of size {size}; {range}", indices[at]);
    Err(Error::argument(op, why))
}

/// The error for a mask that is not bool.
fn expect_mask(op: &'static str, mask: &Tensor) -> Result<()> {
    if mask.dtype() != DType::Bool {
        let why = "the mask must be bool; compare first, as in x.ne(0)";
        return Err(Error::dtype(op, &[mask.dtype()], why));
    }
    Ok(())
}

/// 1 for each place that no later one equals, else 0: what is left of a gradient when a repeated
/// index overwrites instead of adding.
fn last_of_each(places: &[usize]) -> Vec<f64> {
    let last: std::collections::HashMap<_, _> =
        places.iter().enumerate().map(|(k, &p)| (p, k)).collect();
    let is_last = |(k, p): (usize, &usize)| f64::from(last[p] == k);
    places.iter().enumerate().map(is_last).collect()
}
