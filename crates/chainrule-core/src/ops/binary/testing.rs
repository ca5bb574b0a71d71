//! Helpers of the tests of the files beside this one.

use crate::{DType, Tensor, autograd};

/// Dividends and divisors of either sign, zeros, infinities, NaN, and quotients next to a whole
/// number, for the ops that divide.
#[rustfmt::skip]
pub(super) const QUOTIENTS: [[f64; 28]; 2] = {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    [
        [
            5.0, -5.0, 5.0, -5.0, 6.0, -6.0, 6.0, 0.0, -0.0, 0.0, 1.0, -1.0, 0.0, 1.0, -1.0, 1.0, -1.0, inf, -inf,
            inf, nan, 1.0, 1.0, -1.0, 0.3, 0.0, -0.0, 1.0,
        ],
        [
            3.0, 3.0, -3.0, -3.0, 3.0, 3.0, -3.0, 3.0, 3.0, -3.0, 0.0, 0.0, 0.0, inf, inf, -inf, -inf, 2.0, 2.0,
            inf, 1.0, nan, 0.1, 0.1, 0.1, inf, inf, -0.0,
        ],
    ]
};

fn assert_close(what: &str, at: [&[f64]; 2], got: &Tensor, want: &[f64], tolerance: f64) {
    let got = got.to_f64_vec();
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (&got, &want)) in got.iter().zip(want).enumerate() {
        let equal = got == want || (got.is_nan() && want.is_nan());
        let close = (got - want).abs() <= tolerance * want.abs();
        let (a, b) = (at[0][i], at[1][i]);
        assert!(equal || close, "{what} at {a}, {b}: {got}, not {want}");
    }
}

/// Checks values and, for an upstream gradient of 3, both gradients at the points `at`, in f64 and
/// f32; forward mode must give the same for a tangent of 3 of either operand.
pub(super) fn check_edges(
    f: fn(&Tensor, &Tensor) -> Tensor,
    at: [&[f64]; 2],
    values: &[f64],
    gradients: [&[f64]; 2],
) {
    for (dtype, tolerance) in [(DType::F64, 1e-15), (DType::F32, 5e-7)] {
        let leaves = at.map(|x| Tensor::from(x.to_vec()).to_dtype(dtype).parameter());
        let y = f(&leaves[0], &leaves[1]);
        let three = Tensor::full([values.len()], 3.0, dtype);
        assert_close("value", at, &y, values, tolerance);
        y.backward_with().gradient(&three).run().unwrap();
        for i in 0..2 {
            let gradient = leaves[i].grad().unwrap();
            assert_close(["da", "db"][i], at, &gradient, gradients[i], tolerance);
            // The other operand is a constant here, so that its zero tangent does not meet an
            // infinity.
            let other = leaves[1 - i].detach();
            let call = |x: &[Tensor]| match i {
                0 => f(&x[0], &other),
                _ => f(&other, &x[0]),
            };
            let tangents = [three.clone()];
            let (_, tangent) = autograd::jvp(call, &[leaves[i].detach()], &tangents).unwrap();
            let what = ["tangent of a", "tangent of b"][i];
            assert_close(what, at, &tangent, gradients[i], tolerance);
        }
    }
}
