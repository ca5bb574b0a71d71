//! The algebra stage against the eager mode.

use super::*;

#[test]
fn unknown_rules_are_an_error_that_lists_them() {
    let x = crate::Tensor::from([1.0f64]);
    let program = Program::trace([("x", &x)], |x| Ok(vec![x[0].exp()])).unwrap();
    let error = program.simplify_with(&Simplify::new().without("magic")).unwrap_err().to_string();
    assert!(error.contains("`magic`") && error.contains("merge powers"), "{error}");
}
