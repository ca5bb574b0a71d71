//! `reshape`: the same elements in row-major order under another shape.

use smallvec::SmallVec;

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Reshape {
    pub shape: Shape,
}

impl Op for Reshape {
    row!(reshape);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.reshape({0}, {shape})".into())
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn reading(&self) -> Reading {
        Reading::Reshape
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let (from, to) = (inputs[0].shape, self.shape);
        if from.numel() != to.numel() {
            let why = format!(
                "the first has {} elements, the second {}; they must be equal",
                from.numel(),
                to.numel()
            );
            return Err(Error::shape(self.name(), &[&from, &to], why));
        }
        Ok(Meta::new(to, inputs[0].dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.try_reshape(at.input_shape(0))?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        tangents[0].as_ref().expect("the only tangent").try_reshape(self.shape)
    }

    fn keeps_order(&self, _: &Meta) -> bool {
        true
    }
}

impl ViewKernel for Reshape {
    /// Groups of old axes that lie without gaps are split anew; a new axis that would span a gap
    /// needs a copy.
    fn view(&self, from: &Shape, layout: &Layout, to: &Shape) -> Option<Layout> {
        if to.contains(&0) {
            return Some(Layout { offset: layout.offset, strides: to.contiguous_strides() });
        }
        let old: SmallVec<[(usize, isize); MAX_RANK]> = from
            .iter()
            .zip(layout.strides)
            .filter(|(d, _)| **d != 1)
            .map(|(&d, s)| (d, s))
            .collect();
        let mut strides = [0; MAX_RANK];
        let (mut i, mut j) = (0, 0);
        while i < old.len() {
            let (start, first) = (j, i);
            let mut have = old[i].0;
            let mut want = 1;
            while want != have || (j < to.rank() && to[j] == 1) {
                if want < have || to.get(j) == Some(&1) {
                    want *= *to.get(j)?;
                    j += 1;
                } else {
                    i += 1;
                    have *= old.get(i)?.0;
                }
            }
            if old[first..=i].windows(2).any(|w| w[0].1 != w[1].1 * w[1].0 as isize) {
                return None;
            }
            let mut step = old[i].1;
            for k in (start..j).rev() {
                strides[k] = step;
                step *= to[k] as isize;
            }
            i += 1;
        }
        Some(Layout { offset: layout.offset, strides })
    }
}

methods! {
    /// The elements in row-major order under another shape: a view where the memory allows, else a
    /// copy. One size may be -1: it takes what is left over. Gradient: `dx = g` in the shape of
    /// `x`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.reshape([3, -1]).shape(), [3, 2]);
    /// ```
    pub fn reshape / try_reshape<S: IntoSizes>(&self, sizes: S) -> Tensor {
        let sizes = sizes.into_sizes();
        let shape = fill_in(&self.shape(), &sizes)?;
        if shape == self.shape() {
            return Ok(self.clone());
        }
        apply(Reshape { shape }, &[self])
    }
}

impl Tensor {
    /// The same tensor as a result of its own, so that derivatives with respect to it are distinct
    /// from those with respect to the original.
    pub(crate) fn alias(&self) -> Result<Tensor> {
        apply(Reshape { shape: self.shape() }, &[self])
    }
}

/// The shape that `sizes` mean, with -1 replaced.
fn fill_in(from: &Shape, sizes: &[i64]) -> Result<Shape> {
    let known = || sizes.iter().filter(|&&s| s != -1).map(|&s| s as i128);
    let shape_error = |why: &str| {
        Err(Error::argument("reshape", format!("{from} cannot become {sizes:?}: {why}")))
    };
    let open = sizes.iter().filter(|&&s| s == -1).count();
    if open == 0 {
        return sizes.into_shape("reshape");
    }
    if open > 1 {
        return shape_error("only one size may be -1");
    }
    if known().any(|s| s < 0) {
        return shape_error("sizes start at 0");
    }
    let product = known().try_fold(1i128, |n, s| n.checked_mul(s)).unwrap_or(i128::MAX);
    let numel = from.numel() as i128;
    if product == 0 {
        return shape_error("with a size of 0 the size for -1 is not determined");
    }
    if numel % product != 0 {
        return shape_error(&format!("{numel} elements are not a multiple of {product}"));
    }
    let filled: Vec<i64> =
        sizes.iter().map(|&s| if s == -1 { (numel / product) as i64 } else { s }).collect();
    filled.into_shape("reshape")
}

pub(super) const ENTRY: Entry = Entry {
    name: "reshape",
    family: Family::Shape,
    signature: "x.reshape(sizes)",
    python: &[Binding::by_hand("reshape", "its result is a view, which aliases")],
    formula: "x in row-major order under another shape",
    gradient: "dx = g in the shape of x",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], &[i64]); 6] = [
            ("merge", &[2, 3, 4], &[6, 4]),
            ("split", &[6, 4], &[2, 3, -1]),
            ("regroup", &[4, 6], &[3, 8]),
            ("0-d", &[], &[1, 1]),
            ("to 0-d", &[1], &[]),
            ("empty", &[0, 3], &[3, 0]),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, from, to)| {
                Sample::new(note, vec![normal(g, from)], move |x| x[0].try_reshape(to))
            })
            .collect();
        out.push(Sample::new("a transposed view, copied", vec![normal(g, [3, 4])], |x| {
            x[0].try_transpose(0, 1)?.try_reshape([2, 6])
        }));
        out
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{Slice, Tensor};

    /// The same elements in row-major order of their own.
    fn copy(x: &Tensor) -> Tensor {
        Tensor::from_slice(&x.to_vec::<i64>(), x.shape())
    }

    /// Sizes of as many elements as `x`, drawn from `code`: its prime factors in some order, some
    /// of them joined, with ones between.
    fn sizes(x: &Tensor, mut code: u64) -> Vec<i64> {
        let mut rest = x.numel() as i64;
        let mut sizes = vec![1];
        for p in 2..=7 {
            while rest > 1 && rest % p == 0 {
                rest /= p;
                match code % 4 {
                    0 if sizes.len() < 7 => sizes.insert(0, p),
                    1 if sizes.len() < 7 => sizes.push(p),
                    2 if sizes.len() < 6 => sizes.extend([1, p]),
                    _ => *sizes.last_mut().unwrap() *= p,
                }
                code /= 4;
            }
        }
        if rest == 0 {
            return vec![0, 3];
        }
        *sizes.last_mut().unwrap() *= rest;
        sizes
    }

    /// One of the ops that make views, drawn from `code`.
    fn step(x: &Tensor, code: u64) -> Tensor {
        let rank = x.rank() as u64;
        let (kind, a, b, more) = (code % 5, code / 5, code / 64, code / 1024);
        match kind {
            0 if rank > 0 => x.transpose((a % rank) as i64, (b % rank) as i64),
            1 if rank > 0 => {
                let mut slices = vec![Slice::from(..); rank as usize];
                let by = [-2, -1, 2, 3][(b % 4) as usize];
                let start = (more % 5) as i64 - 2;
                slices[(a % rank) as usize] = match by > 0 {
                    true => Slice::from(start..).step(by),
                    false => Slice::from(..start).step(by),
                };
                x.slice(&slices)
            }
            2 if rank < 6 && x.numel() <= 512 => {
                let axis = (a % (rank + 1)) as i64;
                let longer = x.unsqueeze(axis);
                let mut shape = longer.shape().to_vec();
                shape[axis as usize] = 2;
                longer.expand(shape)
            }
            _ => x.reshape(sizes(x, more)),
        }
    }

    proptest! {
        /// A chain of views of views holds the same as one that copies after each step, where every
        /// reshape is of row-major elements.
        #[test]
        fn views_of_views_hold_the_same_as_copies(codes in prop::collection::vec(any::<u64>(), 1..12)) {
            let mut view = Tensor::arange(0, 360).reshape([3, 4, 5, 6]);
            let mut copied = copy(&view);
            for code in codes {
                view = step(&view, code);
                copied = copy(&step(&copied, code));
                prop_assert_eq!(view.shape(), copied.shape());
                prop_assert_eq!(view.to_vec::<i64>(), copied.to_vec::<i64>());
            }
        }
    }

    #[test]
    fn minus_one_takes_what_is_left() {
        let x = Tensor::zeros([2, 3, 4]);
        assert_eq!(x.reshape([-1, 6]).shape(), [4, 6]);
        assert_eq!(x.reshape(-1).shape(), [24]);
        assert_eq!(Tensor::zeros([0, 3]).reshape([3, -1]).shape(), [3, 0]);
        let text = |sizes: &[i64]| x.try_reshape(sizes).unwrap_err().kind().to_string();
        assert_eq!(
            text(&[-1, 5]),
            "reshape: [2, 3, 4] cannot become [-1, 5]: 24 elements are not a multiple of 5"
        );
        assert!(text(&[-1, -1]).contains("only one size may be -1"));
        assert!(text(&[-1, 0]).contains("is not determined"));
        assert!(text(&[-1, -2]).contains("sizes start at 0"));
        assert!(text(&[i64::MIN]).contains("sizes start at 0"));
        assert!(text(&[i64::MAX, i64::MAX, -1]).contains("not a multiple"));
        assert_eq!(
            text(&[5, 5]),
            "reshape: shapes [2, 3, 4] and [5, 5]: the first has 24 elements, the second 25; they must be equal"
        );
    }
}
