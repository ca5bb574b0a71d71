//! Recurrent layers: PyTorch's [`Rnn`], [`Gru`] and [`Lstm`], and cells with learned initial
//! states.
//!
//! The loop over layers, directions and time is here; each cell is in its own file.

mod cells;
mod gru;
mod lstm;
mod plain;

pub use cells::{Cell, GruCell, RnnCell, Unrolled};
pub use gru::Gru;
pub use lstm::Lstm;
pub use plain::Rnn;

use std::fmt::Debug;

use super::init::uniform;
use super::{Field, Layer, Module};
use crate::dtype::DType;
use crate::error::{Error, Result, raise};
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::tensor::place::Called;

/// Cell of a kind of recurrent layer. Its state is `N` tensors `[batch, hidden]`, the output first.
pub trait RecurrentStep<const N: usize>: Debug + Default + Send + Sync {
    /// The layer's name, for errors.
    const NAME: &'static str;

    /// Number of gates: rows of the weights per hidden unit.
    const GATES: usize;

    /// The weight `[inputs + hidden, width]` for the concatenated input and state, from the
    /// transposed weights of both.
    ///
    /// A step is then one product, whose weight gradient is contiguous where it is summed.
    fn join(&self, input: &Tensor, hidden: &Tensor) -> Result<Tensor> {
        Tensor::try_cat(&[input, hidden], 0)
    }

    /// The bias `[width]` that goes with [`RecurrentStep::join`].
    fn join_biases(&self, input: &Tensor, hidden: &Tensor) -> Result<Tensor> {
        input.try_add(hidden)
    }

    /// The next state, from the pre-activations `[batch, width]`.
    fn step(&self, sums: &Tensor, state: &[Tensor; N]) -> Result<[Tensor; N]>;
}

/// Options of a recurrent layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurrentOptions {
    /// Number of stacked layers; 1.
    pub layers: usize,
    /// With biases; on.
    pub bias: bool,
    /// Bidirectional, with the outputs of both directions concatenated; off.
    pub bidirectional: bool,
}

impl Default for RecurrentOptions {
    fn default() -> Self {
        RecurrentOptions { layers: 1, bias: true, bidirectional: false }
    }
}

/// A recurrent layer with the cell `S`: [`Rnn`], [`Gru`] and [`Lstm`] are aliases of it.
///
/// It maps `[batch, time, inputs]` to `[batch, time, hidden]` (twice `hidden` if bidirectional);
/// [`Layer::forward`] starts from zeros and returns the outputs, [`Recurrent::forward_from`] takes
/// an initial state and returns the last one too. States are `[layers, batch, hidden]`, or twice as
/// many layers if bidirectional (forward, backward, forward, ...).
///
/// Names, shapes and initial values of the parameters are PyTorch's: for layer `k`,
/// `weight_ih_l{k}` `[gates * hidden, inputs]`, `weight_hh_l{k}` `[gates * hidden, hidden]`,
/// `bias_ih_l{k}` and `bias_hh_l{k}`, with `_reverse` for the other direction; all are initialised
/// uniform within `± 1 / sqrt(hidden)`.
#[derive(Debug)]
pub struct Recurrent<S, const N: usize> {
    inputs: usize,
    hidden: usize,
    bidirectional: bool,
    step: S,
    /// By layer, then by direction.
    weights: Vec<Weights>,
}

/// Parameters of one layer in one direction.
#[derive(Debug)]
struct Weights {
    suffix: String,
    input: Tensor,
    hidden: Tensor,
    biases: Option<[Tensor; 2]>,
}

impl<S: RecurrentStep<N>, const N: usize> Recurrent<S, N> {
    /// One layer with biases, in f32.
    #[track_caller]
    pub fn new(inputs: usize, hidden: usize, generator: &mut Generator) -> Self {
        Self::try_new(inputs, hidden, generator).unwrap_or_else(|e| raise(e))
    }

    /// As [`Recurrent::new`], but returns the error: for sizes of 0.
    pub fn try_new(inputs: usize, hidden: usize, generator: &mut Generator) -> Result<Self> {
        Self::try_with_options(inputs, hidden, RecurrentOptions::default(), generator)
    }

    /// As [`Recurrent::new`], with options.
    #[track_caller]
    pub fn with_options(
        inputs: usize,
        hidden: usize,
        options: RecurrentOptions,
        generator: &mut Generator,
    ) -> Self {
        Self::try_with_options(inputs, hidden, options, generator).unwrap_or_else(|e| raise(e))
    }

