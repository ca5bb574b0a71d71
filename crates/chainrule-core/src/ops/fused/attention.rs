//! `attention`: scaled dot-product attention by tiles, and its backward as one kernel. The matrix
//! of scores is never held in memory.

use smallvec::SmallVec;

use super::attention_options::{
    Attention, infer_attention, is_seed, keep_factors, split_seed, visible,
};
use super::shifted;
use crate::kernels::attention::{
    self, AttentionReal, Dropout, Gradients, Grid, Heads, HeadsMut, Mask, Problem,
};
use crate::ops::prelude::*;
use crate::tensor::node::{Mode, Source};
use crate::tensor::op::Definition;

/// Inputs: queries `[.., t, d]`, keys `[.., s, d]`, values `[.., s, w]` with the same leading axes,
/// the mask `[.., t, s]`, if there is one, and the drawn seed, one i64, if there is one.
#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct AttentionOp {
    pub causal: bool,
    pub scale: f64,
    pub dropout: Option<Dropout>,
    /// Whether operands of f32 are rounded to bf16.
    pub bf16: bool,
}

impl AttentionOp {
    /// The weights before the dropout, with the whole matrix of scores.
    fn weights(&self, inputs: &[Tensor]) -> Result<Tensor> {
        let (inputs, _) = split_seed(inputs);
        let mut scores = inputs[0].try_matmul(&inputs[1].try_t()?)?.try_mul(self.scale)?;
        if let Some(mask) = inputs.get(3).filter(|mask| mask.dtype().is_float()) {
            scores = scores.try_add(mask)?;
        }
        let Some((seen, alive)) = visible(self.causal, inputs)? else {
            let e = shifted(&scores)?.try_exp()?;
            return e.try_div(&e.try_sum(-1, true)?);
        };
        // A query that sees no key gets scores of 0, so that no step of its derivatives is NaN, and
        // weights of 0.
        let none = Tensor::full((), f64::NEG_INFINITY, scores.dtype());
        let scores = alive.try_where(&seen.try_where(&scores, &none)?, 0.0)?;
        let e = shifted(&scores)?.try_exp()?;
        seen.try_where(&e.try_div(&e.try_sum(-1, true)?)?, 0.0)
    }

    fn dropped(&self, weights: Tensor, inputs: &[Tensor]) -> Result<Tensor> {
        let (_, seed) = split_seed(inputs);
        match self.dropout {
            None => Ok(weights),
            Some(dropout) => weights.try_mul(&keep_factors(dropout, weights.meta(), seed)?),
        }
    }

    /// The dropout with the seed that was drawn, if one was.
    fn dropout_of(&self, inputs: &[Arc<Value>]) -> Option<Dropout> {
        let seed = inputs.last().filter(|v| is_seed(&v.meta));
        let seed = seed.map(|v| v.first::<i64>().cast_unsigned());
        self.dropout.map(|d| Dropout { seed: seed.unwrap_or(d.seed), ..d })
    }
}

/// Operations on numbers: `deep` products of scores with queries or keys, `wide` ones with values,
/// and five steps of softmax on the scores.
fn multiplications([q, k, v]: [&Shape; 3], [deep, wide]: [u64; 2]) -> u64 {
    let rank = q.rank();
    let pairs: u64 = q[..rank - 2].iter().map(|d| *d as u64).product();
    let scores = pairs * q[rank - 2] as u64 * k[rank - 2] as u64;
    scores * (2 * deep * last(q) + 2 * wide * last(v) + 5)
}

impl Op for AttentionOp {
    row!(attention);

    fn role(&self) -> Role {
        Role::Attention
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        let name = if self.bf16 { "_attention_bf16" } else { "_attention" };
        let form = "({arrays}, causal={causal}, scale={scale}, dropout={kept_weights})";
        Some(format!("{name}{form}").into())
    }

