//! The laws on random right gradients, and on wrong ones.

use super::*;
use crate::autograd::walk::Walk;
use crate::nn::{BatchNorm1d, Dropout, Layer, Linear, Module, Relu, Sequential};
use crate::optim::{AdamW, Optimizer, Sgd};
use crate::rng::Generator;
use chainrule_core::ops::table;
use chainrule_core::{CrossEntropy, Reduction};
use chainrule_lab::models::{Gpt, GptConfig, NamesMlp, NamesMlpConfig};

/// Number of seeds: more if the environment says so.
fn seeds() -> u64 {
    let seeds = std::env::var("CHAINRULE_INVARIANT_SEEDS").ok().and_then(|s| s.parse().ok());
    seeds.unwrap_or(40)
}

fn between(g: &mut Generator, low: u64, high: u64) -> usize {
    (low + g.random_u64() % (high - low)) as usize
}

fn symbols(g: &mut Generator, n: usize, count: usize) -> Tensor {
    let mut all = vec![0i64; n];
    g.fill_randint(0, count as i64, &mut all).expect("the range is not empty");
    Tensor::from(all)
}

/// A number whose logarithm is spread evenly.
fn spread(g: &mut Generator, low: f64, high: f64) -> f64 {
    let share = between(g, 0, 1 << 20) as f64 / (1 << 20) as f64;
    (low.ln() + share * (high / low).ln()).exp()
}

/// Calls `f` with many seeds in both dtypes, and asserts what it says.
fn always(what: &str, holds: bool, f: impl Fn(&mut Generator, DType) -> Result<InvariantReport>) {
    let mut closest: f64 = 0.0;
    for dtype in [DType::F32, DType::F64] {
        for seed in 0..seeds() {
            let report = f(&mut Generator::manual_seed(seed), dtype).unwrap();
            assert_eq!(report.holds(), holds, "{what}, {dtype}, seed {seed}: {report}");
            let share = report.value / report.bound;
            closest = closest.max(if holds { share } else { 1.0 / share });
        }
    }
    println!("{what}: {closest:.4} of the bound at most");
}

mod softmax {
    use super::*;

    fn logits(g: &mut Generator, dtype: DType) -> Tensor {
        let (n, k) = (between(g, 1, 12), spread(g, 2.0, 3000.0) as usize);
        let (size, shift) = (spread(g, 0.01, 100.0), spread(g, 1e-3, 1e4));
        (Tensor::randn([n, k], dtype, g) * size + shift).parameter()
    }

    fn rows(
        g: &mut Generator,
        dtype: DType,
        wrong: impl Fn(&Tensor, &Tensor) -> Tensor,
    ) -> Result<InvariantReport> {
        let x = logits(g, dtype);
        let (n, k) = (x.shape()[0], x.shape()[1]);
        let y = symbols(g, n, k);
        let reduction = [Reduction::Mean, Reduction::Sum][between(g, 0, 2)];
        let label_smoothing = [0.0, 0.1][between(g, 0, 2)];
        let options = CrossEntropy { reduction, label_smoothing, ..CrossEntropy::default() };
        (x.cross_entropy_with(&y, &options) * 3.0).backward();
        let u = if reduction == Reduction::Mean { 3.0 / n as f64 } else { 3.0 };
        cross_entropy_rows(&wrong(&x.try_grad()?, &y), &Tensor::scalar(u))
    }

    #[test]
    fn rows_sum_to_zero() {
        always("rows of cross-entropy", true, |g, d| rows(g, d, |grad, _| grad.clone()));
    }

    #[test]
    fn rows_of_soft_targets_sum_to_zero() {
        always("rows of soft targets", true, |g, dtype| {
            let x = logits(g, dtype);
            let q = Tensor::randn(x.shape(), dtype, g).softmax(1);
            x.cross_entropy(&q).backward();
            cross_entropy_rows(&x.try_grad()?, &Tensor::scalar(1.0 / x.shape()[0] as f64))
        });
    }

