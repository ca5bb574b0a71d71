//! An op is known by its row of the table, never by its name.

use std::collections::HashSet;

use super::*;
use crate::ops::{OpId, table};

/// Each op that the samples of the table run, forward and backward, is the row that has its name; one without a row has no row's name.
#[test]
fn an_op_is_the_row_that_has_its_name() {
    let mut seen = HashSet::new();
    for entry in table() {
        for sample in (entry.samples)(&mut Generator::manual_seed(1)) {
            let names: Vec<String> = (0..sample.inputs.len()).map(|i| format!("x{i}")).collect();
            let arguments = names.iter().map(String::as_str).zip(&sample.inputs);
            let traced = Program::trace(arguments, |x| with_gradients(&*sample.call, x));
            let Ok(program) = traced else { continue };
            for op in program.instructions.iter().map(|i| &i.op) {
                assert_eq!(op.id(), OpId::named(op.name()), "{}: {op:?}", entry.name);
                seen.extend(op.id());
            }
        }
    }
    assert!(seen.len() > 100, "{}", seen.len());
}
