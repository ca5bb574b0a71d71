//! A description as a model: weights, forward pass, loss and score.

mod loss;
mod score;
mod weights;

pub(crate) use loss::{loss, targets};
pub(crate) use score::{score, share_on};

use chainrule_core::dtype::DType;
use chainrule_core::ops::{Conv, MaxPool};
use chainrule_core::rng::Generator;
use chainrule_core::tensor::Tensor;
use chainrule_nn::nn::{Field, Module};

use crate::description::{Activation, Init, Layer, Program};
use crate::error::Result;

/// The weights of one layer.
#[derive(Default)]
struct Weights {
    w: Option<Tensor>,
    b: Option<Tensor>,
    /// Gain, shift, running mean and running variance.
    norm: Option<[Tensor; 4]>,
}

/// The model of a description.
pub(crate) struct Net {
    layers: Vec<(Layer, Weights)>,
    /// Trained leaves, by name.
    parameters: Vec<(String, Tensor)>,
}

/// A layer's values on the probe.
pub(crate) struct Tap {
    /// Number of the layer.
    pub layer: usize,
    /// After the activation.
    pub after: Tensor,
}

impl Module for Net {
    fn fields(&self) -> Vec<(String, Field<'_>)> {
        self.parameters.iter().map(|(name, t)| (name.clone(), Field::Parameter(t))).collect()
    }
}

/// A value, and whether its channels stand before its positions, as convolutions expect.
struct Flow {
    x: Tensor,
    first: bool,
}

impl Flow {
    /// Positions first, channels last.
    fn last(self) -> Result<Tensor> {
        match (self.first, self.x.rank()) {
            (false, _) => Ok(self.x),
            (true, 3) => self.x.try_permute(&[0, 2, 1]),
            (true, _) => self.x.try_permute(&[0, 2, 3, 1]),
        }
    }

    fn first(self) -> Result<Tensor> {
        match (self.first, self.x.rank()) {
            (true, _) => Ok(self.x),
            (false, 3) => self.x.try_permute(&[0, 2, 1]),
            (false, _) => self.x.try_permute(&[0, 3, 1, 2]),
        }
    }
}

impl Net {
    /// The model before the first step of the run with this seed.
    pub(crate) fn new(program: &Program, seed: u64) -> Result<Net> {
        let mut draw = Generator::manual_seed(1000 + seed);
        let mut net = Net { layers: Vec::new(), parameters: Vec::new() };
        let mut shape = program.input.clone();
        for (i, layer) in program.layers.iter().enumerate() {
            let channels = shape.last().copied().unwrap_or(1);
            let mut own = Weights::default();
            let mut keep = |name: &str, value: Tensor, trained: bool| {
                let name = format!("{i}.{name}");
                let leaf = if trained { value.parameter() } else { value.buffer() };
                leaf.named(&name);
                if trained {
                    net.parameters.push((name, leaf.clone()));
                }
                leaf
            };
            match layer {
                Layer::Dense { units, init, bias, trainable, .. } => {
                    let w = weights::make(&[channels, *units], channels, *units, *init, &mut draw)?;
                    own.w = Some(keep("weight", w, *trainable));
                    if let Some(bias) = bias {
                        let b = weights::make(&[*units], 1, 1, *bias, &mut draw)?;
                        own.b = Some(keep("bias", b, *trainable));
                    }
                }
                Layer::Conv { axes, filters, kernel, init, bias, .. } => {
                    let area = kernel.pow(*axes as u32);
                    let sizes = [&[*filters, channels][..], &vec![*kernel; *axes]].concat();
                    let (inputs, outputs) = (channels * area, filters * area);
                    let w = weights::make(&sizes, inputs, outputs, *init, &mut draw)?;
                    own.w = Some(keep("weight", w, true));
                    let b = weights::make(&[*filters], 1, 1, *bias, &mut draw)?;
                    own.b = Some(keep("bias", b, true));
                }
                Layer::BatchNorm { .. } => {
                    let (ones, zeros) = (Tensor::ones([channels]), Tensor::zeros([channels]));
                    own.norm = Some([
                        keep("gain", ones.clone(), true),
                        keep("shift", zeros.clone(), true),
                        keep("mean", zeros, false),
                        keep("variance", ones, false),
                    ]);
                }
                _ => {}
            }
            shape = layer.shape(&shape, i)?;
            net.layers.push((layer.clone(), own));
        }
        Ok(net)
    }

