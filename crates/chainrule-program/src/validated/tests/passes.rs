//! Passes that panic, and one that errs: the program runs without them.

use std::sync::Arc;

use super::*;
use crate::error::Result;
use crate::param::{Param, Parameters};
use crate::tensor::op::{Kernel, Op, Outcome, SeparateResult, WholeKernel};
use crate::tensor::reading::Reading;
use crate::tensor::run::apply;
use crate::tensor::value::{Meta, Value};

/// The pass that asks the op something which it cannot answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trap {
    None,
    Optimization,
    Simplification,
    Fusion,
}

/// A multiple, with parameters that do not tell which.
#[derive(Debug)]
struct Multiple {
    by: f64,
    trap: Trap,
}

impl Multiple {
    fn asked_by(&self, pass: Trap) {
        assert!(self.trap != pass, "the {pass:?} panics");
    }
}

impl Parameters for Multiple {
    fn parameters(&self) -> Param {
        self.asked_by(Trap::Optimization);
        Param::Word("multiple")
    }
}

impl Op for Multiple {
    fn name(&self) -> &'static str {
        "multiple"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(inputs[0])
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn reading(&self) -> Reading {
        self.asked_by(Trap::Simplification);
        Reading::Opaque
    }

    fn parts(&self) -> smallvec::SmallVec<[SeparateResult; 3]> {
        self.asked_by(Trap::Fusion);
        smallvec::SmallVec::new()
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl WholeKernel for Multiple {
    fn run(&self, inputs: &[Arc<Value>], meta: Meta) -> Result<Outcome> {
        let numbers = crate::algebra::elements(&inputs[0]);
        let made = Value::build::<f64>("multiple", meta.shape, |out| {
            out.iter_mut().zip(numbers).for_each(|(y, x)| *y = self.by * x);
        })?;
        Ok(made.into())
    }
}

/// A step whose forward pass has these multiples, as it is traced.
fn step_of(w: &Tensor, x: &Tensor, by: [f64; 2], trap: Trap) -> Program {
    let mut sgd = Sgd::new(vec![w.clone()], 0.1);
    Program::trace([("x", x)], |args| {
        sgd.zero_grad();
        let given = apply(Multiple { by: by[0], trap }, &[&args[0]])?;
        let target = apply(Multiple { by: by[1], trap }, &[&args[0]])?;
        let loss = w.try_mul(&given)?.try_sub(&target)?.try_tanh()?.try_square()?.try_sum_all()?;
        loss.try_backward()?;
        sgd.step()?;
        Ok(vec![loss])
    })
    .unwrap()
}

fn data() -> (Tensor, Tensor) {
    (Tensor::from([0.5, -1.0, 0.2]).parameter().named("w"), Tensor::from([0.3, 0.7, -0.4]))
}

/// The losses and parameters of three steps.
fn three_steps(mut run: impl FnMut(&Tensor) -> f64, w: &Tensor, x: &Tensor) -> Vec<f64> {
    let mut seen: Vec<f64> = (0..3).map(|_| run(x)).collect();
    seen.extend(w.to_f64_vec());
    seen
}

#[test]
fn a_pass_that_panics_loses_no_run() {
    let want = {
        let (w, x) = data();
        let plain = step_of(&w, &x, [2.0, 2.0], Trap::None);
        three_steps(|x| plain.run(&[x]).unwrap()[0].item(), &w, &x)
    };
    for (trap, words) in [
        (Trap::Optimization, "not optimized, since that failed: the Optimization panics"),
        (Trap::Simplification, "not simplified, since that failed: the Simplification panics"),
        (Trap::Fusion, "not fused, since that failed: the Fusion panics"),
    ] {
        for (simplification, fusion) in [(true, true), (true, false), (false, true), (false, false)]
        {
            let (w, x) = data();
            let mut validated =
                step_of(&w, &x, [2.0, 2.0], trap).validated(Passes { simplification, fusion });
            let got = three_steps(|x| validated.run(&[x]).unwrap()[0].item(), &w, &x);
            let close = got.iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-14 * b.abs());
            assert!(close, "{trap:?}: {got:?} for {want:?}");
            let warnings: Vec<String> =
                validated.warnings().iter().map(ToString::to_string).collect();
            let asks = match trap {
                Trap::Simplification => simplification,
                Trap::Fusion => fusion,
                _ => true,
            };
            let told = warnings.iter().any(|w| w.contains(words));
            assert_eq!(told, asks, "{trap:?}, {simplification} and {fusion}: {warnings:?}");
            assert!(!validated.program().is_empty());
        }
    }
}

/// The two multiples are one to the pass that merges what is computed twice: the trace says that
/// they are not, and runs without that pass.
#[test]
fn a_pass_that_should_change_no_bit_is_compared_too() {
    let want = {
        let (w, x) = data();
        let plain = step_of(&w, &x, [2.0, 3.0], Trap::None);
        three_steps(|x| plain.run(&[x]).unwrap()[0].item(), &w, &x)
    };
    let (w, x) = data();
    let traced = step_of(&w, &x, [2.0, 3.0], Trap::None);
    assert!(traced.optimized().len() < traced.without_dead_code().len());
    let mut validated = traced.validated(crate::Passes::default());
    let got = three_steps(|x| validated.run(&[x]).unwrap()[0].item(), &w, &x);
    assert_eq!(got, want);
    assert_eq!(validated.program().len(), traced.without_dead_code().len());
    assert!(validated.warnings()[0].to_string().contains("the plain program runs"));
}

/// `Compiled` goes on with what is left, and says so.
#[test]
fn compiled_functions_survive_a_panic() {
    let x = Tensor::from([0.3, 0.7]);
    let trap = Trap::Simplification;
    let mut f = crate::Compiled::new(["x"], |args| {
        let y = apply(Multiple { by: 2.0, trap }, &[&args[0]])?;
        Ok(vec![y.try_exp()?.try_sum_all()?])
    });
    let want = 0.6f64.exp() + 1.4f64.exp();
    assert!((f.run(&[&x]).unwrap()[0].item() - want).abs() < 1e-14);
    assert!((f.run(&[&x]).unwrap()[0].item() - want).abs() < 1e-14);
    assert_eq!(f.warnings().len(), 1);
}
