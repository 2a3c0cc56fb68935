//! The emulator's debugging stub: stops CPUs, looks at them, lets some of them go on.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use iced_x86::Register;

use crate::error::Error;
use crate::machine::{Event, Machine};
use crate::packet::{bytes, digits, frame};

/// Time limit for an answer: the host may have other load.
const PATIENCE: Duration = Duration::from_secs(20);

/// The registers in the order of the stub's answer to `g`, 8 bytes each.
const REGISTERS: [Register; 17] = [
    Register::RAX,
    Register::RBX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::RBP,
    Register::RSP,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
    Register::RIP,
];

/// A CPU's registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registers([u64; REGISTERS.len()]);

impl Registers {
    /// Returns the value of a general register, or of `rip`.
    pub fn get(&self, register: Register) -> Option<u64> {
        let at = REGISTERS.iter().position(|known| *known == register)?;
        Some(self.0[at])
    }

    fn parse(answer: &[u8]) -> Option<Self> {
        let bytes = bytes(answer.get(..16 * REGISTERS.len())?)?;
        let mut values = [0; REGISTERS.len()];
        for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(8)) {
            *value = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        Some(Self(values))
    }
}

/// An event of a machine for its debugger.
#[derive(Debug)]
pub enum Happening {
    /// A line on the console.
    Line(String),
    /// All CPUs stand, because this one came to a breakpoint or finished a step.
    Stopped(u32),
    /// The machine is gone.
    Gone,
}

/// A machine under the debugger.
#[derive(Debug)]
pub struct Target {
    machine: Machine,
    /// The stub's names of the CPUs.
    names: Vec<String>,
    /// Lines that came while an answer was waited for.
    lines: VecDeque<String>,
}

impl Target {
    /// Takes over a machine that stands.
    pub fn attach(machine: Machine) -> Result<Self, Error> {
        let mut target = Self { machine, names: Vec::new(), lines: VecDeque::new() };
        target.ask("qSupported")?;
        target.ask("?")?;
        let mut answer = target.ask("qfThreadInfo")?;
        while let Some(names) = answer.strip_prefix(b"m") {
            let names = String::from_utf8_lossy(names).into_owned();
            target.names.extend(names.split(',').map(str::to_owned));
            answer = target.ask("qsThreadInfo")?;
        }
        if target.names.len() != crate::machine::CPUS as usize {
            return Err(Error::Stub(format!("it names the CPUs {:?}", target.names)));
        }
        Ok(target)
    }

    /// Returns the next event, if there is one within `time`.
    pub fn next(&mut self, time: Duration) -> Result<Option<Happening>, Error> {
        if let Some(line) = self.lines.pop_front() {
            return Ok(Some(Happening::Line(line)));
        }
        Ok(match self.machine.next(time) {
            None => None,
            Some(Event::Line(line)) => Some(Happening::Line(line)),
            Some(Event::Packet(packet)) if has_ended(&packet) => Some(Happening::Gone),
            Some(Event::Packet(packet)) => Some(Happening::Stopped(self.stopped(&packet)?)),
            Some(Event::Gone) => Some(Happening::Gone),
        })
    }

    /// Stops all CPUs. If one came to a breakpoint at this moment, its number.
    pub fn stop(&mut self) -> Result<u32, Error> {
        self.machine.send(&[3])?;
        let packet = self.answer("the request to stop")?;
        self.stopped(&packet)
    }

    /// Lets all CPUs go on.
    pub fn resume(&mut self) -> Result<(), Error> {
        self.machine.send(&frame("vCont;c"))
    }

    /// Lets all CPUs but one go on.
    pub fn resume_all_but(&mut self, held: u32) -> Result<(), Error> {
        let others = self.names.iter().enumerate().filter(|(cpu, _)| *cpu != held as usize);
        let actions: String = others.map(|(_, name)| format!(";c:{name}")).collect();
        self.machine.send(&frame(&format!("vCont{actions}")))
    }

    /// Lets one CPU do one instruction while the others stand.
    pub fn step(&mut self, cpu: u32) -> Result<(), Error> {
        let packet = self.ask(&format!("vCont;s:{}", self.name(cpu)?))?;
        self.stopped(&packet).map(drop)
    }

    /// Makes every CPU stop that comes to `address`.
    pub fn set_breakpoint(&mut self, address: u64) -> Result<(), Error> {
        self.demand_ok(&format!("Z1,{address:x},1"))
    }

    /// Undoes that.
    pub fn clear_breakpoint(&mut self, address: u64) -> Result<(), Error> {
        self.demand_ok(&format!("z1,{address:x},1"))
    }

    /// Returns the registers of a CPU that stands.
    pub fn registers(&mut self, cpu: u32) -> Result<Registers, Error> {
        self.select(cpu)?;
        let answer = self.ask("g")?;
        Registers::parse(&answer).ok_or_else(|| strange("g", &answer))
    }

