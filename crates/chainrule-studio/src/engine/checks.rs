//! Gradient checking over the size of the step, and the axes that broadcasting stretched.

use chainrule::{MAX_RANK, Shape, Tensor, no_grad};
use serde_json::{Value, json};

use super::json::number;
use super::session::Session;
use crate::language::fault::{Fault, Outcome};
use crate::language::interpreter::{Interpreter, Memory};
use crate::language::value::Data;

/// Directions along which the slope is measured.
const POWERS: std::ops::RangeInclusive<i32> = 2..=26;

/// The answer to `gradcheck`: the relative error of differences along one direction of the leaves,
/// for steps from 0.1 to 1e-13.
pub fn steps(text: &str, seed: u64, leaf: Option<&str>) -> Outcome<Value> {
    let session = Session::of(text, seed)?;
    let memory = session.run.memory().clone();
    let chosen = chosen(&session, &memory, leaf)?;
    // The direction is the gradient's own signs: the slope along it is never small by chance.
    let mut slope = 0.0;
    let mut directions = Vec::new();
    for &i in &chosen {
        let place = session.find(&memory.leaves[i]);
        let gradient = place.and_then(|place| session.gradient(place));
        let gradient =
            gradient.map_or_else(|| vec![0.0; memory.leaves[i].numel()], Tensor::to_f64_vec);
        let size = (gradient.len() as f64).sqrt();
        let direction: Vec<f64> = gradient.iter().map(|g| sign(*g) / size).collect();
        slope += gradient.iter().zip(&direction).map(|(g, d)| g * d).sum::<f64>();
        directions.push(direction);
    }
    let at = |h: f64| -> Outcome<f64> {
        let mut moved = memory.clone();
        for (&i, direction) in chosen.iter().zip(&directions) {
            let x = memory.leaves[i].to_f64_vec();
            let x: Vec<f64> = x.iter().zip(direction).map(|(x, d)| x + h * d).collect();
            moved.leaves[i] = Tensor::try_from_slice(&x, memory.leaves[i].shape())?;
        }
        let mut run = Interpreter::new(seed).after(moved);
        no_grad(|| run.run(text))?;
        match run.result() {
            Some(Data::Tensor(t)) => Ok(t.to_f64_vec().iter().sum()),
            _ => Err(Fault::request("the result is no tensor")),
        }
    };
    let middle = at(0.0)?;
    let error = |slope_found: f64| (slope_found - slope).abs() / slope.abs().max(1e-300);
    let mut points = Vec::new();
    let (mut one_best, mut central_best) = ((f64::INFINITY, 0.0), (f64::INFINITY, 0.0));
    for power in POWERS {
        let h = 10f64.powf(-f64::from(power) / 2.0);
        let (above, below) = (at(h)?, at(-h)?);
        let (one, central) = (error((above - middle) / h), error((above - below) / (2.0 * h)));
        one_best = if one < one_best.0 { (one, h) } else { one_best };
        central_best = if central < central_best.0 { (central, h) } else { central_best };
        points.push(json!({"h": h, "one_sided": number(one), "central": number(central)}));
    }
    Ok(json!({
        "points": points,
        "best": {"one_sided": one_best.1, "central": central_best.1},
        "exact": number(slope),
    }))
}

fn sign(x: f64) -> f64 {
    if x < 0.0 { -1.0 } else { 1.0 }
}

fn chosen(session: &Session, memory: &Memory, leaf: Option<&str>) -> Outcome<Vec<usize>> {
    let Some(name) = leaf else { return Ok((0..memory.leaves.len()).collect()) };
    let Some(Data::Tensor(wanted)) = session.run.variable(name) else {
        return Err(Fault::request(format!("there is no leaf `{name}`")));
    };
    let found = memory.leaves.iter().position(|leaf| leaf.is_same(wanted));
    found.map(|i| vec![i]).ok_or_else(|| Fault::request(format!("`{name}` is no leaf")))
}

/// The answer to `broadcast`: the common shape, and for each side the axes over which a gradient of
/// that shape is summed.
pub fn broadcast(a: &[usize], b: &[usize], tried: Option<&[usize]>) -> Outcome<Value> {
    let shape = |sizes: &[usize]| match sizes.len() <= MAX_RANK {
        true => Ok(Shape::new(sizes)),
        false => Err(Fault::request(format!("a shape has at most {MAX_RANK} axes"))),
    };
    let (a, b) = (shape(a)?, shape(b)?);
    let Some(both) = a.broadcast(&b) else {
        let why = "do not fit: from the right, two sizes must be equal, or one of them 1";
        return Err(Fault::request(format!("{:?} and {:?} {why}", a.to_vec(), b.to_vec())));
    };
    let axes = |of: &Shape| -> Vec<usize> {
        let lead = both.rank() - of.rank();
        (0..both.rank()).filter(|&i| i < lead || of[i - lead] != both[i]).collect()
    };
    let (sum_a, sum_b) = (axes(&a), axes(&b));
    let mut out = json!({"shape": both.to_vec(), "sum_a": sum_a, "sum_b": sum_b});
    if let Some(tried) = tried {
        if let Some(axis) = tried.iter().find(|&&axis| axis >= both.rank()) {
            return Err(Fault::request(format!("there is no axis {axis} in {:?}", both.to_vec())));
        }
        let keep = |i: usize| !tried.contains(&i) || i >= both.rank() - a.rank();
        let sizes = (0..both.rank()).filter(|&i| keep(i));
        let sizes: Vec<usize> =
            sizes.map(|i| if tried.contains(&i) { 1 } else { both[i] }).collect();
        let mut asked = tried.to_vec();
        asked.sort_unstable();
        let missing: Vec<usize> = sum_a.iter().copied().filter(|i| !tried.contains(i)).collect();
        let extra: Vec<usize> = asked.iter().copied().filter(|i| !sum_a.contains(i)).collect();
        let why = match (&missing[..], &extra[..]) {
            ([], []) => "These are the axes along which one value was used many times.".to_string(),
            (missing, []) => format!(
                "Along axis {} one value was used many times; its parts are still apart.",
                list(missing)
            ),
            (_, extra) => format!(
                "Along axis {} every position has a value of its own; a sum mixes their gradients.",
                list(extra)
            ),
        };
        out["tried"] = json!({"shape": sizes, "right": asked == sum_a, "why": why});
    }
    Ok(out)
}

fn list(of: &[usize]) -> String {
    of.iter().map(usize::to_string).collect::<Vec<_>>().join(" and ")
}
