//! The Python that NumPy forms and their functions are written in, as a tree.

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Name(String),
    Int(i64),
    Float(f64),
    Text(String),
    Ellipsis,
    /// A tuple or a list.
    Row(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Unary(&'static str, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `test`, then the value if it holds, and the other.
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    Attribute(Box<Expr>, String),
    Call(Box<Expr>, Vec<Expr>, Vec<(String, Expr)>),
    Subscript(Box<Expr>, Box<Expr>),
    Slice(Vec<Option<Expr>>),
    Star(Box<Expr>),
    /// The element, its targets and the sequence, and which are taken.
    Each(Box<Expr>, Box<Expr>, Box<Expr>, Option<Box<Expr>>),
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    /// Targets from left to right, and the value.
    Bind(Vec<Expr>, Expr),
    /// `target op= value`.
    Augment(Expr, &'static str, Expr),
    Return(Expr),
    If(Expr, Vec<Statement>, Vec<Statement>),
    For(Expr, Expr, Vec<Statement>),
    /// A text that explains, or something that is not understood.
    Other,
}

/// A function.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub name: String,
    /// Names with defaults; one that begins with a star takes the rest.
    pub params: Vec<(String, Option<Expr>)>,
    pub body: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Number(String),
    Text(String),
    Sign(&'static str),
    End,
}

const SIGNS: [&str; 39] = [
    "...", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "*=", "/=", "+", "-", "*",
    "/", "%", "@", "&", "|", "^", "~", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", "=",
    "\n", "\t>", "\t<", ";",
];

/// The levels of binary operators, the loosest first.
const LEVELS: [&[&str]; 9] = [
    &["or"],
    &["and"],
    &["<", ">", "<=", ">=", "==", "!=", "is", "is not", "in", "not in"],
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "//", "%", "@"],
];

/// An expression on its own.
pub(crate) fn expression(text: &str) -> Option<Expr> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0 };
    let out = parser.row(&[Token::End])?;
    (parser.peek() == &Token::End).then_some(out)
}

/// The functions of a file. One that is not understood is left out.
pub(crate) fn functions(text: &str) -> Vec<Function> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        if line.starts_with("def ") {
            blocks.push(Vec::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push(line);
        }
    }
    blocks.into_iter().filter_map(|block| function(&block)).collect()
}

fn function(lines: &[&str]) -> Option<Function> {
    let (head, rest) = lines.split_first()?;
    let head = head.strip_prefix("def ")?.trim_end().strip_suffix(":")?;
    let open = head.find('(')?;
    let mut parser = Parser { tokens: tokens(&head[open + 1..])?, at: 0 };
    let mut params = Vec::new();
    while !parser.take(")") {
        let star = parser.take("*");
        if star && parser.take(",") {
            continue;
        }
        let Token::Name(name) = parser.next() else { return None };
        let default = if parser.take("=") { Some(parser.choice()?) } else { None };
        params.push((if star { format!("*{name}") } else { name }, default));
        parser.take(",");
    }
    let body = block(&mut logical(rest).as_slice(), 4);
    Some(Function { name: head[..open].to_string(), params, body })
}

/// Lines with their depth; those that brackets join are one.
fn logical(lines: &[&str]) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    let (mut depth, mut quoted) = (0i32, false);
    for line in lines {
        let quotes = line.matches("\"\"\"").count();
        if quoted || quotes > 0 {
            quoted ^= quotes == 1;
            continue;
        }
        let code = line.split("  #").next().unwrap_or(line);
        if code.trim().is_empty() || code.trim_start().starts_with('#') {
            continue;
        }
        match out.last_mut() {
            Some((_, text)) if depth > 0 => {
                text.push(' ');
                text.push_str(code.trim());
            }
            _ => out.push((code.len() - code.trim_start().len(), code.trim().to_string())),
        }
        depth += code.matches(['(', '[', '{']).count() as i32;
        depth -= code.matches([')', ']', '}']).count() as i32;
    }
    out
}

fn block(lines: &mut &[(usize, String)], depth: usize) -> Vec<Statement> {
    let mut out = Vec::new();
    while let Some((at, text)) = lines.first().filter(|(at, _)| *at >= depth) {
        *lines = &lines[1..];
        if *at > depth {
            continue;
        }
        out.push(statement(text, lines, depth));
    }
    out
}

