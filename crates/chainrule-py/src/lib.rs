//! The native part of the Python package: tensors, ops and what runs them. The typed layer in
//! `python/chainrule/` is what people import.
//!
//! A file for each subject: the class `Tensor` (`tensor`), arguments (`args`), functions and
//! methods from the table of ops (`ops`), operators (`elementwise`), ops whose Python form is
//! special (`reducing`, `shaping`, `indexing`, `linalg`, `fused`), making tensors (`create`),
//! gradients (`derive`), optimizers, programs and checks (`train`), trainings that do not learn
//! (`diagnose`), ranks (`distributed`), the `monitor`, the page (`studio`), memory of others
//! (`interchange`, `dlpack`), exceptions (`error`) and their texts (`words`), handles that alias
//! (`alias`), a function while it is traced (`session`), what must hold before a program runs
//! (`ready`), the place in the user's code (`script`) and those of the nodes of tapes (`places`).
//! Nothing here knows mathematics: it all goes to the library.

#![allow(unsafe_op_in_unsafe_fn, reason = "PyO3 writes such functions inside the macros here")]

mod alias;
mod args;
mod complex;
mod create;
#[cfg(feature = "linalg")]
mod decompositions;
mod derive;
mod device;
mod diagnose;
mod distributed;
mod dlpack;
mod elementwise;
mod error;
mod fused;
mod handle;
mod indexing;
mod interchange;
mod laid;
mod laws;
mod linalg;
mod models;
mod monitor;
mod onnx;
mod ops;
mod optimizer;
mod places;
mod ready;
mod reducing;
mod script;
mod session;
mod shaping;
mod spent;
mod studio;
mod tensor;
mod train;
mod variables;
mod weights;
mod words;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

static SIZE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The class of shapes, which the Python layer defines.
fn size_class<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    let class = SIZE.get_or_try_init(py, || {
        PyResult::Ok(py.import("chainrule._size")?.getattr("Size")?.unbind())
    })?;
    Ok(class.bind(py))
}

#[pymodule]
fn _chainrule(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    chainrule_core::tensor::place::lines_are_of_a_script(places::line_of);
    error::silence_panics();
    m.add("GradientError", py.get_type::<error::GradientError>())?;
    m.add("InternalError", py.get_type::<error::InternalError>())?;
    m.add_class::<tensor::PyTensor>()?;
    m.add_class::<derive::Handle>()?;
    m.add_class::<args::PyDType>()?;
    m.add_class::<create::PyGenerator>()?;
    m.add_class::<optimizer::PyOptimizer>()?;
    m.add_class::<train::PyProgram>()?;
    m.add_class::<models::PyTextModel>()?;
    m.add_class::<monitor::PyMonitor>()?;
    m.add_class::<studio::UnwatchedRun>()?;
    m.add_class::<monitor::CountedSteps>()?;
    m.add_class::<monitor::MonitorLook>()?;
    m.add_class::<monitor::Sight>()?;
    m.add_class::<monitor::WholeSight>()?;
    m.add_class::<monitor::ForeignSight>()?;
    m.add_class::<distributed::PyExchange>()?;
    m.add_class::<studio::PyStudio>()?;
    m.add_class::<onnx::PyOnnxModel>()?;
    m.add_class::<session::Met>()?;
    m.add_class::<alias::ViewPath>()?;
    m.add_class::<ready::Watched>()?;
    m.add_class::<ready::Conditions>()?;
    macro_rules! functions {
        ($($module:ident: $($name:ident)*;)*) => {$($(m.add_function(wrap_pyfunction!($module::$name, m)?)?;)*)*};
    }
    functions! {
        error: _panic;
        args: _dtype _promoted get_default_dtype set_default_dtype;
        session: _session_begin _session_end _session_on _session_stepped _session_walked _session_twins _uses_begin _uses_end;
        create: tensor _full _arange _linspace _manual_seed _default_generator _rng_state _set_rng_state _rand _randn _randint _randperm _multinomial _dropout _cat _stack _meshgrid
            _broadcast_tensors _einsum _where;
        laws: _law_draws;
        interchange: from_numpy;
        distributed: _exchange_join _exchange_over;
        dlpack: _from_dlpack;
        fused: _instance_norm _batch_norm_train _batch_norm_eval _conv _conv_transpose _pool _adaptive_pool _pad _interpolate
            _attention _addmm _lstm_step;
        ops: _function_of _bindings _by_hand;
        device: _device _devices_fetch _first_not_finite _lose;
        derive: _grad _jvp _leads_beside _apply_custom op_table set_num_threads get_num_threads _memory_trim _memory_statistics
            _safetensors_load _safetensors_save _set_grad_enabled is_grad_enabled _set_record_all _set_check_nan
            _set_autocast _is_autocast;
        weights: _weights_load;
        models: _names_mapped;
        onnx: _onnx_load _enter_scope _leave_scope _coming_number;
        diagnose: _prove _causes;
        train: _gradcheck _explain _explain_opaque _compare _named_behind _verdict;
        studio: _studio_tensor _studio_run _studio_json;
        train: _gradcheck _explain _explain_opaque _compare _verdict;
    }
    ops::register(m)?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))
}
