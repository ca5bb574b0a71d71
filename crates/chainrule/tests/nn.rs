//! Layers against the values that PyTorch computed, and what modules promise: names, modes, states.

mod common;

use chainrule::nn::{
    BatchNorm1d, BatchNormOptions, Embedding, FlattenConsecutive, Gru, Layer, Linear,
    LinearOptions, Module, Relu, Residual, Sequential, StateDict, Tanh, summary, with_scopes,
};
use chainrule::program::Program;
use chainrule::{DType, Generator, Result, Tensor, record_all};
use common::{Reference, distance};

/// The largest difference there may be, relative to the largest magnitude where that is above 1.
const TOLERANCE: f64 = 1e-9;

#[track_caller]
fn assert_close(got: &Tensor, want: &Tensor, what: &str) {
    let apart = distance(got, want);
    assert!(apart <= TOLERANCE, "{what}: {apart:.1e} apart");
}

/// Gives a layer of f64 the parameters and buffers of a case.
fn state(file: &Reference, case: &str, names: &[&str]) -> StateDict {
    names
        .iter()
        .map(|name| (name.to_string(), file.get(&format!("{case}.before.{name}"))))
        .collect()
}

/// A layer's result and the gradients of its input and parameters, against the file.
fn check(file: &Reference, case: &str, layer: &impl Layer, parameters: &[(&str, &Tensor)]) {
    let x = file.get(&format!("{case}.x0"));
    let x = if x.dtype().is_float() { x.parameter() } else { x };
    let y = layer.forward(&x);
    assert_close(&y, &file.get(&format!("{case}.y")), case);
    y.backward_with().gradient(&file.get(&format!("{case}.dout"))).run().unwrap();
    if x.requires_grad() {
        assert_close(&x.grad().unwrap(), &file.get(&format!("{case}.grad.x0")), case);
    }
    for (name, p) in parameters {
        let expected = file.get(&format!("{case}.grad.{name}"));
        assert_close(&p.grad().unwrap(), &expected, &format!("{case} {name}"));
    }
}

fn f64_leaf(shape: &[usize]) -> Tensor {
    Tensor::full(shape, 0.0, DType::F64).parameter()
}

#[test]
fn linear_is_that_of_pytorch() {
    let file = Reference::read("layers");
    let layer = Linear { weight: f64_leaf(&[3, 5]), bias: Some(f64_leaf(&[3])) };
    layer.load_state_dict(&state(&file, "linear", &["weight", "bias"])).unwrap();
    let bias = layer.bias.as_ref().unwrap();
    check(&file, "linear", &layer, &[("weight", &layer.weight), ("bias", bias)]);

    let layer = Linear { weight: f64_leaf(&[3, 5]), bias: None };
    layer.load_state_dict(&state(&file, "linear_3d", &["weight"])).unwrap();
    check(&file, "linear_3d", &layer, &[("weight", &layer.weight)]);
}

/// A batch norm in f64: the layer's own tensors are f32.
fn batch_norm_f64() -> BatchNorm1d {
    let mut layer = BatchNorm1d::new(6);
    layer.gain = f64_leaf(&[6]);
    layer.bias = f64_leaf(&[6]);
    layer.running_mean = Tensor::full([6], 0.0, DType::F64).buffer();
    layer.running_var = Tensor::full([6], 1.0, DType::F64).buffer();
    layer
}

const NORM: [&str; 5] = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"];

#[test]
fn batch_norm_is_that_of_pytorch() {
    let file = Reference::read("layers");
    for case in ["batch_norm_train", "batch_norm_train_3d", "batch_norm_eval"] {
        let layer = batch_norm_f64();
        layer.load_state_dict(&state(&file, case, &NORM)).unwrap();
        if case == "batch_norm_eval" {
            layer.eval();
        }
        check(&file, case, &layer, &[("weight", &layer.gain), ("bias", &layer.bias)]);
        for (name, buffer) in layer.named_buffers() {
            assert_close(&buffer, &file.get(&format!("{case}.after.{name}")), case);
        }
    }
}

