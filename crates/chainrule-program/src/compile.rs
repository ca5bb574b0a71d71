//! Functions that trace themselves: one program for each set of shapes.

use std::fmt;

use super::Program;
use super::validated::{Passes, Validated, Warning};
use crate::error::Result;
use crate::nn::{Field, LayerNames, Module, Training};
use crate::optim::Optimizer;
use crate::tensor::Tensor;

/// A function that is traced on its first call, and again for other shapes and when parameters are
/// frozen or unfrozen; made by [`Compiled::new`].
///
/// Anything else that the function depends on is fixed by the trace: a number that it captures, the
/// mode of a model. [`compile`] watches the mode; otherwise make another `Compiled`.
///
/// ```
/// use chainrule::{Tensor, program::Compiled};
/// let mut f = Compiled::new(["x"], |args| Ok(vec![args[0].exp().sum_all()]));
/// f.run(&[&Tensor::ones([2])])?;
/// f.run(&[&Tensor::ones([3])])?;
/// assert_eq!(f.retraces()[0].to_string(), "`x` has shape [3] where the trace had [2]");
/// # Ok::<(), chainrule::Error>(())
/// ```
pub struct Compiled<F> {
    names: Vec<String>,
    function: F,
    passes: Passes,
    programs: Vec<Validated>,
    retraces: Vec<Retrace>,
}

/// Why a function was traced again. Its `Display` names the difference from the trace before.
#[derive(Clone, Debug)]
pub struct Retrace {
    why: String,
}

impl fmt::Display for Retrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl<F: FnMut(&[Tensor]) -> Result<Vec<Tensor>>> Compiled<F> {
    /// A function of arguments with these names; nothing is traced yet.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>, function: F) -> Compiled<F> {
        let names = names.into_iter().map(str::to_string).collect();
        Compiled {
            names,
            function,
            passes: Passes::default(),
            programs: Vec::new(),
            retraces: Vec::new(),
        }
    }

    /// Whether the programs are [fused](Program::fused), as they are if nothing is said. Without
    /// fusion and [simplification](Compiled::with_simplification) the results are those of the
    /// eager mode, bit for bit.
    pub fn with_fusion(mut self, fusion: bool) -> Compiled<F> {
        self.passes.fusion = fusion;
        self.programs.clear();
        self
    }

    /// Whether the programs are [simplified](Program::simplified), as they are if nothing is said.
    pub fn with_simplification(mut self, simplification: bool) -> Compiled<F> {
        self.passes.simplification = simplification;
        self.programs.clear();
        self
    }

    /// The results of the function, by the program for the shapes of these arguments. Errors as
    /// [`Program::trace`] and [`Program::run`] do.
    pub fn run(&mut self, arguments: &[&Tensor]) -> Result<Vec<Tensor>> {
        let fits = |p: &Validated| p.program().mismatch(arguments).is_none();
        let at = match self.programs.iter().position(fits) {
            Some(at) => at,
            None => {
                let why = self.programs.last().and_then(|p| p.program().mismatch(arguments));
                let program = self.validated(arguments)?;
                self.retraces.extend(why.map(|why| Retrace { why }));
                self.programs.push(program);
                self.programs.len() - 1
            }
        };
        let mut results = Vec::new();
        run_and_tell(&mut self.programs[at], arguments, &mut results)?;
        Ok(results)
    }

    /// The program for these arguments, as it is traced, with the passes applied. It is not kept.
    pub fn trace(&mut self, arguments: &[&Tensor]) -> Result<Program> {
        Ok(self.validated(arguments)?.program().clone())
    }

    fn validated(&mut self, arguments: &[&Tensor]) -> Result<Validated> {
        let named = named(&self.names, arguments);
        let pairs = named.iter().map(|(name, tensor)| (name.as_str(), *tensor));
        Ok(self.passes.apply(&Program::trace(pairs, |x| (self.function)(x))?))
    }

    /// The programs made so far, one for each set of shapes.
    pub fn programs(&self) -> Vec<&Program> {
        self.programs.iter().map(Validated::program).collect()
    }

    /// Warnings of optimisations that were left out, with the reason. The first run of a program
    /// also writes them to the standard error stream.
    pub fn warnings(&self) -> Vec<&Warning> {
        self.programs.iter().flat_map(Validated::warnings).collect()
    }

    /// Why the function was traced again, each time that it was.
    pub fn retraces(&self) -> &[Retrace] {
        &self.retraces
    }
}

