//! The backward pass as readable text, and as data.

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::chart::{Chart, brief, rule};
use super::walk::Observer;
use crate::error::{Result, raise};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source, lock};
use crate::tensor::place::Place;

/// Tensors of up to this many elements are written out; of larger ones the text gives statistics.
const FEW: usize = 8;

/// A backward pass, step by step, in the order in which it goes; made by [`Tensor::trace`].
/// `Display` writes it out.
#[derive(Clone, Debug)]
pub struct Trace {
    root: String,
    steps: Vec<Step>,
}

/// One step of a backward pass: the whole gradient of a tensor is known, and its op's rule passes
/// it on.
#[derive(Clone, Debug)]
pub struct Step {
    tensor: String,
    op: Option<&'static str>,
    rule: Option<String>,
    location: Option<&'static Location<'static>>,
    place: Option<Place>,
    shape: Shape,
    value: Option<Tensor>,
    inputs: Vec<Option<Tensor>>,
    cotangent: Tensor,
    received: Vec<Part>,
    sent: Vec<Part>,
}

/// A part of a gradient on its way along one edge of the graph.
#[derive(Clone, Debug)]
pub struct Part {
    other: String,
    position: usize,
    gradient: Tensor,
}

impl Trace {
    /// The steps, from the loss to the leaves.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The step of the tensor with this label; see [`Step::tensor`].
    pub fn step(&self, tensor: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.tensor == tensor)
    }
}

impl Step {
    /// The tensor's name; `op#number` if it has none, and of a leaf without one its number among
    /// the leaves and its shape, as in `parameter 2 [3, 4]`.
    pub fn tensor(&self) -> &str {
        &self.tensor
    }

    /// The op that made the tensor; `None` for a leaf.
    pub fn op(&self) -> Option<&'static str> {
        self.op
    }

    /// The line of Rust code that called the op.
    pub fn location(&self) -> Option<&'static Location<'static>> {
        self.location
    }

    /// The shape of the tensor and of its gradient.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The rule that is applied, as the op table has it; `None` for a leaf.
    pub fn rule(&self) -> Option<String> {
        self.rule.clone()
    }

    /// The value of the tensor, if the tape has it: it was saved for backward, or computed inside
    /// [`crate::record_all`].
    pub fn value(&self) -> Option<&Tensor> {
        self.value.as_ref()
    }

    /// The values of the op's inputs, where the tape has them.
    pub fn inputs(&self) -> &[Option<Tensor>] {
        &self.inputs
    }

    /// The incoming gradient: the whole one of the tensor, after its hooks.
    pub fn cotangent(&self) -> &Tensor {
        &self.cotangent
    }

    /// The parts that add up to it before hooks, each with the tensor that passed it on; none for
    /// the loss.
    pub fn received(&self) -> &[Part] {
        &self.received
    }

    /// The outgoing gradients: to each input that needs one, its part.
    pub fn sent(&self) -> &[Part] {
        &self.sent
    }
}

impl Part {
    /// The tensor at the other end of the edge: the receiver, or the sender.
    pub fn tensor(&self) -> &str {
        &self.other
    }

    /// The position among the inputs of the op that passed it on.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The part of the gradient.
    pub fn gradient(&self) -> &Tensor {
        &self.gradient
    }
}

struct Recorder<'a> {
    chart: &'a Chart,
    steps: Vec<Step>,
    /// Parts sent to tensors so far.
    waiting: HashMap<u64, Vec<Part>>,
}

impl Observer for Recorder<'_> {
    fn arrive(&mut self, target: &Source, gradient: &Tensor) {
        let node = match target {
            Source::Node(node) => Some(node),
            _ => None,
        };
        self.steps.push(Step {
            tensor: self.chart.label(target),
            op: node.map(|node| node.op.name()),
            rule: node.map(|node| rule(&*node.op)),
            location: node.map(|node| node.location),
            place: node.and_then(|node| node.place()),
            shape: gradient.shape(),
            value: self.chart.value(target),
            inputs: node.map(|node| inputs(self.chart, node)).unwrap_or_default(),
            cotangent: gradient.clone(),
            received: self.waiting.remove(&target.number()).unwrap_or_default(),
            sent: Vec::new(),
        });
    }

    fn pass(&mut self, node: &Arc<Node>, i: usize, part: &Tensor) {
        let input = &node.inputs[i];
        let edge = |other| Part { other, position: i, gradient: part.clone() };
        let from = self.chart.label(&Source::Node(node.clone()));
        let waiting = self.waiting.entry(input.number()).or_default();
        waiting.push(edge(from));
        if let Some(step) = self.steps.last_mut() {
            step.sent.push(edge(self.chart.label(input)));
        }
    }
}

