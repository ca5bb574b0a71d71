//! The algebra stage against the eager mode.

mod compositions;
mod far;
mod formulas;
mod short;
mod stable;
mod terms;
mod wide;
mod written;

use super::*;
use chainrule_core::{DType, Generator, Tensor};

#[test]
fn unknown_rules_are_an_error_that_lists_them() {
    let x = Tensor::from([1.0f64]);
    let program = Program::trace([("x", &x)], |x| Ok(vec![x[0].exp()])).unwrap();
    let error = program.simplify_with(&Simplify::new().without("magic")).unwrap_err().to_string();
    assert!(error.contains("`magic`") && error.contains("merge powers"), "{error}");
}

/// The largest difference of any result, relative to its norm; what is not finite must be the same.
fn difference(got: &[Tensor], want: &[Tensor]) -> f64 {
    assert_eq!(got.len(), want.len());
    let mut worst: f64 = 0.0;
    for (a, b) in got.iter().zip(want) {
        assert_eq!(a.meta(), b.meta());
        let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
        let mut apart = 0.0;
        let mut norm = 0.0;
        for (x, y) in a.iter().zip(&b) {
            if y.is_finite() && x.is_finite() {
                apart += (x - y) * (x - y);
                norm += y * y;
            } else if x != y && !(x.is_nan() && y.is_nan()) {
                return f64::INFINITY;
            }
        }
        worst = worst.max(apart.sqrt() / norm.sqrt().max(1e-3));
    }
    worst
}

/// Traces the loss and its gradients, and says what came of it.
struct Case {
    raw: Program,
    simple: Simplified,
}

impl Case {
    /// `inputs` are the arguments; gradients flow to those of floats.
    fn new(names: &[&str], inputs: &[Tensor], loss: impl Fn(&[Tensor]) -> Tensor) -> Case {
        Case::with(names, inputs, loss, &Simplify::new())
    }

    fn with(
        names: &[&str],
        inputs: &[Tensor],
        loss: impl Fn(&[Tensor]) -> Tensor,
        how: &Simplify,
    ) -> Case {
        let (case, arguments) = Case::unchecked(names, inputs, loss, how);
        let arguments: Vec<&Tensor> = arguments.iter().collect();
        let want = case.raw.run(&arguments).unwrap();
        let got = case.simple.program.run(&arguments).unwrap();
        let apart = difference(&got, &want);
        let limit = if inputs.iter().any(|x| x.dtype() == DType::F32) { 1e-5 } else { 1e-12 };
        assert!(apart < limit, "apart by {apart}\n{}\n{}", case.raw, case.simple.program);
        case
    }

    /// Without a comparison of the results: for inputs whose gradients the eager mode knows to a
    /// few digits only.
    fn loose(names: &[&str], inputs: &[Tensor], loss: impl Fn(&[Tensor]) -> Tensor) -> Case {
        Case::unchecked(names, inputs, loss, &Simplify::new()).0
    }

    /// The programs, and the arguments that they take.
    fn unchecked(
        names: &[&str],
        inputs: &[Tensor],
        loss: impl Fn(&[Tensor]) -> Tensor,
        how: &Simplify,
    ) -> (Case, Vec<Tensor>) {
        let own: Vec<Tensor> = inputs
            .iter()
            .zip(names)
            .map(|(x, n)| if x.dtype().is_float() { x.parameter().named(n) } else { x.clone() })
            .collect();
        let given: Vec<(&str, &Tensor)> =
            names.iter().copied().zip(&own).filter(|(_, x)| !x.dtype().is_float()).collect();
        let raw = Program::trace(given.clone(), |args| {
            let mut args = args.iter();
            let all: Vec<Tensor> = own
                .iter()
                .map(
                    |x| if x.dtype().is_float() { x.clone() } else { args.next().unwrap().clone() },
                )
                .collect();
            let loss = loss(&all).named("loss");
            loss.backward();
            let gradients = own.iter().filter(|x| x.dtype().is_float());
            let gradients = gradients.map(|x| x.grad().unwrap_or_else(|| x.zeros_like()));
            Ok([loss].into_iter().chain(gradients).collect())
        })
        .unwrap()
        .optimized();
        let simple = raw.simplify_with(how).unwrap();
        if std::env::var("SHOW").is_ok() {
            println!("{raw}\n{}", simple.program);
            for s in &simple.steps {
                println!(
                    "{:<20} {:<10} {}  ->  {}  [{}]",
                    s.rule, s.at, s.before, s.after, s.saved
                );
            }
        }
        let arguments = given.iter().map(|(_, x)| (*x).clone()).collect();
        (Case { raw, simple }, arguments)
    }

    /// The ops of the backward pass that are no views, with those of the whole size counted apart.
    fn backward(&self, full: usize) -> (usize, Vec<String>) {
        let lines = self.simple.program.lines().filter(|l| l.phase() == crate::Phase::Backward);
        let views = ["reshape", "expand", "permute"];
        let mut big = 0;
        let mut ops = Vec::new();
        for line in lines.filter(|l| !views.contains(&l.op())) {
            big += (line.shape().numel() >= full && line.op() != "gather_grad") as usize;
            ops.push(format!("{} = {}({})", line.name(), line.op(), line.inputs().join(", ")));
        }
        (big, ops)
    }

    #[track_caller]
    fn at_most(&self, full: usize, count: usize) -> Vec<String> {
        let (big, ops) = self.backward(full);
        assert!(big <= count, "{big} large ops\n{}\n{}", self.raw, self.simple.program);
        ops
    }
}

fn normal(shape: &[usize], g: &mut Generator) -> Tensor {
    Tensor::randn(shape, DType::F64, g)
}
