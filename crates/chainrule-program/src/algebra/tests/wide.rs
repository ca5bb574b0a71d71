//! Everything else: all ops, random graphs, long chains, large models.

use std::time::{Duration, Instant};

use super::*;
use crate::ops::{Sample, table};
use crate::tests::{expressions, with_gradients};

fn simplified(sample: &Sample) -> Result<f64, String> {
    let text = |e: Error| e.to_string();
    let names: Vec<String> = (0..sample.inputs.len()).map(|i| format!("x{i}")).collect();
    let arguments = names.iter().map(String::as_str).zip(&sample.inputs);
    let program = Program::trace(arguments, |x| with_gradients(&*sample.call, x)).map_err(text)?;
    let simple = program.simplify_with(&Simplify::new().checked(3)).map_err(text)?;
    let arguments: Vec<&Tensor> = sample.inputs.iter().collect();
    let want = program.run(&arguments).map_err(text)?;
    let got = simple.program.run(&arguments).map_err(text)?;
    let apart = difference(&got, &want);
    match apart < 1e-12 {
        true => Ok(apart),
        false => Err(format!("{apart}\n{}\n{}", program.optimized(), simple.program)),
    }
}

#[test]
fn every_op_is_the_same_when_simplified() {
    let mut failures = Vec::new();
    for entry in table() {
        for sample in (entry.samples)(&mut Generator::manual_seed(1)) {
            match simplified(&sample) {
                Err(why) if !why.contains("inside a trace") => {
                    failures.push(format!("{} ({}): {why}", entry.name, sample.note));
                }
                _ => {}
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn random_graphs_are_the_same_when_simplified() {
    let samples = expressions::usable();
    let mut failures = Vec::new();
    for seed in 0..60 {
        let g = &mut Generator::manual_seed(1000 + seed);
        let steps = expressions::plan(&samples, 2, g);
        let x = [Tensor::randn([3, 4], DType::F64, g), Tensor::randn([3, 4], DType::F64, g)];
        let f = |x: &[Tensor]| with_gradients(|x| expressions::evaluate(&steps, x), x);
        let program = Program::trace(["a", "b"].into_iter().zip(&x), f).unwrap();
        let simple = program.simplified().unwrap().program;
        let arguments: Vec<&Tensor> = x.iter().collect();
        let (got, want) = (simple.run(&arguments).unwrap(), program.run(&arguments).unwrap());
        let apart = difference(&got, &want);
        if apart > 1e-11 {
            failures.push(format!("seed {seed}: {apart}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn long_chains_take_no_stack_and_little_time() {
    let steps: [fn(&Tensor, &Tensor) -> Tensor; 4] =
        [|y, _| y.tanh(), |y, x| y + x, |y, x| y * x, |y, x| (y * 0.5 + x).sigmoid()];
    for step in steps {
        let x = Tensor::from([0.5f64, -0.25]).parameter();
        let program = Program::trace([], |_| {
            let mut y = x.clone() * 1.0;
            for _ in 0..250 {
                y = step(&y, &x);
            }
            y.sum_all().backward();
            Ok(vec![x.grad().unwrap()])
        });
        let program = program.unwrap();
        let start = Instant::now();
        let simple = program.simplified().unwrap().program;
        println!("{} to {} in {:?}", program.len(), simple.len(), start.elapsed());
        assert!(start.elapsed() < Duration::from_secs(60));
        assert!(difference(&simple.run(&[]).unwrap(), &program.run(&[]).unwrap()) < 1e-9);
    }
}

#[test]
fn a_transformer_is_simplified_in_little_time() {
    use crate::nn::{Layer, Module};
    use crate::optim::AdamW;
    let g = &mut Generator::manual_seed(1);
    let config = chainrule_lab::models::GptConfig {
        symbols: 11,
        context: 8,
        layers: 4,
        heads: 2,
        width: 8,
        dropout: 0.0,
    };
    let model = chainrule_lab::models::Gpt::new(config, g);
    let mut adamw = AdamW::new(model.parameters(), 0.01);
    let x = Tensor::randint(0, 11, [2, 8], g);
    let loss = |a: &[Tensor]| {
        let logits = model.try_forward(&a[0])?;
        logits.try_reshape([16, 11])?.try_cross_entropy(&a[0].try_reshape([16])?)
    };
    let mut step = crate::compile(&model, &mut adamw, ["x"], loss);
    let program = step.trace(&[&x]).unwrap();
    let start = Instant::now();
    let simple = program.simplified().unwrap();
    println!("{} to {} in {:?}", program.len(), simple.program.len(), start.elapsed());
}
