//! Traces as Parquet files, which pandas, Polars, DuckDB and Spark read as they are.
//!
//! One row is one event. A column is null if the event has no such value, or if the trace does not
//! contain it.
//!
//! | column        | type   | in the events      | meaning                                                                 |
//! |---------------|--------|--------------------|-------------------------------------------------------------------------|
//! | `time_ns`     | int64  | all                | when, in nanoseconds on the clock `percid.clock`                        |
//! | `cpu`         | uint32 | all                | the CPU on which it happened                                            |
//! | `event`       | string | all                | `switch`, `waking`, `wakeup`, `wakeup_new`, `migrate`, `fork`, `exec`, `exit`, `affinity`, `id`, `tick`, `member`, `name` |
//! | `thread`      | uint32 | all                | the thread that the event describes: for a `switch` the one that runs from now on, for a `fork` the new one |
//! | `prev_thread` | uint32 | `switch`, `exec`   | the thread that ran until now; the number that the thread had until now |
//! | `prev_state`  | string | `switch`           | why it stopped, in the kernel's letters: `R`, `R+`, `S`, `D`, ...        |
//! | `parent`      | uint32 | `fork`             | the thread that created it                                              |
//! | `process`     | uint32 | `member`           | the process to which it belongs                                         |
//! | `from_cpu`    | uint32 | `migrate`          | the CPU in whose queue it was                                           |
//! | `to_cpu`      | uint32 | `migrate`, wakeups | the CPU in whose queue it is                                            |
//! | `node`        | uint32 | `id`               | the NUMA node that the kernel reports to the thread                     |
//! | `id`          | uint32 | `id`               | its concurrency ID (`mm_cid`)                                           |
//! | `shares`      | string | `fork`             | what it shares with its parent: `nothing`, `memory`, `process`          |
//! | `cpus`        | string | `affinity`         | the CPUs on which it may run: `0-3,8`                                   |
//! | `name`        | string | `name`             | the name that it has from now on                                        |
//!
//! A thread that the trace does not identify is null in `prev_thread`, `parent` and `process`, and
//! 4294967295 in `thread`, which is never null.
//!
//! Traces of NUMA balancing ([`Trace::numa`](crate::Trace::numa)) have further events
//! ([`KINDS`](crate::numa::KINDS)) and columns: `start`, `end`, `offset`, `pages`, `failed`, `ticks`
//! (uint64), `threads`, `from_node`, `to_node` (uint32), `reason`, `traits` (string), `took_ns`
//! (uint64). A file without such events has none of these columns.
//!
//! Traces with counters ([`Trace::counted`](crate::Trace::counted)) have a row for each counter of each
//! turn, one after the other: the event `count`, at the end of the turn. Its columns are `counter`
//! (string), `count`, `ran_ns`, `uncounted_ns` (uint64), which no other file has.
//!
//! The key-value metadata of the file contains the origin of the trace: `percid.schema` (1, 2 with
//! NUMA balancing, 3 with counters), `percid.counters` (their names, with commas between them),
//! `percid.release`, `percid.clock`, `percid.possible_cpus`, `percid.online_cpus`, `percid.lost`,
//! `percid.command`, `percid.numa_scan_delay_ms`, `percid.numa_scan_size_mb`, `percid.cpu_nodes`
//! (the node of each CPU, with commas between them). If not all of the schedule was recorded
//! ([`Coverage`](crate::Coverage)), the metadata contains `percid.sample_frequency`,
//! `percid.sample_period`, `percid.switches_away_only`, `percid.not_inherited`,
//! `percid.some_cpus`, `percid.late_cpus`, `percid.cut_off`, `percid.no_states` and
//! `percid.inferred_switches`. `percid.subject`, `percid.filtered` and `percid.unparsed_lines` say whom
//! the recording is about, if only those were recorded, and how many lines were not read.
//! `percid.remarks` contains the other remarks made when a file of
//! another format was read, with the character U+001F between them.
//!
//! Tables that other programs have filtered and written are read too. They may have columns in any
//! order and further columns, any width of integers, any encoding, and no metadata. Numbers may be
//! floating-point numbers that are whole, which pandas makes of integers beside nulls. The rows of
//! one CPU must still be in the order of their times.
//!
//! On big-endian machines Parquet is neither read nor written, see [`supported`]. All other formats
//! are.

mod byte_order;
mod columns;
mod events;
mod plausible;
mod read;
mod schema;
mod write;

pub use byte_order::supported;
pub use read::{catches_panics, read, read_bytes};
pub(crate) use schema::Parts;
pub(crate) use write::{Happened, Writer};
pub use write::{batches, write};
