//! Dispatch on dtypes: from the tiles and arrays of a kernel to loops over one type of element.

/// Runs the arm whose dtypes match those of the inputs and the output, with the loops of
/// `kernels::map`.
macro_rules! tile {
    ($inputs:expr, $n:expr, $out:expr; $($a:ident, $b:ident => $o:ident: $f:expr;)+) => {
        match ($inputs, $out) {
            $(([$crate::tensor::op::Input::$a(a), $crate::tensor::op::Input::$b(b)], $crate::tensor::op::Output::$o(out)) =>
                $crate::kernels::map::binary(a, b, $n, out, $f),)+
            _ => unreachable!("infer admits no other dtypes"),
        }
    };
    ($inputs:expr, $out:expr; $($a:ident => $o:ident: $f:expr;)+) => {
        match ($inputs, $out) {
            $(([$crate::tensor::op::Input::$a(a)], $crate::tensor::op::Output::$o(out)) =>
                $crate::kernels::map::unary(a.data, out, $f),)+
            _ => unreachable!("infer admits no other dtypes"),
        }
    };
}
pub(crate) use tile;

/// As [`tile!`], for functions that take the whole slice: `f(x, out)`.
macro_rules! tile_slice {
    ($inputs:expr, $out:expr; $($a:ident => $o:ident: $f:expr;)+) => {
        match ($inputs, $out) {
            $(([$crate::tensor::op::Input::$a(a)], $crate::tensor::op::Output::$o(out)) => ($f)(a.data, out),)+
            _ => unreachable!("infer admits no other dtypes"),
        }
    };
}
pub(crate) use tile_slice;

/// The expression with `T` as the type that stores elements of the dtype, which is one of those
/// listed: `by_dtype!(x.dtype(), [F32, F64], |T| f(x.elements::<T>()))`.
macro_rules! by_dtype {
    (@stored F32) => { f32 };
    (@stored F64) => { f64 };
    (@stored I64) => { i64 };
    (@stored Bool) => { u8 };
    ($dtype:expr, [$($d:ident),+], |$T:ident| $run:expr $(,)?) => {
        match $dtype {
            $($crate::dtype::DType::$d => {
                type $T = $crate::tensor::op::by_dtype!(@stored $d);
                $run
            })+
            #[allow(unreachable_patterns)]
            _ => unreachable!("infer admits no other dtypes"),
        }
    };
}
pub(crate) use by_dtype;
