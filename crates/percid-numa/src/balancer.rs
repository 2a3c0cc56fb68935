//! The balancer: the face of it all.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::access::AccessMethod;
use crate::access::pages::lock;
use crate::error::RegisterError;
use crate::inner::background::Background;
use crate::inner::{Inner, Pass};
use crate::migrate::Batch;
use crate::region::Region;
use crate::report::Report;
use crate::report::event::Event;
use crate::report::publication::Publication;
use crate::sys::{nodes, process};
use percid_rules::scan::Rules;
use percid_rules::scan::Scanner;
use percid_rules::scan::{BadSetting, Settings};

/// Keeps memory near the threads that use it; see the [module](super).
#[derive(Debug)]
pub struct Balancer {
    inner: Arc<Inner>,
    background: Mutex<Option<Background>>,
    publication: Mutex<Option<Publication>>,
}

impl Balancer {
    /// A balancer without regions, with the published constants and all fixes.
    pub fn new() -> Balancer {
        Balancer::build(Settings::default(), Rules::default())
    }

    /// A balancer with other constants or rules.
    ///
    /// # Errors
    ///
    /// The setting that cannot be used.
    pub fn with(settings: Settings, rules: Rules) -> Result<Balancer, BadSetting> {
        settings.check()?;
        Ok(Balancer::build(settings, rules))
    }

    fn build(settings: Settings, rules: Rules) -> Balancer {
        let inner = Inner::new(settings, rules);
        Balancer {
            inner: Arc::new(inner),
            background: Mutex::new(None),
            publication: Mutex::new(None),
        }
    }

    /// Whether there is anything to balance: several nodes with memory.
    pub fn has_nodes(&self) -> bool {
        self.inner.has_nodes()
    }

    /// Registers memory whose use the program reports by [`Region::touch`].
    ///
    /// The memory may be unmapped while it is registered: that is noticed and the region left alone. Reads
    /// `/proc/self/maps`.
    ///
    /// # Errors
    ///
    /// What is wrong with the range.
    pub fn register(&self, start: *const u8, bytes: usize) -> Result<Region, RegisterError> {
        self.add(start, bytes, AccessMethod::Reported)
    }

    /// Registers memory whose use is seen by faults.
    ///
    /// Installs a handler of SIGSEGV at the first call, which passes on what is not for it.
    ///
    /// # Errors
    ///
    /// What is wrong with the range.
    ///
    /// # Safety
    ///
    /// Until the region is dropped:
    ///
    /// * the memory stays mapped, with the access rights that it has now, and nobody changes these rights;
    /// * no thread runs on a stack in it, or has its alternate one or the list of its robust mutexes there, blocks
    ///   SIGSEGV while it uses it (a handler of crashes does), or installs another handler of SIGSEGV that does not
    ///   pass on to the one before;
    /// * no pointer into it is given to a system call unless the part is [excluded](Region::exclude) until the kernel
    ///   has done with it, rings of `io_uring` included: the call would fail with `EFAULT`, or do half of its work;
    /// * no thread waits by what lies in it: mutexes, condition variables, semaphores and everything else made of
    ///   futexes hand a pointer to the kernel;
    /// * the C library and percid itself keep nothing in it that a signal handler uses; percid's own data is refused;
    /// * nothing forbids the process to change access rights as long as anything is armed;
    /// * no child of `vfork` and no other process that shares the address space uses it.
    pub unsafe fn register_trapped(
        &self,
        start: *const u8,
        bytes: usize,
    ) -> Result<Region, RegisterError> {
        self.add(start, bytes, AccessMethod::Trapped)
    }

    /// Registers memory of which writes are seen: the first write to an armed page waits until percid has noted who
    /// writes. Nothing has to be [excluded](Region::exclude), because system calls wait in the same way.
    ///
    /// The first such region of a balancer starts a thread, which runs until the last one is dropped, and opens
    /// two descriptors. Where there is one node nothing is started, and nothing can be refused for lack of
    /// permission.
    ///
    /// It breaks nothing that the memory is used for, so it is not unsafe; what may surprise:
    ///
    /// * **Reads are not seen**: memory that nobody writes stays where it is.
    /// * **Waiting**: a thread that writes to an armed page sleeps until percid's thread has run, about 12 us. That
    ///   lets one writer through after the other: where all of 256 MiB is written after every pass, they wait
    ///   for 50 ms together. Where it gets no CPU (threads of real-time priority that spin), or a filter of system
    ///   calls that was put on it refuses them, writers get no further.
    /// * **Threads' own memory**: no thread's stack or thread-local memory must lie in it, and no robust mutex. When
    ///   a thread ends the kernel notes that there, and does not wait for anybody: on an armed page the note is
    ///   lost, and `pthread_join` waits for ever. The calling thread's is refused.
    /// * **Others' writes** wait too: children of `vfork`, `process_vm_writev`. A debugger that has stopped the
    ///   process and changes a variable on an armed page waits for a thread that it has stopped itself.
    /// * **Other users** of `userfaultfd` cannot have the same memory, checkpoints of the process (CRIU) fail.
    ///
    /// # Errors
    ///
    /// What is wrong with the range, or why the process or the kernel cannot do it.
    pub fn register_written(
        &self,
        start: *const u8,
        bytes: usize,
    ) -> Result<Region, RegisterError> {
        self.add(start, bytes, AccessMethod::Written)
    }

