//! The kernel's trace, brought into the form of a recording.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A recording.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(crate) lines: String,
    passes: u32,
    skips: u32,
    arms: u32,
    hints: u32,
    /// The chunk whose result has not come yet, by thread: two may arm at the same time.
    arming: BTreeMap<String, (String, String)>,
    /// The address of the last fault, by thread.
    faults: BTreeMap<String, String>,
    /// A pass without an event so far: it may not have been due.
    pass: Option<String>,
}

impl Recording {
    /// Reads the text of tracefs.
    pub(crate) fn read(trace: &str) -> Result<Recording, String> {
        let mut recording = Recording::default();
        for line in trace.lines().filter(|line| !line.starts_with('#')) {
            recording.line(line).ok_or_else(|| format!("a line of the trace: {line:?}"))?;
        }
        if recording.passes == 0 {
            return Err("no pass of the scan was seen".to_owned());
        }
        Ok(recording)
    }

    pub(crate) fn figures(&self) -> String {
        format!(
            "passes={} skips={} chunks={} hints={}",
            self.passes, self.skips, self.arms, self.hints
        )
    }

    /// Parses `      task-TID   [CPU] flags  time: event: text`.
    fn line(&mut self, line: &str) -> Option<()> {
        let (head, rest) = line.split_once(" [")?;
        let thread: u32 = head.rsplit('-').next()?.trim().parse().ok()?;
        let thread = format!("{thread:x}");
        let (_, rest) = rest.split_once(": ")?;
        let (event, text) = rest.split_once(": ")?;
        match event.trim() {
            "tracing_mark_write" => self.put(text.trim()),
            "pass" => self.pass = Some(format!("pass {thread} {:x}", decimal(text, "ticks=")?)),
            "sched_skip_vma_numa" => self.skip(text)?,
            "arm" => {
                self.arming.insert(thread, (hex(text, "start=")?, hex(text, "end=")?));
            }
            "armed" => {
                let (start, end) = self.arming.remove(&thread)?;
                self.found(&format!("arm {start} {end} {:x}", decimal(text, "changed=")?));
                self.arms += 1;
            }
            "fault" => {
                self.faults.insert(thread, hex(text, "address=")?);
            }
            "hint" => {
                let address = self.faults.remove(&thread)?;
                self.put(&format!("hint {thread} {address}"));
                self.hints += 1;
            }
            _ => return None,
        }
        Some(())
    }

    fn skip(&mut self, text: &str) -> Option<()> {
        let start = word(text, "vm_start=")?.to_lowercase();
        let line = format!("skip {start} {}", word(text, "reason=")?);
        self.found(&line);
        self.skips += 1;
        Some(())
    }

    /// Records an event of a pass.
    fn found(&mut self, line: &str) {
        if let Some(pass) = self.pass.take() {
            self.put(&pass);
            self.passes += 1;
        }
        self.put(line);
    }

    fn put(&mut self, line: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.lines, "{line}");
    }
}

fn word<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_whitespace().find_map(|word| word.strip_prefix(key))
}

fn decimal(text: &str, key: &str) -> Option<u64> {
    word(text, key)?.parse().ok()
}

fn hex(text: &str, key: &str) -> Option<String> {
    Some(format!("{:x}", decimal(text, key)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(thread: u32, text: &str) -> String {
        format!("        programs-{thread}     [002] .....     9.282828: {text}\n")
    }

    #[test]
    fn threads_that_arm_at_the_same_time_keep_their_chunks() {
        let trace = [
            event(16, "pass: (task_numa_work+0x0/0x1) ticks=7"),
            event(16, "arm: (change_prot_numa+0x0/0x1) start=4096 end=8192"),
            event(17, "arm: (change_prot_numa+0x0/0x1) start=8192 end=12288"),
            event(16, "armed: (task_numa_work+0x1/0x2 <- change_prot_numa) changed=1"),
            event(17, "armed: (task_numa_work+0x1/0x2 <- change_prot_numa) changed=8"),
        ];
        let recording = Recording::read(&trace.concat()).expect("a recording");
        assert_eq!(recording.lines, "pass 10 7\narm 1000 2000 1\narm 2000 3000 8\n");
    }

    #[test]
    fn a_result_without_its_chunk_is_refused() {
        let lost = event(16, "armed: (task_numa_work+0x1/0x2 <- change_prot_numa) changed=8");
        assert!(Recording::read(&lost).expect_err("lost").contains("changed=8"));
    }
}
