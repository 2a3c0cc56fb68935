//! The balancer: the interface for programs.

use std::io;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

use percid_rules::scan::{BadSetting, Rules, Settings};

use crate::access_method::AccessMethod;
use crate::balancing::{Background, Inner};
use crate::done::{Batch, Pass};
use crate::error::RegisterError;
use crate::lock::lock;
use crate::publish::Publication;
use crate::region::Region;
use crate::report::Report;
use crate::report::event::Event;

/// Keeps memory near the threads that use it; see the [crate](crate).
///
/// ```
/// use percid_numa::Balancer;
///
/// let table = vec![0u64; 1 << 17];
/// let start = table.as_ptr().cast::<u8>().map_addr(|address| address.next_multiple_of(1 << 16));
/// let balancer = Balancer::new();
/// let region = balancer.register(start, 1 << 19)?;
/// region.touch(4096); // this thread uses the page at this offset
/// balancer.pass();
/// balancer.move_batch();
/// assert_eq!(balancer.report().regions.len(), 1);
/// # Ok::<(), percid_numa::RegisterError>(())
/// ```
#[derive(Debug)]
pub struct Balancer {
    inner: Arc<Inner>,
    background: Mutex<Option<Background>>,
    publication: Mutex<Option<Publication>>,
}

impl Balancer {
    /// Makes a balancer without regions, with the published constants and all fixes.
    ///
    /// ```
    /// let balancer = percid_numa::Balancer::new();
    /// assert_eq!(balancer.report().passes, 0);
    /// ```
    pub fn new() -> Balancer {
        Balancer::with_rules(Settings::default(), Rules::default())
    }

    /// Makes a balancer with other constants or rules.
    ///
    /// ```
    /// use percid_numa::{Balancer, Settings};
    ///
    /// let slow = Settings { bandwidth: 64 << 20, ..Settings::default() };
    /// assert!(Balancer::builder().settings(slow).build().is_ok());
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    fn with_rules(settings: Settings, rules: Rules) -> Balancer {
        Balancer {
            inner: Arc::new(Inner::new(settings, rules)),
            background: Mutex::new(None),
            publication: Mutex::new(None),
        }
    }

    /// Returns `true` if there is anything to balance: several nodes with memory. If a cpuset
    /// permits the process only one of them, nothing is balanced until it permits more.
    ///
    /// ```
    /// let balancer = percid_numa::Balancer::new();
    /// assert_eq!(balancer.has_nodes(), balancer.report().nodes.len() > 1);
    /// ```
    pub fn has_nodes(&self) -> bool {
        self.inner.has_nodes()
    }

    /// Registers memory whose accesses the program reports by [`Region::touch`].
    ///
    /// The memory may be unmapped while it is registered: the balancer detects that, and leaves the
    /// region alone. Reads `/proc/self/maps`.
    ///
    /// # Errors
    ///
    /// Returns an error if the range cannot be registered.
    ///
    /// ```
    /// use percid_numa::Balancer;
    ///
    /// let table = vec![0u8; 2 << 20];
    /// let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
    /// let balancer = Balancer::new();
    /// let region = balancer.register(start, 1 << 20)?;
    /// region.touch(12345);
    /// assert_eq!(region.range().len(), 1 << 20);
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    pub fn register(&self, start: *const u8, bytes: usize) -> Result<Region, RegisterError> {
        self.add(start, bytes, AccessMethod::Reported)
    }

