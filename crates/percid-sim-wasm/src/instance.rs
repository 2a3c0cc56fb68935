//! An instance of a module: the policy of one process.

use std::sync::Arc;

use percid_sim::policies::{Id, Impossible, Overhead, Policy, Process, Thread, Work};
use percid_sim::topology::{Cpu, Topology};
use wasmi::{
    Engine, Error, Instance, Linker, Module, Store, TrapCode, TypedFunc, WasmParams, WasmResults,
};

use crate::exposed::Exposed;
use crate::host::Host;
use crate::shelf::{Machine, Shelf};
use crate::snapshot::{Snapshot, State};

/// Limit of the work of one call, in units of the interpreter: an instruction costs about one.
pub const FUEL: u64 = 5_000_000;

/// The error of all methods after a failure, which [`Policy::failure`] describes.
const FAILED: Impossible = Impossible("the module has failed");

/// A loaded module.
pub(crate) struct Program {
    pub(crate) engine: Engine,
    pub(crate) module: Module,
    pub(crate) linker: Linker<Host>,
    /// The functions of the interface that the module exports.
    pub(crate) exports: Vec<&'static str>,
    /// `true` if the module imports the distance of CPUs.
    pub(crate) asks_distances: bool,
    /// The state that the module exports.
    pub(crate) exposed: Exposed,
    pub(crate) unused: Shelf<Running>,
}

impl Program {
    /// Returns a function of an instance, if the module exports it. Instances begin often, and a
    /// vain search takes longer than the look at the list.
    fn function<P: WasmParams, R: WasmResults>(
        &self,
        instance: &Instance,
        store: &Store<Host>,
        name: &str,
    ) -> Option<TypedFunc<P, R>> {
        let is_there = self.exports.contains(&name);
        is_there.then(|| instance.get_typed_func(store, name).ok()).flatten()
    }
}

type Two = TypedFunc<(i32, i32), ()>;
type Three = TypedFunc<(i32, i32, i32), ()>;

/// The functions that the module exports.
pub(crate) struct Exports {
    id: TypedFunc<(i32, i32), i32>,
    switch: Option<Three>,
    migrate: Option<Three>,
    tick: Option<Two>,
    spawn: Option<Two>,
    exit: Option<Two>,
    affinity: Option<Two>,
    exec: Option<Two>,
}

/// An instance that has not failed.
pub(crate) struct Running {
    store: Store<Host>,
    exports: Exports,
    /// The state, if the instance can be reset.
    state: Option<State>,
}

/// The policy of one process.
pub(crate) struct ModulePolicy {
    program: Arc<Program>,
    machine: Machine,
    instance: Result<Running, String>,
    /// The work of the instance that failed, or of the program before.
    work_before: Work,
}

impl ModulePolicy {
    pub(crate) fn new(program: Arc<Program>, topology: &Topology) -> ModulePolicy {
        let machine = Machine::of(topology, program.asks_distances);
        let instance = Running::begin(&program, &machine);
        ModulePolicy { program, machine, instance, work_before: Work::default() }
    }

    /// Calls a function that the module may lack, with the process's current state.
    #[inline]
    fn tell<P: WasmParams>(
        &mut self,
        process: &Process<'_>,
        name: &str,
        of: fn(&Exports) -> Option<TypedFunc<P, ()>>,
        parameters: P,
    ) {
        let Ok(running) = &mut self.instance else { return };
        if let Some(function) = of(&running.exports) {
            if let Err(why) = running.call(process, name, function, parameters) {
                self.fail(why);
            }
        }
    }

    #[cold]
    fn fail(&mut self, why: String) {
        self.work_before = self.work();
        self.instance = Err(why);
    }

    /// Leaves the instance to another process, if it can be reset.
    fn retire(&mut self) {
        let instance = std::mem::replace(&mut self.instance, Err("no instance".to_owned()));
        let Ok(running) = instance else { return };
        if running.state.is_some() {
            self.program.unused.put(&self.machine, running);
        }
    }

    fn expect_running(&self) -> Result<(), Impossible> {
        if self.instance.is_ok() { Ok(()) } else { Err(FAILED) }
    }
}

impl Drop for ModulePolicy {
    fn drop(&mut self) {
        self.retire();
    }
}

impl Running {
    /// Returns an instance that has started: one of an ended process, if there is one.
    fn begin(program: &Program, machine: &Machine) -> Result<Running, String> {
        while let Some((mut running, snapshot)) = program.unused.take(machine) {
            if running.reset(&snapshot) {
                return Ok(running);
            }
        }
        let running = Running::start(program, machine)?;
        if let Some(state) = &running.state {
            program.unused.snapshot(machine, || Snapshot::take(state, &running.store));
        }
        Ok(running)
    }

    /// Resets the instance; returns `false` if it cannot be reset.
    fn reset(&mut self, snapshot: &Snapshot) -> bool {
        self.state.as_ref().is_some_and(|state| snapshot.restore(state, &mut self.store))
    }

