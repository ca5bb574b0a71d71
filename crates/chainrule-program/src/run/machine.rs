//! A run, step by step.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Told;
use super::tile::Arrays;
use crate::Program;
use crate::dtype::{DType, Stored};
use crate::error::{Error, Result};
use crate::fuse::head;
use crate::ir::{Id, Instruction, Origin};
use crate::kernels::copy::scatter;
use crate::place::block::{Block, Product};
use crate::place::placement::{Action, Home, Placement, Update};
use crate::tensor::Tensor;
use crate::tensor::arena::{Arena, ArenaPlace};
use crate::tensor::buffer::{BLOCK, Buffer};
use crate::tensor::op::{Array, Epilogue, Outcome, Output, Plus, UpdateKernel};
use crate::tensor::run::{array, compute_as, output};
use crate::tensor::value::{Layout, Value};

/// The memory of a run.
pub(crate) struct Machine {
    /// By id. Values in the arena, constants and windows on them are always present.
    pub values: Vec<Option<Arc<Value>>>,
    places: Vec<Option<ArenaPlace>>,
    /// Addresses of the values that are always present; null for others.
    starts: Vec<Start>,
    /// For each step the inputs of its instruction, if they are always there.
    lasting: Vec<SmallVec<[Arc<Value>; 4]>>,
}

/// Address of a value's first byte.
#[derive(Clone, Copy)]
struct Start(*mut u8);

// SAFETY: only the run that holds the machine dereferences it.
unsafe impl Send for Start {}

/// Clears the memory plan of an op when dropped, so also when the op panics.
struct Planned;

impl Drop for Planned {
    fn drop(&mut self) {
        Buffer::unplan();
    }
}

impl Machine {
    pub fn new(program: &Program, placement: &Placement) -> Result<Machine> {
        // The arena replaces the pooled buffers that the trace left behind.
        Buffer::trim();
        let bytes = placement.size * BLOCK;
        let arena = Arena::new(placement.size).ok_or_else(|| {
            Error::argument("run", format!("there is no memory for {bytes} bytes"))
        })?;
        let arena = Arc::new(arena);
        let mut machine = Machine {
            values: Vec::new(),
            places: Vec::new(),
            starts: Vec::new(),
            lasting: Vec::new(),
        };
        for (info, home) in program.values.iter().zip(&placement.homes) {
            let place = match *home {
                Home::Arena { first, blocks } => Some(ArenaPlace::new(&arena, first, blocks)),
                _ => None,
            };
            let id = Id(machine.values.len() as u32);
            machine.values.push(match (&place, &info.from) {
                (Some(place), _) => {
                    let all = Value::placed(info.meta, place.clone()).share();
                    let layout = placement.layouts.layout(id);
                    Some(match layout.is_row_major(&info.meta.shape) {
                        true => all,
                        false => Value::view(&all, info.meta.shape, *layout).share(),
                    })
                }
                (None, Origin::Constant(value)) => Some(row_major(value)?),
                _ => None,
            });
            machine.places.push(place);
        }
        for instruction in &program.instructions {
            let id = instruction.result();
            if placement.homes[id.index()] == Home::View {
                machine.values[id.index()] = Some(machine.window(program, placement, id));
            }
        }
        for (place, value) in machine.places.iter().zip(&machine.values) {
            machine.starts.push(Start(match (place, value) {
                (Some(place), _) => place.start().cast(),
                (None, Some(value)) if value.is_contiguous() => start(value).cast_mut(),
                _ => std::ptr::null_mut(),
            }));
        }
        for action in &placement.actions {
            let inputs = match action {
                Action::Op(i) => &program.instructions[*i].inputs[..],
                _ => &[],
            };
            let all = inputs.iter().map(|id| machine.values[id.index()].clone());
            machine.lasting.push(all.collect::<Option<_>>().unwrap_or_default());
        }
        Ok(machine)
    }

    fn value(&self, id: Id) -> &Arc<Value> {
        self.values[id.index()].as_ref().expect("the check found it defined")
    }

    fn window(&self, program: &Program, placement: &Placement, id: Id) -> Arc<Value> {
        let layouts = &placement.layouts;
        let root = self.value(layouts.root(id));
        let mut layout = *layouts.layout(id);
        // An argument may itself be a view.
        layout.offset += root.layout().offset;
        Value::view(root, program.info(id).meta.shape, layout).share()
    }

    /// Sets the values that differ from run to run: arguments, parameters and cells.
    fn begin(
        &mut self,
        program: &Program,
        placement: &Placement,
        arguments: &[&Tensor],
    ) -> Result<()> {
        for (&id, argument) in program.inputs.iter().zip(arguments) {
            self.values[id.index()] = Some(row_major(&argument.value())?);
        }
        for (cell, _) in program.cells.iter().zip(&placement.read).filter(|(_, read)| **read) {
            self.values[cell.read.index()] = Some(row_major(&cell.leaf.value.get()?)?);
        }
        Ok(())
    }

