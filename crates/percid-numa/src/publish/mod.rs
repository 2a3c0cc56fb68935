//! A balancer's report for other processes, made when one requests it.
//!
//! The report is in a memfd named `percid-numa`. Other processes find a link `/memfd:percid-numa
//! (deleted)` in `/proc/PID/fd` and open it, which the kernel permits to processes that may inspect
//! this one (`PTRACE_MODE_READ`). Nothing is left when the process ends. The file is sealed against
//! shrinking, so its header can be mapped and read safely; until it is sealed it is not complete.
//!
//! # Header
//!
//! 32 bytes in the byte order of the machine; the report follows at byte 64.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `percidnb` |
//! | 8 | 4 | 1, the version of this header |
//! | 12 | 4 | the number of the process: a child of `fork` has the file too, but it is not the child's |
//! | 16 | 4 | requests: a reader adds 1 and wakes the waiter of this word (`FUTEX_WAKE`) |
//! | 20 | 4 | answers: odd from before a report is made until it is written, then 1 more |
//! | 24 | 8 | how many bytes the report has; 0 if it could not be written |
//!
//! A reader reads the count of answers, and then adds a request. A report that was begun after that
//! has an even count at least 2 beyond the one read, or 3 if that was odd. It is complete if the
//! count is the same before and after it is read. So readers need no coordination, and one report
//! may answer several.
//!
//! The balancer trusts nothing that is written there, except that a report is requested.

mod exchange;
mod json;

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, SeqCst},
};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::publish::exchange::Exchange;
use crate::publish::json::Json;
use crate::report::Report;
use crate::sys::{futex, memfd, memory, process, signals};

const NAME: &CStr = c"percid-numa";
const MAGIC: [u8; 8] = *b"percidnb";
const VERSION: u32 = 1;
/// The offset of the report.
const REPORT_AT: u64 = 64;

/// Ratio of the pause after a report to the duration of the report: reports take a tenth of a CPU
/// at most, however many are requested.
const REST: u32 = 9;

#[derive(Debug)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: u32,
    process: u32,
    exchange: Exchange,
}

// The format fixes these offsets.
const _: () = assert!(offset_of!(Header, exchange) == 16 && size_of::<Header>() == 32);

/// The file that other processes read, with its mapped header.
#[derive(Debug)]
struct PublishedFile {
    file: File,
    header: NonNull<Header>,
    mapped: usize,
    /// 1 when the thread must end.
    over: AtomicU32,
}

// SAFETY: the header is mapped until this value is dropped, and all that changes there is atomic.
unsafe impl Send for PublishedFile {}
// SAFETY: `&PublishedFile` gives access to atomics and a file only, which any thread may use.
unsafe impl Sync for PublishedFile {}

impl PublishedFile {
    fn new() -> io::Result<PublishedFile> {
        let file = memfd::create(NAME)?;
        let mapped = memory::page_size();
        file.set_len(mapped as u64)?;
        let header = memfd::map(&file, mapped)?.cast::<Header>();
        let page = PublishedFile { file, header, mapped, over: AtomicU32::new(0) };
        let first = Header {
            magic: MAGIC,
            version: VERSION,
            process: process::id(),
            exchange: Exchange {
                requests: AtomicU32::new(0),
                answers: AtomicU32::new(0),
                length: AtomicU64::new(0),
            },
        };
        // SAFETY: the mapping is a new page, and no reader uses the file before it is sealed.
        unsafe { header.write(first) };
        memfd::never_shrink(&page.file)?;
        Ok(page)
    }

    fn exchange(&self) -> &Exchange {
        // SAFETY: the header was written in `new` and stays mapped; the exchange consists of
        // atomics.
        unsafe { &(*self.header.as_ptr()).exchange }
    }

    /// Answers requests until `over` is set.
    fn serve(&self, make: impl Fn() -> Report) {
        let requests = &self.exchange().requests;
        let (mut seen, mut answers) = (0, 0);
        while self.over.load(SeqCst) == 0 {
            let asked = requests.load(SeqCst);
            if asked == seen {
                futex::wait(requests, seen, None);
                continue;
            }
            seen = asked;
            let began = Instant::now();
            self.answer(&make, &mut answers);
            self.rest(began.elapsed() * REST);
        }
    }

    fn answer(&self, make: &impl Fn() -> Report, answers: &mut u32) {
        self.exchange().answer(answers, || {
            let report = Json(&make()).to_string();
            let written = self.file.write_all_at(report.as_bytes(), REPORT_AT).is_ok();
            if written { report.len() as u64 } else { 0 }
        });
    }

    fn rest(&self, time: Duration) {
        let end = Instant::now() + time;
        while self.over.load(Acquire) == 0 && Instant::now() < end {
            futex::wait(&self.over, 0, Some(end.saturating_duration_since(Instant::now())));
        }
    }

    fn end(&self) {
        self.exchange().end(&self.over);
        futex::wake(&self.over);
        futex::wake(&self.exchange().requests);
    }
}

impl Drop for PublishedFile {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping.
        unsafe { memory::unmap(self.header.cast(), self.mapped) };
    }
}

/// A published report and the thread that answers, until this is dropped.
#[derive(Debug)]
pub(crate) struct Publication {
    page: Arc<PublishedFile>,
    thread: Option<JoinHandle<()>>,
}

impl Publication {
    pub(crate) fn begin(make: impl Fn() -> Report + Send + 'static) -> io::Result<Publication> {
        let page = Arc::new(PublishedFile::new()?);
        let of_thread = Arc::clone(&page);
        let body = move || {
            of_thread.serve(make);
        };
        // The program's signal handlers must run in the program's threads only.
        let builder = std::thread::Builder::new().name("percid-report".to_owned());
        let thread = signals::without_the_programs(|| builder.spawn(body))?;
        Ok(Publication { page, thread: Some(thread) })
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        self.page.end();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard};

