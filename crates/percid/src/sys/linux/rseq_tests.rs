//! Tests of the registration: the calls to the kernel, and the effect of its results.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use Registration::{Libc, Occupied, Percid, Refused, Shared, Unsupported};

/// The size and the flags of each call to the kernel, always for one area.
type Calls = Rc<RefCell<Vec<(u32, i32)>>>;

/// Runs `body` in a thread that was never registered by percid.
fn in_a_fresh_thread(body: impl FnOnce() + Send + 'static) {
    std::thread::spawn(body).join().expect("no panic");
}

/// Answers the calls for the area at `offset` with `answers`, one after the other.
fn answering(offset: isize, answers: &'static [Result<(), i32>]) -> (Calls, steps::Watching) {
    let calls = Calls::default();
    let note = Rc::clone(&calls);
    let watching = steps::watch(move |step| {
        let Step::Rseq(area, size, flags) = step else { return None };
        assert_eq!(area, thread::at(offset) as usize);
        let answer = answers[note.borrow().len()];
        note.borrow_mut().push((size, flags));
        Some(answer)
    });
    (calls, watching)
}

fn answering_for_own(answers: &'static [Result<(), i32>]) -> (Calls, steps::Watching) {
    answering(thread::own_offset(), answers)
}

/// Does the same as the kernel when it registers percid's own area of this thread.
fn set_own_cpu(cpu: i32) {
    // SAFETY: the area is this thread's, and not registered.
    unsafe { (&raw mut (*thread::own()).area.cpu_id).write_volatile(cpu) };
}

fn registered() -> u32 {
    // SAFETY: the block is this thread's own.
    unsafe { (*thread::own()).registered }
}

#[test]
fn as_many_bytes_as_announced_if_there_is_room() {
    // Before Linux 6.3; 6.3 to 6.19; 7.0 on.
    assert_eq!(own_size(0, 0), 32);
    assert_eq!(own_size(28, 32), 32);
    assert_eq!(own_size(33, 64), 33);
    assert_eq!(own_size(64, 64), 64);
    // Neither too many bytes nor too large an alignment.
    assert_eq!(own_size(65, 128), 32);
    assert_eq!(own_size(65, 64), 32);
    assert_eq!(own_size(40, 128), 32);
}

#[test]
fn answers_are_kept_as_numbers() {
    for answer in [Libc, Percid, Shared, Occupied, Unsupported, Refused(1), Refused(libc::ENOSYS)] {
        assert_ne!(answer.pack(), 0);
        assert_eq!(Registration::unpack(answer.pack()), answer);
    }
}

#[test]
fn the_first_answer_is_that_of_all_threads() {
    let place = AtomicU32::new(0);
    let second = || {
        assert_eq!(decided(&place, || Percid), Percid);
        Libc
    };
    assert_eq!(decided(&place, second), Percid);
    assert_eq!(decided(&place, || unreachable!("it is known")), Percid);
}

#[test]
fn what_the_kernel_answers_says_whose_the_area_is() {
    assert_eq!(judge(Ok(()), Shared, true), Shared);
    assert_eq!(judge(Err(libc::EINVAL), Percid, false), Occupied);
    // Another signature, or a sandbox.
    assert_eq!(judge(Err(libc::EPERM), Shared, true), Occupied);
    assert_eq!(judge(Err(libc::EPERM), Shared, false), Refused(libc::EPERM));
    assert_eq!(judge(Err(libc::ENOSYS), Percid, false), Refused(libc::ENOSYS));
}

/// In a thread whose registration by the C library failed, or was removed, the library's symbols do
/// not apply.
#[cfg(target_env = "gnu")]
#[test]
fn the_c_librarys_word_is_not_enough() {
    if registration() != Libc {
        return;
    }
    in_a_fresh_thread(|| {
        assert_eq!(discover(), Libc);
        let area = thread::at(area_offset(Libc)).cast();
        assert_eq!(rseq(area, registered_size(Libc), UNREGISTER), Ok(()));
        let (calls, _watching) = answering_for_own(&[Err(libc::ENOSYS)]);
        assert_eq!(discover(), Refused(libc::ENOSYS));
        assert_eq!(calls.borrow().len(), 1);
    });
}