    /// Runs all actions.
    pub fn run(
        &mut self,
        program: &Program,
        placement: &Placement,
        arguments: &[&Tensor],
        mut told: Told<'_>,
    ) -> Result<()> {
        self.begin(program, placement, arguments)?;
        for (at, (action, dropped)) in placement.actions.iter().zip(&placement.dropped).enumerate()
        {
            match action {
                Action::Group(block) => self.group(program, block)?,
                Action::View(i) => {
                    let id = program.instructions[*i].result();
                    self.values[id.index()] = Some(self.window(program, placement, id));
                }
                Action::Update(update) => self.update(program, update, dropped)?,
                Action::Op(i) => self.op(program, at, *i)?,
            }
            if let Some(made) = &mut told.made {
                program.tell_made(action.outputs(program), &self.values, made)?;
            }
            self.forget(dropped);
            if let Some(done) = &mut told.done {
                done(at);
            }
        }
        Ok(())
    }

    /// Forgets values that are dropped here.
    pub fn forget(&mut self, ids: &[Id]) {
        for id in ids {
            if let Some(value) = self.values[id.index()].take() {
                Value::recycle(value);
            }
        }
    }

    fn group(&mut self, program: &Program, block: &Block) -> Result<()> {
        let mut fresh: SmallVec<[(Id, Value); 4]> = SmallVec::new();
        let mut arrays = Arrays { inputs: SmallVec::new(), outputs: SmallVec::new() };
        for &id in &block.outputs {
            let mut at = self.starts[id.index()].0;
            if at.is_null() {
                let mut value = Value::uninit("program", program.info(id).meta)?;
                at = start_mut(&mut value);
                fresh.push((id, value));
            }
            arrays.outputs.push(at);
        }
        for &(id, first) in &block.inputs {
            let mut at = self.starts[id.index()].0.cast_const();
            if at.is_null() {
                at = start(self.value(id));
            }
            arrays.inputs.push(at.wrapping_add(first));
        }
        match &block.product {
            Some(product) => self.product(program, block, product, &arrays, &mut fresh)?,
            // SAFETY: all values are row-major; the plan keeps results apart from live values, and
            // results that are handed out own their buffers.
            None => unsafe { block.run(&arrays) },
        }
        for (id, value) in fresh {
            self.values[id.index()] = Some(value.share());
        }
        Ok(())
    }

    /// Runs the product that a group begins with, and the members on its elements.
    fn product(
        &self,
        program: &Program,
        block: &Block,
        product: &Product,
        arrays: &Arrays,
        fresh: &mut [(Id, Value)],
    ) -> Result<()> {
        let instruction = &program.instructions[product.head.instruction];
        let inputs: SmallVec<[&Value; 4]> =
            instruction.inputs.iter().map(|id| &**self.value(*id)).collect();
        let finish = |first, at, count| {
            // SAFETY: as for a group; the product hands on its elements, each once, from the memory
            // of the target.
            unsafe { block.stretch(arrays, product, (first, at, count)) }
        };
        let row = product.head.row.map(|(_, row)| self.value(row).row_major()).transpose()?;
        let epilogue = Epilogue {
            plus: row.as_deref().map_or(Plus::Nothing, Plus::Row),
            finish: (!block.members.is_empty()).then_some(&finish),
        };
        let target = block.outputs[0];
        let kernel = head::product(program, instruction).expect("the plan found a product");
        let outcome = match &self.places[target.index()] {
            Some(place) => {
                let mut value = Value::placed(program.info(target).meta, place.clone());
                kernel.multiply(&inputs, epilogue, &mut value)
            }
            None => {
                let found = fresh.iter_mut().find(|(id, _)| *id == target);
                let (_, value) = found.expect("what has no place is fresh");
                kernel.multiply(&inputs, epilogue, value)
            }
        };
        outcome.map_err(|e| instruction.placed(e))
    }

    fn inputs(&self, instruction: &Instruction) -> SmallVec<[Arc<Value>; 4]> {
        let mut inputs = SmallVec::new();
        for &id in &instruction.inputs {
            inputs.push(self.value(id).clone());
        }
        inputs
    }

    /// Runs step `at`, a single instruction, through its kernel; its allocations are served from
    /// the arena.
    fn op(&mut self, program: &Program, at: usize, i: usize) -> Result<()> {
        let instruction = &program.instructions[i];
        let lasting = std::mem::take(&mut self.lasting[at]);
        let loose = if lasting.is_empty() { self.inputs(instruction) } else { SmallVec::new() };
        let inputs = if lasting.is_empty() { &loose } else { &lasting };
        let places = instruction.outputs.iter().filter_map(|id| {
            let meta = program.info(*id).meta;
            let place = self.places[id.index()].clone()?;
            Some((meta.shape.numel() * meta.dtype.size(), place))
        });
        let planned = Planned;
        Buffer::plan(places);
        let meta = program.info(instruction.result()).meta;
        let outcome = compute_as(&*instruction.op, inputs, meta);
        drop(planned);
        self.lasting[at] = lasting;
        let outcome = outcome.map_err(|e| instruction.placed(e))?;
        self.settle(&instruction.outputs, outcome)
    }

