//! Groups, states and large parameters, for all optimizers.

use super::*;
use crate::kernels::map::SHARED;
use crate::kernels::threads::with_num_threads;
use crate::optim::{
    Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, AdamWOptions, Lion, LionOptions, Muon,
    MuonOptions, RmsProp, RmsPropOptions, Sgd, SgdOptions,
};

/// Every optimizer, with options that make it keep as much as it can.
fn all(parameters: &[Tensor]) -> Vec<(&'static str, Box<dyn Optimizer>)> {
    fn one<R: Rule + 'static>(p: &[Tensor], options: R) -> (&'static str, Box<dyn Optimizer>) {
        (R::NAME, Box::new(Descent::try_with_options(p.to_vec(), 0.01, options).unwrap()))
    }
    let p = parameters;
    let amsgrad = AdamWOptions { amsgrad: true, ..AdamWOptions::default() };
    vec![
        one(p, SgdOptions { momentum: 0.9, dampening: 0.5, ..SgdOptions::default() }),
        one(p, RmsPropOptions { momentum: 0.9, centered: true, ..RmsPropOptions::default() }),
        one(p, AdagradOptions { lr_decay: 0.1, ..AdagradOptions::default() }),
        one(p, AdamOptions { weight_decay: 0.1, ..AdamOptions::default() }),
        one(p, amsgrad),
        one(p, LionOptions { weight_decay: 0.1, ..LionOptions::default() }),
        one(p, MuonOptions { weight_decay: 0.1, ..MuonOptions::default() }),
    ]
}

fn numbers(rows: usize, columns: usize, seed: usize) -> Tensor {
    let x = (0..rows * columns).map(|i| ((i * 29 + seed * 13) % 71) as f32 / 35.0 - 1.0);
    Tensor::from_slice(&x.collect::<Vec<_>>(), [rows, columns])
}

fn train(p: &Tensor, optimizer: &mut dyn Optimizer, steps: std::ops::Range<usize>) {
    for i in steps {
        let noise = numbers(p.size(0), p.size(1), i);
        p.set_grad(Some((p.detach() + noise) * 0.5)).unwrap();
        optimizer.step().unwrap();
    }
}

fn bits(t: &Tensor) -> Vec<u32> {
    t.to_vec::<f32>().into_iter().map(f32::to_bits).collect()
}

#[test]
fn a_resumed_training_is_the_uninterrupted_one() {
    for k in 0..7 {
        let whole = numbers(5, 7, 99).parameter();
        let (name, mut optimizer) = all(std::slice::from_ref(&whole)).remove(k);
        train(&whole, &mut *optimizer, 0..10);

        let first = numbers(5, 7, 99).parameter();
        let (_, mut optimizer) = all(std::slice::from_ref(&first)).remove(k);
        train(&first, &mut *optimizer, 0..4);
        let saved = crate::io::serialize(&optimizer.state_dict(), &Default::default());
        let (state, weights) = (optimizer.state_dict(), first.detach());
        // The state is a value: what comes after does not change it.
        train(&first, &mut *optimizer, 4..6);

        for state in [state, crate::io::parse(&saved.unwrap()).unwrap()] {
            let second = weights.parameter();
            let (_, mut optimizer) = all(std::slice::from_ref(&second)).remove(k);
            optimizer.load_state_dict(&state).unwrap();
            train(&second, &mut *optimizer, 4..10);
            assert_eq!(bits(&second), bits(&whole), "{name}");
        }
    }
}

#[test]
fn states_that_do_not_fit_change_nothing() {
    let p = numbers(2, 3, 0).parameter();
    let mut adam = Adam::new(vec![p.clone()], 0.1);
    train(&p, &mut adam, 0..2);
    let good = adam.state_dict();
    let names: Vec<&str> = good.keys().map(String::as_str).collect();
    assert_eq!(names, ["lr", "state.0.exp_avg", "state.0.exp_avg_sq", "state.0.step"]);
    let changed = |key: &str, value: Option<Tensor>| {
        let mut state = good.clone();
        match value {
            Some(value) => state.insert(key.into(), value),
            None => state.remove(key),
        };
        state
    };
    let cases = [
        (changed("lr", None), "lacks `lr`"),
        (changed("lr", Some(Tensor::scalar(-1.0f64))), "the learning rate must be 0 or more"),
        (changed("lr", Some(Tensor::scalar(1.0f32))), "must be one f64"),
        (changed("state.0.exp_avg", None), "lacks `state.0.exp_avg`"),
        (changed("state.0.exp_avg", Some(Tensor::zeros([3, 2]))), "[3, 2]"),
        (changed("state.0.step", Some(Tensor::scalar(0i64))), "not 1 or more"),
        (changed("state.0.step", None), "other options"),
        (changed("state.1.step", Some(Tensor::scalar(1i64))), "there are 1 parameters"),
        (changed("state.0.max_exp_avg_sq", Some(Tensor::zeros([2, 3]))), "other options"),
        (changed("extra", Some(Tensor::zeros(1))), "`extra`"),
    ];
    for (state, word) in cases {
        let text = adam.load_state_dict(&state).unwrap_err().to_string();
        assert!(text.starts_with("Adam: ") && text.contains(word), "{text}");
        assert_eq!(adam.state_dict().len(), good.len());
    }
    adam.load_state_dict(&good).unwrap();
}

