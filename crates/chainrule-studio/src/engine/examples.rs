//! Programs that the studio opens by name.

use serde_json::{Value, json};

use crate::language::fault::{Fault, Outcome};

/// A program with a name, and its backward pass by hand where one is given.
pub struct Example {
    pub name: &'static str,
    title: &'static str,
    about: &'static str,
    pub text: &'static str,
    pub backward: Option<&'static str>,
    pub seed: u64,
}

macro_rules! program {
    ($name:literal) => {
        include_str!(concat!("examples/", $name, ".py"))
    };
}

const EXAMPLES: &[Example] = &[
    Example {
        name: "neuron",
        title: "A neuron",
        about: "Two inputs, two weights, a bias and tanh, in single numbers",
        text: program!("neuron"),
        backward: Some(program!("neuron_backward")),
        seed: 1,
    },
    Example {
        name: "accumulation",
        title: "One value, used twice",
        about: "Gradients of several uses are added up",
        text: program!("accumulation"),
        backward: Some("dy = 1.0\ndx = dy + dy\n"),
        seed: 1,
    },
    Example {
        name: "linear",
        title: "A linear layer",
        about: "A product of matrices and a bias that is stretched over the rows",
        text: program!("linear"),
        backward: Some(program!("linear_backward")),
        seed: 1,
    },
    Example {
        name: "cross_entropy",
        title: "Softmax with cross-entropy",
        about: "In eleven small steps, from logits to the loss",
        text: program!("cross_entropy"),
        backward: Some(program!("cross_entropy_backward")),
        seed: 1,
    },
    Example {
        name: "batch_norm",
        title: "Batch normalisation",
        about: "The three paths from the result back to the input",
        text: program!("batch_norm"),
        backward: None,
        seed: 1,
    },
    Example {
        name: "names",
        title: "The names model",
        about: "Embedding, hidden layer, batch norm, tanh and cross-entropy, with 26 gradients",
        text: program!("names"),
        backward: Some(program!("names_backward")),
        seed: 2_147_483_647,
    },
    Example {
        name: "attention",
        title: "Causal attention",
        about: "Queries, keys and values of four positions, with a mask",
        text: program!("attention"),
        backward: None,
        seed: 1,
    },
    Example {
        name: "gpt",
        title: "A small GPT",
        about: "Two blocks of attention and a feed-forward layer, with layer norm",
        text: program!("gpt"),
        backward: None,
        seed: 1,
    },
    Example {
        name: "moons",
        title: "Two moons",
        about: "A hidden layer that separates points in the plane; made to be trained",
        text: program!("moons"),
        backward: None,
        seed: 1,
    },
];

/// The example of this name. The error lists all.
pub fn example(name: &str) -> Outcome<&'static Example> {
    EXAMPLES.iter().find(|example| example.name == name).ok_or_else(|| {
        let names: Vec<&str> = EXAMPLES.iter().map(|example| example.name).collect();
        Fault::request(format!("there is no example `{name}`; there are {}", names.join(", ")))
    })
}

/// The answer to `examples`.
pub fn list() -> Value {
    let examples: Vec<Value> = EXAMPLES
        .iter()
        .map(|e| json!({"name": e.name, "title": e.title, "about": e.about, "source": e.text, "solved": e.backward.is_some()}))
        .collect();
    let functions: Vec<Value> = chainrule_lab::formulas::formulas()
        .iter()
        .map(|f| json!({"name": f.name, "formula": f.what, "about": f.what}))
        .collect();
    let mistakes: Vec<Value> = chainrule_check::catalogue::GENERAL
        .iter()
        .map(|general| json!({"id": general.name, "words": general.what}))
        .collect();
    json!({"examples": examples, "functions": functions, "mistakes": mistakes})
}

#[cfg(test)]
pub(super) fn all() -> &'static [Example] {
    EXAMPLES
}