    /// Registers memory whose accesses are detected by faults.
    ///
    /// The first call installs a handler of SIGSEGV, which passes on all faults that are not
    /// percid's. Every call reads `/proc` and starts a thread that ends at once, to find out where
    /// threads have their memory.
    ///
    /// # Errors
    ///
    /// Returns an error if the range cannot be registered. This includes ranges where a fault could
    /// not be handled, if percid can detect that:
    ///
    /// * [`ThreadMemory`](RegisterError::ThreadMemory): all of the stack of every thread, used or
    ///   not, with the thread's variables, its rseq area and other data of the C library; the
    ///   memory below a stack without a guard in between; the calling thread's alternate signal
    ///   stack. Not detected are the alternate signal stacks of *other* threads, and their
    ///   variables of libraries that were loaded late. Stacks that the program made itself
    ///   (coroutines) are detected only while a thread on one waits in a system call.
    /// * [`HandlerData`](RegisterError::HandlerData): percid's variables, the constants of the
    ///   program or library that percid is linked into, and the C library.
    /// * [`PercidMemory`](RegisterError::PercidMemory): the arena, the slabs of pools, the table.
    ///
    /// # Safety
    ///
    /// Until the region is dropped:
    ///
    /// * the memory stays mapped, with the access rights that it has now, and nothing changes them;
    /// * no thread runs on a stack in it that was not detected, or comes there later, or has its
    ///   alternate signal stack or the list of its robust mutexes there. No thread blocks SIGSEGV
    ///   while it uses the memory (a crash handler does), or installs another handler of SIGSEGV
    ///   that does not pass faults on to the one before;
    /// * no pointer into it is given to a system call, unless the part is
    ///   [excluded](Region::exclude) until the kernel has done with it, rings of `io_uring`
    ///   included: the call would fail with `EFAULT`, or do half of its work;
    /// * no thread waits on an object in it: mutexes, condition variables, semaphores and
    ///   everything else made of futexes pass a pointer to the kernel;
    /// * the C library and percid itself keep nothing in it that a signal handler uses; percid's
    ///   own data is refused;
    /// * nothing forbids the process to change access rights while anything is armed;
    /// * no child of `vfork` and no other process that shares the address space uses it.
    ///
    /// ```
    /// use percid_numa::{AccessMethod, Balancer};
    ///
    /// let mut table = vec![0u8; 2 << 20];
    /// let offset = table.as_ptr().align_offset(1 << 16);
    /// let start = table[offset..].as_ptr();
    /// let balancer = Balancer::new();
    /// // SAFETY: the vector stays until the region is dropped, and no system call gets it.
    /// let region = unsafe { balancer.register_trapped(start, 1 << 20) }?;
    /// assert_eq!(region.access(), AccessMethod::Trapped);
    /// table[offset + 12345] += 1;
    /// drop(region);
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    pub unsafe fn register_trapped(
        &self,
        start: *const u8,
        bytes: usize,
    ) -> Result<Region, RegisterError> {
        self.add(start, bytes, AccessMethod::Trapped)
    }

    /// Registers memory whose writes are detected: the first write to an armed page waits until
    /// percid has recorded the writing thread. Nothing needs to be [excluded](Region::exclude),
    /// because system calls wait in the same way.
    ///
    /// The first such region of a balancer starts a thread, the monitor, which runs until the last
    /// one is dropped, and opens two descriptors. On a machine with one node nothing is started,
    /// and nothing is refused for lack of permission.
    ///
    /// The memory stays usable for everything, so this function is not unsafe. Possible surprises:
    ///
    /// * **Reads are not detected**: memory that is only read stays where it is.
    /// * **Waiting**: a thread that writes to an armed page sleeps until the monitor has run, about
    ///   12 us. The monitor lets one writer continue after the other: if all of 256 MiB is written
    ///   after every pass, the writers wait for 50 ms in total. If the monitor gets no CPU (threads
    ///   of real-time priority that spin), or a seccomp filter that was applied to it refuses its
    ///   system calls, writers wait indefinitely.
    /// * **Threads' own memory**: no thread's stack or thread-local memory may lie in it, and no
    ///   robust mutex. When a thread ends, the kernel writes there and does not wait: on an armed
    ///   page the write is lost, and `pthread_join` waits forever. Such memory is refused if it is
    ///   detected, as by [`register_trapped`](Balancer::register_trapped).
    /// * **Writes by other processes** wait too: children of `vfork`, `process_vm_writev`. A
    ///   debugger that has stopped the process and changes a variable on an armed page waits for a
    ///   thread that it has stopped itself.
    /// * **Other users** of `userfaultfd` cannot register the same memory; checkpoints of the
    ///   process (CRIU) fail.
    ///
    /// # Errors
    ///
    /// Returns an error if the range cannot be registered, or if the process or the kernel does not
    /// support it.
    ///
    /// ```
    /// use percid_numa::{Balancer, RegisterError};
    ///
    /// let table = vec![0u8; 2 << 20];
    /// let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
    /// let balancer = Balancer::new();
    /// match balancer.register_written(start, 1 << 20) {
    ///     Ok(region) => assert_eq!(region.range().len(), 1 << 20),
    ///     Err(RegisterError::NotPermitted) => println!("it takes CAP_SYS_PTRACE"),
    ///     Err(error) => println!("not here: {error}"),
    /// }
    /// ```
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

