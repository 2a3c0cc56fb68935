//! The programs of a workload's file: one, or several beside each other.

use super::description::{Amount, CpuMax, Memory, OneOfSeveral, Threads, Workload};
use crate::file::Error;

/// A program, described anywhere in the file.
pub(super) struct Described<'a> {
    /// Path of fields that leads to it.
    pub(super) path: Vec<String>,
    pub(super) name: &'a str,
    pub(super) memory: Memory,
    pub(super) processes: Option<&'a Amount>,
    pub(super) quota: Option<&'a CpuMax>,
    pub(super) threads: &'a [Threads],
}

impl Workload {
    /// Returns `true` if its file lists programs: then the results include each of them.
    pub fn has_programs(&self) -> bool {
        self.programs.is_some()
    }

    /// Returns `true` if any of its processes has a CPU quota.
    pub fn has_quota(&self) -> bool {
        self.quota.is_some() || self.several().iter().any(|program| program.quota.is_some())
    }

    /// Returns the kinds of memory that its programs write to, without duplicates.
    pub fn memories(&self) -> Vec<Memory> {
        let mut memories = Vec::new();
        for program in self.several() {
            let memory = program.memory.unwrap_or(self.memory);
            if !memories.contains(&memory) {
                memories.push(memory);
            }
        }
        if memories.is_empty() { vec![self.memory] } else { memories }
    }

    /// Sets the kind of memory that all programs write to.
    pub fn set_memory(&mut self, memory: Memory) {
        self.memory = memory;
        for program in self.programs.iter_mut().flatten() {
            program.memory = None;
        }
    }

    fn several(&self) -> &[OneOfSeveral] {
        self.programs.as_deref().unwrap_or_default()
    }

    /// Returns the programs.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no program, or if names are empty or not unique. Fields of a
    /// single program beside a list of programs are an error, too.
    pub(super) fn described(&self) -> Result<Vec<Described<'_>>, Error> {
        let Some(programs) = &self.programs else { return Ok(vec![self.only()?]) };
        let misplaced = [
            ("threads", self.threads.is_some()),
            ("processes", self.processes.is_some()),
            ("quota", self.quota.is_some()),
        ];
        if let Some((field, _)) = misplaced.into_iter().find(|(_, is_given)| *is_given) {
            return Err(
                self.fault(&[field], "expected in each of `[[programs]]`, as these are given")
            );
        }
        if programs.is_empty() {
            return Err(self.fault(&["programs"], "expected at least one program"));
        }
        programs.iter().enumerate().map(|(at, one)| self.one_of(programs, at, one)).collect()
    }

    fn only(&self) -> Result<Described<'_>, Error> {
        let expected = "expected `[[threads]]`, or `[[programs]]` which have them".to_owned();
        let threads = self.threads.as_ref().ok_or_else(|| Error::of_file(expected))?;
        Ok(Described {
            path: Vec::new(),
            name: &self.name,
            memory: self.memory,
            processes: self.processes.as_ref(),
            quota: self.quota.as_ref(),
            threads,
        })
    }

    fn one_of<'a>(
        &self,
        programs: &[OneOfSeveral],
        at: usize,
        one: &'a OneOfSeveral,
    ) -> Result<Described<'a>, Error> {
        let path = vec!["programs".to_owned(), at.to_string()];
        let refused = |reason: &str| Err(self.fault(&["programs", &path[1], "name"], reason));
        if one.name.is_empty() {
            return refused("expected a name");
        }
        if programs[..at].iter().any(|other| other.name == one.name) {
            return refused(&format!("{:?} is the name of another program", one.name));
        }
        Ok(Described {
            path,
            name: &one.name,
            memory: one.memory.unwrap_or(self.memory),
            processes: one.processes.as_ref(),
            quota: one.quota.as_ref(),
            threads: &one.threads,
        })
    }

    fn fault(&self, path: &[&str], expected: &str) -> Error {
        Error::of_field(&self.text, path, expected)
    }
}