fn statement(text: &str, lines: &mut &[(usize, String)], depth: usize) -> Statement {
    if let Some(test) = text.strip_prefix("if ") {
        return branch(test, lines, depth);
    }
    if let Some(rest) = text.strip_prefix("for ") {
        let (head, one) = rest.split_once(':').unwrap_or((rest, ""));
        let inside = if one.trim().is_empty() {
            block(lines, depth + 4)
        } else {
            vec![statement(one.trim(), lines, depth)]
        };
        let found = head.split_once(" in ");
        let found = found.and_then(|(a, b)| Some((expression(a)?, expression(b)?)));
        return found.map_or(Statement::Other, |(a, b)| Statement::For(a, b, inside));
    }
    if let Some(value) = text.strip_prefix("return ") {
        return expression(value).map_or(Statement::Other, Statement::Return);
    }
    binding(text).unwrap_or(Statement::Other)
}

fn branch(test: &str, lines: &mut &[(usize, String)], depth: usize) -> Statement {
    let test = expression(test.trim_end_matches(':'));
    let yes = block(lines, depth + 4);
    let no = match lines.first().filter(|(at, _)| *at == depth).map(|(_, text)| text.clone()) {
        Some(text) if text == "else:" => {
            *lines = &lines[1..];
            block(lines, depth + 4)
        }
        Some(text) if text.starts_with("elif ") => {
            *lines = &lines[1..];
            vec![branch(&text[5..], lines, depth)]
        }
        _ => Vec::new(),
    };
    test.map_or(Statement::Other, |test| Statement::If(test, yes, no))
}

fn binding(text: &str) -> Option<Statement> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0 };
    let mut parts = vec![parser.row(&[Token::End, Token::Sign("=")])?];
    for (sign, op) in [("+=", "+"), ("-=", "-"), ("*=", "*"), ("/=", "/")] {
        if parser.take(sign) {
            return Some(Statement::Augment(parts.remove(0), op, parser.row(&[Token::End])?));
        }
    }
    while parser.take("=") {
        parts.push(parser.row(&[Token::End, Token::Sign("=")])?);
    }
    let value = parts.pop()?;
    (parser.peek() == &Token::End && !parts.is_empty()).then_some(Statement::Bind(parts, value))
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let len = if c.is_ascii_alphabetic() || c == '_' {
            let end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
            let len = rest.find(end).unwrap_or(rest.len());
            out.push(Token::Name(rest[..len].to_string()));
            len
        } else if c.is_ascii_digit() {
            let len = number(rest);
            out.push(Token::Number(rest[..len].to_string()));
            len
        } else if c == '"' {
            let len = rest[1..].find('"')? + 2;
            out.push(Token::Text(rest[1..len - 1].to_string()));
            len
        } else {
            let sign = SIGNS.into_iter().find(|s| rest.starts_with(s))?;
            out.push(Token::Sign(sign));
            sign.len()
        };
        rest = rest[len..].trim_start();
    }
    out.push(Token::End);
    Some(out)
}

/// The length of a number.
fn number(text: &str) -> usize {
    let mut before = ' ';
    let end = text.find(|c: char| {
        let sign = (c == '-' || c == '+') && before == 'e';
        before = c;
        !(c.is_ascii_digit() || c == '.' || c == 'e' || sign)
    });
    end.unwrap_or(text.len())
}

