//! The functions that the page's worker calls.
//!
//! Texts are passed in the module's memory: the worker writes a request to the bytes that
//! [`request`] returns, and reads an answer at [`answer`].

use std::cell::RefCell;

use percid_sim::run_control::RunControl;

use crate::session::Session;

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Tells the worker the number of events that are done.
    fn progress(done: f64);
}

#[derive(Default)]
struct State {
    request: Vec<u8>,
    answer: String,
    session: Option<Session>,
    control: RunControl,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn tell(done: u64) {
    // SAFETY: the worker defines the function for every instance, and it takes any number.
    unsafe { progress(done as f64) }
}

/// Returns the address of `bytes` bytes for a request, valid until the next call.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn request(bytes: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.request = vec![0; bytes];
        state.request.as_mut_ptr()
    })
}

/// Begins the session that was requested. Returns the expected number of events, or -1 if the
/// answer is an error.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn begin() -> f64 {
    STATE.with_borrow_mut(|state| {
        let request = String::from_utf8_lossy(&state.request).into_owned();
        let session = Session::new(&request);
        let events = session.as_ref().map_err(String::clone).and_then(Session::expected_events);
        state.session = session.ok();
        state.control = RunControl { on_progress: Some(tell), ..RunControl::default() };
        events.map_or_else(|error| failed(state, error), |events| events as f64)
    })
}

/// Simulates the next policy; the answer is the document of the results so far. Returns 1 if
/// policies are left, 0 if not, -1 if the answer is an error.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn step() -> f64 {
    STATE.with_borrow_mut(|state| {
        let Some(session) = &mut state.session else {
            return failed(state, "expected a session: begin() comes first".to_owned());
        };
        match session.step(&state.control) {
            Ok(more) => {
                state.answer = session.document();
                f64::from(u8::from(more))
            }
            Err(error) => failed(state, error),
        }
    })
}

/// Returns the address of the answer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn answer() -> *const u8 {
    STATE.with_borrow(|state| state.answer.as_ptr())
}

/// Returns the number of bytes of the answer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn answer_bytes() -> usize {
    STATE.with_borrow(|state| state.answer.len())
}

fn failed(state: &mut State, error: String) -> f64 {
    state.answer = error;
    -1.0
}
