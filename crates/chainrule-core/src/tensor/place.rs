//! Lines of the user's code that called something.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::sync::{LazyLock, OnceLock};

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

    /// The place as Rust's own type, if it is in Rust code.
    pub fn rust(&self) -> Option<&'static Location<'static>> {
        self.rust
    }

    /// Whether it is a line of the library, which is of no use to its user: in an op's rule, in
    /// Rust's own sources, or in any Rust code when a script is the caller.
    pub fn is_of_library(&self) -> bool {
        self.rust.is_some() && (is_of_library(&self.file) || SCRIPT.get().is_some())
    }
}

/// The folder of the crates as the compiler names it, and the path between a crate's name and its
/// modules.
static OWN: LazyLock<(&str, &str)> = LazyLock::new(|| {
    let own = file!().trim_end_matches("tensor/place.rs");
    own.rsplit_once("chainrule-core").unwrap_or((own, ""))
});

/// Whether a file is one of Rust's own, of this crate or of the layers built on it.
fn is_of_library(file: &str) -> bool {
    let (folder, rest) = *OWN;
    let own = file.strip_prefix(folder).is_some_and(|file| {
        let of = |name| file.strip_prefix(name).is_some_and(|file: &str| file.starts_with(rest));
        of("chainrule-core") || of("chainrule-nn")
    });
    own || file.starts_with("/rustc/")
}

thread_local! {
    /// The user's line that called the layer which is running.
    static CALLER: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
}

/// The user's line for an op that is called at `location`: if that is a line of a layer of the
/// library, the line that called the layer.
#[inline]
pub(crate) fn of_user(location: &'static Location<'static>) -> &'static Location<'static> {
    match CALLER.get() {
        Some(caller) if is_of_library(location.file()) => caller,
        _ => location,
    }
}

/// While this lives, ops that the library calls count as called by the line that made it.
#[derive(Debug)]
pub struct Called {
    before: Option<&'static Location<'static>>,
}

impl Called {
    /// Takes the line of the caller, unless that is one of the library.
    #[track_caller]
    pub fn here() -> Called {
        let (location, before) = (Location::caller(), CALLER.get());
        if !is_of_library(location.file()) {
            CALLER.set(Some(location));
        }
        Called { before }
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        CALLER.set(self.before);
    }
}

/// Asks the script's interpreter for the line that made a node of the tape, by the node's number.
type AskScript = fn(u64) -> Option<(String, u32)>;

static SCRIPT: OnceLock<AskScript> = OnceLock::new();

/// From now on, lines of nodes are lines of a script: the Rust code that calls the ops is part of
/// its interpreter, and of no use to the user.
pub fn lines_are_of_a_script(ask: AskScript) {
    SCRIPT.get_or_init(|| ask);
}

impl Node {
    /// The user's line that called the op; none if a script made the node and its line is no longer
    /// known.
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

/// An interpreter of another language that calls this library, as `trace_script` sees it. A program
/// then names the lines and variables of the script instead of those of the Rust code between.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// The file and the line of the script that is running on this thread.
    pub caller: fn() -> Option<(String, u32)>,
    /// The text of a file of the script.
    pub source: fn(&str) -> Option<String>,
}

impl Script {
    pub(crate) fn place(&self) -> Option<Place> {
        (self.caller)().map(|(file, line)| Place { file: file.into(), line, rust: None })
    }
}