/// Arguments of a call, those without a name first.
type Arguments = (Vec<Expr>, Vec<(String, Expr)>);

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned().unwrap_or(Token::End)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = match self.peek() {
            Token::Sign(s) => *s == sign,
            Token::Name(name) => name == sign,
            _ => false,
        };
        self.at += usize::from(found);
        found
    }

    /// Expressions with commas between them: a tuple if there is one.
    fn row(&mut self, ends: &[Token]) -> Option<Expr> {
        let first = self.item()?;
        if !self.take(",") {
            return Some(first);
        }
        let mut all = vec![first];
        while !ends.contains(self.peek()) {
            all.push(self.item()?);
            if !self.take(",") {
                break;
            }
        }
        Some(Expr::Row(all))
    }

    fn item(&mut self) -> Option<Expr> {
        if self.take("*") {
            return Some(Expr::Star(Box::new(self.level(0)?)));
        }
        self.choice()
    }

    fn choice(&mut self) -> Option<Expr> {
        let value = self.level(0)?;
        if !self.take("if") {
            return Some(value);
        }
        let test = self.level(0)?;
        let other = if self.take("else") { self.choice()? } else { return None };
        Some(Expr::Choice(Box::new(test), Box::new(value), Box::new(other)))
    }

    fn level(&mut self, at: usize) -> Option<Expr> {
        let Some(signs) = LEVELS.get(at) else { return self.unary() };
        let mut left = self.level(at + 1)?;
        while let Some(sign) = self.operator(signs) {
            let right = self.level(at + 1)?;
            left = Expr::Binary(sign, Box::new(left), Box::new(right));
        }
        Some(left)
    }

    fn operator(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        let before = self.at;
        for sign in signs {
            let found = match sign.split_once(' ') {
                Some((a, b)) => self.take(a) && self.take(b),
                None => self.take(sign),
            };
            // The longer one is `is not`.
            let longer = *sign == "is" && self.peek() == &Token::Name("not".into());
            if found && !longer {
                return Some(sign);
            }
            self.at = before;
        }
        None
    }

    fn unary(&mut self) -> Option<Expr> {
        for sign in ["-", "~", "not"] {
            if self.take(sign) {
                return Some(Expr::Unary(sign, Box::new(self.unary()?)));
            }
        }
        let base = self.postfix()?;
        if !self.take("**") {
            return Some(base);
        }
        Some(Expr::Binary("**", Box::new(base), Box::new(self.unary()?)))
    }

    fn postfix(&mut self) -> Option<Expr> {
        let mut out = self.atom()?;
        loop {
            if self.take(".") {
                let Token::Name(name) = self.next() else { return None };
                out = Expr::Attribute(Box::new(out), name);
            } else if self.take("(") {
                let (args, named) = self.arguments()?;
                out = Expr::Call(Box::new(out), args, named);
            } else if self.take("[") {
                let index = self.subscript()?;
                out = Expr::Subscript(Box::new(out), Box::new(index));
            } else {
                return Some(out);
            }
        }
    }

    fn arguments(&mut self) -> Option<Arguments> {
        let (mut args, mut named) = (Vec::new(), Vec::new());
        while !self.take(")") {
            let name = match (self.peek(), self.tokens.get(self.at + 1)) {
                (Token::Name(name), Some(Token::Sign("="))) => Some(name.clone()),
                _ => None,
            };
            if let Some(name) = name {
                self.at += 2;
                named.push((name, self.choice()?));
            } else {
                let item = self.item()?;
                args.push(self.each(item)?);
            }
            if !self.take(",") && self.peek() != &Token::Sign(")") {
                return None;
            }
        }
        Some((args, named))
    }

    /// `item for x in row`, if it goes on so.
    fn each(&mut self, item: Expr) -> Option<Expr> {
        if !self.take("for") {
            return Some(item);
        }
        let mut targets = vec![self.postfix()?];
        while self.take(",") {
            targets.push(self.postfix()?);
        }
        let target = if targets.len() == 1 { targets.remove(0) } else { Expr::Row(targets) };
        if !self.take("in") {
            return None;
        }
        let row = self.level(0)?;
        let test = if self.take("if") { Some(Box::new(self.level(0)?)) } else { None };
        Some(Expr::Each(Box::new(item), Box::new(target), Box::new(row), test))
    }

    fn subscript(&mut self) -> Option<Expr> {
        let mut all = Vec::new();
        let mut comma = false;
        while !self.take("]") {
            all.push(self.cut()?);
            comma |= self.take(",");
        }
        Some(if all.len() == 1 && !comma { all.remove(0) } else { Expr::Row(all) })
    }

    fn cut(&mut self) -> Option<Expr> {
        let mut parts = vec![None];
        loop {
            if self.take(":") {
                parts.push(None);
            } else if matches!(self.peek(), Token::Sign("," | "]")) {
                break;
            } else {
                *parts.last_mut()? = Some(self.item()?);
            }
        }
        if parts.len() == 1 { parts.remove(0) } else { Some(Expr::Slice(parts)) }
    }

    fn bracketed(&mut self, close: &'static str) -> Option<Expr> {
        let mut all = Vec::new();
        let mut comma = false;
        while !self.take(close) {
            let item = self.item()?;
            let item = self.each(item)?;
            if matches!(item, Expr::Each(..)) && self.take(close) {
                return Some(item);
            }
            all.push(item);
            comma |= self.take(",");
        }
        Some(if close == ")" && all.len() == 1 && !comma { all.remove(0) } else { Expr::Row(all) })
    }

    fn atom(&mut self) -> Option<Expr> {
        Some(match self.next() {
            Token::Name(name) => Expr::Name(name),
            Token::Text(text) => Expr::Text(text),
            Token::Number(text) => match text.parse::<i64>() {
                Ok(n) => Expr::Int(n),
                Err(_) => Expr::Float(text.parse().ok()?),
            },
            Token::Sign("...") => Expr::Ellipsis,
            Token::Sign("(") => self.bracketed(")")?,
            Token::Sign("[") => self.bracketed("]")?,
            Token::Sign("{") => {
                let mut all = Vec::new();
                while !self.take("}") {
                    let key = self.choice()?;
                    if !self.take(":") {
                        return None;
                    }
                    all.push((key, self.choice()?));
                    self.take(",");
                }
                Expr::Dict(all)
            }
            _ => return None,
        })
    }
}
