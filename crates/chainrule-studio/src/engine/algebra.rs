//! A backward pass as a program, and what the algebra makes of it, rewrite by rewrite.

use chainrule::program::{Cost, Explanation, Phase, Program, rules};
use chainrule::{DType, Generator, Tensor};
use chainrule_core::tensor::value::Meta;
use chainrule_lab::formulas::formula;
use serde_json::{Value, json};

use super::json::number;
use super::tex;
use crate::language::fault::{Fault, Outcome};
use crate::language::interpreter::Interpreter;
use crate::language::value::Data;

/// Runs of each program whose times are compared.
#[cfg(not(target_arch = "wasm32"))]
const RUNS: u32 = 20;

/// A program and the arguments that it is run with.
pub struct Traced {
    title: String,
    program: Program,
    arguments: Vec<Tensor>,
}

impl Traced {
    /// A function that `explain` knows.
    pub fn named(name: &str) -> Outcome<Traced> {
        let formula = formula(name)?;
        let program = formula.trace()?;
        let g = &mut Generator::manual_seed(1);
        let argument = |meta: Meta| match meta.dtype {
            DType::I64 => Tensor::try_randint(0, 10, meta.shape, g),
            dtype => Tensor::try_rand(meta.shape, dtype, g),
        };
        let metas = program.arguments().iter().map(|id| program.infos()[id.index()].meta);
        let arguments = metas.map(argument).collect::<chainrule::Result<_>>()?;
        Ok(Traced { title: format!("{name}: {}", formula.what), program, arguments })
    }

    /// A program of the language, with the gradients of its leaves.
    pub fn of(text: &str, seed: u64) -> Outcome<Traced> {
        let mut first = Interpreter::new(seed);
        first.run(text)?;
        let memory = first.memory().clone();
        if memory.leaves.is_empty() {
            return Err(Fault::request("the program has no leaf: `x = leaf(...)`"));
        }
        // Draws are arguments, so that they are not folded into the program as constants.
        let draws = memory.draws.clone();
        let names: Vec<String> = (1..=draws.len()).map(|i| format!("draw{i}")).collect();
        let mut failed = None;
        let program = Program::trace(names.iter().map(String::as_str).zip(&draws), |arguments| {
            let mut memory = memory.clone();
            memory.draws = arguments.to_vec();
            let mut run = Interpreter::new(seed).after(memory.clone());
            if let Err(fault) = run.run(text) {
                failed = Some(fault);
            }
            let Some(Data::Tensor(result)) = run.result() else { return Ok(Vec::new()) };
            let loss =
                if result.numel() == 1 { result.clone() } else { result.try_sum(.., false)? };
            loss.try_backward()?;
            let mut out = vec![loss];
            out.extend(memory.leaves.iter().filter_map(Tensor::grad));
            Ok(out)
        });
        memory.leaves.iter().for_each(Tensor::zero_grad);
        match failed {
            Some(fault) => Err(fault),
            None => Ok(Traced { title: "program".into(), program: program?, arguments: draws }),
        }
    }

    fn results(&self, of: &Program) -> Outcome<Vec<Tensor>> {
        Ok(of.run(&self.arguments.iter().collect::<Vec<_>>())?)
    }

    fn explained(&self) -> Outcome<Explanation> {
        Ok(self.program.explain(self.title.clone())?)
    }

    /// The time of a run; none in a page, whose clock is not the library's.
    #[cfg(not(target_arch = "wasm32"))]
    fn microseconds(&self, program: &Program) -> Outcome<Option<f64>> {
        self.results(program)?;
        let start = std::time::Instant::now();
        for _ in 0..RUNS {
            self.results(program)?;
        }
        Ok(Some(start.elapsed().as_secs_f64() * 1e6 / f64::from(RUNS)))
    }

    #[cfg(target_arch = "wasm32")]
    fn microseconds(&self, _: &Program) -> Outcome<Option<f64>> {
        Ok(None)
    }

