//! Batch norm over ranks, beside one process with the whole batch.

use super::*;
use crate::dtype::DType;
use crate::exchange::Threads;
use crate::rng::Generator;

/// Rows of each rank.
const ROWS: [usize; 3] = [4, 1, 3];

fn numbers(shape: [usize; 3], seed: u64) -> Tensor {
    Tensor::randn(shape, DType::F64, &mut Generator::manual_seed(seed))
}

/// Weights of the loss, so that the gradient is no constant, and `x`; of the rows from one on.
fn rows(from: usize, count: usize) -> [Tensor; 2] {
    [1, 2].map(|seed| numbers([8, 2, 5], seed).try_narrow(0, from, count).unwrap())
}

fn in_f64(norm: &mut BatchNorm1d) {
    let g = &mut Generator::manual_seed(3);
    norm.gain = Tensor::randn([2], DType::F64, g).parameter();
    norm.bias = Tensor::randn([2], DType::F64, g).parameter();
    norm.running_mean = norm.running_mean.detach().to_dtype(DType::F64).buffer();
    norm.running_var = norm.running_var.detach().to_dtype(DType::F64).buffer();
}

/// Output, gradients of `x`, gain and bias, and running statistics.
fn pass(layer: &dyn Layer, norm: &BatchNorm1d, [weights, x]: [Tensor; 2]) -> Vec<Vec<f64>> {
    let x = x.detach().parameter();
    let y = layer.try_forward(&x).unwrap();
    y.try_mul(&weights).unwrap().try_square().unwrap().try_sum_all().unwrap().backward();
    let grads = [&x, &norm.gain, &norm.bias].map(|t| t.grad().unwrap());
    let all = [y, grads[0].clone(), grads[1].clone(), grads[2].clone()];
    let running = [&norm.running_mean, &norm.running_var].map(|t| t.to_f64_vec());
    all.iter().map(Tensor::to_f64_vec).chain(running).collect()
}

#[test]
fn ranks_have_the_gradient_of_the_whole_batch() {
    let mut whole = BatchNorm1d::new(2);
    in_f64(&mut whole);
    let wanted = pass(&whole, &whole, rows(0, 8));
    let handles: Vec<_> = Threads::group(3)
        .into_iter()
        .map(|rank| {
            std::thread::spawn(move || {
                let number = rank.rank();
                let ranks: SharedExchange = Arc::new(Mutex::new(Box::new(rank)));
                let mut layer = SyncBatchNorm::new(2, &ranks);
                in_f64(&mut layer.norm);
                let from = ROWS[..number].iter().sum();
                pass(&layer, &layer.norm, rows(from, ROWS[number]))
            })
        })
        .collect();
    let got: Vec<_> = handles.into_iter().map(|rank| rank.join().unwrap()).collect();
    let near = |a: &[f64], b: &[f64], what: &str| {
        assert_eq!(a.len(), b.len(), "{what}");
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{what}: {a} for {b}");
        }
    };
    for (i, what) in [(0, "output"), (1, "gradient of x")] {
        let joined: Vec<f64> = got.iter().flat_map(|rank| rank[i].clone()).collect();
        near(&joined, &wanted[i], what);
    }
    for (i, what) in [(2, "gradient of the gain"), (3, "gradient of the bias")] {
        let sum = |k| got.iter().map(|rank| rank[i][k]).sum::<f64>();
        near(&[sum(0), sum(1)], &wanted[i], what);
    }
    for rank in &got {
        near(&rank[4], &wanted[4], "running mean");
        near(&rank[5], &wanted[5], "running variance");
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let alone: SharedExchange = Arc::new(Mutex::new(Box::new(Threads::group(1).remove(0))));
    let layer = SyncBatchNorm::new(2, &alone);
    let error = layer.try_forward(&Tensor::zeros([4, 3])).unwrap_err().to_string();
    assert!(error.contains("[n, 2]"), "{error}");
    let x = Tensor::zeros([4, 2]);
    let traced =
        crate::program::Program::trace([("x", &x)], |x| Ok(vec![layer.try_forward(&x[0])?]));
    let Err(error) = traced else { panic!("a program with an exchange inside") };
    assert!(error.to_string().contains("op by op"), "{error}");
    // In evaluation the running statistics count, without an exchange.
    layer.eval();
    assert_eq!(layer.try_forward(&Tensor::ones([1, 2])).unwrap().shape(), [1, 2]);
}
