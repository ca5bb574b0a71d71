//! The device that runs the steps of a training.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::{Result, anyhow};
use chainrule::Tensor;
use chainrule::gpu::{DeviceName, DeviceSession};
use chainrule::program::Program;
use chainrule::train::ProgramRunner;

use crate::args::train::Common;
use crate::output;

/// The device that was asked for; none for the processor.
pub fn runner(args: &Common, seed: u64) -> Result<Option<Box<dyn ProgramRunner>>> {
    let Some(name) = args.device.filter(|d| *d != DeviceName::Cpu) else { return Ok(None) };
    let opened = || -> chainrule::Result<DeviceSession> {
        let mut session = DeviceSession::new(name.open()?).with_seed(seed);
        session.set_precision(args.precision.unwrap_or_default())?;
        session.compare_first(true);
        Ok(session)
    };
    match opened() {
        Ok(session) => {
            if !args.json {
                let _ = output::line(&format!("the steps run on {}", session.device().describe()));
            }
            Ok(Some(Box::new(OnDevice::new(session, args.or_cpu))))
        }
        Err(e) if args.or_cpu => {
            output::complain(&format!("warning: {e}; the steps run on the processor"));
            Ok(None)
        }
        Err(e) => Err(anyhow!("{e}")),
    }
}

/// Steps of a launch where a step is one kernel: some milliseconds, so that a wish to stop is heard
/// soon.
const AT_ONCE: usize = 256;

/// Most steps of a graph of launches that are begun by one call, each before the loss of the one
/// before is there.
const AHEAD: usize = 64;

/// Seconds of them, so that a wish to stop is heard soon.
const SOON: f64 = 0.2;

struct OnDevice {
    session: DeviceSession,
    or_cpu: bool,
    /// The programs by their numbers, until their first run was like the processor's.
    new: HashMap<usize, Program>,
    /// Those whose first run was not, which the processor runs.
    here: HashMap<usize, Program>,
    /// Seconds of a step of each, as the last call took them.
    seconds: HashMap<usize, f64>,
}

impl OnDevice {
    fn new(session: DeviceSession, or_cpu: bool) -> OnDevice {
        let (new, here, seconds) = Default::default();
        OnDevice { session, or_cpu, new, here, seconds }
    }

    /// The processor's run, where it takes over after this error.
    fn fall_back(
        &mut self,
        program: usize,
        arguments: &[&Tensor],
        e: chainrule::Error,
    ) -> chainrule::Result<Vec<Tensor>> {
        let Some(plain) = self.new.remove(&program).filter(|_| self.or_cpu) else {
            return Err(e);
        };
        output::complain(&format!("warning: {e}; the steps run on the processor"));
        let results = plain.run(arguments);
        self.here.insert(program, plain);
        results
    }
}

impl ProgramRunner for OnDevice {
    fn begin(&mut self, step: u64) {
        self.session.set_runs(step);
    }

    fn load(&mut self, program: &Program) -> chainrule::Result<usize> {
        let at = self.session.load(program)?;
        self.new.insert(at, program.clone());
        Ok(at)
    }

    fn mismatch(&self, program: usize, arguments: &[&Tensor]) -> Option<String> {
        self.session.mismatch(program, arguments)
    }

    fn run(&mut self, program: usize, arguments: &[&Tensor]) -> chainrule::Result<Vec<Tensor>> {
        if let Some(here) = self.here.get(&program) {
            return here.run(arguments);
        }
        match self.session.run(program, arguments) {
            Ok(results) => {
                self.new.remove(&program);
                Ok(results)
            }
            Err(e) => self.fall_back(program, arguments, e),
        }
    }

    fn at_once(&self, program: usize) -> usize {
        if self.here.contains_key(&program) {
            return 1;
        }
        if self.session.is_persistent(program) {
            return AT_ONCE;
        }
        let seconds = self.seconds.get(&program);
        seconds.map_or(2, |each| ((SOON / each) as usize).clamp(2, AHEAD))
    }

    fn run_steps(
        &mut self,
        program: usize,
        batches: &[Vec<&Tensor>],
    ) -> chainrule::Result<Vec<Vec<Tensor>>> {
        let began = Instant::now();
        let results = self.session.run_steps(program, batches)?;
        let each = began.elapsed().as_secs_f64() / batches.len().max(1) as f64;
        self.seconds.insert(program, each.max(1e-6));
        Ok(results)
    }

    fn fetch(&mut self) -> chainrule::Result<()> {
        self.session.fetch()
    }

    fn fetch_one(&mut self, tensor: &Tensor) -> chainrule::Result<()> {
        self.session.fetch_one(tensor)
    }

    fn gives_way(&mut self, why: &chainrule::Error) -> bool {
        if self.or_cpu {
            output::complain(&format!("warning: {why}; the steps run on the processor"));
        }
        self.or_cpu
    }
}
