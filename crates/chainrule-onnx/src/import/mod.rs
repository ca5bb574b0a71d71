//! Import of ONNX models as functions over tensors.

mod attention;
mod call;
mod control;
mod conv;
mod deform;
mod elementwise;
mod index;
mod left;
mod loss;
mod make;
mod norm;
mod plan;
mod pool;
mod quant;
mod recurrent;
mod reduce;
mod resize;
mod sequence;
mod shape;
mod stored;
mod table;
mod weight;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::{Error, Result};
use chainrule_nn::nn::{Field, Module};
use prost::Message as _;

use self::plan::{Body, PlanScope, Planner};
use self::stored::Files;
use crate::proto::{DimProto, ModelProto, TensorProto, ValueInfoProto};

/// Largest file: the limit of protobuf messages.
const MOST_BYTES: u64 = (1 << 31) - 1;

/// An ONNX model that was read: a function over tensors, and a module, through which gradients flow
/// to its parameters. NodeResult by [`import`] and [`import_bytes`].
///
/// Its parameters are the float tensors of the file, by their names there: an optimizer changes
/// them. Buffers are those without a meaningful gradient: running statistics, resize factors,
/// limits of ranges, and masks, which have infinite elements. Scalars are constant.
///
/// ```
/// use chainrule::nn::Module;
/// use chainrule::{Tensor, program::Program};
/// let w = Tensor::from([0.5f32, -1.0]).parameter().named("w");
/// let x = Tensor::from([1.0f32, 2.0]);
/// let y = |args: &[Tensor]| Ok(vec![(&args[0] * &w).sum_all().named("y")]);
/// let bytes = chainrule_onnx::export(&Program::trace([("x", &x)], y)?)?.to_bytes();
///
/// let model = chainrule_onnx::import_bytes(&bytes)?;
/// let y = &model.run(&[("x", &x)])?[0];
/// assert_eq!(y.item(), -1.5);
/// y.backward();
/// let (name, w) = &model.named_parameters()[0];
/// assert_eq!((name.as_str(), w.grad().unwrap().to_vec::<f32>()), ("w", vec![1.0, 2.0]));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub struct ImportedModel {
    body: Body,
    stored: HashMap<String, Tensor>,
    inputs: Vec<InputType>,
    /// Parameters and buffers in file order; the flag says which it is.
    leaves: Vec<(String, Tensor, bool)>,
}

/// An input of a model: name, dtype, and sizes, some of which may be dynamic.
#[derive(Clone, Debug, PartialEq)]
pub struct InputType {
    /// The name in the file.
    pub name: String,
    /// Dtype, if declared.
    pub dtype: Option<DType>,
    /// Sizes, if the rank is declared; dynamic ones are `None`.
    pub sizes: Option<Vec<Option<usize>>>,
}

