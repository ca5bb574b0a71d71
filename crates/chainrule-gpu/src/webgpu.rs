//! A GPU by the system's graphics library: Vulkan, Metal or Direct3D 12.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll, Waker};

use chainrule_core::error::Result;
use wgpu::{Backends, BufferUsages, Limits, PollType};

use crate::device::{Device, DeviceCode, DeviceGraph, DeviceMemory, DeviceWork, fault};
use crate::dialect::Dialect;
use crate::module::{DeviceLaunch, KernelModule};

/// Blocks along an axis of a launch, at most.
const ALONG: usize = 65535;

/// Launches in one submission of many steps, so that none blocks the screen for long.
const LONGEST: usize = 512;

/// The first error that nobody was waiting for, and whether the device was lost.
type Faults = Arc<Mutex<Option<String>>>;

/// A GPU by the system's graphics library.
pub(crate) struct WebGpu {
    name: String,
    device: wgpu::Device,
    queue: wgpu::Queue,
    limits: Limits,
    faults: Faults,
    /// By the numbers of their memory; none where it was given back.
    buffers: Vec<Option<wgpu::Buffer>>,
    modules: Vec<Vec<Pipeline>>,
    graphs: Vec<Vec<Recorded>>,
    /// A buffer for reads, as large as the largest read so far.
    staging: Option<wgpu::Buffer>,
}

/// A kernel that can be launched.
struct Pipeline {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
    blocks: usize,
}

enum Recorded {
    Launch { pipeline: wgpu::ComputePipeline, group: wgpu::BindGroup, blocks: usize },
    Copy { from: wgpu::Buffer, to: wgpu::Buffer, begins: [u64; 2], bytes: u64 },
}

/// The result of a future of this library, which is ready at once or after a poll or two.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(out) => return out,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

/// The first line of a message.
fn line(text: &impl ToString) -> String {
    let text = text.to_string();
    let parts = text.lines().map(str::trim).filter(|l| !l.is_empty());
    parts.take(3).collect::<Vec<_>>().join(": ")
}

impl WebGpu {
    /// The adapter of this number; hardware comes before software.
    pub fn open(number: usize) -> Result<WebGpu> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: Backends::VULKAN | Backends::METAL | Backends::DX12,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let mut adapters = ready(instance.enumerate_adapters(Backends::all()));
        let rank = |a: &wgpu::Adapter| match a.get_info().device_type {
            wgpu::DeviceType::DiscreteGpu => 0,
            wgpu::DeviceType::IntegratedGpu | wgpu::DeviceType::VirtualGpu => 1,
            _ => 2,
        };
        adapters.sort_by_key(rank);
        let count = adapters.len();
        let Some(adapter) = adapters.into_iter().nth(number) else {
            return Err(fault(match count {
                0 => "there is no GPU that Vulkan, Metal or Direct3D 12 knows; install its driver \
                      (or Mesa's lavapipe, which is software), or train with --device cpu"
                    .into(),
                1 => format!("there is no wgpu:{number}; the only one is wgpu:0"),
                n => format!("there is no wgpu:{number}; they are wgpu:0 to wgpu:{}", n - 1),
            }));
        };
        let info = adapter.get_info();
        let name = format!("wgpu:{number} ({}, {:?})", info.name, info.backend);
        let limits = adapter.limits();
        let described = wgpu::DeviceDescriptor {
            label: Some("chainrule"),
            required_limits: limits.clone(),
            ..Default::default()
        };
        let (device, queue) = ready(adapter.request_device(&described))
            .map_err(|e| fault(format!("{name} cannot be used: {}", line(&e))))?;
        let faults = Faults::default();
        let (uncaptured, lost) = (faults.clone(), faults.clone());
        device
            .on_uncaptured_error(Arc::new(move |e: wgpu::Error| note(&uncaptured, explained(&e))));
        device.set_device_lost_callback(move |_, why| {
            note(&lost, format!("the device was lost: {}", line(&why)));
        });
        let (buffers, modules, graphs, staging) = Default::default();
        Ok(WebGpu { name, device, queue, limits, faults, buffers, modules, graphs, staging })
    }

    /// The first error since the last call of this.
    fn check(&self) -> Result<()> {
        let found = self.faults.lock().unwrap_or_else(PoisonError::into_inner).take();
        found.map_or(Ok(()), |why| Err(fault(format!("{}: {why}", self.name))))
    }

    fn buffer(&self, memory: DeviceMemory) -> Result<&wgpu::Buffer> {
        let found = self.buffers.get(memory.0).and_then(Option::as_ref);
        found.ok_or_else(|| fault("memory that was given back is used".into()))
    }

    /// A new buffer, if there is room for it.
    fn create(&self, bytes: u64, usage: BufferUsages) -> Result<wgpu::Buffer> {
        let full = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let size = bytes.next_multiple_of(4).max(4);
        let described =
            wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        let buffer = self.device.create_buffer(&described);
        match ready(full.pop()) {
            None => self.check().map(|()| buffer),
            Some(_) => Err(fault(format!("the memory of {} is full", self.name))),
        }
    }

    /// A kernel of a module, compiled.
    fn pipeline(&self, text: &str, name: &str, reads: usize, count: usize) -> Result<Pipeline> {
        let most = self.limits.max_storage_buffers_per_shader_stage as usize;
        if count > most {
            let own = &self.name;
            return Err(fault(format!("{own}: `{name}` takes {count} buffers, it has {most}")));
        }
        let source = wgpu::ShaderSource::Wgsl(Cow::Owned(format!("{}{text}", crate::WGSL_PRELUDE)));
        let described = wgpu::ShaderModuleDescriptor { label: Some(name), source };
        let shader = self.device.create_shader_module(described);
        let entry = |i: usize| wgpu::BindGroupLayoutEntry {
            binding: i as u32,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only: i < reads },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let entries: Vec<_> = (0..count).map(entry).collect();
        let layout = self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &entries,
        });
        let whole = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(name),
            layout: Some(&whole),
            module: &shader,
            entry_point: Some(name),
            compilation_options: wgpu::PipelineCompilationOptions {
                // A block begins by writing its shared memory, so nothing is read before that.
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        });
        Ok(Pipeline { pipeline, layout, blocks: 0 })
    }
}

