//! Language models that others published, and names of weights by a table.

use chainrule::formats::NameMap;
use chainrule::models::{FineTuning, Generation, TextModel};
use pyo3::prelude::*;

use crate::error::run;
use crate::tensor::PyTensor;

/// A model with its tokenizer.
#[pyclass(name = "TextModel", module = "chainrule._chainrule", frozen)]
pub struct PyTextModel(TextModel);

#[pymethods]
impl PyTextModel {
    #[new]
    fn new(py: Python<'_>, folder: std::path::PathBuf, mmap: bool) -> PyResult<PyTextModel> {
        let open = || match mmap {
            true => TextModel::open_mapped(folder),
            false => TextModel::open(folder),
        };
        py.detach(|| run(open)).map(PyTextModel)
    }

    fn kind(&self) -> String {
        self.0.kind().to_owned()
    }

    fn sizes(&self) -> (usize, usize) {
        (self.0.model().vocabulary(), self.0.model().context())
    }

    fn encode(&self, text: &str, around: bool) -> PyResult<Vec<i64>> {
        run(|| self.0.tokenizer().encode(text, around))
    }

    fn prompt(&self, text: &str) -> PyResult<Vec<i64>> {
        run(|| self.0.prompt(text))
    }

    fn decode(&self, tokens: Vec<i64>) -> PyResult<String> {
        run(|| self.0.tokenizer().decode(&tokens))
    }

    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn generate(
        &self,
        py: Python<'_>,
        prompt: Vec<i64>,
        length: usize,
        temperature: f64,
        top_k: Option<usize>,
        seed: u64,
        cache: bool,
        ends: bool,
    ) -> PyResult<Vec<i64>> {
        let options = Generation { length, temperature, top_k, seed, cache, ends, stops: vec![] };
        py.detach(|| run(|| self.0.generate_tokens(&prompt, &options, |_| Ok(()))))
    }

    fn logits(&self, tokens: &PyTensor) -> PyResult<PyTensor> {
        run(|| self.0.model().logits(&tokens.tensor())).map(Into::into)
    }

    fn loss(&self, tokens: &PyTensor) -> PyResult<PyTensor> {
        run(|| self.0.model().loss(&tokens.tensor())).map(Into::into)
    }

    fn named_parameters(&self) -> Vec<(String, PyTensor)> {
        let all = self.0.model().named_parameters();
        all.into_iter().map(|(name, tensor)| (name, tensor.into())).collect()
    }

    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn fine_tune(
        &self,
        py: Python<'_>,
        tokens: Vec<i64>,
        steps: usize,
        batch: usize,
        context: usize,
        lr: f64,
        weight_decay: f64,
        clip: f64,
        seed: u64,
    ) -> PyResult<Vec<f64>> {
        let options = FineTuning { steps, batch, context, lr, weight_decay, clip, seed };
        let mut losses = Vec::new();
        py.detach(|| {
            run(|| {
                self.0.fine_tune(&tokens, &options, |step| {
                    losses.push(step.loss);
                    Ok(())
                })
            })
        })?;
        Ok(losses)
    }

    fn save(&self, py: Python<'_>, folder: std::path::PathBuf) -> PyResult<()> {
        py.detach(|| run(|| self.0.save(folder)))
    }
}

/// The new name of each name, and whether its matrix is transposed; none for what is left out.
#[pyfunction]
pub fn _names_mapped(rules: &str, names: Vec<String>) -> PyResult<Vec<Option<(String, bool)>>> {
    run(|| {
        let map = NameMap::parse(rules)?;
        let new = names.iter().map(|name| map.rename(name));
        new.map(|new| Ok(new?.map(|new| (new.name, new.transposed)))).collect()
    })
}
