//! The recurrence that scans and their gradients share, which is no op of the table.

use chainrule_core::Shape;
use chainrule_core::ops::Recurrence;
use chainrule_core::tensor::run::apply;

use super::probe;
use crate::autograd::{jvp, vjp};
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::{dot_product, richardson};

/// Reverse against forward mode, and forward mode against differences, for the recurrence and for
/// its gradient.
#[test]
fn both_modes_and_both_orders_agree() {
    let mut g = Generator::manual_seed(1);
    let normal = |g: &mut Generator| probe(Shape::new(&[3, 4]), chainrule_core::DType::F64, g);
    for (axis, reverse, lagged) in
        [(0, false, false), (0, true, true), (1, true, false), (1, false, true)]
    {
        let run = |x: &[Tensor]| apply(Recurrence { axis, reverse, lagged }, &[&x[0], &x[1]]);
        let x = [normal(&mut g), normal(&mut g)];
        let v = normal(&mut g);
        let gradient = |x: &[Tensor]| {
            let (_, grads) = vjp(|x| run(x).unwrap(), x, &v).unwrap();
            grads[0].try_mul(&grads[1]).unwrap()
        };
        for order in [1, 2] {
            let f = |x: &[Tensor]| if order == 1 { run(x).unwrap() } else { gradient(x) };
            let test = dot_product(f, &x, &mut g).unwrap();
            assert!(test.error() < 1e-12, "{axis} {reverse} {lagged} {order}");
            let u = [normal(&mut g), normal(&mut g)];
            let (_, tangent) = jvp(f, &x, &u).unwrap();
            let found = richardson(|x| f(x).sum_all(), &x, &u).unwrap();
            let apart = (found.value.item() - tangent.sum_all().item()).abs();
            assert!(apart < 1e-8, "{axis} {reverse} {lagged} {order}: {apart}");
        }
    }
}
