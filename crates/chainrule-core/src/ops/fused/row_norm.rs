//! Rows normalised by their own statistics, with the backward pass as one kernel: the base of
//! layer, root-mean-square, group and instance normalisation.

use smallvec::SmallVec;

use super::learned::{Learned, affine, elements};
use crate::kernels::math::Real;
use crate::kernels::norm::group::GroupRows;
use crate::kernels::norm::layer::{self, Affine, Norm, RowNormUpstream};
use crate::kernels::reduce::Summed;
use crate::ops::prelude::*;
use crate::tensor::node::Source;
use crate::tensor::op::Definition;

/// Axes of a row.
#[derive(Clone, Copy, Debug, Parameters)]
pub(super) enum Over {
    /// The last this many axes, each element of which is a channel.
    Last(usize),
    /// A group of the channels, which lie on axis 1, of a sample; this many groups.
    Groups(usize),
}

#[derive(Clone, Copy, Debug, Parameters)]
pub(super) struct RowNorm {
    #[parameters(skip)]
    pub id: OpId,
    pub norm: Norm,
    pub over: Over,
    pub eps: f64,
    pub learned: Learned,
}

impl RowNorm {
    /// Number of samples, and the split of each into rows.
    fn rows(&self, shape: &Shape) -> (usize, GroupRows) {
        match self.over {
            Over::Last(axes) => {
                let (samples, row) = shape.split_at(shape.rank() - axes);
                (samples.iter().product(), GroupRows::of_elements(row.iter().product()))
            }
            Over::Groups(groups) => {
                let (channels, inner) = (shape[1] / groups.max(1), shape[2..].iter().product());
                (shape[0], GroupRows { groups, channels, inner })
            }
        }
    }

    /// `[samples, groups, channels of a group, elements of a channel]`: the last two axes are the
    /// rows.
    pub fn as_rows(&self, x: &Tensor) -> Result<Tensor> {
        let (samples, GroupRows { groups, channels, inner }) = self.rows(&x.shape());
        x.try_reshape([samples, groups, channels, inner])
    }

    /// Gain or bias in a shape that broadcasts to that of the rows.
    pub fn over_channels(&self, like: &Shape, x: &Tensor) -> Result<Tensor> {
        let (_, GroupRows { groups, channels, .. }) = self.rows(like);
        x.try_reshape([groups, channels, 1])
    }

    /// Rows less their means, where those are taken off.
    pub fn centred(&self, rows: &Tensor) -> Result<Tensor> {
        match self.norm {
            Norm::Layer => rows.try_sub(&mean(rows)?),
            Norm::Rms => Ok(rows.clone()),
        }
    }

    /// Divisor of centred rows.
    pub fn root(&self, d: &Tensor) -> Result<Tensor> {
        mean(&d.try_mul(d)?)?.try_add(self.eps)?.try_sqrt()
    }
}

/// The mean of each row.
pub(super) fn mean(rows: &Tensor) -> Result<Tensor> {
    let n = rows.shape()[2] * rows.shape()[3];
    rows.try_sum([2, 3], true)?.try_div(n as f64)
}

impl Op for RowNorm {
    fn name(&self) -> &'static str {
        self.id.name()
    }

    fn id(&self) -> Option<OpId> {
        Some(self.id)
    }

    fn role(&self) -> Role {
        Role::Norm(match (self.over, self.norm) {
            (Over::Groups(_), _) => NormRole::Group,
            (Over::Last(_), Norm::Layer) => NormRole::Layer,
            (Over::Last(_), Norm::Rms) => NormRole::RootMeanSquare,
        })
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_row_norm({*}, norm={norm}, over={over}, eps={eps}, gain={gain}, bias={bias})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(if self.norm == Norm::Rms { 4 } else { 7 }, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(inputs[0].shape, float_inputs(self.name(), inputs)?))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::EXTRA)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (x, kept) = (at.input(0), at.extra(0));
        let gain = self.learned.gain.then(|| at.input(1));
        let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![cotangent, &x, &kept];
        inputs.extend(&gain);
        let wants = self.learned.wanted(wanted);
        let (dx, extra) = apply_extra(RowNormGrad { of: *self, wants }, &inputs)?;
        let mut extra = extra.into_iter().map(|v| Tensor::from_parts(v, Source::None));
        let [dgain, dbias] = wants.map(|wants| if wants { extra.next() } else { None });
        Ok(self.learned.grads(dx, dgain, dbias))
    }

    /// Step by step along the definition: `d = x - mean`, `v = mean of d^2`,
    /// `y = gain * d * (v + eps)^-1/2 + bias`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let shape = at.input_shape(0);
        let d = self.centred(&self.as_rows(&at.input(0))?)?;
        let root = self.root(&d)?;
        let through = |dx: &Tensor| {
            let dd = self.centred(&self.as_rows(dx)?)?;
            // The derivative of v^(-1/2) is -v^(-3/2) / 2, and that of v is 2 mean(d dd).
            let half_dv = mean(&d.try_mul(&dd)?)?;
            let cube = root.try_mul(&root)?.try_mul(&root)?;
            dd.try_div(&root)?.try_sub(&d.try_mul(&half_dv)?.try_div(&cube)?)
        };
        let dhat = tangents[0].as_ref().map(through).transpose()?;
        let fit = |x: &Tensor| self.over_channels(&shape, x);
        let dy = self.learned.tangent(at, tangents, &d.try_div(&root)?, dhat, fit)?;
        dy.try_reshape(shape)
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|inputs| {
            let shape = inputs[0].shape();
            let d = self.centred(&self.as_rows(&inputs[0])?)?;
            let hat = d.try_div(&self.root(&d)?)?;
            let (gain, bias) = self.learned.split(inputs);
            let fit = |x: Option<&Tensor>| x.map(|x| self.over_channels(&shape, x)).transpose();
            affine(hat, fit(gain)?.as_ref(), fit(bias)?.as_ref())?.try_reshape(shape)
        }))
    }
}

