//! Products that begin a group, and updates that are added to a parameter as they are computed.

use super::*;
use crate::kernels::threads::with_num_threads;
use crate::optim::clip_grad_norm;

const SIZES: [(usize, usize, usize); 9] = [
    (1, 1, 1),
    (1, 5, 9),
    (7, 3, 1),
    (8, 16, 48),
    (17, 129, 33),
    (33, 7, 49),
    (128, 65, 127),
    (700, 31, 200),
    (3, 300, 1700),
];

fn inputs(m: usize, k: usize, n: usize, dtype: DType) -> [Tensor; 4] {
    let g = &mut Generator::manual_seed((m * 31 + k * 7 + n) as u64);
    let mut randn = |shape: [usize; 2]| Tensor::randn(shape, dtype, g);
    [randn([m, k]), randn([k, n]), randn([1, n]).reshape([n as i64]), randn([m, n])]
}

type Chain = fn(&[Tensor]) -> chainrule_core::Result<Vec<Tensor>>;

/// Ops after a product: with a row or without, one op or several, with the product wanted elsewhere
/// too, in another shape.
const CHAINS: [(&str, Chain); 9] = [
    ("row", |a| Ok(vec![a[0].matmul(&a[1]) + &a[2]])),
    ("row and relu", |a| Ok(vec![(a[0].matmul(&a[1]) + &a[2]).relu()])),
    ("row from the left, tanh", |a| Ok(vec![(&a[2] + a[0].matmul(&a[1])).tanh() * 0.5])),
    ("residual", |a| Ok(vec![&a[3] + a[0].matmul(&a[1]) * 2.0])),
    ("mask", |a| Ok(vec![a[0].matmul(&a[1]) * a[3].gt(0.0).to_dtype(a[3].dtype())])),
    ("product wanted too", |a| {
        let y = a[0].matmul(&a[1]);
        Ok(vec![(&y + &a[2]).exp(), y.sum(0, false), y])
    }),
    ("twice", |a| {
        let y = a[0].matmul(&a[1]) + &a[2];
        Ok(vec![&y * y.sigmoid(), y.square() - &a[3]])
    }),
    ("another shape", |a| {
        let y = a[0].matmul(&a[1]).reshape([-1]);
        Ok(vec![y.tanh() + a[3].flatten(0, -1), y.sign()])
    }),
    ("truth values", |a| Ok(vec![a[0].matmul(&a[1]).gt(0.0)])),
];

#[test]
fn chains_behind_a_product_are_right_at_odd_sizes() {
    for (m, k, n) in SIZES {
        let x = inputs(m, k, n, DType::F64);
        let arguments = [&x[0], &x[1], &x[2], &x[3]];
        for (name, chain) in CHAINS {
            let named = ["a", "b", "row", "other"].into_iter().zip(arguments);
            let fused = Program::trace(named, chain).unwrap().optimized().fused();
            let want = chain(&x).unwrap();
            for _ in 0..2 {
                let got = fused.run(&arguments).unwrap();
                assert_eq!(distance(&got, &want, 1e-12), None, "{name}, {m} {k} {n}\n{fused}");
            }
            let run = |threads| with_num_threads(threads, || fused.run(&arguments).unwrap());
            assert_eq!(difference(&run(3), &run(1)), None, "{name}, {m} {k} {n}");
        }
    }
}

#[test]
fn a_product_and_what_follows_are_one_group() {
    // A large product lies where the result will be, which is handed out; a small one has memory of
    // its own.
    for (m, n, planned) in [(256, 80, 0), (8, 6, 8 * 6 * size_of::<f32>())] {
        let x = inputs(m, 5, n, DType::F32);
        let named = [("a", &x[0]), ("b", &x[1]), ("row", &x[2]), ("other", &x[3])];
        let program = Program::trace(named, CHAINS[1].1).unwrap().optimized().fused();
        let text = program.to_string();
        assert!(text.contains("  fused\n    matmul = a @ b"), "{text}");
        assert_eq!(program.memory().planned, planned, "{text}");
    }
}

