//! Graphs as lists of steps, and their execution.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use chainrule_core::Tensor;
use chainrule_core::error::Result;

use prost::Message as _;

use super::call::{Call, CallAttr};
use super::stored::{self, Files};
use super::table::{Rule, rule};
use super::wrong;
use crate::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto, OperatorSetProto};

/// Limit on nested graphs.
const DEEPEST: usize = 32;

/// Newest supported opset.
const NEWEST: i64 = 28;

/// The work of a step.
enum Work {
    Rule(Rule),
    /// A function of the model.
    Function(Body),
}

/// A node.
pub(super) struct Step {
    pub op: String,
    pub name: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub attrs: HashMap<String, CallAttr>,
    pub opset: i64,
    work: Work,
    /// Values whose last use this is.
    last: Vec<String>,
}

/// A graph.
pub(super) struct Body {
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    steps: Vec<Step>,
    constants: HashMap<String, Tensor>,
}

/// Values by name, in nested scopes.
pub(super) struct PlanScope<'a> {
    values: HashMap<String, Tensor>,
    stored: &'a HashMap<String, Tensor>,
    outer: Option<&'a PlanScope<'a>>,
}

impl<'a> PlanScope<'a> {
    pub fn new(stored: &'a HashMap<String, Tensor>) -> PlanScope<'a> {
        PlanScope { values: HashMap::new(), stored, outer: None }
    }

    pub fn set(&mut self, name: &str, value: Tensor) {
        self.values.insert(name.to_owned(), value);
    }

    fn get(&self, name: &str) -> Option<&Tensor> {
        let own = self.values.get(name).or_else(|| self.stored.get(name));
        own.or_else(|| self.outer?.get(name))
    }
}

impl Body {
    /// Runs a graph in a scope with its inputs.
    pub fn run(&self, mut scope: PlanScope<'_>) -> Result<Vec<Tensor>> {
        for step in &self.steps {
            let made = step.run(&scope)?;
            if made.len() < step.outputs.len() {
                let (op, has) = (&step.op, step.outputs.len());
                return Err(step.wrong(format!("{op} gives {} results, not {has}", made.len())));
            }
            for (name, value) in step.outputs.iter().zip(made) {
                if !name.is_empty() {
                    scope.values.insert(name.clone(), value);
                }
            }
            for name in &step.last {
                scope.values.remove(name);
            }
        }
        let result = |name: &String| {
            let value = scope.get(name).cloned();
            value.ok_or_else(|| wrong(format!("the result `{name}` is made by no node")))
        };
        self.outputs.iter().map(result).collect()
    }

    /// Runs a subgraph.
    pub fn call(&self, outer: &PlanScope<'_>, inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        self.run(self.scope(Some(outer), inputs)?)
    }

    fn scope<'a>(
        &'a self,
        outer: Option<&'a PlanScope<'a>>,
        given: Vec<Tensor>,
    ) -> Result<PlanScope<'a>> {
        if given.len() > self.inputs.len() {
            let (has, takes) = (given.len(), self.inputs.len());
            return Err(wrong(format!("a graph of {takes} inputs gets {has}")));
        }
        let mut scope = PlanScope { values: HashMap::new(), stored: &self.constants, outer };
        for (name, value) in self.inputs.iter().zip(given) {
            scope.set(name, value);
        }
        Ok(scope)
    }

    /// The ops of all steps.
    pub fn ops(&self) -> Vec<&str> {
        let mut ops = Vec::new();
        for step in &self.steps {
            ops.push(step.op.as_str());
            if let Work::Function(body) = &step.work {
                ops.extend(body.ops());
            }
            for attr in step.attrs.values() {
                if let CallAttr::Graph(body) = attr {
                    ops.extend(body.ops());
                }
            }
        }
        ops
    }

    /// Values without a meaningful gradient.
    pub fn untrained(&self) -> HashSet<String> {
        let mut names = HashSet::new();
        for step in &self.steps {
            let places: &[usize] = match step.op.as_str() {
                "BatchNormalization" => &[3, 4],
                "Resize" => &[1, 2],
                "Upsample" => &[1],
                "QuantizeLinear" | "DequantizeLinear" => &[1],
                "Clip" => &[1, 2],
                "NonMaxSuppression" => &[2, 3, 4],
                _ => &[],
            };
            names.extend(places.iter().filter_map(|&i| step.inputs.get(i)).cloned());
        }
        names
    }
}

impl Step {
    fn run(&self, scope: &PlanScope<'_>) -> Result<Vec<Tensor>> {
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for name in &self.inputs {
            inputs.push(match name.is_empty() {
                true => None,
                false => Some(scope.get(name).cloned().ok_or_else(|| {
                    self.wrong(format!("its input `{name}` is made by no node before it"))
                })?),
            });
        }
        let made = match &self.work {
            Work::Rule(rule) => rule(&Call { step: self, inputs, scope }),
            Work::Function(body) => {
                let mut inner =
                    PlanScope { values: HashMap::new(), stored: &body.constants, outer: None };
                for (name, value) in body.inputs.iter().zip(inputs) {
                    if let Some(value) = value {
                        inner.set(name, value);
                    }
                }
                body.run(inner)
            }
        };
        made.map_err(|e| self.wrong(stored::why(e)))
    }