    #[test]
    fn a_target_that_is_not_subtracted_shows() {
        always("`=` for `-=`", false, |g, d| {
            rows(g, d, |grad, y| {
                let target = y.one_hot(grad.shape()[1]).gt(0.0);
                grad.masked_fill(&target, -0.7)
            })
        });
        always("target forgotten", false, |g, d| {
            rows(g, d, |grad, y| grad + y.one_hot(grad.shape()[1]).to_dtype(grad.dtype()))
        });
    }

    /// The lecture's loss step by step, and the gradient of the maximum.
    fn maximum(g: &mut Generator, dtype: DType, shifted_log: bool) -> Result<InvariantReport> {
        let x = logits(g, dtype);
        let (n, k) = (x.shape()[0], x.shape()[1]);
        let top = x.amax(1, true).retain_grad();
        let shifted = &x - &top;
        let counts = shifted.exp();
        // The wrong version takes the maximum away once only.
        let log = if shifted_log { shifted } else { x.clone() } - counts.sum(1, true).log();
        let loss = -log.gather(1, &symbols(g, n, k).reshape([n, 1])).mean_all();
        loss.backward();
        row_maximum(&top.try_grad()?, &Tensor::scalar(1.0 / n as f64))
    }

    #[test]
    fn the_maximum_has_no_gradient() {
        always("the subtracted maximum", true, |g, d| maximum(g, d, true));
        always("maximum taken away once", false, |g, d| maximum(g, d, false));
    }
}

mod norms {
    use super::*;

    /// A norm of random numbers, the gradient of its result, and that of its input.
    struct NormCase {
        norm: Norm,
        x: Tensor,
        gain: Tensor,
        incoming: Tensor,
        dx: Tensor,
        eps: f64,
        correction: usize,
        axis: i64,
    }

    /// Inputs of any size, and as far from 0 as you like.
    fn case(g: &mut Generator, dtype: DType, kind: &str) -> NormCase {
        sized(g, dtype, kind, 300.0, 1e2)
    }

    /// Inputs so small and near to 0 that a mistake is not lost in the rounding of f32.
    fn mild(g: &mut Generator, dtype: DType, kind: &str) -> NormCase {
        sized(g, dtype, kind, 40.0, 3.0)
    }

    fn sized(g: &mut Generator, dtype: DType, kind: &str, most: f64, far: f64) -> NormCase {
        let (n, c) = (spread(g, 3.0, most) as usize, between(g, 2, 20));
        let (n, c) = if kind == "batch" { (n, c) } else { (c, n) };
        let (size, shift) = (spread(g, 1e-2, 1e2), spread(g, 1e-2, far));
        let eps = spread(g, 1e-6, 1e-2);
        let x = (Tensor::randn([n, c], dtype, g) * size + shift * size).parameter();
        let gain = Tensor::randn([c], dtype, g) + 1.0;
        let correction = if kind == "batch" { between(g, 0, 2) } else { 0 };
        let (y, norm) = match kind {
            "batch" => (x.batch_norm(Some(&gain), None, eps, correction), Norm::batch(&x)),
            "layer" => (x.layer_norm(c, Some(&gain), None, eps), Norm::layer(&x)),
            _ => (x.rms_norm(c, Some(&gain), Some(eps)), Norm::rms(&x)),
        };
        let incoming = Tensor::randn([n, c], dtype, g) * spread(g, 1e-6, 1e3);
        y.backward_with().gradient(&incoming).run().unwrap();
        let norm = norm.gain(&gain).eps(eps).correction(correction);
        let axis = if kind == "batch" { 0 } else { 1 };
        let dx = x.try_grad().unwrap();
        NormCase { norm, x, gain, incoming, dx, eps, correction, axis }
    }

    impl NormCase {
        /// The gradient by hand, the paths weighed: 1 if they are there.
        fn by_hand(&self, mean_path: f64, var_path: f64, n_off: f64, eps_outside: bool) -> Tensor {
            let x = self.x.detach();
            let n = x.shape()[self.axis as usize] as f64;
            let d = &x - x.mean(self.axis, true);
            let v = d.square().sum(self.axis, true) / (n - self.correction as f64);
            let s = match eps_outside {
                true => 1.0 / (v.sqrt() + self.eps),
                false => 1.0 / (v + self.eps).sqrt(),
            };
            let (h, a) = (&d * &s, &self.incoming * &self.gain);
            let product = (&a * &h).sum(self.axis, true) / (n - self.correction as f64 + n_off);
            (&a - a.mean(self.axis, true) * mean_path - h * product * var_path) * s
        }
    }

