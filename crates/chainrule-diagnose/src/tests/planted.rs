//! Programs with one planted mistake: the first cause names it, and its edits repair the program.

use serde_json::{Value, json};

use super::{bench, healthy, table, two_classes};
use crate::cause::Cause;
use crate::data::{Array, Table};
use crate::description::{apply, edit};
use crate::diagnosis::{Report, diagnose};

fn classes() -> Table {
    let (x, y) = two_classes(240, true);
    table(x, 4, y)
}

/// A program with mistakes planted by edits.
fn planted(edits: &[Value]) -> Value {
    apply(&healthy(), edits).unwrap()
}

fn names(report: &Report, first: &[Cause]) {
    let said = report.text();
    let cause = report.causes.first().map(|v| v.cause);
    assert!(cause.is_some_and(|c| first.contains(&c)), "{said}");
    assert!(!report.learns);
    assert!(report.causes[0].confidence > 0.5, "{said}");
}

/// The first cause is one of these, and the edits together repair the program.
fn repairs(program: &Value, data: Table, first: &[Cause]) -> Report {
    let report = diagnose(&bench(program, data.clone())).unwrap();
    names(&report, first);
    let edits: Vec<Value> = report.causes.iter().flat_map(|v| v.edit.clone()).collect();
    let mended = apply(program, &edits).unwrap();
    let again = diagnose(&bench(&mended, data)).unwrap();
    assert!(again.learns, "{}\nmended: {}", report.text(), again.text());
    assert!(again.skill > report.skill + 0.1);
    report
}

#[test]
fn nothing_is_said_of_a_healthy_program() {
    let report = diagnose(&bench(&healthy(), classes())).unwrap();
    assert!(report.learns && report.causes.is_empty(), "{}", report.text());
    assert!(report.skill > 0.7);
}

#[test]
fn a_softmax_over_one_unit_is_named() {
    let program = planted(&[edit("layers/1/activation", "softmax")]);
    repairs(&program, classes(), &[Cause::OutputActivation]);
}

#[test]
fn a_low_rate_is_named() {
    let program = planted(&[edit("optimizer", json!({"name": "sgd", "lr": 1e-6}))]);
    repairs(&program, classes(), &[Cause::LrLow, Cause::EpochsFew]);
}

#[test]
fn a_high_rate_is_named() {
    let program = planted(&[edit("optimizer/lr", 30.0)]);
    repairs(&program, classes(), &[Cause::LrHigh, Cause::Optimizer]);
}

#[test]
fn a_negative_rate_is_named() {
    let program = planted(&[edit("optimizer/lr", -0.01)]);
    repairs(&program, classes(), &[Cause::LrSign]);
}

#[test]
fn equal_weights_are_named() {
    let program = planted(&[edit("layers/0/init", json!({"name": "constant", "value": 0.3}))]);
    repairs(&program, classes(), &[Cause::InitConstant]);
}

#[test]
fn inputs_without_scale_are_named() {
    let (mut x, y) = two_classes(240, true);
    x.iter_mut().for_each(|v| *v = 5000.0 + 300.0 * *v);
    repairs(&healthy(), table(x, 4, y), &[Cause::InputScale]);
}

#[test]
fn a_broadcast_loss_is_named() {
    let (x, _) = two_classes(240, true);
    let y = x.chunks_exact(4).map(|r| r[0] - 0.5 * r[1]).collect();
    let program = planted(&[
        edit("task", "regression"),
        edit("loss/name", "mse_broadcast"),
        edit("layers/1/activation", "linear"),
    ]);
    repairs(&program, table(x, 4, y), &[Cause::LossBroadcast]);
}

#[test]
fn shuffled_labels_are_named() {
    let (x, mut y) = two_classes(400, true);
    y.rotate_left(137);
    let report = diagnose(&bench(&healthy(), table(x, 4, y))).unwrap();
    names(&report, &[Cause::Labels]);
}

#[test]
fn numbers_that_are_none_are_named() {
    let (mut x, y) = two_classes(240, true);
    x[37] = f64::NAN;
    let report = diagnose(&bench(&healthy(), table(x, 4, y))).unwrap();
    names(&report, &[Cause::Data]);
    assert!(report.causes[0].evidence.contains("row"), "{}", report.text());
}

