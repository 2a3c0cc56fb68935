//! The stress of every structure: nothing is lost, doubled, torn or handed to two threads, whatever
//! happens around it. Each subject defines its own checks.

mod buckets;
mod counter;
mod histogram;
mod items;
mod local;
mod mask;
mod pool;
mod ring;
mod stack;

use percid::Source;
use percid::id::SourceError;

use crate::chaos::{self, Subject};
use crate::options::Options;
use crate::verdict::Verdict;

/// A subject that uses a source.
type Make = fn(Source) -> Result<Box<dyn Subject>, SourceError>;

const STRUCTURES: [(&str, Make); 8] = [
    ("buckets", buckets::make),
    ("counter", counter::make),
    ("histogram", histogram::make),
    ("local", local::make),
    ("stack", stack::make),
    ("pool", pool::make),
    ("ring", ring::make),
    ("mask", mask::make),
];

pub(crate) fn run(options: &Options) -> Verdict {
    let source = options.source.unwrap_or(percid::init().source);
    let wanted = &options.structure;
    let found = STRUCTURES.iter().find(|(name, _)| name == wanted);
    let (_, make) = found.ok_or_else(|| {
        let names = STRUCTURES.map(|(name, _)| name).join(", ");
        format!("no structure {wanted:?}: expected one of {names}")
    })?;
    let subject = make(source).map_err(|error| error.to_string())?;
    chaos::run(subject, source, options)
}

/// Returns the figures as a success or a failure.
fn verdict(right: bool, figures: String) -> Verdict {
    if right { Ok(figures) } else { Err(figures) }
}
