//! Policies for concurrency IDs that are Python objects.

use std::sync::{Arc, Mutex, PoisonError};

use percid_sim::policies::{
    self, Id, Impossible, Overhead, Policy, PolicySpec, Thread, Work, releases,
};
use percid_sim::topology::{Cpu, Topology};
use pyo3::BoundObject;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors;

/// The error of all methods after a failure, which [`Policy::failure`] describes.
const FAILED: Impossible = Impossible("the policy has failed");

/// The view of its process that a policy has, and its reports of work.
#[pyclass(module = "percid.sim")]
#[derive(Debug)]
pub(crate) struct Process {
    /// The simulated time, in nanoseconds.
    #[pyo3(get)]
    now: u64,
    /// Number of threads of the process.
    #[pyo3(get)]
    threads: u32,
    /// Number of CPUs that any of its threads has been allowed.
    #[pyo3(get)]
    allowed_cpus: u32,
    topology: Arc<Topology>,
    work: Work,
    overhead: Overhead,
}

#[pymethods]
impl Process {
    /// Returns the number of CPUs of the machine.
    #[getter]
    fn cpus(&self) -> u32 {
        self.topology.cpus()
    }

    /// Returns 0 for CPUs of one core, 1 for one last-level cache, 2 for one socket, otherwise 3.
    fn distance(&self, cpu: Cpu, other: Cpu) -> PyResult<u32> {
        let cpus = self.topology.cpus();
        if cpu >= cpus || other >= cpus {
            let why = format!("distance({cpu}, {other}): expected CPUs below {cpus}");
            return Err(PyValueError::new_err(why));
        }
        Ok(self.topology.reach(cpu, other) as u32)
    }

    /// Reports work, for the table.
    #[pyo3(signature = (*, steals=0, scans=0, expired=0, slow_paths=0))]
    fn count(&mut self, steals: u32, scans: u32, expired: u32, slow_paths: u32) {
        self.work += Work {
            steals: steals.into(),
            scans: scans.into(),
            expired: expired.into(),
            slow_paths: slow_paths.into(),
        };
    }

    /// Charges the running thread.
    #[pyo3(signature = (*, slow_paths=0, fence=None, fences_of_all=0, scans=0))]
    fn charge(&mut self, slow_paths: u32, fence: Option<Cpu>, fences_of_all: u32, scans: u32) {
        let overhead = &mut self.overhead;
        overhead.slow_paths = overhead.slow_paths.saturating_add(slow_paths);
        overhead.fenced = fence.or(overhead.fenced);
        overhead.fenced_all = overhead.fenced_all.saturating_add(fences_of_all);
        overhead.scans = overhead.scans.saturating_add(scans);
    }
}

/// The object that a caller gave, and the exception of a copy of it.
#[derive(Debug, Default)]
struct Given {
    object: Option<Py<PyAny>>,
    raised: Option<PyErr>,
}

/// A policy of a caller. It exists as long as the simulator's list of policies, so the object is
/// dropped separately, by [`OwnPolicy::end`].
#[derive(Debug, Clone)]
pub(crate) struct OwnPolicy {
    pub(crate) spec: &'static PolicySpec,
    given: Arc<Mutex<Given>>,
}

impl OwnPolicy {
    /// Creates a policy with this name. Each process has a deep copy of the object.
    pub(crate) fn new(py: Python<'_>, name: &str, object: Py<PyAny>) -> PyResult<OwnPolicy> {
        if releases::named(name).is_ok() {
            let why = format!("policy: {name} is the name of a policy of the simulator");
            return Err(errors::space(py, why));
        }
        let given = Arc::new(Mutex::new(Given { object: Some(object), raised: None }));
        let shared = Arc::clone(&given);
        let create = move |topology: &Topology| -> Box<dyn Policy> {
            Box::new(PythonPolicy::new(Arc::clone(&shared), topology))
        };
        let spec: &'static PolicySpec = Box::leak(Box::new(PolicySpec {
            name: String::leak(name.to_owned()),
            about: "a Python object",
            create: Box::leak(Box::new(create)),
        }));
        Ok(OwnPolicy { spec, given })
    }

    /// Drops the object, and returns the first exception of its copies.
    pub(crate) fn end(&self) -> Option<PyErr> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.object = None;
        given.raised.take()
    }
}

