//! Answers of the studio: requests in, answers out, no input or output of its own.

mod algebra;
mod by_hand;
#[cfg(test)]
mod captured_tests;
mod checks;
mod compare;
mod examples;
mod graph;
mod json;
mod modules;
mod numbers;
mod plant;
mod replay;
mod request;
mod session;
#[cfg(test)]
mod tests;
mod tex;
mod timing;
mod training;
mod view;

use std::panic::{AssertUnwindSafe, catch_unwind};

use chainrule::Tensor;
use serde_json::{Map, Value, json};

#[cfg(feature = "server")]
pub(crate) use json::number;

use crate::language::fault::{Fault, Outcome};
use algebra::Traced;
pub use view::{check, view};

pub use by_hand::HandGradients;
use by_hand::Held;
use plant::Hidden;
use request::{Args, Kept, most, session};
use session::{Session, Walked};
use training::Training;

/// Tells the present time in milliseconds, where there is a clock.
pub(crate) type Clock = Option<fn() -> f64>;

/// A program that the user's own process opened the studio with.
#[derive(Clone, Default)]
pub struct Given {
    /// The name of its file, or another title.
    pub title: String,
    /// The text of the program.
    pub text: String,
    /// The seed of its draws.
    pub seed: u64,
    /// A right backward pass by hand, to be shown when it is asked for.
    pub backward: Option<String>,
    /// The user's own backward pass by hand, which is to be checked.
    pub hand: Option<String>,
    /// The computation itself, where it was made by another program and has no text.
    pub captured: Option<Captured>,
}

/// A computation of the user's own tensors: it can be looked at and walked back.
#[derive(Clone)]
pub struct Captured {
    /// The result, from whose sum the backward pass begins.
    pub root: Tensor,
    /// Tensors with the user's names, and the lines that made them, from 1; 0 for an unknown one.
    /// Others belong to the line of the tensor that was made of them.
    pub named: Vec<(Tensor, String, usize)>,
    /// The lines of the file that made them.
    pub lines: Vec<String>,
    /// Calls of modules, each done before the next one's end: the module's name, and the numbers on
    /// the tape of the first operation in the call and of the first one behind it.
    pub modules: Vec<(String, u64, u64)>,
    /// The computation with its backward pass, once it was walked.
    pub walked: Walked,
    /// Gradients by hand.
    pub by_hand: HandGradients,
}

impl Captured {
    /// A computation of which only the result is known.
    pub fn of(root: Tensor) -> Captured {
        Captured {
            root,
            named: Vec::new(),
            lines: Vec::new(),
            modules: Vec::new(),
            walked: Walked::default(),
            by_hand: HandGradients::default(),
        }
    }

    /// Walks back now, so that pages show the gradients of this moment and wait for none. Errors
    /// if there is nothing to walk, with the reason.
    pub fn walk(&self) -> Result<(), String> {
        Session::captured(self).map(drop).map_err(|fault| fault.message)
    }
}

impl Given {
    /// The example of this name. The error lists all names.
    pub fn example(name: &str) -> Result<Given, String> {
        let example = examples::example(name).map_err(|fault| fault.message)?;
        Ok(Given {
            title: name.to_owned(),
            text: example.text.to_owned(),
            seed: example.seed,
            backward: example.backward.map(str::to_owned),
            ..Given::default()
        })
    }
}

/// An answer of the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// JSON.
    Text(String),
    /// The elements of a tensor, least bytes first: four words of 32 bits (the number of the
    /// request, the rows, the columns, and flags: 1 for means of blocks, 2 for f64 in the place of
    /// f32), and then the elements, row by row.
    Bytes(Vec<u8>),
}