    #[test]
    fn right_gradients_obey() {
        for kind in ["batch", "layer", "rms"] {
            if kind != "rms" {
                always(&format!("{kind} sums"), true, |g, dtype| {
                    let c = case(g, dtype, kind);
                    c.norm.sums(&c.incoming, &c.dx)
                });
            }
            always(&format!("{kind} products"), true, |g, dtype| {
                let c = case(g, dtype, kind);
                c.norm.products(&c.incoming, &c.dx)
            });
        }
        always("by hand", true, |g, dtype| {
            let c = case(g, dtype, "batch");
            c.norm.products(&c.incoming, &c.by_hand(1.0, 1.0, 0.0, false))
        });
    }

    #[test]
    fn a_forgotten_mean_path_shows_in_the_sums() {
        for kind in ["batch", "layer"] {
            always("no mean path", false, |g, dtype| {
                let c = mild(g, dtype, kind);
                c.norm.sums(&c.incoming, &c.by_hand(0.0, 1.0, 0.0, false))
            });
        }
    }

    #[test]
    fn a_forgotten_variance_path_shows_in_the_products() {
        for kind in ["batch", "layer"] {
            always("no variance path", false, |g, dtype| {
                let c = mild(g, dtype, kind);
                c.norm.products(&c.incoming, &c.by_hand(1.0, 0.0, 0.0, false))
            });
            always("neither path", false, |g, dtype| {
                let c = mild(g, dtype, kind);
                c.norm.sums(&c.incoming, &c.by_hand(0.0, 0.0, 0.0, false))
            });
        }
    }

    #[test]
    fn another_divisor_shows_in_the_products() {
        always("n off by one", false, |g, dtype| {
            let c = mild(g, dtype, "batch");
            let off = if c.correction == 0 { -1.0 } else { 1.0 };
            c.norm.products(&c.incoming, &c.by_hand(1.0, 1.0, off, false))
        });
    }

    #[test]
    fn eps_outside_of_the_root_shows_in_f64() {
        for seed in 0..seeds() {
            let c = mild(&mut Generator::manual_seed(seed), DType::F64, "batch");
            let wrong = c.by_hand(1.0, 1.0, 0.0, true);
            let report = c.norm.products(&c.incoming, &wrong).unwrap();
            assert!(!report.holds(), "seed {seed}: {report}");
        }
    }

    #[test]
    fn channels_of_pictures_and_rows_of_several_axes() {
        let g = &mut Generator::manual_seed(3);
        let x = Tensor::randn([4, 3, 2, 5], DType::F64, g).parameter();
        let incoming = Tensor::randn(x.shape(), DType::F64, g);
        x.layer_norm([2, 5], None, None, 1e-3).backward_with().gradient(&incoming).run().unwrap();
        let norm = Norm::layer(&x).axes(2).eps(1e-3);
        for report in
            [norm.sums(&incoming, &x.grad().unwrap()), norm.products(&incoming, &x.grad().unwrap())]
        {
            let report = report.unwrap();
            assert!(report.holds() && report.places == 12, "{report}");
        }
        // Batch norm over all axes but the channels', in steps.
        let d = &x - x.mean([0, 2, 3], true);
        let y = &d / (d.square().mean([0, 2, 3], true) + 1e-3).sqrt();
        x.zero_grad();
        y.backward_with().gradient(&incoming).run().unwrap();
        let report = Norm::batch(&x).eps(1e-3).products(&incoming, &x.grad().unwrap()).unwrap();
        assert!(report.holds() && report.places == 3, "{report}");
    }

