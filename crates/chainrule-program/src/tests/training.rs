//! Steps of training, eager and compiled.

use super::*;
use crate::nn::{BatchNorm1d, Dropout, Layer, Linear, Module, Sequential, Tanh};
use crate::optim::keras::{Keras, KerasOptions, KerasRule};
use crate::optim::*;
use chainrule_lab::models::{DigitsMlp, NamesMlp, NamesMlpConfig};

/// Makes an optimizer of these parameters.
pub(crate) type Make = fn(Vec<Tensor>) -> Box<dyn Optimizer>;

/// Every optimizer, and its options that keep most.
pub(crate) fn optimizers() -> Vec<Make> {
    vec![
        |p| Box::new(Sgd::new(p, 0.1)),
        |p| {
            let options = SgdOptions {
                momentum: 0.9,
                dampening: 0.5,
                weight_decay: 0.01,
                ..SgdOptions::default()
            };
            Box::new(Sgd::try_with_options(p, 0.1, options).unwrap())
        },
        |p| Box::new(Adam::new(p, 0.01)),
        |p| {
            let options = AdamWOptions { amsgrad: true, ..AdamWOptions::default() };
            let n = p.len() / 2;
            let groups = [
                Group::new(p[..n].to_vec()),
                Group::new(p[n..].to_vec()).lr(0.002).weight_decay(0.0),
            ];
            Box::new(AdamW::try_with_groups(groups, 0.01, options).unwrap())
        },
        |p| {
            let options =
                RmsPropOptions { momentum: 0.9, centered: true, ..RmsPropOptions::default() };
            Box::new(RmsProp::try_with_options(p, 0.01, options).unwrap())
        },
        |p| {
            Box::new(
                Adagrad::try_with_options(
                    p,
                    0.01,
                    AdagradOptions { lr_decay: 0.1, ..AdagradOptions::default() },
                )
                .unwrap(),
            )
        },
        |p| Box::new(Lion::new(p, 0.001)),
        |p| keras(p, KerasRule::Sgd, 0.0),
        |p| keras(p, KerasRule::Sgd, 0.9),
        |p| keras(p, KerasRule::Adam, 0.0),
        |p| keras(p, KerasRule::Nadam, 0.0),
        |p| keras(p, KerasRule::RmsProp, 0.0),
    ]
}

fn keras(p: Vec<Tensor>, rule: KerasRule, momentum: f64) -> Box<dyn Optimizer> {
    let nesterov = momentum > 0.0;
    let own = KerasOptions { rule, momentum, nesterov, decay: 0.1, ..KerasOptions::default() };
    Box::new(Keras::try_with_options(p, 1.0, own).unwrap())
}

fn names() -> NamesMlp {
    let config = NamesMlpConfig { symbols: 9, context: 3, embedding: 4, hidden: 12 };
    NamesMlp::new(config, &mut Generator::manual_seed(3))
}

fn names_batch(n: usize, g: &mut Generator) -> [Tensor; 2] {
    [Tensor::randint(0, 9, [n, 3], g), Tensor::randint(0, 9, [n], g)]
}

/// One eager step.
fn eager(
    optimizer: &mut dyn Optimizer,
    batch: &[Tensor],
    loss: impl Fn(&[Tensor]) -> chainrule_core::Result<Tensor>,
) -> Tensor {
    optimizer.zero_grad();
    let loss = loss(batch).unwrap();
    loss.backward();
    optimizer.step().unwrap();
    loss
}

fn same_state(a: &crate::nn::StateDict, b: &crate::nn::StateDict) {
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, a) in a {
        assert_eq!(bits(a), bits(&b[name]), "{name}");
    }
}

#[test]
fn names_trains_as_in_the_eager_mode_with_every_optimizer() {
    for (k, make) in optimizers().into_iter().enumerate() {
        let (one, two) = (names(), names());
        let (mut first, mut second) = (make(one.parameters()), make(two.parameters()));
        let g = &mut Generator::manual_seed(7);
        let mut step = compile(&two, &mut *second, ["x", "y"], |b| {
            two.try_forward(&b[0])?.try_cross_entropy(&b[1])
        });
        step = step.with_simplification(false).with_fusion(false);
        for i in 0..6 {
            let batch = names_batch(8, g);
            if i == 4 {
                // The rate is read by each run.
                first.set_lr(0.003).unwrap();
                step.optimizer().set_lr(0.003).unwrap();
            }
            let want =
                eager(&mut *first, &batch, |b| one.try_forward(&b[0])?.try_cross_entropy(&b[1]));
            let got = step.run(&[&batch[0], &batch[1]]).unwrap();
            assert_eq!(bits(&got), bits(&want), "optimizer {k}, step {i}");
        }
        assert_eq!((step.programs().len(), step.retraces().len()), (1, 0));
        drop(step);
        same_state(&one.state_dict(), &two.state_dict());
        same_state(&first.state_dict(), &second.state_dict());
    }
}

