//! `repeat` and `tile`: a tensor laid out several times along each axis.

use super::remap::{Maps, Remap};
use crate::kernels::remap::{AxisMap, AxisSource, Run};
use crate::ops::prelude::*;

methods! {
    /// The tensor repeated along each axis, as copies: `y[k] = x[k mod n]`. With more
    /// numbers than axes, new axes come in front. PyTorch's `Tensor.repeat`; for single elements
    /// see [`Tensor::repeat_interleave`], for axes of size 1 without a copy [`Tensor::expand`].
    ///
    /// Errors for fewer numbers than axes. Any dtype. Gradient: the sum of the gradients of all
    /// copies.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// assert_eq!(x.repeat(3).to_vec::<f32>(), [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]);
    /// assert_eq!(x.repeat([2, 1]).shape(), [2, 2]);
    /// ```
    pub fn repeat / try_repeat<S: IntoShape>(&self, times: S) -> Tensor {
        let (shape, times) = (self.shape(), times.into_shape("repeat")?);
        let Some(new) = times.rank().checked_sub(shape.rank()) else {
            let why = format!("{} numbers for {} axes; give one for each, or use tile", times.rank(), shape.rank());
            return Err(Error::shape("repeat", &[&shape], why));
        };
        if times.iter().all(|&n| n == 1) && new == 0 {
            return Ok(self.clone());
        }
        let mut sizes = [1; MAX_RANK];
        sizes[new..times.rank()].copy_from_slice(&shape);
        let longer = self.try_reshape(&sizes[..times.rank()])?;
        apply(Remap { id: OpId::repeat, maps: maps(&longer.shape(), &times) }, &[&longer])
    }

    /// As [`Tensor::repeat`], but with fewer numbers than axes they are for the last ones. NumPy's
    /// and PyTorch's `tile`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::zeros([2, 3]).tile(2).shape(), [2, 6]);
    /// ```
    pub fn tile / try_tile<S: IntoShape>(&self, times: S) -> Tensor {
        let times = times.into_shape("tile")?;
        let mut all = [1; MAX_RANK];
        let rank = times.rank().max(self.rank());
        all[rank - times.rank()..rank].copy_from_slice(&times);
        self.try_repeat(&all[..rank])
    }
}

fn maps(shape: &Shape, times: &Shape) -> Maps {
    let map = |(&n, &times): (&usize, &usize)| match (n, times) {
        (_, 1) => None,
        (1, _) => Some(AxisMap::once([Run { len: times, from: AxisSource::Same(0) }])),
        _ => {
            let once = AxisMap::once([Run { len: n, from: AxisSource::Up(0) }]);
            Some(AxisMap { times, ..once })
        }
    };
    shape.iter().zip(times.iter()).map(map).collect()
}

pub(super) const ENTRY: Entry = Entry {
    name: "repeat",
    family: Family::Shape,
    signature: "x.repeat(times), x.tile(times)",
    python: &[
        Binding::with("repeat", &[Parameter::sizes("repeats")], |x, a| {
            x.try_repeat(a.sizes("repeat", 0)?)
        })
        .no_function(),
        Binding::with("tile", &[Parameter::sizes("dims")], |x, a| x.try_tile(a.sizes("tile", 0)?)),
    ],
    formula: "y[.., k, ..] = x[.., k mod n, ..]",
    gradient: "dx[.., k mod n, ..] += g[.., k, ..]",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], &[usize]); 8] = [
            ("a vector", &[3], &[4]),
            ("both axes", &[2, 3], &[3, 2]),
            ("new axes", &[2], &[2, 1, 3]),
            ("an element", &[2, 1], &[1, 17]),
            ("rows", &[2, 5], &[3, 1]),
            ("0-d", &[], &[2, 2]),
            ("no times", &[2, 2], &[0, 1]),
            ("of nothing", &[0, 2], &[3, 2]),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, shape, times)| {
                Sample::new(note, vec![normal(g, shape)], move |x| x[0].try_repeat(times))
            })
            .collect();
        out.push(Sample::new("tile", vec![normal(g, [2, 3])], |x| x[0].try_tile(2)));
        out
    },
    mistakes: &[Mistake {
        name: "overwritten instead of accumulated",
        what: "only the gradient of the first copy is taken",
        rule: |op, at, g, wanted| {
            let mut maps = Remap::of(op)?.maps.clone();
            for map in maps.iter_mut().flatten() {
                let rest =
                    map.size() - map.runs.iter().map(|r| r.len).sum::<usize>().min(map.size());
                let first = match map.runs.first() {
                    Some(Run { from: AxisSource::Same(p), len }) => {
                        vec![
                            Run { len: 1, from: AxisSource::Same(*p) },
                            Run { len: len - 1, from: AxisSource::Fill },
                        ]
                    }
                    Some(run) if map.times > 0 => {
                        vec![*run, Run { len: rest, from: AxisSource::Fill }]
                    }
                    _ => continue,
                };
                *map = AxisMap::once(first);
            }
            Remap { id: OpId::repeat, maps }.vjp(at, g, wanted)
        },
    }],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_errors() {
        let x = Tensor::arange(0, 6).reshape([2, 3]);
        assert_eq!(x.repeat([2, 1, 1]).shape(), [2, 2, 3]);
        assert_eq!(x.tile(2).to_vec::<i64>(), [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
        assert_eq!(x.tile([2, 1, 1, 1]).shape(), [2, 1, 2, 3]);
        let text = x.try_repeat(2).unwrap_err().kind().to_string();
        assert_eq!(
            text,
            "repeat: shape [2, 3]: 1 numbers for 2 axes; give one for each, or use tile"
        );
        for huge in [usize::MAX, 1 << 40, 1 << 60] {
            assert!(x.try_repeat([huge, huge]).is_err());
            assert!(x.try_tile(huge).is_err());
            assert_eq!(Tensor::zeros([0, 1]).repeat([huge, 0]).numel(), 0);
        }
        assert!(x.try_repeat([1; 9]).is_err());
        assert!(x.try_tile([-1]).is_err());
        assert_eq!(Tensor::from([true]).repeat(2).to_vec::<bool>(), [true, true]);
    }
}
