//! Options of `attention`, the checks of its inputs, and the parts of its definition that are
//! constants.

use smallvec::SmallVec;

use crate::error::raise;
use crate::kernels::attention::Dropout;
use crate::ops::create::Draw;
use crate::ops::prelude::*;

/// Options of [`Tensor::attention`]: the mask, the scale, dropout.
///
/// ```
/// use chainrule::{Attention, Generator, Tensor};
/// let options = Attention { scale: Some(0.5), ..Attention::causal() };
/// let options = options.with_dropout(0.1, &mut Generator::manual_seed(0));
/// let x = Tensor::ones([2, 4, 8]);
/// assert_eq!(x.attention(&x, &x, &options).shape(), [2, 4, 8]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Attention {
    /// Whether query i sees the keys 0 to i only, also where there are more or fewer keys than
    /// queries.
    pub causal: bool,
    /// A mask that broadcasts to `[.., t, s]`: of bools, true where the key is seen, or of numbers
    /// that are added to the scores, minus infinity where it is not. With `causal` both hold (where
    /// PyTorch takes only one of the two).
    pub mask: Option<Tensor>,
    /// Factor of the products of queries and keys; without it 1 / sqrt(d).
    pub scale: Option<f64>,
    /// Each weight becomes 0 with this probability, and the others are divided by what is left.
    pub dropout_p: f64,
    /// Seed of the dropout: the same seed drops the same weights. [`Attention::with_dropout`] draws
    /// one.
    pub seed: u64,
    /// A seed that is a tensor, i64 of no axes, and takes the place of `seed`: inside a trace
    /// [`Attention::with_dropout`] draws one, so that each run of the program has another.
    pub drawn_seed: Option<Tensor>,
}

impl Attention {
    /// Each query sees its own position and those before.
    pub fn causal() -> Attention {
        Attention { causal: true, ..Attention::default() }
    }

    /// The same with dropout, which depends on a seed drawn from the generator.
    pub fn with_dropout(self, p: f64, generator: &mut Generator) -> Attention {
        if log::is_on() {
            let seed = Draw::Seed.tensor(Meta::new(Shape::SCALAR, DType::I64), generator);
            let seed = seed.unwrap_or_else(|e| raise(e));
            return Attention { dropout_p: p, drawn_seed: Some(seed), ..self };
        }
        Attention { dropout_p: p, seed: generator.random_u64(), drawn_seed: None, ..self }
    }

    pub(super) fn dropout(&self) -> Result<Option<Dropout>> {
        if !(0.0..=1.0).contains(&self.dropout_p) {
            let why = format!(
                "the dropout probability must lie between 0 and 1; it is {}",
                self.dropout_p
            );
            return Err(Error::argument("attention", why));
        }
        let dropout = Dropout { p: self.dropout_p, seed: self.seed };
        Ok((self.dropout_p > 0.0).then_some(dropout))
    }

    /// Queries, keys, values and mask with the same leading axes, and the mask with an element for
    /// every score.
    #[track_caller]
    pub(super) fn broadcast(&self, inputs: [&Tensor; 3]) -> Result<SmallVec<[Tensor; 4]>> {
        let shapes = inputs.map(|x| x.shape());
        let error = |why: &str| Err(Error::shape("attention", &shapes.each_ref()[..], why));
        if shapes.iter().any(|s| s.rank() < 2) {
            return error(
                "queries, keys and values need two axes at least: positions, then numbers of each",
            );
        }
        let lead = |s: &Shape| Shape::new(&s[..s.rank() - 2]);
        let matrix = |s: &Shape| [s[s.rank() - 2], s[s.rank() - 1]];
        let ([t, _], [s, _]) = (matrix(&shapes[0]), matrix(&shapes[1]));
        let common = lead(&shapes[0]).broadcast(&lead(&shapes[1]));
        let Some(mut common) = common.and_then(|c| c.broadcast(&lead(&shapes[2]))) else {
            return error("the axes before the last two do not broadcast");
        };
        if let Some(mask) = &self.mask {
            let of_mask = mask.shape();
            let cut = of_mask.rank().saturating_sub(2);
            let inner = Shape::new(&of_mask[cut..]).broadcast(&Shape::new(&[t, s]));
            let fits = inner.is_some_and(|inner| inner == [t, s]);
            match common.broadcast(&Shape::new(&of_mask[..cut])) {
                Some(all) if fits => common = all,
                _ => {
                    let why = format!("the mask must broadcast to the scores, [.., {t}, {s}]");
                    return Err(Error::shape(
                        "attention",
                        &[&shapes[0], &shapes[1], &of_mask],
                        why,
                    ));
                }
            }
        }
        let full = |[rows, cols]: [usize; 2]| -> Result<Shape> {
            let rank = common.rank();
            Ok(common.with_axis("attention", rank, rows)?.with_axis("attention", rank + 1, cols)?)
        };
        let spread = |x: &Tensor, shape: Shape| {
            if x.shape() == shape { Ok(x.clone()) } else { x.try_expand(shape) }
        };
        let mut out = SmallVec::new();
        for (x, shape) in inputs.into_iter().zip(&shapes) {
            out.push(spread(x, full(matrix(shape))?)?);
        }
        if let Some(mask) = &self.mask {
            let float = mask.dtype().is_float() && mask.dtype() != inputs[0].dtype();
            let mask = if float { mask.try_to_dtype(inputs[0].dtype())? } else { mask.clone() };
            out.push(spread(&mask, full([t, s])?)?);
        }
        if let Some(seed) = self.drawn_seed.as_ref().filter(|_| self.dropout_p > 0.0) {
            if seed.rank() != 0 || seed.dtype() != DType::I64 {
                let why = "a drawn seed must be one i64, a tensor of no axes";
                return Err(Error::shape("attention", &[&seed.shape()], why));
            }
            out.push(seed.clone());
        }
        Ok(out)
    }
}