    /// A layer before a norm: the reports of its weight and, before batch norm, its bias.
    fn before(
        g: &mut Generator,
        dtype: DType,
        (kind, far): (&str, f64),
        wrong: impl Fn(Tensor, &Tensor) -> Tensor,
    ) -> Result<(InvariantReport, Option<InvariantReport>)> {
        // Two features that are nearly equal make a row whose rounding is as large as itself.
        let least = if kind == "batch" { 2 } else { 6 };
        // With a single input the whole gradient is along the weight, and so 0.
        let (n, i, o) = (between(g, 3, 60), between(g, 2, 20), between(g, least, 20));
        let eps = spread(g, 1e-6, 1e-2);
        let input = Tensor::randn([n, i], dtype, g) + spread(g, 1e-2, far);
        let w = (Tensor::randn([i, o], dtype, g) * spread(g, 0.1, 10.0)).parameter();
        let b = Tensor::randn([o], dtype, g).parameter();
        let gain = Tensor::randn([o], dtype, g) + 1.0;
        let x = input.matmul(&w) + &b;
        let (y, norm) = match kind {
            "batch" => (x.batch_norm(Some(&gain), None, eps, 1), Norm::batch(&x).correction(1)),
            "layer" => (x.layer_norm(o, Some(&gain), None, eps), Norm::layer(&x)),
            _ => (x.rms_norm(o, Some(&gain), Some(eps)), Norm::rms(&x)),
        };
        let norm = norm.gain(&gain).eps(eps);
        let incoming = Tensor::randn([n, o], dtype, g);
        y.backward_with().gradient(&incoming).run()?;
        let (dw, db) = (wrong(w.try_grad()?, &w), b.try_grad()?);
        let layer = Before { input: &input, weight: &w, weight_grad: &dw, bias: Some((&b, &db)) };
        let bias = (kind == "batch").then(|| norm.bias(&incoming, &wrong(db.clone(), &b)));
        Ok((norm.weight(&incoming, layer)?, bias.transpose()?))
    }

    /// A gradient with a part along the weight.
    fn radial(dw: Tensor, w: &Tensor) -> Tensor {
        &dw + w.detach() * (dw.abs().mean_all() / w.detach().abs().mean_all())
    }

    #[test]
    fn weights_are_orthogonal_to_their_gradients() {
        for kind in ["batch", "layer", "rms"] {
            let what = format!("weight before {kind} norm");
            always(&what, true, |g, d| Ok(before(g, d, (kind, 100.0), |dw, _| dw)?.0));
            let what = format!("wrong gradient before {kind} norm");
            always(&what, false, |g, d| Ok(before(g, d, (kind, 1.0), radial)?.0));
        }
    }

    #[test]
    fn a_bias_before_batch_norm_gets_nothing() {
        always("bias before batch norm", true, |g, d| {
            Ok(before(g, d, ("batch", 100.0), |x, _| x)?.1.unwrap())
        });
        always("bias with a gradient", false, |g, d| {
            Ok(before(g, d, ("batch", 1.0), |x, _| x + 1.0)?.1.unwrap())
        });
    }

    #[test]
    fn what_has_no_such_law_is_an_error() {
        let x = Tensor::from([[1.0f64, 2.0], [3.0, 5.0]]);
        let says = |e: Result<InvariantReport>, what: &str| {
            assert!(e.unwrap_err().to_string().contains(what))
        };
        says(Norm::rms(&x).sums(&x, &x), "no mean");
        says(Norm::layer(&x).bias(&x, &x), "only batch norm");
        says(Norm::batch(&x).sums(&x, &x.t().narrow(0, 0, 1)), "shape");
        says(
            Norm::batch(&x.narrow(0, 0, 1))
                .correction(1)
                .sums(&x.narrow(0, 0, 1), &x.narrow(0, 0, 1)),
            "variance",
        );
        says(cross_entropy_rows(&x, &Tensor::from([1.0f64, 2.0, 3.0])), "2 rows");
        says(cross_entropy_rows(&x.gt(0.0), &Tensor::scalar(1.0f64)), "f32 or f64");
    }

