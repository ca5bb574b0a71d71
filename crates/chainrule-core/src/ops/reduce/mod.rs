//! Ops that reduce axes to one element each. Axes are one number, a list, or `..` for all;
//! `keepdim` keeps them with size 1.

pub(super) mod amax;
pub(super) mod amin;
pub(super) mod any;
pub(super) mod argmax;
pub(super) mod argmin;
pub(super) mod argsort;
pub(super) mod bincount;
pub(super) mod count_nonzero;
pub(super) mod cummax;
pub(super) mod cummin;
pub(super) mod cumprod;
pub(super) mod cumsum;
pub(super) mod histogram;
pub(super) mod logcumsumexp;
pub(super) mod logsumexp;
pub(super) mod max;
pub(super) mod max_axis;
pub(super) mod mean;
pub(super) mod median;
pub(super) mod min;
pub(super) mod min_axis;
pub(super) mod norm;
pub(super) mod prod;
pub(super) mod sort;
pub(super) mod std;
pub(super) mod sum;
pub(super) mod topk;
pub(super) mod unique;
pub(super) mod var;

include!(concat!(env!("OUT_DIR"), "/reduce.rs"));

pub(super) mod recurrence;
