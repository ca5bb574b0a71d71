//! Products of matrices by cuBLASLt.
//!
//! The library counts by columns: a matrix that stands row by row is its transpose there, so
//! `out = a b` is asked for as `outᵀ = bᵀ aᵀ`, and nothing is moved.

use std::ffi::c_void;
use std::mem::size_of;
use std::ptr::from_ref;
use std::sync::Arc;

use chainrule_core::dtype::DType;
use chainrule_core::error::Result;
use cudarc::cublaslt::{result, sys};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};

use crate::device::fault;
use crate::products::{Precision, ProductLaunch, StridedMatrix};

/// Bytes that a product may use beside its operands, as the library advises for large devices.
const WORKSPACE: usize = 32 << 20;

/// Alignment of a device's memory in bytes.
const ALIGNMENT: usize = 256;

/// The library on a device.
pub(crate) struct Library {
    handle: sys::cublasLtHandle_t,
    workspace: CudaSlice<u8>,
    stream: Arc<CudaStream>,
}

// SAFETY: a handle may be used by any thread, by one at a time. It is reached through `&mut Cuda`
// alone.
unsafe impl Send for Library {}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle was created with the library and is destroyed once.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

/// A product made ready: its descriptions and the algorithm.
pub(crate) struct Plan {
    product: sys::cublasLtMatmulDesc_t,
    /// Layouts of the right operand, the left one and the result.
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
    /// Bytes before the first element of each.
    starts: [u64; 3],
    is_double: bool,
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: each was created with the plan and is destroyed once.
        unsafe {
            let _ = result::destroy_matmul_desc(self.product);
            for layout in self.layouts {
                let _ = result::destroy_matrix_layout(layout);
            }
        }
    }
}

fn of(e: result::CublasError) -> chainrule_core::error::Error {
    fault(format!("cuBLASLt reports {:?}", e.0))
}

fn kind(dtype: DType) -> sys::cudaDataType {
    match dtype {
        DType::F64 => sys::cudaDataType::CUDA_R_64F,
        DType::BF16 => sys::cudaDataType::CUDA_R_16BF,
        _ => sys::cudaDataType::CUDA_R_32F,
    }
}

/// The largest power of two that divides an address so many bytes from the beginning.
fn alignment(bytes: u64) -> u32 {
    let most = ALIGNMENT as u64;
    (1 << (bytes | most).trailing_zeros().min(most.trailing_zeros())) as u32
}

/// A matrix as the library sees it, and whether that is the transpose of what is asked for.
fn layout(
    matrix: &StridedMatrix,
    [rows, columns]: [usize; 2],
    count: usize,
) -> Result<(sys::cublasLtMatrixLayout_t, bool)> {
    let is_rows = matrix.column == 1;
    let (height, width, ahead) = match is_rows {
        true => (columns, rows, matrix.row),
        false => (rows, columns, matrix.column),
    };
    let (height, width) = (height as u64, width as u64);
    let kind = kind(matrix.dtype);
    let made = result::create_matrix_layout(kind, height, width, ahead as i64).map_err(of)?;
    if count > 1 {
        use sys::cublasLtMatrixLayoutAttribute_t::{
            CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT as COUNT,
            CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET as APART,
        };
        let (count, apart) = (count as i32, matrix.apart as i64);
        let [count, apart] =
            [(COUNT, from_ref(&count).cast(), 4), (APART, from_ref(&apart).cast(), 8)];
        for (attribute, value, size) in [count, apart] {
            // SAFETY: the layout was made above, and the value has this size.
            unsafe { result::set_matrix_layout_attribute(made, attribute, value, size) }
                .map_err(of)?;
        }
    }
    Ok((made, !is_rows))
}

impl Library {
    /// The library, if there is one.
    pub fn open(stream: &Arc<CudaStream>) -> Result<Option<Library>> {
        // SAFETY: looks whether a library of this name can be loaded, whose start-up code is the
        // vendor's.
        if !unsafe { sys::is_culib_present() } {
            return Ok(None);
        }
        let handle = result::create_handle().map_err(of)?;
        // SAFETY: only the library writes there, before it reads.
        let workspace = unsafe { stream.alloc::<u8>(WORKSPACE) };
        let workspace =
            workspace.map_err(|e| fault(format!("no room for cuBLASLt's 32 MiB: {e}")))?;
        Ok(Some(Library { handle, workspace, stream: stream.clone() }))
    }

