//! Elements of lists and tensors.

use chainrule::ops::{Index, Slice};
use chainrule::{DType, Tensor};

use super::fault::{Fault, Outcome};
use super::value::Data;

/// A part of an index.
pub enum IndexPart {
    At(Data),
    Range { start: Option<i64>, end: Option<i64>, step: i64 },
    Ellipsis,
}

/// `of[places]`
pub fn get(of: &Data, places: &[IndexPart]) -> Outcome<Data> {
    match of {
        Data::List(items) => element(items, places),
        Data::Tensor(t) => Ok(Data::Tensor(t.try_index(&indices(places)?)?)),
        other => Err(Fault::request(format!("{} has no elements", other.kind()))),
    }
}

/// `of` with `value` at these places.
pub fn put(of: &Data, places: &[IndexPart], value: &Data) -> Outcome<Data> {
    match (of, places) {
        (Data::List(items), [IndexPart::At(at)]) => {
            let at = position(at, items.len())?;
            let mut items = items.clone();
            items[at] = value.clone();
            Ok(Data::List(items))
        }
        (Data::Tensor(t), _) => {
            let value = match value {
                Data::Tensor(value) => value.try_to_dtype(t.dtype())?,
                number => number.floats()?.try_to_dtype(t.dtype())?,
            };
            Ok(Data::Tensor(t.try_index_put(&indices(places)?, &value, false)?))
        }
        (other, _) => {
            Err(Fault::request(format!("elements of {} cannot be assigned to", other.kind())))
        }
    }
}

/// One row.
pub fn row(t: &Tensor, i: i64) -> Outcome<Data> {
    let row = t.try_index(&[Index::Slice(Slice::At(i))])?;
    match t.dtype() {
        DType::I64 if row.rank() == 0 => Ok(Data::Int(row.try_item()? as i64)),
        _ => Ok(Data::Tensor(row)),
    }
}

fn element(items: &[Data], places: &[IndexPart]) -> Outcome<Data> {
    match places {
        [IndexPart::At(at)] => Ok(items[position(at, items.len())?].clone()),
        [IndexPart::Range { start, end, step: 1 }] => {
            let bound = |x: Option<i64>, default: usize| match x {
                None => default,
                Some(x) if x < 0 => items.len().saturating_sub(x.unsigned_abs() as usize),
                Some(x) => (x as usize).min(items.len()),
            };
            let (start, end) = (bound(*start, 0), bound(*end, items.len()));
            Ok(Data::List(items.get(start..end).unwrap_or_default().to_vec()))
        }
        _ => Err(Fault::request("a list takes one position or a range")),
    }
}

fn position(at: &Data, count: usize) -> Outcome<usize> {
    let at = at.whole().ok_or_else(|| Fault::request("a position is an integer"))?;
    let place = if at < 0 { at + count as i64 } else { at };
    let there = usize::try_from(place).ok().filter(|&place| place < count);
    there.ok_or_else(|| Fault::request(format!("position {at} is beyond the {count} of the list")))
}

fn indices(places: &[IndexPart]) -> Outcome<Vec<Index>> {
    let index = |place: &IndexPart| match place {
        IndexPart::Ellipsis => Ok(Index::Slice(Slice::Ellipsis)),
        IndexPart::Range { step: 0, .. } => Err(Fault::request("the step of a slice is not 0")),
        &IndexPart::Range { start, end, step } => {
            Ok(Index::Slice(Slice::Range { start, end, step }))
        }
        IndexPart::At(Data::None) => Ok(Index::Slice(Slice::NewAxis)),
        IndexPart::At(Data::Int(at)) => Ok(Index::Slice(Slice::At(*at))),
        IndexPart::At(Data::Tensor(t)) if t.dtype().is_float() => {
            // Masks are numbers in the language.
            Ok(Index::Tensor(t.try_ne(t.zeros_like())?))
        }
        IndexPart::At(other) => Ok(Index::Tensor(other.tensor()?)),
    };
    places.iter().map(index).collect()
}