    fn wrong(&self, why: String) -> chainrule_core::error::Error {
        let shown = match self.name.is_empty() {
            true => self.outputs.first().map_or("", String::as_str),
            false => &self.name,
        };
        wrong(format!("{} `{shown}`: {why}", self.op))
    }
}

/// The builder of graphs.
pub(super) struct Planner {
    opsets: HashMap<String, i64>,
    functions: HashMap<(String, String), Arc<FunctionProto>>,
    files: Files,
    depth: usize,
    /// Remaining bytes for steps: functions that call each other could generate any number.
    left: usize,
    /// Unsupported ops, each with the name of a node.
    unknown: BTreeMap<String, String>,
}

/// Bytes of a step, without its attributes.
const STEP: usize = 512;

fn opsets(imports: &[OperatorSetProto]) -> Result<HashMap<String, i64>> {
    let mut all = HashMap::new();
    for import in imports {
        let domain = plain(import.domain.as_deref().unwrap_or_default());
        let version = import.version.unwrap_or(1);
        if domain.is_empty() && !(1..=NEWEST).contains(&version) {
            let why = format!("opset {version} of ONNX is not known; 1 to {NEWEST} are");
            return Err(wrong(why));
        }
        all.insert(domain.to_owned(), version);
    }
    Ok(all)
}

/// ONNX's default domain has two names.
fn plain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

impl Planner {
    pub fn new(
        imports: &[OperatorSetProto],
        functions: Vec<FunctionProto>,
        files: Files,
        len: usize,
    ) -> Result<Planner> {
        let key = |f: &FunctionProto| {
            let domain = plain(f.domain.as_deref().unwrap_or_default()).to_owned();
            (domain, f.name.clone().unwrap_or_default())
        };
        let functions = functions.into_iter().map(|f| (key(&f), Arc::new(f))).collect();
        let left = len.saturating_mul(64).saturating_add(4 << 20);
        let (opsets, unknown) = (opsets(imports)?, BTreeMap::new());
        Ok(Planner { opsets, functions, files, depth: 0, left, unknown })
    }

