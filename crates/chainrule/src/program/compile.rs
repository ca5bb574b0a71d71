//! Functions that trace themselves: one program for each set of shapes.

use std::fmt;

use super::Program;
use crate::error::Result;
use crate::nn::Module;
use crate::optim::Optimizer;
use crate::tensor::Tensor;

/// A function that is traced on its first call, and again for other shapes; made by [`Compiled::new`].
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
    programs: Vec<Program>,
    retraces: Vec<Retrace>,
}

/// Why a function was traced again. Its `Display` says what differs from the trace before.
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
        Compiled { names, function, programs: Vec::new(), retraces: Vec::new() }
    }

    /// The results of the function, by the program for the shapes of these arguments. Errors as [`Program::trace`] and [`Program::run`] do.
    pub fn run(&mut self, arguments: &[&Tensor]) -> Result<Vec<Tensor>> {
        let fits = |p: &Program| p.mismatch(arguments).is_none();
        let at = match self.programs.iter().position(fits) {
            Some(at) => at,
            None => {
                let why = self.programs.last().and_then(|p| p.mismatch(arguments));
                let program = self.trace(arguments)?;
                self.retraces.extend(why.map(|why| Retrace { why }));
                self.programs.push(program);
                self.programs.len() - 1
            }
        };
        self.programs[at].run(arguments)
    }

    /// The program for these arguments, as it is traced, with the passes applied. It is not kept.
    pub fn trace(&mut self, arguments: &[&Tensor]) -> Result<Program> {
        let made_up = (self.names.len()..arguments.len()).map(|i| format!("x{i}"));
        let names: Vec<String> = self.names.iter().cloned().chain(made_up).collect();
        let pairs = names.iter().map(String::as_str).zip(arguments.iter().copied());
        Ok(Program::trace(pairs, |x| (self.function)(x))?.optimized())
    }

    /// The programs made so far, one for each set of shapes.
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// Why the function was traced again, each time that it was.
    pub fn retraces(&self) -> &[Retrace] {
        &self.retraces
    }
}

/// A step of training: the loss, its gradients and the optimizer's update as one program; made by [`compile`].
pub struct Step<'a> {
    compiled: Compiled<Box<dyn FnMut(&[Tensor]) -> Result<Vec<Tensor>> + 'a>>,
}

/// The usual step of training as a program: `loss` of the arguments, the backward pass, and the optimizer's update. The parameters of `model` bear the names that they have
/// in it.
///
/// ```
/// use chainrule::nn::{Layer, Linear};
/// use chainrule::optim::Sgd;
/// use chainrule::{Generator, Tensor, nn::Module, program};
/// let layer = Linear::new(3, 1, true, &mut Generator::manual_seed(0));
/// let mut sgd = Sgd::new(layer.parameters(), 0.1);
/// let (x, y) = (Tensor::ones([4, 3]), Tensor::zeros([4, 1]));
/// let mut step = program::compile(&layer, &mut sgd, ["x", "y"], |args| layer.compute(&args[0])?.try_mse(&args[1]));
/// let first = step.run(&[&x, &y])?.item();
/// assert!(step.run(&[&x, &y])?.item() < first);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn compile<'a>(
    model: &dyn Module,
    optimizer: &'a mut dyn Optimizer,
    names: impl IntoIterator<Item = &'a str>,
    mut loss: impl FnMut(&[Tensor]) -> Result<Tensor> + 'a,
) -> Step<'a> {
    for (name, parameter) in model.named_parameters() {
        if parameter.name().is_none() {
            parameter.named(&name);
        }
    }
    let step = move |x: &[Tensor]| {
        optimizer.zero_grad();
        let loss = loss(x)?;
        loss.try_backward()?;
        optimizer.step()?;
        Ok(vec![if loss.name().is_none() { loss.named("loss") } else { loss }])
    };
    Step { compiled: Compiled::new(names, Box::new(step)) }
}

impl Step<'_> {
    /// One step on this batch: the loss before the update.
    pub fn run(&mut self, batch: &[&Tensor]) -> Result<Tensor> {
        Ok(self.compiled.run(batch)?.swap_remove(0))
    }

    /// The programs made so far, one for each set of shapes.
    pub fn programs(&self) -> &[Program] {
        self.compiled.programs()
    }

    /// Why the step was traced again, each time that it was.
    pub fn retraces(&self) -> &[Retrace] {
        self.compiled.retraces()
    }
}
