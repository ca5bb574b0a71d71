//! Steps with all that trainings have: clipped gradients, averaged weights, dropout of attention
//! weights.

use super::*;
use crate::nn::{Layer, Module};
use crate::optim::{AdamW, Ema, Optimizer, clip_finite_grad_norm, clip_grad_norm, clip_grad_value};
use chainrule_lab::models::{Gpt, GptConfig};

/// A small GPT with dropout, its optimizer, and the average of its weights.
struct Training {
    model: Gpt,
    adamw: AdamW,
    ema: Ema,
}

impl Training {
    fn new() -> Training {
        let config =
            GptConfig { symbols: 11, context: 8, layers: 2, heads: 2, width: 16, dropout: 0.3 };
        let model = Gpt::new(config, &mut Generator::manual_seed(5));
        let adamw = AdamW::new(model.parameters(), 0.01);
        let ema = Ema::new(model.parameters(), 0.9).unwrap().warm_up();
        Training { model, adamw, ema }
    }

    fn step(&mut self, batch: &[Tensor]) -> chainrule_core::Result<Vec<Tensor>> {
        let logits = self.model.try_forward(&batch[0])?.try_reshape([-1, 11])?;
        let loss = logits.try_cross_entropy(&batch[1].try_flatten(0, -1)?)?;
        loss.try_backward()?;
        clip_grad_norm(&self.model.parameters(), 0.5, 2.0)?;
        self.adamw.step()?;
        self.ema.update()?;
        Ok(vec![loss])
    }

    fn state(&self) -> Vec<Vec<u64>> {
        let states = [self.model.state_dict(), self.adamw.state_dict(), self.ema.state_dict()];
        states.iter().flat_map(|s| s.values()).map(bits).collect()
    }
}

fn batch(g: &mut Generator) -> [Tensor; 2] {
    [Tensor::randint(0, 11, [3, 8], g), Tensor::randint(0, 11, [3, 8], g)]
}

#[test]
fn a_gpt_with_dropout_clipping_and_averages_is_that_of_the_eager_mode() {
    let (mut one, mut two) = (Training::new(), Training::new());
    let g = &mut Generator::manual_seed(6);
    let [x, y] = batch(g);
    let before = two.state();
    let program = Program::trace([("x", &x), ("y", &y)], |b| two.step(b)).unwrap();
    assert!(two.state() == before, "a trace changes nothing");
    let text = program.to_string();
    assert!(text.contains("grad_norm = grad_norm(") && text.contains("clip_factor"), "{text}");
    assert!(text.contains("state average_") && text.contains("= seed(shape=[])"), "{text}");
    let program = program.optimized();
    for i in 0..6 {
        let [x, y] = batch(g);
        one.adamw.zero_grad();
        let want = one.step(&[x.clone(), y.clone()]).unwrap();
        // The two can take turns.
        let got = match i {
            3 => {
                two.adamw.zero_grad();
                let out = two.step(&[x, y]).unwrap();
                two.adamw.zero_grad();
                out
            }
            _ => program.run(&[&x, &y]).unwrap(),
        };
        assert_eq!(difference(&got, &want), None, "step {i}");
        assert!(one.state() == two.state(), "step {i}");
    }
    // Each run drops other weights.
    let loss = |p: &Program| p.run_with(&[&x, &y], &["grad_norm"]).unwrap();
    let (first, second) = (loss(&program), loss(&program));
    assert_ne!(first[0].item(), second[0].item());
    assert!(first[1].item() > 0.0);
}

/// Clips gradients of these parameters.
type Clip = fn(&[Tensor]) -> chainrule_core::Result<()>;

#[test]
fn every_way_to_clip_is_that_of_the_eager_mode() {
    let ways: [Clip; 7] = [
        |p| clip_grad_norm(p, 0.1, 2.0).map(drop),
        |p| clip_grad_norm(p, 1e9, 2.0).map(drop),
        |p| clip_grad_norm(p, 0.3, 1.0).map(drop),
        |p| clip_grad_norm(p, 0.3, f64::INFINITY).map(drop),
        |p| clip_grad_norm(p, 0.0, 3.0).map(drop),
        |p| clip_finite_grad_norm(p, 0.3, 2.0).map(drop),
        |p| clip_grad_value(p, 0.2),
    ];
    let g = &mut Generator::manual_seed(1);
    let a = Tensor::randn([3, 4], DType::F32, g).parameter();
    let b = Tensor::randn([4], DType::F64, g).parameter();
    let all = [a.clone(), b.clone(), a.clone()];
    for (k, clip) in ways.into_iter().enumerate() {
        let f = |x: &[Tensor]| {
            (&a * &x[0]).try_tanh()?.try_sum_all()?.try_backward()?;
            (&b * &x[1]).try_exp()?.try_sum_all()?.try_backward()?;
            clip(&all)?;
            Ok(vec![a.try_grad()?, b.try_grad()?])
        };
        let zero = || all.iter().for_each(Tensor::zero_grad);
        let mut draw = || [Tensor::randn([3, 4], DType::F32, g), Tensor::randn([4], DType::F64, g)];
        let (first, second) = (draw(), draw());
        let program = Program::trace([("x", &first[0]), ("y", &first[1])], f).unwrap();
        assert!(a.grad().is_none());
        for [x, y] in [
            first,
            second,
            [Tensor::full([3, 4], f64::NAN, DType::F32), Tensor::ones([4]).to_dtype(DType::F64)],
        ] {
            let got = program.optimized().run(&[&x, &y]).map_err(|e| e.to_string());
            let want = f(&[x, y]).map_err(|e| e.to_string());
            zero();
            match (got, want) {
                (Ok(got), Ok(want)) => assert_eq!(difference(&got, &want), None, "way {k}"),
                (Err(got), Err(want)) => {
                    assert!(k == 5 && got.contains("norm of the gradients is NaN"), "{got} {want}");
                }
                (got, want) => panic!("way {k}: {got:?} for {want:?}"),
            }
        }
    }
}

#[test]
fn clipping_gradients_from_before_the_trace_is_an_error() {
    let w = Tensor::from([1.0f32]).parameter();
    (&w * 2.0).sum_all().backward();
    let x = Tensor::from([1.0f32]);
    let clip = |_: &[Tensor]| clip_grad_norm(std::slice::from_ref(&w), 0.1, 2.0).map(|_| vec![]);
    let text = Program::trace([("x", &x)], clip).unwrap_err().to_string();
    assert!(text.contains("zero_grad"), "{text}");
    assert_eq!(w.grad().unwrap().item(), 2.0);
}

#[test]
fn an_average_without_warm_up_is_that_of_the_eager_mode() {
    for dtype in [DType::F32, DType::F64] {
        let start = Tensor::randn([5], dtype, &mut Generator::manual_seed(1));
        let (one, two) = (start.parameter(), start.parameter());
        let mut first = Ema::new(vec![one.clone()], 0.99).unwrap();
        let mut second = Ema::new(vec![two.clone()], 0.99).unwrap();
        let x = Tensor::randn([5], dtype, &mut Generator::manual_seed(2));
        let program = Program::trace([("x", &x)], |x| {
            two.try_set(&two.detach().try_add(&x[0])?)?;
            second.update()?;
            Ok(vec![])
        });
        let program = program.unwrap();
        for _ in 0..3 {
            one.set(&(one.detach() + &x));
            first.update().unwrap();
            program.run(&[&x]).unwrap();
            assert_eq!(bits(&first.averages()[0]), bits(&second.averages()[0]));
        }
        assert_eq!(second.state_dict()["updates"].item(), 3.0);
    }
}
