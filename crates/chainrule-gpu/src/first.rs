//! The first run of a program on a device, compared with the processor's, so that a wrong kernel
//! never trains silently.

use std::sync::Arc;

use chainrule_core::error::Result;
use chainrule_core::tensor::Tensor;
use chainrule_core::tensor::node::Source as Origin;
use chainrule_core::tensor::value::Value;
use chainrule_program::Program;

use crate::device::fault;
use crate::products::Precision;
use crate::session::DeviceSession;

/// Numbers that are compared: their name, the device's, the processor's, and those before.
struct Seen {
    name: String,
    got: Vec<f64>,
    want: Vec<f64>,
    before: Option<Vec<f64>>,
    /// Whether an optimizer that divides by the size of a gradient may have changed it: a gradient
    /// of pure rounding then moves it as far as any other.
    is_scaled: bool,
}

/// The share of a change, and of a result, by which the device may differ.
fn limits(precision: Precision) -> [f64; 2] {
    match precision {
        Precision::F32 => [0.02, 1e-3],
        Precision::Tf32 => [0.1, 1e-2],
        Precision::Bf16 => [0.25, 3e-2],
    }
}

fn size(all: impl Iterator<Item = f64>) -> f64 {
    all.map(|x| x * x).sum::<f64>().sqrt()
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    size(a.iter().zip(b).filter(|(a, b)| a != b && !(a.is_nan() && b.is_nan())).map(|(a, b)| a - b))
}

impl Seen {
    fn change(&self) -> f64 {
        self.before.as_ref().map_or(0.0, |before| apart(&self.want, before))
    }

    /// Whether the device is further off than its arithmetic explains; a change up to `least` may
    /// be pure rounding.
    fn parts(&self, [of_change, of_size]: [f64; 2], least: f64) -> bool {
        let (off, whole) = (apart(&self.got, &self.want), size(self.want.iter().copied()));
        let change = self.change();
        let allowed = match &self.before {
            None => of_size * whole + 1e-6,
            Some(_) if self.is_scaled => 2.5 * change + 1e-4 * whole,
            Some(_) => of_change * change.max(least) + 1e-5 * whole,
        };
        // NaN on one side only is not close to anything.
        off.is_nan() || (off > 0.0 && (allowed.is_nan() || off > allowed))
    }
}

fn numbers(value: &Arc<Value>) -> Vec<f64> {
    Tensor::from_parts(value.clone(), Origin::None).to_f64_vec()
}

impl DeviceSession {
    /// Whether the first run of each program that is loaded from now on is compared with the
    /// processor's: results, and new values of parameters and the optimizer's state. If they
    /// differ, [`DeviceSession::run`] is an error, and parameters stay as they were. Programs that
    /// draw random numbers are not compared, since the device draws others.
    pub fn compare_first(&mut self, is_compared: bool) {
        self.compares = is_compared;
    }

    /// A run in parallel with the processor's. Errors where they differ.
    pub(crate) fn compared_run(
        &mut self,
        at: usize,
        program: &Program,
        arguments: &[&Tensor],
    ) -> Result<Vec<Tensor>> {
        self.fetch()?;
        let count = program.states().count();
        let values = || (0..count).map(|i| program.leaf(i).value()).collect::<Vec<_>>();
        let before = values();
        let results = self.plain_run(at, arguments)?;
        let got = self.new_values(program)?;
        // The processor starts from the device's values, and leaves no trace.
        self.return_to(program, &before)?;
        let wanted = program.run(arguments);
        let after = values();
        self.return_to(program, &before)?;
        let wanted = wanted?;
        let mut all = Vec::new();
        for (i, (got, want)) in results.iter().zip(&wanted).enumerate() {
            if want.dtype().is_float() {
                let name = format!("result {i}");
                let (got, want) = (got.to_f64_vec(), want.to_f64_vec());
                all.push(Seen { name, got, want, before: None, is_scaled: false });
            }
        }
        let cells: Vec<(String, bool, bool)> = program
            .states()
            .map(|(id, write, trained)| {
                (program.infos()[id.index()].name.clone(), trained, write.is_some())
            })
            .collect();
        let is_float = |i: usize| after[i].dtype().is_float();
        let has_state = (0..count).any(|i| cells[i].2 && !cells[i].1 && is_float(i));
        for (i, (name, trained, changes)) in cells.into_iter().enumerate() {
            if changes && is_float(i) {
                let got = got[i].as_ref().map(numbers).unwrap_or_default();
                let (want, before) = (numbers(&after[i]), Some(numbers(&before[i])));
                let is_scaled = trained && has_state;
                all.push(Seen { name, got, want, before, is_scaled });
            }
        }
        self.judged(&all)?;
        self.go_ahead(at, program, &before);
        Ok(results)
    }

