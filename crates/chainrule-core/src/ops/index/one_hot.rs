//! `one_hot`: a class number as a row with a 1 in its place; no gradient flows to a class number.

use super::{expect_indices, expect_inside};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct OneHot {
    classes: usize,
}

impl Op for OneHot {
    row!(one_hot);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.equal({0}[..., None], np.arange({classes})).astype(np.int64)".into())
    }

    fn picks_below(&self, input: usize, _: &[Shape]) -> Option<usize> {
        (input == 0).then_some(self.classes)
    }

    fn reading(&self) -> Reading {
        Reading::OneHot
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let indices = inputs[0];
        expect_indices(self.name(), &indices)?;
        let rank = indices.shape.rank();
        let shape = indices.shape.with_axis(self.name(), rank, self.classes)?;
        Ok(Meta::new(shape, DType::I64))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl WholeKernel for OneHot {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let indices = inputs[0].contiguous()?;
        let indices: &[i64] = indices.slice().expect("made contiguous");
        expect_inside(self.name(), indices, self.classes, format_args!("the set of classes"))?;
        let mut value = Value::uninit(self.name(), out)?;
        let rows: &mut [i64] = value.elements_mut();
        rows.fill(0);
        for (row, &i) in indices.iter().enumerate() {
            rows[row * self.classes + i as usize] = 1;
        }
        Ok(value.into())
    }
}

methods! {
    /// For each class number in `0..classes` a row of that many elements, 1 at the class and 0
    /// elsewhere: shape `[.., classes]`, i64.
    ///
    /// The numbers are i64; one outside the classes is an error. For a product with floats convert
    /// with [`Tensor::to_dtype`]. There is no gradient.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([2i64, 0]).one_hot(3);
    /// assert_eq!(y.to_vec::<i64>(), [0, 0, 1, 1, 0, 0]);
    /// ```
    pub fn one_hot / try_one_hot(&self, classes: usize) -> Tensor {
        apply(OneHot { classes }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "one_hot",
    family: Family::Index,
    signature: "indices.one_hot(classes)",
    python: &[Binding::by_hand("one_hot", "without a number of classes the elements say it")
        .no_method()
        .no_function()],
    formula: "y[.., j] = 1 if j = indices[..], else 0",
    gradient: "",
    at_kinks: "no gradient flows to a class number",
    samples: |_| Vec::new(),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_errors() {
        let one = Tensor::scalar(1i64).one_hot(2);
        assert_eq!((one.shape().dims(), one.to_vec::<i64>()), (&[2][..], vec![0, 1]));
        let none = Tensor::from(Vec::<i64>::new()).one_hot(4);
        assert_eq!(none.shape(), [0, 4]);
        let error = Tensor::from([0i64, 3]).try_one_hot(3).unwrap_err();
        assert_eq!(
            error.kind().to_string(),
            "one_hot: index 3 at position 1 is outside the set of classes of size 3; indices run from 0 to 2"
        );
        assert!(Tensor::from([0.0f32]).try_one_hot(2).is_err());
        assert!(Tensor::from([0i64]).try_one_hot(0).is_err());
    }
}
