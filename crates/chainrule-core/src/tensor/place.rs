//! Lines of the user's code that called something.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::sync::OnceLock;

use super::node::Node;

/// A line of the user's code.
///
/// ```
/// use chainrule::{Tensor, program::Program};
/// let x = Tensor::from([1.0f32, 2.0]);
/// let program = Program::trace([("x", &x)], |x| Ok(vec![x[0].try_exp()?])).unwrap();
/// let line = program.lines().next().unwrap();
/// let place = line.location().unwrap();
/// assert!(place.line() > 0 && place.to_string().ends_with(&format!(":{}", place.line())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    file: Cow<'static, str>,
    line: u32,
    rust: Option<&'static Location<'static>>,
}

impl Place {
    /// The path of the file, as the compiler or the interpreter knows it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The place as Rust's own type, if it is one in Rust code.
    pub fn rust(&self) -> Option<&'static Location<'static>> {
        self.rust
    }

    /// Whether it is a line of the library, which says nothing to its user: of an op's rule, of
    /// Rust's own sources, or of any Rust code where a script calls it.
    pub fn is_of_library(&self) -> bool {
        let own = file!().trim_end_matches("tensor/place.rs");
        let here = self.file.starts_with(own) || self.file.starts_with("/rustc/");
        self.rust.is_some() && (here || SCRIPT.get().is_some())
    }
}

/// Asks a script's language for the line that made a node of the tape, by the node's number.
type AskScript = fn(u64) -> Option<(String, u32)>;

static SCRIPT: OnceLock<AskScript> = OnceLock::new();

/// Lines of nodes are those of a script from now on: the Rust code that calls the ops is part of
/// its interpreter, and says nothing to the user.
pub fn lines_are_of_a_script(ask: AskScript) {
    SCRIPT.get_or_init(|| ask);
}

impl Node {
    /// The user's line that called the op; none where a script made the node and its line is not
    /// known any more.
    pub fn place(&self) -> Option<Place> {
        match SCRIPT.get() {
            None => Some(self.location.into()),
            Some(ask) => {
                ask(self.number).map(|(file, line)| Place { file: file.into(), line, rust: None })
            }
        }
    }
}

impl From<&'static Location<'static>> for Place {
    fn from(location: &'static Location<'static>) -> Place {
        Place { file: location.file().into(), line: location.line(), rust: Some(location) }
    }
}

/// The name of the file without its folders, and the line: `train.py:12`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file);
        write!(f, "{file}:{}", self.line)
    }
}

/// A language with an interpreter that calls this library, as `trace_script` sees it. A program
/// then names the lines and the variables of the script instead of those of the Rust code between.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// The file and the line of the script that runs now on this thread.
    pub caller: fn() -> Option<(String, u32)>,
    /// The text of a file of the script.
    pub source: fn(&str) -> Option<String>,
}

impl Script {
    pub(crate) fn place(&self) -> Option<Place> {
        (self.caller)().map(|(file, line)| Place { file: file.into(), line, rust: None })
    }
}
