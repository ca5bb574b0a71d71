//! `chainrule export`: a trained model for other programs.

use anyhow::{Result, bail};
use chainrule::nn::{Module, with_scopes};
use chainrule::program::Program;
use chainrule::{DType, Tensor, no_grad, onnx};
use serde_json::json;

use crate::args::export::Export;
use crate::commands::train::{digits, moons, names as family, regression, text};
use crate::{names, output, train};

/// Sizes of the batch that a model is traced for: unlikely sizes of anything else.
const SIZES: [usize; 2] = [17, 23];

/// The results of a batch.
type ForwardFn<M> = fn(&M, &Tensor) -> chainrule::Result<Tensor>;

/// A trained model as a function of a batch.
pub struct TrainedModel {
    /// The shape of an example.
    example: Vec<usize>,
    /// Whether examples are numbers of symbols.
    symbols: bool,
    /// The program for so many rows, with the layers as scopes.
    program: Box<TraceFn>,
}

/// From an input to the program that takes it.
type TraceFn = dyn Fn(&Tensor) -> chainrule::Result<Program>;

impl TrainedModel {
    /// The results of a batch of such examples, by a model with this module.
    pub fn new<M: 'static>(
        example: &[usize],
        symbols: bool,
        model: M,
        module: fn(&M) -> &dyn Module,
        forward: ForwardFn<M>,
    ) -> TrainedModel {
        let program = move |x: &Tensor| {
            let f = |args: &[Tensor]| Ok(vec![forward(&model, &args[0])?.named("y")]);
            with_scopes(module(&model), || no_grad(|| Program::trace([("x", x)], f)))
        };
        TrainedModel { example: example.to_vec(), symbols, program: Box::new(program) }
    }

    fn program(&self, rows: usize) -> chainrule::Result<Program> {
        let shape: Vec<usize> = std::iter::once(rows).chain(self.example.iter().copied()).collect();
        let x = Tensor::zeros(shape.as_slice());
        (self.program)(&if self.symbols { x.to_dtype(DType::I64) } else { x })
    }
}

/// Runs the command.
pub fn run(args: &Export) -> Result<()> {
    if args.onnx.is_dir() {
        bail!("{} is a folder; give the file to write", args.onnx.display());
    }
    if args.onnx.exists() && !args.force {
        bail!("{} exists; give another file, or add --force to overwrite it", args.onnx.display());
    }
    let model = match train::kind_of(&args.run)?.as_str() {
        digits::KIND => digits::trained(&args.run)?,
        family::KIND => family::trained(&args.run)?,
        text::KIND => text::trained(&args.run)?,
        "regression" => regression::trained(&args.run)?,
        "moons" => moons::trained(&args.run)?,
        // Names; what else there may be is told by the reader of its settings.
        _ => {
            let (model, settings) = names::load(&args.run)?;
            TrainedModel::new(&[settings.context], true, model, |m| m, |m, x| m.try_forward(x))
        }
    };
    let [one, other] = SIZES.map(|rows| model.program(rows));
    let made = onnx::export_batched(&one?, &other?)?;
    made.write(&args.onnx)?;
    let ops = made.ops().len();
    if args.json {
        let file = args.onnx.display().to_string();
        let (inputs, outputs) = (made.inputs(), made.outputs());
        return output::json(
            &json!({"file": file, "inputs": inputs, "outputs": outputs, "nodes": ops}),
        );
    }
    let of = if model.symbols { "i64" } else { "f32" };
    output::line(&format!(
        "{}: {ops} nodes; x is {of} {}, y the outputs",
        args.onnx.display(),
        sizes(&model.example)
    ))
}

/// The sizes of a batch of such examples.
fn sizes(example: &[usize]) -> String {
    let sizes = example.iter().map(|n| format!(", {n}"));
    format!("[batch{}]", sizes.collect::<String>())
}