#[test]
fn validation_on_training_rows_is_named() {
    let (x, y) = two_classes(240, true);
    let all = table(x.clone(), 4, y.clone());
    let own = table(x[..160].to_vec(), 4, y[..40].to_vec());
    let data = Table { validation: Some((own.x, own.y)), ..all };
    let report = diagnose(&bench(&healthy(), data)).unwrap();
    assert!(report.causes.iter().any(|v| v.cause == Cause::Validation), "{}", report.text());
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let program = planted(&[edit("layers/1/activation", "softmax")]);
    let once = || {
        let mut json = diagnose(&bench(&program, classes())).unwrap().json();
        json["seconds"] = 0.into();
        json
    };
    assert_eq!(once(), once());
}

/// Twelve sigmoids let nothing through.
#[test]
fn deep_sigmoids_are_named() {
    let sigmoid =
        json!({"type": "dense", "units": 8, "activation": "sigmoid", "init": "glorot_uniform"});
    let mut layers = vec![sigmoid; 12];
    layers.push(healthy()["layers"][1].clone());
    let (x, y) = two_classes(240, false);
    let sgd = json!({"name": "sgd", "lr": 0.05});
    let program = planted(&[edit("layers", layers), edit("optimizer", sgd)]);
    repairs(&program, table(x, 4, y), &[Cause::HiddenActivation, Cause::InitScale]);
}

/// The targets are what is wrong, and nothing else is edited.
#[test]
fn classes_in_another_coding_are_named() {
    let (x, y) = two_classes(240, true);
    for (coded, path) in [([-1.0, 1.0], "labels_as"), ([1.0, 2.0], "preprocessing")] {
        let y = y.iter().map(|&v| coded[v as usize]).collect();
        let report = repairs(&healthy(), table(x.clone(), 4, y), &[Cause::Labels]);
        let edits: Vec<&Value> = report.causes.iter().flat_map(|v| &v.edit).collect();
        assert_eq!(edits.len(), 1, "{}", report.text());
        assert_eq!(edits[0]["path"], path);
    }
}

#[test]
fn classes_counted_from_one_are_named() {
    let (x, y) = two_classes(240, true);
    let mut data = table(x, 4, y.clone());
    data.y = Array::new(&[240], y.iter().map(|v| v + 1.0).collect(), true);
    let program = planted(&[
        edit("task", "multiclass"),
        edit("layers/1/units", 2),
        edit("layers/1/activation", "softmax"),
        edit("loss/name", "scce_probs"),
    ]);
    repairs(&program, data, &[Cause::Labels]);
}

/// A linear map does much of it, so that the gain alone would not be told.
#[test]
fn hidden_layers_without_an_activation_are_named() {
    let (x, _) = two_classes(400, true);
    let bent = |r: &[f64]| f64::from(u8::from(r[0] + 0.7 * r[1] * r[1] > 0.5));
    let y = x.chunks_exact(4).map(bent).collect();
    let program = planted(&[edit("layers/0/activation", "linear")]);
    let report = repairs(&program, table(x, 4, y), &[Cause::HiddenActivation]);
    assert!(report.skill > 0.5 && report.after - report.skill < 0.4, "{}", report.text());
}

/// A rare class that is answered as well as the rest is no fault.
#[test]
fn a_rare_class_is_named_only_where_it_is_not_learned() {
    let (mut x, _) = two_classes(800, true);
    let rare = |i: usize| i.is_multiple_of(20);
    let y: Vec<f64> = (0..800).map(|i| f64::from(u8::from(rare(i)))).collect();
    let program = planted(&[edit("epochs", 60)]);
    let says = |x: &[f64]| {
        let report = diagnose(&bench(&program, table(x.to_vec(), 4, y.clone()))).unwrap();
        report.causes.iter().any(|c| c.cause == Cause::Unbalanced)
    };
    let mut apart = |by: f64| {
        let rows = x.chunks_exact_mut(4).enumerate().filter(|(i, _)| rare(*i));
        rows.for_each(|(_, row)| row[0] += by);
        x.clone()
    };
    let (near, far) = (apart(1.5), apart(4.0));
    assert_eq!([says(&near), says(&far)], [true, false]);
}