    /// Moves results to their planned places where the kernel put them elsewhere.
    fn settle(&mut self, ids: &[Id], outcome: Outcome) -> Result<()> {
        let mut given: SmallVec<[Arc<Value>; 8]> = SmallVec::new();
        given.push(outcome.value);
        given.extend(outcome.extra);
        let there = |(id, value): (&Id, &Arc<Value>)| match &self.places[id.index()] {
            Some(_) => value.lies_as(self.value(*id)),
            // Outputs own their memory: no part of the arena, nor of an input.
            None => value.owns() && !value.is_planned(),
        };
        if !ids.iter().zip(&given).all(there) {
            // One result may lie where another belongs: all are copied before any is written.
            for value in &mut given {
                let copy = value.copied()?.share();
                Value::recycle(std::mem::replace(value, copy));
            }
        }
        for (id, value) in ids.iter().zip(given) {
            match &mut self.places[id.index()] {
                Some(place) => {
                    let home = self.values[id.index()].as_ref().expect("what has a place is there");
                    if !value.lies_as(home) {
                        let mut to = Value::placed(value.meta, place.clone());
                        copy(&value, &mut to, &home.layout());
                    }
                    Value::recycle(value);
                }
                None => self.values[id.index()] = Some(value),
            }
        }
        Ok(())
    }

    fn update(&mut self, program: &Program, update: &Update, dropped: &[Id]) -> Result<()> {
        let Update { instruction, product, ref places } = *update;
        let instruction = &program.instructions[instruction];
        let operands =
            product.map(|i| (&program.instructions[i], self.inputs(&program.instructions[i])));
        let run =
            |kernel: &dyn UpdateKernel, kept: &mut [&mut Arc<Value>], [g, lr]: [&Value; 2]| {
                let Some((maker, operands)) = &operands else { return kernel.update(kept, g, lr) };
                let product = head::product(program, maker).expect("the plan found a product");
                let mut add = |times, to: &mut Value| {
                    let epilogue = Epilogue { plus: Plus::Output(times), finish: None };
                    let operands: SmallVec<[&Value; 4]> = operands.iter().map(|v| &**v).collect();
                    product.multiply(&operands, epilogue, to)
                };
                kernel.descend(kept, &mut add, lr)
            };
        let outcome = program.update(instruction, places, &mut self.values, (dropped, &[]), run);
        outcome.map_err(|e| instruction.placed(e))
    }

    /// Forgets every value that differs from run to run.
    pub fn end(&mut self, placement: &Placement) {
        for (value, home) in self.values.iter_mut().zip(&placement.homes) {
            if *home == Home::Loose
                && let Some(value) = value.take()
            {
                Value::recycle(value);
            }
        }
    }
}

/// The value with its elements in row-major order, from the first on.
fn row_major(value: &Arc<Value>) -> Result<Arc<Value>> {
    value.contiguous()
}

/// The address of the first element of a row-major value.
fn start(value: &Value) -> *const u8 {
    match array(value) {
        Array::F32(x) => x.as_ptr().cast(),
        Array::F64(x) => x.as_ptr().cast(),
        Array::I64(x) => x.as_ptr().cast(),
        Array::Bool(x) => x.as_ptr(),
    }
}

fn start_mut(value: &mut Value) -> *mut u8 {
    match output(value) {
        Output::F32(x) => x.as_mut_ptr().cast(),
        Output::F64(x) => x.as_mut_ptr().cast(),
        Output::I64(x) => x.as_mut_ptr().cast(),
        Output::Bool(x) => x.as_mut_ptr(),
    }
}

/// Writes the elements in this layout.
fn copy(from: &Value, to: &mut Value, layout: &Layout) {
    fn write<T: Stored>(from: &Value, to: &mut Value, layout: &Layout) {
        let shape = *from.shape();
        match layout.is_row_major(&shape) {
            true => from.copy_to::<T>(to.elements_mut()),
            false => scatter(
                from.strided(),
                from.layout().places(),
                to.elements_mut::<T>(),
                layout.places(),
                &shape,
            ),
        }
    }
    match to.dtype() {
        DType::F32 => write::<f32>(from, to, layout),
        DType::F64 => write::<f64>(from, to, layout),
        DType::I64 => write::<i64>(from, to, layout),
        DType::Bool => write::<u8>(from, to, layout),
        other => unreachable!("no program holds {other}"),
    }
}