#[test]
fn digits_trains_as_in_the_eager_mode() {
    let model = || DigitsMlp::try_new(&[20, 12], &mut Generator::manual_seed(1)).unwrap();
    let (one, two) = (model(), model());
    let mut first = Sgd::new(one.parameters(), 0.1);
    let mut second = Sgd::new(two.parameters(), 0.1);
    let g = &mut Generator::manual_seed(2);
    let mut step = compile(&two, &mut second, ["x", "y"], |b| {
        two.try_forward(&b[0])?.try_cross_entropy(&b[1])
    });
    step = step.with_simplification(false).with_fusion(false);
    for _ in 0..4 {
        let batch = [Tensor::rand([16, 784], DType::F32, g), Tensor::randint(0, 10, [16], g)];
        let want = eager(&mut first, &batch, |b| one.try_forward(&b[0])?.try_cross_entropy(&b[1]));
        assert_eq!(bits(&step.run(&[&batch[0], &batch[1]]).unwrap()), bits(&want));
    }
    drop(step);
    same_state(&one.state_dict(), &two.state_dict());
}

/// Layers with statistics and random numbers of their own.
pub(crate) fn noisy() -> Sequential {
    let g = &mut Generator::manual_seed(11);
    Sequential::new()
        .with(Linear::new(5, 8, g))
        .with(BatchNorm1d::new(8))
        .with(Tanh)
        .with(Dropout::new(0.3, g))
        .with(Linear::new(8, 1, g))
}

#[test]
fn statistics_dropout_and_turns_with_the_eager_mode() {
    let (one, two) = (noisy(), noisy());
    let mut first = Adam::new(one.parameters(), 0.01);
    let mut second = Adam::new(two.parameters(), 0.01);
    let g = &mut Generator::manual_seed(4);
    let mse = |model: &Sequential, b: &[Tensor]| model.try_forward(&b[0])?.try_mse(&b[1]);
    for turn in 0..3 {
        let mut step = compile(&two, &mut second, ["x", "y"], |b| mse(&two, b))
            .with_simplification(false)
            .with_fusion(false);
        for i in 0..3 {
            let batch =
                [Tensor::randn([6, 5], DType::F32, g), Tensor::randn([6, 1], DType::F32, g)];
            let want = eager(&mut first, &batch, |b| mse(&one, b));
            let got = step.run(&[&batch[0], &batch[1]]).unwrap();
            assert_eq!(bits(&got), bits(&want), "turn {turn}, step {i}");
        }
        drop(step);
        let batch = [Tensor::randn([6, 5], DType::F32, g), Tensor::randn([6, 1], DType::F32, g)];
        let want = eager(&mut first, &batch, |b| mse(&one, b));
        assert_eq!(bits(&eager(&mut second, &batch, |b| mse(&two, b))), bits(&want), "turn {turn}");
    }
    same_state(&one.state_dict(), &two.state_dict());
    same_state(&first.state_dict(), &second.state_dict());
}

#[test]
fn updates_are_in_place_unless_somebody_holds_the_value() {
    let w = Tensor::from([1.0f32, 2.0]).parameter().named("w");
    let mut adam = Adam::new(vec![w.clone()], 0.1);
    let x = Tensor::from([3.0f32, -1.0]);
    let program = Program::trace([("x", &x)], |a| {
        (&w * &a[0]).sum_all().try_backward()?;
        adam.step()?;
        Ok(vec![])
    });
    let program = program.unwrap().optimized();
    let address = || w.value().slice::<f32>().unwrap().as_ptr().addr();
    program.run(&[&x]).unwrap();
    let before = address();
    program.run(&[&x]).unwrap();
    assert_eq!(address(), before);
    let (held, numbers) = (w.detach(), w.to_vec::<f32>());
    let asked = program.run_with(&[&x], &["w", "w_new"]).unwrap();
    assert_ne!(address(), before);
    assert_eq!((held.to_vec::<f32>(), asked[0].to_vec::<f32>()), (numbers.clone(), numbers));
    assert_eq!(asked[1].to_vec::<f32>(), w.to_vec::<f32>());
    let text = program.to_string();
    assert!(text.contains("state lr ") && text.contains("state exp_avg_w "), "{text}");
    assert!(
        text.contains("w_new, step_w_new, exp_avg_w_new, exp_avg_sq_w_new = Adam(w, "),
        "{text}"
    );
}

