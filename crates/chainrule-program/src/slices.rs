//! Slices as Python writes them.

use crate::access::Line;
use crate::param::Param;

/// The NumPy form of a slice.
pub(crate) const SLICED: &str = "{0}[{slice}]";

/// The text between the brackets, if the line is a slice; an axis that is taken whole is a colon.
pub(crate) fn slice_of(line: &Line<'_>) -> Option<String> {
    let op = &line.instruction.op;
    if op.numpy()? != SLICED {
        return None;
    }
    let mut sizes = line.program.info(line.instruction.inputs[0]).meta.shape.iter().copied();
    let whole = |cut: String| match cut.as_str() {
        "None" => cut,
        _ if sizes.next().is_some_and(|size| cut == format!("0:{size}")) => ":".to_string(),
        _ => cut,
    };
    Some(cuts(&op.parameters())?.into_iter().map(whole).collect::<Vec<_>>().join(", "))
}

/// The cut of each axis, and `None` for each new one.
pub(crate) fn cuts(op: &Param) -> Option<Vec<String>> {
    let cuts = op.field("cuts")?.items();
    let from = op.field("from")?.items();
    let one = |cut: &Param, kept: bool| {
        let [start, count, step] =
            ["start", "count", "step"].map(|k| cut.field(k).and_then(Param::integer));
        let (start, count, step) = (start?, count?, step?);
        Some(match (kept, count, step) {
            (false, ..) => start.to_string(),
            (_, 0, _) => "0:0".to_string(),
            (_, _, 1) => format!("{start}:{}", start + count),
            _ => {
                let end = start + step * count;
                let end = if end < 0 { String::new() } else { end.to_string() };
                format!("{start}:{end}:{step}")
            }
        })
    };
    let (mut out, mut next) = (Vec::new(), 0);
    for axis in from {
        let Some(axis) = axis.integer() else {
            out.push("None".to_string());
            continue;
        };
        for cut in &cuts[next..axis as usize] {
            out.push(one(cut, false)?);
        }
        out.push(one(cuts[axis as usize], true)?);
        next = axis as usize + 1;
    }
    for cut in &cuts[next..] {
        out.push(one(cut, false)?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use chainrule_core::{Result, Slice, Tensor};

    use crate::Program;

    #[test]
    fn slices_are_listed_as_they_are_written() -> Result<()> {
        let x = Tensor::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        let cut = |slices: &[Slice]| -> Result<String> {
            let program = Program::trace([("x", &x)], |args| Ok(vec![args[0].slice(slices)]))?;
            Ok(program.lines().next().map(|line| line.code()).unwrap_or_default())
        };
        let all = || Slice::from(..);
        assert!(cut(&[all(), Slice::from(0..2)])?.ends_with(" = x[:, 0:2]"));
        assert!(cut(&[Slice::At(1), all()])?.ends_with(" = x[1, :]"));
        assert!(cut(&[Slice::NewAxis, all(), Slice::from(1..)])?.ends_with(" = x[None, :, 1:3]"));
        assert!(cut(&[all(), Slice::from(2..2)])?.ends_with(" = x[:, 0:0]"));
        Ok(())
    }
}