    /// The values that a run gave to cells on the device, for those that it changed.
    fn new_values(&mut self, program: &Program) -> Result<Vec<Option<Arc<Value>>>> {
        let changes = program.states().enumerate().map(|(i, (_, write, _))| (i, write.is_some()));
        let value = |(i, changes): (usize, bool)| match changes {
            true => self.resident_value(program.leaf(i).number).map(Some),
            false => Ok(None),
        };
        changes.map(value).collect()
    }

    /// Gives cells these values on the processor; those of the device are not to be taken.
    fn return_to(&mut self, program: &Program, values: &[Arc<Value>]) -> Result<()> {
        for (i, old) in values.iter().enumerate() {
            let leaf = program.leaf(i);
            self.put_back(leaf.number);
            leaf.put(old.clone())?;
        }
        Ok(())
    }

    /// Lets the device be ahead of cells, which have these values, by the run that it did.
    fn go_ahead(&mut self, at: usize, program: &Program, values: &[Arc<Value>]) {
        for (i, old) in values.iter().enumerate() {
            self.same_as(program.leaf(i).number, old);
        }
        self.changed(at);
    }

    fn judged(&self, all: &[Seen]) -> Result<()> {
        let each = |s: &Seen| s.change() / (s.want.len().max(1) as f64).sqrt();
        let largest = all.iter().map(each).fold(0.0, f64::max);
        let least = |s: &Seen| 1e-5 * largest * (s.want.len() as f64).sqrt();
        let precision = self.precision();
        let wrong: Vec<&Seen> =
            all.iter().filter(|s| s.parts(limits(precision), least(s))).collect();
        let Some(first) = wrong.first() else { return Ok(()) };
        let device = self.device().describe().to_string();
        let numbers = match (&first.got[..], &first.want[..]) {
            ([got], [want]) => format!("{got} for {want}"),
            _ => format!(
                "off by {:.3e} where all of it is {:.3e}",
                apart(&first.got, &first.want),
                size(first.want.iter().copied())
            ),
        };
        Err(fault(format!(
            "the first step on {device} in {precision} parts from the processor's: `{}` is {numbers}, \
             and {} of {} values part in all",
            first.name,
            wrong.len(),
            all.len()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(got: &[f64], want: &[f64], before: Option<&[f64]>, precision: Precision) -> bool {
        let before = before.map(<[f64]>::to_vec);
        let (got, want) = (got.to_vec(), want.to_vec());
        let seen = Seen { name: "x".to_string(), got, want, before, is_scaled: false };
        seen.parts(limits(precision), 1e-9)
    }

    #[test]
    fn what_a_device_did_not_compute_is_seen() {
        let (old, new) = ([1.0, 2.0, 3.0], [1.1, 2.1, 2.9]);
        let near = [1.1001, 2.1001, 2.9001];
        for precision in [Precision::F32, Precision::Tf32, Precision::Bf16] {
            assert!(!parts(&new, &new, Some(&old), precision));
            assert!(!parts(&near, &new, Some(&old), precision));
            // Nothing was written, the sign is wrong, one element is no number.
            assert!(parts(&old, &new, Some(&old), precision));
            assert!(parts(&[0.9, 1.9, 3.1], &new, Some(&old), precision));
            assert!(parts(&[1.1, f64::NAN, 2.9], &new, Some(&old), precision));
            assert!(parts(&[0.5], &[0.6], None, precision));
        }
        assert!(parts(&[1.11, 2.12, 2.9], &new, Some(&old), Precision::F32));
        assert!(!parts(&[1.11, 2.12, 2.9], &new, Some(&old), Precision::Bf16));
        assert!(!parts(&[f64::NAN], &[f64::NAN], None, Precision::F32));
    }
}
