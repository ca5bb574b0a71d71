//! Gradients that outlast the run of a traced script.

use super::*;
use crate::optim::{Optimizer, Sgd};
use crate::tensor::no_grad;
use crate::{Graded, Remains, Script};

const SCRIPT: Script = Script { caller: || None, source: |_| None };

/// A run with the gradients from before, and what it leaves.
fn run(program: &Program, graded: &[Graded], x: &Tensor) -> Vec<Tensor> {
    for g in graded {
        if let (Some(entry), Some(before)) = (&g.entry, g.leaf.grad()) {
            entry.set(&before);
        }
    }
    let out = program.run(&[x]).unwrap();
    for g in graded {
        match g.after {
            Remains::Nothing => g.leaf.zero_grad(),
            Remains::Lost => g.leaf.lose_grad(),
            Remains::Result(i) => g.leaf.set_grad(Some(out[i].clone())).unwrap(),
        }
    }
    out
}

#[test]
fn gradients_from_before_are_added_to() {
    let w = Tensor::from([2.0f64, 3.0]).parameter();
    let x = Tensor::from([1.0f64, 10.0]);
    let f = |x: &[Tensor]| {
        (&w * &x[0]).sum_all().try_backward()?;
        Ok(vec![])
    };
    let trace = || Program::trace_graded(SCRIPT, [("x", &x)], f).unwrap();
    let (first, graded) = trace();
    assert!(w.grad().is_none(), "a trace changes nothing");
    assert_eq!((graded[0].had, graded[0].after), (Some(false), Remains::Result(0)));
    run(&first, &graded, &x);
    assert_eq!(w.grad().unwrap().to_vec::<f64>(), [1.0, 10.0]);

    let (second, graded) = trace();
    assert_eq!(w.grad().unwrap().to_vec::<f64>(), [1.0, 10.0], "a trace changes nothing");
    assert_eq!(graded[0].had, Some(true));
    for times in [2.0, 3.0] {
        run(&second, &graded, &x);
        assert_eq!(w.grad().unwrap().to_vec::<f64>(), [times, 10.0 * times]);
    }
}

#[test]
fn a_step_uses_its_gradients_up() {
    let w = Tensor::from([2.0f64]).parameter();
    let x = Tensor::from([1.0f64]);
    let mut sgd = Sgd::new(vec![w.clone()], 0.5);
    w.set_grad(Some(Tensor::from([100.0f64]))).unwrap();
    let (program, graded) = Program::trace_graded(SCRIPT, [("x", &x)], |x| {
        sgd.zero_grad();
        (&w * &x[0]).sum_all().try_backward()?;
        sgd.step()?;
        Ok(vec![])
    })
    .unwrap();
    assert_eq!((graded[0].had, graded[0].after), (None, Remains::Lost));
    run(&program, &graded, &x);
    assert!(w.has_lost_grad());
    assert_eq!(no_grad(|| w.item()), 1.5);
}

/// A network that another one is trained through, and whose own step used its gradients up.
#[test]
fn what_is_added_to_a_gradient_that_was_used_up_is_unknown() {
    let w = Tensor::from([2.0f64]).parameter();
    let v = Tensor::from([3.0f64]).parameter();
    let x = Tensor::from([1.0f64]);
    w.lose_grad();
    let f = |x: &[Tensor]| {
        (&w * &v * &x[0]).sum_all().try_backward()?;
        Ok(vec![])
    };
    let (program, graded) = Program::trace_graded(SCRIPT, [("x", &x)], f).unwrap();
    assert!(w.has_lost_grad(), "a trace changes nothing");
    let of = |t: &Tensor| graded.iter().find(|g| g.leaf.is_same(t)).unwrap();
    assert_eq!((of(&w).lost, of(&w).after), (true, Remains::Lost));
    assert_eq!((of(&v).lost, of(&v).after), (false, Remains::Result(0)));
    run(&program, &graded, &x);
    assert!(w.has_lost_grad() && v.grad().unwrap().item() == 2.0);
}