    fn charge(&mut self, bytes: usize) -> Result<()> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| {
            wrong("its functions, written out, are far larger than the file; it is hostile")
        })?;
        Ok(())
    }

    /// A graph, and its initialisers.
    pub fn graph(&mut self, graph: GraphProto) -> Result<(Body, Vec<(String, Tensor)>)> {
        if !graph.sparse_initializer.is_empty() {
            return Err(wrong("sparse tensors are not read; export the model with dense ones"));
        }
        let mut constants = Vec::new();
        for proto in graph.initializer {
            let name = proto.name.clone().unwrap_or_default();
            constants.push((name, stored::tensor(proto, &self.files)?));
        }
        let name = |v: crate::proto::ValueInfoProto| v.name.unwrap_or_default();
        let inputs: Vec<String> = graph.input.into_iter().map(name).collect();
        let outputs: Vec<String> = graph.output.into_iter().map(name).collect();
        let body = self.body(graph.node, inputs, outputs, &HashMap::new())?;
        let unknown = self.unknown.iter().map(|(op, at)| format!("{op} (at `{at}`)"));
        match unknown.collect::<Vec<_>>().as_slice() {
            [] => Ok((body, constants)),
            [op] => Err(wrong(format!("the op {op} is not known here"))),
            ops => Err(wrong(format!("the ops {} are not known here", ops.join(", ")))),
        }
    }

    fn body(
        &mut self,
        nodes: Vec<NodeProto>,
        inputs: Vec<String>,
        outputs: Vec<String>,
        given: &HashMap<String, AttributeProto>,
    ) -> Result<Body> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(wrong("its graphs and functions are nested in each other without end"));
        }
        let mut steps = Vec::with_capacity(nodes.len());
        for node in nodes {
            steps.push(self.step(node, given)?);
        }
        self.depth -= 1;
        let mut body = Body { inputs, outputs, steps, constants: HashMap::new() };
        body.find_last();
        Ok(body)
    }

    fn step(&mut self, node: NodeProto, given: &HashMap<String, AttributeProto>) -> Result<Step> {
        self.charge(STEP)?;
        let op = node.op_type.unwrap_or_default();
        let domain = plain(node.domain.as_deref().unwrap_or_default()).to_owned();
        let name = node.name.unwrap_or_default();
        let shown = if name.is_empty() { node.output.first().cloned() } else { Some(name.clone()) };
        let shown = shown.unwrap_or_default();
        let mut protos = Vec::new();
        for attribute in node.attribute {
            let own = attribute.name.clone().unwrap_or_default();
            match &attribute.ref_attr_name {
                None => protos.push((own, attribute)),
                Some(wanted) => {
                    // An attribute omitted in the call is omitted here, too.
                    if let Some(attribute) = given.get(wanted) {
                        self.charge(2 * attribute.encoded_len())?;
                        protos.push((own, attribute.clone()));
                    }
                }
            }
        }
        let key = (domain.clone(), op.clone());
        let work = match self.functions.get(&key).cloned() {
            Some(function) => {
                self.charge(2 * function.encoded_len())?;
                let given: HashMap<String, AttributeProto> = function
                    .attribute_proto
                    .iter()
                    .map(|a| (a.name.clone().unwrap_or_default(), a.clone()))
                    .chain(protos.iter().cloned())
                    .collect();
                let outer = std::mem::replace(&mut self.opsets, opsets(&function.opset_import)?);
                let f = FunctionProto::clone(&function);
                let body = self.body(f.node, f.input, f.output, &given);
                self.opsets = outer;
                Work::Function(body?)
            }
            None => Work::Rule(rule(&domain, &op).unwrap_or_else(|| {
                let of = if domain.is_empty() { String::new() } else { format!(" of {domain}") };
                // The error names all unsupported ops, with a node of each.
                self.unknown.entry(format!("{op}{of}")).or_insert_with(|| shown.clone());
                |_| Err(wrong("it is not known"))
            })),
        };
        let mut attrs = HashMap::new();
        if matches!(work, Work::Rule(_)) {
            for (name, proto) in protos {
                let attr = self.attr(proto, given);
                let attr =
                    attr.map_err(|e| wrong(format!("{op} `{shown}`: {name}: {}", stored::why(e))))?;
                attrs.insert(name, attr);
            }
        }
        let opset = self.opsets.get(&domain).copied().unwrap_or(1);
        let (inputs, outputs, last) = (node.input, node.output, Vec::new());
        Ok(Step { op, name, inputs, outputs, attrs, opset, work, last })
    }

    fn attr(
        &mut self,
        proto: AttributeProto,
        given: &HashMap<String, AttributeProto>,
    ) -> Result<CallAttr> {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        // Files before IR version 3 have no type.
        let guess = match () {
            () if proto.f.is_some() => 1,
            () if proto.i.is_some() => 2,
            () if proto.s.is_some() => 3,
            () if proto.t.is_some() => 4,
            () if proto.g.is_some() => 5,
            () if !proto.floats.is_empty() => 6,
            () if !proto.strings.is_empty() => 8,
            () => 7,
        };
        Ok(match proto.r#type.filter(|&kind| kind != 0).unwrap_or(guess) {
            1 => CallAttr::Float(proto.f.unwrap_or_default().into()),
            2 => CallAttr::Int(proto.i.unwrap_or_default()),
            3 => CallAttr::Text(text(proto.s.unwrap_or_default())),
            4 => {
                let tensor = proto.t.ok_or_else(|| wrong("its tensor is missing"))?;
                CallAttr::Tensor(stored::tensor(*tensor, &self.files)?)
            }
            5 => {
                let graph = *proto.g.ok_or_else(|| wrong("its graph is missing"))?;
                CallAttr::Graph(self.inner(graph, given)?)
            }
            6 => CallAttr::Floats(proto.floats.iter().map(|&x| x.into()).collect()),
            7 => CallAttr::Ints(proto.ints),
            8 => CallAttr::Texts(proto.strings.into_iter().map(text).collect()),
            kind => return Err(wrong(format!("parameters of kind {kind} are not known"))),
        })
    }

    /// The subgraph of a branch or a loop.
    fn inner(
        &mut self,
        graph: GraphProto,
        given: &HashMap<String, AttributeProto>,
    ) -> Result<Body> {
        let mut constants = HashMap::new();
        for proto in graph.initializer {
            let name = proto.name.clone().unwrap_or_default();
            constants.insert(name, stored::tensor(proto, &self.files)?);
        }
        let name = |v: crate::proto::ValueInfoProto| v.name.unwrap_or_default();
        let inputs = graph.input.into_iter().map(name).collect();
        let outputs = graph.output.into_iter().map(name).collect();
        let mut body = self.body(graph.node, inputs, outputs, given)?;
        body.constants = constants;
        Ok(body)
    }
}

impl Body {
    /// Computes last uses, at which values are dropped. A subgraph may read any value.
    fn find_last(&mut self) {
        let mut seen: HashSet<&str> = self.outputs.iter().map(String::as_str).collect();
        let has_inner =
            |step: &Step| step.attrs.values().any(|attr| matches!(attr, CallAttr::Graph(_)));
        let from = self.steps.iter().rposition(has_inner).map_or(0, |i| i + 1);
        let mut last: Vec<Vec<String>> = Vec::new();
        for step in self.steps[from..].iter().rev() {
            let mut here = Vec::new();
            for name in step.inputs.iter().chain(&step.outputs) {
                if !name.is_empty() && seen.insert(name) {
                    here.push(name.clone());
                }
            }
            last.push(here);
        }
        for (step, last) in self.steps[from..].iter_mut().rev().zip(last) {
            step.last = last;
        }
    }
}
