//! A number that somebody wrote is no rounding of another, however small it is.

use super::*;

type Loss<'a> = &'a dyn Fn(&[Tensor]) -> Tensor;

/// The gradients of the plain and of the simplified program of a loss.
fn gradients(inputs: &[Tensor], loss: impl Fn(&[Tensor]) -> Tensor) -> [Vec<Vec<f64>>; 2] {
    let names = ["a", "b"];
    let (case, _) = Case::unchecked(&names[..inputs.len()], inputs, loss, &Simplify::new());
    [&case.raw, &case.simple.program].map(|program| {
        let out = program.run(&[]).unwrap();
        out[1..].iter().map(Tensor::to_f64_vec).collect()
    })
}

fn close(got: &[f64], want: &[f64], by: f64) -> bool {
    got.len() == want.len() && got.iter().zip(want).all(|(a, b)| (a - b).abs() <= by * b.abs())
}

/// `1 - p + 1e-7` is `1e-7` where p is 1, and no zero, in f32: a gradient of ten million.
#[test]
fn an_epsilon_beside_a_probability_stays_in_f32() {
    let p = Tensor::from([0.0f32, 0.25, 0.5, 1.0 - 1e-6, 1.0]);
    // By the formula, from numbers in f32 as the forward pass has them.
    let of = |p: f64, epsilon: f64| 1.0 / f64::from((1.0 - p) as f32 + epsilon as f32);
    for epsilon in [1e-7, 1e-6, 3e-7] {
        let want: Vec<f64> = p.to_f64_vec().iter().map(|p| of(*p, epsilon)).collect();
        let losses: [Loss<'_>; 3] = [
            &|x| -(1.0 - &x[0] + epsilon).log().sum_all(),
            &|x| -((1.0 + epsilon) - &x[0]).log().sum_all(),
            &|x| -((1.0 - &x[0] + epsilon).log() + 1.0).sum_all(),
        ];
        for loss in [losses[0], losses[2]] {
            let [plain, simple] = gradients(std::slice::from_ref(&p), loss);
            assert!(close(&plain[0], &want, 1e-6), "{:?} for {want:?}", plain[0]);
            assert!(close(&simple[0], &want, 1e-6), "{:?} for {want:?}", simple[0]);
        }
        let [plain, simple] = gradients(std::slice::from_ref(&p), losses[1]);
        assert!(close(&simple[0], &plain[0], 1e-6), "{:?} for {:?}", simple[0], plain[0]);
    }
}

/// The same of a sigmoid that is 1 in f32: its slope is zero, and not zero by zero.
#[test]
fn an_epsilon_keeps_a_saturated_sigmoid_finite() {
    let x = Tensor::from([-30.0f32, -1.0, 0.0, 3.0, 17.0, 40.0]);
    let [plain, simple] = gradients(&[x], |x| -(1.0 - x[0].sigmoid() + 1e-7).log().sum_all());
    assert!(simple[0].iter().all(|g| g.is_finite()), "{:?}", simple[0]);
    let apart = plain[0].iter().zip(&simple[0]).map(|(a, b)| (a - b).abs());
    assert!(apart.fold(0.0, f64::max) <= 1e-6, "{:?} for {:?}", simple[0], plain[0]);
}

/// A difference of `1 + 1e-8` and 1 is a gradient in f64, whatever else the program computes in
/// f32.
#[test]
fn a_small_difference_in_f64_stays_beside_values_in_f32() {
    let w = Tensor::from([0.5, -2.0, 3.0]);
    let x = Tensor::from([0.5f32, 1.5, -1.0]);
    // The number is rounded once to f64.
    let want = (1.0 + 1e-8) - 1.0;
    let losses: [Loss<'_>; 3] = [
        &|x| (&x[0] * (1.0 + 1e-8) - &x[0]).sum_all(),
        &|x| {
            let narrow = x[1].exp().sum_all().to_dtype(DType::F64);
            (&x[0] * (1.0 + 1e-8) - &x[0]).sum_all() + narrow
        },
        &|x| {
            let narrow = (&x[1] * 2.0 - &x[1]).to_dtype(DType::F64);
            (&x[0] * (1.0 + 1e-8) - &x[0]).sum_all() + narrow.square().sum_all()
        },
    ];
    for loss in losses {
        let [plain, simple] = gradients(&[w.clone(), x.clone()], loss);
        for got in [&plain[0], &simple[0]] {
            assert!(close(got, &[want; 3], 1e-12), "{got:?} for {want:?}");
        }
    }
}
