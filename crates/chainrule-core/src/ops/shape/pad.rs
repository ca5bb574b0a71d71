//! `pad`: axes lengthened at their ends, with a number or with their own elements.

use super::remap::{self, Maps, Remap};
use crate::Slice;
use crate::kernels::remap::{AxisMap, AxisSource, Run};
use crate::ops::prelude::*;

/// Elements that [`Tensor::pad`] puts at the ends of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    /// A number, in the dtype of the tensor.
    Constant(f64),
    /// The inside, mirrored at the first and the last element, which are not repeated:
    /// `c b | a b c d | c b`.
    Reflect,
    /// The first and the last element, repeated: `a a | a b c d | d d`.
    Replicate,
    /// The other end of the axis: `c d | a b c d | a b`.
    Circular,
}

/// Elements to put before and after each axis; negative amounts cut.
type Amounts = [[i64; 2]; MAX_RANK];

/// Padding with a number. Its reverse cuts what was added.
#[derive(Clone, Debug, Parameters)]
pub(crate) struct PadConstant {
    amounts: Amounts,
    value: f64,
}

impl PadConstant {
    fn maps(&self, shape: &Shape) -> Maps {
        let fill = |len: i64| Run { len: len.max(0) as usize, from: AxisSource::Fill };
        let map = |(&n, &[before, after]): (&usize, &[i64; 2])| {
            let (low, high) = kept(n, [before, after]);
            let inner = Run { len: high - low, from: AxisSource::Up(low) };
            let map = || AxisMap::once([fill(before), inner, fill(after)]);
            ((before, after) != (0, 0)).then(map)
        };
        shape.iter().zip(&self.amounts).map(map).collect()
    }
}