    #[test]
    fn nan_holds_nowhere_and_nothing_holds_everywhere() {
        let x = Tensor::from([[f64::NAN, 2.0], [3.0, 5.0]]);
        assert!(!Norm::batch(&x).sums(&x, &x).unwrap().holds());
        assert!(!cross_entropy_rows(&x, &Tensor::scalar(1.0f64)).unwrap().holds());
        let none = Tensor::zeros([0, 3]);
        assert!(cross_entropy_rows(&none, &Tensor::scalar(1.0f64)).unwrap().holds());
    }
}

mod of_parts {
    use super::*;
    use crate::autograd::custom;

    fn sizes(g: &mut Generator, n: usize) -> Vec<usize> {
        let mut left = n;
        let mut out = Vec::new();
        while left > 0 {
            out.push(between(g, 1, left as u64 + 1));
            left -= out[out.len() - 1];
        }
        out
    }

    #[test]
    fn a_mean_and_a_sum_are_made_of_their_parts() {
        always("parts", true, |g, dtype| {
            let (n, d, h, c) =
                (between(g, 1, 20), between(g, 1, 8), between(g, 1, 30), between(g, 2, 6));
            let x = Tensor::randn([n, d], dtype, g) * spread(g, 0.1, 10.0);
            let y = symbols(g, n, c);
            let w1 = Tensor::randn([d, h], dtype, g).parameter();
            let w2 = Tensor::randn([h, c], dtype, g).parameter();
            let sum = between(g, 0, 2) == 0;
            let reduction = if sum { Reduction::Sum } else { Reduction::Mean };
            let options = CrossEntropy { reduction, ..CrossEntropy::default() };
            let f = |x: &[Tensor]| {
                x[0].matmul(&w1).tanh().matmul(&w2).cross_entropy_with(&x[1], &options)
            };
            let combine = if sum { Combine::Sum } else { Combine::Mean };
            parts(f, &[&x, &y], &[&w1, &w2], &sizes(g, n), combine)
        });
    }

    #[test]
    fn a_mean_whose_gradient_is_not_divided_shows() {
        always("missing 1/n", false, |g, dtype| {
            let (n, d) = (between(g, 2, 20), between(g, 1, 8));
            let x = Tensor::randn([n, d], dtype, g);
            let w = Tensor::randn([d, 1], dtype, g).parameter();
            let mean = custom(
                "mean",
                |x| Ok(x[0].mean_all()),
                |ctx, g| Ok(vec![Some(g.expand(ctx.inputs()[0].shape()))]),
            );
            let f = |x: &[Tensor]| mean.apply(&[&x[0].matmul(&w)]).unwrap();
            parts(f, &[&x], &[&w], &[n - 1, 1], Combine::Mean)
        });
    }

    #[test]
    fn what_examples_share_is_refused() {
        let g = &mut Generator::manual_seed(1);
        let x = Tensor::randn([6, 3], DType::F32, g);
        let w = Tensor::randn([3, 2], DType::F32, g).parameter();
        let run = |f: &dyn Fn(&Tensor) -> Tensor| {
            parts(|x| f(&x[0].matmul(&w)), &[&x], &[&w], &[3, 3], Combine::Mean)
        };
        let says = |e: Result<InvariantReport>, what: &str| {
            let e = e.unwrap_err().to_string();
            assert!(e.contains(what), "{e}");
        };
        says(run(&|h| h.batch_norm(None, None, 1e-5, 0).square().mean_all()), "batch_norm");
        says(
            run(&|h| (h / h.std(0, 1, true)).square().sum(1, false).exp().mean_all()),
            "batch statistics",
        );
        let masks = std::cell::RefCell::new(Generator::manual_seed(2));
        says(
            run(&|h| h.dropout(0.5, true, &mut masks.borrow_mut()).square().mean_all()),
            "dropout",
        );
        says(run(&|h| h.square().sum_all()), "another way");
        assert!(run(&|h| h.square().mean_all()).unwrap().holds());
        let wrong = parts(|x| x[0].matmul(&w).mean_all(), &[&x], &[&w], &[3, 2], Combine::Mean);
        says(wrong, "sum to the 6 examples");
    }
}

