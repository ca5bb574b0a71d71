//! A run that an earlier version wrote is read: `tests/data/run_of_format_2` was made by the
//! version of the command that first had folders of format 2 and no crates along the layers yet
//! (commit 0ab6124), with
//!
//! ```console
//! chainrule train names --hidden 12 --optimizer adam --lr 0.01 --steps 12 --save-every 6 \
//!     --eval-every 6 --quiet --out run_of_format_2
//! ```
//!
//! The numbers expected here are those that the same version printed of it.

mod common;

use std::fs;
use std::path::Path;

use common::{Place, text};

/// The losses of steps 13 to 18, with which that version went on.
const LOSSES: [f64; 6] = [3.2998557, 3.299439, 3.2923214, 3.3315694, 3.2672684, 3.3093352];

fn place() -> Place {
    let place = Place::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/run_of_format_2");
    fs::create_dir(place.path("run")).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, place.path("run").join(path.file_name().unwrap())).unwrap();
    }
    place
}

/// Sums may be taken in another order than then.
#[track_caller]
fn expect_close(got: &serde_json::Value, wanted: f64) {
    let got = got.as_f64().unwrap();
    assert!((got / wanted - 1.0).abs() < 1e-5, "{got}, {wanted}");
}

#[test]
fn an_old_run_is_evaluated_and_sampled() {
    let place = place();
    let got = place.json("eval run --json");
    assert_eq!((&got["names"], &got["examples"]), (&23279.into(), &169_342.into()));
    expect_close(&got["loss"], 3.2783559371932562);
    let got = place.json("sample run --count 3 --seed 5 --json");
    let wanted = [
        "vtxyamhtuqoipzrsxpqkhrupnfvyikfwogqeqzsdmvzrdsecyhtewtrnhe",
        "qypgtyh",
        "qshhuhxfwnjopvkhtanwjeju",
    ];
    assert_eq!(got["samples"].as_array().unwrap(), &wanted);
}

#[test]
fn an_old_run_goes_on() {
    let place = place();
    let got = place.json("train names --resume run --steps 18 --json");
    assert_eq!(got["steps"], 18);
    expect_close(&got["best"], 3.270343780517578);
    expect_close(&got["test_loss"], 3.272284984588623);
    let metrics = text(&fs::read(place.path("run/metrics.jsonl")).unwrap());
    let rows = metrics.lines().map(|line| serde_json::from_str(line).unwrap());
    let steps: Vec<serde_json::Value> =
        rows.filter(|row: &serde_json::Value| row.get("lr").is_some()).collect();
    assert_eq!(steps.len(), 18);
    steps[12..].iter().zip(LOSSES).for_each(|(row, loss)| expect_close(&row["loss"], loss));
}