/// Shape and dtype of the result, from inputs with the same leading axes.
pub(super) fn infer_attention(inputs: &[Meta]) -> Result<Meta> {
    let dtype = float_inputs("attention", &inputs[..3])?;
    let mask = inputs.get(3).filter(|m| !is_seed(m));
    if let Some(mask) = mask.filter(|m| m.dtype != dtype && m.dtype != DType::Bool) {
        let why = "the mask must be of bools, or of numbers to add; convert with to_dtype";
        return Err(Error::dtype("attention", &[dtype, mask.dtype], why));
    }
    let [q, k, v] = [0, 1, 2].map(|i| inputs[i].shape);
    let rank = q.rank();
    if q[rank - 1] != k[rank - 1] {
        let why = format!(
            "queries and keys must be as long as each other, and have {} and {} numbers",
            q[rank - 1],
            k[rank - 1]
        );
        return Err(Error::shape("attention", &[&q, &k, &v], why));
    }
    if k[rank - 2] != v[rank - 2] {
        let why = format!(
            "each key needs a value: there are {} keys and {} values",
            k[rank - 2],
            v[rank - 2]
        );
        return Err(Error::shape("attention", &[&q, &k, &v], why));
    }
    let mut out = q;
    out.dims_mut()[rank - 1] = v[rank - 1];
    Ok(Meta::new(out, dtype))
}

/// The mask of scores that count, `[.., t, s]`, and of queries that see any key, `[.., t, 1]`;
/// nothing if all do.
pub(super) fn visible(causal: bool, inputs: &[Tensor]) -> Result<Option<(Tensor, Tensor)>> {
    if !causal && inputs.len() < 4 {
        return Ok(None);
    }
    let (q, s) = (inputs[0].shape(), inputs[1].shape()[inputs[1].rank() - 2]);
    let (rank, t) = (q.rank(), q[q.rank() - 2]);
    let mut shape = q;
    shape.dims_mut()[rank - 1] = s;
    let mut seen = Tensor::full((), 1.0, DType::F32).try_expand(shape)?;
    if causal {
        let (i, j) = (Tensor::arange(0, t as i64), Tensor::arange(0, s as i64));
        let before = j.try_le(&i.try_reshape([t, 1])?)?;
        seen = seen.try_mul(&before.try_to_dtype(DType::F32)?)?;
    }
    if let Some(mask) = inputs.get(3) {
        let mask = mask.detach();
        let open = match mask.dtype() {
            DType::Bool => mask,
            _ => mask.try_ne(f64::NEG_INFINITY)?,
        };
        seen = seen.try_mul(&open.try_to_dtype(DType::F32)?)?;
    }
    let alive = seen.try_sum(-1, true)?.try_gt(0.0)?;
    Ok(Some((seen.try_gt(0.0)?, alive)))
}

/// Whether an input of attention is the drawn seed.
pub(super) fn is_seed(input: &Meta) -> bool {
    input.dtype == DType::I64 && input.shape.rank() == 0
}

/// The inputs without the drawn seed, and the seed, which is the last of them if there is one.
pub(super) fn split_seed(inputs: &[Tensor]) -> (&[Tensor], Option<&Tensor>) {
    match inputs.split_last() {
        Some((seed, rest)) if is_seed(&seed.meta()) => (rest, Some(seed)),
        _ => (inputs, None),
    }
}

/// The factors by which dropout multiplies the weights, as a constant.
pub(super) fn keep_factors(dropout: Dropout, meta: Meta, seed: Option<&Tensor>) -> Result<Tensor> {
    match seed {
        Some(seed) => apply(KeepFactors { p: dropout.p, meta }, &[seed]),
        None => Ok(Tensor::constant(factors(dropout, meta)?)),
    }
}

fn factors(dropout: Dropout, meta: Meta) -> Result<Value> {
    let rank = meta.shape.rank();
    let (t, s) = (meta.shape[rank - 2], meta.shape[rank - 1]);
    let mut value = Value::uninit("attention", meta)?;
    macro_rules! fill {
        ($out:expr) => {
            for (i, row) in $out.chunks_exact_mut(s.max(1)).enumerate() {
                dropout.factors(i / t, i % t, 0, row);
            }
        };
    }
    match output(&mut value) {
        Output::F32(out) => fill!(out),
        Output::F64(out) => fill!(out),
        _ => unreachable!("weights are floats"),
    }
    Ok(value)
}

