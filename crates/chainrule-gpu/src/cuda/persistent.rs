//! Persistent kernels: clusters of blocks, which GPUs of compute capability 9.0 and newer have.

use chainrule_core::error::Result;
use cudarc::driver::sys::CUdevice_attribute as Device;
use cudarc::driver::sys::CUfunction_attribute as Attribute;
use cudarc::driver::{DriverError, LaunchConfig, PushKernelArg};

use super::{Cuda, CudaKernel, compiled};
use crate::device::{DeviceCode, PersistentArgument};
use crate::persistent::{BLOCKS, Parameter, PersistentKernel};

/// Numbers of blocks that a cluster may have; all such GPUs support 8, some 16.
pub(super) fn clusters(major: i32) -> &'static [usize] {
    if major >= 9 { &[BLOCKS, 8] } else { &[] }
}

/// Bytes of a block's memory that a kernel gets without asking.
const PLAIN: usize = 48 << 10;

impl Cuda {
    /// The kernel, if a launch of no steps succeeds.
    pub(super) fn compile_persistent(
        &mut self,
        kernel: &PersistentKernel,
    ) -> Result<Option<DeviceCode>> {
        let room = Device::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        if self.stream.context().attribute(room).is_ok_and(|most| kernel.shared > most as usize) {
            return Ok(None);
        }
        let code = compiled(&kernel.source(), &self.architecture)?;
        let loaded = self.stream.context().load_module(code).map_err(|e| self.error(e))?;
        let function = loaded.load_function(&kernel.name).map_err(|e| self.error(e))?;
        let wide = Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        if kernel.blocks > 8 && function.set_attribute(wide, 1).is_err() {
            return Ok(None);
        }
        let (blocks, threads) = (kernel.blocks as u32, kernel.threads as u32);
        let shared = kernel.shared as u32;
        let large = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = kernel.shared as i32;
        if kernel.shared > PLAIN && function.set_attribute(large, bytes).is_err() {
            return Ok(None);
        }
        self.modules.push(vec![CudaKernel { function, blocks, threads, shared }]);
        let code = DeviceCode(self.modules.len() - 1);
        let nothing = |p: &Parameter| match p {
            Parameter::Stride(_) | Parameter::Steps => PersistentArgument::Int(0),
            Parameter::Seed | Parameter::Run => PersistentArgument::Long(0),
            _ => PersistentArgument::Null,
        };
        let nothing: Vec<PersistentArgument> = kernel.parameters.iter().map(nothing).collect();
        let begun = self.begin_persistent(code, &nothing)?;
        if begun.and_then(|()| self.stream.synchronize()).is_err() {
            self.modules[code.0].clear();
            return Ok(None);
        }
        Ok(Some(code))
    }

    /// Starts a launch and returns the driver's answer, provided that all memory is there.
    pub(super) fn begin_persistent(
        &self,
        code: DeviceCode,
        arguments: &[PersistentArgument],
    ) -> Result<std::result::Result<(), DriverError>> {
        let words = arguments.iter().map(|a| match a {
            PersistentArgument::Memory(memory) => self.address(*memory),
            PersistentArgument::Null => Ok(0),
            // The low half is the first, which is all that is read of it.
            PersistentArgument::Int(n) => Ok(u64::from(n.cast_unsigned())),
            PersistentArgument::Long(n) => Ok(*n),
        });
        let words = words.collect::<Result<Vec<u64>>>()?;
        let kernel = &self.modules[code.0][0];
        let mut launch = self.stream.launch_builder(&kernel.function);
        words.iter().for_each(|word| {
            launch.arg(word);
        });
        let shape = LaunchConfig {
            grid_dim: (kernel.blocks, 1, 1),
            block_dim: (kernel.threads, 1, 1),
            shared_mem_bytes: kernel.shared,
        };
        // SAFETY: the arguments are those of the kernel's parameters, in order; their memory has
        // room for as many steps as are asked for, and the kernel reads and writes nothing else.
        Ok(unsafe { launch.launch(shape) }.map(|_| ()))
    }
}