    fn flops(&self, inputs: &[Shape], _: &[Shape]) -> Option<u64> {
        Some(multiplications([&inputs[0], &inputs[1], &inputs[2]], [1, 1]))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_attention(inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::ALL
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let inputs = at.inputs();
        let (out, logs) = (at.output(), at.extra(0));
        let mut all: SmallVec<[&Tensor; 8]> = smallvec![cotangent, &out, &logs];
        all.extend(&inputs);
        let (dq, extra) = apply_extra(AttentionGrad(*self), &all)?;
        let [dk, dv] = [0, 1].map(|i| Tensor::from_parts(extra[i].clone(), Source::None));
        let mut grads: Grads = smallvec![Some(dq), Some(dk), Some(dv)];
        let _guard = Mode::get().rounding(self.bf16).enter();
        for (i, input) in inputs.iter().enumerate().skip(3) {
            let wanted = wanted.get(i) && input.dtype().is_float();
            grads.push(if wanted { Some(self.mask_grad(&inputs, &out, cotangent)?) } else { None });
        }
        Ok(grads)
    }

    /// The rule of the product on weights and values, and that of softmax on the scores:
    /// `dw = w * (ds - sum(w * ds))`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let _guard = Mode::get().rounding(self.bf16).enter();
        let inputs = at.inputs();
        let w = self.weights(&inputs)?;
        let mut scores: SmallVec<[Tensor; 3]> = SmallVec::new();
        if let Some(dq) = &tangents[0] {
            scores.push(dq.try_matmul(&inputs[1].try_t()?)?.try_mul(self.scale)?);
        }
        if let Some(dk) = &tangents[1] {
            scores.push(inputs[0].try_matmul(&dk.try_t()?)?.try_mul(self.scale)?);
        }
        scores.extend(tangents.get(3).cloned().flatten());
        let mut out = None;
        if let Some(ds) = scores.into_iter().map(Ok).reduce(|a, b| a?.try_add(&b?)) {
            let ds = ds?;
            let mean = w.try_mul(&ds)?.try_sum(-1, true)?;
            let dw = w.try_mul(&ds.try_sub(&mean)?)?;
            out = Some(self.dropped(dw, &inputs)?.try_matmul(&inputs[2])?);
        }
        let Some(dv) = &tangents[2] else {
            return Ok(out.expect("at least one tangent is given"));
        };
        let direct = self.dropped(w, &inputs)?.try_matmul(dv)?;
        match out {
            Some(out) => out.try_add(&direct),
            None => Ok(direct),
        }
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|inputs| {
            let _guard = Mode::get().rounding(self.bf16).enter();
            self.dropped(self.weights(inputs)?, inputs)?.try_matmul(&inputs[2])
        }))
    }
}

impl AttentionOp {
    /// The gradient of an added mask, which is as large as the matrix of scores anyway:
    /// `w * (g v^T - sum(g * out))`.
    fn mask_grad(&self, inputs: &[Tensor], out: &Tensor, g: &Tensor) -> Result<Tensor> {
        let dw = self.dropped(g.try_matmul(&inputs[2].try_t()?)?, inputs)?;
        let mean = g.try_mul(out)?.try_sum(-1, true)?;
        self.weights(inputs)?.try_mul(&dw.try_sub(&mean)?)
    }
}

impl WholeKernel for AttentionOp {
    /// Extra results: the largest score of each row, and the logarithm of the sum of the
    /// exponentials of the scores less that.
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        by_dtype!(out.dtype, [F32, F64], |T| self.forward::<T>(inputs, out))
    }

    fn layout(&self, at: usize, shape: &Shape) -> Layout {
        if at == 0 { beside(shape) } else { Layout::row_major(shape) }
    }
}

/// A value whose rows are contiguous, with its strides.
struct Matrices {
    value: Arc<Value>,
    strides: SmallVec<[usize; MAX_RANK]>,
}

impl Matrices {
    /// The value, copied if a row has gaps or an axis is traversed backward.
    fn new(value: &Arc<Value>) -> Result<Matrices> {
        let (shape, layout) = (value.shape(), value.layout());
        let (rank, last) = (shape.rank(), shape.rank() - 1);
        let even = shape[last] <= 1 || layout.strides[last] == 1;
        let fits = even && layout.strides[..rank].iter().all(|&s| s >= 0);
        let value = if fits { value.clone() } else { value.copied()?.share() };
        let strides = value.layout().strides[..rank].iter().map(|&s| s as usize).collect();
        Ok(Matrices { value, strides })
    }

