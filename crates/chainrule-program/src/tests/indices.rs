use chainrule_core::{DType, Generator, Tensor, ix};

use crate::Program;

/// The program is traced on one set of indices and run on others, negative and repeated ones among
/// them.
#[test]
fn arguments_can_be_indices() {
    let g = &mut Generator::manual_seed(3);
    let w = Tensor::randn([4, 5], DType::F64, g).parameter().named("w");
    type IndexLoss = fn(&Tensor, &Tensor) -> Tensor;
    let losses: [(&str, IndexLoss); 6] = [
        ("rows", |w, i| w.index(ix![i]).tanh().sum_all()),
        ("columns", |w, i| w.index(ix![.., i]).tanh().sum_all()),
        ("both", |w, i| w.index(ix![&Tensor::arange(0, 3), i]).tanh().sum_all()),
        ("apart", |w, i| w.reshape([2, 2, 5]).index(ix![&i.remainder(2), .., i]).tanh().sum_all()),
        ("put", |w, i| (w.index_put(ix![i], w.index(ix![i]).square(), false) * w).sum_all()),
        ("added", |w, i| (w.index_put(ix![i], 2.0, true) * w).sum_all()),
    ];
    for (name, loss) in losses {
        let step = |i: &Tensor| {
            w.zero_grad();
            let loss = loss(&w, i);
            loss.backward();
            vec![loss, w.grad().unwrap()]
        };
        let first = Tensor::from([0i64, 1, 2]);
        let program = Program::trace([("i", &first)], |x| Ok(step(&x[0]))).unwrap();
        for i in [[0i64, 1, 2], [3, 3, 3], [-1, 0, -1], [1, -4, 2]] {
            let i = Tensor::from(i);
            let want = step(&i);
            for program in [program.clone(), program.simplified().unwrap().program.fused()] {
                for (a, b) in program.run(&[&i]).unwrap().iter().zip(&want) {
                    let apart = (a - b).abs().max_all().item();
                    assert!(apart < 1e-14, "{name}: {apart}\n{program}");
                }
            }
        }
        let outside = program.run(&[&Tensor::from([0i64, 7, 1])]).unwrap_err().to_string();
        assert!(outside.contains("index 7 at position 1"), "{name}: {outside}");
    }
}
