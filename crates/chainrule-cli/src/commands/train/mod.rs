//! `chainrule train ...`: a module for each model family.

pub mod bn_mlp;
pub mod digits;
pub mod moons;
pub mod names;
pub mod regression;
pub mod text;