#[test]
fn calibration_takes_the_statistics_of_a_whole_set() {
    let layer = BatchNorm1d::new(2);
    layer.calibrate(&Tensor::from([[1.0f32, 10.0], [3.0, 10.0], [5.0, 40.0]])).unwrap();
    assert_eq!(layer.running_mean.to_vec::<f32>(), [3.0, 20.0]);
    assert_eq!(layer.running_var.to_vec::<f32>(), [4.0, 300.0]);
}

fn net() -> Sequential {
    let g = &mut Generator::manual_seed(5);
    Sequential::new()
        .with(Embedding::new(7, 4, g))
        .with(Linear::with_options(4, 6, LinearOptions::default().no_bias(), g))
        .with(Relu)
        .with(Linear::new(6, 2, g))
        .with(Tanh)
}

#[test]
fn names_follow_the_fields() {
    let names: Vec<String> = net().named_parameters().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["0.weight", "1.weight", "3.weight", "3.bias"]);
    let names: Vec<String> =
        BatchNorm1d::new(1).named_buffers().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["running_mean", "running_var", "num_batches_tracked"]);
    assert_eq!(net().parameter_count(), 7 * 4 + 4 * 6 + 6 * 2 + 2);
}

#[test]
fn a_state_moves_from_one_module_to_another() {
    let (a, b) = (net(), net());
    for p in b.parameters() {
        p.set(&p.zeros_like());
    }
    let x = Tensor::from([0i64, 3, 6]);
    let before = a.forward(&x).to_vec::<f32>();
    let state = a.state_dict();
    b.load_state_dict(&state).unwrap();
    assert_eq!(b.forward(&x).to_vec::<f32>(), before);
    // The state is a copy of the values: changing the module afterwards leaves it alone.
    a.parameters()[0].set(&a.parameters()[0].zeros_like());
    assert_eq!(b.forward(&x).to_vec::<f32>(), before);
    assert!(state["0.weight"].to_vec::<f32>().iter().any(|&w| w != 0.0));
}

#[test]
fn a_state_that_does_not_fit_changes_nothing() {
    let net = net();
    let before = net.state_dict();
    let mut missing = before.clone();
    missing.remove("3.bias");
    let mut unknown = before.clone();
    unknown.insert("extra".into(), Tensor::zeros(1));
    let mut shape = before.clone();
    shape.insert("0.weight".into(), Tensor::zeros([7, 5]));
    for (state, word) in [(missing, "3.bias"), (unknown, "extra"), (shape, "[7, 5]")] {
        let text = net.load_state_dict(&state).unwrap_err().to_string();
        assert!(text.starts_with("load_state_dict: ") && text.contains(word), "{text}");
    }
    for (name, t) in net.state_dict() {
        assert_eq!(t.to_vec::<f32>(), before[&name].to_vec::<f32>());
    }
}

#[test]
fn frozen_parameters_get_no_gradient() {
    let layer = Linear::new(2, 2, &mut Generator::manual_seed(0));
    layer.weight.set_requires_grad(false).unwrap();
    layer.forward(&Tensor::ones([1, 2])).sum_all().backward();
    assert!(layer.weight.grad().is_none());
    assert_eq!(layer.bias.as_ref().unwrap().grad().unwrap().to_vec::<f32>(), [1.0, 1.0]);
}

#[test]
fn impossible_layers_are_errors() {
    let g = &mut Generator::manual_seed(0);
    assert!(Linear::try_new(0, 1, g).is_err());
    assert!(Embedding::try_new(1, 0, g).is_err());
    assert!(
        BatchNorm1d::try_with_options(3, BatchNormOptions { eps: -1.0, momentum: 0.1 }).is_err()
    );
    let text = BatchNorm1d::new(3).try_forward(&Tensor::zeros(3)).unwrap_err().to_string();
    assert!(text.contains("BatchNorm1d: shape [3]"), "{text}");
    let text = Linear::new(3, 2, g).try_forward(&Tensor::zeros([4, 5])).unwrap_err().to_string();
    assert!(
        text.contains("linear: shapes [4, 5] and [2, 3]") && text.contains("called at"),
        "{text}"
    );
}