    /// As [`Recurrent::with_options`], but returns the error: for sizes of 0.
    pub fn try_with_options(
        inputs: usize,
        hidden: usize,
        options: RecurrentOptions,
        generator: &mut Generator,
    ) -> Result<Self> {
        let RecurrentOptions { layers, bias, bidirectional } = options;
        if inputs == 0 || hidden == 0 || layers == 0 {
            let why = format!(
                "needs an input, a hidden unit and a layer at least, got {inputs}, {hidden} and {layers}"
            );
            return Err(Error::argument(S::NAME, why));
        }
        let rows = hidden.checked_mul(S::GATES).ok_or_else(|| {
            Error::argument(S::NAME, format!("{hidden} hidden units are too many"))
        })?;
        let bound = 1.0 / (hidden as f64).sqrt();
        let directions = if bidirectional { 2 } else { 1 };
        let mut weights = Vec::new();
        for layer in 0..layers {
            let inputs = if layer == 0 { inputs } else { hidden * directions };
            for reverse in [false, true].into_iter().take(directions) {
                let mut draw = |shape: &[usize]| -> Result<Tensor> {
                    uniform(shape, -bound, bound, generator)?.try_parameter()
                };
                let (input, hidden) = (draw(&[rows, inputs])?, draw(&[rows, hidden])?);
                let biases = if bias { Some([draw(&[rows])?, draw(&[rows])?]) } else { None };
                let suffix = format!("l{layer}{}", if reverse { "_reverse" } else { "" });
                weights.push(Weights { suffix, input, hidden, biases });
            }
        }
        Ok(Recurrent { inputs, hidden, bidirectional, step: S::default(), weights })
    }

    /// Converts the parameters to new leaves, to compute in f64. Errors for a dtype that is no
    /// float.
    pub fn to_dtype(mut self, dtype: DType) -> Result<Self> {
        let convert = |w: &mut Tensor| -> Result<()> {
            *w = w.detach().try_to_dtype(dtype)?.try_parameter()?;
            Ok(())
        };
        for Weights { input, hidden, biases, .. } in &mut self.weights {
            let biases = biases.iter_mut().flatten();
            [input, hidden].into_iter().chain(biases).try_for_each(convert)?;
        }
        Ok(self)
    }

    /// As [`Recurrent::try_forward_from`], but panics with the error's text.
    #[track_caller]
    pub fn forward_from(&self, x: &Tensor, start: Option<&[Tensor; N]>) -> (Tensor, [Tensor; N]) {
        match self.try_forward_from(x, start) {
            Ok(y) => y,
            Err(e) => raise(e),
        }
    }

    /// Outputs of the last layer and final states of all, from an initial state (zeros if there is
    /// none).
    ///
    /// Errors for an input that is not `[batch, time, inputs]` with at least one step, and for an
    /// initial state of another shape.
    #[track_caller]
    pub fn try_forward_from(
        &self,
        x: &Tensor,
        start: Option<&[Tensor; N]>,
    ) -> Result<(Tensor, [Tensor; N])> {
        let _called = Called::here();
        let start = self.starts(x, start)?;
        let directions = if self.bidirectional { 2 } else { 1 };
        // Time first, so that a step is contiguous.
        let mut x = x.try_transpose(0, 1)?;
        let mut last: [Vec<Tensor>; N] = std::array::from_fn(|_| Vec::new());
        for weights in self.weights.chunks(directions) {
            let mut outputs = Vec::new();
            for (direction, weights) in weights.iter().enumerate() {
                let k = last[0].len();
                let state = start.each_ref().map(|states| states[k].clone());
                let (steps, state) = self.walk(&x, state, weights, direction == 1)?;
                outputs.push(joined(&steps)?);
                last.iter_mut().zip(state).for_each(|(all, s)| all.push(s));
            }
            x = match &outputs[..] {
                [one] => one.clone(),
                both => Tensor::try_cat(&both.iter().collect::<Vec<_>>(), 2)?,
            };
        }
        let mut states = Vec::with_capacity(N);
        for all in &last {
            states.push(joined(all)?);
        }
        let states = <[Tensor; N]>::try_from(states).expect("as many as there are");
        Ok((x.try_transpose(0, 1)?, states))
    }