    /// A product made ready.
    pub fn plan(&self, p: &ProductLaunch, precision: Precision) -> Result<Plan> {
        use sys::cublasComputeType_t as Compute;
        let is_double = p.out.dtype == DType::F64;
        let (compute, scale) = match (is_double, p.a.dtype, precision) {
            (true, ..) => (Compute::CUBLAS_COMPUTE_64F, DType::F64),
            (_, DType::F32, Precision::Tf32) => (Compute::CUBLAS_COMPUTE_32F_FAST_TF32, DType::F32),
            _ => (Compute::CUBLAS_COMPUTE_32F, DType::F32),
        };
        let product = result::create_matmul_desc(compute, kind(scale)).map_err(of)?;
        let [m, n, k] = p.sizes;
        let (right, turn_right) = layout(&p.b, [k, n], p.count)?;
        let (left, turn_left) = layout(&p.a, [m, k], p.count)?;
        let (out, _) = layout(&p.out, [m, n], p.count)?;
        use sys::cublasLtMatmulDescAttributes_t::{
            CUBLASLT_MATMUL_DESC_TRANSA as FIRST, CUBLASLT_MATMUL_DESC_TRANSB as SECOND,
        };
        for (attribute, turn) in [(FIRST, turn_right), (SECOND, turn_left)] {
            let turn = i32::from(turn);
            let value = from_ref(&turn).cast();
            // SAFETY: the description was made above, and the value is a number of 32 bits.
            unsafe { result::set_matmul_desc_attribute(product, attribute, value, 4) }
                .map_err(of)?;
        }
        let starts = [&p.b, &p.a, &p.out].map(|m| (m.start * m.dtype.size()) as u64);
        let layouts = [right, left, out];
        let algorithm = self.algorithm(product, layouts, starts)?;
        Ok(Plan { product, layouts, algorithm, starts, is_double })
    }

    fn algorithm(
        &self,
        product: sys::cublasLtMatmulDesc_t,
        [right, left, out]: [sys::cublasLtMatrixLayout_t; 3],
        starts: [u64; 3],
    ) -> Result<sys::cublasLtMatmulAlgo_t> {
        use sys::cublasLtMatmulPreferenceAttributes_t as Preference;
        let preference = result::create_matmul_pref().map_err(of)?;
        let room = WORKSPACE as u64;
        let [first, second, third] = starts.map(alignment);
        let narrow = |x: &u32| (from_ref(x).cast::<c_void>(), size_of::<u32>());
        let given = [
            (
                Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                (from_ref(&room).cast::<c_void>(), size_of::<u64>()),
            ),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, narrow(&first)),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, narrow(&second)),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, narrow(&third)),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, narrow(&third)),
        ];
        let set = given.into_iter().try_for_each(|(attribute, (value, size))| {
            // SAFETY: the preference was made above, and each value has this size.
            unsafe { result::set_matmul_pref_attribute(preference, attribute, value, size) }
        });
        // SAFETY: all were made for this product.
        let found = set.and_then(|()| unsafe {
            let handle = self.handle;
            result::get_matmul_algo_heuristic(handle, product, right, left, out, out, preference)
        });
        // SAFETY: made above, and destroyed once.
        let _ = unsafe { result::destroy_matmul_pref(preference) };
        Ok(found.map_err(of)?.algo)
    }

    /// Begins a product; addresses are those of the left operand, the right one and the result.
    pub fn begin(&self, plan: &Plan, [left, right, out]: [u64; 3]) -> Result<()> {
        let (single, double) = ([1.0f32, 0.0], [1.0f64, 0.0]);
        let [one, none]: [*const c_void; 2] = match plan.is_double {
            true => [from_ref(&double[0]).cast(), from_ref(&double[1]).cast()],
            false => [from_ref(&single[0]).cast(), from_ref(&single[1]).cast()],
        };
        let [of_right, of_left, of_out] = plan.layouts;
        let workspace = self.workspace.device_ptr(&self.stream).0;
        let at = |address: u64, i: usize| (address + plan.starts[i]) as *mut c_void;
        // SAFETY: the plan was made for matrices of these sizes and strides, which lie in the
        // memory at these addresses; the workspace is used by one product at a time, as all work of
        // a stream is done in order.
        unsafe {
            result::matmul(
                self.handle,
                plan.product,
                one,
                none,
                at(right, 0),
                of_right,
                at(left, 1),
                of_left,
                at(out, 2),
                of_out,
                at(out, 2),
                of_out,
                from_ref(&plan.algorithm),
                workspace as *mut c_void,
                WORKSPACE,
                self.stream.cu_stream().cast(),
            )
        }
        .map_err(of)
    }
}
