//! Ops with one key are one op.

use std::collections::HashMap;

use super::*;
use crate::ops::table;
use crate::passes::common::{Key, key_of_op};
use crate::tensor::run::compute_as;
use crate::tensor::value::{Meta, Value};
use std::sync::Arc;

/// The constants and the results of a program's instructions on these arguments.
fn values(program: &Program, arguments: &[Tensor]) -> Vec<Option<Arc<Value>>> {
    let mut all: Vec<Option<Arc<Value>>> = program
        .values
        .iter()
        .map(|info| match &info.from {
            ir::Origin::Input(i) => Some(arguments[*i].value()),
            ir::Origin::Constant(value) => Some(value.clone()),
            _ => None,
        })
        .collect();
    for i in &program.instructions {
        let inputs: Option<Vec<_>> = i.inputs.iter().map(|id| all[id.index()].clone()).collect();
        let Some(inputs) = inputs else { continue };
        let meta = program.info(i.result()).meta;
        let outcome = compute_as(&*i.op, &inputs, meta).unwrap();
        let given = std::iter::once(outcome.value).chain(outcome.extra);
        for (id, value) in i.outputs.iter().zip(given) {
            all[id.index()] = Some(value);
        }
    }
    all
}

/// Ops of the same key give the same on the same inputs, over all that the samples of the table
/// use: so the key has every parameter that matters.
#[test]
fn the_key_of_an_op_has_all_its_parameters() {
    type Inputs = Vec<Arc<Value>>;
    type WithMetas = (Key, Vec<(Vec<usize>, DType)>);
    let mut first: HashMap<WithMetas, (Arc<dyn crate::tensor::op::Op>, Inputs)> = HashMap::new();
    let (mut compared, mut wrong) = (0, Vec::new());
    for entry in table() {
        for sample in (entry.samples)(&mut Generator::manual_seed(1)) {
            let names: Vec<String> = (0..sample.inputs.len()).map(|i| format!("x{i}")).collect();
            let arguments = names.iter().map(String::as_str).zip(&sample.inputs);
            let traced = Program::trace(arguments, |x| with_gradients(&*sample.call, x));
            let Ok(program) = traced else { continue };
            let all = values(&program, &sample.inputs);
            for i in program.instructions.iter().filter(|i| i.op.generator().is_none()) {
                let inputs: Inputs =
                    i.inputs.iter().filter_map(|id| all[id.index()].clone()).collect();
                let metas = inputs.iter().map(|v| (v.shape().to_vec(), v.dtype())).collect();
                let meta: Meta = program.info(i.result()).meta;
                let key = (key_of_op(&*i.op), metas);
                let (op, inputs) =
                    first.entry(key).or_insert_with(|| (i.op.clone(), inputs)).clone();
                let run = |op: &dyn crate::tensor::op::Op| {
                    let value = compute_as(op, &inputs, meta).map(|o| o.value);
                    value
                        .map(|v| bits(&Tensor::from_parts(v, crate::tensor::node::Source::None)))
                        .ok()
                };
                compared += 1;
                if run(&*op) != run(&*i.op) {
                    wrong.push(format!("{}: {:?} is not {:?}", entry.name, i.op, op));
                }
            }
        }
    }
    assert!(compared > 5000 && wrong.is_empty(), "{compared}: {}", wrong.join("\n"));
}

#[test]
fn weights_that_look_alike_in_a_listing_are_told_apart() {
    let (x, t) = (
        Tensor::randn([3, 40], DType::F64, &mut Generator::manual_seed(1)),
        Tensor::from([0i64, 5, 20]),
    );
    let weights = |at: usize| {
        let mut all = vec![1.0f64; 40];
        all[at] = 3.0;
        chainrule_core::CrossEntropy { weight: Some(Tensor::from(all)), ..Default::default() }
    };
    // The text of a long tensor shows its ends only.
    let (a, b) = (weights(19), weights(20));
    let program = Program::trace([("x", &x)], |args| {
        Ok(vec![args[0].try_cross_entropy_with(&t, &a)?, args[0].try_cross_entropy_with(&t, &b)?])
    });
    let out = program.unwrap().optimized().run(&[&x]).unwrap();
    assert_ne!(out[0].item(), out[1].item());
    let logs = chainrule_core::KlDiv { log_target: true, ..Default::default() };
    let program = Program::trace([("x", &x)], |args| {
        Ok(vec![args[0].try_kl_div(&x)?, args[0].try_kl_div_with(&x, &logs)?])
    });
    let out = program.unwrap().optimized().run(&[&x]).unwrap();
    assert_ne!(out[0].to_f64_vec()[0].to_bits(), out[1].to_f64_vec()[0].to_bits());
}
