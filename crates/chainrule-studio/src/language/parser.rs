//! From words to the tree, by recursive descent.

use std::rc::Rc;

use super::fault::{At, Fault, Outcome};
use super::lexer::{Word, words};
use super::syntax::{
    Definition, Expression, ExpressionKind as Kind, Position, Statement, StatementKind, Target,
};

/// The statements of a program.
pub fn parse(text: &str) -> Outcome<Vec<Statement>> {
    let mut parser = Parser { words: words(text)?, place: 0, depth: 0 };
    let mut body = Vec::new();
    while *parser.word() != Word::End {
        parser.statement(&mut body)?;
    }
    Ok(body)
}

/// One expression, as in a request.
pub fn expression(text: &str) -> Outcome<Expression> {
    let mut parser = Parser { words: words(text)?, place: 0, depth: 0 };
    let out = parser.tuple()?;
    match parser.word() {
        Word::Newline | Word::End => Ok(out),
        _ => Err(parser.unexpected("an operator")),
    }
}

/// Brackets and blocks inside each other.
const DEEPEST: usize = 60;

/// Binary operators by how strongly they bind, the weakest first.
const LEVELS: [&[&str]; 4] =
    [&["<", "<=", ">", ">=", "==", "!="], &["&", "|"], &["+", "-"], &["*", "/", "@", "%", "//"]];

struct Parser {
    words: Vec<(Word, At)>,
    place: usize,
    depth: usize,
}

impl Parser {
    fn word(&self) -> &Word {
        &self.words[self.place].0
    }

    fn at(&self) -> At {
        self.words[self.place].1
    }

    fn next(&mut self) -> Word {
        let word = self.word().clone();
        if self.place + 1 < self.words.len() {
            self.place += 1;
        }
        word
    }