/// Calls that a closed engine answers, and the arguments that they may have: numbers, and words of
/// a fixed list.
const CLOSED: [(&str, &[&str]); 15] = [
    ("own", &["given"]),
    ("values", &["given"]),
    ("claims", &["given", "claims"]),
    ("open", &["given", "seed", "most"]),
    ("backward", &["session", "most"]),
    ("tensor", &["session", "node", "of", "step", "part", "max"]),
    ("slice", &["session", "node", "of", "step", "part", "max"]),
    ("hints", &["given", "session", "seed"]),
    ("solution", &["given"]),
    ("algebra", &["given", "session", "seed"]),
    ("program", &["given", "session", "seed", "timed"]),
    ("plant", &["given", "session", "seed", "draw", "mistake"]),
    ("mistakes", &["given", "session", "seed"]),
    ("reveal", &["plant"]),
    ("guess", &["plant", "node"]),
];

/// The most values of a captured computation whose film writes fused ops out in small steps.
const WRITTEN_OUT: usize = 400;

/// The refusal to run anew what has no text.
const NO_TEXT: &str = "this computation was made by another program; its graph and its backward pass can be looked at";

/// The engine that answers a page. Each page has its own.
///
/// ```
/// use chainrule_studio::Engine;
/// let mut engine = Engine::default();
/// let answer = engine.request(
///     r#"{"id": 1, "call": "eval",
///         "args": {"source": "x = leaf(3.0)\ny = x * x", "want": ["x.grad"]}}"#,
/// );
/// assert!(answer.contains(r#""data":[6.0]"#), "{answer}");
/// ```
pub struct Engine {
    given: Vec<Given>,
    /// Whether it refuses all text of a page.
    is_closed: bool,
    sessions: Kept<Session>,
    planted: Kept<Hidden>,
    /// Values of other programs, beside which typed code is run.
    held: Kept<Held>,
    runs: Kept<Training>,
    clock: Clock,
}

impl Default for Engine {
    fn default() -> Engine {
        Engine::with(Vec::new())
    }
}

impl Engine {
    /// An engine that also knows the user's own programs.
    pub fn with(given: Vec<Given>) -> Engine {
        Engine {
            given,
            is_closed: false,
            sessions: Kept::new("session"),
            planted: Kept::new("mistake"),
            runs: Kept::new("run"),
            held: Kept::new("computation"),
            clock: system_clock(),
        }
    }

    /// Measures programs by this clock, which gives milliseconds: where the system has none of its
    /// own, as in a page.
    pub fn with_clock(self, clock: fn() -> f64) -> Engine {
        Engine { clock: Some(clock), ..self }
    }

    /// An engine that answers for the user's own programs alone and runs nothing that a page sends:
    /// calls with a program, an expression or a backward pass are refused.
    ///
    /// ```
    /// use chainrule_studio::Engine;
    /// let mut engine = Engine::closed(Vec::new());
    /// let answer = engine.request(r#"{"id": 1, "call": "open", "args": {"source": "x = 1"}}"#);
    /// assert!(answer.contains("is run in the page"), "{answer}");
    /// ```
    pub fn closed(given: Vec<Given>) -> Engine {
        Engine { is_closed: true, ..Engine::with(given) }
    }

    /// The answer to a request `{"id", "call", "args"}`: `{"id", "ok"}` or `{"id", "error"}`.
    pub fn request(&mut self, request: &str) -> String {
        let (id, answer) = match serde_json::from_str::<Value>(request) {
            Ok(request) => (request["id"].clone(), self.answer(&request)),
            Err(e) => (Value::Null, Err(Fault::request(format!("the request is no JSON: {e}")))),
        };
        let answer = match answer {
            Ok(ok) => json!({"id": id, "ok": ok}),
            Err(fault) => json!({"id": id, "error": error(&fault)}),
        };
        answer.to_string()
    }

    /// As [`Engine::request`], and the answer to `slice` as [`Reply::Bytes`]: the elements of a
    /// tensor that is looked at.
    ///
    /// ```
    /// use chainrule_studio::{Engine, Reply};
    /// let mut engine = Engine::default();
    /// engine.request(r#"{"id": 1, "call": "open", "args": {"source": "x = leaf(3.0)"}}"#);
    /// let request = r#"{"id": 2, "call": "slice", "args": {"session": 0, "node": 0}}"#;
    /// let Reply::Bytes(bytes) = engine.reply(request) else { panic!("bytes") };
    /// assert_eq!((bytes[0], &bytes[16..]), (2, &3.0f64.to_le_bytes()[..]));
    /// ```
    pub fn reply(&mut self, request: &str) -> Reply {
        match serde_json::from_str::<Value>(request) {
            Ok(of) if of["call"] == "slice" => match guarded(&of, |args| self.slice(&of, args)) {
                Ok(bytes) => Reply::Bytes(bytes),
                Err(fault) => {
                    Reply::Text(json!({"id": of["id"], "error": error(&fault)}).to_string())
                }
            },
            _ => Reply::Text(self.request(request)),
        }
    }

