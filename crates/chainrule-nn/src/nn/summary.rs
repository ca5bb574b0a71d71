//! Summary of a module: submodules, output shapes, parameter counts.

use std::fmt;

use super::layer::{Layer, Place, Watch};
use super::module::{Module, fields::switches};
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::{Tensor, no_grad};

/// One module of a [`Summary`].
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRow {
    /// Path, joined by dots; empty for the whole.
    pub name: String,
    /// Its type.
    pub kind: &'static str,
    /// Shape of its last output; `None` if it was not called as a layer, or if it has no fields and
    /// its calls cannot be told from those of others of its kind.
    pub output: Option<Shape>,
    /// Elements of its own parameters, without those of submodules.
    pub own_parameters: usize,
}

/// Submodules of a layer with their output shapes; prints as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The whole, then its submodules in pre-order.
    pub rows: Vec<SummaryRow>,
    /// Elements of all parameters; a parameter that occurs twice counts twice.
    pub parameters: usize,
    /// Without the frozen ones.
    pub trained: usize,
}

/// Runs the layer on `x`, in evaluation mode and without the tape, and lists its submodules.
///
/// Errors as the layer does on `x`. Its mode, statistics and gradients are unchanged.
///
/// ```
/// use chainrule::nn::{Linear, Sequential, Tanh, summary};
/// use chainrule::{Generator, Tensor};
/// let g = &mut Generator::manual_seed(0);
/// let net = Sequential::new().with(Linear::new(2, 8, g)).with(Tanh).with(Linear::new(8, 1, g));
/// let table = summary(&net, &Tensor::zeros([5, 2]))?;
/// assert_eq!(table.rows[1].output.unwrap(), [5, 8]);
/// assert_eq!(table.parameters, 2 * 8 + 8 + 8 + 1);
/// println!("{table}");
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn summary(layer: &impl Layer, x: &Tensor) -> Result<Summary> {
    let mut modes = Vec::new();
    switches(layer.fields(), &mut modes);
    let before: Vec<bool> = modes.iter().map(|m| m.is_on()).collect();
    modes.iter().for_each(|m| m.set(false));
    let watch = Watch::start();
    let ran = no_grad(|| layer.try_forward(x));
    modes.iter().zip(before).for_each(|(m, on)| m.set(on));
    ran?;
    let mut rows = Vec::new();
    let mut places = Vec::new();
    let whole: (String, &dyn Module) = (String::new(), layer);
    for (name, module) in std::iter::once(whole).chain(layer.named_modules()) {
        places.push(Place::of(module, module.kind()));
        rows.push(SummaryRow { name, kind: module.kind(), output: None, own_parameters: 0 });
    }
    let calls: Vec<(Place, Shape)> =
        watch.seen().iter().map(|call| (call.place, call.output.shape())).collect();
    for (row, output) in rows.iter_mut().zip(outputs(&places, &calls)) {
        row.output = output;
    }
    for (name, parameter) in layer.named_parameters() {
        // A parameter belongs to the innermost module on its path.
        let leads = |row: &&mut SummaryRow| {
            row.name.is_empty()
                || name.strip_prefix(&row.name).is_some_and(|rest| rest.starts_with('.'))
        };
        let owner = rows.iter_mut().filter(leads).max_by_key(|row| row.name.len());
        owner.expect("the whole owns what nothing else does").own_parameters += parameter.numel();
    }
    Ok(Summary { rows, parameters: layer.parameter_count(), trained: layer.trained_count() })
}

/// Last output of the module at each place. Modules that share a place have one only if each was
/// called once and all gave the same shape: nothing else tells their calls apart.
fn outputs(places: &[Place], calls: &[(Place, Shape)]) -> Vec<Option<Shape>> {
    let output = |place: &Place| {
        let here: Vec<Shape> =
            calls.iter().filter(|(p, _)| p == place).map(|(_, shape)| *shape).collect();
        let modules = places.iter().filter(|p| *p == place).count();
        let alike = here.len() == modules && here.iter().all(|shape| *shape == here[0]);
        if place.is_shared() && modules > 1 && !alike { None } else { here.last().copied() }
    };
    places.iter().map(output).collect()
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<[String; 3]> = self.rows.iter().map(cells).collect();
        let head = ["layer", "output", "parameters"].map(String::from);
        let width = |i: usize| {
            cells.iter().chain([&head]).map(|row| row[i].chars().count()).max().unwrap_or(0)
        };
        let (a, b, c) = (width(0), width(1), width(2));
        let rule = "-".repeat(a + b + c + 4);
        let line = |[x, y, z]: &[String; 3]| format!("{x:<a$}  {y:<b$}  {z:>c$}");
        writeln!(f, "{}\n{rule}", line(&head))?;
        for row in &cells {
            writeln!(f, "{}", line(row).trim_end())?;
        }
        write!(f, "{rule}\n{} parameters", grouped(self.parameters))?;
        if self.trained < self.parameters {
            write!(f, ", {} of them trained", grouped(self.trained))?;
        }
        Ok(())
    }
}

fn cells(row: &SummaryRow) -> [String; 3] {
    let name = match row.name.as_str() {
        "" => row.kind.to_string(),
        name => {
            let depth = 1 + name.matches('.').count();
            format!("{}{name} ({})", "  ".repeat(depth), row.kind)
        }
    };
    let output = row.output.map(|shape| shape.to_string()).unwrap_or_default();
    let parameters = match row.own_parameters {
        0 => String::new(),
        n => grouped(n),
    };
    [name, output, parameters]
}

/// With thousands separators.
fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
