//! Models by their structure; their values are compared in the tests of the Python package, which
//! have a runtime.

use chainrule::nn::{Layer, Linear, Module};
use chainrule::optim::Sgd;
use chainrule::program::{self, Program};
use chainrule::{Generator, Result, Tensor};
use chainrule_onnx::{export, export_batched};

fn step(rows: usize) -> Result<Program> {
    let layer = Linear::new(3, 2, &mut Generator::manual_seed(0));
    let mut sgd = Sgd::new(layer.parameters(), 0.1);
    let (x, y) = (Tensor::ones([rows, 3]), Tensor::zeros([rows, 2]));
    let mut step = program::compile(&layer, &mut sgd, ["x", "y"], |args| {
        layer.try_forward(&args[0])?.try_mse(&args[1])
    });
    step.trace_raw(&[&x, &y])
}

#[test]
fn a_step_has_what_lasts_as_inputs_and_outputs() -> Result<()> {
    let model = export(&step(4)?)?;
    let inputs = model.inputs();
    assert_eq!(&inputs[..4], ["x", "y", "weight", "bias"]);
    assert!(inputs.contains(&"lr"), "{inputs:?}");
    let outputs = model.outputs();
    assert_eq!(&outputs[..3], ["loss", "weight_new", "bias_new"]);
    let text = String::from_utf8_lossy(&model.to_bytes()).into_owned();
    assert!(text.contains("\"weight\": \"weight_new\""));
    assert!(text.contains("\"weight\": \"d_weight\""));
    Ok(())
}

#[test]
fn a_step_can_leave_the_batch_open() -> Result<()> {
    let open = export_batched(&step(17)?, &step(23)?)?;
    let text = String::from_utf8_lossy(&open.to_bytes()).into_owned();
    assert!(text.contains("batch") && open.ops().contains(&"Shape"), "{:?}", open.ops());
    Ok(())
}

#[test]
fn the_same_sizes_leave_no_batch_open() {
    let error = match export_batched(&step(4).unwrap(), &step(4).unwrap()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it has no sizes to compare"),
    };
    assert!(error.contains("no argument has another first size"), "{error}");
}

#[test]
fn an_unknown_folder_is_an_error_in_one_line() {
    let model = export(&step(4).unwrap()).unwrap();
    let error = model.write("/nowhere/at/all/model.onnx").unwrap_err().to_string();
    assert!(error.contains("/nowhere/at/all/model.onnx") && !error.contains('\n'), "{error}");
}