/// A step of training: the loss, its gradients and the optimizer's update as one program; made by
/// [`compile`].
pub struct CompiledStep<'a> {
    names: Vec<String>,
    /// Name of the model in messages.
    kind: &'static str,
    /// The model's layers, as scopes.
    layers: LayerNames,
    /// The model's switches between training and evaluation.
    switches: Vec<&'a Training>,
    optimizer: &'a mut dyn Optimizer,
    loss: Box<LossFn<'a>>,
    passes: Passes,
    programs: Vec<Validated>,
    /// The positions of these switches, for each program.
    modes: Vec<Vec<bool>>,
    retraces: Vec<Retrace>,
    /// Results of the last run.
    results: Vec<Tensor>,
}

type LossFn<'a> = dyn FnMut(&[Tensor]) -> Result<Tensor> + 'a;

/// The usual step of training as a program: `loss` of the arguments, which have these names, the
/// backward pass, and the optimizer's update. The parameters of `model` bear the names that they
/// have in it.
///
/// It is traced on the first call, and again for other shapes, when parameters are frozen or
/// unfrozen, and when the model is switched to evaluation or back. A step changes parameters,
/// buffers, the optimizer's state and generators as the eager mode does, so that the two can take
/// turns; bit for bit without simplification and fusion ([`CompiledStep::with_simplification`],
/// [`CompiledStep::with_fusion`]). Gradients are not kept.
///
/// ```
/// use chainrule::nn::{Layer, Linear};
/// use chainrule::optim::Sgd;
/// use chainrule::{Generator, Tensor, nn::Module, program};
/// let layer = Linear::new(3, 1, &mut Generator::manual_seed(0));
/// let mut sgd = Sgd::new(layer.parameters(), 0.1);
/// let (x, y) = (Tensor::ones([4, 3]), Tensor::zeros([4, 1]));
/// let mut step = program::compile(&layer, &mut sgd, ["x", "y"], |args| {
///     layer.try_forward(&args[0])?.try_mse(&args[1])
/// });
/// let first = step.run(&[&x, &y])?.item();
/// assert!(step.run(&[&x, &y])?.item() < first);
/// step.optimizer().set_lr(0.01)?; // the next run takes it
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn compile<'a>(
    model: &'a dyn Module,
    optimizer: &'a mut dyn Optimizer,
    names: impl IntoIterator<Item = &'a str>,
    loss: impl FnMut(&[Tensor]) -> Result<Tensor> + 'a,
) -> CompiledStep<'a> {
    for (name, tensor) in model.named_parameters().into_iter().chain(model.named_buffers()) {
        if tensor.name().is_none() {
            tensor.named(&name);
        }
    }
    CompiledStep {
        names: names.into_iter().map(str::to_string).collect(),
        kind: model.kind(),
        layers: LayerNames::of(model),
        switches: switches(model),
        optimizer,
        loss: Box::new(loss),
        passes: Passes::default(),
        programs: Vec::new(),
        modes: Vec::new(),
        retraces: Vec::new(),
        results: Vec::new(),
    }
}