    fn slice(&mut self, request: &Value, args: &Args<'_>) -> Outcome<Vec<u8>> {
        if self.is_closed {
            Engine::admit("slice", args)?;
        }
        let id = request["id"].as_u64().and_then(|id| u32::try_from(id).ok());
        let id = id.ok_or_else(|| Fault::request("`slice` needs a number as its `id`"))?;
        let what = graph::Look::of(args)?;
        self.with_session(args, |session| graph::slice(session, &what, id))
    }

    fn answer(&mut self, request: &Value) -> Outcome<Value> {
        let call = request["call"].as_str().unwrap_or_default();
        guarded(request, |args| self.call(call, args))
    }

    /// Refuses what a closed engine does not answer.
    fn admit(call: &str, args: &Args<'_>) -> Outcome<()> {
        let Some((_, known)) = CLOSED.iter().find(|(name, _)| *name == call) else {
            let why = format!("`{call}` is run in the page, not by the program that serves it");
            return Err(Fault::request(why));
        };
        match args.0.iter().find(|(name, value)| {
            let is_right = match name.as_str() {
                "of" | "mistake" => value.is_string() || value.is_u64(),
                // Numbers, which are read as such.
                "claims" => value.is_object(),
                _ => value.is_u64(),
            };
            !known.contains(&name.as_str()) || !is_right
        }) {
            None => Ok(()),
            Some((name, _)) => Err(Fault::request(format!(
                "the argument `{name}` of `{call}` is run in the page, not by the program that serves it"
            ))),
        }
    }

    fn call(&mut self, call: &str, args: &Args<'_>) -> Outcome<Value> {
        if self.is_closed {
            Engine::admit(call, args)?;
        }
        match call {
            "examples" => Ok(examples::list()),
            "open" => self.open(args),
            "backward" => {
                let most = most(args);
                self.with_session(args, |session| Ok(graph::backward(session, most)))
            }
            "tensor" => {
                let request = graph::Look::of(args)?;
                self.with_session(args, |session| graph::look(session, &request))
            }
            "eval" => {
                let want: Vec<String> =
                    args.texts("want")?.into_iter().map(str::to_string).collect();
                self.with_source(args, |session| Ok(graph::evaluate(session, &want)))
            }
            "compare" => {
                let code = args.text("backward")?.to_string();
                self.with_source(args, |session| compare::compare(session, &code))
            }
            "values" => self.with_source(args, |session| by_hand::values_of(session)),
            "claims" => self.with_source(args, |session| by_hand::claimed(session, args)),
            "own" => {
                let captured = self.given(args.integer("given")?)?.captured.as_ref();
                let by_hand = captured.map(|of| of.by_hand.clone()).unwrap_or_default();
                self.with_source(args, |session| by_hand::own(session, &by_hand))
            }
            "hold" => Ok(json!({"held": self.held.keep(Held::of(args)?)})),
            "written" => Ok(self.held.get(args.integer("held")?)?.written(args.text("backward")?)),
            "hints" => self.with_source(args, |session| Ok(compare::hints(session))),
            "solution" => match args.integer("given") {
                Ok(given) => Ok(json!({"backward": self.given(given)?.backward})),
                Err(_) => {
                    let name = args.text("example")?;
                    Ok(json!({"backward": examples::example(name)?.backward}))
                }
            },
            "judge" => compare::judge(
                args.maybe_text("setup").unwrap_or_default(),
                args.text("reference")?,
                args.text("attempt")?,
                &args.texts("want")?,
                args.integer("seed").unwrap_or(1),
            ),
            "gradcheck" => {
                let leaf = args.maybe_text("leaf").map(str::to_string);
                let (text, seed) = self.source(args)?;
                checks::steps(&text, seed, leaf.as_deref())
            }
            "broadcast" => checks::broadcast(
                &args.sizes("a")?,
                &args.sizes("b")?,
                args.sizes("try_a").ok().as_deref(),
            ),
            "algebra" => self.traced(args, true)?.film(),
            "program" => {
                let clock = self.clock.filter(|_| args.integer("timed").unwrap_or(1) != 0);
                self.traced(args, false)?.listings(clock)
            }
            "plant" => {
                let draw = args.integer("draw").or_else(|_| args.integer("seed")).unwrap_or(1);
                let kind = args.maybe_text("mistake").filter(|kind| !kind.is_empty());
                let (hidden, rows) =
                    self.with_source(args, |session| plant::plant(session, draw, kind))?;
                Ok(json!({"plant": self.planted.keep(hidden), "rows": rows}))
            }
            "mistakes" => self.with_source(args, |session| Ok(plant::kinds(session))),
            "reveal" => Ok(self.planted.get(args.integer("plant")?)?.reveal()),
            "guess" => {
                let node = args.integer("node")? as usize;
                Ok(self.planted.get(args.integer("plant")?)?.guess(node))
            }
            _ => self.train(call, args),
        }
    }

