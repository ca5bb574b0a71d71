//! Words of the language, with indentation as words of its own.

use super::fault::{At, Fault, Outcome};

/// The kinds of words.
#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    Name(String),
    Int(i64),
    Float(f64),
    Text(String),
    Sign(&'static str),
    Newline,
    Indent,
    Dedent,
    End,
}

/// Longest first, so that `**` is not read as two `*`.
const SIGNS: [&str; 36] = [
    "**=", "//=", "**", "//", "+=", "-=", "*=", "/=", "@=", "==", "!=", "<=", ">=", "->", "+", "-",
    "*", "/", "%", "@", "<", ">", "=", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "&", "|",
    "~",
];

/// The longest program, in bytes.
const LONGEST: usize = 200_000;

/// The words of a text, each with its place. Errors at a character or an indentation that does not
/// fit.
pub fn words(text: &str) -> Outcome<Vec<(Word, At)>> {
    if text.len() > LONGEST {
        let why = format!("the program is longer than {LONGEST} characters");
        return Err(Fault::new(why, At::default()));
    }
    let mut lexer = Lexer { out: Vec::new(), indents: vec![0], open: 0 };
    for (i, line) in text.lines().enumerate() {
        lexer.line(line, i + 1)?;
    }
    let end = At { line: text.lines().count().max(1), column: 1 };
    if lexer.open > 0 {
        return Err(Fault::new("a bracket is never closed", end));
    }
    lexer.close(0, end)?;
    lexer.out.push((Word::End, end));
    Ok(lexer.out)
}

struct Lexer {
    out: Vec<(Word, At)>,
    indents: Vec<usize>,
    /// Number of open brackets, inside which lines go on.
    open: usize,
}

impl Lexer {
    fn line(&mut self, text: &str, line: usize) -> Outcome<()> {
        let characters: Vec<char> = text.chars().collect();
        let start = characters.iter().take_while(|c| c.is_whitespace()).count();
        let at = |i: usize| At { line, column: i + 1 };
        if characters.get(start).is_none_or(|&c| c == '#') {
            return Ok(());
        }
        if self.open == 0 {
            let width = characters[..start].iter().map(|&c| if c == '\t' { 4 } else { 1 }).sum();
            if width > *self.indents.last().unwrap_or(&0) {
                self.indents.push(width);
                self.out.push((Word::Indent, at(start)));
            } else {
                self.close(width, at(start))?;
            }
        }
        let mut i = start;
        while i < characters.len() {
            match characters[i] {
                '#' => break,
                c if c.is_whitespace() => i += 1,
                c if c.is_ascii_digit() || (c == '.' && digit(&characters, i + 1)) => {
                    i = self.number(&characters, i, at(i))?;
                }
                c if c.is_alphabetic() || c == '_' => {
                    let end = run(&characters, i, |c| c.is_alphanumeric() || c == '_');
                    self.out.push((Word::Name(characters[i..end].iter().collect()), at(i)));
                    i = end;
                }
                quote @ ('"' | '\'') => {
                    let end = run(&characters, i + 1, |c| c != quote);
                    if end == characters.len() {
                        return Err(Fault::new("the text has no closing quote", at(i)));
                    }
                    self.out.push((Word::Text(characters[i + 1..end].iter().collect()), at(i)));
                    i = end + 1;
                }
                c => i = self.sign(&characters, i, at(i), c)?,
            }
        }
        if self.open == 0 {
            self.out.push((Word::Newline, at(characters.len())));
        }
        Ok(())
    }

    fn sign(&mut self, characters: &[char], i: usize, at: At, c: char) -> Outcome<usize> {
        let starts =
            |sign: &&&str| sign.chars().enumerate().all(|(k, c)| characters.get(i + k) == Some(&c));
        let Some(sign) = SIGNS.iter().find(starts) else {
            return Err(Fault::new(format!("the character `{c}` has no meaning here"), at));
        };
        match *sign {
            "(" | "[" | "{" => self.open += 1,
            ")" | "]" | "}" if self.open == 0 => {
                return Err(Fault::new(format!("`{sign}` closes nothing"), at));
            }
            ")" | "]" | "}" => self.open -= 1,
            _ => {}
        }
        self.out.push((Word::Sign(sign), at));
        Ok(i + sign.len())
    }

    fn number(&mut self, characters: &[char], start: usize, at: At) -> Outcome<usize> {
        let digits = |c: char| c.is_ascii_digit() || c == '_';
        let mut end = run(characters, start, digits);
        let mut whole = true;
        if characters.get(end) == Some(&'.') {
            whole = false;
            end = run(characters, end + 1, digits);
        }
        if matches!(characters.get(end), Some('e' | 'E')) {
            let signed = usize::from(matches!(characters.get(end + 1), Some('+' | '-')));
            if digit(characters, end + 1 + signed) {
                whole = false;
                end = run(characters, end + 1 + signed, digits);
            }
        }
        let text: String = characters[start..end].iter().filter(|&&c| c != '_').collect();
        let word = match whole {
            true => text.parse().ok().map(Word::Int),
            false => text.parse().ok().map(Word::Float),
        };
        let word = word.ok_or_else(|| Fault::new(format!("`{text}` is no number"), at))?;
        self.out.push((word, at));
        Ok(end)
    }

    /// Ends the blocks that are indented by more than `width`.
    fn close(&mut self, width: usize, at: At) -> Outcome<()> {
        while self.indents.last().is_some_and(|&open| open > width) {
            self.indents.pop();
            self.out.push((Word::Dedent, at));
        }
        match self.indents.last() == Some(&width) {
            true => Ok(()),
            false => Err(Fault::new("the indentation fits no block above", at)),
        }
    }
}

fn digit(characters: &[char], i: usize) -> bool {
    characters.get(i).is_some_and(char::is_ascii_digit)
}

/// The end of the characters from `start` on that `belongs` admits.
fn run(characters: &[char], start: usize, belongs: impl Fn(char) -> bool) -> usize {
    let rest = characters.iter().skip(start);
    start + rest.take_while(|&&c| belongs(c)).count()
}
