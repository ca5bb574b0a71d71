//! Programs that the type checker must refuse.

use super::*;
use crate::ir::{Id, Origin};
use crate::tensor::value::Meta;
use chainrule_core::Shape;

fn good() -> Program {
    let (x, w) =
        (Tensor::from([[1.0f64, 2.0]]), Tensor::from([[3.0f64], [4.0]]).parameter().named("w"));
    Program::trace([("x", &x)], |a| {
        let y = a[0].try_matmul(&w)?.named("y");
        let z = y.try_exp()?.named("z");
        w.try_set(&w.detach().try_mul(2.0)?)?;
        Ok(vec![z])
    })
    .unwrap()
}

fn id(program: &Program, name: &str) -> Id {
    Id(program.values.iter().position(|v| v.name == name).unwrap() as u32)
}

/// The error for the good program, once changed.
fn refused(change: impl FnOnce(&mut Program)) -> String {
    let mut program = good();
    change(&mut program);
    program.check().unwrap_err().to_string()
}

#[test]
fn a_good_program_passes() {
    good().check().unwrap();
}

#[test]
fn bad_programs_are_refused_with_the_reason() {
    let z = refused(|p| p.instructions.swap(0, 1));
    assert!(z.contains("z = exp: uses y before it is defined"), "{z}");
    let shape = refused(|p| {
        let y = id(p, "y").index();
        p.values[y].meta = Meta::new(Shape::new(&[7]), DType::F64);
    });
    assert!(shape.contains("y = matmul: gives f64 [1, 1], the list says f64 [7]"), "{shape}");
    let dtype = refused(|p| {
        let y = id(p, "y").index();
        p.values[y].meta.dtype = DType::F32;
    });
    assert!(dtype.contains("the list says f32"), "{dtype}");
    let inputs = refused(|p| {
        let x = id(p, "x").index();
        p.values[x].meta = Meta::new(Shape::new(&[5]), DType::F64);
    });
    assert!(inputs.contains("instruction 0, y = matmul"), "{inputs}");
    let twice = refused(|p| {
        let first = p.instructions[0].clone();
        p.instructions.push(first);
    });
    assert!(twice.contains("defines y anew"), "{twice}");
    let names = refused(|p| {
        let y = id(p, "y").index();
        p.values[y].name = "x".to_string();
    });
    assert!(names.contains("two values are named `x`"), "{names}");
    let never = refused(|p| p.instructions.retain(|i| i.op.name() != "exp"));
    assert!(never.contains("the result z is never computed"), "{never}");
    let unlisted = refused(|p| p.instructions[1].inputs[0] = Id(99));
    assert!(unlisted.contains("uses a value that is not listed"), "{unlisted}");
    let argument = refused(|p| p.instructions[0].outputs[0] = id(p, "x"));
    assert!(argument.contains("x"), "{argument}");
    let cell = refused(|p| p.cells[0].write = Some(id(p, "z")));
    assert!(cell.contains("`w` is f64 [2, 1] and gets a value that is f64 [1, 1]"), "{cell}");
    let nothing = refused(|p| p.instructions[0].outputs.clear());
    assert!(nothing.contains("has no result"), "{nothing}");
}

#[test]
fn a_value_without_a_definition_is_refused() {
    let lost = refused(|p| {
        let w = id(p, "w").index();
        p.values[w].from = Origin::Result;
    });
    assert!(lost.contains("uses w before it is defined"), "{lost}");
}
