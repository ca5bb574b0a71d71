//! Ranks of a training, for `chainrule.distributed`.

use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chainrule::Tensor;
use chainrule::exchange::{
    Exchange, ExchangeError, Launch, RankSum, SumTree, Tcp, TcpOptions, Threads, Values, agree,
};
use chainrule::train::rank_values;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::run;
use crate::tensor::PyTensor;

/// The way to the other ranks.
#[pyclass(name = "Exchange", module = "chainrule._chainrule", frozen)]
pub struct PyExchange {
    rank: usize,
    size: usize,
    exchange: Mutex<Box<dyn Exchange>>,
    signals: Signals,
}

/// The error of a signal, such as Ctrl-C, that came while this rank waited for others.
#[derive(Clone, Default)]
struct Signals(Arc<Mutex<Option<PyErr>>>);

impl Signals {
    /// A reason to wait no longer.
    fn look(&self) -> Option<String> {
        let error = Python::attach(|py| py.check_signals()).err()?;
        let why = error.to_string();
        *self.kept() = Some(error);
        Some(format!("is waited for no longer: {why}"))
    }

    fn kept(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The signal's error in the place of the one that it was told by.
    fn raised(&self, e: ExchangeError) -> PyErr {
        self.kept().take().unwrap_or_else(|| raised(e))
    }
}

fn raised(e: ExchangeError) -> PyErr {
    match e {
        ExchangeError::Settings(why) => PyValueError::new_err(why),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

impl PyExchange {
    fn new(exchange: Box<dyn Exchange>, signals: Signals) -> PyExchange {
        let (rank, size) = (exchange.rank(), exchange.size());
        PyExchange { rank, size, exchange: Mutex::new(exchange), signals }
    }

    /// Does this without the interpreter's lock, which other threads have meanwhile.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut dyn Exchange) -> Result<T, ExchangeError> + Send,
    ) -> PyResult<T> {
        py.detach(|| act(&mut **self.lock())).map_err(|e| self.signals.raised(e))
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn Exchange>> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyExchange {
    /// The number of this rank, from 0.
    #[getter]
    fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    /// The bytes of all ranks, in their order.
    fn all_gather<'py>(&self, py: Python<'py>, own: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let own = own.to_vec();
        let all = self.wait(py, |exchange| exchange.all_gather(&own))?;
        Ok(all.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }

    /// Returns when all ranks are here.
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        self.wait(py, |exchange| exchange.barrier())
    }

    /// Tells the other ranks why this one ends.
    fn abort(&self, py: Python<'_>, why: &str) {
        py.detach(|| self.lock().abort(why));
    }

    /// An error unless all ranks have these texts alike.
    fn agree(&self, py: Python<'_>, facts: Vec<(String, String)>) -> PyResult<()> {
        let given = facts.iter().map(|(n, v)| (&n[..], &v[..]));
        let own = rank_values::facts_of_the_program();
        let facts: Vec<(&str, &str)> = own.iter().map(|(n, v)| (*n, &v[..])).chain(given).collect();
        self.wait(py, |exchange| agree(exchange, &facts))
    }

    /// The numbers of this rank's parts among so many.
    fn share(&self, parts: usize) -> PyResult<(usize, usize)> {
        let share =
            RankSum::new(SumTree::new(parts), &**self.lock(), Vec::new()).map_err(raised)?.share();
        Ok((share.start, share.end))
    }

    /// The sums over all parts of all ranks, of which these are the own ones.
    fn sum(
        &self,
        py: Python<'_>,
        parts: usize,
        own: Vec<Vec<Bound<'_, PyTensor>>>,
    ) -> PyResult<Vec<PyTensor>> {
        let like: Vec<Tensor> =
            own.first().into_iter().flatten().map(|t| t.get().tensor()).collect();
        let values = |t: &Bound<'_, PyTensor>| run(|| rank_values::values(&t.get().tensor()));
        let own: Vec<Vec<Values>> = own
            .iter()
            .map(|part| part.iter().map(values).collect::<PyResult<_>>())
            .collect::<PyResult<_>>()?;
        let layouts = like.iter().map(rank_values::layout).collect();
        let total = self.wait(py, |exchange| {
            let mut sum = RankSum::new(SumTree::new(parts), exchange, layouts)?;
            own.into_iter().try_for_each(|part| sum.push(part))?;
            sum.all_reduce(exchange)
        })?;
        total
            .into_iter()
            .zip(&like)
            .map(|(v, t)| Ok(run(|| rank_values::tensor(&v, t))?.into()))
            .collect()
    }
}

/// Joins the ranks that a launcher has started; this process alone without one.
#[pyfunction]
pub fn _exchange_join(py: Python<'_>, timeout: f64, start: f64) -> PyResult<PyExchange> {
    let seconds = |name: &str, given: f64| {
        Duration::try_from_secs_f64(given)
            .ok()
            .filter(|t| *t >= Duration::from_millis(100))
            .ok_or_else(|| PyValueError::new_err(format!("init: {name} is seconds, 0.1 at least")))
    };
    let options =
        TcpOptions { timeout: seconds("timeout", timeout)?, start: seconds("start", start)? };
    let signals = Signals::default();
    let of = signals.clone();
    let joined = py.detach(|| -> Result<Box<dyn Exchange>, ExchangeError> {
        match Launch::from_env()? {
            Some(launch) => {
                let watch = Arc::new(move || of.look());
                Ok(Box::new(Tcp::join_watched(&launch, options, watch)?))
            }
            None => match Threads::group(1).pop() {
                Some(alone) => Ok(Box::new(alone)),
                None => Err(ExchangeError::Settings("no rank".into())),
            },
        }
    });
    let joined = joined.map_err(|e| signals.raised(e))?;
    Ok(PyExchange::new(joined, signals))
}

/// Ranks that an object of Python joins: an `mpi4py` communicator, or another with its `alltoall`.
#[pyfunction]
pub fn _exchange_over(communicator: Bound<'_, PyAny>) -> PyResult<PyExchange> {
    let number = |name: &str| communicator.call_method0(name)?.extract::<usize>();
    let (rank, size) = (number("Get_rank")?, number("Get_size")?);
    if rank >= size {
        return Err(PyValueError::new_err(format!(
            "init: rank {rank} of a communicator of {size}"
        )));
    }
    let over = OfPython { rank, size, communicator: communicator.unbind() };
    Ok(PyExchange::new(Box::new(over), Signals::default()))
}

struct OfPython {
    rank: usize,
    size: usize,
    communicator: Py<PyAny>,
}

impl Exchange for OfPython {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_to_all(&mut self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, ExchangeError> {
        let done = Python::attach(|py| -> PyResult<Vec<Vec<u8>>> {
            let parts: Vec<_> = parts.iter().map(|part| PyBytes::new(py, part)).collect();
            let got = self.communicator.bind(py).call_method1("alltoall", (parts,))?;
            got.try_iter()?.map(|part| Ok(part?.cast::<PyBytes>()?.as_bytes().to_vec())).collect()
        });
        match done {
            Ok(parts) if parts.len() == self.size => Ok(parts),
            Ok(parts) => Err(ExchangeError::Settings(format!(
                "the communicator gave {} parts for {} ranks",
                parts.len(),
                self.size
            ))),
            Err(e) => Err(ExchangeError::Settings(format!("the communicator failed: {e}"))),
        }
    }

    /// Ends all ranks with the reason, as MPI does where one fails: at its end a process would wait
    /// for the others, and they for it.
    fn abort(&mut self, why: &str) {
        Python::attach(|py| {
            let communicator = self.communicator.bind(py);
            if self.size > 1 && communicator.hasattr("Abort").unwrap_or(false) {
                let text = format!("error: rank {} of {}: {why}\n", self.rank, self.size);
                // One write: `eprintln` makes several, between which other ranks write.
                let _ = std::io::stderr().write_all(text.as_bytes());
                // If it fails, the launcher does the same when this process ends.
                let _ = communicator.call_method1("Abort", (1,));
            }
        });
    }
}
