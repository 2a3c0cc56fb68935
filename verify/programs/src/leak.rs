//! The negative control of the search for leaks: an object is taken out of a pool and forgotten.

use percid::Pool;

use crate::options::Options;
use crate::verdict::Verdict;

pub(crate) fn run(options: &Options) -> Verdict {
    let source = options.source.unwrap_or(percid::init().source);
    let pool = Pool::with_source(source, || [7u64; 32], 8).map_err(|error| error.to_string())?;
    std::mem::forget(std::hint::black_box(pool.get()).into_box());
    Ok(format!("source={source} leaked=256 B"))
}
