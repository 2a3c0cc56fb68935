//! Version 7: sections, which may be compressed, and lists of options with their offsets.

use std::borrow::Cow;

use super::buffer::{Buffer, DatContent, Room, layout, part};
use super::compression::Compression;
use super::options::{self, Options, number};
use crate::error::Error;
use crate::formats::Formats;
use crate::read::bytes::Bytes;
use crate::read::tracing_data::{self, Beginning};
use crate::sub_buffers::Layout;

/// A flag of a section.
const IS_COMPRESSED: u16 = 1;

/// There is a list for the head of the file and one for each buffer. Each may name the next one, in a
/// damaged file without end.
const MOST_LISTS: usize = 1024;

pub(super) fn read<'a>(bytes: &'a [u8], beginning: Beginning<'a>) -> Result<DatContent<'a>, Error> {
    let mut formats = beginning.formats();
    let mut head = beginning.rest;
    let compression = Compression::take(&mut head)?;
    let file = File { all: Bytes::new(bytes, 0, beginning.order), compression };
    let lists = Lists::read(&file, head.u64("where the options are")?)?;
    let mut layout = None;
    let mut symbols = None;
    for &(option, offset) in &lists.sections {
        match option {
            number::HEADERS => layout = Some(file.layout(offset)?),
            number::EVENT_FORMATS => file.formats(offset, &mut formats)?,
            _ => symbols = Some(offset),
        }
    }
    if let Some(offset) = symbols {
        let section = file.section(offset)?.content()?;
        tracing_data::symbols(&mut file.bytes(&section), &mut formats)?;
    }
    let Some(layout) = layout.filter(|_| !lists.buffers.is_empty()) else {
        let what = match lists.has_text {
            true => "it has the text of a latency tracer: expected were events",
            false => "it has no buffer with events, or does not describe it",
        };
        return Err(Error::in_file(what));
    };
    let mut room = Room::from_file(bytes);
    let buffers = lists.buffers.iter();
    let buffers = buffers.map(|buffer| file.buffer(*buffer, layout, &lists.options, &mut room));
    let buffers = buffers.collect::<Result<_, _>>()?;
    Ok(DatContent { formats, options: lists.options, buffers })
}

/// The content of the lists of options.
#[derive(Default)]
struct Lists<'a> {
    options: Options,
    /// The sections that describe events, and where they are.
    sections: Vec<(u16, u64)>,
    buffers: Vec<Bytes<'a>>,
    has_text: bool,
}

impl<'a> Lists<'a> {
    fn read(file: &File<'a>, first: u64) -> Result<Lists<'a>, Error> {
        let mut lists = Lists::default();
        let mut offset = first;
        for _ in 0..MOST_LISTS {
            let section = file.section(offset)?;
            if section.is_compressed {
                return Err(section.data.error("a list of options is compressed"));
            }
            offset = lists.take(section.data)?;
            if offset == 0 {
                return Ok(lists);
            }
        }
        Err(Error::in_file("its lists of options have no end"))
    }

    /// Takes a list; returns where the next one is.
    fn take(&mut self, mut list: Bytes<'a>) -> Result<u64, Error> {
        loop {
            let (option, mut data) = options::next(&mut list)?;
            match option {
                number::DONE => return data.u64("where more options are"),
                number::BUFFER => self.buffers.push(data),
                number::TEXT => self.has_text = true,
                number::HEADERS | number::EVENT_FORMATS | number::SYMBOLS => {
                    self.sections.push((option, data.u64("where a section is")?));
                }
                _ => {
                    self.options.take(option, data)?;
                }
            }
        }
    }
}

struct File<'a> {
    all: Bytes<'a>,
    compression: Compression,
}

/// A section as it is in the file.
struct Section<'a> {
    is_compressed: bool,
    compression: Compression,
    data: Bytes<'a>,
}

impl<'a> Section<'a> {
    fn content(mut self) -> Result<Cow<'a, [u8]>, Error> {
        match self.is_compressed {
            true => self.compression.piece(&mut self.data),
            false => Ok(self.data.rest().into()),
        }
    }
}

impl<'a> File<'a> {
    fn section(&self, offset: u64) -> Result<Section<'a>, Error> {
        const HEAD: u64 = 16;
        let missing = || Error::at_byte(offset, "expected was a section, the file ends before it");
        let mut head = part(self.all, offset, HEAD).ok_or_else(missing)?;
        head.u16("a section")?;
        let flags = head.u16("a section")?;
        head.u32("a section")?;
        let size = head.u64("a section")?;
        let start = offset + HEAD;
        let data = part(self.all, start, size).ok_or_else(missing)?;
        let is_compressed = flags & IS_COMPRESSED != 0;
        Ok(Section { is_compressed, compression: self.compression, data })
    }

    /// Returns the content of a section, for parsing. Decompressed data has no offset in the file.
    fn bytes<'b>(&self, section: &'b [u8]) -> Bytes<'b> {
        Bytes::new(section, 0, self.all.order())
    }

    fn layout(&self, offset: u64) -> Result<Layout, Error> {
        let section = self.section(offset)?.content()?;
        layout(tracing_data::header_page(&mut self.bytes(&section))?, self.all)
    }

    fn formats(&self, offset: u64, formats: &mut Formats) -> Result<(), Error> {
        let section = self.section(offset)?.content()?;
        tracing_data::systems(&mut self.bytes(&section), formats)
    }

    /// A buffer by its option: where its section is, its name, clock and size of sub-buffers, and where
    /// the data of each CPU is.
    fn buffer(
        &self,
        mut option: Bytes<'_>,
        layout: Layout,
        options: &Options,
        room: &mut Room,
    ) -> Result<Buffer<'a>, Error> {
        let section = self.section(option.u64("where a buffer is")?)?;
        let name = option.text("the name of a buffer")?;
        let clock = option.text("the clock of a buffer")?;
        let clock = String::from_utf8_lossy(clock);
        let clock = Some(super::clock::chosen(&clock)).filter(|clock| !clock.is_empty());
        let size = option.u32("the size of sub-buffers")?;
        let layout = layout.with_size(size as usize);
        let layout = layout.ok_or_else(|| option.error(format!("sub-buffers of {size} bytes")))?;
        let mut cpus = Vec::new();
        for _ in 0..option.u32("the number of CPUs")? {
            let cpu = option.u32("a CPU")?;
            let prefix = if section.is_compressed { Compression::PREFIX } else { 0 };
            let mut data = room.data(self.all, &mut option, prefix)?;
            let data = match section.is_compressed && !data.is_empty() {
                true => self.compression.pieces(&mut data)?,
                false => data.rest().into(),
            };
            cpus.push((cpu, data));
        }
        let name = String::from_utf8_lossy(name).into_owned();
        Ok(Buffer { name, layout, clock: options.clock_of(clock)?, cpus })
    }
}
