//! Errors of a program, each with its place in the text.

/// A place in a program, from 1; 0 where none is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    pub line: usize,
    pub column: usize,
}

/// An error with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub message: String,
    pub at: At,
}

pub type Outcome<T> = Result<T, Fault>;

impl Fault {
    pub fn new(message: impl Into<String>, at: At) -> Fault {
        Fault { message: message.into(), at }
    }

    /// An error of a request that has no program.
    pub fn request(message: impl Into<String>) -> Fault {
        Fault::new(message, At::default())
    }
}

/// An error of the library, without the line of Rust that called it.
impl From<chainrule_core::Error> for Fault {
    fn from(error: chainrule_core::Error) -> Fault {
        // The place in Rust is one of the interpreter.
        Fault::request(error.kind().to_string())
    }
}

/// Gives errors their place, where they have none.
pub trait Placed<T> {
    fn at(self, at: At) -> Outcome<T>;
}

impl<T, E: Into<Fault>> Placed<T> for Result<T, E> {
    fn at(self, at: At) -> Outcome<T> {
        self.map_err(|e| {
            let fault = e.into();
            if fault.at.line == 0 { Fault { at, ..fault } } else { fault }
        })
    }
}
