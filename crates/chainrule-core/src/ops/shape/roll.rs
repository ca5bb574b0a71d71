//! `roll`: elements moved along axes, those that fall off at one end coming back at the other.

use super::remap::{self, Maps};
use crate::kernels::remap::{AxisMap, AxisSource, Run};
use crate::ops::prelude::*;

#[derive(Clone, Debug, Parameters)]
pub(crate) struct Roll {
    /// For each axis of the input.
    shifts: [i64; MAX_RANK],
}

impl Op for Roll {
    row!(roll);

    fn role(&self) -> Role {
        Role::Moves
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        let stays = self.shifts.iter().all(|&shift| shift == 0);
        Some(if stays { "{0}" } else { "np.roll({0}, {shifts}, {roll_axes})" }.into())
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(inputs[0])
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let back = Roll { shifts: self.shifts.map(|s| -s) };
        Ok(smallvec![Some(apply(back, &[cotangent])?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        apply(self.clone(), &[tangents[0].as_ref().expect("the only tangent")])
    }
}

impl WholeKernel for Roll {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let map = |(&n, &shift): (&usize, &i64)| {
            if n == 0 || shift == 0 {
                return None;
            }
            let shift = shift.rem_euclid(n as i64) as usize;
            let run = |from, len| Run { len, from: AxisSource::Up(from) };
            Some(AxisMap::once([run(n - shift, shift), run(0, n - shift)]))
        };
        let maps: Maps = out.shape.iter().zip(&self.shifts).map(map).collect();
        remap::copied(self.name(), &inputs[0], &maps, 0.0, out)
    }
}

methods! {
    /// The elements moved on by `shifts[i]` positions along `axes[i]`; what falls off at the end
    /// comes back at the front. A negative shift moves back. `y[k] = x[(k - shift) mod n]`. An axis
    /// may be named several times. Any dtype. To roll all elements as one row, flatten first.
    ///
    /// Errors if there are not as many shifts as axes. Gradient: `dx` is `g` rolled back.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::arange(0, 5).roll(&[2], &[0]).to_vec::<i64>(), [3, 4, 0, 1, 2]);
    /// ```
    pub fn roll / try_roll(&self, shifts: &[i64], axes: &[i64]) -> Tensor {
        let shape = self.shape();
        if shifts.len() != axes.len() {
            let why = format!("{} shifts for {} axes; give one for each", shifts.len(), axes.len());
            return Err(Error::shape("roll", &[&shape], why));
        }
        let mut total = [0; MAX_RANK];
        for (&shift, &axis) in shifts.iter().zip(axes) {
            let axis = shape.axis("roll", axis)?;
            let n = shape[axis].max(1) as i64;
            total[axis] = (total[axis] + shift % n) % n;
        }
        apply(Roll { shifts: total }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "roll",
    family: Family::Shape,
    signature: "x.roll(&shifts, &axes)",
    python: &[Binding::with(
        "roll",
        &[Parameter::ints("shifts"), Parameter::ints("dims").or_none()],
        |x, a| {
            if a.is_none(1) || a.ints(1).is_empty() {
                // In row-major order.
                return x.try_reshape(-1)?.try_roll(a.ints(0), &[0])?.try_reshape(x.shape());
            }
            x.try_roll(a.ints(0), a.ints(1))
        },
    )],
    formula: "y[.., k, ..] = x[.., (k - shift) mod n, ..]",
    gradient: "dx[.., k, ..] = g[.., (k + shift) mod n, ..]",
    at_kinks: "",
    samples: |g| {
        type RollCase = (&'static str, &'static [usize], &'static [i64], &'static [i64]);
        let cases: [RollCase; 7] = [
            ("a vector", &[5], &[2], &[0]),
            ("several axes", &[3, 4, 5], &[1, -2], &[0, 2]),
            ("middle axis", &[2, 3, 17], &[-1], &[1]),
            ("an axis twice, more than round", &[7, 2], &[5, 12], &[0, -2]),
            ("not at all", &[3, 2], &[3], &[0]),
            ("0-d", &[], &[], &[]),
            ("empty", &[0, 3], &[1, 1], &[0, 1]),
        ];
        cases
            .into_iter()
            .map(|(note, shape, shifts, axes)| {
                Sample::new(note, vec![normal(g, shape)], move |x| x[0].try_roll(shifts, axes))
            })
            .collect()
    },
    mistakes: &[Mistake {
        name: "not rolled back",
        what: "the gradient is rolled by the same shift instead of back",
        rule: |op, _, g, _| {
            let op = op.downcast::<Roll>()?;
            Ok(smallvec![Some(apply(op.clone(), &[g])?)])
        },
    }],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_of_any_size() {
        let x = Tensor::arange(0, 6).reshape([2, 3]);
        let roll = |shift, axis| x.roll(&[shift], &[axis]).to_vec::<i64>();
        assert_eq!(roll(1, 1), [2, 0, 1, 5, 3, 4]);
        assert_eq!(roll(-1, -1), roll(2, 1));
        assert_eq!(roll(1, 0), [3, 4, 5, 0, 1, 2]);
        // i64::MAX mod 3 is 1, i64::MIN mod 3 is 1.
        assert_eq!(roll(i64::MAX, 1), roll(1, 1));
        assert_eq!(roll(i64::MIN, 1), roll(1, 1));
        let text = x.try_roll(&[1], &[0, 1]).unwrap_err().kind().to_string();
        assert_eq!(text, "roll: shape [2, 3]: 1 shifts for 2 axes; give one for each");
        assert!(x.try_roll(&[1], &[2]).is_err());
        assert!(Tensor::scalar(1.0f32).try_roll(&[1], &[0]).is_err());
    }
}
