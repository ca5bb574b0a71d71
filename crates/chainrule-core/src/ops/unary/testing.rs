//! Helpers of the tests of the files beside this one.

use crate::{DType, Tensor, autograd};

/// Equal, with NaN equal to NaN, to within the rounding of the dtype.
fn assert_close(what: &str, at: &[f64], got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for ((&x, &got), &want) in at.iter().zip(got).zip(want) {
        let equal = got == want || (got.is_nan() && want.is_nan());
        let close = (got - want).abs() <= tolerance * want.abs();
        assert!(equal || close, "{what} at {x}: {got}, not {want}");
    }
}

/// Checks values and, for an upstream gradient of 3, gradients at the points `x`, in f64 and f32;
/// forward mode must give the same.
pub(super) fn check_edges(f: fn(&Tensor) -> Tensor, x: &[f64], values: &[f64], gradients: &[f64]) {
    for (dtype, tolerance) in [(DType::F64, 1e-15), (DType::F32, 5e-7)] {
        let leaf = Tensor::from(x.to_vec()).to_dtype(dtype).parameter();
        let y = f(&leaf);
        let three = Tensor::full([x.len()], 3.0, dtype);
        assert_close("value", x, &y.to_f64_vec(), values, tolerance);
        y.backward_with().gradient(&three).run().unwrap();
        let gradient = leaf.grad().unwrap().to_f64_vec();
        assert_close("gradient", x, &gradient, gradients, tolerance);
        let (_, tangent) = autograd::jvp(|x| f(&x[0]), &[leaf.detach()], &[three]).unwrap();
        assert_close("tangent", x, &tangent.to_f64_vec(), gradients, tolerance);
    }
}