    fn data<T: Stored>(&self) -> &[T] {
        match self.value.numel() {
            0 => &[],
            _ => &self.value.strided()[self.value.layout().offset..],
        }
    }

    fn heads<T: Stored>(&self) -> Heads<'_, T> {
        let lead = self.strides.len() - 2;
        Heads { data: self.data(), batch: &self.strides[..lead], row: self.strides[lead] }
    }
}

/// The mask with any strides from 0 up.
struct MaskGrid(Arc<Value>, SmallVec<[usize; MAX_RANK]>);

impl MaskGrid {
    fn new(value: &Arc<Value>) -> Result<MaskGrid> {
        let (rank, strides) = (value.shape().rank(), value.layout().strides);
        let backward = strides[..rank].iter().any(|&s| s < 0);
        let value = if backward { value.copied()?.share() } else { value.clone() };
        let strides = value.layout().strides[..rank].iter().map(|&s| s as usize).collect();
        Ok(MaskGrid(value, strides))
    }

    fn grid<T: Stored>(&self) -> Grid<'_, T> {
        let (lead, from) = (self.1.len() - 2, self.0.layout().offset);
        let data = if self.0.numel() == 0 { &[] } else { &self.0.strided()[from..] };
        Grid { data, batch: &self.1[..lead], row: self.1[lead], col: self.1[lead + 1] }
    }

    fn mask<T: Stored>(&self) -> Mask<'_, T> {
        match self.0.dtype() {
            DType::Bool => Mask::Keep(self.grid()),
            _ => Mask::Add(self.grid()),
        }
    }
}

/// Rows whose heads lie side by side, `[.., t, h, d]` in memory for a shape of `[.., h, t, d]`: the
/// next op joins the heads of a position, and then need not copy.
fn beside(shape: &Shape) -> Layout {
    let (mut swapped, rank) = (*shape, shape.rank());
    if rank <= 2 {
        return Layout::row_major(shape);
    }
    swapped.dims_mut().swap(rank - 3, rank - 2);
    let mut layout = Layout::row_major(&swapped);
    layout.strides.swap(rank - 3, rank - 2);
    layout
}

/// A result that is written with its rows [`beside`] each other.
struct Fresh {
    value: Value,
    strides: SmallVec<[usize; MAX_RANK]>,
}

impl Fresh {
    fn new(op: &'static str, meta: Meta) -> Result<Fresh> {
        let layout = beside(&meta.shape);
        let strides = layout.strides[..meta.shape.rank()].iter().map(|&s| s as usize).collect();
        Ok(Fresh { value: Value::uninit(op, meta)?, strides })
    }

    fn heads<T: Stored>(&mut self) -> HeadsMut<'_, T> {
        let lead = self.strides.len() - 2;
        HeadsMut {
            data: self.value.elements_mut(),
            batch: &self.strides[..lead],
            row: self.strides[lead],
        }
    }

    /// The result, once it is written.
    fn done(self) -> Arc<Value> {
        let (shape, layout) = (*self.value.shape(), beside(self.value.shape()));
        Value::view(&self.value.share(), shape, layout).share()
    }
}

impl AttentionOp {
    /// The inputs as the kernels read them.
    fn problem<'a, T: AttentionReal + Stored>(
        &self,
        sides: &'a [Matrices],
        mask: &'a Option<MaskGrid>,
        dropout: Option<Dropout>,
    ) -> Problem<'a, T> {
        let [q, k, v] = [0, 1, 2].map(|i| sides[i].value.shape());
        let lead = q.rank() - 2;
        Problem {
            sizes: &q[..lead],
            queries: q[lead],
            keys: k[lead],
            depth: q[lead + 1],
            width: v[lead + 1],
            q: sides[0].heads(),
            k: sides[1].heads(),
            v: sides[2].heads(),
            mask: mask.as_ref().map_or(Mask::None, MaskGrid::mask),
            causal: self.causal,
            scale: T::from_f64(self.scale),
            dropout,
            bf16: self.bf16,
        }
    }

    fn forward<T: AttentionReal + Stored>(
        &self,
        inputs: &[Arc<Value>],
        out: Meta,
    ) -> Result<Outcome> {
        let sides = inputs[..3].iter().map(Matrices::new).collect::<Result<SmallVec<[_; 3]>>>()?;
        let mask = inputs.get(3).filter(|v| !is_seed(&v.meta));
        let mask = mask.map(MaskGrid::new).transpose()?;
        let rank = out.shape.rank();
        let mut y = Fresh::new(self.name(), out)?;
        let mut rows = out.shape;
        rows.dims_mut()[rank - 1] = 2;
        let mut logs = Value::uninit(self.name(), Meta::new(rows, out.dtype))?;
        let dropout = self.dropout_of(inputs);
        let problem = self.problem::<T>(&sides, &mask, dropout);
        attention::forward(&problem, y.heads(), logs.elements_mut().as_chunks_mut().0);
        Ok(Outcome { value: y.done(), extra: smallvec![logs.share()] })
    }
}