impl CompiledStep<'_> {
    /// As [`Compiled::with_fusion`].
    pub fn with_fusion(mut self, fusion: bool) -> Self {
        self.passes.fusion = fusion;
        self.programs.clear();
        self.modes.clear();
        self
    }

    /// As [`Compiled::with_simplification`].
    pub fn with_simplification(mut self, simplification: bool) -> Self {
        self.passes.simplification = simplification;
        self.programs.clear();
        self.modes.clear();
        self
    }

    /// One step on this batch: the loss before the update. Errors as [`Program::trace`] and
    /// [`Program::run`] do; then nothing was changed but generators.
    pub fn run(&mut self, batch: &[&Tensor]) -> Result<Tensor> {
        let at = self.program_for(batch)?;
        run_and_tell(&mut self.programs[at], batch, &mut self.results)?;
        Ok(self.results[0].clone())
    }

    /// Whether the plain program runs for this batch, if its optimised version was compared with
    /// it.
    #[doc(hidden)]
    pub fn verdict(&self, batch: &[&Tensor]) -> Option<bool> {
        let program = &self.programs[self.found(batch).ok()?];
        (!program.is_pending()).then(|| program.is_plain())
    }

    /// Adopts the verdict of an earlier run of this training for a batch that has none yet.
    #[doc(hidden)]
    pub fn take_verdict(&mut self, batch: &[&Tensor], is_plain: bool) -> Result<()> {
        let at = self.program_for(batch)?;
        if self.programs[at].is_pending() {
            self.programs[at].settle(is_plain);
        }
        Ok(())
    }

    /// The number of the program for this batch, or why there is none.
    fn found(&self, batch: &[&Tensor]) -> std::result::Result<usize, Option<String>> {
        let mut why = self.programs.last().and_then(|p| p.program().mismatch(batch));
        for (i, (program, before)) in self.programs.iter().zip(&self.modes).enumerate() {
            if program.program().mismatch(batch).is_none() {
                match self.switched(before) {
                    None => return Ok(i),
                    switched => why = switched,
                }
            }
        }
        Err(why)
    }

    /// The number of the program for this batch, tracing it first if there is none yet.
    fn program_for(&mut self, batch: &[&Tensor]) -> Result<usize> {
        let why = match self.found(batch) {
            Ok(at) => return Ok(at),
            Err(why) => why,
        };
        let program = self.passes.apply(&self.trace_raw(batch)?);
        self.programs.push(program);
        self.modes.push(self.switches.iter().map(|s| s.is_on()).collect());
        self.retraces.extend(why.map(|why| Retrace { why }));
        Ok(self.programs.len() - 1)
    }

    /// The difference between the mode of a program and that of the model.
    fn switched(&self, before: &[bool]) -> Option<String> {
        let mut pairs = self.switches.iter().zip(before);
        let on = pairs.find(|(now, before)| now.is_on() != **before)?.0.is_on();
        let [now, before] =
            if on { ["training", "evaluation"] } else { ["evaluation", "training"] };
        Some(format!("{} is in {now} where the trace had {before}", self.kind))
    }

    /// The program of a step on this batch, with the passes applied. It is not kept.
    pub fn trace(&mut self, batch: &[&Tensor]) -> Result<Program> {
        Ok(self.passes.apply(&self.trace_raw(batch)?).program().clone())
    }

    /// The program as it was traced.
    pub fn trace_raw(&mut self, batch: &[&Tensor]) -> Result<Program> {
        self.optimizer.zero_grad();
        let step = |x: &[Tensor]| {
            let loss = (self.loss)(x)?;
            loss.try_backward()?;
            self.optimizer.step()?;
            Ok(vec![if loss.name().is_none() { loss.named("loss") } else { loss }])
        };
        let named = named(&self.names, batch);
        let pairs = named.iter().map(|(n, t)| (n.as_str(), *t));
        self.layers.during(|| Program::trace(pairs, step))
    }

    /// The optimizer: to change the learning rate, or to save its state.
    pub fn optimizer(&mut self) -> &mut dyn Optimizer {
        self.optimizer
    }

    /// The programs made so far.
    pub fn programs(&self) -> Vec<&Program> {
        self.programs.iter().map(Validated::program).collect()
    }

    /// Warnings of optimisations that were left out, with the reason. The first run of a program
    /// also writes them to the standard error stream.
    pub fn warnings(&self) -> Vec<&Warning> {
        self.programs.iter().flat_map(Validated::warnings).collect()
    }

    /// Why the step was traced again, each time that it was.
    pub fn retraces(&self) -> &[Retrace] {
        &self.retraces
    }
}

/// Runs a program; after its first run, warns once of optimisations that were left out.
fn run_and_tell(
    program: &mut Validated,
    arguments: &[&Tensor],
    results: &mut Vec<Tensor>,
) -> Result<()> {
    program.run_into(arguments, results)?;
    program.untold().iter().for_each(|w| eprintln!("chainrule: warning: {w}"));
    Ok(())
}

/// The arguments with their names; those beyond the list are `x2`, `x3`, ...
fn named<'t>(names: &[String], arguments: &[&'t Tensor]) -> Vec<(String, &'t Tensor)> {
    let name = |i: usize| names.get(i).cloned().unwrap_or_else(|| format!("x{i}"));
    arguments.iter().enumerate().map(|(i, t)| (name(i), *t)).collect()
}

/// The switches between training and evaluation of a model and all modules inside, in order.
fn switches(model: &dyn Module) -> Vec<&Training> {
    let inside = model.named_modules().into_iter().map(|(_, module)| module);
    let fields = std::iter::once(model).chain(inside).flat_map(|module| module.fields());
    let switch = |(_, field)| match field {
        Field::Training(switch) => Some(switch),
        _ => None,
    };
    fields.filter_map(switch).collect()
}