/// Names of the methods in the order of [`Method`].
const METHODS: [&str; 9] =
    ["start", "id", "switch", "migrate", "tick", "spawn", "exit", "affinity", "exec"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Start,
    Id,
    Switch,
    Migrate,
    Tick,
    Spawn,
    Exit,
    Affinity,
    Exec,
}

/// A copy of the object: the policy of one process.
struct Copy {
    process: Py<Process>,
    /// The methods that the object has.
    methods: [Option<Py<PyAny>>; METHODS.len()],
}

/// The policy of one process.
struct PythonPolicy {
    given: Arc<Mutex<Given>>,
    topology: Arc<Topology>,
    copy: Result<Copy, String>,
    /// The work of the programs before.
    work_before: Work,
}

impl PythonPolicy {
    fn new(given: Arc<Mutex<Given>>, topology: &Topology) -> PythonPolicy {
        let topology = Arc::new(topology.clone());
        let copy = Python::attach(|py| begun(py, &given, &topology));
        PythonPolicy { given, topology, copy, work_before: Work::default() }
    }

    /// Calls a method, if the object has it.
    fn call<'py, A>(
        &mut self,
        py: Python<'py>,
        process: &policies::Process<'_>,
        method: Method,
        arguments: impl FnOnce(Py<Process>) -> A,
    ) -> Option<Bound<'py, PyAny>>
    where
        A: IntoPyObject<'py, Target = PyTuple>,
    {
        let Ok(copy) = &self.copy else { return None };
        let function = copy.methods[method as usize].as_ref()?.bind(py);
        let called = observe(py, &copy.process, process)
            .and_then(|()| {
                let arguments = arguments(copy.process.clone_ref(py)).into_pyobject(py);
                arguments.map_err(Into::into)
            })
            .and_then(|arguments| function.call1(arguments.into_bound()));
        called.map_err(|error| self.copy = Err(raised(py, &self.given, error))).ok()
    }

    fn fail(&mut self, why: String) -> Impossible {
        self.work_before = self.work();
        self.copy = Err(why);
        FAILED
    }

    fn expect_running(&self) -> Result<(), Impossible> {
        if self.copy.is_ok() { Ok(()) } else { Err(FAILED) }
    }

    fn has(&self, method: Method) -> bool {
        self.copy.as_ref().is_ok_and(|copy| copy.methods[method as usize].is_some())
    }
}

/// Returns a deep copy of the object that has started.
fn begun(
    py: Python<'_>,
    given: &Mutex<Given>,
    topology: &Arc<Topology>,
) -> Result<Copy, String> {
    let object = {
        let given = given.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = given.raised.is_some();
        given.object.as_ref().filter(|_| !is_over).map(|object| object.clone_ref(py))
    };
    let Some(object) = object else { return Err("the run is over".to_owned()) };
    copied(py, &object, topology).map_err(|error| raised(py, given, error))
}

fn copied(py: Python<'_>, object: &Py<PyAny>, topology: &Arc<Topology>) -> PyResult<Copy> {
    let object = py.import("copy")?.getattr("deepcopy")?.call1((object,))?;
    let base = py.import("percid.sim")?.getattr("Policy")?;
    let (now, threads, allowed_cpus) = (0, 0, 0);
    let (work, overhead) = (Work::default(), Overhead::default());
    let topology = Arc::clone(topology);
    let process = Process { now, threads, allowed_cpus, topology, work, overhead };
    let process = Py::new(py, process)?;
    let mut methods = [const { None }; METHODS.len()];
    for (method, name) in methods.iter_mut().zip(METHODS) {
        // A method that is not overridden does nothing, so no time is spent on it.
        let Some(own) = object.getattr_opt(name)? else { continue };
        let function = own.getattr_opt("__func__")?;
        let default = base.getattr(name)?;
        let is_default = function.is_some_and(|own| own.is(&default));
        *method = (!is_default).then(|| own.unbind());
    }
    if let Some(start) = &methods[Method::Start as usize] {
        start.call1(py, (process.clone_ref(py),))?;
    }
    Ok(Copy { process, methods })
}

/// Records the first exception, and returns its text.
fn raised(py: Python<'_>, given: &Mutex<Given>, error: PyErr) -> String {
    let why = format!("the policy raised {}", error.value(py).get_type());
    given.lock().unwrap_or_else(PoisonError::into_inner).raised.get_or_insert(error);
    why
}

