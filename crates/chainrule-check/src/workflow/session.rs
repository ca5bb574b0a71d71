//! The session that a user puts round a training loop.

use std::collections::HashMap;

use super::course::TrainingCourse;
use super::finding::{Findings, Mistake, WorkflowReport};
use super::flow::Flow;
use super::gradients::Gradients;
use super::held::Held;
use super::parameters::Parameters;
use super::{Forward, Pending, Retained};
use super::{attention, detached, evaluation, inputs, labels, losses, softmax, statistics};
use crate::autograd::walk::{Observer, Walk, reachable};
use crate::error::{Error, Result};
use crate::invariants::Invariants;
use crate::nn::Module;
use crate::optim::Optimizer;
use crate::tensor::Tensor;
use crate::tensor::node::{Source, lock};
use crate::tensor::watch::{self, WatchLog, Watching};

/// Watches a training loop and names the mistakes in it; see the [module's text](crate::workflow)
/// for an example.
///
/// In each step call [`Workflow::forward`] when the loss is there and [`Workflow::step`] right
/// after the optimizer's step. Wrap evaluations in [`Workflow::evaluate`]. All of it on the thread
/// that made the session.
///
/// The session changes nothing about the loop but its speed: it walks back a second time (so hooks
/// are called once more), and keeps the values of a forward pass until the next call. After the
/// number of steps set by [`Workflow::steps`] it only records the loss.
pub struct Workflow<'a> {
    module: Option<&'a dyn Module>,
    watching: Option<Watching>,
    parameters: Parameters,
    findings: Findings,
    pending: Pending,
    gradients: Gradients,
    held: Held,
    detached: detached::Detached,
    inputs: inputs::Inputs,
    labels: labels::Labels,
    statistics: statistics::Statistics,
    softmax: softmax::Softmax,
    attention: attention::Attention,
    course: TrainingCourse,
    laws: Option<Invariants>,
    /// The values of the parameters when a forward pass was last looked at.
    values: HashMap<u64, Vec<f64>>,
    /// Number of optimizers, and the group of parameters that are updated by hand.
    optimizers: usize,
    forwards: usize,
    evaluations: usize,
    most: usize,
    batch_axis: usize,
}

impl<'a> Workflow<'a> {
    /// Watches the training of a model by an optimizer.
    pub fn watch(module: &'a dyn Module, optimizer: &dyn Optimizer) -> Workflow<'a> {
        let mut watch = Workflow::tensors(&[]).and(optimizer);
        for (name, parameter) in module.named_parameters() {
            watch.parameters.add(&parameter, Some(&name), None);
            watch.parameters.of_module(&parameter);
        }
        watch.module = Some(module);
        watch
    }

    /// Watches a loop that is written in tensor operations, without a module; `parameters` are what
    /// the loop updates by hand. Add optimizers with [`Workflow::and`]. Names are those given by
    /// [`Tensor::named`].
    ///
    /// ```
    /// use chainrule::{Tensor, autograd::grad, check::Workflow};
    /// let w = Tensor::from([0.5f64, -1.0]).parameter().named("w");
    /// let mut watch = Workflow::tensors(&[&w]);
    /// for _ in 0..3 {
    ///     let x = Tensor::from([[1.0f64, 2.0], [3.0, -1.0]]);
    ///     let y = Tensor::from([1.0f64, 0.0]);
    ///     let loss = x.matmul(&w).mse(&y);
    ///     watch.forward(&x, &y, &loss)?;
    ///     w.zero_grad();
    ///     loss.backward();
    ///     w.set(&(w.detach() - w.try_grad()? * 0.1));
    ///     watch.step()?;
    /// }
    /// assert!(watch.report().is_clean());
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn tensors(parameters: &[&Tensor]) -> Workflow<'a> {
        let mut watch = Workflow {
            module: None,
            watching: Some(Watching::start()),
            parameters: Parameters::default(),
            findings: Findings::default(),
            pending: Pending::default(),
            gradients: Gradients::default(),
            held: Held::default(),
            detached: detached::Detached::default(),
            inputs: inputs::Inputs::default(),
            labels: labels::Labels::default(),
            statistics: statistics::Statistics::default(),
            softmax: softmax::Softmax::default(),
            attention: attention::Attention::default(),
            course: TrainingCourse::default(),
            laws: None,
            values: HashMap::new(),
            optimizers: 0,
            forwards: 0,
            evaluations: 0,
            most: 20,
            batch_axis: 0,
        };
        parameters.iter().for_each(|p| watch.parameters.add(p, None, Some(0)));
        watch
    }