impl WholeKernel for RowNorm {
    /// Beside the result: what the backward pass needs of each row.
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let inputs = inputs.iter().map(Value::contiguous).collect::<Result<SmallVec<[_; 3]>>>()?;
        by_dtype!(out.dtype, [F32, F64], |T| self.forward::<T>(&inputs, out))
    }
}

impl RowNorm {
    fn forward<T: Real + Stored>(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (samples, rows) = self.rows(&out.shape);
        let kept = Meta::new(Shape::new(&[samples * rows.groups, layer::STATS]), out.dtype);
        let mut y = Value::uninit(self.name(), out)?;
        let mut kept = Value::uninit(self.name(), kept)?;
        let (gain, bias) = self.learned.split(inputs);
        let by = Affine { gain: gain.map(|v| elements(v)), bias: bias.map(|v| elements(v)) };
        let x = elements::<T>(&inputs[0]);
        layer::forward(x, rows, by, (self.norm, self.eps), y.elements_mut(), kept.elements_mut());
        Ok(Outcome { value: y.share(), extra: smallvec![kept.share()] })
    }
}

/// The backward from the upstream gradient, the input, what was kept of each row, and the gain, if
/// any: the gradient of the input, and beside it those of gain and bias, as wanted.
#[derive(Debug, Parameters)]
struct RowNormGrad {
    of: RowNorm,
    wants: [bool; 2],
}

impl Op for RowNormGrad {
    fn name(&self) -> &'static str {
        match self.of.over {
            Over::Last(_) => "layer_norm_grad",
            Over::Groups(_) => "group_norm_grad",
        }
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_row_norm_grad({*}, norm={norm}, over={over}, wants={wants})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(8, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_float_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }
}

impl WholeKernel for RowNormGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let inputs = inputs.iter().map(Value::contiguous).collect::<Result<SmallVec<[_; 4]>>>()?;
        by_dtype!(out.dtype, [F32, F64], |T| self.backward::<T>(&inputs, out))
    }
}

impl RowNormGrad {
    fn backward<T: Real + Summed + Stored>(
        &self,
        inputs: &[Arc<Value>],
        out: Meta,
    ) -> Result<Outcome> {
        let (samples, rows) = self.of.rows(&out.shape);
        let learned = match self.of.over {
            Over::Last(axes) => Shape::new(&out.shape[out.shape.rank() - axes..]),
            Over::Groups(_) => Shape::new(&[out.shape[1]]),
        };
        let fresh = |shape| Value::uninit(self.name(), Meta::new(shape, out.dtype));
        let mut dx = fresh(out.shape)?;
        let mut sums = [None, None];
        for (sum, wants) in sums.iter_mut().zip(self.wants) {
            *sum = if wants { Some(fresh(learned)?) } else { None };
        }
        let partial = self.wants.iter().filter(|&&wants| wants).count();
        let mut scratch = fresh(Shape::new(&[rows.pieces(samples), partial, learned.numel()]))?;
        let up = RowNormUpstream::<T> {
            g: elements(&inputs[0]),
            x: elements(&inputs[1]),
            kept: elements(&inputs[2]),
            gain: inputs.get(3).map(|v| elements(v)),
        };
        let totals = sums.each_mut().map(|sum| match sum {
            Some(sum) => sum.elements_mut(),
            None => &mut [],
        });
        layer::backward(up, rows, self.of.norm, dx.elements_mut(), totals, scratch.elements_mut());
        let extra = sums.into_iter().flatten().map(Arc::new).collect();
        Ok(Outcome { value: dx.share(), extra })
    }
}