/// The backward from the upstream gradient, the result, the logarithms of the rows' sums, and the
/// inputs: the gradient of the queries, and beside it those of keys and values.
#[derive(Debug, Parameters)]
struct AttentionGrad(AttentionOp);

impl Op for AttentionGrad {
    fn name(&self) -> &'static str {
        "attention_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        let name = if self.0.bf16 { "_attention_grad_bf16" } else { "_attention_grad" };
        let form = "({arrays}, causal={causal}, scale={scale}, dropout={kept_weights})";
        Some(format!("{name}{form}").into())
    }

    fn flops(&self, inputs: &[Shape], _: &[Shape]) -> Option<u64> {
        Some(multiplications([&inputs[3], &inputs[4], &inputs[5]], [3, 2]))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(inputs[3])
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }
}

impl WholeKernel for AttentionGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        by_dtype!(out.dtype, [F32, F64], |T| self.backward::<T>(inputs))
    }

    fn layout(&self, _: usize, shape: &Shape) -> Layout {
        beside(shape)
    }
}

impl AttentionGrad {
    fn backward<T: AttentionReal + Stored>(&self, inputs: &[Arc<Value>]) -> Result<Outcome> {
        let matrices = |values: &[Arc<Value>]| -> Result<SmallVec<[Matrices; 3]>> {
            values.iter().map(Matrices::new).collect()
        };
        let (results, sides) = (matrices(&inputs[..2])?, matrices(&inputs[3..6])?);
        let logs = inputs[2].contiguous()?;
        let mask = inputs.get(6).filter(|v| !is_seed(&v.meta));
        let mask = mask.map(MaskGrid::new).transpose()?;
        let up = attention::AttentionUpstream::<T> {
            g: results[0].heads(),
            out: results[1].heads(),
            logs: logs.slice().expect("made contiguous").as_chunks().0,
        };
        let fresh = |i: usize| Fresh::new(self.name(), inputs[i].meta);
        let (mut dq, mut dk, mut dv) = (fresh(3)?, fresh(4)?, fresh(5)?);
        let dropout = self.0.dropout_of(inputs);
        let to = Gradients { dq: dq.heads(), dk: dk.heads(), dv: dv.heads() };
        attention::backward(&self.0.problem(&sides, &mask, dropout), up, to);
        Ok(Outcome { value: dq.done(), extra: smallvec![dk.done(), dv.done()] })
    }
}