    /// Adds an optimizer, where the loop has several.
    pub fn and(mut self, optimizer: &dyn Optimizer) -> Self {
        self.optimizers += 1;
        let group = Some(self.optimizers);
        optimizer.parameters().iter().for_each(|p| self.parameters.add(p, None, group));
        self
    }

    /// Declares that findings of this kind are intended: a sum of losses, inputs as targets, a
    /// branch that is cut off.
    pub fn meant(mut self, mistake: Mistake) -> Self {
        self.findings.meant.push(mistake);
        self
    }

    /// Number of training steps, and as many evaluations, that are looked at: 20 without this.
    pub fn steps(mut self, steps: usize) -> Self {
        self.most = steps;
        self
    }

    /// Checks the [laws of gradients](super::super::invariants) in each step too, on the session's
    /// own walk back.
    pub fn with_invariants(mut self) -> Self {
        self.laws = Some(Invariants::new());
        self
    }

    /// The axis of the inputs along which the examples lie: 0 without this.
    pub fn batch_axis(mut self, axis: usize) -> Self {
        self.batch_axis = axis;
        self
    }

    /// The log since the last call; `None` once enough steps were seen.
    fn seen(&mut self) -> Option<WatchLog> {
        if self.forwards >= self.most && self.evaluations >= self.most {
            self.watching = None;
        }
        let watching = self.watching.as_ref()?;
        watching.resume();
        Some(watching.take())
    }

    /// Call this when the loss of a training step is computed and backward has not yet been called.
    ///
    /// `inputs` and `targets` are the batch that the loss was computed from: a tensor or an array
    /// of them (`[]` for no targets), as the loop hands them to the model and the loss. Errors if
    /// the loss has more than one element, or depends on no parameter.
    pub fn forward(
        &mut self,
        inputs: impl Tensors,
        targets: impl Tensors,
        loss: &Tensor,
    ) -> Result<()> {
        let Some(log) = self.seen() else {
            self.course.loss(loss.try_item()?);
            return Ok(());
        };
        let _unseen = watch::unseen();
        let number = loss.try_item()?;
        self.settle(&log);
        self.pending = Pending::default();
        if self.forwards >= self.most {
            self.course.loss(number);
            return Ok(());
        }
        self.forwards += 1;
        self.findings.step = self.forwards;
        let (inputs, targets) = (inputs.tensors(), targets.tensors());
        self.parameters.add_behind(loss, &inputs);
        let watching = self.watching.as_ref().expect("something was seen");
        watching.follow(self.parameters.all.iter().map(|p| p.leaf.clone()));
        self.pending = pending(loss, &self.parameters, self.laws.as_mut())?;
        self.course.forward(number, &self.parameters, &self.pending.gradients);
        self.values = values(&self.parameters);
        self.held.forward(&self.values);
        let at = Forward {
            flow: Flow::new(&log.ran, loss),
            inputs: &inputs,
            targets: &targets,
            read: &log.read,
            module: self.module,
            parameters: &self.parameters,
            own: &self.pending.own,
        };
        let found = &mut self.findings;
        let soft = softmax::collect(&at.flow);
        self.softmax.look(&at, &soft, found);
        self.attention.look(&at, &soft, found);
        losses::look(&at, self.batch_axis, found);
        self.statistics.look(&at, found);
        self.detached.look(&at);
        self.inputs.look(&at, found);
        self.labels.look(&at, found);
        Ok(())
    }

    /// Looks at the gradients that a backward pass left, if there was one.
    fn settle(&mut self, log: &WatchLog) {
        let Some(grads) = log.passes.last() else { return };
        if self.pending.own.is_empty() || self.pending.settled {
            return;
        }
        self.pending.settled = true;
        let numbers = |g: &Tensor| g.to_f64_vec();
        let after = self.parameters.all.iter().zip(grads);
        let after = after.filter_map(|(p, g)| Some((p.leaf.number, numbers(g.as_ref()?))));
        let after = after.collect();
        self.gradients.backward(&self.pending, &after, &self.parameters, &mut self.findings);
    }

    /// Call this right after the optimizer's step, before gradients are forgotten. Steps without a
    /// forward pass before them do no harm.
    pub fn step(&mut self) -> Result<()> {
        let Some(log) = self.seen() else { return Ok(()) };
        let _unseen = watch::unseen();
        self.settle(&log);
        if self.pending.own.is_empty() {
            return Ok(());
        }
        let before = std::mem::take(&mut self.values);
        let now = values(&self.parameters);
        let changed = self.parameters.all.iter().map(|p| p.leaf.number);
        let changed: Vec<u64> = changed.filter(|n| before.get(n) != now.get(n)).collect();
        self.gradients.step(&changed, &self.parameters, &mut self.findings);
        self.held.step(&self.pending, &now, &changed, &self.parameters, &mut self.findings);
        self.detached.step(&changed, &self.parameters, &mut self.findings);
        self.course.step(&self.parameters);
        self.values = now;
        Ok(())
    }

