//! Runs against PyTorch's numbers, planted programs, and bad descriptions.

mod bad;
mod before;
mod planted;
mod reference;
mod score;
mod search;
mod signs;

use chainrule_core::rng::Generator;
use serde_json::{Value, json};

use crate::data::{Array, Table};
use crate::description::Program;
use crate::lab::Bench;

/// A table of two classes that a small network learns: the sign of the product of the first two
/// columns, which no linear map gives, or of their sum.
pub(super) fn two_classes(rows: usize, product: bool) -> (Vec<f64>, Vec<f64>) {
    let mut draw = Generator::manual_seed(4);
    let mut x = vec![0.0f64; rows * 4];
    draw.fill_normal_f64(&mut x);
    let class = |r: &[f64]| {
        let z = if product { r[0] * r[1] } else { r[0] + r[1] - 0.5 * r[2] };
        f64::from(u8::from(z > 0.0))
    };
    let y = x.chunks_exact(4).map(class).collect();
    (x, y)
}

pub(super) fn table(x: Vec<f64>, columns: usize, y: Vec<f64>) -> Table {
    let rows = y.len();
    Table {
        x: Array::new(&[rows, columns], x, false),
        y: Array::new(&[rows, 1], y, false),
        validation: None,
    }
}

/// A healthy program for `two_classes`.
pub(super) fn healthy() -> Value {
    json!({"id": "planted", "task": "binary", "data": {"file": "-"}, "preprocessing": [], "input": [4],
        "layers": [
            {"type": "dense", "units": 32, "activation": "relu", "init": "he_normal"},
            {"type": "dense", "units": 1, "activation": "sigmoid", "init": "glorot_uniform"}],
        "loss": {"name": "bce_probs"}, "optimizer": {"name": "adam", "lr": 0.01},
        "batch": 32, "epochs": 30, "shuffle": true})
}

pub(super) fn bench(program: &Value, table: Table) -> Bench {
    Bench::new(Program::of(program.clone()).unwrap(), vec![table], 1, None)
}