    fn start(program: &Program, machine: &Machine) -> Result<Running, String> {
        let mut store = Store::new(&program.engine, Host::new(machine.distances.clone()));
        store.limiter(|host| host.limits());
        store.set_fuel(FUEL).map_err(|error| error.to_string())?;
        let instance = program
            .linker
            .instantiate_and_start(&mut store, &program.module)
            .map_err(|error| told("the start of the module", &error))?;
        let exports = Exports::of(program, &instance, &store)?;
        if let Some(start) = program.function(&instance, &store, "percid_start") {
            let started = start.call(&mut store, machine.cpus as i32);
            let () = started.map_err(|error| told("percid_start", &error))?;
        }
        let state = State::of(&program.exposed, &instance, &store);
        Ok(Running { store, exports, state })
    }

    /// Calls a function with all of its fuel.
    #[inline]
    fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        process: &Process<'_>,
        name: &str,
        function: TypedFunc<P, R>,
        parameters: P,
    ) -> Result<R, String> {
        self.store.data_mut().observe(process);
        self.store.set_fuel(FUEL).map_err(|error| error.to_string())?;
        function.call(&mut self.store, parameters).map_err(|error| told(name, &error))
    }
}

impl Exports {
    fn of(program: &Program, instance: &Instance, store: &Store<Host>) -> Result<Exports, String> {
        let two = |name: &str| program.function(instance, store, name);
        let three = |name: &str| program.function(instance, store, name);
        Ok(Exports {
            id: instance.get_typed_func(store, "percid_id").map_err(|error| error.to_string())?,
            switch: three("percid_switch"),
            migrate: three("percid_migrate"),
            tick: two("percid_tick"),
            spawn: two("percid_spawn"),
            exit: two("percid_exit"),
            affinity: two("percid_affinity"),
            exec: two("percid_exec"),
        })
    }
}

#[cold]
fn told(name: &str, error: &Error) -> String {
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => {
            format!("{name} does not end: it used {FUEL} units of fuel, about one an instruction")
        }
        Some(code) => format!("{name} trapped: {code}"),
        None => format!("{name} failed: {error}"),
    }
}

/// Returns a thread as a parameter.
fn thread_or_none(thread: Option<Thread>) -> i32 {
    thread.map_or(-1, |thread| thread as i32)
}

impl Policy for ModulePolicy {
    fn switch(
        &mut self,
        process: &Process<'_>,
        cpu: Cpu,
        prev: Option<Thread>,
        next: Option<Thread>,
    ) -> Result<(), Impossible> {
        let parameters = (cpu as i32, thread_or_none(prev), thread_or_none(next));
        self.tell(process, "percid_switch", |exports| exports.switch, parameters);
        self.expect_running()
    }

    fn migrate(&mut self, process: &Process<'_>, thread: Thread, from: Cpu, to: Cpu) {
        let parameters = (thread as i32, from as i32, to as i32);
        self.tell(process, "percid_migrate", |exports| exports.migrate, parameters);
    }

    fn tick(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) {
        self.tell(process, "percid_tick", |exports| exports.tick, (cpu as i32, thread as i32));
    }

    fn spawn(&mut self, process: &Process<'_>, thread: Thread) {
        let parameters = (thread as i32, allowed(process, thread));
        self.tell(process, "percid_spawn", |exports| exports.spawn, parameters);
    }

    fn exit(&mut self, process: &Process<'_>, thread: Thread, cpu: Cpu) {
        self.tell(process, "percid_exit", |exports| exports.exit, (thread as i32, cpu as i32));
    }

    fn affinity(&mut self, process: &Process<'_>, thread: Thread) {
        let parameters = (thread as i32, allowed(process, thread));
        self.tell(process, "percid_affinity", |exports| exports.affinity, parameters);
    }

    /// Tells the module, or begins a new instance of one that has no function for it.
    fn exec(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) -> Result<(), Impossible> {
        if matches!(&self.instance, Ok(running) if running.exports.exec.is_none()) {
            self.work_before = self.work();
            self.retire();
            self.instance = Running::begin(&self.program, &self.machine);
        }
        self.tell(process, "percid_exec", |exports| exports.exec, (cpu as i32, thread as i32));
        self.expect_running()
    }

    fn id(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) -> Result<Id, Impossible> {
        let running = self.instance.as_mut().map_err(|_| FAILED)?;
        let function = running.exports.id;
        match running.call(process, "percid_id", function, (cpu as i32, thread as i32)) {
            Ok(id) if id >= 0 => Ok(id as Id),
            Ok(id) => {
                self.fail(format!("percid_id({cpu}, {thread}) returned {id}"));
                Err(FAILED)
            }
            Err(why) => {
                self.fail(why);
                Err(FAILED)
            }
        }
    }

    fn work(&self) -> Work {
        let mut work = self.work_before;
        if let Ok(running) = &self.instance {
            work += running.store.data().work;
        }
        work
    }

    fn take_overhead(&mut self) -> Overhead {
        match &mut self.instance {
            Ok(running) => std::mem::take(&mut running.store.data_mut().overhead),
            Err(_) => Overhead::default(),
        }
    }

    fn failure(&self) -> Option<String> {
        self.instance.as_ref().err().cloned()
    }
}

/// Returns the number of CPUs that a thread may use.
fn allowed(process: &Process<'_>, thread: Thread) -> i32 {
    process.thread_allowed.get(thread as usize).map_or(process.nr_cpus_allowed, |&cpus| cpus) as i32
}
