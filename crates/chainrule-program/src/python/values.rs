//! Values as Python writes them.

use super::params::tuple;
use crate::access::number;
use crate::dtype::DType;
use crate::tensor::value::Value;

/// Larger constants are written as bytes.
const LITERAL: usize = 256;

/// NumPy's name of a dtype.
pub(super) fn dtype(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "np.float32",
        DType::F64 => "np.float64",
        DType::I64 => "np.int64",
        DType::Bool => "np.bool_",
        other => unreachable!("no program holds {other}"),
    }
}

/// A shape as a tuple.
pub(super) fn shape(value: &Value) -> String {
    tuple(value.shape().iter().map(|d| d.to_string()))
}

/// A single element as a literal, which takes the dtype of what it meets.
pub(super) fn scalar(value: &Value) -> String {
    plain(number(value))
}

fn plain(number: String) -> String {
    match number.as_str() {
        "true" => "True".to_string(),
        "false" => "False".to_string(),
        "inf" => "np.inf".to_string(),
        "-inf" => "-np.inf".to_string(),
        "NaN" => "np.nan".to_string(),
        _ => number,
    }
}

/// An array of any size, exactly.
pub(super) fn array(value: &Value) -> String {
    let kind = dtype(value.dtype());
    if value.shape().rank() == 0 {
        return format!("{kind}({})", scalar(value));
    }
    if let Some(same) = uniform(value) {
        return format!("np.full({}, {same}, {kind})", shape(value));
    }
    if let Some(count) = counted(value) {
        return format!("np.arange({count}).reshape({})", shape(value));
    }
    if value.numel() > LITERAL {
        let hex = bytes(value).iter().map(|b| format!("{b:02x}")).collect::<String>();
        return format!(
            "np.frombuffer(bytes.fromhex(\"{hex}\"), {kind}).reshape({})",
            shape(value)
        );
    }
    let all = elements(value);
    match value.shape().rank() {
        1 => format!("np.array([{}], {kind})", all.join(", ")),
        _ => format!("np.array([{}], {kind}).reshape({})", all.join(", "), shape(value)),
    }
}

/// The element of a value all of whose elements have the same bits.
pub(super) fn uniform(value: &Value) -> Option<String> {
    let bytes = bytes(value);
    let size = value.dtype().size();
    let first = bytes.chunks_exact(size).next();
    match first {
        None => Some("0".to_string()),
        Some(first) => {
            bytes.chunks_exact(size).all(|b| b == first).then(|| elements_of(value, 1).remove(0))
        }
    }
}

/// The number of elements, if they are 0, 1, 2 and so on.
fn counted(value: &Value) -> Option<usize> {
    if value.dtype() != DType::I64 {
        return None;
    }
    let mut all = vec![0i64; value.numel()];
    value.copy_to(&mut all);
    all.iter().enumerate().all(|(i, x)| *x == i as i64).then_some(all.len())
}

fn elements(value: &Value) -> Vec<String> {
    elements_of(value, usize::MAX)
}

fn elements_of(value: &Value, count: usize) -> Vec<String> {
    macro_rules! all {
        ($ty:ty, $f:expr) => {{
            let mut out = vec![<$ty>::default(); value.numel()];
            value.copy_to(&mut out);
            out.into_iter().take(count).map($f).map(plain).collect()
        }};
    }
    match value.dtype() {
        DType::F32 => all!(f32, |x: f32| format!("{x:?}")),
        DType::F64 => all!(f64, |x: f64| format!("{x:?}")),
        DType::I64 => all!(i64, |x: i64| x.to_string()),
        DType::Bool => all!(u8, |x: u8| (x != 0).to_string()),
        other => unreachable!("no program holds {other}"),
    }
}

/// The elements in order, each as the bytes that NumPy reads on any common machine.
fn bytes(value: &Value) -> Vec<u8> {
    macro_rules! all {
        ($ty:ty) => {{
            let mut out = vec![<$ty>::default(); value.numel()];
            value.copy_to(&mut out);
            out.into_iter().flat_map(|x| x.to_le_bytes()).collect()
        }};
    }
    match value.dtype() {
        DType::F32 => all!(f32),
        DType::F64 => all!(f64),
        DType::I64 => all!(i64),
        DType::Bool => all!(u8),
        other => unreachable!("no program holds {other}"),
    }
}
