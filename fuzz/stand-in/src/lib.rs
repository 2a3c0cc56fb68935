//! In place of percid-command: what `percid numa report --pid` uses of it.

/// Ctrl-C.
pub mod interrupt {
    use std::time::Duration;

    /// Whether Ctrl-C was pressed, which nobody does here.
    #[derive(Clone, Debug)]
    pub struct Interrupt;

    impl Interrupt {
        /// Never.
        pub fn pressed(&self) -> bool {
            false
        }

        /// Sleeps.
        pub fn sleep(&self, duration: Duration) {
            std::thread::sleep(duration);
        }
    }
}