    /// Returns memory as the CPU sees it at this moment; `None` if nothing is mapped there.
    pub fn read(
        &mut self,
        cpu: u32,
        address: u64,
        length: usize,
    ) -> Result<Option<Vec<u8>>, Error> {
        const PIECE: usize = 1024;
        self.select(cpu)?;
        let mut memory = Vec::with_capacity(length);
        while memory.len() < length {
            let count = PIECE.min(length - memory.len());
            let answer = self.ask(&format!("m{:x},{count:x}", address + memory.len() as u64))?;
            match bytes(&answer) {
                Some(piece) if piece.len() == count => memory.extend(piece),
                _ if answer.starts_with(b"E") => return Ok(None),
                _ => return Err(strange("m", &answer)),
            }
        }
        Ok(Some(memory))
    }

    /// Writes a word to memory as the CPU sees it; `false` if nothing is mapped there.
    pub fn write_word(&mut self, cpu: u32, address: u64, word: u32) -> Result<bool, Error> {
        self.select(cpu)?;
        let word = digits(&word.to_le_bytes());
        let answer = self.ask(&format!("M{address:x},4:{word}"))?;
        match &answer[..] {
            b"OK" => Ok(true),
            [b'E', ..] => Ok(false),
            _ => Err(strange("M", &answer)),
        }
    }

    fn select(&mut self, cpu: u32) -> Result<(), Error> {
        let order = format!("Hg{}", self.name(cpu)?);
        self.demand_ok(&order)
    }

    fn name(&self, cpu: u32) -> Result<String, Error> {
        let name = self.names.get(cpu as usize).cloned();
        name.ok_or_else(|| Error::Stub(format!("it knows no CPU {cpu}")))
    }

    fn demand_ok(&mut self, order: &str) -> Result<(), Error> {
        let answer = self.ask(order)?;
        if answer == b"OK" { Ok(()) } else { Err(strange(order, &answer)) }
    }

    /// Sends an order and waits for the answer. The machine must stand.
    fn ask(&mut self, order: &str) -> Result<Vec<u8>, Error> {
        self.machine.send(&frame(order))?;
        self.answer(order)
    }

    fn answer(&mut self, to: &str) -> Result<Vec<u8>, Error> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.machine.next(until.saturating_duration_since(Instant::now())) {
                Some(Event::Packet(packet)) => return Ok(packet),
                Some(Event::Line(line)) => self.lines.push_back(line),
                Some(Event::Gone) => {
                    return Err(Error::Stub(format!("gone before it answered `{to}`")));
                }
                None => return Err(Error::Stub(format!("no answer to `{to}`"))),
            }
        }
    }

    /// Returns the CPU of a stop reply.
    fn stopped(&self, packet: &[u8]) -> Result<u32, Error> {
        let name = thread_of(packet).ok_or_else(|| strange("going on", packet))?;
        let cpu = self.names.iter().position(|known| same_thread(known, &name));
        cpu.map(|cpu| cpu as u32).ok_or_else(|| strange("going on", packet))
    }
}

/// Returns the name of the thread in a reply such as `T05thread:02;`.
fn thread_of(packet: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(packet.strip_prefix(b"T")?).ok()?;
    let pairs = text.get(2..)?.split(';').filter_map(|pair| pair.split_once(':'));
    let mut names = pairs.filter(|(key, _)| *key == "thread").map(|(_, name)| name.to_owned());
    names.next()
}

/// Returns `true` if a reply reports the end of the machine.
fn has_ended(packet: &[u8]) -> bool {
    matches!(packet.first(), Some(b'W' | b'X'))
}

/// Compares names, which are hexadecimal numbers with leading zeros in some replies and without in
/// others.
fn same_thread(a: &str, b: &str) -> bool {
    a.trim_start_matches('0') == b.trim_start_matches('0')
}

fn strange(order: &str, answer: &[u8]) -> Error {
    Error::Stub(format!("it answers `{order}` by `{}`", String::from_utf8_lossy(answer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_reply_names_its_cpu() {
        assert_eq!(thread_of(b"T05thread:08;"), Some("08".into()));
        assert_eq!(thread_of(b"T02thread:01;hwbreak:;"), Some("01".into()));
        assert_eq!(thread_of(b"T05hwbreak:;"), None);
        assert_eq!(thread_of(b"OK"), None);
        assert_eq!(thread_of(b"T"), None);
        assert!(has_ended(b"W00") && !has_ended(b"T05thread:01;"));
        assert!(same_thread("01", "1") && !same_thread("01", "10"));
    }

    #[test]
    fn registers_are_read_in_the_order_of_the_protocol() {
        let values: Vec<u8> = (1..=17_u64).flat_map(u64::to_le_bytes).collect();
        let answer = format!("{}00000002", digits(&values));
        let registers = Registers::parse(answer.as_bytes()).expect("17 registers and more");
        assert_eq!(registers.get(Register::RAX), Some(1));
        assert_eq!(registers.get(Register::RBP), Some(7));
        assert_eq!(registers.get(Register::R15), Some(16));
        assert_eq!(registers.get(Register::RIP), Some(17));
        assert_eq!(registers.get(Register::XMM0), None);
        assert_eq!(Registers::parse(b"E01"), None);
        assert_eq!(Registers::parse(&answer.as_bytes()[..100]), None);
    }
}
