//! Ops that users define under the names of the table's ops.

use super::verdict;
use crate::autograd::custom;
use crate::catalogue::GENERAL;
use crate::rng::Generator;
use crate::tensor::Tensor;
use chainrule_core::ops::table;
use chainrule_core::{DType, Result};

/// `tanh(a) * b` under a name, with its rule.
fn product(name: &str, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let op = custom(
        name,
        |x| x[0].try_tanh()?.try_mul(&x[1]),
        |at, g| {
            let [a, b] = at.inputs() else { unreachable!("there are two") };
            let y = a.try_tanh()?;
            let slope = 1.0 - y.try_square()?;
            Ok(vec![Some(g.try_mul(b)?.try_mul(&slope)?), Some(g.try_mul(&y)?)])
        },
    );
    op.apply(&[a, b])
}

/// The mistakes of a row belong to its own op alone: another one of the same name gets none of
/// them, and none of them panics on it.
#[test]
fn an_op_named_like_one_of_the_table_gets_none_of_its_mistakes() {
    let g = &mut Generator::manual_seed(3);
    let names: Vec<&str> = table().flat_map(|e| e.name.split(", ")).collect();
    assert!(names.len() >= 174, "{}", names.len());
    for name in names {
        let a = Tensor::randn([3, 3], DType::F64, g).parameter();
        let b = Tensor::randn([3, 3], DType::F64, g).parameter();
        let loss = || product(name, &a, &b).and_then(|y| y.try_sum_all()).unwrap();
        let right = crate::autograd::grad(&loss(), &[&a, &b]).unwrap();
        let right: Vec<Tensor> = right.into_iter().flatten().collect();
        let y = a.tanh().detach();
        // Wrong by a sign, by the slope of tanh, and by nothing that has a name.
        let forgotten = b.detach();
        let squared = &b.detach() * (1.0 - &y);
        for wrong in [-&right[0], forgotten, squared, Tensor::randn([3, 3], DType::F64, g)] {
            let found = verdict(&loss(), &[(&a, &wrong), (&b, &right[1])]).unwrap();
            for explanation in found.diagnoses() {
                let own = explanation.op() == name;
                let general = GENERAL.iter().any(|m| m.name == explanation.mistake());
                assert!(!own || general, "{name}: {}", explanation.mistake());
            }
            let _ = found.to_string();
        }
        let sign = verdict(&loss(), &[(&a, &-&right[0]), (&b, &right[1])]).unwrap();
        assert_eq!(sign.diagnoses()[0].mistake(), "sign", "{name}");
    }
}