    /// One layer in one direction: outputs in the order of time, and the final state.
    fn walk(
        &self,
        x: &Tensor,
        mut state: [Tensor; N],
        weights: &Weights,
        reverse: bool,
    ) -> Result<(Vec<Tensor>, [Tensor; N])> {
        let joined = self.step.join(&weights.input.try_t()?, &weights.hidden.try_t()?)?;
        let bias = match &weights.biases {
            Some([input, hidden]) => Some(self.step.join_biases(input, hidden)?),
            None => None,
        };
        let mut steps = moments(x)?;
        if reverse {
            steps.reverse();
        }
        for x in &mut steps {
            let mut sums = Tensor::try_cat(&[x, &state[0]], 1)?.try_matmul(&joined)?;
            if let Some(bias) = &bias {
                sums = sums.try_add(bias)?;
            }
            state = self.step.step(&sums, &state)?;
            *x = state[0].clone();
        }
        if reverse {
            steps.reverse();
        }
        Ok((steps, state))
    }

    /// Initial states by layer and direction, `[batch, hidden]` each.
    fn starts(&self, x: &Tensor, start: Option<&[Tensor; N]>) -> Result<[Vec<Tensor>; N]> {
        let shape = x.shape();
        if shape.rank() != 3 || shape[2] != self.inputs || shape[1] == 0 {
            let why = format!(
                "the input must be [batch, time, {}], with a time of 1 at least",
                self.inputs
            );
            return Err(Error::shape(S::NAME, &[&shape], why));
        }
        let wanted = [self.weights.len(), shape[0], self.hidden];
        let mut out: [Vec<Tensor>; N] = std::array::from_fn(|_| Vec::new());
        match start {
            None => {
                let zeros = Tensor::try_full(&wanted[1..], 0.0, self.weights[0].hidden.dtype())?;
                out.iter_mut().for_each(|o| *o = vec![zeros.clone(); self.weights.len()]);
            }
            Some(start) => {
                for (out, state) in out.iter_mut().zip(start) {
                    if state.shape() != wanted {
                        let why = format!("the start state must be {wanted:?}");
                        return Err(Error::shape(S::NAME, &[&state.shape()], why));
                    }
                    *out = moments(state)?;
                }
            }
        }
        Ok(out)
    }
}

/// Slices of `x` `[n, rows, columns]` along its first axis.
///
/// Splits in halves recursively: the gradient of a slice is as large as its source, so slicing one
/// by one would cost quadratic time.
fn moments(x: &Tensor) -> Result<Vec<Tensor>> {
    fn halve(x: &Tensor, out: &mut Vec<Tensor>, part: [usize; 2]) -> Result<()> {
        let n = x.shape()[0];
        match n {
            0 => {}
            1 => out.push(x.try_reshape(part)?),
            _ => {
                halve(&x.try_narrow(0, 0, n / 2)?, out, part)?;
                halve(&x.try_narrow(0, n / 2, n - n / 2)?, out, part)?;
            }
        }
        Ok(())
    }
    let shape = x.shape();
    let (n, part) = (shape[0], [shape[1], shape[2]]);
    let mut out = Vec::with_capacity(n);
    // Copies a transposed input once, since its slices are strided.
    halve(&x.try_reshape([n, part[0] * part[1]])?, &mut out, part)?;
    Ok(out)
}

/// Stacks slices `[rows, columns]` to `[n, rows, columns]`; the gradient has the same layout.
fn joined(parts: &[Tensor]) -> Result<Tensor> {
    let part = parts[0].shape();
    let flat: Vec<Tensor> =
        parts.iter().map(|p| p.try_reshape([1, part.numel()])).collect::<Result<_>>()?;
    let all = Tensor::try_cat(&flat.iter().collect::<Vec<_>>(), 0)?;
    all.try_reshape([parts.len(), part[0], part[1]])
}

/// Chunk `i` of `parts` equal chunks of the last axis.
fn gate(x: &Tensor, i: usize, parts: usize) -> Result<Tensor> {
    let n = x.shape().last().copied().unwrap_or(0) / parts;
    x.try_narrow(-1, i * n, n)
}

impl<S: RecurrentStep<N>, const N: usize> Module for Recurrent<S, N> {
    fn fields(&self) -> Vec<(String, Field<'_>)> {
        let mut out = Vec::new();
        for Weights { suffix, input, hidden, biases } in &self.weights {
            out.push((format!("weight_ih_{suffix}"), Field::Parameter(input)));
            out.push((format!("weight_hh_{suffix}"), Field::Parameter(hidden)));
            if let Some([input, hidden]) = biases {
                out.push((format!("bias_ih_{suffix}"), Field::Parameter(input)));
                out.push((format!("bias_hh_{suffix}"), Field::Parameter(hidden)));
            }
        }
        out
    }

    fn kind(&self) -> &'static str {
        S::NAME
    }
}

impl<S: RecurrentStep<N>, const N: usize> Layer for Recurrent<S, N> {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        self.try_forward_from(x, None).map(|(y, _)| y)
    }
}
