//! Detectors, each on a run that has the cause and on one that has not.

use serde_json::{Value, json};

use super::{bench, healthy, table, two_classes};
use crate::cause::Cause;
use crate::data::Table;
use crate::description::{apply, edit};
use crate::detect::{self, Seen, Suspicion};
use crate::diagnosis::diagnose;

fn classes(rows: usize) -> Table {
    let (x, y) = two_classes(rows, true);
    table(x, 4, y)
}

/// Findings of the watched run.
fn signs(edits: &[Value], data: Table) -> Vec<Suspicion> {
    let bench = bench(&apply(&healthy(), edits).unwrap(), data);
    let seen = bench.watched(0).unwrap();
    let program = bench.program();
    let base = detect::constant_loss(program.loss, &seen.train.y);
    let all = Seen { program, data: &seen.train, watch: &seen.watch, run: &seen.run, base };
    detect::findings(&all)
}

fn of(all: &[Suspicion], cause: Cause) -> Option<&Suspicion> {
    all.iter().find(|f| f.cause == cause)
}

#[test]
fn a_rate_that_decays_to_nothing() {
    let decayed = |decay: f64| {
        let sgd = json!({"name": "sgd", "lr": 0.5, "decay": decay});
        signs(&[edit("optimizer", sgd)], classes(240))
    };
    let all = decayed(1.0);
    let found = of(&all, Cause::LrDecay).unwrap();
    // 30 passes over 180 rows in batches of 32 are 180 steps, of all 240 rows 240.
    let left = found.numbers.iter().find(|n| n.0 == "share_of_rate_at_the_end").unwrap().1;
    assert!((left - 1.0 / 241.0).abs() < 1e-9, "{left}");
    assert!(of(&decayed(1e-4), Cause::LrDecay).is_none());
    assert!(of(&decayed(0.0), Cause::LrDecay).is_none());
}

#[test]
fn shares_of_the_optimizers_state_out_of_range() {
    let found = |optimizer: Value| {
        let all = signs(&[edit("optimizer", optimizer)], classes(240));
        of(&all, Cause::Optimizer).map(|f| (f.place.clone(), f.strength))
    };
    for (optimizer, place) in [
        (json!({"name": "sgd", "lr": 0.01, "momentum": 0.999}), "optimizer/momentum"),
        (json!({"name": "sgd", "lr": 0.01, "momentum": 1.2}), "optimizer/momentum"),
        (json!({"name": "sgd", "lr": 0.01, "momentum": -0.5}), "optimizer/momentum"),
        (json!({"name": "adam", "lr": 0.01, "beta1": 0.999, "beta2": 0.999}), "optimizer/beta1"),
        (json!({"name": "adam", "lr": 0.01, "beta2": 0.5}), "optimizer/beta2"),
        (json!({"name": "rmsprop", "lr": 0.01, "eps": 0.1}), "optimizer/eps"),
    ] {
        let said = found(optimizer.clone());
        assert_eq!(said.map(|s| s.0).as_deref(), Some(place), "{optimizer}");
    }
    for right in [
        json!({"name": "sgd", "lr": 0.01, "momentum": 0.9}),
        json!({"name": "adam", "lr": 0.01}),
        json!({"name": "rmsprop", "lr": 0.01}),
        json!({"name": "nadam", "lr": 0.01}),
    ] {
        assert_eq!(found(right.clone()), None, "{right}");
    }
}

#[test]
fn rows_that_are_learned_by_heart() {
    let wide = [edit("layers/0/units", 256), edit("epochs", 300)];
    // Labels of other rows: nothing can be learned but the rows themselves.
    let (x, mut y) = two_classes(120, true);
    y.rotate_left(41);
    let all = signs(&wide, table(x, 4, y));
    let found = of(&all, Cause::Overfitting).expect("learned by heart");
    assert!(found.numbers.iter().any(|n| n.0 == "held"), "{found:?}");
    assert!(of(&signs(&[], classes(400)), Cause::Overfitting).is_none());
}

#[test]
fn a_loss_that_stops_falling() {
    // The sign of a product is out of reach of a linear map: the loss falls a little and stays.
    let (x, y) = two_classes(400, true);
    let flat = [
        edit("layers/0/activation", "linear"),
        edit("layers/0/init", json!({"name": "normal", "std": 3.0, "mean": 0.0})),
        edit("epochs", 200),
    ];
    let all = signs(&flat, table(x, 4, y));
    let found = of(&all, Cause::Plateau).unwrap_or_else(|| panic!("{all:?}"));
    assert!(found.since > 0 && found.text.contains("stays"), "{found:?}");
    assert!(of(&signs(&[], classes(400)), Cause::Plateau).is_none());
}

#[test]
fn a_dropout_that_is_too_high() {
    let drop = |rate: f64| {
        let layer = json!({"type": "dropout", "rate": rate});
        let with = json!({"op": "insert", "path": "layers/1", "value": layer});
        signs(&[with], classes(240))
    };
    let all = drop(0.95);
    assert!(of(&all, Cause::Regularisation).is_some_and(|f| f.text.contains("0.95")), "{all:?}");
    assert!(of(&drop(0.2), Cause::Regularisation).is_none());
}

/// A truth table has no rows to keep back: all of it is to be learned.
#[test]
fn a_truth_table_is_whole() {
    let bits = 6;
    let rows = 1usize << bits;
    let x: Vec<f64> =
        (0..rows * bits).map(|i| f64::from(((i / bits) >> (i % bits)) as u8 & 1)).collect();
    let y = (0..rows).map(|i| f64::from(i.count_ones() % 2)).collect();
    let edits = [edit("input", json!([bits])), edit("epochs", 5)];
    let program = apply(&healthy(), &edits).unwrap();
    let bench = bench(&program, table(x, bits, y));
    assert_eq!(bench.watched(0).unwrap().train.rows, rows);
    assert!(super::bench(&healthy(), classes(64)).watched(0).unwrap().train.rows < 64);
}

/// The report has its evidence as numbers, the end of the run, and curves beside the original.
#[test]
fn a_report_has_numbers_an_end_and_curves() {
    let program = apply(&healthy(), &[edit("layers/1/activation", "softmax")]).unwrap();
    let report = diagnose(&bench(&program, classes(240))).unwrap();
    let json = report.json();
    let cause = &json["causes"][0];
    assert!(cause["numbers"]["loss_at_the_end"].is_number(), "{cause}");
    assert!(cause["end"].as_str().unwrap().contains("the loss goes from"), "{cause}");
    let curves = json["curves"].as_array().unwrap();
    assert_eq!(curves[0]["changes"], json!([]));
    assert!(
        curves.len() > 1 && curves[1]["fit"].as_f64() > curves[0]["fit"].as_f64(),
        "{curves:?}"
    );
    assert!(report.text().contains("curves beside the original"), "{}", report.text());
    assert!(report.html().matches("<svg").count() == curves.len());
}
