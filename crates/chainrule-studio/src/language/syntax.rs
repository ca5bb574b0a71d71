//! The tree of a program.

use std::rc::Rc;

use super::fault::At;

/// An expression and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    pub kind: ExpressionKind,
    pub at: At,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Name(String),
    /// A list or a tuple.
    List(Vec<Expression>),
    /// `[element for names in items]`
    Each {
        element: Box<Expression>,
        names: Vec<String>,
        items: Box<Expression>,
    },
    Negative(Box<Expression>),
    Not(Box<Expression>),
    Binary(&'static str, Box<Expression>, Box<Expression>),
    /// `and`, or else `or`.
    Both(bool, Box<Expression>, Box<Expression>),
    Choice {
        condition: Box<Expression>,
        yes: Box<Expression>,
        no: Box<Expression>,
    },
    Call {
        callee: Box<Expression>,
        arguments: Vec<Expression>,
        named: Vec<(String, Expression)>,
    },
    Attribute(Box<Expression>, String),
    Index(Box<Expression>, Vec<Position>),
    Function(Rc<Definition>),
}

/// A part of an index.
#[derive(Clone, Debug, PartialEq)]
pub enum Position {
    At(Expression),
    Range { start: Option<Expression>, end: Option<Expression>, step: Option<Expression> },
    Ellipsis,
}

/// A function of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub name: String,
    pub parameters: Vec<(String, Option<Expression>)>,
    pub body: Vec<Statement>,
}

/// A target of an assignment.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    Name(String),
    Item(Expression, Vec<Position>),
}

/// A statement and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub kind: StatementKind,
    pub at: At,
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    Assign(Vec<Target>, Expression),
    Augmented(Target, &'static str, Expression),
    Expression(Expression),
    For { names: Vec<String>, items: Expression, body: Vec<Statement> },
    While(Expression, Vec<Statement>),
    If { branches: Vec<(Expression, Vec<Statement>)>, otherwise: Vec<Statement> },
    Define(Rc<Definition>),
    Return(Option<Expression>),
    Break,
    Continue,
    Pass,
}
