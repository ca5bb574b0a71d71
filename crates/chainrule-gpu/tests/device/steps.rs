//! Whole training steps as kernels, compiled as C++, beside the same steps on the processor.

use chainrule_gpu::{Dialect, KernelModule};

use crate::common::{Case, cells, check, given};
use chainrule::program::{Program, Simplify};
use chainrule::{DType, Generator, Tensor};
use chainrule_lab::formulas::formula;

/// Arguments of a program: random numbers, and indices below 5.
fn arguments(program: &Program) -> Vec<Tensor> {
    let mut g = Generator::manual_seed(3);
    let one = |id: &chainrule_program::Id| {
        let meta = program.infos()[id.index()].meta;
        match meta.dtype {
            DType::I64 => Tensor::randint(0, 5, meta.shape, &mut g),
            dtype => Tensor::randn(meta.shape, dtype, &mut g),
        }
    };
    program.arguments().iter().map(one).collect()
}

pub fn case(name: &str, dialect: Dialect) -> Case {
    case_of(name, &|program| KernelModule::new(program, dialect).unwrap())
}

/// The case with the kernels that are made of its program.
pub fn case_of(name: &str, kernels: &dyn Fn(&Program) -> KernelModule) -> Case {
    let traced = formula(name).unwrap().trace().unwrap();
    let program = traced.explain_with(name, &Simplify::new()).unwrap().simplified.program;
    let module = kernels(&program);
    let inputs = arguments(&program);
    let given = given(&module, &inputs, &cells(&program));
    let results = program.run(&inputs.iter().collect::<Vec<_>>()).unwrap();
    let after = cells(&program);
    let changed = program.states().zip(&after).filter(|((_, write, _), _)| write.is_some());
    let all: Vec<Tensor> =
        results.into_iter().chain(changed.map(|(_, cell)| cell.clone())).collect();
    let want: Vec<Vec<f64>> = all.iter().map(Tensor::to_f64_vec).collect();
    let size = |w: &Vec<f64>| w.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let within = want.iter().map(|w| 1e-5 * size(w)).collect();
    Case { name: name.to_string(), module, given, want, within, program, inputs }
}

#[test]
fn training_steps_are_those_of_the_processor() {
    let cases: Vec<Case> =
        ["names", "softmax-ce", "batch-norm"].map(|name| case(name, Dialect::Cuda)).into();
    let wrong = check(&cases, "steps");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