    fn takes(&mut self, sign: &'static str) -> bool {
        let there = *self.word() == Word::Sign(sign);
        if there {
            self.next();
        }
        there
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.word(), Word::Name(own) if own == name)
    }

    fn takes_name(&mut self, name: &str) -> bool {
        let there = self.is_name(name);
        if there {
            self.next();
        }
        there
    }

    fn expect(&mut self, sign: &'static str) -> Outcome<()> {
        match self.takes(sign) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{sign}`"))),
        }
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        let found = match self.word() {
            Word::Name(name) => format!("`{name}`"),
            Word::Int(n) => n.to_string(),
            Word::Float(x) => x.to_string(),
            Word::Text(text) => format!("\"{text}\""),
            Word::Sign(sign) => format!("`{sign}`"),
            Word::Newline => "the end of the line".into(),
            Word::Indent => "an indentation".into(),
            Word::Dedent => "the end of the block".into(),
            Word::End => "the end of the program".into(),
        };
        Fault::new(format!("{wanted} is expected here, not {found}"), self.at())
    }

    fn name(&mut self) -> Outcome<String> {
        match self.word() {
            Word::Name(name) => {
                let name = name.clone();
                self.next();
                Ok(name)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    fn names(&mut self) -> Outcome<Vec<String>> {
        let bracket = self.takes("(");
        let mut names = vec![self.name()?];
        while self.takes(",") {
            names.push(self.name()?);
        }
        if bracket {
            self.expect(")")?;
        }
        Ok(names)
    }

    fn deeper<T>(&mut self, f: impl FnOnce(&mut Parser) -> Outcome<T>) -> Outcome<T> {
        if self.depth >= DEEPEST {
            return Err(Fault::new("brackets or blocks are too deep inside each other", self.at()));
        }
        self.depth += 1;
        let out = f(self);
        self.depth -= 1;
        out
    }

    // Statements

    fn block(&mut self) -> Outcome<Vec<Statement>> {
        self.expect(":")?;
        let mut body = Vec::new();
        if *self.word() != Word::Newline {
            self.statement(&mut body)?;
            return Ok(body);
        }
        self.next();
        if self.next() != Word::Indent {
            return Err(self.unexpected("an indented block"));
        }
        self.deeper(|parser| {
            while !matches!(parser.word(), Word::Dedent | Word::End) {
                parser.statement(&mut body)?;
            }
            Ok(())
        })?;
        self.next();
        Ok(body)
    }

    fn statement(&mut self, out: &mut Vec<Statement>) -> Outcome<()> {
        let at = self.at();
        let word = match self.word() {
            Word::Name(name) => name.clone(),
            Word::Indent => return Err(Fault::new("this line is indented without need", at)),
            _ => String::new(),
        };
        let kind = match word.as_str() {
            "for" => {
                self.next();
                let names = self.names()?;
                if !self.takes_name("in") {
                    return Err(self.unexpected("`in`"));
                }
                let items = self.tuple()?;
                StatementKind::For { names, items, body: self.block()? }
            }
            "while" => {
                self.next();
                let condition = self.tuple()?;
                StatementKind::While(condition, self.block()?)
            }
            "if" => self.branches()?,
            "def" => {
                self.next();
                let name = self.name()?;
                self.expect("(")?;
                let parameters = self.parameters(")")?;
                if self.takes("->") {
                    self.tuple()?;
                }
                let body = self.block()?;
                StatementKind::Define(Rc::new(Definition { name, parameters, body }))
            }
            _ => {
                loop {
                    let at = self.at();
                    let kind = self.simple()?;
                    out.push(Statement { kind, at });
                    if !self.takes(";") || *self.word() == Word::Newline {
                        break;
                    }
                }
                return match self.next() {
                    Word::Newline | Word::End => Ok(()),
                    _ => {
                        self.place -= 1;
                        Err(self.unexpected("the end of the line"))
                    }
                };
            }
        };
        out.push(Statement { kind, at });
        Ok(())
    }

    fn branches(&mut self) -> Outcome<StatementKind> {
        let (mut branches, mut otherwise) = (Vec::new(), Vec::new());
        self.next();
        let condition = self.tuple()?;
        branches.push((condition, self.block()?));
        loop {
            if self.takes_name("elif") {
                let condition = self.tuple()?;
                branches.push((condition, self.block()?));
            } else if self.takes_name("else") {
                otherwise = self.block()?;
                break;
            } else {
                break;
            }
        }
        Ok(StatementKind::If { branches, otherwise })
    }

    /// The parameters of a function, up to `end`.
    fn parameters(&mut self, end: &'static str) -> Outcome<Vec<(String, Option<Expression>)>> {
        let mut parameters = Vec::new();
        while !self.takes(end) {
            let name = self.name()?;
            let default = if self.takes("=") { Some(self.choice()?) } else { None };
            parameters.push((name, default));
            if !self.takes(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(parameters)
    }

    fn simple(&mut self) -> Outcome<StatementKind> {
        let word = match self.word() {
            Word::Name(name) => name.clone(),
            _ => String::new(),
        };
        match word.as_str() {
            "import" | "from" | "print" | "assert" => {
                while !matches!(self.word(), Word::Newline | Word::End) {
                    self.next();
                }
                return Ok(StatementKind::Pass);
            }
            "pass" => {
                self.next();
                return Ok(StatementKind::Pass);
            }
            "break" => {
                self.next();
                return Ok(StatementKind::Break);
            }
            "continue" => {
                self.next();
                return Ok(StatementKind::Continue);
            }
            "return" => {
                self.next();
                let ends = matches!(self.word(), Word::Newline | Word::End);
                let value = if ends { None } else { Some(self.tuple()?) };
                return Ok(StatementKind::Return(value));
            }
            _ => {}
        }
        let first = self.tuple()?;
        if self.takes("=") {
            let targets = targets(first)?;
            let value = self.tuple()?;
            if *self.word() == Word::Sign("=") {
                return Err(self.unexpected("one assignment a line"));
            }
            return Ok(StatementKind::Assign(targets, value));
        }
        for (sign, op) in
            [("+=", "+"), ("-=", "-"), ("*=", "*"), ("/=", "/"), ("**=", "**"), ("@=", "@")]
        {
            if self.takes(sign) {
                return Ok(StatementKind::Augmented(target(first)?, op, self.tuple()?));
            }
        }
        Ok(StatementKind::Expression(first))
    }

    // Expressions

    /// An expression, or several with commas between them.
    fn tuple(&mut self) -> Outcome<Expression> {
        let first = self.choice()?;
        if *self.word() != Word::Sign(",") {
            return Ok(first);
        }
        let at = first.at;
        let mut all = vec![first];
        while self.takes(",") {
            let ends = matches!(
                self.word(),
                Word::Newline | Word::End | Word::Sign(")" | "]" | "=" | ":")
            );
            if ends {
                break;
            }
            all.push(self.choice()?);
        }
        Ok(Expression { kind: Kind::List(all), at })
    }

    fn choice(&mut self) -> Outcome<Expression> {
        self.deeper(|parser| {
            let at = parser.at();
            if parser.takes_name("lambda") {
                let parameters = parser.parameters(":")?;
                let value = parser.choice()?;
                let body = vec![Statement { kind: StatementKind::Return(Some(value)), at }];
                let function = Definition { name: "lambda".into(), parameters, body };
                return Ok(Expression { kind: Kind::Function(Rc::new(function)), at });
            }
            let yes = parser.both(false)?;
            if !parser.takes_name("if") {
                return Ok(yes);
            }
            let condition = Box::new(parser.both(false)?);
            if !parser.takes_name("else") {
                return Err(parser.unexpected("`else`"));
            }
            let no = Box::new(parser.choice()?);
            Ok(Expression { kind: Kind::Choice { condition, yes: Box::new(yes), no }, at })
        })
    }

    /// `or` of `and`s of comparisons.
    fn both(&mut self, and: bool) -> Outcome<Expression> {
        let part = |parser: &mut Parser| if and { parser.not() } else { parser.both(true) };
        let mut left = part(self)?;
        while self.takes_name(if and { "and" } else { "or" }) {
            let (at, right) = (left.at, part(self)?);
            left = Expression { kind: Kind::Both(and, Box::new(left), Box::new(right)), at };
        }
        Ok(left)
    }

    fn not(&mut self) -> Outcome<Expression> {
        let at = self.at();
        if self.takes_name("not") {
            let inner = self.deeper(Parser::not)?;
            return Ok(Expression { kind: Kind::Not(Box::new(inner)), at });
        }
        self.binary(0)
    }

    fn binary(&mut self, level: usize) -> Outcome<Expression> {
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        loop {
            let Word::Sign(sign) = *self.word() else { return Ok(left) };
            if !signs.contains(&sign) {
                return Ok(left);
            }
            // The place of an operation is that of its sign: there the eye looks for it.
            let at = self.at();
            self.next();
            let right = self.binary(level + 1)?;
            left = Expression { kind: Kind::Binary(sign, Box::new(left), Box::new(right)), at };
        }
    }

    fn unary(&mut self) -> Outcome<Expression> {
        let at = self.at();
        if self.takes("-") {
            let inner = self.deeper(Parser::unary)?;
            return Ok(Expression { kind: Kind::Negative(Box::new(inner)), at });
        }
        if self.takes("+") {
            return self.deeper(Parser::unary);
        }
        let base = self.postfix()?;
        let at = self.at();
        if self.takes("**") {
            let exponent = self.deeper(Parser::unary)?;
            let kind = Kind::Binary("**", Box::new(base), Box::new(exponent));
            return Ok(Expression { kind, at });
        }
        Ok(base)
    }

    fn postfix(&mut self) -> Outcome<Expression> {
        let mut out = self.atom()?;
        loop {
            let at = self.at();
            let kind = if self.takes(".") {
                Kind::Attribute(Box::new(out), self.name()?)
            } else if self.takes("(") {
                let (arguments, named) = self.arguments()?;
                Kind::Call { callee: Box::new(out), arguments, named }
            } else if self.takes("[") {
                Kind::Index(Box::new(out), self.positions()?)
            } else {
                return Ok(out);
            };
            out = Expression { kind, at };
        }
    }

    #[allow(clippy::type_complexity, reason = "arguments by place and by name")]
    fn arguments(&mut self) -> Outcome<(Vec<Expression>, Vec<(String, Expression)>)> {
        let (mut arguments, mut named) = (Vec::new(), Vec::new());
        while !self.takes(")") {
            let by_name = matches!(self.word(), Word::Name(_))
                && self.words.get(self.place + 1).is_some_and(|w| w.0 == Word::Sign("="));
            if by_name {
                let name = self.name()?;
                self.expect("=")?;
                named.push((name, self.choice()?));
            } else if named.is_empty() {
                arguments.push(self.choice()?);
            } else {
                return Err(self.unexpected("an argument with its name"));
            }
            if !self.takes(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok((arguments, named))
    }

    fn positions(&mut self) -> Outcome<Vec<Position>> {
        let mut positions = Vec::new();
        while !self.takes("]") {
            positions.push(self.position()?);
            if !self.takes(",") {
                self.expect("]")?;
                break;
            }
        }
        match positions.is_empty() {
            true => Err(self.unexpected("an index")),
            false => Ok(positions),
        }
    }

    fn position(&mut self) -> Outcome<Position> {
        if self.takes(".") {
            self.expect(".")?;
            self.expect(".")?;
            return Ok(Position::Ellipsis);
        }
        let ends = |parser: &Parser| matches!(parser.word(), Word::Sign(":" | "," | "]"));
        let part = |parser: &mut Parser| match ends(parser) {
            true => Ok(None),
            false => parser.choice().map(Some),
        };
        let start = part(self)?;
        if !self.takes(":") {
            return start.map(Position::At).ok_or_else(|| self.unexpected("an index"));
        }
        let end = part(self)?;
        let step = if self.takes(":") { part(self)? } else { None };
        Ok(Position::Range { start, end, step })
    }

    fn atom(&mut self) -> Outcome<Expression> {
        let at = self.at();
        let kind = match self.next() {
            Word::Int(n) => Kind::Int(n),
            Word::Float(x) => Kind::Float(x),
            Word::Text(text) => Kind::Text(text),
            Word::Name(name) => match name.as_str() {
                "None" => Kind::None,
                "True" => Kind::Bool(true),
                "False" => Kind::Bool(false),
                _ => Kind::Name(name),
            },
            Word::Sign("(") => {
                if self.takes(")") {
                    Kind::List(Vec::new())
                } else {
                    let inner = self.deeper(Parser::tuple)?;
                    self.expect(")")?;
                    return Ok(inner);
                }
            }
            Word::Sign("[") => self.list()?,
            _ => {
                self.place = self.place.saturating_sub(1);
                return Err(self.unexpected("a value"));
            }
        };
        Ok(Expression { kind, at })
    }

    fn list(&mut self) -> Outcome<Kind> {
        let mut items = Vec::new();
        while !self.takes("]") {
            items.push(self.choice()?);
            if items.len() == 1 && self.takes_name("for") {
                let names = self.names()?;
                if !self.takes_name("in") {
                    return Err(self.unexpected("`in`"));
                }
                let over = self.both(false)?;
                self.expect("]")?;
                let element = Box::new(items.remove(0));
                return Ok(Kind::Each { element, names, items: Box::new(over) });
            }
            if !self.takes(",") {
                self.expect("]")?;
                break;
            }
        }
        Ok(Kind::List(items))
    }
}

fn targets(left: Expression) -> Outcome<Vec<Target>> {
    match left.kind {
        Kind::List(items) => items.into_iter().map(target).collect(),
        _ => Ok(vec![target(left)?]),
    }
}

fn target(left: Expression) -> Outcome<Target> {
    match left.kind {
        Kind::Name(name) => Ok(Target::Name(name)),
        Kind::Index(of, positions) => Ok(Target::Item(*of, positions)),
        _ => Err(Fault::new("only a name or an element can be assigned to", left.at)),
    }
}