fn note(faults: &Faults, why: String) {
    let mut first = faults.lock().unwrap_or_else(PoisonError::into_inner);
    first.get_or_insert(why);
}

fn explained(e: &wgpu::Error) -> String {
    match e {
        wgpu::Error::OutOfMemory { .. } => "its memory is full".to_string(),
        wgpu::Error::Validation { description, .. } | wgpu::Error::Internal { description, .. } => {
            line(description)
        }
    }
}

impl Device for WebGpu {
    fn describe(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        Dialect::Wgsl
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory> {
        let most = self.limits.max_storage_buffer_binding_size.min(self.limits.max_buffer_size);
        if bytes as u64 > most {
            let (name, mib) = (&self.name, most >> 20);
            return Err(fault(format!("{name} has at most {mib} MiB for one value")));
        }
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        let buffer = self.create(bytes as u64, usage)?;
        self.buffers.push(Some(buffer));
        Ok(DeviceMemory(self.buffers.len() - 1))
    }

    fn free(&mut self, memory: DeviceMemory) {
        if let Some(buffer) = self.buffers.get_mut(memory.0).and_then(Option::take) {
            buffer.destroy();
        }
    }

    fn write(&mut self, to: DeviceMemory, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.queue.write_buffer(self.buffer(to)?, 0, bytes);
        self.check()
    }

    fn read(&mut self, from: DeviceMemory, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let size = bytes.len() as u64;
        let staging = match self.staging.take().filter(|s| s.size() >= size) {
            Some(staging) => staging,
            None => self.create(size, BufferUsages::MAP_READ | BufferUsages::COPY_DST)?,
        };
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(self.buffer(from)?, 0, &staging, 0, size);
        self.queue.submit([encoder.finish()]);
        let (tell, told) = mpsc::channel();
        staging.map_async(wgpu::MapMode::Read, 0..size, move |mapped| drop(tell.send(mapped)));
        self.wait()?;
        let mapped = told.try_recv().map_err(|_| fault(format!("{}: no answer", self.name)))?;
        mapped.map_err(|e| fault(format!("{}: {}", self.name, line(&e))))?;
        let view = staging.get_mapped_range(0..size);
        let view = view.map_err(|e| fault(format!("{}: {}", self.name, line(&e))))?;
        bytes.copy_from_slice(&view);
        drop(view);
        staging.unmap();
        self.staging = Some(staging);
        Ok(())
    }

    fn module(&mut self, module: &KernelModule) -> Result<DeviceCode> {
        let mut all: Vec<Pipeline> = Vec::with_capacity(module.launches.len());
        let mut made: HashMap<&str, usize> = HashMap::new();
        for (i, l) in module.launches.iter().filter_map(DeviceLaunch::kernel).enumerate() {
            if let Some(Pipeline { pipeline, layout, .. }) =
                made.get(l.name.as_str()).and_then(|&same: &usize| all.get(same))
            {
                let (pipeline, layout) = (pipeline.clone(), layout.clone());
                all.push(Pipeline { pipeline, layout, blocks: l.blocks });
                continue;
            }
            made.insert(&l.name, i);
            let (count, reads) = (l.arguments.len(), l.arguments.len() - l.written);
            let mut pipeline = self.pipeline(&l.text, &l.name, reads, count)?;
            self.check()?;
            pipeline.blocks = l.blocks;
            all.push(pipeline);
        }
        self.modules.push(all);
        Ok(DeviceCode(self.modules.len() - 1))
    }

    fn forget(&mut self, code: DeviceCode) {
        self.modules[code.0].clear();
    }

    fn release(&mut self, graph: DeviceGraph) {
        self.graphs[graph.0].clear();
    }

    fn graph(&mut self, work: Vec<DeviceWork>) -> Result<DeviceGraph> {
        let mut all = Vec::with_capacity(work.len());
        for piece in work {
            all.push(match piece {
                DeviceWork::Launch { code, place, arguments } => {
                    let kernel = &self.modules[code.0][place];
                    let buffers =
                        arguments.iter().map(|&m| self.buffer(m)).collect::<Result<Vec<_>>>()?;
                    let resources = buffers.iter().map(|b| b.as_entire_binding());
                    let entries: Vec<_> = (0u32..)
                        .zip(resources)
                        .map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource })
                        .collect();
                    let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                        label: None,
                        layout: &kernel.layout,
                        entries: &entries,
                    });
                    let pipeline = kernel.pipeline.clone();
                    Recorded::Launch { pipeline, group, blocks: kernel.blocks }
                }
                DeviceWork::Product { .. } => {
                    return Err(fault(format!("{} has no library of products", self.name)));
                }
                DeviceWork::Copy { from, to, begins, bytes } => Recorded::Copy {
                    from: self.buffer(from)?.clone(),
                    to: self.buffer(to)?.clone(),
                    begins: begins.map(|b| b as u64),
                    bytes: (bytes as u64).next_multiple_of(4),
                },
            });
        }
        self.check()?;
        self.graphs.push(all);
        Ok(DeviceGraph(self.graphs.len() - 1))
    }

    fn longest(&self) -> usize {
        LONGEST
    }

    fn launch(&mut self, graph: DeviceGraph) -> Result<()> {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut work = self.graphs[graph.0].iter().peekable();
        while let Some(next) = work.peek() {
            if let Recorded::Copy { from, to, begins: [first, second], bytes } = next {
                encoder.copy_buffer_to_buffer(from, *first, to, *second, *bytes);
                work.next();
                continue;
            }
            let mut pass = encoder.begin_compute_pass(&Default::default());
            while let Some(Recorded::Launch { pipeline, group, blocks }) = work.peek() {
                pass.set_pipeline(pipeline);
                pass.set_bind_group(0, group, &[]);
                pass.dispatch_workgroups(
                    (*blocks).min(ALONG) as u32,
                    blocks.div_ceil(ALONG) as u32,
                    1,
                );
                work.next();
            }
        }
        self.queue.submit([encoder.finish()]);
        self.check()
    }

    fn wait(&mut self) -> Result<()> {
        let polled = self.device.poll(PollType::wait_indefinitely());
        self.check()?;
        polled.map(|_| ()).map_err(|e| fault(format!("{}: {}", self.name, line(&e))))
    }
}