mod in_training {
    use super::*;
    use crate::tensor::node::Node;
    use crate::tensor::op::{Grads, Op, Saved, Wanted};
    use std::sync::Arc;

    #[test]
    fn models_train_without_a_broken_law() {
        let g = &mut Generator::manual_seed(1);
        let names =
            NamesMlp::new(NamesMlpConfig { symbols: 20, context: 3, embedding: 4, hidden: 16 }, g);
        let mut sgd = Sgd::new(names.parameters(), 0.1);
        let mut laws = Invariants::new();
        for _ in 0..20 {
            let (x, y) = (symbols(g, 32 * 3, 20).reshape([32, 3]), symbols(g, 32, 20));
            sgd.zero_grad();
            laws.backward(&names.forward(&x).cross_entropy(&y)).unwrap();
            sgd.step().unwrap();
        }
        // Rows, sums, products, and the weight and the bias before the norm.
        assert_eq!((laws.tested(), laws.broken().len()), (20 * 5, 0), "{laws}");

        let config =
            GptConfig { symbols: 11, context: 8, layers: 2, heads: 2, width: 16, dropout: 0.1 };
        let gpt = Gpt::new(config, g);
        let mut adam = AdamW::new(gpt.parameters(), 1e-3);
        let mut laws = Invariants::new();
        for _ in 0..5 {
            let text = symbols(g, 4 * 8, 11).reshape([4, 8]);
            adam.zero_grad();
            let logits = gpt.forward(&text).reshape([32, 11]);
            laws.backward(&logits.cross_entropy(&text.reshape([32]))).unwrap();
            adam.step().unwrap();
        }
        assert_eq!((laws.tested(), laws.broken().len()), (5 * (1 + 5 * 2), 0), "{laws}");
    }

    fn net(g: &mut Generator) -> Sequential {
        Sequential::new()
            .with(Linear::new(6, 8, g))
            .with(BatchNorm1d::new(8))
            .with(Relu)
            .with(Dropout::new(0.1, g))
            .with(Linear::new(8, 3, g))
    }

    #[test]
    fn planted_mistakes_break_a_law() {
        let mut caught = Vec::new();
        for op in ["batch_norm", "cross_entropy"] {
            let entry = table().find(|e| e.name == op).expect("it is in the table");
            for mistake in entry.mistakes {
                let mut broken = 0;
                for seed in 0..10 {
                    let g = &mut Generator::manual_seed(seed);
                    let net = net(g);
                    let (x, y) = (Tensor::randn([16, 6], DType::F32, g), symbols(g, 16, 3));
                    let loss = net.forward(&x).cross_entropy(&y);
                    let mut laws = Invariants::new();
                    let rule = |_: &Arc<Node>,
                                at_op: &dyn Op,
                                at: &Saved<'_>,
                                g: &Tensor,
                                wanted: Wanted|
                     -> Option<Result<Grads>> {
                        entry.is_of(at_op).then(|| (mistake.rule)(at_op, at, g, wanted))
                    };
                    let walk =
                        Walk { observer: Some(&mut laws), planted: Some(&rule), ..Walk::default() };
                    walk.run(&[(&loss, loss.ones_like())]).unwrap();
                    broken += usize::from(!laws.broken().is_empty());
                }
                println!("{op}: {}: {broken} of 10", mistake.name);
                caught.push((op, mistake.name, broken));
            }
        }
        // A gradient that is only too large, of the wrong sign, or that of the gain, still obeys.
        let law_breakers = [
            ("batch_norm", "batch-norm coupling forgotten"),
            ("batch_norm", "mean path forgotten"),
            ("batch_norm", "variance path forgotten"),
            ("batch_norm", "wrong divisor of the variance"),
            ("cross_entropy", "target not subtracted"),
            ("cross_entropy", "one-hot assigned, not subtracted"),
        ];
        for (op, mistake, broken) in caught {
            let due = if law_breakers.contains(&(op, mistake)) { 10 } else { 0 };
            assert_eq!(broken, due, "{op}: {mistake}");
        }
    }
}
