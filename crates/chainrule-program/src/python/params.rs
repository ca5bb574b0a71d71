//! The parameters of an op as Python writes them.

use crate::param::Param;

/// A parameter as Python writes it.
pub(super) trait AsPython {
    /// The literal: lists are tuples, an option is its value or `None`, names are strings.
    fn python(&self) -> String;
}

impl AsPython for Param {
    fn python(&self) -> String {
        match self {
            Param::Bool(x) => if *x { "True" } else { "False" }.to_string(),
            Param::Int(n) => n.to_string(),
            Param::Float(x) => float(x.get()),
            Param::Text(text) => format!("{text:?}"),
            Param::Word(word) => format!("{word:?}"),
            Param::Axes(axes) => tuple(axes.iter().map(|a| a.to_string())),
            Param::List(items) => tuple(items.iter().map(Param::python)),
            Param::Struct(name, fields) => {
                let values = fields.iter().map(|(_, v)| v.python());
                tuple(std::iter::once(format!("{name:?}")).chain(values))
            }
            Param::Some(inner) => inner.python(),
            Param::None | Param::Unit | Param::Tensor(_) => "None".to_string(),
        }
    }
}

/// A number as Python reads it.
fn float(x: f64) -> String {
    match x {
        f64::INFINITY => "np.inf".to_string(),
        f64::NEG_INFINITY => "-np.inf".to_string(),
        x if x.is_nan() => "np.nan".to_string(),
        x => format!("{x:?}"),
    }
}

/// A tuple of Python.
pub(super) fn tuple(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    let comma = if items.len() == 1 { "," } else { "" };
    format!("({}{comma})", items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::Parameters;
    use crate::shape::{Axes, Shape};

    #[test]
    fn parameters_are_written_as_python_reads_them() {
        let all: [(&dyn Parameters, &str); 9] = [
            (&true, "True"),
            (&-0.5, "-0.5"),
            (&f64::INFINITY, "np.inf"),
            (&-f64::INFINITY, "-np.inf"),
            (&[(0usize, 1.0), (2, f64::NAN)], "((0, 1.0), (2, np.nan))"),
            (&Axes::of(&[0, 2]), "(0, 2)"),
            (&Shape::SCALAR, "()"),
            (&Some(3usize), "3"),
            (&None::<f64>, "None"),
        ];
        for (param, python) in all {
            assert_eq!(param.parameters().python(), python);
        }
        let last = Param::Struct("Last", vec![("0", Param::Int(1))]);
        assert_eq!(last.python(), "(\"Last\", 1)");
        assert_eq!(Param::Word("Mean").python(), "\"Mean\"");
    }
}
