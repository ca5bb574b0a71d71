//! Arguments of a function of the language, by place or by name.

use chainrule::{Shape, Tensor};

use super::fault::{Fault, Outcome};
use super::value::Data;

/// The largest tensor, in elements.
const LARGEST: usize = 4_000_000;

/// The arguments of a call.
pub struct CallArguments {
    pub name: String,
    pub places: Vec<Data>,
    pub named: Vec<(String, Data)>,
}

impl CallArguments {
    pub fn wrong(&self, why: impl std::fmt::Display) -> Fault {
        Fault::request(format!("{}: {why}", self.name))
    }

    /// The argument at a place or of one of these names.
    pub fn maybe(&self, at: usize, names: &[&str]) -> Option<&Data> {
        let named = || self.named.iter().find(|(n, _)| names.contains(&n.as_str()));
        self.places.get(at).or_else(|| named().map(|(_, x)| x))
    }

    pub fn get(&self, at: usize, names: &[&str]) -> Outcome<&Data> {
        let name = names.first().unwrap_or(&"a value");
        self.maybe(at, names).ok_or_else(|| self.wrong(format!("the argument `{name}` is missing")))
    }

    pub fn tensor(&self, at: usize, names: &[&str]) -> Outcome<Tensor> {
        self.get(at, names)?.tensor().map_err(|e| self.wrong(e.message))
    }

    pub fn floats(&self, at: usize, names: &[&str]) -> Outcome<Tensor> {
        self.get(at, names)?.floats().map_err(|e| self.wrong(e.message))
    }

    pub fn maybe_floats(&self, at: usize, names: &[&str]) -> Outcome<Option<Tensor>> {
        match self.maybe(at, names) {
            None | Some(Data::None) => Ok(None),
            Some(x) => x.floats().map(Some),
        }
    }

    pub fn number(&self, at: usize, names: &[&str], default: Option<f64>) -> Outcome<f64> {
        let wrong = || self.wrong(format!("`{}` must be a number", names[0]));
        match (self.maybe(at, names), default) {
            (Some(x), _) => x.number().ok_or_else(wrong),
            (None, Some(x)) => Ok(x),
            _ => Err(self.wrong(format!("the argument `{}` is missing", names[0]))),
        }
    }

    pub fn whole(&self, at: usize, names: &[&str], default: Option<i64>) -> Outcome<i64> {
        let wrong = || self.wrong(format!("`{}` must be an integer", names[0]));
        match (self.maybe(at, names), default) {
            (Some(x), _) => x.whole().ok_or_else(wrong),
            (None, Some(x)) => Ok(x),
            _ => Err(self.wrong(format!("the argument `{}` is missing", names[0]))),
        }
    }

    pub fn flag(&self, at: usize, names: &[&str]) -> Outcome<bool> {
        self.maybe(at, names).map_or(Ok(false), Data::truth)
    }

    /// Integers from a place on, one by one or as one list.
    pub fn integers(&self, from: usize, names: &[&str]) -> Outcome<Vec<i64>> {
        let wrong = || self.wrong("sizes and axes are integers");
        let rest = self.places.get(from..).unwrap_or_default();
        match rest {
            [] => self.maybe(from, names).map_or(Ok(Vec::new()), |x| x.wholes().ok_or_else(wrong)),
            [one] => one.wholes().ok_or_else(wrong),
            many => many.iter().map(Data::whole).collect::<Option<_>>().ok_or_else(wrong),
        }
    }

    pub fn shape(&self, from: usize, names: &[&str]) -> Outcome<Shape> {
        let sizes = self.integers(from, names)?;
        let sizes: Option<Vec<usize>> = sizes.iter().map(|&n| usize::try_from(n).ok()).collect();
        let sizes = sizes.ok_or_else(|| self.wrong("a size is not negative"))?;
        let count = sizes.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
        match count {
            Some(count) if count <= LARGEST && sizes.len() <= chainrule::MAX_RANK => {
                Ok(Shape::new(&sizes))
            }
            _ => Err(self.wrong(format!("more than {LARGEST} elements are too many here"))),
        }
    }
}