#[test]
fn an_own_area_is_registered_once() {
    in_a_fresh_thread(|| {
        let (calls, _watching) = answering_for_own(&[Ok(())]);
        assert_eq!(register_own(), Ok(()));
        let size = own_size(feature_size(), alignment());
        assert_eq!((registered(), registered_size(Percid)), (size, size));
        set_own_cpu(0);
        assert_eq!(register_own(), Ok(()));
        set_own_cpu(-1);
        assert_eq!(*calls.borrow(), [(size, 0)]);
    });
}

#[test]
fn what_is_refused_stays_refused() {
    in_a_fresh_thread(|| {
        let (calls, _watching) = answering_for_own(&[Err(libc::EPERM), Ok(())]);
        assert_eq!(register_own(), Err(libc::EPERM));
        assert_eq!(register_own(), Err(libc::EPERM));
        assert_eq!((calls.borrow().len(), registered()), (1, 0));
    });
}

#[test]
fn where_more_bytes_are_refused_32_are_tried() {
    in_a_fresh_thread(|| {
        let (calls, _watching) = answering_for_own(&[Err(libc::EINVAL), Ok(())]);
        assert_eq!(register_own_as(40), Ok(()));
        assert_eq!((calls.borrow().clone(), registered()), (vec![(40, 0), (32, 0)], 32));
    });
    in_a_fresh_thread(|| {
        let (calls, _watching) = answering_for_own(&[Err(libc::EINVAL)]);
        assert_eq!(register_own_as(32), Err(libc::EINVAL));
        assert_eq!((calls.borrow().len(), registered()), (1, 0));
    });
    in_a_fresh_thread(|| {
        let (calls, _watching) = answering_for_own(&[Err(libc::ENOSYS)]);
        assert_eq!(register_own_as(40), Err(libc::ENOSYS));
        assert_eq!((calls.borrow().len(), registered()), (1, 0));
    });
}

#[test]
fn a_handler_may_have_registered_the_same_area() {
    in_a_fresh_thread(|| {
        let _watching = steps::watch(|_| {
            set_own_cpu(0);
            Some(Err(libc::EBUSY))
        });
        assert_eq!(register_own_as(32), Ok(()));
        set_own_cpu(-1);
    });
}

#[test]
fn of_a_shared_area_32_bytes_are_registered_and_more_are_asked_for_only() {
    const EINVAL: Result<(), i32> = Err(libc::EINVAL);
    const EBUSY: Result<(), i32> = Err(libc::EBUSY);
    const EPERM: Result<(), i32> = Err(libc::EPERM);
    let ask = |announced, answers| {
        let (calls, _watching) = answering(64, answers);
        let answer = register_shared(64, announced);
        (answer, calls.borrow().iter().map(|call| call.0).collect::<Vec<_>>())
    };
    assert_eq!(ask(28, &[Ok(())]), (Ok(32), vec![32]));
    assert_eq!(ask(33, &[EBUSY]), (Ok(32), vec![32]));
    assert_eq!(ask(28, &[EINVAL]), (Err(libc::EINVAL), vec![32]));
    assert_eq!(ask(33, &[EPERM]), (Err(libc::EPERM), vec![32]));
    assert_eq!(ask(33, &[EINVAL, EBUSY]), (Ok(33), vec![32, 33]));
    assert_eq!(ask(33, &[EINVAL, EINVAL]), (Err(libc::EINVAL), vec![32, 33]));
    assert_eq!(ask(33, &[EINVAL, Ok(())]), (Err(libc::EINVAL), vec![32, 33]), "never");
    assert_eq!(ask(33, &[EINVAL, EPERM]), (Err(libc::EPERM), vec![32, 33]));
}