methods! {
    /// Scaled dot-product attention (Vaswani et al. 2017), `softmax(scale * q k^T + mask) v`, with
    /// `self` as the queries: PyTorch's `scaled_dot_product_attention`. Queries are `[.., t, d]`,
    /// keys `[.., s, d]`, values `[.., s, w]`, the result `[.., t, w]`; the leading axes
    /// (sequences, heads) broadcast. For f32 and f64.
    ///
    /// See [`Attention`] for the causal rule, the mask, the scale and the dropout. A query that
    /// sees no key gives zeros, and so do its gradients. The matrix of scores is never held: memory
    /// grows with the lengths, not with their product (except for the gradient of an added mask,
    /// which has that size). The inputs may be strided views; the result lies in memory as
    /// `[.., t, heads, w]`, so that joining the heads copies nothing.
    ///
    /// Gradients, with the weights `p` and the upstream gradient `g`: `dv = p^T g`,
    /// `ds = p * (g v^T - sum(g * y))`, `dq = scale * ds k`, `dk = scale * ds^T q`; an added mask
    /// gets `ds`. Errors if the shapes do not fit.
    ///
    /// ```
    /// use chainrule::{Attention, Tensor};
    /// let q = Tensor::from([[0.0f32, 0.0], [0.0, 0.0]]);
    /// let v = Tensor::from([[1.0f32], [3.0]]);
    /// assert_eq!(q.attention(&q, &v, &Attention::default()).to_vec::<f32>(), [2.0, 2.0]);
    /// assert_eq!(q.attention(&q, &v, &Attention::causal()).to_vec::<f32>(), [1.0, 2.0]);
    /// ```
    pub fn attention / try_attention(&self, keys: &Tensor, values: &Tensor, options: &Attention) -> Tensor {
        let inputs = options.broadcast([self, keys, values])?;
        let op = AttentionOp {
            causal: options.causal,
            scale: options.scale.unwrap_or(1.0 / (self.shape()[self.rank() - 1].max(1) as f64).sqrt()),
            dropout: options.dropout()?,
            bf16: Mode::get().rounds(inputs[0].dtype()),
        };
        apply(op, &inputs.iter().collect::<SmallVec<[&Tensor; 4]>>())
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "attention",
    family: Family::Fused,
    signature: "q.attention(&k, &v, &options)",
    python: &[Binding::by_hand(
        "scaled_dot_product_attention",
        "dropout draws from a generator of the package",
    )
    .no_method()
    .no_function()],
    formula: "softmax(scale * q @ k^T + mask) @ v",
    gradient: "dv = p^T @ g; ds = p * (g @ v^T - sum(g * y)); dq = scale * ds @ k; dk = scale * ds^T @ q; dmask = ds, where p are the weights",
    at_kinks: "a query that sees no key gives zeros, and its gradients are zeros",
    samples: super::attention_options::samples,
    mistakes: MISTAKES,
};

fn this(op: &dyn Op) -> Result<AttentionOp> {
    op.downcast::<AttentionOp>().copied()
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "scale forgotten",
        what: "the gradients of queries and keys lack the factor scale",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            for grad in grads[..2].iter_mut().flatten() {
                *grad = grad.try_div(this(op)?.scale)?;
            }
            Ok(grads)
        },
    },
    Mistake {
        name: "normalisation forgotten",
        what: "ds = p * (g v^T): the sum that the exponentials are divided by was taken for a constant",
        rule: |op, at, g, wanted| {
            let (op, inputs) = (this(op)?, at.inputs());
            let mut grads = op.vjp(at, g, wanted)?;
            let dp = op.dropped(g.try_matmul(&inputs[2].try_t()?)?, &inputs)?;
            let ds = op.weights(&inputs)?.try_mul(&dp)?.try_mul(op.scale)?;
            grads[0] = Some(ds.try_matmul(&inputs[1])?);
            grads[1] = Some(ds.try_t()?.try_matmul(&inputs[0])?);
            Ok(grads)
        },
    },
    Mistake {
        name: "mask forgotten",
        what: "the backward pass knows nothing of the mask: hidden keys get gradients, and the weights are those without it",
        rule: |op, at, g, wanted| {
            let (this, inputs) = (this(op)?, at.inputs());
            let mut grads = this.vjp(at, g, wanted)?;
            let dp = this.dropped(g.try_matmul(&inputs[2].try_t()?)?, &inputs)?;
            let mean = g.try_mul(at.output())?.try_sum(-1, true)?;
            let weights = this.weights(&inputs[..3])?;
            let ds = weights.try_mul(&dp.try_sub(&mean)?)?.try_mul(this.scale)?;
            grads[0] = Some(ds.try_matmul(&inputs[1])?);
            grads[1] = Some(ds.try_t()?.try_matmul(&inputs[0])?);
            grads[2] = Some(this.dropped(weights, &inputs)?.try_t()?.try_matmul(g)?);
            Ok(grads)
        },
    },
    Mistake {
        name: "causal rule forgotten",
        what: "the backward pass lets every query see every key",
        rule: |op, at, g, wanted| AttentionOp { causal: false, ..this(op)? }.vjp(at, g, wanted),
    },
];

#[cfg(test)]
mod tests;
