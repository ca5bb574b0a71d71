//! Character models of names, from a table of pairs to a transformer: those of the makemore
//! lectures, with their sizes.

use super::{Gpt, GptConfig};
use crate::error::{Error, Result};
use crate::nn::{
    BatchNorm1d, Cell, Embedding, FlattenConsecutive, GruCell, Layer, Linear, LinearOptions, Lstm,
    Module, PositionalEmbedding, RnnCell, Sequential, Tanh, Unrolled,
};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// The width of vectors and hidden layers.
const WIDTH: usize = 64;

/// The models.
///
/// `[batch, time]` symbols give `[batch, time, symbols]` logits of the next ones.
/// [`NamesFamily::Wavenet`] alone gives `[batch, symbols]`, for the symbol after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamesFamily {
    /// A table: the logits depend on the last symbol alone.
    Bigram,
    /// The vectors of all symbols so far side by side through a hidden layer (Bengio et al. 2003).
    Mlp,
    /// Neighbours joined two by two, layer after layer (van den Oord et al. 2016).
    Wavenet,
    /// A recurrent net with a learned start.
    Rnn,
    /// A gated recurrent unit with a learned start (Cho et al. 2014).
    Gru,
    /// Long short-term memory (Hochreiter and Schmidhuber 1997).
    Lstm,
    /// The mean of the vectors so far, in whatever order they came.
    Bow,
    /// Four blocks of attention (Vaswani et al. 2017).
    Transformer,
}

impl NamesFamily {
    /// All of them.
    pub const ALL: [NamesFamily; 8] = [
        NamesFamily::Bigram,
        NamesFamily::Mlp,
        NamesFamily::Wavenet,
        NamesFamily::Rnn,
        NamesFamily::Gru,
        NamesFamily::Lstm,
        NamesFamily::Bow,
        NamesFamily::Transformer,
    ];

    /// The model for this many symbols and a context of this many, with random weights.
    ///
    /// ```
    /// use chainrule_lab::models::NamesFamily;
    /// use chainrule::nn::{Layer, Module};
    /// use chainrule::{Generator, Tensor};
    /// let gru = NamesFamily::Gru.model(27, 16, &mut Generator::manual_seed(0))?;
    /// assert_eq!(gru.parameter_count(), 28315);
    /// assert_eq!(gru.forward(&Tensor::from([[0i64, 5, 13]])).shape(), [1, 3, 27]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn model(
        self,
        symbols: usize,
        context: usize,
        generator: &mut Generator,
    ) -> Result<Box<dyn Layer>> {
        let g = generator;
        Ok(match self {
            NamesFamily::Bigram => {
                let logits = Tensor::zeros([symbols, symbols]).try_parameter()?;
                Box::new(Bigram { logits })
            }
            NamesFamily::Mlp => Box::new(Mlp::try_new(symbols, context, g)?),
            NamesFamily::Wavenet => Box::new(wavenet(symbols, context, g)?),
            NamesFamily::Rnn => recurrent(RnnCell::try_new, symbols, g)?,
            NamesFamily::Gru => recurrent(GruCell::try_new, symbols, g)?,
            NamesFamily::Lstm => {
                let vectors = Embedding::try_new(symbols, WIDTH, g)?;
                let lstm = Lstm::try_new(WIDTH, WIDTH, g)?;
                let head = Linear::try_new(WIDTH, symbols, g)?;
                Box::new(Sequential::new().with(vectors).with(lstm).with(head))
            }
            NamesFamily::Bow => Box::new(Bow::try_new(symbols, context, g)?),
            NamesFamily::Transformer => {
                let (layers, heads, dropout) = (4, 4, 0.0);
                let width = WIDTH;
                Box::new(Gpt::with_layer_starts(
                    GptConfig { symbols, context, layers, heads, width, dropout },
                    g,
                )?)
            }
        })
    }
}

/// A row of logits for each symbol.
#[derive(Debug, Module)]
struct Bigram {
    logits: Tensor,
}

impl Layer for Bigram {
    fn compute(&self, symbols: &Tensor) -> Result<Tensor> {
        self.logits.try_embedding(symbols)
    }
}

#[derive(Module)]
struct Mlp {
    /// The last one stands for what is before the start.
    vectors: Embedding,
    layers: Sequential,
    #[module(skip)]
    symbols: usize,
    #[module(skip)]
    context: usize,
}

impl Mlp {
    fn try_new(symbols: usize, context: usize, g: &mut Generator) -> Result<Mlp> {
        let vectors = Embedding::try_new(symbols + 1, WIDTH, g)?;
        let layers = Sequential::new()
            .with(Linear::try_new(context * WIDTH, WIDTH, g)?)
            .with(Tanh)
            .with(Linear::try_new(WIDTH, symbols, g)?);
        Ok(Mlp { vectors, layers, symbols, context })
    }
}

impl Layer for Mlp {
    fn compute(&self, symbols: &Tensor) -> Result<Tensor> {
        let [batch, time] = two_axes("Mlp", symbols)?;
        let before = vec![self.symbols as i64; batch * (self.context - 1)];
        let before = Tensor::try_from_slice(&before, [batch, self.context - 1])?;
        let vectors = self.vectors.try_forward(&Tensor::try_cat(&[&before, symbols], 1)?)?;
        // The newest symbol first.
        let back = (0..self.context).rev().map(|start| vectors.try_narrow(1, start, time));
        let back = back.collect::<Result<Vec<_>>>()?;
        self.layers.try_forward(&Tensor::try_cat(&back.iter().collect::<Vec<_>>(), -1)?)
    }
}