    /// Makes a pass on behalf of the calling thread: arms the regions that are due. Moves nothing.
    /// Reads `/proc/self/maps` once and takes about 0.2 us for every page; costs nothing on a
    /// machine with one node. For programs that do not [`start`](Balancer::start) a thread.
    ///
    /// ```
    /// let balancer = percid_numa::Balancer::new();
    /// assert_eq!(balancer.pass().armed, 0, "nothing is registered");
    /// ```
    pub fn pass(&self) -> Pass {
        if !self.inner.is_active() {
            return Pass::default();
        }
        self.inner.pass()
    }

    /// Moves a batch of the pages with a pending move. A thread of the program that maps memory or
    /// takes a page fault during that time waits for this batch at most.
    ///
    /// ```
    /// let balancer = percid_numa::Balancer::new();
    /// while balancer.move_batch().more {}
    /// assert_eq!(balancer.move_batch().moved, 0);
    /// ```
    pub fn move_batch(&self) -> Batch {
        if !self.inner.is_active() {
            return Batch::default();
        }
        self.inner.move_batch()
    }

    /// Starts a thread that makes passes and moves pages, unless it runs already or there is
    /// nothing to balance. Its passes are on behalf of the program's threads: one is due when a
    /// thread has *run* for its period. After a pass, a thread must first run for 32 times the
    /// duration of that pass. A pass arms less than [`Settings::scan_size`] if all passes together
    /// would take more than 3 % of the time that the process's threads have run.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    ///
    /// ```
    /// let balancer = percid_numa::Balancer::new();
    /// balancer.start()?;
    /// balancer.start()?;
    /// balancer.stop();
    /// assert!(balancer.report().scan_share() <= 1.0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start(&self) -> io::Result<()> {
        // In a child the lock may be held by a thread that exists in the parent only.
        if !self.inner.is_active() {
            return Ok(());
        }
        let mut background = lock(&self.background);
        if background.is_none() {
            *background = Some(Background::start(Arc::clone(&self.inner))?);
        }
        Ok(())
    }

    /// Ends that thread and waits for it: for a batch or a pass at most. Armed pages stay armed.
    ///
    /// ```
    /// let balancer = percid_numa::Balancer::new();
    /// balancer.start()?;
    /// balancer.stop();
    /// let passes = balancer.report().passes;
    /// std::thread::sleep(std::time::Duration::from_millis(10));
    /// assert_eq!(balancer.report().passes, passes);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stop(&self) {
        if self.inner.is_forked() {
            return;
        }
        // The lock is released first, and not held while the thread ends.
        let _running = lock(&self.background).take();
    }

    /// Takes the events since the last call, the oldest first; at most 4096.
    ///
    /// ```
    /// let balancer = percid_numa::Balancer::new();
    /// balancer.pass();
    /// balancer.take_events().iter().for_each(|event| println!("{event:?}"));
    /// assert!(balancer.take_events().is_empty());
    /// ```
    pub fn take_events(&self) -> Vec<Event> {
        if self.inner.is_forked() {
            return Vec::new();
        }
        self.inner.take_events()
    }

    /// Returns the results so far. The kernel looks up the node of every page of every region:
    /// about a microsecond for every ten pages.
    ///
    /// ```
    /// let table = vec![1u8; 2 << 20];
    /// let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
    /// let balancer = percid_numa::Balancer::new();
    /// let region = balancer.register(start, 1 << 20)?;
    /// let report = balancer.report();
    /// assert_eq!(report.regions[0].range, region.range());
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    pub fn report(&self) -> Report {
        self.inner.report()
    }

    /// Lets other processes request this balancer's report until it is dropped, as `percid numa
    /// report` and `percid numa watch` do. A reader needs the permission to inspect this process
    /// (`PTRACE_MODE_READ`, which commonly this user and root have).
    ///
    /// The report is in a memfd; `src/publish/mod.rs` describes how it is read. A separate thread
    /// makes it, even with one node, and sleeps until a process requests one. A report costs what
    /// [`report`](Balancer::report) costs, and all of them together a tenth of a CPU at most.
    /// Dropping the balancer waits for a report that is being made. In a child of `fork` no report
    /// is made. A second call changes nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if no memfd, descriptor, memory or thread is available, or if the balancer
    /// belongs to the parent of this process.
    ///
    /// ```
    /// let balancer = percid_numa::Balancer::new();
    /// balancer.publish()?;
    /// let files = std::fs::read_dir("/proc/self/fd")?.filter_map(Result::ok);
    /// let names = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    /// let is_report = |name: &std::path::PathBuf| name.as_os_str() == "/memfd:percid-numa (deleted)";
    /// assert_eq!(names.filter(is_report).count(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn publish(&self) -> io::Result<()> {
        if self.inner.is_forked() {
            return Err(io::Error::other(RegisterError::Forked));
        }
        let mut publication = lock(&self.publication);
        if publication.is_none() {
            let inner = Arc::clone(&self.inner);
            *publication = Some(Publication::begin(move || inner.report())?);
        }
        Ok(())
    }
}