#[test]
fn groups_have_settings_of_their_own() {
    let [a, b, c] = [0, 1, 2].map(|_| Tensor::from([1.0f64]).parameter());
    let groups = [
        Group::new(vec![a.clone()]),
        Group::new(vec![b.clone()]).weight_decay(0.0),
        Group::new(vec![c.clone()])
            .lr(0.2)
            .options(SgdOptions { momentum: 0.9, ..SgdOptions::default() }),
    ];
    let options = SgdOptions { weight_decay: 0.5, ..SgdOptions::default() };
    let mut sgd = Sgd::try_with_groups(groups, 0.1, options).unwrap();
    for _ in 0..2 {
        sgd.zero_grad();
        (&a + &b + &c).sum_all().backward();
        sgd.step().unwrap();
        sgd.set_lr(0.05).unwrap();
    }
    let first: f64 = 1.0 - 0.1 * 1.5;
    assert!((a.item() - (first - 0.05 * (1.0 + 0.5 * first))).abs() < 1e-15);
    assert!((b.item() - (1.0 - 0.1 - 0.05)).abs() < 1e-15);
    assert!((c.item() - (1.0 - 0.2 - 0.1 * 1.9)).abs() < 1e-15);
    assert_eq!(sgd.group_lrs(), [0.05, 0.05, 0.1]);
}

#[test]
fn tied_parameters_step_once_and_in_one_group() {
    let w = Tensor::from([1.0f64]).parameter();
    w.set_grad(Some(Tensor::from([1.0f64]))).unwrap();
    let mut sgd = Sgd::new(vec![w.clone(), w.clone()], 0.25);
    sgd.step().unwrap();
    assert_eq!((w.item(), sgd.parameters().len()), (0.75, 1));
    let group = || Group::new(vec![w.clone()]);
    let text = Sgd::try_with_groups([group(), group()], 0.1, SgdOptions::default()).unwrap_err();
    assert!(text.to_string().contains("in two groups"), "{text}");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let run = |threads: usize, k: usize| {
        let parameters = [numbers(3, SHARED / 2 + 5, 1), numbers(300, 500, 2), numbers(5, 7, 3)];
        let parameters = parameters.map(|p| p.parameter());
        with_num_threads(threads, || {
            let (_, mut optimizer) = all(&parameters).remove(k);
            for i in 0..2 {
                for p in &parameters {
                    p.set_grad(Some(numbers(p.size(0), p.size(1), i + 4))).unwrap();
                }
                crate::optim::clip_grad_norm(&parameters, 1.0, 2.0).unwrap();
                optimizer.step().unwrap();
            }
        });
        parameters.map(|p| bits(&p))
    };
    // Not Muon, which would multiply large matrices.
    for k in 0..6 {
        assert!(run(1, k) == run(3, k), "optimizer {k}");
    }
}

#[test]
fn large_parameters_step_as_small_ones_do() {
    // Over the size from which threads share a parameter; the small ones are its rows.
    let (rows, columns) = (3, SHARED / 2 + 5);
    for k in 0..6 {
        let large = numbers(rows, columns, 1).parameter();
        let small: Vec<Tensor> =
            (0..rows).map(|i| large.detach().narrow(0, i, 1).parameter()).collect();
        let (name, mut one) = all(std::slice::from_ref(&large)).remove(k);
        let (_, mut many) = all(&small).remove(k);
        for i in 0..2 {
            let g = numbers(rows, columns, i + 2);
            for (i, p) in small.iter().enumerate() {
                p.set_grad(Some(g.narrow(0, i, 1))).unwrap();
            }
            large.set_grad(Some(g)).unwrap();
            one.step().unwrap();
            many.step().unwrap();
        }
        for (i, p) in small.iter().enumerate() {
            assert_eq!(bits(p), bits(&large.detach().narrow(0, i, 1)), "{name}");
        }
    }
}

