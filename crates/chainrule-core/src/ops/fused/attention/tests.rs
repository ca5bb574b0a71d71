use super::*;
use crate::Tensor;

fn close(got: &Tensor, want: &[f64]) {
    for (i, (got, want)) in got.to_vec::<f64>().into_iter().zip(want).enumerate() {
        assert!((got - want).abs() <= 1e-13, "element {i}: {got}, not {want}");
    }
}

/// As PyTorch 2.15 treats queries that see nothing, an empty set of keys, and a scale of 0.
#[test]
fn edges_are_those_of_pytorch() {
    let g = &mut Generator::manual_seed(1);
    let (q, k, v) =
        (normal(g, [3, 2]).parameter(), normal(g, [4, 2]).parameter(), normal(g, [4, 2]));
    let mask = Tensor::from([[true], [false], [true]]);
    let options = Attention { mask: Some(mask), ..Attention::default() };
    let y = q.attention(&k, &v, &options);
    assert_eq!(y.narrow(0, 1, 1).to_vec::<f64>(), [0.0; 2]);
    y.sum_all().backward();
    assert_eq!(q.grad().unwrap().narrow(0, 1, 1).to_vec::<f64>(), [0.0; 2]);
    assert!(k.grad().unwrap().to_vec::<f64>().iter().all(|x| x.is_finite()));
    let empty = Tensor::full([0, 2], 0.0, DType::F64);
    assert_eq!(q.attention(&empty, &empty, &Attention::default()).to_vec::<f64>(), [0.0; 6]);
    let flat = Attention { scale: Some(0.0), ..Attention::default() };
    let mean = v.mean(0, false).to_vec::<f64>();
    close(&q.attention(&k, &v, &flat), &[&mean[..]; 3].concat());
    let all = Attention { dropout_p: 1.0, ..Attention::default() };
    assert_eq!(q.attention(&k, &v, &all).to_vec::<f64>(), [0.0; 6]);
}

/// A NaN or an infinite score makes its own row NaN and no other.
#[test]
fn what_is_not_finite_stays_in_its_row() {
    let ones = Tensor::ones([3, 2]);
    for bad in [f32::NAN, f32::INFINITY] {
        let q = Tensor::from([[bad, 1.0], [1.0, 1.0]]);
        let y = q.attention(&ones, &ones, &Attention::default()).to_vec::<f32>();
        assert!(y[0].is_nan() && y[1].is_nan() && y[2..] == [1.0; 2], "{y:?}");
    }
    let far = Tensor::from([[1e4f32, 0.0], [-1e4, 0.0]]);
    let y = far.attention(&far, &Tensor::from([[1.0f32], [2.0]]), &Attention::default());
    assert_eq!(y.to_vec::<f32>(), [1.0, 2.0]);
}

/// A mask that is as large for all keys leaves the weights of none, in the gradients too: in f32
/// the logarithm of a row's sum is less than a rounding of its largest score.
#[test]
fn a_row_of_large_numbers_in_a_mask_has_its_gradients() {
    let g = &mut Generator::manual_seed(2);
    let all = [(); 3].map(|()| normal(g, [20, 8]).to_dtype(DType::F32));
    for large in [-1e9, f64::from(f32::MIN)] {
        let rows: Vec<f64> = (0..20).map(|i| if i % 3 == 1 { large } else { 0.0 }).collect();
        let mask = Tensor::from_slice(&rows, [20, 1]).to_dtype(DType::F32);
        let run = |by_parts: bool| {
            let [q, k, v] = all.each_ref().map(Tensor::parameter);
            let y = match by_parts {
                false => q.attention(
                    &k,
                    &v,
                    &Attention { mask: Some(mask.clone()), ..Attention::default() },
                ),
                true => {
                    let scores = q.matmul(&k.t()).mul(8f64.powf(-0.5)).add(&mask);
                    scores.softmax(-1).matmul(&v)
                }
            };
            (&y * &y).sum_all().backward();
            [q, k, v].map(|x| x.grad().unwrap().to_vec::<f32>())
        };
        for (got, want) in run(false).iter().zip(&run(true)) {
            let worst = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-5, "{large}: off by {worst}");
        }
    }
}

#[test]
fn errors_show_the_shapes() {
    let zeros = |shape: &[usize]| Tensor::zeros(shape);
    let text = |q: &[usize], k: &[usize], v: &[usize]| {
        let found = zeros(q).try_attention(&zeros(k), &zeros(v), &Attention::default());
        found.unwrap_err().to_string()
    };
    assert!(text(&[3], &[3, 2], &[3, 2]).contains("two axes at least"));
    assert!(text(&[3, 2], &[3, 4], &[3, 2]).contains("2 and 4 numbers"));
    assert!(text(&[3, 2], &[3, 2], &[4, 2]).contains("3 keys and 4 values"));
    assert!(text(&[2, 3, 2], &[3, 3, 2], &[3, 3, 2]).contains("do not broadcast"));
    let x = zeros(&[3, 2]);
    let with = |options: Attention| x.try_attention(&x, &x, &options).unwrap_err().to_string();
    let mask = |mask| Attention { mask: Some(mask), ..Attention::default() };
    assert!(with(mask(zeros(&[3, 2]))).contains("[.., 3, 3]"));
    assert!(with(mask(Tensor::arange(0, 3))).contains("of bools"));
    for p in [-0.1, 1.5, f64::NAN] {
        let options = Attention { dropout_p: p, ..Attention::default() };
        assert!(with(options).contains("between 0 and 1"));
    }
    let ints = Tensor::arange(0, 4).reshape([2, 2]);
    assert!(ints.try_attention(&ints, &ints, &Attention::default()).is_err());
}

/// Heads of a fused projection are read where they lie, and the result and the gradients need no
/// copy to be joined again.
#[test]
fn heads_are_neither_copied_in_nor_out() {
    let qkv = normal(&mut Generator::manual_seed(0), [2, 5, 12]);
    let part = |i: usize| qkv.narrow(2, 4 * i, 4).reshape([2, 5, 2, 2]).transpose(1, 2);
    for i in 0..3 {
        let value = part(i).value();
        assert!(Arc::ptr_eq(&Matrices::new(&value).unwrap().value, &value));
    }
    let y = part(0).attention(&part(1), &part(2), &Attention::causal());
    assert_eq!(y.shape(), [2, 2, 5, 2]);
    assert!(y.transpose(1, 2).value().is_contiguous());
}

/// The same seed drops the same weights, another one others; what is left is scaled up.
#[test]
fn dropout_depends_on_the_seed() {
    let x = normal(&mut Generator::manual_seed(0), [2, 40, 8]);
    let with = |seed| {
        let options = Attention { dropout_p: 0.5, seed, ..Attention::default() };
        x.attention(&x, &x, &options).to_vec::<f64>()
    };
    assert!(with(1) == with(1) && with(1) != with(2));
    let ones = Tensor::full([2, 40, 1], 1.0, DType::F64);
    let options = Attention::default().with_dropout(0.5, &mut Generator::manual_seed(3));
    let kept = x.attention(&x, &ones, &options).to_vec::<f64>();
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    assert!((mean - 1.0).abs() < 0.2, "{mean}");
}
