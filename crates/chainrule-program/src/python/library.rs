//! The libraries that a script can be written for.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The library that a script computes with ([`Program::to_python_with`]).
///
/// ```
/// use chainrule::program::Library;
/// assert_eq!("torch".parse::<Library>()?, Library::Torch);
/// assert_eq!(Library::Jax.to_string(), "JAX");
/// # Ok::<(), chainrule::Error>(())
/// ```
///
/// [`Program::to_python_with`]: crate::Program::to_python_with
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Library {
    /// NumPy 2.
    #[default]
    Numpy,
    /// PyTorch.
    Torch,
    /// JAX, with 64-bit types enabled.
    Jax,
}

impl Library {
    /// The libraries by the words that ask for them.
    pub const ALL: [(&'static str, Library); 3] =
        [("numpy", Library::Numpy), ("torch", Library::Torch), ("jax", Library::Jax)];

    /// Lines that a script begins with.
    pub(super) fn imports(self) -> &'static str {
        match self {
            Library::Numpy => {
                "import numpy as np\n\n# Infinities and NaN are results like others.\nnp.seterr(all=\"ignore\")\n"
            }
            Library::Torch => "import torch\n",
            Library::Jax => {
                "import jax\nimport jax.numpy as jnp\n\n# Positions and counts have 64 bits.\njax.config.update(\"jax_enable_x64\", True)\n"
            }
        }
    }

    /// Source of the random numbers of a script.
    pub(super) fn generator(self) -> &'static str {
        match self {
            Library::Numpy => "NumPy's generator",
            Library::Torch => "PyTorch's generator",
            Library::Jax => "the key rng",
        }
    }

    /// A generator of random numbers, made.
    pub(super) fn seeded(self) -> &'static str {
        match self {
            Library::Numpy => "np.random.default_rng(0)",
            Library::Torch => "torch.Generator().manual_seed(0)",
            Library::Jax => "jax.random.key(0)",
        }
    }

    /// The lines that print a result.
    pub(super) fn printing(self) -> &'static str {
        match self {
            Library::Numpy => {
                "        value = np.asarray(value)\n        text = value if value.size == 1 else f\"norm {np.linalg.norm(value.ravel())}\"\n"
            }
            Library::Torch => {
                "        value = torch.as_tensor(value)\n        text = value.item() if value.numel() == 1 else f\"norm {value.double().norm()}\"\n"
            }
            Library::Jax => {
                "        value = jnp.asarray(value)\n        text = value if value.size == 1 else f\"norm {jnp.linalg.norm(value.ravel())}\"\n"
            }
        }
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Library::Numpy => "NumPy",
            Library::Torch => "PyTorch",
            Library::Jax => "JAX",
        })
    }
}

impl FromStr for Library {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        let found = Library::ALL.iter().find(|(name, _)| *name == word);
        found.map(|(_, library)| *library).ok_or_else(|| {
            let why = format!("`{word}` is no library of scripts; give numpy, torch or jax");
            Error::argument("to_python", why)
        })
    }
}
