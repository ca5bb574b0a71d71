//! Random graphs of the table's ops.

use super::*;
use crate::ops::{Sample, table};

/// Number of graphs; `CHAINRULE_EXPRESSIONS` sets another number.
const GRAPHS: u64 = 300;

fn below(n: usize, g: &mut Generator) -> usize {
    g.random_u32() as usize % n
}

/// One step of a graph: a sample, and for each of its float inputs an earlier result and the places
/// of the elements that move it.
pub(crate) struct SampleUse<'a> {
    sample: &'a Sample,
    moves: Vec<(usize, Tensor)>,
}

/// Samples that any numbers will do for.
pub(crate) fn usable() -> Vec<Sample> {
    let mut all = Vec::new();
    for entry in table().filter(|e| !e.gradient.is_empty()) {
        let mut samples = (entry.samples)(&mut Generator::manual_seed(5));
        samples.retain(|s| {
            let floats = s.inputs.iter().filter(|x| x.dtype().is_float());
            let wide = floats.clone().all(|x| x.dtype() == DType::F64 && x.numel() > 0);
            let small = |y: Tensor| (1..=400).contains(&y.numel());
            floats.count() > 0 && wide && (s.call)(&s.inputs).is_ok_and(small)
        });
        all.extend(samples);
    }
    all
}

/// The steps of the graph of a seed, on this many first tensors of 12 elements.
pub(crate) fn plan<'a>(
    samples: &'a [Sample],
    leaves: usize,
    g: &mut Generator,
) -> Vec<SampleUse<'a>> {
    let mut sizes = vec![12; leaves];
    let mut steps = Vec::new();
    for _ in 0..1 + below(20, g) {
        let sample = &samples[below(samples.len(), g)];
        let floats = sample.inputs.iter().filter(|x| x.dtype().is_float());
        let moves = floats.map(|x| {
            let from = below(sizes.len(), g);
            let places: Vec<i64> = (0..x.numel()).map(|_| below(sizes[from], g) as i64).collect();
            (from, Tensor::from(places))
        });
        let moves = moves.collect();
        sizes.push((sample.call)(&sample.inputs).map_or(1, |y| y.numel()));
        steps.push(SampleUse { sample, moves });
    }
    steps
}

pub(crate) fn evaluate(
    steps: &[SampleUse<'_>],
    leaves: &[Tensor],
) -> chainrule_core::Result<Tensor> {
    let mut results = leaves.to_vec();
    for step in steps {
        let mut moves = step.moves.iter();
        let mut inputs = Vec::new();
        for x in &step.sample.inputs {
            if !x.dtype().is_float() {
                inputs.push(x.clone());
                continue;
            }
            let (from, places) = moves.next().expect("one for each float input");
            let picked = results[*from].try_flatten(0, -1)?.try_index_select(0, places)?;
            inputs.push(x.try_add(&picked.try_reshape(x.shape())?.try_tanh()?.try_mul(0.02)?)?);
        }
        results.push((step.sample.call)(&inputs)?);
    }
    let last: Vec<Tensor> = results.iter().rev().take(3).map(|x| x.flatten(0, -1)).collect();
    Tensor::try_cat(&last.iter().collect::<Vec<_>>(), 0)
}

fn check(samples: &[Sample], seed: u64) -> Result<(), String> {
    let g = &mut Generator::manual_seed(seed);
    let n = 1 + below(3, g);
    let steps = plan(samples, n, g);
    let mut draw =
        || -> Vec<Tensor> { (0..n).map(|_| Tensor::randn([3, 4], DType::F64, g)).collect() };
    let (first, second) = (draw(), draw());
    let f = |x: &[Tensor]| with_gradients(|x| evaluate(&steps, x), x);
    let names = ["a", "b", "c"];
    let text = |e: chainrule_core::Error| e.to_string();
    let traced = Program::trace(names.into_iter().zip(&first), f);
    // Some ops refuse what others may give, a NaN or a singular matrix: then both modes must.
    if f(&first).is_err() {
        return traced.map_or(Ok(()), |_| Err("only the eager mode refuses it".to_string()));
    }
    let program = traced.map_err(text)?;
    let optimized = program.optimized();
    let fused = optimized.fused();
    for leaves in [&first, &second] {
        let Ok(want) = f(leaves) else {
            match program.run(&leaves.iter().collect::<Vec<_>>()) {
                Ok(_) => return Err("only the eager mode refuses other numbers".to_string()),
                Err(_) => continue,
            }
        };
        for program in [&program, &optimized] {
            let got = program.run(&leaves.iter().collect::<Vec<_>>()).map_err(text)?;
            if let Some(why) = difference(&got, &want) {
                return Err(format!("{why}\n{program}"));
            }
        }
        let got = fused.run(&leaves.iter().collect::<Vec<_>>()).map_err(text)?;
        if let Some(why) = distance(&got, &want, 1e-12) {
            return Err(format!("fused: {why}\n{fused}"));
        }
    }
    Ok(())
}

#[test]
fn random_graphs_are_the_same_in_a_program() {
    let count = std::env::var("CHAINRULE_EXPRESSIONS").ok().and_then(|n| n.parse().ok());
    let samples = usable();
    let mut failures = Vec::new();
    for seed in 0..count.unwrap_or(GRAPHS) {
        if let Err(why) = check(&samples, seed) {
            failures.push(format!("seed {seed}: {why}"));
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
