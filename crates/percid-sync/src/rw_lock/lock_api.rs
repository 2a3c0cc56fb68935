//! The raw lock as `lock_api` has it.

use std::time::{Duration, Instant};

use super::raw::RawRwLock;

// SAFETY: the proof in `raw` shows that a writer is alone. A guard may end on another thread, since
// only the sums of the readers have a meaning, and no writer is bound to its thread.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: RawRwLock = RawRwLock::new();

    type GuardMarker = lock_api::GuardSend;

    #[inline(always)]
    fn lock_shared(&self) {
        self.read(None);
    }

    #[inline(always)]
    fn try_lock_shared(&self) -> bool {
        self.try_read()
    }

    #[inline(always)]
    unsafe fn unlock_shared(&self) {
        self.read_unlock();
    }

    fn lock_exclusive(&self) {
        if let Err(why) = self.write(None) {
            panic!("{why}");
        }
    }

    fn try_lock_exclusive(&self) -> bool {
        self.write(Some(Instant::now())).is_ok()
    }

    unsafe fn unlock_exclusive(&self) {
        self.write_unlock();
    }

    fn is_locked(&self) -> bool {
        self.is_closed() || self.reader_count() > 0
    }

    fn is_locked_exclusive(&self) -> bool {
        self.is_closed()
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, time: Duration) -> bool {
        self.read(Instant::now().checked_add(time))
    }

    fn try_lock_shared_until(&self, deadline: Instant) -> bool {
        self.read(Some(deadline))
    }

    fn try_lock_exclusive_for(&self, time: Duration) -> bool {
        self.write(Instant::now().checked_add(time)).is_ok()
    }

    fn try_lock_exclusive_until(&self, deadline: Instant) -> bool {
        self.write(Some(deadline)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_of_lock_api_excludes() {
        let lock = lock_api::RwLock::<RawRwLock, _>::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..1000).for_each(|_| *lock.write() += 1));
                scope.spawn(|| (0..1000).for_each(|_| assert!(*lock.read() <= 2000)));
            }
        });
        assert_eq!(*lock.read(), 2000);
        let reading = lock.read();
        assert!(lock.try_write().is_none() && lock.try_write_for(Duration::ZERO).is_none());
        std::thread::scope(|scope| {
            scope.spawn(move || drop(reading));
        });
        let writing = lock.try_write_until(Instant::now() + Duration::from_secs(60));
        assert!(writing.is_some() && lock.is_locked_exclusive());
        assert!(lock.try_read().is_none() && lock.try_read_for(Duration::ZERO).is_none());
        drop(writing);
        assert!(!lock.is_locked());
        assert!(lock.try_read_until(Instant::now()).is_some());
    }
}