    use super::*;
    use crate::balancing::Inner;
    use crate::lock::lock;
    use crate::sys::clock;
    use percid_rules::scan::Rules;
    use percid_rules::scan::Settings;

    /// Serializes the tests that inspect all of the process's threads and files.
    fn alone() -> MutexGuard<'static, ()> {
        static TURN: Mutex<()> = Mutex::new(());
        lock(&TURN)
    }

    fn begin() -> Publication {
        let inner = Inner::new(Settings::default(), Rules::default());
        Publication::begin(move || inner.report()).expect("a memfd and a thread")
    }

    /// Requests a report as another process would. Returns the count to wait for.
    fn ask(page: &PublishedFile) -> u32 {
        let before = page.exchange().answers.load(SeqCst);
        page.exchange().requests.fetch_add(1, SeqCst);
        futex::wake(&page.exchange().requests);
        before + 2 + before % 2
    }

    /// Waits for this count, longer than an answer takes on any machine.
    fn has_answered(page: &PublishedFile, count: u32) -> bool {
        let end = Instant::now() + Duration::from_secs(600);
        while page.exchange().answers.load(SeqCst) != count && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        page.exchange().answers.load(SeqCst) == count
    }

    fn text(page: &PublishedFile) -> String {
        let mut bytes = vec![0; page.exchange().length.load(SeqCst) as usize];
        page.file.read_exact_at(&mut bytes, REPORT_AT).expect("as long as the header says");
        String::from_utf8(bytes).expect("UTF-8")
    }

    /// Returns the run time of the threads that answer.
    fn ran() -> Duration {
        let answers = |id: &u32| {
            let name = std::fs::read_to_string(format!("/proc/self/task/{id}/comm"));
            name.is_ok_and(|name| name.trim() == "percid-report")
        };
        process::thread_ids().into_iter().filter(answers).filter_map(clock::run_time).sum()
    }

    #[test]
    fn a_request_is_answered_and_nothing_else_causes_a_report() {
        let _alone = alone();
        let page = &begin().page;
        // One thread makes all reports: another one would increase the count before the next
        // request.
        for count in [2, 4, 6] {
            ask(page);
            assert!(has_answered(page, count));
            let text = text(page);
            assert!(text.starts_with("{\"format\":1,") && text.ends_with("]}"), "{text}");
        }
    }

    /// The reader reads an odd count while a report is made, and requests another report.
    #[test]
    fn a_request_during_a_report_gets_one_of_its_own() {
        let _alone = alone();
        let page = Arc::new(PublishedFile::new().expect("a memfd"));
        let inner = Inner::new(Settings::default(), Rules::default());
        let counts = Arc::new(Mutex::new(Vec::new()));
        let (of_thread, made) = (Arc::clone(&page), Arc::clone(&counts));
        let make = move || {
            let answers = of_thread.exchange().answers.load(SeqCst);
            lock(&made).push(answers);
            if answers == 1 {
                of_thread.exchange().requests.fetch_add(1, SeqCst);
            }
            inner.report()
        };
        std::thread::scope(|scope| {
            scope.spawn(|| page.serve(&make));
            ask(&page);
            let answered = has_answered(&page, 4);
            page.end();
            assert!(answered, "{:?}", lock(&counts));
        });
        assert_eq!(*lock(&counts), [1, 3]);
    }

    #[test]
    fn a_thread_that_is_about_to_sleep_sees_the_end() {
        let page = PublishedFile::new().expect("a memfd");
        page.end();
        assert_eq!(page.exchange().requests.load(SeqCst), 1, "it will not sleep at 0");
        page.serve(|| panic!("no report is wanted any more"));
    }

    #[test]
    fn what_others_write_into_the_header_is_not_believed() {
        let _alone = alone();
        let page = &begin().page;
        assert!(has_answered(page, ask(page)));
        page.exchange().answers.store(77, SeqCst);
        page.exchange().length.store(u64::MAX, SeqCst);
        ask(page);
        assert!(has_answered(page, 4), "the second answer, whatever is written there");
        assert!(text(page).ends_with("]}"));
    }

    #[test]
    fn the_file_cannot_shrink() {
        let _alone = alone();
        let page = &begin().page;
        assert!(page.file.set_len(0).is_err());
        assert!(page.file.set_len(1 << 20).is_ok());
    }

    #[test]
    fn who_waits_costs_nothing() {
        let _alone = alone();
        let page = &begin().page;
        assert!(has_answered(page, ask(page)));
        // Under load it takes a while until the thread begins and ends its pause.
        let stays = |_| {
            let before = ran();
            std::thread::sleep(Duration::from_millis(200));
            ran() == before
        };
        assert!((0..50).any(stays), "it ran in each of 50 intervals without a request");
    }

    #[test]
    fn who_asks_without_end_has_a_tenth_of_a_cpu_at_most() {
        let _alone = alone();
        let inner = Inner::new(Settings::default(), Rules::default());
        let times = Arc::new(Mutex::new(Vec::new()));
        let of_thread = Arc::clone(&times);
        let make = move || {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(1) {}
            let report = inner.report();
            lock(&of_thread).push((began, Instant::now()));
            report
        };
        let page = &Publication::begin(make).expect("a memfd and a thread").page;
        while lock(&times).len() < 10 {
            ask(page);
            std::thread::yield_now();
        }
        for pair in lock(&times).windows(2) {
            let [(began, ended), (next, _)] = pair else { unreachable!("windows of two") };
            let (took, rested) = (*ended - *began, *next - *ended);
            assert!(rested >= took * 9, "after {took:?} it rested for {rested:?}");
        }
    }
}
