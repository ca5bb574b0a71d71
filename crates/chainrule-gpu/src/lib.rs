//! chainrule's programs as kernels of a GPU.
//!
//! A program is a whole training step as typed instructions. This crate prints it as kernels, in
//! two dialects: CUDA C and WGSL. Each op has one form, its NumPy form, which the ONNX crate turns
//! into plain nodes; here each node becomes an expression of single elements or a loop. A value
//! that is used once is computed where it is read, and neighbours share a kernel.
//!
//! | stage | module | from | to |
//! | --- | --- | --- | --- |
//! | read | `read`, `graph`, `hot`, `narrow`, `epilogues` | a program | a graph of values |
//! | plan | `plan`, `group` | a graph | what has a buffer, and kernels |
//! | print | `kernels`, `lanes`, `serial`, `pull`, `coords` | a kernel | its text |
//! | spell | `dialect`, `forms` | an expression | CUDA C or WGSL |
//! | persist | `persistent` | a graph | one kernel for many steps, if they are small |
//! | run | `session`, `shared`, `first`, `device` | kernels | the step on a device |
//!
//! Reductions have a fixed order that depends on sizes alone, gradients of gathers search for their
//! parts instead of adding atomically, and random numbers are a function of their position: every
//! run gives the same bits.

#![deny(missing_docs)]

mod attention;
mod coords;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod dialect;
mod dropout;
mod epilogues;
mod first;
mod forms;
mod graph;
mod group;
mod hot;
mod kernels;
mod lanes;
mod long;
mod module;
mod narrow;
mod operands;
mod over;
mod persistent;
mod plan;
mod products;
mod pull;
mod read;
mod rooms;
mod serial;
mod session;
mod shared;
mod simplify;
#[cfg(feature = "wgpu")]
mod webgpu;
mod wgsl;
mod words;

pub use device::PersistentArgument;
pub use device::{
    Device, DeviceCode, DeviceGraph, DeviceMemory, DeviceName, DeviceRead, DeviceWork,
};
pub use dialect::Dialect;
pub use module::{Buffer, DeviceLaunch, KernelLaunch, KernelModule, Source};
pub use persistent::{Parameter, PersistentKernel};
pub use products::{Epilogues, Precision, ProductFunction, ProductLaunch, Products, StridedMatrix};
pub use session::DeviceSession;

use chainrule_core::error::Result;
use chainrule_program::Program;

/// The functions that kernels of CUDA C call.
pub const CUDA_PRELUDE: &str = include_str!("prelude.cu");

/// The functions that kernels of attention call, beside those of [`CUDA_PRELUDE`].
pub const CUDA_ATTENTION: &str = concat!(
    "\n",
    include_str!("attention/tiles.cu"),
    "\n",
    include_str!("attention/masks.cu"),
    "\n",
    include_str!("attention/forward.cu"),
    "\n",
    include_str!("attention/queries.cu"),
    "\n",
    include_str!("attention/keys.cu"),
);

/// The functions that persistent kernels call, beside those of [`CUDA_PRELUDE`].
pub const CUDA_PERSISTENT: &str = concat!("\n", include_str!("persistent.cu"));

/// The functions that kernels of WGSL call.
pub const WGSL_PRELUDE: &str = include_str!("prelude.wgsl");

/// The step as one CUDA source that a person can read, and that NVRTC compiles as it is.
///
/// Each kernel is headed by the values that it computes, with dtype and shape; the launches stand
/// at the end. After them comes the step as a [`PersistentKernel`], if that is faster.
///
/// Errors for an op or a dtype that has no kernel, which it names.
///
/// ```
/// use chainrule::{Tensor, program::Program};
/// let x = Tensor::from([1.0f32, 2.0]);
/// let y = |args: &[Tensor]| Ok(vec![args[0].exp().named("y")]);
/// let text = chainrule_gpu::to_cuda(&Program::trace([("x", &x)], y)?)?;
/// assert!(text.contains("__global__ void k00_y(const float* __restrict__ x"));
/// assert!(text.contains("expf("));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn to_cuda(program: &Program) -> Result<String> {
    let module = KernelModule::new(program, Dialect::Cuda)?;
    let blocks = persistent::BLOCKS;
    let persistent = PersistentKernel::in_place_of(&module, program, blocks)?;
    Ok(match persistent {
        Some(kernel) => [&module.text(), CUDA_PERSISTENT, "\n", &kernel.text].concat(),
        None => module.text(),
    })
}

/// The step as PTX for an architecture such as `compute_90`, compiled by NVRTC: no GPU is needed.
/// Errors as [`to_cuda`] does, and where there is no NVRTC.
#[cfg(feature = "cuda")]
pub fn to_ptx(program: &Program, architecture: &str) -> Result<String> {
    Ok(cuda::compiled(&to_cuda(program)?, architecture)?.to_src())
}

/// The step in WGSL, the language of WebGPU: see [`to_cuda`]. Integers are of 32 bits there, and
/// arguments, state and results of f64 are an error.
pub fn to_wgsl(program: &Program) -> Result<String> {
    Ok(KernelModule::new(program, Dialect::Wgsl)?.text())
}
