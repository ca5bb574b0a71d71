//! Products of matrices by cuBLASLt.
//!
//! The library stores matrices by columns: a row-major matrix looks transposed to it, so `out = a
//! b` is requested as `outᵀ = bᵀ aᵀ`, and nothing is moved.

use std::ffi::c_void;
use std::mem::size_of;
use std::ptr::from_ref;
use std::sync::Arc;

use chainrule_core::dtype::DType;
use chainrule_core::error::Result;
use cudarc::cublaslt::{result, sys};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};

use crate::device::fault;
use crate::products::{Precision, ProductFunction, ProductLaunch, StridedMatrix};

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
    product: Description,
    /// Layouts of the right operand, the left one, what is added and the result.
    layouts: [LibraryLayout; 4],
    algorithm: sys::cublasLtMatmulAlgo_t,
    /// The first element of each.
    places: [u64; 4],
    is_double: bool,
    adds: bool,
}

/// The operation: transposes, arithmetic and epilogue.
struct Description(sys::cublasLtMatmulDesc_t);

impl Drop for Description {
    fn drop(&mut self) {
        // SAFETY: made by the library, and destroyed once.
        let _ = unsafe { result::destroy_matmul_desc(self.0) };
    }
}

/// A matrix in memory.
struct LibraryLayout(sys::cublasLtMatrixLayout_t);

impl Drop for LibraryLayout {
    fn drop(&mut self) {
        // SAFETY: made by the library, and destroyed once.
        let _ = unsafe { result::destroy_matrix_layout(self.0) };
    }
}

impl Description {
    fn set<T>(&self, attribute: sys::cublasLtMatmulDescAttributes_t, value: T) -> Result<()> {
        let (value, size) = (from_ref(&value).cast(), size_of::<T>());
        // SAFETY: the description is there, and the value has the size that is told.
        unsafe { result::set_matmul_desc_attribute(self.0, attribute, value, size) }.map_err(of)
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

/// The largest power of two that divides an address this many bytes from the start.
fn alignment(bytes: u64) -> u32 {
    let most = ALIGNMENT as u64;
    (1 << (bytes | most).trailing_zeros().min(most.trailing_zeros())) as u32
}

/// A matrix as the library sees it, and whether that is the transpose of the wanted one.
fn layout(
    matrix: &StridedMatrix,
    [rows, columns]: [usize; 2],
    count: usize,
) -> Result<(LibraryLayout, bool)> {
    let is_rows = matrix.column == 1;
    let (height, width, ahead) = match is_rows {
        true => (columns, rows, matrix.row),
        false => (rows, columns, matrix.column),
    };
    let (height, width) = (height as u64, width as u64);
    let kind = kind(matrix.dtype);
    let made = result::create_matrix_layout(kind, height, width, ahead as i64).map_err(of)?;
    let made = LibraryLayout(made);
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
            unsafe { result::set_matrix_layout_attribute(made.0, attribute, value, size) }
                .map_err(of)?;
        }
    }
    Ok((made, !is_rows))
}