#[test]
fn what_differs_is_traced_again_and_named() {
    let model = noisy();
    let mut sgd = Sgd::new(model.parameters(), 0.01);
    let mut step = compile(&model, &mut sgd, ["x"], |b| {
        model.try_forward(&b[0])?.try_square()?.try_mean_all()
    });
    let g = &mut Generator::manual_seed(4);
    let (small, large) =
        (Tensor::randn([4, 5], DType::F32, g), Tensor::randn([6, 5], DType::F32, g));
    for x in [&small, &large, &small] {
        step.run(&[x]).unwrap();
    }
    model.eval();
    step.run(&[&small]).unwrap();
    model.train();
    model.layers()[0].freeze();
    step.run(&[&small]).unwrap();
    let reasons: Vec<String> = step.retraces().iter().map(|r| r.to_string()).collect();
    let wanted = [
        "`x` has shape [6, 5] where the trace had [4, 5]",
        "Sequential is in evaluation where the trace had training",
        "is frozen and was trained in the trace",
    ];
    assert_eq!(reasons.len(), wanted.len(), "{reasons:?}");
    assert!(reasons.iter().zip(wanted).all(|(r, w)| r.contains(w)), "{reasons:?}");
    let error = step.programs()[0].run(&[&large]).unwrap_err().to_string();
    assert!(error.contains("trace again"), "{error}");
}

#[test]
fn a_loaded_state_goes_on_in_the_program() {
    let (one, two) = (names(), names());
    let (mut first, mut second) =
        (Adam::new(one.parameters(), 0.01), Adam::new(two.parameters(), 0.01));
    let g = &mut Generator::manual_seed(7);
    let batch = names_batch(8, g);
    let f = |model: &NamesMlp, b: &[Tensor]| model.try_forward(&b[0])?.try_cross_entropy(&b[1]);
    let (weights, start) = (one.state_dict(), first.state_dict());
    let mut step = compile(&two, &mut second, ["x", "y"], |b| f(&two, b))
        .with_simplification(false)
        .with_fusion(false);
    for _ in 0..2 {
        for _ in 0..3 {
            let want = eager(&mut first, &batch, |b| f(&one, b));
            assert_eq!(bits(&step.run(&[&batch[0], &batch[1]]).unwrap()), bits(&want));
        }
        one.load_state_dict(&weights).unwrap();
        first.load_state_dict(&start).unwrap();
        two.load_state_dict(&weights).unwrap();
        step.optimizer().load_state_dict(&start).unwrap();
    }
    assert_eq!(step.programs().len(), 1);
}

#[test]
fn a_trace_lets_the_elements_go_that_nobody_needs() {
    let x = Tensor::randn([1000], DType::F32, &mut Generator::manual_seed(1));
    let place = |t: &Tensor| t.value().slice::<f32>().expect("contiguous").as_ptr().addr();
    let f = |v: &[Tensor]| {
        let first = &v[0] * 2.0;
        let (at, sum) = (place(&first), first.sum(0, false));
        drop(first);
        let second = &v[0] * 3.0;
        assert_eq!(place(&second), at);
        Ok(vec![sum + second])
    };
    let program = Program::trace([("x", &x)], f).unwrap();
    let want = (&x * 2.0).sum(0, false) + &x * 3.0;
    assert_eq!(difference(&program.run(&[&x]).unwrap(), &[want]), None);
}

#[test]
fn a_gradient_that_is_seen_changes_no_bit_of_the_update() {
    // The update adds the product to the matrix itself, which rounds once where a gradient of its
    // own is rounded, too.
    let step = |way: fn(Program) -> Program, gives: bool| {
        let g = &mut Generator::manual_seed(4);
        let (x, y) = (Tensor::randn([9, 7], DType::F32, g), Tensor::randn([9, 5], DType::F32, g));
        let w = Tensor::randn([7, 5], DType::F32, g).parameter();
        let mut sgd = Sgd::new(vec![w.clone()], 0.1);
        let program = Program::trace([("x", &x), ("y", &y)], |args| {
            let loss = args[0].try_matmul(&w)?.try_mse(&args[1])?;
            sgd.zero_grad();
            loss.backward();
            let mut results = vec![loss];
            results.extend(w.grad().filter(|_| gives));
            sgd.step()?;
            Ok(results)
        });
        let program = way(program.unwrap()).optimized().fused();
        let results = program.run(&[&x, &y]).unwrap();
        (w.detach().to_vec::<f32>(), results.get(1).map(Tensor::to_vec::<f32>))
    };
    let (plain, _) = step(|program| program, false);
    let (seen, gradient) = step(Program::seen, true);
    let (other, given) = step(|program| program, true);
    assert_eq!(plain, seen);
    assert_eq!(gradient, given);
    assert_ne!(plain, other, "the two ways to update round alike, so this says nothing");
}