#[test]
fn a_summary_lists_each_module_with_its_result() {
    let g = &mut Generator::manual_seed(5);
    let inner = Sequential::new().with(Linear::new(6, 6, g)).with(Tanh);
    let net = Sequential::new()
        .with(Linear::new(4, 6, g))
        .with(BatchNorm1d::new(6))
        .with(Residual::new(inner))
        .with(Relu)
        .with(Relu)
        .with(Linear::with_options(6, 1, LinearOptions::default().no_bias(), g));
    net.layers()[0].freeze();
    let before = net.state_dict();
    let table = summary(&net, &Tensor::zeros([7, 4])).unwrap();
    let row = |name: &str| table.rows.iter().find(|r| r.name == name).unwrap();
    assert_eq!(table.rows.len(), 10);
    assert_eq!((row("").kind, row("").output.unwrap().to_vec()), ("Sequential", vec![7, 1]));
    assert_eq!((row("2").kind, row("2").own_parameters), ("Residual", 0));
    assert_eq!((row("2.layer.0").kind, row("2.layer.0").own_parameters), ("Linear", 42));
    assert_eq!(row("3").output.unwrap(), [7, 6]);
    assert_eq!((table.parameters, table.trained), (30 + 12 + 42 + 6, 12 + 42 + 6));
    let text = table.to_string();
    assert!(text.contains("90 parameters, 60 of them trained"), "{text}");
    // Running statistics and the mode are as they were.
    for (name, tensor) in net.state_dict() {
        assert_eq!(tensor.to_f64_vec(), before[&name].to_f64_vec(), "{name}");
    }
    net.forward(&Tensor::zeros([7, 4]));
    assert_eq!(net.get("1.num_batches_tracked").unwrap().item(), 1.0);
    assert!(summary(&net, &Tensor::zeros([7, 5])).is_err());
}

/// A struct begins where its first field does, and layers without fields take no room.
#[test]
fn a_summary_tells_apart_what_lies_at_one_address() {
    #[derive(Module)]
    struct Net {
        first: Linear,
        act: Tanh,
        last: Linear,
        again: Tanh,
    }

    impl Layer for Net {
        fn compute(&self, x: &Tensor) -> chainrule::Result<Tensor> {
            let x = self.act.try_forward(&self.first.try_forward(x)?)?;
            self.again.try_forward(&self.last.try_forward(&x)?)
        }
    }

    let g = &mut Generator::manual_seed(5);
    let net =
        Net { first: Linear::new(4, 6, g), act: Tanh, last: Linear::new(6, 2, g), again: Tanh };
    let table = summary(&net, &Tensor::zeros([7, 4])).unwrap();
    let output = |name: &str| table.rows.iter().find(|r| r.name == name).unwrap().output;
    assert_eq!(output("").unwrap(), [7, 2]);
    assert_eq!(output("first").unwrap(), [7, 6]);
    assert_eq!(output("last").unwrap(), [7, 2]);
    // Known or blank, never the other's.
    assert!(output("act").is_none_or(|shape| shape == [7, 6]));
    assert!(output("again").is_none_or(|shape| shape == [7, 2]));
}

#[test]
fn frozen_parameters_stay_and_get_no_gradients() {
    let net = net();
    net.freeze();
    assert_eq!((net.trained_count(), net.parameters().len()), (0, 4));
    net.unfreeze();
    net.layers()[0].freeze();
    net.forward(&Tensor::from([0i64, 3])).sum_all().backward();
    assert!(net.get("0.weight").unwrap().grad().is_none());
    assert!(net.get("1.weight").unwrap().grad().is_some());
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let x = Tensor::zeros([2, 5, 3]);
    assert!(FlattenConsecutive::new(2).try_forward(&x).is_err());
    assert!(FlattenConsecutive::new(0).try_forward(&x).is_err());
    assert!(FlattenConsecutive::new(2).try_forward(&Tensor::zeros([4, 4])).is_err());
    let g = &mut Generator::manual_seed(0);
    assert!(Residual::new(Linear::new(3, 4, g)).try_forward(&x).is_err());
}