/// Sets the epilogue of a product, with the addresses of its bias and of the values before gelu.
///
/// The library sees the transposed result, so a number for each column is one for each row there.
fn finish(
    description: &Description,
    p: &ProductLaunch,
    bias: Option<u64>,
    before: Option<u64>,
) -> Result<()> {
    use sys::cublasLtEpilogue_t as Epilogue;
    use sys::cublasLtMatmulDescAttributes_t as Attribute;
    let epilogue = match (p.function, bias.is_some(), before.is_some()) {
        (ProductFunction::Identity, false, _) => return Ok(()),
        (ProductFunction::Identity, true, _) => Epilogue::CUBLASLT_EPILOGUE_BIAS,
        (ProductFunction::Gelu, false, false) => Epilogue::CUBLASLT_EPILOGUE_GELU,
        (ProductFunction::Gelu, true, false) => Epilogue::CUBLASLT_EPILOGUE_GELU_BIAS,
        (ProductFunction::Gelu, false, true) => Epilogue::CUBLASLT_EPILOGUE_GELU_AUX,
        (ProductFunction::Gelu, true, true) => Epilogue::CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
        (ProductFunction::GeluSlope, ..) => Epilogue::CUBLASLT_EPILOGUE_DGELU,
    };
    description.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue as u32)?;
    if let Some(at) = bias {
        description.set(Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, at)?;
    }
    if let (Some(at), Some(matrix)) = (before, &p.before) {
        let ahead = matrix.row as i64;
        description.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, at)?;
        description.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, ahead)?;
        if p.count > 1 {
            let apart = matrix.apart as i64;
            description.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, apart)?;
        }
    }
    Ok(())
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

    /// Whether there is an algorithm for a product with its epilogue.
    pub fn finishes(&self, p: &ProductLaunch, precision: Precision) -> bool {
        let somewhere = self.workspace.device_ptr(&self.stream).0;
        self.plan(p, precision, &vec![somewhere; p.matrices().len()]).is_ok()
    }

    /// A product made ready, for matrices that begin at these addresses: one for each of
    /// [`ProductLaunch::matrices`].
    pub fn plan(&self, p: &ProductLaunch, precision: Precision, at: &[u64]) -> Result<Plan> {
        use sys::cublasComputeType_t as Compute;
        let is_double = p.out.dtype == DType::F64;
        let (compute, scale) = match (is_double, p.a.dtype, precision) {
            (true, ..) => (Compute::CUBLAS_COMPUTE_64F, DType::F64),
            (_, DType::F32, Precision::Tf32) => (Compute::CUBLAS_COMPUTE_32F_FAST_TF32, DType::F32),
            _ => (Compute::CUBLAS_COMPUTE_32F, DType::F32),
        };
        let product = result::create_matmul_desc(compute, kind(scale)).map_err(of)?;
        let product = Description(product);
        let [m, n, k] = p.sizes;
        let (right, turn_right) = layout(&p.b, [k, n], p.count)?;
        let (left, turn_left) = layout(&p.a, [m, k], p.count)?;
        let (out, _) = layout(&p.out, [m, n], p.count)?;
        let (added, _) = layout(p.added.as_ref().unwrap_or(&p.out), [m, n], p.count)?;
        use sys::cublasLtMatmulDescAttributes_t::{
            CUBLASLT_MATMUL_DESC_TRANSA as FIRST, CUBLASLT_MATMUL_DESC_TRANSB as SECOND,
        };
        product.set(FIRST, i32::from(turn_right))?;
        product.set(SECOND, i32::from(turn_left))?;
        let place = |m: &StridedMatrix, at: u64| at + (m.start * m.dtype.size()) as u64;
        let all = p.matrices();
        let all: Vec<u64> = all.iter().zip(at).map(|(m, &at)| place(m, at)).collect();
        let (&[left_at, right_at, out_at], more) = all
            .split_first_chunk()
            .ok_or_else(|| fault(format!("`{}` has no memory for its operands", p.name)))?;
        let mut more = more.iter().copied();
        let added_at = p.added.as_ref().and_then(|_| more.next());
        let bias_at = p.bias.as_ref().and_then(|_| more.next());
        finish(&product, p, bias_at, more.next())?;
        let places = [right_at, left_at, added_at.unwrap_or(out_at), out_at];
        let layouts = [right, left, added, out];
        let algorithm = self.algorithm(&product, &layouts, places)?;
        let adds = added_at.is_some();
        Ok(Plan { product, layouts, algorithm, places, is_double, adds })
    }

    fn algorithm(
        &self,
        product: &Description,
        [right, left, added, out]: &[LibraryLayout; 4],
        places: [u64; 4],
    ) -> Result<sys::cublasLtMatmulAlgo_t> {
        use sys::cublasLtMatmulPreferenceAttributes_t as Preference;
        let preference = result::create_matmul_pref().map_err(of)?;
        let room = WORKSPACE as u64;
        let [first, second, third, fourth] = places.map(alignment);
        let narrow = |x: &u32| (from_ref(x).cast::<c_void>(), size_of::<u32>());
        let given = [
            (
                Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                (from_ref(&room).cast::<c_void>(), size_of::<u64>()),
            ),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, narrow(&first)),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, narrow(&second)),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, narrow(&third)),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, narrow(&fourth)),
        ];
        let set = given.into_iter().try_for_each(|(attribute, (value, size))| {
            // SAFETY: the preference was made above, and each value has this size.
            unsafe { result::set_matmul_pref_attribute(preference, attribute, value, size) }
        });
        // SAFETY: all were made for this product.
        let found = set.and_then(|()| unsafe {
            let handle = self.handle;
            let [right, left, added, out] = [right, left, added, out].map(|l| l.0);
            let product = product.0;
            result::get_matmul_algo_heuristic(handle, product, right, left, added, out, preference)
        });
        // SAFETY: made above, and destroyed once.
        let _ = unsafe { result::destroy_matmul_pref(preference) };
        Ok(found.map_err(of)?.algo)
    }

    /// Begins a product.
    pub fn begin(&self, plan: &Plan) -> Result<()> {
        let (single, double) = ([1.0f32, 0.0], [1.0f64, 0.0]);
        let [one, none]: [*const c_void; 2] = match plan.is_double {
            true => [from_ref(&double[0]).cast(), from_ref(&double[1]).cast()],
            false => [from_ref(&single[0]).cast(), from_ref(&single[1]).cast()],
        };
        let share = if plan.adds { one } else { none };
        let [of_right, of_left, of_added, of_out] = plan.layouts.each_ref().map(|l| l.0);
        let workspace = self.workspace.device_ptr(&self.stream).0;
        let [right, left, added, out] = plan.places.map(|at| at as *mut c_void);
        // SAFETY: the plan was made for matrices of these sizes and strides, which lie in the
        // memory at these addresses; the workspace is used by one product at a time, as all work of
        // a stream is done in order.
        unsafe {
            result::matmul(
                self.handle,
                plan.product.0,
                one,
                share,
                right,
                of_right,
                left,
                of_left,
                added,
                of_added,
                out,
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
