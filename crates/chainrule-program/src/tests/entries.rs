//! Every op of the table, traced on one set of numbers and run on another.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::ops::{Sample, table};

/// Ops whose result has a shape or a value that depends on the elements, so that a trace is an
/// error.
const BY_ELEMENTS: &[&str] = &["histogram", "unique"];

fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("x{i}")).collect()
}

/// Traces `sample` and runs the program on the numbers of `other`. `Err` says what is wrong.
fn check(sample: &Sample, other: &Sample) -> Result<(), String> {
    let names = names(sample.inputs.len());
    let arguments = names.iter().map(String::as_str).zip(&sample.inputs);
    let program = Program::trace(arguments, |x| with_gradients(&*sample.call, x));
    let program = program.map_err(|e| e.to_string())?;
    let like =
        |a: &[Tensor], b: &[Tensor]| a.iter().map(Tensor::meta).eq(b.iter().map(Tensor::meta));
    for inputs in [&sample.inputs, &other.inputs] {
        if !like(inputs, &sample.inputs) {
            continue;
        }
        let want = with_gradients(&*sample.call, inputs).map_err(|e| e.to_string())?;
        let arguments: Vec<&Tensor> = inputs.iter().collect();
        for (what, program) in [("as traced", &program), ("optimized", &program.optimized())] {
            let got = program.run(&arguments).map_err(|e| format!("{what}: {e}"))?;
            if let Some(why) = difference(&got, &want) {
                return Err(format!("{what}: {why}\n{program}"));
            }
        }
        for fused in [program.fused(), program.optimized().fused()] {
            // The second run finds the memory as the first one left it.
            for _ in 0..2 {
                let got = fused.run(&arguments).map_err(|e| format!("fused: {e}"))?;
                if let Some(why) = distance(&got, &want, 1e-12) {
                    return Err(format!("fused: {why}\n{fused}"));
                }
            }
        }
    }
    Ok(())
}

#[test]
fn every_op_is_the_same_in_a_program() {
    let mut failures = Vec::new();
    for entry in table() {
        let samples = (entry.samples)(&mut Generator::manual_seed(1));
        let others = (entry.samples)(&mut Generator::manual_seed(2));
        for (sample, other) in samples.iter().zip(&others) {
            let outcome = catch_unwind(AssertUnwindSafe(|| check(sample, other)));
            let outcome = outcome.unwrap_or_else(|p| {
                let text = p.downcast_ref::<String>().cloned();
                Err(format!("panicked: {}", text.unwrap_or_default()))
            });
            let expected = BY_ELEMENTS.contains(&entry.name);
            match outcome {
                Err(why) if expected && why.contains("inside a trace") => {}
                Ok(()) if !expected => {}
                Ok(()) => failures.push(format!("{}: can be traced after all", entry.name)),
                Err(why) => failures.push(format!("{} ({}): {why}", entry.name, sample.note)),
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
