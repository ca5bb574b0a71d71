//! `to_dtype`: the same numbers in another dtype.

use crate::kernels::map;
use crate::ops::prelude::*;

#[derive(Debug)]
pub(crate) struct ToDType {
    dtype: DType,
}

impl Op for ToDType {
    fn name(&self) -> &'static str {
        "to_dtype"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(inputs[0].shape, self.dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(
            cotangent.try_to_dtype(at.input_meta(0).dtype)?
        )])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        tangents[0]
            .as_ref()
            .expect("the only tangent")
            .try_to_dtype(self.dtype)
    }
}

impl MapKernel for ToDType {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        match (inputs[0], out) {
            (Input::F32(x), Output::F64(o)) => map::unary(x.data, o, |x| x as f64),
            (Input::F32(x), Output::I64(o)) => map::unary(x.data, o, |x| x as i64),
            (Input::F32(x), Output::Bool(o)) => map::unary(x.data, o, |x| (x != 0.0) as u8),
            (Input::F64(x), Output::F32(o)) => map::unary(x.data, o, |x| x as f32),
            (Input::F64(x), Output::I64(o)) => map::unary(x.data, o, |x| x as i64),
            (Input::F64(x), Output::Bool(o)) => map::unary(x.data, o, |x| (x != 0.0) as u8),
            (Input::I64(x), Output::F32(o)) => map::unary(x.data, o, |x| x as f32),
            (Input::I64(x), Output::F64(o)) => map::unary(x.data, o, |x| x as f64),
            (Input::I64(x), Output::Bool(o)) => map::unary(x.data, o, |x| (x != 0) as u8),
            (Input::Bool(x), Output::F32(o)) => map::unary(x.data, o, |x| x as f32),
            (Input::Bool(x), Output::F64(o)) => map::unary(x.data, o, |x| x as f64),
            (Input::Bool(x), Output::I64(o)) => map::unary(x.data, o, |x| x as i64),
            _ => unreachable!("a conversion to the same dtype is no op"),
        }
    }
}

methods! {
    /// The same numbers in another dtype. To an integer the fraction is cut off (NaN gives 0, what is too large the nearest
    /// integer there is); to bool, every number but 0 is true. To its own dtype it is the tensor itself.
    ///
    /// Gradient, between floats: `dx = g` in the dtype of `x`.
    ///
    /// ```
    /// use chainrule::{DType, Tensor};
    /// assert_eq!(Tensor::from([1.7f32, -1.7]).to_dtype(DType::I64).to_vec::<i64>(), [1, -1]);
    /// ```
    pub fn to_dtype / try_to_dtype(&self, dtype: DType) -> Tensor {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        apply(ToDType { dtype }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "to_dtype",
    family: Family::Unary,
    signature: "x.to_dtype(DType::F64)",
    formula: "x in another dtype",
    gradient: "dx = g in the dtype of x",
    at_kinks: "",
    // To f32 and back would cost the digits that the checks look at: integers of an f32 are exact in both.
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_to_dtype(DType::F64)),
    mistakes: &[],
};