/// Imports a model from a file. External data are looked up beside it.
///
/// Errors name the file and the fault: it is truncated or no model, or has an unsupported op, dtype
/// or type of values.
pub fn import(path: impl AsRef<Path>) -> Result<ImportedModel> {
    let path = path.as_ref();
    let error = |why: String| Error::File { path: path.to_owned(), why };
    let about = fs::metadata(path).map_err(|e| error(e.to_string()))?;
    if !about.is_file() {
        return Err(error("this is no file".into()));
    }
    if about.len() > MOST_BYTES {
        return Err(error(format!("{} bytes are more than a model can have", about.len())));
    }
    let open = || fs::File::open(path).map_err(|e| error(e.to_string()));
    let bytes = match left::messages(open()?, about.len()) {
        Some(bytes) => bytes,
        None => fs::read(path).map_err(|e| error(e.to_string()))?,
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    read(&bytes, Files::of(folder, open()?, about.len())).map_err(|e| match e {
        Error::Argument { why, .. } => error(why),
        other => error(other.to_string()),
    })
}

/// As [`import`], from the bytes of a file without external data.
pub fn import_bytes(bytes: &[u8]) -> Result<ImportedModel> {
    read(bytes, Files::none())
}

fn read(bytes: &[u8], files: Files) -> Result<ImportedModel> {
    weight::check(bytes)?;
    let model = ModelProto::decode(bytes)
        .map_err(|e| wrong(format!("not a whole ONNX model ({e}); copy or export it again")))?;
    let ModelProto { graph, opset_import, functions, .. } = model;
    let graph = graph.ok_or_else(|| wrong("not an ONNX model: it has no graph"))?;
    let inputs: Vec<InputType> = graph.input.iter().map(input_type).collect();
    let mut planner = Planner::new(&opset_import, functions, files, bytes.len())?;
    let (body, constants) = planner.graph(graph)?;
    let fixed = body.untrained();
    let (mut stored, mut leaves) = (HashMap::new(), Vec::new());
    for (name, tensor) in constants {
        let leaf = match tensor.dtype().is_float() && tensor.rank() > 0 {
            true => {
                let trained = !fixed.contains(&name) && !has_infinite(&tensor)?;
                let leaf = if trained { tensor.parameter() } else { tensor.buffer() };
                let leaf = leaf.named(&name);
                leaves.push((name.clone(), leaf.clone(), trained));
                leaf
            }
            false => tensor,
        };
        if stored.insert(name.clone(), leaf).is_some() {
            return Err(wrong(format!("two stored tensors have the name `{name}`")));
        }
    }
    let inputs = inputs.into_iter().filter(|i| !stored.contains_key(&i.name)).collect();
    Ok(ImportedModel { body, stored, inputs, leaves })
}

/// Whether an element is infinite, without a temporary tensor unless one is NaN.
fn has_infinite(t: &Tensor) -> Result<bool> {
    if t.numel() == 0 {
        return Ok(false);
    }
    let ends = [t.try_min_all()?, t.try_max_all()?].map(|end| end.to_f64_vec());
    match ends.iter().flatten().any(|x| x.is_nan()) {
        true => Ok(t.try_isinf()?.try_to_vec::<bool>()?.contains(&true)),
        false => Ok(ends.iter().flatten().any(|x| x.is_infinite())),
    }
}

fn input_type(value: &ValueInfoProto) -> InputType {
    let tensor = value.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
    let number = tensor.and_then(|t| t.elem_type).unwrap_or(0);
    let size = |d: &DimProto| d.dim_value.and_then(|n| usize::try_from(n).ok());
    let shape = tensor.and_then(|t| t.shape.as_ref());
    InputType {
        name: value.name.clone().unwrap_or_default(),
        dtype: stored::dtype(number.into()).ok(),
        sizes: shape.map(|shape| shape.dim.iter().map(size).collect()),
    }
}

impl Module for ImportedModel {
    fn fields(&self) -> Vec<(String, Field<'_>)> {
        let fields = self.leaves.iter().map(|(name, leaf, trained)| {
            let field = if *trained { Field::Parameter(leaf) } else { Field::Buffer(leaf) };
            (name.clone(), field)
        });
        fields.collect()
    }
}

impl ImportedModel {
    /// The inputs without a value in the file.
    pub fn inputs(&self) -> &[InputType] {
        &self.inputs
    }

    /// The names of the results.
    pub fn outputs(&self) -> &[String] {
        &self.body.outputs
    }

    /// The ops of the nodes, including those in bodies of loops and branches.
    pub fn ops(&self) -> Vec<&str> {
        self.body.ops()
    }

    /// Moves the file's tensors out of the model, with names and whether each is trained; they
    /// become inputs of the model.
    #[doc(hidden)]
    pub fn hand_over(&mut self) -> Vec<(String, Tensor, bool)> {
        let all = std::mem::take(&mut self.leaves).into_iter();
        let all: Vec<_> = all.map(|(name, leaf, is)| (name, leaf.detach(), is)).collect();
        for (name, leaf, _) in &all {
            self.stored.remove(name);
            let sizes = leaf.shape().iter().map(|&d| Some(d)).collect();
            let dtype = Some(leaf.dtype());
            self.inputs.push(InputType { name: name.clone(), dtype, sizes: Some(sizes) });
        }
        all
    }

    /// The results for these inputs, in the order of [`ImportedModel::inputs`].
    ///
    /// Errors for another number of inputs, and as [`ImportedModel::run`].
    pub fn forward(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        if inputs.len() != self.inputs.len() {
            let names: Vec<&str> = self.inputs.iter().map(|i| i.name.as_str()).collect();
            let (has, names) = (inputs.len(), names.join(", "));
            return Err(wrong(format!("the model takes {names}, and gets {has} tensors")));
        }
        let names = self.inputs.iter().map(|i| i.name.as_str());
        self.run(&names.zip(inputs.iter().copied()).collect::<Vec<_>>())
    }

    /// Runs the model on inputs by name. A tensor of the file may be given too, and overrides the
    /// one there.
    ///
    /// Errors for a missing or unknown input, and for a node whose op rejects its inputs, with the
    /// name of the node.
    pub fn run(&self, inputs: &[(&str, &Tensor)]) -> Result<Vec<Tensor>> {
        let mut scope = PlanScope::new(&self.stored);
        for &(name, tensor) in inputs {
            let given = self.inputs.iter().find(|i| i.name == name);
            if given.is_none() && !self.stored.contains_key(name) {
                let known: Vec<&str> = self.inputs.iter().map(|i| i.name.as_str()).collect();
                let known = known.join(", ");
                return Err(wrong(format!("the model has no input `{name}`; it has {known}")));
            }
            let wanted = given.and_then(|i| i.dtype).filter(|&dtype| dtype != tensor.dtype());
            if let Some(wanted) = wanted {
                let has = tensor.dtype();
                return Err(wrong(format!(
                    "the input `{name}` is {wanted} in the file, not {has}"
                )));
            }
            scope.set(name, tensor.clone());
        }
        if let Some(missing) =
            self.inputs.iter().find(|i| inputs.iter().all(|(has, _)| *has != i.name))
        {
            return Err(wrong(format!("the input `{}` is missing", missing.name)));
        }
        self.body.run(scope)
    }
}

/// Names of the ONNX ops that [`import`] supports.
pub fn ops() -> impl Iterator<Item = &'static str> {
    table::known()
}

/// Reads a file with one tensor, as ONNX's tests have them.
#[doc(hidden)]
pub fn parse_tensor(bytes: &[u8]) -> Result<Tensor> {
    let proto = TensorProto::decode(bytes)
        .map_err(|e| wrong(format!("not a tensor of ONNX ({e}); copy or save it again")))?;
    stored::tensor(proto, &Files::none())
}

/// Limit on the length of a message: a name in a file may have any length.
const LONGEST: usize = 400;

/// An error about a model, in one line whatever the names in it are.
fn wrong(why: impl Into<String>) -> Error {
    let why: String = why.into();
    let shown = why.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c });
    let mut line: String = shown.take(LONGEST).collect();
    if why.chars().nth(LONGEST).is_some() {
        line.push_str("...");
    }
    Error::argument("onnx", line)
}