    /// The weight decay term of the loss: the squared weights.
    pub(crate) fn penalty(&self) -> Result<Option<Tensor>> {
        let mut sum: Option<Tensor> = None;
        for (layer, weights) in &self.layers {
            let Some(w) = weights.w.as_ref().filter(|_| layer.l2() != 0.0) else { continue };
            let own = w.try_square()?.try_sum_all()?.try_mul(layer.l2())?;
            sum = Some(match sum {
                Some(sum) => sum.try_add(&own)?,
                None => own,
            });
        }
        Ok(sum)
    }

    /// The output for these inputs; given a generator, in training mode.
    pub(crate) fn forward(
        &self,
        x: &Tensor,
        draw: Option<&mut Generator>,
        taps: Option<&mut Vec<Tap>>,
    ) -> Result<Tensor> {
        let (mut draw, mut taps) = (draw, taps);
        let mut flow = Flow { x: x.clone(), first: false };
        for (i, (layer, own)) in self.layers.iter().enumerate() {
            let (before, after) = step(layer, own, flow, draw.as_deref_mut())?;
            if let Some(taps) = taps.as_deref_mut() {
                let after = after.x.clone();
                let after = Flow { x: after, first: before.first }.last()?;
                taps.push(Tap { layer: i, after });
            }
            flow = after;
        }
        flow.last()
    }
}

/// Runs a layer: its value before and after the activation.
fn step(
    layer: &Layer,
    own: &Weights,
    flow: Flow,
    draw: Option<&mut Generator>,
) -> Result<(Flow, Flow)> {
    let both = |x: Tensor, first: bool, a: Activation| -> Result<(Flow, Flow)> {
        let before = Flow { x, first };
        let after = match a {
            // Along the channels, which must be the last axis.
            Activation::Softmax if first => {
                let x = Flow { x: before.x.clone(), first }.last()?.try_softmax(-1)?;
                Flow { x, first: false }.first()?
            }
            _ => act(a, &before.x)?,
        };
        Ok((before, Flow { x: after, first }))
    };
    match layer {
        Layer::Dense { activation, .. } => {
            let w = own.w.as_ref().expect("a dense layer has weights");
            let mut z = flow.last()?.try_matmul(w)?;
            if let Some(b) = &own.b {
                z = z.try_add(b)?;
            }
            both(z, false, *activation)
        }
        Layer::Conv { axes, kernel, stride, same, activation, .. } => {
            let w = own.w.as_ref().expect("a convolution has weights");
            let x = flow.first()?;
            let sides = if *same { [(kernel - 1) / 2, kernel / 2] } else { [0, 0] };
            let z = convolved(&x, w, own.b.as_ref(), *axes, *stride, sides)?;
            both(z, true, *activation)
        }
        Layer::MaxPool { axes, size, stride, same } => {
            let x = flow.first()?;
            let z = match axes {
                1 => {
                    let options =
                        MaxPool { stride: Some([*stride]), ceil_mode: *same, ..MaxPool::default() };
                    x.try_max_pool1d_with(*size, &options)?
                }
                _ => {
                    let stride = Some([*stride; 2]);
                    let options = MaxPool { stride, ceil_mode: *same, ..MaxPool::default() };
                    x.try_max_pool2d_with([*size; 2], &options)?
                }
            };
            both(z, true, Activation::Linear)
        }
        Layer::GlobalAvgPool1d => both(flow.last()?.try_mean(1, false)?, false, Activation::Linear),
        Layer::Flatten => {
            let x = flow.last()?;
            let rows = x.size(0);
            let columns = x.numel() / rows.max(1);
            both(x.try_reshape([rows, columns])?, false, Activation::Linear)
        }
        Layer::Activation(a) => {
            let first = flow.first;
            both(flow.x, first, *a)
        }
        Layer::Dropout(rate) => {
            let x = flow.last()?;
            let Some(draw) = draw.filter(|_| *rate > 0.0) else {
                return both(x, false, Activation::Linear);
            };
            let kept = Tensor::try_rand(x.shape(), DType::F32, draw)?.try_ge(*rate as f32)?;
            let mask = kept.try_to_dtype(DType::F32)?.try_div((1.0 - rate) as f32)?;
            let dropped = x.try_mul(&mask)?;
            Ok((Flow { x, first: false }, Flow { x: dropped, first: false }))
        }
        Layer::BatchNorm { momentum, eps } => {
            let x = flow.last()?;
            let after = normed(&x, own, *momentum, *eps, draw.is_some())?;
            Ok((Flow { x, first: false }, Flow { x: after, first: false }))
        }
    }
}