/// A handler that ran in the middle would count in an area that the kernel no longer updates.
#[test]
fn a_registration_is_taken_back_for_good_and_without_handlers() {
    let unregister = |answer: Result<(), i32>| {
        let _watching = steps::watch(move |step| {
            if step == Step::BlockSignals {
                return None;
            }
            let Step::Rseq(area, 32, UNREGISTER) = step else { panic!("{step:?}") };
            assert_eq!(area, thread::own() as usize);
            assert_eq!(once(|| unreachable!("registered again")), Err(libc::ESRCH));
            assert!(is_blocked(libc::SIGUSR1));
            Some(answer)
        });
        unregister_own();
        // SAFETY: the block is this thread's own.
        unsafe { (*thread::own()).area.mm_cid }
    };
    in_a_fresh_thread(move || {
        // SAFETY: the block is this thread's own, and these are the values that a registration
        // leaves there.
        unsafe { ((*thread::own()).registered, (*thread::own()).area.mm_cid) = (32, 0) };
        assert_eq!(unregister(Ok(())), u32::MAX);
        assert_eq!(registered(), 0);
        assert!(!is_blocked(libc::SIGUSR1));
    });
    in_a_fresh_thread(move || {
        // SAFETY: the block is this thread's own.
        unsafe { ((*thread::own()).registered, (*thread::own()).area.mm_cid) = (32, 3) };
        assert_eq!(unregister(Err(libc::EINVAL)), 3, "the area is still the kernel's");
    });
}

fn is_blocked(signal: i32) -> bool {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: reads this thread's mask into a place of its size.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr());
        libc::sigismember(set.as_ptr(), signal) == 1
    }
}

#[test]
fn an_area_that_was_never_registered_says_so() {
    in_a_fresh_thread(|| {
        assert_eq!((cpu_id(thread::own_offset()), mm_cid(thread::own_offset())), (None, u32::MAX));
    });
}

#[test]
fn how_much_of_an_area_is_in_use() {
    assert_eq!((usable_size(Occupied), has_mm_cid(Occupied)), (0, false));
    let in_use = usable_size(Libc);
    assert!((20..=32).contains(&in_use));
    assert_eq!(has_mm_cid(Libc), feature_size() >= 28);
    // Before Linux 6.3; 6.3 on; larger areas.
    assert_eq!([20, 28, 32].map(holds_mm_cid), [false, true, true]);
    assert_eq!([0, 20, 28, 32, 33].map(usable), [20, 20, 28, 32, 32]);
    let modes = [(0, 64), (33, 33), (32, 33), (32, 32), (32, 0)];
    let [fast, compatible] = [RseqMode::Fast, RseqMode::Compatible].map(Some);
    let single = Some(RseqMode::Single);
    let of = |(registered, size)| RseqMode::of(registered, size);
    assert_eq!(modes.map(of), [None, fast, compatible, single, single]);
}

/// In a child, whose registration is another one from then on.
#[test]
fn threads_are_registered_as_it_was_decided() {
    let as_if = |decided: Registration, answers: &'static [Result<(), i32>], ok, calls: usize| {
        crate::sys::child::run(|| {
            DECIDED.store(decided.pack(), Relaxed);
            assert_eq!(registration(), decided);
            let (made, _watching) = answering_for_own(answers);
            assert_eq!((register_thread(), register_thread()), (ok, ok), "{decided:?}");
            assert_eq!(made.borrow().len(), calls, "{decided:?}");
        });
    };
    if registration() != Libc {
        return;
    }
    as_if(Libc, &[], false, 0);
    as_if(Occupied, &[], false, 0);
    as_if(Percid, &[Err(libc::EPERM)], false, 1);
    as_if(Percid, &[Ok(()), Ok(())], true, 2);
    if thread::shared_offset().is_none() {
        as_if(Shared, &[], false, 0);
        assert_eq!((registered_size(Shared), registered_size(Occupied)), (0, 0));
        assert_eq!(area_offset(Shared), thread::own_offset());
    }
    assert_eq!(area_offset(Occupied), thread::own_offset());
    assert_ne!(area_offset(Libc), thread::own_offset());
    assert_eq!(thread::libc_rseq().map(|libc| libc.offset), Some(area_offset(Libc)));
    assert!(registered_size(Libc) >= 32 && libc_size() >= 20);
}