fn two_axes(name: &'static str, symbols: &Tensor) -> Result<[usize; 2]> {
    let shape = symbols.shape();
    match *shape {
        [batch, time] => Ok([batch, time]),
        _ => Err(Error::shape(name, &[&shape], "the input must be [batch, time]")),
    }
}

fn recurrent<C: Cell + 'static>(
    cell: fn(usize, usize, &mut Generator) -> Result<C>,
    symbols: usize,
    g: &mut Generator,
) -> Result<Box<dyn Layer>> {
    let vectors = Embedding::try_new(symbols, WIDTH, g)?;
    let unrolled = Unrolled::new(cell(WIDTH, WIDTH, g)?);
    let head = Linear::try_new(WIDTH, symbols, g)?;
    Ok(Box::new(Sequential::new().with(vectors).with(unrolled).with(head)))
}

/// Two and two neighbours joined, three times: the context is 8 symbols.
fn wavenet(symbols: usize, context: usize, g: &mut Generator) -> Result<Sequential> {
    const VECTOR: usize = 24;
    const HIDDEN: usize = 128;
    if context != 8 {
        let why = format!("this model sees 8 symbols, not {context}");
        return Err(Error::argument("Wavenet", why));
    }
    let mut net = Sequential::new().with(Embedding::try_new(symbols, VECTOR, g)?);
    for inputs in [VECTOR, HIDDEN, HIDDEN] {
        net = net
            .with(FlattenConsecutive::new(2))
            .with(Linear::try_with_options(
                2 * inputs,
                HIDDEN,
                LinearOptions::default().no_bias(),
                g,
            )?)
            .with(NormLast { norm: BatchNorm1d::new(HIDDEN) })
            .with(Tanh);
    }
    let head = Linear::try_new(HIDDEN, symbols, g)?;
    // Less sure of itself at the start.
    head.weight.try_set(&head.weight.detach().try_mul(0.1)?)?;
    Ok(net.with(head))
}

/// Batch norm over all axes but the last, whose places are the features.
#[derive(Debug, Module)]
struct NormLast {
    norm: BatchNorm1d,
}

impl Layer for NormLast {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        let shape = x.shape();
        let features = shape.last().map_or(1, |&n| n as i64);
        self.norm.try_forward(&x.try_reshape([-1, features])?)?.try_reshape(shape)
    }
}

#[derive(Debug, Module)]
struct Bow {
    vectors: Embedding,
    positions: PositionalEmbedding,
    expand: Linear,
    project: Linear,
    head: Linear,
}

impl Bow {
    fn try_new(symbols: usize, context: usize, g: &mut Generator) -> Result<Bow> {
        Ok(Bow {
            vectors: Embedding::try_new(symbols, WIDTH, g)?,
            positions: PositionalEmbedding::try_new(context, WIDTH, g)?,
            expand: Linear::try_new(WIDTH, WIDTH, g)?,
            project: Linear::try_new(WIDTH, WIDTH, g)?,
            head: Linear::try_new(WIDTH, symbols, g)?,
        })
    }
}

impl Layer for Bow {
    fn compute(&self, symbols: &Tensor) -> Result<Tensor> {
        let [_, time] = two_axes("Bow", symbols)?;
        let x = self.positions.try_forward(&self.vectors.try_forward(symbols)?)?;
        // Row t holds 1 / (t + 1) up to t: the product is the mean of what was seen.
        let share = |i: usize| if i % time > i / time { 0.0 } else { 1.0 / (i / time + 1) as f32 };
        let shares: Vec<f32> = (0..time * time).map(share).collect();
        let x = x.try_add(Tensor::try_from_slice(&shares, [time, time])?.try_matmul(&x)?)?;
        let wide = self.expand.try_forward(&x)?.try_tanh()?;
        let x = x.try_add(self.project.try_forward(&wide)?)?;
        self.head.try_forward(&x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn the_parameter_counts_are_the_published_ones() {
        let counts = [729, 69_147, 76_579, 11_803, 28_315, 36_763, 12_827, 204_544];
        for (family, count) in NamesFamily::ALL.into_iter().zip(counts) {
            let context = if family == NamesFamily::Wavenet { 8 } else { 16 };
            let model = family.model(27, context, &mut Generator::manual_seed(0)).unwrap();
            assert_eq!(model.parameter_count(), count, "{family:?}");
            let x = Tensor::zeros([3, 8]).to_dtype(DType::I64);
            let logits = model.forward(&x);
            let want: &[usize] = if context == 8 { &[3, 27] } else { &[3, 8, 27] };
            assert_eq!(logits.shape(), *want, "{family:?}");
        }
        assert!(NamesFamily::Wavenet.model(27, 16, &mut Generator::manual_seed(0)).is_err());
    }

    /// Later symbols do not change earlier guesses.
    #[test]
    fn no_model_sees_the_future() {
        let (a, b) = (Tensor::from([[0i64, 5, 13, 1]]), Tensor::from([[0i64, 5, 9, 2]]));
        for family in NamesFamily::ALL {
            if family == NamesFamily::Wavenet {
                continue;
            }
            let model = family.model(27, 16, &mut Generator::manual_seed(1)).unwrap();
            model.parameters().iter().for_each(|p| p.set(&(p.detach() + 0.01)));
            let logits = [&a, &b].map(|x| model.forward(x).to_vec::<f32>());
            assert_eq!(logits[0].len(), 4 * 27);
            assert_eq!(logits[0][..54], logits[1][..54], "{family:?}");
            assert!(family == NamesFamily::Bigram || logits[0][54..81] != logits[1][54..81]);
        }
    }
}