    fn add(
        &self,
        start: *const u8,
        bytes: usize,
        access: AccessMethod,
    ) -> Result<Region, RegisterError> {
        let entry = self.inner.register(start, bytes, access)?;
        Ok(Region::new(entry, Arc::clone(&self.inner)))
    }

    /// Makes a pass on behalf of the calling thread: arms what it is the turn of. Moves nothing. Costs one
    /// look at `/proc/self/maps` and about 0.2 us for every page; nothing without nodes.
    pub fn pass(&self) -> Pass {
        if !self.inner.is_active() {
            return Pass::default();
        }
        let balances = nodes::own_policy().is_none_or(|mode| mode.is_default() || mode.balances());
        let threads = process::thread_ids().len().max(1) as u32;
        self.inner.pass(Scanner { thread: process::thread_id(), balances, threads })
    }

    /// Moves a batch of the pages that are to move. No thread of the program waits for longer than that
    /// takes.
    pub fn move_batch(&self) -> Batch {
        if !self.inner.is_active() {
            return Batch::default();
        }
        self.inner.move_batch()
    }

    /// Starts a thread that makes passes and moves pages by itself, unless there is one already or nothing
    /// to balance. Its passes are on behalf of the program's threads: one is due when a thread has *run* for a
    /// period, and never before the balancer has rested for 33 times what the last pass took. A pass arms less
    /// than [`Settings::scan_size`] if all passes together would take more than 3 % of the balancer's life.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn start(&self) -> io::Result<()> {
        // In a child nobody may ever give the lock back.
        if !self.inner.is_active() {
            return Ok(());
        }
        let mut background = lock(&self.background);
        if background.is_none() {
            *background = Some(Background::start(Arc::clone(&self.inner))?);
        }
        Ok(())
    }

    /// Ends that thread and waits for it: for a batch or a pass at the longest. What is armed stays armed.
    pub fn stop(&self) {
        if self.inner.is_forked() {
            return;
        }
        // Taken out first: the lock is not held while the thread ends.
        let running = lock(&self.background).take();
        drop(running);
    }

    /// The decisions since the last call, the oldest first; at most 4096.
    pub fn take_events(&self) -> Vec<Event> {
        if self.inner.is_forked() {
            return Vec::new();
        }
        self.inner.take_events()
    }

    /// What was done and seen so far. Asks the kernel where every page of every region is: about a
    /// microsecond for every ten pages.
    pub fn report(&self) -> Report {
        self.inner.report()
    }

    /// Lets other processes ask for this balancer's report, until it is dropped: `percid numa report` and
    /// `percid numa watch` do. Those may that may look into this process (`PTRACE_MODE_READ`, which commonly is
    /// this user and root).
    ///
    /// The report lies in a memfd; `numa/publication.rs` says how it is read. A thread of its own
    /// answers, whether passes are made or not, and with one node too. It sleeps until somebody asks; a report
    /// costs what [`report`](Balancer::report) costs, and all of them together a tenth of a CPU at most. Dropping
    /// the balancer waits for the one that is being made. In a child of `fork` nobody answers. Calling it again
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// There is no memfd, descriptor, memory or thread to be had; or the balancer belongs to the parent of this
    /// process.
    pub fn publish(&self) -> io::Result<()> {
        if self.inner.is_forked() {
            return Err(io::Error::other(RegisterError::Forked));
        }
        let mut publication = lock(&self.publication);
        if publication.is_none() {
            *publication = Some(Publication::begin(Arc::clone(&self.inner))?);
        }
        Ok(())
    }
}

impl Default for Balancer {
    fn default() -> Balancer {
        Balancer::new()
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let running = self.background.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let published = self.publication.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if self.inner.is_forked() {
            // The threads are the parent's.
            std::mem::forget((running, published));
        }
    }
}
