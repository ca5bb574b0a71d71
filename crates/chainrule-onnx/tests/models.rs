//! Models by their structure; their values are compared in the tests of the Python package, which
//! have a runtime.

use chainrule::nn::{Layer, Linear, Module, TransformerBlock, with_scopes};
use chainrule::optim::{
    Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, Lion, Muon, Optimizer, RmsProp,
    RmsPropOptions, Sgd, SgdOptions,
};
use chainrule::program::{self, Program};
use chainrule::{DType, Generator, Result, Tensor};
use chainrule_onnx::{export, export_batched, import_bytes};

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

type Make = fn(Vec<Tensor>) -> Result<Box<dyn Optimizer>>;

/// The optimizers, with the options that keep most.
fn optimizers() -> Vec<(&'static str, Make)> {
    vec![
        ("sgd", |p| Ok(Box::new(Sgd::new(p, 0.1)))),
        ("momentum", |p| {
            let options = SgdOptions { momentum: 0.9, dampening: 0.5, ..SgdOptions::default() };
            Ok(Box::new(Sgd::try_with_options(p, 0.1, options)?))
        }),
        ("adam", |p| {
            let options = AdamOptions { amsgrad: true, ..AdamOptions::default() };
            Ok(Box::new(Adam::try_with_options(p, 0.01, options)?))
        }),
        ("adamw", |p| Ok(Box::new(AdamW::new(p, 0.01)))),
        ("rmsprop", |p| Ok(Box::new(RmsProp::new(p, 0.01)))),
        ("rmsprop, momentum", |p| {
            let options = RmsPropOptions { momentum: 0.9, ..RmsPropOptions::default() };
            Ok(Box::new(RmsProp::try_with_options(p, 0.01, options)?))
        }),
        ("rmsprop, centered", |p| {
            let options = RmsPropOptions { centered: true, ..RmsPropOptions::default() };
            Ok(Box::new(RmsProp::try_with_options(p, 0.01, options)?))
        }),
        ("rmsprop, both", |p| {
            let options =
                RmsPropOptions { momentum: 0.9, centered: true, ..RmsPropOptions::default() };
            Ok(Box::new(RmsProp::try_with_options(p, 0.01, options)?))
        }),
        ("adagrad", |p| {
            let options = AdagradOptions { lr_decay: 0.1, ..AdagradOptions::default() };
            Ok(Box::new(Adagrad::try_with_options(p, 0.01, options)?))
        }),
        ("lion", |p| Ok(Box::new(Lion::new(p, 0.001)))),
        ("muon", |p| Ok(Box::new(Muon::new(p, 0.01)))),
    ]
}

/// The graph of a step, read and run again and again on what it gave, trains as the program does.
#[test]
fn updates_of_all_optimizers_are_those_of_the_program() -> Result<()> {
    for (name, make) in optimizers() {
        let g = &mut Generator::manual_seed(0);
        let layer = Linear::new(3, 2, g);
        let mut optimizer = make(vec![layer.weight.clone()])?;
        let [x, y] = [[4, 3], [4, 2]].map(|shape| Tensor::randn(shape, DType::F32, g));
        let mut step = program::compile(&layer, &mut *optimizer, ["x", "y"], |args| {
            layer.try_forward(&args[0])?.try_mse(&args[1])
        });
        let model = export(&step.trace_raw(&[&x, &y])?)?;
        let (names, read) = (model.outputs(), import_bytes(&model.to_bytes())?);
        let mut kept: Vec<(String, Tensor)> = Vec::new();
        for _ in 0..4 {
            let mut given = vec![("x", &x), ("y", &y)];
            given.extend(kept.iter().map(|(name, value)| (name.as_str(), value)));
            let out = read.run(&given)?;
            let loss = step.run(&[&x, &y])?.item();
            assert!((out[0].item() - loss).abs() < 1e-6, "{name}: {} and {loss}", out[0].item());
            let state = names.iter().zip(out).filter_map(|(name, value)| {
                Some((name.strip_suffix("_new")?.to_owned(), value.detach()))
            });
            kept = state.collect();
        }
        drop(step);
        let after = &kept.iter().find(|(name, _)| name == "weight").expect("the weight").1;
        let apart = (after - &layer.weight.detach()).abs().max(.., false).item();
        assert!(apart < 1e-6, "{name}: the weights are {apart:e} apart");
    }
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

#[test]
fn names_of_nodes_begin_with_their_modules() -> Result<()> {
    #[derive(Module)]
    struct Net {
        blocks: Vec<TransformerBlock>,
        head: Linear,
    }
    impl Layer for Net {
        fn compute(&self, x: &Tensor) -> Result<Tensor> {
            let mut blocks = self.blocks.iter();
            let x = blocks.try_fold(x.clone(), |x, block| block.try_forward(&x))?;
            self.head.try_forward(&x)
        }
    }
    let g = &mut Generator::manual_seed(0);
    let blocks = (0..2).map(|_| TransformerBlock::new(8, 2, g)).collect();
    let net = Net { blocks, head: Linear::new(8, 3, g) };
    let x = Tensor::ones([2, 4, 8]);
    let program = with_scopes(&net, || {
        Program::trace([("x", &x)], |args| Ok(vec![net.try_forward(&args[0])?.named("y")]))
    })?;
    let model = export(&program)?;
    let names = model.nodes();
    let (mut modules, mut once) = (0, std::collections::HashSet::new());
    for part in ["norm1", "attention", "attention/qkv", "attention/out", "expand", "gelu"] {
        for block in 0..2 {
            let scope = format!("/blocks.{block}/{part}/");
            modules += 1;
            assert!(names.iter().any(|name| name.starts_with(&scope)), "{scope}: {names:?}");
        }
    }
    assert_eq!(modules, 12);
    // The sum of a block and its input is the block's own.
    assert!(names.contains(&"/blocks.1/Add") && names.contains(&"/head/MatMul"), "{names:?}");
    assert!(names.iter().all(|name| once.insert(*name)), "a name is there twice: {names:?}");

    let mut sgd = Sgd::new(net.parameters(), 0.1);
    let mut step = program::compile(&net, &mut sgd, ["x"], |args| {
        net.try_forward(&args[0])?.try_square()?.try_mean_all()
    });
    let model = export(&step.trace_raw(&[&x])?)?;
    let names = model.nodes();
    let starts = |start: &str| names.iter().any(|name| name.starts_with(start));
    assert!(starts("/blocks.0/attention/") && starts("/backward/blocks.0/attention/qkv/"));
    assert!(model.inputs().contains(&"blocks.1.attention.qkv.weight"), "{:?}", model.inputs());
    assert!(model.outputs().contains(&"head.bias_new"), "{:?}", model.outputs());
    Ok(())
}