    /// Calls that begin with `train.`.
    fn train(&mut self, call: &str, args: &Args<'_>) -> Outcome<Value> {
        if call == "train.start" {
            let (text, seed) = self.source(args)?;
            let training = Training::start(&text, seed, args)?;
            let parameters = training.parameters();
            return Ok(json!({"run": self.runs.keep(training), "parameters": parameters}));
        }
        let known = ["step", "rate", "checkpoint", "fork", "predict", "sample", "stop"];
        let Some(what) = call.strip_prefix("train.").filter(|what| known.contains(what)) else {
            return Err(Fault::request(format!("there is no call `{call}`")));
        };
        let number = args.integer("run")?;
        let run = self.runs.get(number)?;
        match what {
            "step" => {
                let histograms = args.0.get("histograms").and_then(Value::as_bool).unwrap_or(false);
                let events = run.steps(args.integer("count").unwrap_or(1), histograms)?;
                Ok(json!({ "events": events }))
            }
            "rate" => run.set_rate(args),
            "checkpoint" => run.checkpoint(),
            "predict" => run.predict(args),
            "sample" => run.sample(args),
            "fork" => {
                let fork = run.fork(args)?;
                Ok(json!({"run": self.runs.keep(fork)}))
            }
            _ => {
                self.runs.all.remove(&number);
                Ok(json!({}))
            }
        }
    }

    /// The function of this name, or the program that the arguments name.
    fn traced(&mut self, args: &Args<'_>, as_film: bool) -> Outcome<Traced> {
        match args.maybe_text("name") {
            Some(name) => Traced::named(name),
            None => match self.captured(args)? {
                Some((session, title)) => {
                    let in_steps = as_film && session.places.len() <= WRITTEN_OUT;
                    let as_it_ran = || Traced::replayed(&session, &title, false);
                    match in_steps {
                        // A definition that looks at values cannot be written out.
                        true => Traced::replayed(&session, &title, true).or_else(|_| as_it_ran()),
                        false => as_it_ran(),
                    }
                }
                None => {
                    let (text, seed) = self.source(args)?;
                    Traced::of(&self.title(args)?, &text, seed)
                }
            },
        }
    }