/// Further use of the product in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ProductUse {
    Plain,
    /// Gradients are made smaller before the update.
    Clipped,
    /// A gradient is a result too.
    Returned,
    /// A weight is multiplied by itself, and each layer's gradient is computed from the other's
    /// weight.
    Shared,
}

/// Losses and weights after some steps of a small net in f64, eager or fused, and the bytes that a
/// fused run plans.
fn trained(
    optimizer: super::training::Make,
    case: ProductUse,
    fused: bool,
) -> (Vec<Tensor>, usize) {
    let g = &mut Generator::manual_seed(7);
    let mut weight = |shape: &[usize]| (Tensor::randn(shape, DType::F64, g) * 0.2).parameter();
    let weights = [weight(&[40, 33]), weight(&[40]), weight(&[40, 40]), weight(&[40, 9])];
    let (x, y) = (Tensor::randn([5, 33], DType::F64, g), Tensor::randint(0, 9, [5], g));
    let mut optimizer = optimizer(weights.to_vec());
    let mut step = |b: &[Tensor]| {
        let [w1, b1, w2, w3] = &weights;
        let h = b[0].linear(w1, Some(b1)).relu();
        let h = match case {
            ProductUse::Shared => h.matmul(w2).matmul(w2),
            _ => h.matmul(w2).tanh(),
        };
        let loss = h.matmul(w3).try_cross_entropy(&b[1])?;
        optimizer.zero_grad();
        loss.try_backward()?;
        if case == ProductUse::Clipped {
            clip_grad_norm(&weights, 0.1, 2.0)?;
        }
        let grad = w2.grad().expect("it has one");
        optimizer.step()?;
        Ok(if case == ProductUse::Returned { vec![loss, grad] } else { vec![loss] })
    };
    let (mut results, mut planned) = (Vec::new(), 0);
    if fused {
        let program = Program::trace([("x", &x), ("y", &y)], &mut step).unwrap();
        let program = program.optimized().fused();
        planned = program.memory().planned;
        (0..5).for_each(|_| results.extend(program.run(&[&x, &y]).unwrap()));
    } else {
        let batch = [x, y];
        (0..5).for_each(|_| results.extend(step(&batch).unwrap()));
    }
    results.extend(weights.iter().map(Tensor::detach));
    (results, planned)
}

#[test]
fn updates_by_a_product_are_those_of_the_eager_mode() {
    for (i, optimizer) in super::training::optimizers().into_iter().enumerate() {
        for case in
            [ProductUse::Plain, ProductUse::Clipped, ProductUse::Returned, ProductUse::Shared]
        {
            let (want, _) = trained(optimizer, case, false);
            let (got, _) = trained(optimizer, case, true);
            assert_eq!(distance(&got, &want, 1e-12), None, "optimizer {i}, {case:?}");
        }
    }
}

#[test]
fn gradients_that_are_added_as_they_are_computed_take_no_memory() {
    let gradients = 8 * (40 * 33 + 40 * 40 + 40 * 9);
    let [sgd, with_momentum, ..] = super::training::optimizers()[..] else { panic!() };
    let (_, planned) = trained(sgd, ProductUse::Plain, true);
    assert!(planned < gradients, "{planned}");
    let (_, planned) = trained(with_momentum, ProductUse::Plain, true);
    assert!(planned > gradients, "{planned}");
}

/// A row that was expanded to all rows is no row of numbers in memory.
#[test]
fn an_expanded_row_is_added_by_a_later_op() {
    let x = inputs(4, 3, 5, DType::F64);
    let expanded = |a: &[Tensor]| {
        let row = a[2].expand([4, 5]);
        Ok(vec![(a[0].matmul(&a[1]) + row).tanh()])
    };
    let named = [("a", &x[0]), ("b", &x[1]), ("row", &x[2])];
    let program = Program::trace(named, expanded).unwrap();
    let given = [&x[0], &x[1], &x[2]];
    let (plain, fused) = (program.run(&given).unwrap(), program.fused().run(&given).unwrap());
    assert!(fused[0].try_sub(&plain[0]).unwrap().abs().max_all().item() < 1e-14);
}