/// Updates the numbers that the object reads.
fn observe(py: Python<'_>, to: &Py<Process>, from: &policies::Process<'_>) -> PyResult<()> {
    let mut to = to.try_borrow_mut(py)?;
    to.now = from.now;
    to.threads = from.users;
    to.allowed_cpus = from.nr_cpus_allowed;
    Ok(())
}

/// Returns the number of CPUs that a thread may use.
fn allowed(process: &policies::Process<'_>, thread: Thread) -> u32 {
    process.thread_allowed.get(thread as usize).map_or(process.nr_cpus_allowed, |&cpus| cpus)
}

impl Policy for PythonPolicy {
    fn switch(
        &mut self,
        process: &policies::Process<'_>,
        cpu: Cpu,
        prev: Option<Thread>,
        next: Option<Thread>,
    ) -> Result<(), Impossible> {
        if self.has(Method::Switch) {
            Python::attach(|py| {
                self.call(py, process, Method::Switch, |own| (own, cpu, prev, next));
            });
        }
        self.expect_running()
    }

    fn migrate(&mut self, process: &policies::Process<'_>, thread: Thread, from: Cpu, to: Cpu) {
        if self.has(Method::Migrate) {
            Python::attach(|py| {
                self.call(py, process, Method::Migrate, |own| (own, thread, from, to));
            });
        }
    }

    fn tick(&mut self, process: &policies::Process<'_>, cpu: Cpu, thread: Thread) {
        if self.has(Method::Tick) {
            Python::attach(|py| {
                self.call(py, process, Method::Tick, |own| (own, cpu, thread));
            });
        }
    }

    fn spawn(&mut self, process: &policies::Process<'_>, thread: Thread) {
        if self.has(Method::Spawn) {
            let allowed = allowed(process, thread);
            Python::attach(|py| {
                self.call(py, process, Method::Spawn, |own| (own, thread, allowed));
            });
        }
    }

    fn exit(&mut self, process: &policies::Process<'_>, thread: Thread, cpu: Cpu) {
        if self.has(Method::Exit) {
            Python::attach(|py| {
                self.call(py, process, Method::Exit, |own| (own, thread, cpu));
            });
        }
    }

    fn affinity(&mut self, process: &policies::Process<'_>, thread: Thread) {
        if self.has(Method::Affinity) {
            let allowed = allowed(process, thread);
            Python::attach(|py| {
                self.call(py, process, Method::Affinity, |own| (own, thread, allowed));
            });
        }
    }

    /// Calls the method, or begins with a new copy of an object that has none.
    fn exec(
        &mut self,
        process: &policies::Process<'_>,
        cpu: Cpu,
        thread: Thread,
    ) -> Result<(), Impossible> {
        self.expect_running()?;
        let has_method = self.has(Method::Exec);
        Python::attach(|py| {
            if has_method {
                self.call(py, process, Method::Exec, |own| (own, cpu, thread));
            } else {
                self.work_before = self.work();
                self.copy = begun(py, &self.given, &self.topology);
            }
        });
        self.expect_running()
    }

    fn id(
        &mut self,
        process: &policies::Process<'_>,
        cpu: Cpu,
        thread: Thread,
    ) -> Result<Id, Impossible> {
        Python::attach(|py| {
            let Some(id) = self.call(py, process, Method::Id, |own| (own, cpu, thread)) else {
                return Err(FAILED);
            };
            id.extract::<Id>().map_err(|_| {
                self.fail(format!("id(.., {cpu}, {thread}) returned {id}; expected an int from 0"))
            })
        })
    }

    fn work(&self) -> Work {
        let mut work = self.work_before;
        if let Ok(copy) = &self.copy {
            work += Python::attach(|py| copy.process.borrow(py).work);
        }
        work
    }

    fn take_overhead(&mut self) -> Overhead {
        match &self.copy {
            Ok(copy) => Python::attach(|py| {
                std::mem::take(&mut copy.process.borrow_mut(py).overhead)
            }),
            Err(_) => Overhead::default(),
        }
    }

    fn failure(&self) -> Option<String> {
        self.copy.as_ref().err().cloned()
    }
}