/// Builder of a [`Balancer`]; see [`Balancer::builder`].
///
/// ```
/// let balancer = percid_numa::Builder::default().build()?;
/// assert_eq!(balancer.report().passes, 0);
/// # Ok::<(), percid_numa::BadSetting>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    settings: Settings,
    rules: Rules,
}

impl Builder {
    /// Uses these constants instead of the published ones.
    ///
    /// ```
    /// use std::time::Duration;
    /// use percid_numa::{Balancer, Settings};
    ///
    /// let quick = Settings { period_min: Duration::from_millis(100), ..Settings::default() };
    /// let balancer = Balancer::builder().settings(quick).build()?;
    /// assert_eq!(balancer.report().period, Duration::from_millis(100));
    /// # Ok::<(), percid_numa::BadSetting>(())
    /// ```
    pub fn settings(self, settings: Settings) -> Builder {
        Builder { settings, ..self }
    }

    /// Uses the rules of another kernel release than Linux 6.12.
    ///
    /// ```
    /// use percid_numa::{Balancer, Rules};
    ///
    /// let as_in_linux_6_6 = Balancer::builder().rules(Rules::BASE).build()?;
    /// assert_eq!(as_in_linux_6_6.report().passes, 0);
    /// # Ok::<(), percid_numa::BadSetting>(())
    /// ```
    pub fn rules(self, rules: Rules) -> Builder {
        Builder { rules, ..self }
    }

    /// Makes the balancer. It has no regions, and no thread.
    ///
    /// # Errors
    ///
    /// The setting that cannot be used.
    ///
    /// ```
    /// use percid_numa::{BadSetting, Balancer, Settings};
    ///
    /// let nothing = Settings { batch: 0, ..Settings::default() };
    /// let refused = Balancer::builder().settings(nothing).build();
    /// assert_eq!(refused.err(), Some(BadSetting::Zero("batch")));
    /// ```
    pub fn build(self) -> Result<Balancer, BadSetting> {
        self.settings.check()?;
        Ok(Balancer::with_rules(self.settings, self.rules))
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
            let _ = ManuallyDrop::new((running, published));
        }
    }
}
