//! Programs printed as kernels, compiled as C++ and run on the processor, beside the engine's own
//! results: no GPU is needed. Without a C++ compiler (`CXX`, or else `g++`) tests say so.

mod attention;
mod common;
mod epilogues;
mod long;
#[cfg(feature = "wgpu")]
mod on_device;
mod persistent;
#[cfg(feature = "wgpu")]
mod precision;
mod products;
mod random;
#[cfg(feature = "wgpu")]
mod residents;
mod samples;
mod steps;
mod texts;
mod verbs;
mod wide;
