//! In place of percid-command: what `percid numa report --pid` uses of it.

/// Ctrl-C.
pub mod interrupt {
    use std::time::Duration;

    /// The state of Ctrl-C, which is never pressed here.
    #[derive(Clone, Debug)]
    pub struct Interrupt;

    impl Interrupt {
        /// Returns `false`.
        pub fn pressed(&self) -> bool {
            false
        }

        /// Sleeps for `duration`.
        pub fn sleep(&self, duration: Duration) {
            std::thread::sleep(duration);
        }
    }
}