#[test]
fn steps_are_in_place() {
    let p = numbers(5, 7, 0).parameter();
    let address = |t: &Tensor| t.value_ref().slice::<f32>().unwrap().as_ptr().addr();
    let mut adamw = AdamW::new(vec![p.clone()], 0.1);
    train(&p, &mut adamw, 0..1);
    let before = (address(&p), address(&adamw.state_dict()["state.0.exp_avg"]));
    train(&p, &mut adamw, 1..4);
    assert_eq!((address(&p), address(&adamw.state_dict()["state.0.exp_avg"])), before);
}

#[test]
fn rules_side_by_side_step_as_they_do_alone() {
    let matrix = || numbers(3, 4, 1).parameter();
    let row = || numbers(1, 4, 2).parameter();
    let (w, b) = (matrix(), row());
    let rest = Group::new(vec![b.clone()]).lr(0.003);
    let mut both = Muon::new(vec![w.clone()], 0.02).and(rest, AdamWOptions::default());
    let (v, c) = (matrix(), row());
    let mut muon = Muon::new(vec![v.clone()], 0.02);
    let mut adam_w = AdamW::new(vec![c.clone()], 0.003);
    for step in 0..6 {
        let loss = |w: &Tensor, b: &Tensor| (w.tanh() * b).square().sum_all();
        loss(&w, &b).backward();
        loss(&v, &c).backward();
        both.step().unwrap();
        muon.step().unwrap();
        adam_w.step().unwrap();
        [&w, &b, &v, &c].into_iter().for_each(Tensor::zero_grad);
        assert_eq!((w.to_vec::<f32>(), b.to_vec::<f32>()), (v.to_vec(), c.to_vec()), "{step}");
        // A schedule moves both.
        both.set_lr(0.02 / (step + 2) as f64).unwrap();
        muon.set_lr(0.02 / (step + 2) as f64).unwrap();
        adam_w.set_lr(0.003 / (step + 2) as f64).unwrap();
    }
    // The state is that of both rules.
    let kept = both.state_dict();
    assert!(kept.contains_key("state.0.momentum_buffer") && kept.contains_key("state.1.exp_avg"));
    let rest = Group::new(vec![b.clone()]).lr(0.003);
    let mut again = Muon::new(vec![w.clone()], 0.02).and(rest, AdamWOptions::default());
    again.load_state_dict(&kept).unwrap();
    assert_eq!(again.group_lrs(), both.group_lrs());
    let twice =
        Muon::new(vec![w.clone()], 0.02).try_and(Group::new(vec![w]), AdamWOptions::default());
    assert!(twice.unwrap_err().to_string().contains("in two groups"));
}

#[test]
fn impossible_options_are_errors() {
    let p = || vec![numbers(2, 2, 0).parameter()];
    let betas = (1.0, 0.9);
    let texts = [
        Adam::try_with_options(p(), 0.1, AdamOptions { betas, ..AdamOptions::default() }).map(drop),
        AdamW::try_with_options(
            p(),
            0.1,
            AdamWOptions { weight_decay: -1.0, ..AdamWOptions::default() },
        )
        .map(drop),
        Adagrad::try_with_options(
            p(),
            0.1,
            AdagradOptions { eps: f64::NAN, ..AdagradOptions::default() },
        )
        .map(drop),
        RmsProp::try_with_options(
            p(),
            0.1,
            RmsPropOptions { alpha: -0.5, ..RmsPropOptions::default() },
        )
        .map(drop),
        Lion::try_with_options(p(), 0.1, LionOptions { betas, ..LionOptions::default() }).map(drop),
        Muon::try_with_options(p(), 0.1, MuonOptions { momentum: -1.0, ..MuonOptions::default() })
            .map(drop),
        Muon::try_new(vec![Tensor::from([1.0f32]).parameter()], 0.1).map(drop),
        AdamW::try_with_groups([Group::new(p()).lr(0.0)], 0.1, AdamWOptions::default()).map(drop),
        AdamW::try_with_groups([], 0.1, AdamWOptions::default()).map(drop),
    ];
    let words = [
        "Adam: betas.0 must",
        "AdamW: weight_decay must",
        "Adagrad: eps must",
        "RmsProp: alpha must",
        "Lion: betas.0 must",
        "Muon: momentum must",
        "to an AdamW",
        "AdamW: the learning rate",
        "AdamW: there are no parameters",
    ];
    for (result, word) in texts.into_iter().zip(words) {
        let text = result.unwrap_err().to_string();
        assert!(text.contains(word), "{text} for {word}");
    }
}
