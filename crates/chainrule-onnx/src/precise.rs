//! Compositions whose steps are chosen for accuracy.

use crate::interpret::Interpreter;
use crate::numpy::call;
use crate::ops::Made;
use crate::value::Val;

/// exp(x) - 1: 2 t / (1 - t) with t = tanh(x / 2) near 0, where the difference would cancel.
pub(crate) fn expm1(at: &mut Interpreter, x: &Val) -> Made<Val> {
    let half = at.binary("*", x.clone(), Val::Float(0.5))?;
    let t: Val = at.graph.float("Tanh", &half)?.into();
    let top = at.binary("+", t.clone(), t.clone())?;
    let below = at.binary("-", Val::Float(1.0), t)?;
    let near = at.binary("/", top, below)?;
    let e = at.graph.float("Exp", x)?;
    let far = at.binary("-", e.into(), Val::Float(1.0))?;
    let size = call(at, "np.abs", std::slice::from_ref(x), &[])?;
    let small = at.binary("<", size, Val::Float(1.0))?;
    Some(at.graph.choose(&small, &near, &far)?.into())
}

/// log(1 + x): the quotient compensates the rounding of 1 + x.
pub(crate) fn log1p(at: &mut Interpreter, x: &Val) -> Made<Val> {
    let one = at.binary("+", x.clone(), Val::Float(1.0))?;
    let back = at.binary("-", one.clone(), Val::Float(1.0))?;
    let log: Val = at.graph.float("Log", &one)?.into();
    let ratio = at.binary("/", x.clone(), back.clone())?;
    let near = at.binary("*", log.clone(), ratio)?;
    let lost = at.binary("==", back.clone(), Val::Int(0))?;
    let size = call(at, "np.abs", std::slice::from_ref(x), &[])?;
    let large = at.binary(">", size, Val::Float(1.0))?;
    let rest = at.graph.choose(&large, &log, &near)?;
    Some(at.graph.choose(&lost, x, &rest.into())?.into())
}

/// The angle of (x, y): the arc tangent of the smaller coordinate over the larger, moved into the
/// right octant.
pub(crate) fn arctan2(at: &mut Interpreter, y: &Val, x: &Val) -> Made<Val> {
    use std::f64::consts::{FRAC_PI_2, PI};
    let sizes = [y, x].map(|v| call(at, "np.abs", std::slice::from_ref(v), &[]));
    let [up, along] = [sizes[0].clone()?, sizes[1].clone()?];
    let steep = at.binary(">", up.clone(), along.clone())?;
    let least = at.graph.choose(&steep, &along, &up)?;
    let most = at.graph.choose(&steep, &up, &along)?;
    // Equal ones are at 45 degrees, also where both are infinite; at the origin the angle is 0.
    let same = at.binary("==", up, along)?;
    let none = at.binary("==", most.clone().into(), Val::Int(0))?;
    let ratio = at.binary("/", least.into(), most.into())?;
    let ratio = at.graph.choose(&same, &Val::Float(1.0), &ratio)?;
    let ratio = at.graph.choose(&none, &Val::Float(0.0), &ratio.into())?;
    let low: Val = at.graph.float("Atan", &ratio.into())?.into();
    let high = at.binary("-", Val::Float(FRAC_PI_2), low.clone())?;
    let angle: Val = at.graph.choose(&steep, &high, &low)?.into();
    // The sign of a zero counts; copysign reads it.
    let one = call(at, "np.copysign", &[Val::Float(1.0), x.clone()], &[])?;
    let back = at.binary("<", one, Val::Int(0))?;
    let turned = at.binary("-", Val::Float(PI), angle.clone())?;
    let angle: Val = at.graph.choose(&back, &turned, &angle)?.into();
    call(at, "np.copysign", &[angle, y.clone()], &[])
}