/// The values of a node's inputs: as saved, or as known from elsewhere.
fn inputs(chart: &Chart, node: &Node) -> Vec<Option<Tensor>> {
    let saved = lock(&node.saved);
    let known = |(i, source): (usize, &Source)| match saved.inputs.get(i) {
        Some(Some(value)) => Some(Tensor::from_parts(value.clone(), Source::None)),
        _ => chart.value(source),
    };
    node.inputs.iter().enumerate().map(known).collect()
}

impl Tensor {
    /// The backward pass from this single element, step by step: what came in, the rule, what went
    /// out to whom. No gradient changes and the graph is kept; hooks are called.
    ///
    /// The trace holds all gradients of all intermediates, so it takes the memory of a backward
    /// pass that frees nothing. Panics if this has more than one element or depends on no
    /// parameter; [`Tensor::try_trace`] returns the error.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::scalar(2.0f64).parameter().named("a");
    /// let b = Tensor::scalar(-3.0f64).parameter().named("b");
    /// let loss = (&a * &b).named("loss");
    /// let trace = loss.trace();
    /// assert_eq!(trace.steps().len(), 3);
    /// assert_eq!(trace.step("a").unwrap().cotangent().item(), -3.0);
    /// println!("{trace}");
    /// ```
    #[track_caller]
    pub fn trace(&self) -> Trace {
        match self.try_trace() {
            Ok(trace) => trace,
            Err(e) => raise(e),
        }
    }

    /// Like [`Tensor::trace`], but returns the error.
    pub fn try_trace(&self) -> Result<Trace> {
        let chart = Chart::of(self);
        let mut recorder = Recorder { chart: &chart, steps: Vec::new(), waiting: HashMap::new() };
        chart.walk("trace", self, &mut recorder)?;
        Ok(Trace { root: chart.label(self.source()), steps: recorder.steps })
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "backward from {}, {} steps", self.root, self.steps.len())?;
        let wide = self.steps.len().to_string().len();
        for (i, step) in self.steps.iter().enumerate() {
            write!(f, "\n{:>wide$}. ", i + 1)?;
            write_step(f, step, &" ".repeat(wide + 2))?;
        }
        Ok(())
    }
}