/// The factors of the dropout, from a drawn seed.
#[derive(Debug, Parameters)]
struct KeepFactors {
    p: f64,
    meta: Meta,
}

impl Op for KeepFactors {
    fn name(&self) -> &'static str {
        "attention_keep"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_keep({shape}, {p}, int({0}), {dtype})".into())
    }

    fn infer(&self, _: &[Meta]) -> Result<Meta> {
        Ok(self.meta)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl WholeKernel for KeepFactors {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let seed = inputs[0].first::<i64>().cast_unsigned();
        Ok(factors(Dropout { p: self.p, seed }, out)?.into())
    }
}

/// A row of bools from a row of text: `x` is true.
fn bools(rows: &[&str]) -> Tensor {
    let elements: Vec<bool> = rows.iter().flat_map(|r| r.bytes().map(|b| b == b'x')).collect();
    Tensor::from_slice(&elements, [rows.len(), rows[0].len()])
}

pub(super) fn samples(g: &mut Generator) -> Vec<Sample> {
    type AttentionOptionsCase = (&'static str, &'static [usize], &'static [usize], usize, bool);
    let cases: [AttentionOptionsCase; 10] = [
        ("two heads", &[2, 3, 4], &[2, 5, 4], 3, false),
        ("causal", &[2, 2, 6, 4], &[2, 2, 6, 4], 4, true),
        ("causal, fewer keys than queries", &[7, 3], &[4, 3], 2, true),
        ("causal, more keys than queries", &[3, 2], &[6, 2], 5, true),
        ("several tiles", &[30, 2], &[150, 2], 3, false),
        ("leading axes that broadcast", &[2, 1, 3, 2], &[3, 4, 2], 2, false),
        ("one key", &[1, 3, 2], &[1, 1, 2], 2, false),
        ("no queries", &[2, 0, 3], &[2, 4, 3], 2, false),
        ("no keys", &[2, 3, 4], &[2, 0, 4], 2, true),
        ("no heads", &[0, 3, 4], &[0, 2, 4], 2, false),
    ];
    let mut out = Vec::new();
    for (note, q, k, width, causal) in cases {
        let mut v = k.to_vec();
        v[k.len() - 1] = width;
        let inputs = vec![normal(g, q), normal(g, k), normal(g, &v[..])];
        let options = Attention { causal, ..Attention::default() };
        out.push(Sample::new(note, inputs, move |x| x[0].try_attention(&x[1], &x[2], &options)));
    }
    let three =
        |g: &mut Generator| vec![normal(g, [2, 3, 2]), normal(g, [2, 4, 2]), normal(g, [2, 4, 3])];
    let seen = bools(&["x.xx", "....", ".x.."]);
    out.push(Sample::new("a mask of bools, and a query that sees nothing", three(g), move |x| {
        let options = Attention { mask: Some(seen.clone()), ..Attention::default() };
        x[0].try_attention(&x[1], &x[2], &options)
    }));
    let masked = |x: &[Tensor]| {
        let options = Attention { mask: Some(x[3].clone()), ..Attention::default() };
        x[0].try_attention(&x[1], &x[2], &options)
    };
    for (note, shape) in [
        ("a mask that is added", &[2, 3, 4][..]),
        ("an added mask for all queries", &[1, 4]),
        ("an added mask for all keys", &[2, 3, 1]),
    ] {
        let mut inputs = three(g);
        inputs.push(normal(g, shape));
        out.push(Sample::new(note, inputs, masked));
    }
    let closed =
        Tensor::from([[0.0, f64::NEG_INFINITY, 0.5, 0.0], [f64::NEG_INFINITY; 4], [0.0; 4]]);
    out.push(Sample::new("an added mask with infinities, and causal", three(g), move |x| {
        let options =
            Attention { mask: Some(closed.clone()), scale: Some(0.3), ..Attention::causal() };
        x[0].try_attention(&x[1], &x[2], &options)
    }));
    out.push(Sample::new("dropout", three(g), |x| {
        let options = Attention { dropout_p: 0.4, seed: 7, ..Attention::causal() };
        x[0].try_attention(&x[1], &x[2], &options)
    }));
    out.push(Sample::new("an operand used three times", vec![normal(g, [3, 4])], |x| {
        x[0].try_attention(&x[0], &x[0], &Attention::causal())
    }));
    out.push(Sample::new("heads of a fused projection", vec![normal(g, [2, 5, 12])], |x| {
        let part = |i: usize| -> Result<Tensor> {
            x[0].try_narrow(2, 4 * i, 4)?.try_reshape([2, 5, 2, 2])?.try_transpose(1, 2)
        };
        let y = part(0)?.try_attention(&part(1)?, &part(2)?, &Attention::causal())?;
        y.try_transpose(1, 2)?.try_reshape([2, 5, 4])
    }));
    out
}
