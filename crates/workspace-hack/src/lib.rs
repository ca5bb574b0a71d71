//! Nothing: this crate exists for the features of its dependencies.