fn convolved(
    x: &Tensor,
    w: &Tensor,
    b: Option<&Tensor>,
    axes: usize,
    stride: usize,
    [before, after]: [usize; 2],
) -> Result<Tensor> {
    let even = before == after;
    let padded = match even {
        true => x.clone(),
        // An odd number of zeros has the extra one at the end.
        false => {
            let one = (before, after);
            let padding = vec![one; axes];
            pad(x, &padding)?
        }
    };
    let zeros = if even { before } else { 0 };
    match axes {
        1 => {
            let options = Conv { stride: [stride], padding: [zeros].into(), ..Conv::default() };
            padded.try_conv1d_with(w, b, &options)
        }
        _ => {
            let options =
                Conv { stride: [stride; 2], padding: [zeros; 2].into(), ..Conv::default() };
            padded.try_conv2d_with(w, b, &options)
        }
    }
}

/// Zeros around the last axes.
fn pad(x: &Tensor, sides: &[(usize, usize)]) -> Result<Tensor> {
    let mut out = x.clone();
    let skip = x.rank() - sides.len();
    for (axis, &(before, after)) in sides.iter().enumerate() {
        let axis = axis + skip;
        let zeros = |len: usize| {
            let mut sizes: Vec<usize> = out.shape().to_vec();
            sizes[axis] = len;
            Tensor::try_full(&sizes[..], 0.0, DType::F32)
        };
        let (before, after) = (zeros(before)?, zeros(after)?);
        out = Tensor::try_cat(&[&before, &out, &after], axis as i64)?;
    }
    Ok(out)
}

fn normed(x: &Tensor, own: &Weights, momentum: f64, eps: f64, trains: bool) -> Result<Tensor> {
    let [gain, shift, mean, variance] = own.norm.as_ref().expect("it has gain and shift");
    let (m, v) = match trains {
        true => {
            let axes: Vec<i64> = (0..x.rank() as i64 - 1).collect();
            let m = x.try_mean(&axes[..], false)?;
            let v = x.try_sub(&m)?.try_square()?.try_mean(&axes[..], false)?;
            for (kept, now) in [(mean, &m), (variance, &v)] {
                let new =
                    kept.try_mul(momentum)?.try_add(&now.detach().try_mul(1.0 - momentum)?)?;
                kept.try_set(&new)?;
            }
            (m, v)
        }
        false => (mean.clone(), variance.clone()),
    };
    let unit = x.try_sub(&m)?.try_div(&v.try_add(eps)?.try_sqrt()?)?;
    unit.try_mul(gain)?.try_add(shift)
}

/// An activation. ReLU has the slope 1 at 0, as `clamp` has.
pub(crate) fn act(a: Activation, x: &Tensor) -> Result<Tensor> {
    match a {
        Activation::Linear => Ok(x.clone()),
        Activation::Relu => x.try_clamp_min(0.0),
        Activation::LeakyRelu => x.try_leaky_relu(0.3),
        Activation::Elu => x.try_elu(1.0),
        Activation::Tanh => x.try_tanh(),
        Activation::Sigmoid => x.try_sigmoid(),
        Activation::Softmax => x.try_softmax(-1),
        Activation::Selu => x.try_selu(),
        Activation::Softplus => x.try_softplus(1.0, 20.0),
    }
}

/// Whether an initialisation draws random numbers, so that units differ.
pub(crate) fn is_constant(init: Init) -> bool {
    match init {
        Init::Constant(_) => true,
        Init::Normal { std, .. } => std == 0.0,
        Init::Uniform { bound } => bound == 0.0,
        _ => false,
    }
}
