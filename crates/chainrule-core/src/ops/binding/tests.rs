use super::*;
use crate::dtype::DType;
use crate::ops::table;

fn all() -> impl Iterator<Item = &'static Binding> {
    table().flat_map(|entry| entry.python)
}

#[test]
fn every_op_says_how_python_calls_it() {
    for entry in table() {
        assert!(!entry.python.is_empty(), "{}", entry.name);
    }
}

#[test]
fn a_name_is_one_op_in_each_place() {
    let places: [fn(&Binding) -> bool; 3] = [|b| b.method, |b| b.function, |b| b.functional];
    for place in places {
        let here = all().filter(|b| place(b));
        let mut names: Vec<_> =
            here.flat_map(|b| b.aliases.iter().copied().chain([b.name])).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}

#[test]
fn defaults_are_of_the_kind_of_their_parameters() {
    for p in all().flat_map(|b| b.parameters) {
        let fits = match (p.kind, p.default) {
            (_, None | Some(Preset::None)) => true,
            (Kind::Float, Some(Preset::Float(_))) => true,
            (Kind::Int | Kind::Count | Kind::Operand, Some(Preset::Int(_))) => true,
            (Kind::Bool, Some(Preset::Bool(_))) => true,
            (Kind::Choice(words), Some(Preset::Choice(word))) => words.contains(&word),
            _ => false,
        };
        assert!(fits, "{p:?}");
    }
}

#[test]
fn what_must_be_given_stands_before_what_need_not() {
    for b in all() {
        let optional = |p: &&Parameter| p.default.is_some() || p.by_name;
        let mut rest = b.parameters.iter().skip_while(|p| !optional(p));
        assert!(rest.all(|p| optional(&p)), "{}", b.name);
    }
}

#[test]
fn a_tensor_without_axes_counts_by_its_kind() {
    let (matrix, scalar) = (Tensor::from([[1.0f32]]), Tensor::scalar(2.0f64));
    let (a, b) = meet(matrix, scalar).unwrap();
    assert_eq!((a.dtype(), b.dtype()), (DType::F32, DType::F32));
    let (a, b) = meet(Tensor::from([1i64]), Tensor::scalar(2.0f64)).unwrap();
    assert_eq!((a.dtype(), b.dtype()), (DType::I64, DType::F64));
}
