//! Version 6: everything in a fixed order, and at the end a table of the data of CPUs.

use super::buffer::{Buffer, DatContent, Room, layout, part};
use super::clock;
use super::options::{self, Options, number};
use crate::error::Error;
use crate::event::Cpu;
use crate::read::bytes::Bytes;
use crate::read::tracing_data::{self, Beginning};
use crate::sub_buffers::Layout;

/// The content of such a file.
pub(super) enum Content<'a> {
    Recording(Box<DatContent<'a>>),
    /// Text of the kernel's file `trace`.
    Text(&'a [u8]),
}

/// Kinds of the next part, as a word of ten bytes.
const OPTIONS: &[u8] = b"options  \0";
const TEXT: &[u8] = b"latency  \0";
const RECORDS: &[u8] = b"flyrecord\0";

pub(super) fn read<'a>(bytes: &'a [u8], beginning: Beginning<'a>) -> Result<Content<'a>, Error> {
    let mut formats = beginning.formats();
    let mut data = beginning.rest;
    let layout = layout(tracing_data::header_page(&mut data)?, data)?;
    tracing_data::events_of_ftrace(&mut data)?;
    tracing_data::systems(&mut data, &mut formats)?;
    tracing_data::symbols(&mut data, &mut formats)?;
    let size = data.u32("the size of the formats of trace_printk")?;
    data.take(size.into(), "the formats of trace_printk")?;
    tracing_data::sized(&mut data, "the names of threads")?;
    let cpus = data.u32("the number of CPUs")?;
    let mut file = File {
        all: Bytes::new(bytes, 0, beginning.order),
        layout,
        cpus,
        room: Room::from_file(bytes),
        options: Options::default(),
    };
    let mut instances = Vec::new();
    let mut word = data.take(OPTIONS.len() as u64, "what follows the head of the file")?;
    if word == OPTIONS {
        instances = file.take_options(&mut data)?;
        word = data.take(RECORDS.len() as u64, "what follows the options")?;
    }
    match word {
        TEXT => return Ok(Content::Text(data.rest())),
        RECORDS => {}
        _ => return Err(data.error("expected were records or text of a trace before this byte")),
    }
    file.cpus = file.options.cpus.unwrap_or(cpus);
    file.options.cpus = Some(file.cpus);
    let mut buffers = vec![file.buffer(String::new(), data)?];
    for (name, offset) in instances {
        let mut data = file.instance(&name, offset)?;
        if data.take(RECORDS.len() as u64, "an instance")? != RECORDS {
            return Err(data.error("expected were records of an instance before this byte"));
        }
        buffers.push(file.buffer(name, data)?);
    }
    let recording = DatContent { formats, options: file.options, buffers };
    Ok(Content::Recording(Box::new(recording)))
}

struct File<'a> {
    all: Bytes<'a>,
    layout: Layout,
    /// Number of CPUs that have data in every buffer.
    cpus: u32,
    room: Room,
    options: Options,
}

impl<'a> File<'a> {
    /// Takes the options; returns the names of instances, and where they are.
    fn take_options(&mut self, data: &mut Bytes<'_>) -> Result<Vec<(String, u64)>, Error> {
        let mut instances = Vec::new();
        loop {
            let mut end = *data;
            if end.u16("an option")? == number::DONE {
                *data = end;
                return Ok(instances);
            }
            let (option, mut value) = options::next(data)?;
            if option == number::BUFFER {
                let offset = value.u64("where an instance is")?;
                instances.push((options::text(value), offset));
            } else {
                self.options.take(option, value)?;
            }
        }
    }

    /// Returns the beginning of an instance.
    fn instance(&self, name: &str, offset: u64) -> Result<Bytes<'a>, Error> {
        let size = (self.all.rest().len() as u64).saturating_sub(offset);
        part(self.all, offset, size).ok_or_else(|| {
            let what =
                format!("the instance {name:.32?} at byte {offset} is beyond the end of the file");
            Error::in_file(what)
        })
    }

    /// Reads a buffer whose table comes next: for each CPU the offset of its data.
    fn buffer(&mut self, name: String, mut table: Bytes<'a>) -> Result<Buffer<'a>, Error> {
        let mut cpus = Vec::new();
        for cpu in 0..self.cpus {
            let data = self.room.data(self.all, &mut table, 0)?;
            cpus.push((cpu as Cpu, data.rest().into()));
        }
        // A file that names a clock for the recording also has one for each buffer.
        let own = match self.options.clock {
            Some(_) => Some(tracing_data::sized(&mut table, "the clock of a buffer")?),
            None => None,
        };
        let own = own.map(String::from_utf8_lossy);
        let own = own.as_deref().map(|text| clock::chosen(text.trim_end_matches('\0')));
        let clock = self.options.clock_of(own.filter(|name| !name.is_empty()))?;
        Ok(Buffer { name, layout: self.layout, clock, cpus })
    }
}
