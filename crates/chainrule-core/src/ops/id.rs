//! The identity of an op: its row in the table.

use super::{Entry, Family};

/// A row of the table: a constant for each file, by its name. Other modules treat an op apart by
/// this, and never by the name, which an op that a user defined may have too.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OpId {
    pub(super) family: Family,
    /// The place in the list of the family.
    pub(super) place: u8,
}

impl OpId {
    /// The row.
    pub fn entry(self) -> &'static Entry {
        super::FAMILIES[self.family as usize][self.place as usize]
    }

    /// The name of the row.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// The row of the op that has this name, or of which one method has it: for names that a person
    /// gives.
    pub fn named(name: &str) -> Option<OpId> {
        let named = |e: &Entry| e.name == name || e.name.split(", ").any(|own| own == name);
        OpId::all().find(|id| named(id.entry()))
    }

    /// All rows, in the order of the table.
    pub fn all() -> impl Iterator<Item = OpId> {
        let of = |family: Family| {
            let rows = super::FAMILIES[family as usize].len() as u8;
            (0..rows).map(move |place| OpId { family, place })
        };
        Family::ALL.into_iter().flat_map(of)
    }
}

impl std::fmt::Debug for OpId {
    /// The name of the row.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of an op that serves several rows of the table, or several rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    pub text: &'static str,
    /// The row; none for a rule's own kernel.
    pub id: Option<OpId>,
}

impl Name {
    /// One of the names of a row.
    pub const fn of(id: OpId, text: &'static str) -> Name {
        Name { text, id: Some(id) }
    }

    /// The kernel of a rule.
    pub const fn rule(text: &'static str) -> Name {
        Name { text, id: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::custom;
    use crate::ops::table;
    use crate::tensor::node::Source;
    use crate::{DType, Tensor};

    #[test]
    fn rows_and_ids_are_in_one_order() {
        assert!(table().zip(OpId::all()).all(|(entry, id)| std::ptr::eq(entry, id.entry())));
        assert_eq!(table().count(), OpId::all().count());
        assert_eq!((OpId::tanh.name(), OpId::where_.name()), ("tanh", "where"));
        assert_eq!(OpId::named("slogdet"), OpId::named("det"));
        assert_eq!(OpId::named("tanh_grad"), None);
    }

    #[test]
    fn an_op_that_a_user_defined_is_no_row_whatever_its_name() {
        let x = Tensor::zeros([2]).to_dtype(DType::F64).parameter();
        for name in table().flat_map(|e| e.name.split(", ")) {
            let op = custom(name, |x| Ok(x[0].clone()), |_, g| Ok(vec![Some(g.clone())]));
            let y = op.apply(&[&x]).unwrap();
            let Source::Node(node) = y.source() else { unreachable!() };
            assert_eq!((node.op.name(), node.op.id()), (name, None));
            assert!(node.op.entry().is_none());
        }
    }
}
