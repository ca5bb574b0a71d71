//! `to_dtype`: the same numbers in another dtype.

use crate::kernels::map;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct ToDType {
    pub dtype: DType,
}

impl Op for ToDType {
    row!(to_dtype);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0}.astype({dtype})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Cast
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
        Ok(smallvec![Some(cotangent.try_to_dtype(at.input_meta(0).dtype)?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        tangents[0].as_ref().expect("the only tangent").try_to_dtype(self.dtype)
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
            // A program of f32 that is run again in f64, to measure its rounding.
            (Input::F64(x), Output::F64(o)) => map::unary(x.data, o, |x| x),
            _ => unreachable!("a conversion to the same dtype is no op"),
        }
    }
}

methods! {
    /// The same numbers in another dtype. To an integer the fraction is cut off (NaN gives 0, what
    /// is too large the nearest integer there is); to bool, every number but 0 is true. To its own
    /// dtype it is the tensor itself.
    ///
    /// Gradient, between floats: `dx = g` in the dtype of `x`. None flows through an integer or a
    /// bool.
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
    python: &[Binding::by_hand("to", "it takes devices, dtypes and tensors").no_function()],
    formula: "x in another dtype",
    gradient: "dx = g in the dtype of x",
    at_kinks: "rounding counts as the identity: the gradient passes through",
    // By way of f32 the digits would be lost that the checks look at, so here it is the identity;
    // the tests below look at the gradient.
    samples: |g| unary_samples(g, |g, s| normal(g, s), |x| x.try_to_dtype(DType::F64)),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor, autograd};

    #[test]
    fn the_gradient_comes_back_in_the_dtype_of_the_input() {
        // 1/3 has other digits in f32 and f64: the gradient of 3 x^2 shows where it was rounded.
        let x = Tensor::from([1.0f32 / 3.0, -2.5]).parameter();
        let wide = x.to_dtype(DType::F64);
        (&wide * &wide * 3.0).sum_all().backward();
        let want = [(6.0 * (1.0f32 / 3.0) as f64) as f32, -15.0];
        assert_eq!(x.grad().unwrap().to_vec::<f32>(), want);

        let x = Tensor::from([1.0f64 / 3.0, -2.5]).parameter();
        let narrow = x.to_dtype(DType::F32);
        (&narrow * &narrow * 3.0).sum_all().backward();
        let third = 1.0f32 / 3.0;
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [(third * 3.0 + third * 3.0) as f64, -15.0]);
    }

    #[test]
    fn tangents_take_the_dtype_of_the_result() {
        let (x, t) = (Tensor::from([0.5f32]), Tensor::from([0.1f32]));
        let (_, dy) = autograd::jvp(|x| x[0].to_dtype(DType::F64) * 2.0, &[x], &[t]).unwrap();
        assert_eq!(dy.to_vec::<f64>(), [2.0 * 0.1f32 as f64]);
    }

    #[test]
    fn numbers_that_do_not_fit_are_brought_to_what_does() {
        let x = Tensor::from([f64::NAN, 1e30, -1e30, -0.9, 0.0, -0.0]);
        let whole = x.to_dtype(DType::I64);
        assert_eq!(whole.to_vec::<i64>(), [0, i64::MAX, i64::MIN, 0, 0, 0]);
        let bools = x.to_dtype(DType::Bool).to_vec::<bool>();
        assert_eq!(bools, [true, true, true, true, false, false]);
        assert_eq!(x.to_dtype(DType::F32).to_vec::<f32>()[1], 1e30);
        let back = Tensor::from([true, false]).to_dtype(DType::F64);
        assert_eq!(back.to_vec::<f64>(), [1.0, 0.0]);
    }

    #[test]
    fn nothing_flows_through_integers() {
        let x = Tensor::from([1.5f32]).parameter();
        assert!(!x.to_dtype(DType::I64).to_dtype(DType::F32).requires_grad());
        assert!(x.to_dtype(DType::F32).is_same(&x));
    }
}
