//! Checking, as a user does.

mod common;

use common::{Place, text};

#[test]
fn the_names_model_by_hand_equals_autograd() {
    let place = Place::new();
    let got = place.json("check names --steps 20 --json");
    assert_eq!((&got["passed"], &got["parameters"]), (&true.into(), &4137.into()));
    for file in ["check.json", "dlogits.png", "dlogits.svg"] {
        assert!(place.path(&format!("runs/check-names-0001/{file}")).is_file(), "{file}");
    }
    let output = place.run("check names --steps 20 --seed 7");
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("hpreact"), "a row for each intermediate");
}