/// A layer of a user's program, with ops of its own beside those of a layer of the library.
#[derive(Module)]
struct Doubled {
    inner: Linear,
}

impl Layer for Doubled {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        self.inner.try_forward(x)?.try_mul(2.0)
    }
}

/// The line of its product.
const PRODUCT: u32 = line!() - 5;

#[test]
fn ops_of_layers_are_called_by_the_users_line() {
    let g = &mut Generator::manual_seed(5);
    let model = Sequential::new()
        .with(Linear::new(3, 4, g))
        .with(Tanh)
        .with(Doubled { inner: Linear::new(4, 2, g) });
    let recurrent = Gru::new(2, 3, g);
    let (y, here) = (model.forward(&Tensor::ones([5, 3])), line!());
    let (states, there) = (recurrent.forward(&Tensor::ones([2, 4, 2])), line!());
    let loss = y.square().sum_all() + states.sum_all();
    let lines = |loss: &Tensor| {
        let trace = loss.trace();
        let places = trace.steps().iter().filter_map(|step| step.location());
        places.map(|at| (at.file().ends_with("nn.rs"), at.line())).collect::<Vec<_>>()
    };
    let all = lines(&loss);
    assert!(all.iter().all(|(is_here, _)| *is_here), "{all:?}");
    for line in [here, there, PRODUCT] {
        assert!(all.contains(&(true, line)), "{line}: {all:?}");
    }
    // Errors of ops that layers call, however deep.
    let error = model.try_forward(&Tensor::ones([5, 7])).unwrap_err().to_string();
    assert!(error.contains("nn.rs"), "{error}");
    // And as a program knows them.
    let program =
        Program::trace([("x", &Tensor::ones([5, 3]))], |x| Ok(vec![model.try_forward(&x[0])?]));
    let program = program.unwrap();
    for line in program.lines() {
        let place = line.location();
        assert!(place.is_none_or(|place| place.file().ends_with("nn.rs")), "{program}");
    }
}

#[test]
fn reports_name_parameters_by_their_paths() {
    let g = &mut Generator::manual_seed(3);
    let model = Sequential::new()
        .with(Embedding::new(9, 2, g))
        .with(FlattenConsecutive::new(2))
        .with(Linear::new(4, 6, g))
        .with(BatchNorm1d::new(6))
        .with(Tanh)
        .with(Linear::new(6, 1, g));
    let tokens = Tensor::randint(0, 9, [5, 2], g);
    let has_no_number = |text: &str| {
        assert!(!text.contains("parameter 1") && !text.contains("leaf#"), "{text}");
        assert!(!text.contains("/rustc/"), "{text}");
    };
    let (trace, graph) = with_scopes(&model, || {
        let loss = record_all(|| model.forward(&tokens).square().mean_all());
        (loss.trace().to_string(), loss.graph().to_dot())
    });
    has_no_number(&trace);
    for name in ["0.weight", "2.weight", "2.bias", "3.weight", "5.bias"] {
        assert!(trace.contains(name) && graph.contains(name), "{name}: {trace}");
    }
    // The origin of a value that is not finite, with nothing recorded.
    let bad = model.named_parameters()[1].1.clone();
    bad.set(&Tensor::full(bad.shape(), f64::INFINITY, bad.dtype()));
    let found = model.forward(&tokens).square().mean_all().first_non_finite().unwrap();
    has_no_number(&found.to_string());
    assert_eq!((found.op, found.input), ("linear", Some((1, f64::INFINITY))));
    assert_eq!(found.input_name.as_deref(), Some("2.weight"));
}