fn write_step(f: &mut fmt::Formatter<'_>, step: &Step, indent: &str) -> fmt::Result {
    write!(f, "{}", step.tensor)?;
    match (step.op, &step.place) {
        (Some(op), Some(at)) => writeln!(f, ": {op}, {} ({at})", step.shape)?,
        (Some(op), None) => writeln!(f, ": {op}, {}", step.shape)?,
        _ => writeln!(f, ": leaf, {}", step.shape)?,
    }
    if let Some(value) = &step.value {
        writeln!(f, "{indent}value  {}", brief(value, FEW))?;
    }
    writeln!(f, "{indent}came   {}", brief(&step.cotangent, FEW))?;
    if step.received.len() > 1 {
        for part in &step.received {
            let of = brief(&part.gradient, FEW);
            writeln!(f, "{indent}         {of} from {}", part.other)?;
        }
    }
    if let Some(rule) = step.rule() {
        writeln!(f, "{indent}rule   {rule}")?;
        for (i, value) in step.inputs.iter().enumerate() {
            if let Some(value) = value {
                writeln!(f, "{indent}         input {i} is {}", brief(value, FEW))?;
            }
        }
    }
    for part in &step.sent {
        let of = brief(&part.gradient, FEW);
        writeln!(f, "{indent}sent   {of} to {} (input {})", part.other, part.position)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record_all;

    #[test]
    fn the_text_of_a_small_pass() {
        // By hand: d = a*b + a, at a = 2, b = -3: da = b + 1, db = a.
        let a = Tensor::scalar(2.0f64).parameter().named("a");
        let b = Tensor::scalar(-3.0f64).parameter().named("b");
        let (c, d, line) = record_all(|| {
            let c = &a * &b;
            let line = line!() - 1;
            let d = (&c + &a).named("d");
            (c, d, line)
        });
        let trace = d.trace();
        // Places are told by the file's name without its folders.
        let file = file!().rsplit(['/', '\\']).next().unwrap();
        let expected = format!(
            "backward from d, 4 steps

1. d: add, [] ({file}:{next})
   value  -4
   came   1
   rule   {add}
            input 0 is -6
            input 1 is 2
   sent   1 to mul#3 (input 0)
   sent   1 to a (input 1)

2. mul#3: mul, [] ({file}:{line})
   value  -6
   came   1
   rule   da = g * b; db = g * a
            input 0 is 2
            input 1 is -3
   sent   -3 to a (input 0)
   sent   2 to b (input 1)

3. b: leaf, []
   value  -3
   came   2

4. a: leaf, []
   value  2
   came   -2
            1 from d
            -3 from mul#3
",
            next = line + 2,
            add = crate::ops::OpId::add.entry().gradient,
        );
        assert_eq!(trace.to_string(), expected);
        // Nothing changed, and the graph is still there.
        assert!(a.grad().is_none() && c.grad().is_none());
        d.backward();
        assert_eq!((a.grad().unwrap().item(), b.grad().unwrap().item()), (-2.0, 2.0));
        assert_eq!(c.grad().unwrap().item(), 1.0);
    }

    #[test]
    fn constants_that_no_rule_needs_are_shown() {
        let x = Tensor::from([1.0f64, 2.0]).parameter().named("x");
        let mask = Tensor::from([0.0f64, 5.0]);
        let loss = (&x + 3.0 - &mask).sum_all();
        let text = loss.trace().to_string();
        assert!(text.contains("input 1 is 3\n") && text.contains("input 1 is [0, 5]\n"), "{text}");
        assert!(loss.graph().to_dot().contains("constant\\nvalue 3"));
        // A rule that needs nothing saved can be walked again, as without them.
        loss.backward();
        loss.backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [2.0, 2.0]);
        // A large one is not held.
        let many = Tensor::ones([9]);
        let y = Tensor::scalar(1.0f32).parameter();
        let text = (&y + &many).sum_all().trace().to_string();
        assert!(!text.contains("input 1"), "{text}");
    }

    #[test]
    fn the_data_of_a_pass() {
        let w = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]).parameter().named("w");
        let h = w.matmul(&Tensor::from([[1.0f32], [1.0]])).tanh().named("h");
        let trace = h.sum_all().trace();
        let ops: Vec<_> = trace.steps().iter().map(Step::op).collect();
        assert_eq!(ops, [Some("sum"), Some("tanh"), Some("matmul"), None]);
        let step = trace.step("h").unwrap();
        assert_eq!(step.shape(), [2, 1]);
        assert_eq!(step.cotangent().to_vec::<f32>(), [1.0, 1.0]);
        assert_eq!(step.sent()[0].tensor(), "matmul#2");
        assert_eq!(step.received()[0].tensor(), "sum#4");
        // tanh keeps its result, so its value is known without record_all; the matmul's is not kept
        // by anybody.
        assert_eq!(step.value().unwrap().to_vec::<f32>(), h.to_vec::<f32>());
        assert!(trace.step("matmul#2").unwrap().value().is_none());
        assert!(trace.step("h").unwrap().location().unwrap().file().ends_with("trace.rs"));
        let sum = |step: &Step| {
            step.received().iter().fold(0.0, |s, p| s + p.gradient().sum_all().item())
        };
        for step in &trace.steps()[1..] {
            assert_eq!(sum(step), step.cotangent().sum_all().item());
        }
    }

    #[test]
    fn what_cannot_be_traced() {
        let error = Tensor::scalar(1.0f32).try_trace().unwrap_err().to_string();
        assert!(error.starts_with("trace: the tensor does not depend"), "{error}");
        let x = Tensor::from([1.0f32, 2.0]).parameter();
        let error = (&x * 2.0).try_trace().unwrap_err().to_string();
        assert!(error.contains("single element"), "{error}");
        let y = (&x * &x).sum_all();
        y.backward();
        let error = y.try_trace().unwrap_err().to_string();
        assert!(error.contains("freed by an earlier backward"), "{error}");
    }
}