    /// The answer to `algebra`: a frame for each rewrite.
    pub fn film(&self) -> Outcome<Value> {
        let explained = self.explained()?;
        let statement =
            |name: &str| rules().iter().find(|rule| rule.name == name).map(|r| r.statement);
        let none = |_: &str| None;
        let frames: Vec<Value> = explained
            .simplified
            .steps
            .iter()
            .map(|step| {
                json!({
                    "rule": step.rule,
                    "words": statement(step.rule).unwrap_or(step.rule),
                    "at": step.at,
                    "before": step.before,
                    "after": step.after,
                    "before_tex": tex::equation(&step.before, &none),
                    "after_tex": tex::equation(&step.after, &none),
                    "saved": step.saved,
                })
            })
            .collect();
        let backward = |program: &Program| -> Vec<String> {
            program
                .lines()
                .filter(|line| line.phase() == Phase::Backward)
                .map(|line| code(&line))
                .collect()
        };
        let result = backward(&explained.simplified.program);
        let result_tex: Vec<String> =
            result.iter().map(|line| tex::equation(line, &none)).collect();
        let formulas = in_one_line(&explained);
        let formulas: Vec<String> =
            formulas.iter().map(|line| tex::equation(line, &none)).collect();
        let (plain, simple) =
            (self.results(&self.program)?, self.results(&explained.simplified.program)?);
        Ok(json!({
            "title": self.title,
            "frames": frames,
            "traced": backward(&explained.traced),
            "optimized": backward(&explained.optimized),
            "result": result,
            "result_tex": result_tex,
            "formulas_tex": formulas,
            "difference": number(apart(&plain, &simple)),
            "cost": {
                "traced": cost(explained.traced.cost()),
                "simplified": cost(explained.simplified.program.cost()),
            },
        }))
    }

    /// The answer to `program`: the listings, what the program costs, and how long it took.
    pub fn listings(&self) -> Outcome<Value> {
        let explained = self.explained()?;
        let fused = explained.simplified.program.fused();
        let memory = fused.memory();
        let time = |program: &Program| self.microseconds(program);
        let plain = self.results(&self.program)?;
        Ok(json!({
            "title": self.title,
            "before": {"lines": lines(&self.program), "cost": cost(self.program.cost()), "microseconds": time(&self.program)?},
            "after": {
                "lines": lines(&explained.simplified.program),
                "cost": cost(explained.simplified.program.cost()),
                "microseconds": time(&explained.simplified.program)?,
            },
            "fused": {"text": fused.to_string(), "microseconds": time(&fused)?, "difference": number(apart(&plain, &self.results(&fused)?))},
            "arena": {"bytes": memory.planned, "lower_bound": memory.lower_bound},
        }))
    }
}

/// Each output as its final formula, `name = formula`, as far as a rule rewrote it.
fn in_one_line(of: &Explanation) -> Vec<String> {
    let last = |name: &str| of.simplified.steps.iter().rfind(|step| step.at == name);
    let outputs = of.simplified.program.outputs();
    outputs.filter_map(|name| Some(format!("{name} = {}", last(name)?.after))).collect()
}

fn code(line: &chainrule::program::Line<'_>) -> String {
    let code = line.code();
    match code.split_once(" = ") {
        Some(_) => code,
        None => format!("{} = {code}", line.name()),
    }
}

fn lines(program: &Program) -> Vec<Value> {
    let row = |line: chainrule::program::Line<'_>| {
        json!({
            "name": line.name(),
            "op": line.op(),
            "code": code(&line),
            "inputs": line.inputs(),
            "shape": line.shape().to_vec(),
            "dtype": line.dtype().name(),
            "phase": line.phase().name(),
            "rule": line.rule(),
        })
    };
    program.lines().map(row).collect()
}

fn cost(of: Cost) -> Value {
    json!({"instructions": of.instructions, "flops": of.flops, "bytes": of.bytes})
}

/// The largest difference of two lists of results, relative to the largest element of each.
fn apart(a: &[Tensor], b: &[Tensor]) -> f64 {
    let pair = |(a, b): (&Tensor, &Tensor)| {
        let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
        let size = a.iter().fold(1e-300, |m: f64, x| m.max(x.abs()));
        let apart = a.iter().zip(&b).map(|(a, b)| if a == b { 0.0 } else { (a - b).abs() });
        apart.fold(0.0, |m: f64, x| if x > m || x.is_nan() { x } else { m }) / size
    };
    a.iter().zip(b).map(pair).fold(0.0, |m: f64, x| if x > m || x.is_nan() { x } else { m })
}