    /// An evaluation: calls `f` with the inputs and returns its result.
    ///
    /// `f` is called twice more while evaluations are looked at: with the same inputs, and with
    /// inputs of which the second half of the batch is replaced by the first. An output must not
    /// change by chance, nor with the other examples of its batch. The model's buffers are put back
    /// afterwards; what `f` changes beside them (a counter, a generator of its own) goes on three
    /// times as fast.
    pub fn evaluate(&mut self, inputs: &Tensor, mut f: impl FnMut(&Tensor) -> Tensor) -> Tensor {
        let log = self.seen().filter(|_| self.evaluations < self.most);
        let Some(log) = log else { return f(inputs) };
        let _unseen = watch::unseen();
        self.settle(&log);
        self.evaluations += 1;
        self.findings.step = self.forwards;
        let evaluation = evaluation::Evaluation { module: self.module, axis: self.batch_axis };
        let watching = self.watching.as_ref().expect("it was there a moment ago");
        evaluation.run(inputs, &mut f, watching, &mut self.findings)
    }

    /// The findings until now.
    pub fn report(&self) -> WorkflowReport {
        WorkflowReport {
            steps: self.forwards,
            evaluations: self.evaluations,
            findings: self.findings.all.clone(),
            symptoms: self.course.symptoms(),
            broken: self.laws.as_ref().map(|laws| laws.broken().to_vec()).unwrap_or_default(),
        }
    }
}

/// The values of all parameters by number.
fn values(parameters: &Parameters) -> HashMap<u64, Vec<f64>> {
    let all = parameters.all.iter();
    all.map(|p| (p.leaf.number, p.tensor().to_f64_vec())).collect()
}

/// This pass's own gradients, by a walk that changes none of those stored.
fn pending(
    loss: &Tensor,
    parameters: &Parameters,
    mut laws: Option<&mut Invariants>,
) -> Result<Pending> {
    if !loss.requires_grad() {
        let why = "the loss depends on no parameter: check for no_grad or detach on the way";
        return Err(Error::gradient("Workflow::forward", why));
    }
    let nodes = reachable([loss.source()].into_iter(), 0);
    let kept = nodes.into_iter().filter(|n| lock(&n.notes).as_ref().is_some_and(|n| n.retain));
    let kept: Vec<_> = kept.collect();
    let mut targets: Vec<Tensor> = parameters.all.iter().map(|p| p.tensor()).collect();
    for node in &kept {
        // Targets are found by their numbers: the value is not read.
        targets.push(Tensor::from_parts(loss.value(), Source::Node(node.clone())));
    }
    let observer = laws.as_deref_mut().map(|laws| laws as &mut dyn Observer);
    let walk = Walk { keep_graph: true, targets: Some(&targets), observer, ..Walk::default() };
    let mut found = walk.run(&[(loss, loss.ones_like())])?;
    if let Some(laws) = laws {
        laws.forget();
    }
    let of_kept = found.split_off(parameters.all.len());
    let numbers = |g: Tensor| g.to_f64_vec();
    let own = parameters.all.iter().zip(found);
    let gradients: HashMap<u64, Tensor> =
        own.filter_map(|(p, g)| Some((p.leaf.number, g?))).collect();
    let own = gradients.iter().map(|(number, g)| (*number, numbers(g.clone()))).collect();
    let mut retained = Vec::new();
    for ((node, tensor), own) in
        kept.iter().zip(targets.split_off(parameters.all.len())).zip(of_kept)
    {
        let Some(own) = own.map(numbers) else { continue };
        let label = tensor
            .name()
            .map_or(format!("the result of `{}`", node.op.name()), |n| format!("`{n}`"));
        retained.push(Retained {
            before: tensor.grad().map(numbers),
            label,
            location: Some(node.location),
            own,
            tensor,
        });
    }
    Ok(Pending { own, gradients, retained, settled: false })
}

/// One tensor or several.
pub trait Tensors {
    /// All of them.
    fn tensors(self) -> Vec<Tensor>;
}

impl Tensors for &Tensor {
    fn tensors(self) -> Vec<Tensor> {
        vec![self.clone()]
    }
}

impl Tensors for &[Tensor] {
    fn tensors(self) -> Vec<Tensor> {
        self.to_vec()
    }
}

impl<const N: usize> Tensors for [&Tensor; N] {
    fn tensors(self) -> Vec<Tensor> {
        self.into_iter().cloned().collect()
    }
}
