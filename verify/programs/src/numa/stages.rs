//! The stages of a long program: their findings and their times.

use std::time::Instant;

use crate::verdict::Verdict;

/// The results of the stages so far.
#[derive(Debug, Default)]
pub(super) struct Stages {
    pub(super) figures: Vec<String>,
}

impl Stages {
    /// Runs a stage. Its name stays on standard error if it never ends, or its duration if it does.
    pub(super) fn run(
        &mut self,
        name: &str,
        stage: impl FnOnce() -> Verdict,
    ) -> Result<(), String> {
        eprint!("{name}:");
        let began = Instant::now();
        let found = stage();
        eprintln!(" {:.1} s", began.elapsed().as_secs_f64());
        self.figures.push(found.map_err(|why| format!("{name}: {why}"))?);
        Ok(())
    }

    /// Runs a stage that has no figures.
    pub(super) fn silent(
        &mut self,
        name: &str,
        stage: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        self.run(name, || stage().map(|()| String::new()))?;
        self.figures.pop();
        Ok(())
    }
}
