//! The mistakes that can be made at any op: their names, what was done, and what is right.

use super::{Fault, Unbroadcast};

/// The names of the mistakes that belong to no op, with what was done and what is right.
pub struct General {
    pub name: &'static str,
    pub what: &'static str,
    pub fix: &'static str,
}

pub const SIGN: General = General {
    name: "sign",
    what: "the part of the gradient that goes to this input has the wrong sign",
    fix: "add the part with the sign that the rule gives it: += where -= stands, or without the minus",
};
pub const DOUBLED: General = General {
    name: "factor 2 added",
    what: "the part of the gradient that goes to this input is twice the right one",
    fix: "take the factor 2 out: it is there twice, or belongs to another rule",
};
pub const HALVED: General = General {
    name: "factor 2 lost",
    what: "the part of the gradient that goes to this input is half of the right one",
    fix: "put the factor 2 back, which the derivative of a square, or a second use of a tensor, brings",
};
pub const FORGOTTEN: General = General {
    name: "path forgotten",
    what: "nothing is passed on to this input, as if it were a constant",
    fix: "add what the rule gives for this input",
};
pub const FACTOR: General = General {
    name: "wrong factor",
    what: "the part of the gradient that goes to this input is multiplied by a number that does not belong there",
    fix: "divide by that number",
};
pub const CLIPPED: General = General {
    name: "clipped by value",
    what: "the gradient is cut off at a bound inside the rule",
    fix: "pass on what the rule gives; clip the gradients of the parameters after the whole backward pass, by their norm",
};
pub const MEAN_FOR_SUM: General = General {
    name: "mean where a sum is due",
    what: "the gradient of a stretched input is averaged over the axes along which it was stretched",
    fix: "sum over those axes: each copy of the input had its own effect on the loss",
};
pub const SLICE_FOR_SUM: General = General {
    name: "slice where a sum is due",
    what: "of the gradient of a stretched input only the first slice is taken",
    fix: "sum over the axes along which the input was stretched",
};
pub const WRONG_AXIS: General = General {
    name: "sum over the wrong axis",
    what: "the gradient of a stretched input is summed over another axis of the same size",
    fix: "sum over the axes along which the input was stretched",
};
pub const SUM_OF_ALL: General = General {
    name: "sum over everything",
    what: "each element of a stretched input gets the sum of the whole gradient",
    fix: "sum over the axes along which the input was stretched, and keep the others",
};
pub const OVERWRITTEN: General = General {
    name: "overwritten instead of accumulated",
    what: "the tensor is used several times, and one part of its gradient stands for all",
    fix: "add the parts up: += for every use after the first",
};

/// All of them.
pub const GENERAL: [&General; 11] = [
    &SIGN,
    &DOUBLED,
    &HALVED,
    &FORGOTTEN,
    &FACTOR,
    &CLIPPED,
    &MEAN_FOR_SUM,
    &SLICE_FOR_SUM,
    &WRONG_AXIS,
    &SUM_OF_ALL,
    &OVERWRITTEN,
];

impl Fault {
    /// The general mistake that a fault is, unless it is one of an op's own list.
    pub fn general(&self) -> Option<&'static General> {
        Some(match *self {
            Fault::Rule(_) => return None,
            Fault::Factor { factor, .. } => match factor {
                -1.0 => &SIGN,
                2.0 => &DOUBLED,
                0.5 => &HALVED,
                0.0 => &FORGOTTEN,
                _ => &FACTOR,
            },
            Fault::Clip { .. } => &CLIPPED,
            Fault::Unbroadcast { how, .. } => match how {
                Unbroadcast::Mean => &MEAN_FOR_SUM,
                Unbroadcast::Slice => &SLICE_FOR_SUM,
                Unbroadcast::WrongAxis => &WRONG_AXIS,
                Unbroadcast::Everything => &SUM_OF_ALL,
            },
            Fault::Overwrite { .. } => &OVERWRITTEN,
        })
    }

    /// The name of the mistake.
    pub fn name(&self) -> &'static str {
        match self {
            Fault::Rule(mistake) => mistake.name,
            _ => self.general().map_or("", |g| g.name),
        }
    }

    /// The input whose part is wrong, for a mistake that can be made at any op.
    pub fn input(&self) -> Option<usize> {
        match *self {
            Fault::Factor { input, .. }
            | Fault::Clip { input, .. }
            | Fault::Unbroadcast { input, .. } => Some(input),
            Fault::Rule(_) | Fault::Overwrite { .. } => None,
        }
    }
}