impl Op for PadConstant {
    row!(pad);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_pad({0}, {amounts}, {value})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let shape = padded(&inputs[0].shape, &self.amounts)?;
        Ok(Meta::new(shape, inputs[0].dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let back = self.amounts.map(|amounts| amounts.map(|n| -n));
        Ok(smallvec![Some(constant(cotangent, back, 0.0)?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let op = PadConstant { value: 0.0, ..self.clone() };
        apply(op, &[tangents[0].as_ref().expect("the only tangent")])
    }
}

impl WholeKernel for PadConstant {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let maps = self.maps(inputs[0].shape());
        remap::copied(self.name(), &inputs[0], &maps, self.value, out)
    }
}

/// Padding with a number; a view where it only cuts.
fn constant(x: &Tensor, amounts: Amounts, value: f64) -> Result<Tensor> {
    if amounts.iter().flatten().any(|&n| n > 0) {
        return apply(PadConstant { amounts, value }, &[x]);
    }
    let cut = |(&n, &[before, after]): (&usize, &[i64; 2])| Slice::Range {
        start: Some(-before),
        end: Some(n as i64 + after),
        step: 1,
    };
    let slices: Vec<Slice> = x.shape().iter().zip(&amounts).map(cut).collect();
    x.try_slice(&slices)
}

/// The part of an axis that is not cut.
fn kept(n: usize, [before, after]: [i64; 2]) -> (usize, usize) {
    let cut = |amount: i64| amount.min(0).unsigned_abs() as usize;
    (cut(before), n - cut(after))
}

/// The shape after padding, if no more is cut than there is. Sizes beyond 2^62 are refused, as no
/// memory holds them.
fn padded(shape: &Shape, amounts: &Amounts) -> Result<Shape> {
    let mut out = *shape;
    for (axis, (d, amount)) in out.dims_mut().iter_mut().zip(amounts).enumerate() {
        let (n, [before, after]) = (*d as i128, amount.map(i128::from));
        let size = n + before + after;
        let cuts_all = -before.min(0) - after.min(0) > n;
        if cuts_all || size >= 1 << 62 {
            let what = if cuts_all { "more is cut than there is" } else { "that is too large" };
            let why = format!("{before} before and {after} after axis {axis} of size {n}: {what}");
            return Err(Error::shape("pad", &[shape], why));
        }
        *d = size as usize;
    }
    Ok(out)
}

/// The runs of one axis of size `n` that is padded with its own elements, or why it cannot be.
fn wrapped(n: usize, [before, after]: [i64; 2], mode: PadMode) -> Result<AxisMap, &'static str> {
    let (low, high) = kept(n, [before, after]);
    let (most, why) = match mode {
        PadMode::Reflect => (n.saturating_sub(1), "a mirror gives less than there is"),
        PadMode::Circular => (high - low, "the other end gives no more than is left of it"),
        _ if n == 0 => (0, "there is no element to repeat"),
        _ => (usize::MAX, ""),
    };
    let (front, back) = (before.max(0) as usize, after.max(0) as usize);
    if front.max(back) > most {
        return Err(why);
    }
    let run = |len, from| Run { len, from };
    let last = n.saturating_sub(1);
    let [first, end] = match mode {
        PadMode::Reflect => [AxisSource::Down(front), AxisSource::Down(last.saturating_sub(1))],
        PadMode::Replicate => [AxisSource::Same(0), AxisSource::Same(last)],
        _ => [AxisSource::Up(high - front.min(high)), AxisSource::Up(low)],
    };
    Ok(AxisMap::once([run(front, first), run(high - low, AxisSource::Up(low)), run(back, end)]))
}

methods! {
    /// Axes made longer at their ends: for each axis named, `[before, after]` elements are put
    /// there, as [`PadMode`] says. `x.pad(&[(-1, [1, 2])], PadMode::Constant(0.0))` is PyTorch's
    /// `pad(x, (1, 2))`. Axes that are not named stay as they are.
    ///
    /// Negative amounts cut. Reflect puts less than the axis has, Circular at most as much as is
    /// left of it after a cut. Corners are what padding one axis after the other gives. Any dtype.
    /// Errors for amounts that are too large or cut too much, and an axis named twice.
    ///
    /// Gradient: each element of `g` is added at the place that it came from; those of the constant
    /// go nowhere.
    ///
    /// ```
    /// use chainrule::{PadMode, Tensor};
    /// let x = Tensor::from([1.0f32, 2.0, 3.0]);
    /// assert_eq!(
    ///     x.pad(&[(0, [1, 0])], PadMode::Constant(7.0)).to_vec::<f32>(),
    ///     [7.0, 1.0, 2.0, 3.0]
    /// );
    /// assert_eq!(
    ///     x.pad(&[(-1, [2, 1])], PadMode::Reflect).to_vec::<f32>(),
    ///     [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]
    /// );
    /// ```
    pub fn pad / try_pad(&self, padding: &[(i64, [i64; 2])], mode: PadMode) -> Tensor {
        let shape = self.shape();
        let axes: Vec<i64> = padding.iter().map(|p| p.0).collect();
        axes.as_slice().into_axes("pad", &shape)?;
        let mut amounts: Amounts = [[0; 2]; MAX_RANK];
        for (axis, amount) in padding {
            amounts[shape.axis("pad", *axis)?] = *amount;
        }
        padded(&shape, &amounts)?;
        if let PadMode::Constant(value) = mode {
            return constant(self, amounts, value);
        }
        let mut maps = Maps::new();
        for (axis, (&n, &amount)) in shape.iter().zip(&amounts).enumerate() {
            let [before, after] = amount;
            let error = |why: &str| {
                let why = format!("{before} before and {after} after axis {axis} of size {n}: {why}");
                Error::shape("pad", &[&shape], why)
            };
            let map = (amount != [0, 0]).then(|| wrapped(n, amount, mode));
            maps.push(map.transpose().map_err(error)?);
        }
        apply(Remap { id: OpId::pad, maps }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "pad",
    family: Family::Shape,
    signature: "x.pad(&[(axis, [before, after])], PadMode::Constant(0.0))",
    python: &[Binding::by_hand("pad", "a list of pairs, the last axis first")
        .no_method()
        .no_function()],
    formula: "x with elements put before and after the axes named: a constant, a mirror image, the edge, or the other end",
    gradient: "each element of g is added at the place that it came from; the constant's go nowhere",
    at_kinks: "",
    samples: |g| {
        type PadCase = (&'static str, &'static [usize], &'static [(i64, [i64; 2])], PadMode);
        let cases: [PadCase; 13] = [
            ("zeros around a matrix", &[3, 4], &[(0, [1, 2]), (1, [2, 1])], PadMode::Constant(0.0)),
            ("another number", &[2, 3, 2], &[(1, [0, 2])], PadMode::Constant(-1.5)),
            ("cut and filled", &[5, 3], &[(0, [-2, 1]), (-1, [1, -1])], PadMode::Constant(1.0)),
            ("only cut", &[5, 4], &[(0, [-1, -2]), (1, [0, -1])], PadMode::Constant(1.0)),
            ("filled in place of all", &[2, 3], &[(1, [-3, 7])], PadMode::Constant(1.0)),
            ("mirror", &[3, 5], &[(1, [3, 2])], PadMode::Reflect),
            ("mirror of both axes", &[3, 4], &[(0, [2, 1]), (1, [1, 3])], PadMode::Reflect),
            ("edges", &[2, 3], &[(0, [1, 1]), (1, [4, 2])], PadMode::Replicate),
            ("edge and cut", &[2, 5], &[(1, [2, -1])], PadMode::Replicate),
            ("round", &[4, 3], &[(0, [2, 1]), (1, [3, 3])], PadMode::Circular),
            ("nothing around nothing", &[0, 2], &[(1, [1, 1])], PadMode::Reflect),
            ("around nothing", &[0, 2], &[(0, [1, 1])], PadMode::Constant(2.0)),
            ("0-d", &[], &[], PadMode::Constant(0.0)),
        ];
        cases
            .into_iter()
            .map(|(note, shape, padding, mode)| {
                Sample::new(note, vec![normal(g, shape)], move |x| x[0].try_pad(padding, mode))
            })
            .collect()
    },
    mistakes: &[
        Mistake {
            name: "before and after exchanged",
            what: "the gradient is cut as if what lies before each axis lay after it",
            rule: |op, at, g, wanted| {
                let Ok(pad) = op.downcast::<PadConstant>() else {
                    return op.vjp(at, g, wanted);
                };
                let back = pad.amounts.map(|[before, after]| [-after, -before]);
                Ok(smallvec![Some(constant(g, back, 0.0)?)])
            },
        },
        Mistake {
            name: "gradient of the border dropped",
            what: "only the middle of the gradient is taken; what a mirror or an edge repeats is forgotten",
            rule: |op, at, g, wanted| {
                if op.downcast::<Remap>().is_err() {
                    return op.vjp(at, g, wanted);
                }
                let mut maps = Remap::of(op)?.maps.clone();
                for map in maps.iter_mut().flatten() {
                    let middle = map.runs.len() / 2;
                    for (k, run) in map.runs.iter_mut().enumerate() {
                        run.from = if k == middle { run.from } else { AxisSource::Fill };
                    }
                }
                Remap { id: OpId::pad, maps }.vjp(at, g, wanted)
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn row(before: i64, after: i64, mode: PadMode) -> Vec<i64> {
        Tensor::arange(0, 5).pad(&[(0, [before, after])], mode).to_vec()
    }

    /// PyTorch's `pad` of `arange(5)`.
    #[test]
    fn amounts_of_both_signs_as_in_pytorch() {
        use PadMode::{Circular, Constant, Reflect, Replicate};
        let cases: [(i64, i64, PadMode, &[i64]); 16] = [
            (2, 1, Reflect, &[2, 1, 0, 1, 2, 3, 4, 3]),
            (-1, 2, Reflect, &[1, 2, 3, 4, 3, 2]),
            (-1, -2, Reflect, &[1, 2]),
            (4, 0, Reflect, &[4, 3, 2, 1, 0, 1, 2, 3, 4]),
            (2, -1, Reflect, &[2, 1, 0, 1, 2, 3]),
            (2, 1, Replicate, &[0, 0, 0, 1, 2, 3, 4, 4]),
            (-1, 2, Replicate, &[1, 2, 3, 4, 4, 4]),
            (5, 0, Replicate, &[0, 0, 0, 0, 0, 0, 1, 2, 3, 4]),
            (2, -1, Replicate, &[0, 0, 0, 1, 2, 3]),
            (2, 1, Circular, &[3, 4, 0, 1, 2, 3, 4, 0]),
            (-1, 2, Circular, &[1, 2, 3, 4, 1, 2]),
            (5, 5, Circular, &[0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]),
            (2, -1, Circular, &[2, 3, 0, 1, 2, 3]),
            (-5, 0, Circular, &[]),
            (-5, 2, Constant(0.0), &[0, 0]),
            (1, -2, Constant(7.0), &[7, 0, 1, 2]),
        ];
        for (before, after, mode, want) in cases {
            assert_eq!(row(before, after, mode), want, "{before} {after} {mode:?}");
        }
        let b = Tensor::from([false]).pad(&[(0, [1, 0])], Constant(2.0));
        assert_eq!(b.to_vec::<bool>(), [true, false]);
    }

    #[test]
    fn errors() {
        let x = Tensor::zeros([2, 5]);
        let text = |p: &[(i64, [i64; 2])], mode| x.try_pad(p, mode).unwrap_err().kind().to_string();
        assert_eq!(
            text(&[(-1, [5, 0])], PadMode::Reflect),
            "pad: shape [2, 5]: 5 before and 0 after axis 1 of size 5: a mirror gives less than there is"
        );
        assert!(text(&[(1, [6, 0])], PadMode::Circular).contains("the other end"));
        assert!(text(&[(1, [-6, 3])], PadMode::Constant(0.0)).contains("more is cut"));
        assert!(text(&[(0, [1, 1]), (-2, [1, 1])], PadMode::Constant(0.0)).contains("named twice"));
        assert!(x.try_pad(&[(2, [1, 1])], PadMode::Constant(0.0)).is_err());
        let none = Tensor::zeros([0]);
        assert!(none.try_pad(&[(0, [1, 0])], PadMode::Replicate).is_err());
        for mode in
            [PadMode::Constant(0.0), PadMode::Reflect, PadMode::Replicate, PadMode::Circular]
        {
            for (before, after) in [(i64::MIN, i64::MIN), (i64::MIN, i64::MAX), (i64::MAX, 0)] {
                assert!(x.try_pad(&[(1, [before, after])], mode).is_err());
                assert!(x.try_pad(&[(1, [after, before])], mode).is_err());
            }
            assert!(x.try_pad(&[(0, [0, 1 << 61]), (1, [0, 1 << 61])], mode).is_err());
        }
    }
}
