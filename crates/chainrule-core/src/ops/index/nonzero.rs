//! `nonzero`: where a tensor is not zero. The number of places depends on the elements, so that it
//! is no op of the tape.

use crate::ops::prelude::*;

/// The places, counted in row-major order, at which the elements are not zero (NaN is not).
pub(super) fn places(x: &Tensor) -> Result<Vec<i64>> {
    fn find<T: Stored>(x: &[T]) -> Vec<i64> {
        let zero = T::default();
        let count = x.iter().filter(|&&x| x != zero).count();
        // One place more, so that each is written before it is known to count.
        let mut out = vec![0; count + 1];
        let mut n = 0;
        for (i, &x) in x.iter().enumerate() {
            out[n] = i as i64;
            n += (x != zero) as usize;
        }
        out.truncate(count);
        out
    }
    x.catch_up()?;
    log::check_read("nonzero", &x.value_ref())?;
    let value = x.widened()?.value().contiguous()?;
    Ok(match array(&value) {
        Array::F32(x) => find(x),
        Array::F64(x) => find(x),
        Array::I64(x) => find(x),
        Array::Bool(x) => find(x),
    })
}

/// For each axis of `shape` the positions of these places.
pub(super) fn positions(places: &[i64], shape: &Shape) -> Vec<Vec<i64>> {
    let mut rest = places.to_vec();
    let mut out: Vec<Vec<i64>> = Vec::new();
    // From the last axis on; the first takes what is left without a division.
    for &d in shape.iter().skip(1).rev() {
        let d = d as i64;
        out.push(rest.iter_mut().map(|p| std::mem::replace(p, *p / d) % d).collect());
    }
    if shape.rank() > 0 {
        out.push(rest);
    }
    out.reverse();
    out
}

methods! {
    /// The indices of all elements that are not zero, in row-major order: i64 of shape
    /// `[count, rank]`, a row for each. NaN is not zero. Any dtype. There is no gradient.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[0.0f32, 5.0], [7.0, 0.0]]);
    /// assert_eq!(x.nonzero().to_vec::<i64>(), [0, 1, 1, 0]);
    /// ```
    pub fn nonzero / try_nonzero(&self) -> Tensor {
        let places = places(self)?;
        let columns = positions(&places, &self.shape());
        let shape = Shape::new(&[places.len(), columns.len()]);
        let mut value = Value::uninit("nonzero", Meta::new(shape, DType::I64))?;
        for (a, column) in columns.iter().enumerate() {
            let cells = value.elements_mut::<i64>().iter_mut().skip(a).step_by(columns.len());
            cells.zip(column).for_each(|(cell, &i)| *cell = i);
        }
        Ok(Tensor::constant(value))
    }

    /// The same, with a tensor for each axis, to be used in [`Tensor::index`]. PyTorch's and
    /// NumPy's `where` with one argument.
    ///
    /// ```
    /// use chainrule::{Tensor, ix};
    /// let x = Tensor::from([[0.0f32, 5.0], [7.0, 0.0]]);
    /// let at = x.nonzero_axes();
    /// assert_eq!(x.index(ix![&at[0], &at[1]]).to_vec::<f32>(), [5.0, 7.0]);
    /// ```
    pub fn nonzero_axes / try_nonzero_axes(&self) -> Vec<Tensor> {
        Ok(positions(&places(self)?, &self.shape()).into_iter().map(Tensor::from).collect())
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "nonzero",
    family: Family::Index,
    signature: "x.nonzero(), x.nonzero_axes()",
    python: &[Binding::by_hand("nonzero", "one result, or a tuple of them")],
    formula: "the indices of the elements that are not 0, in row-major order",
    gradient: "",
    at_kinks: "NaN is not 0; no gradient flows from an index",
    samples: |_| Vec::new(),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_as_in_pytorch() {
        let one = Tensor::scalar(1.0f32).nonzero();
        assert_eq!(one.shape(), [1, 0]);
        assert_eq!(Tensor::scalar(0.0f32).nonzero().shape(), [0, 0]);
        assert_eq!(Tensor::zeros([2, 0, 3]).nonzero().shape(), [0, 3]);
        let x = Tensor::from([0.0f32, f32::NAN, -0.0, f32::INFINITY, 1e-45]);
        assert_eq!(x.nonzero().to_vec::<i64>(), [1, 3, 4]);
        assert!(Tensor::scalar(true).nonzero_axes().is_empty());
    }

    #[test]
    fn positions_by_axis() {
        let x = Tensor::arange(0, 24).reshape([2, 3, 4]);
        let odd = x.index_select(2, &Tensor::from([0i64, 3])).t().gt(10);
        let at = odd.nonzero_axes();
        assert_eq!(at.len(), 3);
        for (k, row) in odd.nonzero().to_vec::<i64>().chunks(3).enumerate() {
            let place: Vec<usize> = row.iter().map(|&i| i as usize).collect();
            assert!(odd.at::<bool>(&place));
            assert_eq!(at.iter().map(|a| a.at::<i64>(&[k])).collect::<Vec<_>>(), row);
        }
        let count = odd.to_vec::<bool>().iter().filter(|b| **b).count();
        assert_eq!(odd.nonzero().shape(), [count, 3]);
    }
}
