//! Programs printed as kernels, compiled as C++ and run on the processor, beside the engine's own
//! results: no GPU is needed. Without a C++ compiler (`CXX`, or else `g++`) tests say so.

mod common;
mod random;
#[cfg(feature = "wgpu")]
mod running;
mod samples;
mod steps;
mod texts;
mod webgpu;