    /// The program that the arguments name, and its seed.
    fn source(&mut self, args: &Args<'_>) -> Outcome<(String, u64)> {
        let seed = args.integer("seed").unwrap_or(1);
        if let Some(text) = args.maybe_text("source") {
            return Ok((text.to_string(), seed));
        }
        if let Some(name) = args.maybe_text("example") {
            let example = examples::example(name)?;
            return Ok((example.text.to_string(), args.integer("seed").unwrap_or(example.seed)));
        }
        if let Ok(given) = args.integer("given") {
            let given = self.given(given)?;
            if given.captured.is_some() {
                return Err(Fault::request(NO_TEXT));
            }
            return Ok((given.text.clone(), args.integer("seed").unwrap_or(given.seed)));
        }
        let session = self.sessions.get(session(args)?)?;
        match session.is_captured {
            false => Ok((session.text.clone(), session.seed)),
            true => Err(Fault::request(NO_TEXT)),
        }
    }

    fn given(&self, number: u64) -> Outcome<&Given> {
        let found = usize::try_from(number).ok().and_then(|number| self.given.get(number));
        found.ok_or_else(|| Fault::request("there is no such program"))
    }

    /// The name of the program that the arguments name.
    fn title(&self, args: &Args<'_>) -> Outcome<String> {
        Ok(match (args.maybe_text("example"), args.integer("given")) {
            (Some(name), _) => name.to_string(),
            (None, Ok(given)) => self.given(given)?.title.clone(),
            _ => "program".to_string(),
        })
    }

    fn open(&mut self, args: &Args<'_>) -> Outcome<Value> {
        let session = self.session_of(args)?;
        let title = self.title(args)?;
        let mut opened = graph::open(&session, &title, most(args));
        opened["session"] = json!(self.sessions.keep(session));
        Ok(opened)
    }

    fn with_session<T>(
        &mut self,
        args: &Args<'_>,
        f: impl FnOnce(&mut Session) -> Outcome<T>,
    ) -> Outcome<T> {
        f(self.sessions.get(session(args)?)?)
    }

    /// Runs `f` on a session that is open, or on one of its own.
    fn with_source<T>(
        &mut self,
        args: &Args<'_>,
        f: impl FnOnce(&mut Session) -> Outcome<T>,
    ) -> Outcome<T> {
        let anew = ["source", "example", "given"].iter().any(|name| args.0.contains_key(*name));
        match anew {
            false => self.with_session(args, f),
            true => f(&mut self.session_of(args)?),
        }
    }

    /// The captured computation that the arguments name, if they name one, and its title.
    fn captured(&self, args: &Args<'_>) -> Outcome<Option<(Session, String)>> {
        let Ok(number) = args.integer("given") else { return Ok(None) };
        let given = self.given(number)?;
        match &given.captured {
            Some(captured)
                if !["source", "example"].iter().any(|name| args.0.contains_key(*name)) =>
            {
                Ok(Some((Session::captured(captured)?, given.title.clone())))
            }
            _ => Ok(None),
        }
    }

    /// A new session of what the arguments name.
    fn session_of(&mut self, args: &Args<'_>) -> Outcome<Session> {
        if let Some((session, _)) = self.captured(args)? {
            return Ok(session);
        }
        let (text, seed) = self.source(args)?;
        Session::of(&text, seed)
    }
}

/// The answer of `f` to the arguments of a request. A panic is a bug of the library; the page is
/// told, and the next request is answered.
fn guarded<T>(request: &Value, f: impl FnOnce(&Args<'_>) -> Outcome<T>) -> Outcome<T> {
    let none = Map::new();
    let args = Args(request["args"].as_object().unwrap_or(&none));
    catch_unwind(AssertUnwindSafe(|| f(&args))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        let call = request["call"].as_str().unwrap_or_default();
        Err(Fault::request(format!("{call} failed: {text}")))
    })
}

#[cfg(not(target_family = "wasm"))]
fn system_clock() -> Clock {
    use std::sync::LazyLock;
    use std::time::Instant;

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    Some(|| START.elapsed().as_secs_f64() * 1e3)
}

/// WebAssembly has no clock but that of its page.
#[cfg(target_family = "wasm")]
fn system_clock() -> Clock {
    None
}

/// An error with its place in the program.
pub(crate) fn error(fault: &Fault) -> Value {
    let place = |n: usize| if n == 0 { Value::Null } else { json!(n) };
    json!({
        "message": fault.message,
        "line": place(fault.at.line),
        "column": place(fault.at.column),
    })
}
