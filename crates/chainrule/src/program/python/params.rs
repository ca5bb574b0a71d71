//! The parameters of an op, read from its `Debug` text, and as Python writes them.

/// A value as `Debug` prints it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Param {
    /// A number, a truth value, a name without fields.
    Word(String),
    /// A string, without the quotes.
    Text(String),
    /// `[a, b]` or `(a, b)`.
    List(Vec<Param>),
    /// `Name { field: a }` or `Name(a)`, whose fields have no names.
    Struct(String, Vec<(String, Param)>),
}

impl Param {
    /// What an op prints.
    pub fn parse(debug: &str) -> Param {
        Parser { text: debug.as_bytes(), at: 0 }.value()
    }

    /// The name of the struct.
    pub fn name(&self) -> &str {
        match self {
            Param::Struct(name, _) | Param::Word(name) => name,
            _ => "",
        }
    }

    /// The field of this name, also of a struct inside.
    pub fn field(&self, name: &str) -> Option<&Param> {
        let Param::Struct(_, fields) = self else { return None };
        let own = fields.iter().find(|(k, _)| k == name).map(|(_, v)| v);
        own.or_else(|| fields.iter().find_map(|(_, v)| v.field(name)))
    }

    /// The elements of a list, or the fields of a struct.
    pub fn items(&self) -> Vec<&Param> {
        match self {
            Param::List(items) => items.iter().collect(),
            Param::Struct(_, fields) => fields.iter().map(|(_, v)| v).collect(),
            _ => Vec::new(),
        }
    }

    pub fn integer(&self) -> Option<i64> {
        match self {
            Param::Word(word) => word.parse().ok(),
            Param::Struct(name, fields) if name == "Some" => fields[0].1.integer(),
            _ => None,
        }
    }

    /// As Python writes it: lists are tuples, an option is its value or `None`, other names are strings.
    pub fn python(&self) -> String {
        match self {
            Param::Word(word) => match word.as_str() {
                "true" => "True".to_string(),
                "false" => "False".to_string(),
                "None" => "None".to_string(),
                "inf" => "np.inf".to_string(),
                "-inf" => "-np.inf".to_string(),
                "NaN" => "np.nan".to_string(),
                word if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') => word.into(),
                word => format!("{word:?}"),
            },
            Param::Text(text) => format!("{text:?}"),
            Param::List(items) => tuple(items.iter().map(Param::python)),
            Param::Struct(name, fields) if name == "Some" => fields[0].1.python(),
            Param::Struct(name, fields) if name == "Axes" => {
                let bits = fields[0].1.integer().unwrap_or(0);
                tuple((0..8).filter(|a| bits >> a & 1 == 1).map(|a| a.to_string()))
            }
            Param::Struct(name, fields) => {
                let values = fields.iter().map(|(_, v)| v.python());
                tuple(std::iter::once(format!("{name:?}")).chain(values))
            }
        }
    }
}

/// A tuple of Python.
pub(super) fn tuple(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    let comma = if items.len() == 1 { "," } else { "" };
    format!("({}{comma})", items.join(", "))
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn peek(&mut self) -> u8 {
        while self.text.get(self.at).is_some_and(|c| c.is_ascii_whitespace()) {
            self.at += 1;
        }
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn value(&mut self) -> Param {
        match self.peek() {
            b'"' => {
                let start = self.at + 1;
                let rest = &self.text[start..];
                let len = rest.iter().position(|c| *c == b'"').unwrap_or(rest.len());
                self.at = start + len + 1;
                Param::Text(String::from_utf8_lossy(&rest[..len]).into_owned())
            }
            b'[' | b'(' => Param::List(self.fields().into_iter().map(|(_, v)| v).collect()),
            _ => {
                let name = self.word();
                self.skip_generics();
                match self.peek() {
                    b'{' | b'(' => Param::Struct(name, self.fields()),
                    _ => Param::Word(name),
                }
            }
        }
    }

    fn word(&mut self) -> String {
        let start = self.at;
        let ends = |c: &u8| b"{}()[],:<\"".contains(c) || c.is_ascii_whitespace();
        while self.text.get(self.at).is_some_and(|c| !ends(c)) {
            self.at += 1;
        }
        if self.at == start {
            // Something unknown is passed over.
            self.at += 1;
        }
        let end = self.at.min(self.text.len());
        String::from_utf8_lossy(&self.text[start.min(end)..end]).into_owned()
    }

    /// `PhantomData<a::B<C>>`.
    fn skip_generics(&mut self) {
        let mut depth = 0;
        while let Some(c) = self.text.get(self.at) {
            match c {
                b'<' => depth += 1,
                b'>' => depth -= 1,
                _ if depth == 0 => return,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// What stands between brackets; fields without a name are numbered.
    fn fields(&mut self) -> Vec<(String, Param)> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            match self.peek() {
                b']' | b')' | b'}' => {
                    self.at += 1;
                    return out;
                }
                0 => return out,
                b',' => self.at += 1,
                _ => {
                    let before = self.at;
                    let name = self.word();
                    if self.peek() == b':' {
                        self.at += 1;
                        out.push((name, self.value()));
                    } else {
                        self.at = before;
                        let value = self.value();
                        out.push((out.len().to_string(), value));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_texts_are_read() {
        let text = "Scaled(Elu { name: \"celu, {x}\", alpha: -0.5, axes: Axes(5), last: Some(3) })";
        let param = Param::parse(text);
        let python = |name: &str| param.field(name).map(Param::python);
        assert_eq!(param.name(), "Scaled");
        assert_eq!(python("name").as_deref(), Some("\"celu, {x}\""));
        assert_eq!(python("alpha").as_deref(), Some("-0.5"));
        assert_eq!(python("axes").as_deref(), Some("(0, 2)"));
        assert_eq!(python("last").as_deref(), Some("3"));
        assert_eq!(python("first"), None);
        let text =
            "Norm { p: inf, over: Last(1), pairs: [(0, 1.0), (2, NaN)], none: None, on: true }";
        let param = Param::parse(text);
        let python = |name: &str| param.field(name).unwrap().python();
        assert_eq!([python("p"), python("over")], ["np.inf", "(\"Last\", 1)"]);
        assert_eq!(python("pairs"), "((0, 1.0), (2, np.nan))");
        assert_eq!([python("none"), python("on")], ["None", "True"]);
        assert_eq!(Param::parse("PhantomData<a::B<C>>").name(), "PhantomData");
        assert_eq!(Param::parse("Shape { dims: [] }").field("dims").unwrap().python(), "()");
    }
}
