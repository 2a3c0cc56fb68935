//! `percid trace top`: the schedule while it happens.

mod figures;
mod own_cost;
mod queue;
mod terminal;
mod text;

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::trace_top::TopArguments;
use percid_trace::record::{Ended, Extra, Options, Refusal};
use percid_trace::spool::Intervals;

use self::figures::{TopFigures, Wanted};
use self::own_cost::OwnCost;
use self::queue::{Next, Queue};
use self::terminal::Terminal;
use self::text::Screen;
use crate::recorder;

pub(crate) fn run(arguments: &TopArguments, json: bool) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    // An interval is drawn while the next one is recorded, and one may wait for that.
    let (send, receive) = sync_channel(1);
    let (ended, shown) = thread::scope(|scope| {
        let show = scope.spawn(move || show(arguments, json, &receive));
        let ended = watch(arguments, send, &interrupt);
        (ended, show.join())
    });
    let last = match shown {
        Ok(shown) => shown?,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    if let Some(last) = last {
        output::print_text(&last)?;
    }
    let ended = match ended {
        Ok(ended) => ended,
        Err(refusal) => return recorder::refused(&refusal),
    };
    if let Some(why) = &ended.broken {
        complain(format_args!("THE RECORDING ENDED EARLY: {why}"));
    }
    let status = ended.status.map(recorder::status_code);
    Ok(recorder::exit(status, ended.broken.is_some(), &interrupt))
}

fn options(arguments: &TopArguments) -> Options {
    let target = recorder::target(arguments.pid, &arguments.command);
    let backend = arguments.backend.map(recorder::backend);
    let kernel_buffer_kib = arguments.kernel_buffer_kib as u32;
    // System calls must not become slower. The other events show the switches that were not traced.
    let extra = Extra { affinity: false, ..Extra::default() };
    Options {
        only: true,
        backend,
        kernel_buffer_kib,
        extra,
        output_aside: true,
        ..Options::new(target)
    }
}

/// Returns `true` if the target is not the whole system.
fn is_of_processes(arguments: &TopArguments) -> bool {
    arguments.pid.is_some() || !arguments.command.is_empty()
}

/// Records, and passes each interval on.
fn watch(
    arguments: &TopArguments,
    send: SyncSender<Next>,
    interrupt: &Interrupt,
) -> Result<Ended, Refusal> {
    let mut queue = Queue::new(send, arguments.count);
    let most = usize::try_from(arguments.max_events).unwrap_or(usize::MAX);
    let mut sink = Intervals::new(arguments.interval, most, |interval| queue.pass_on(interval))
        .of_processes(is_of_processes(arguments));
    let ended =
        recorder::record(&options(arguments), interrupt, &mut sink, terminal::leave, |_| {});
    drop(sink);
    queue.finish();
    ended
}

/// Shows intervals until there are no more. Returns the last screen of a terminal.
fn show(
    arguments: &TopArguments,
    json: bool,
    receive: &Receiver<Next>,
) -> Result<Option<String>, Failure> {
    let mut cost = OwnCost::new();
    let mut last = None;
    // Errors at the start must appear on the user's screen, so the page comes with the first
    // interval.
    let mut terminal: Option<Terminal> = None;
    for (nr, (interval, skipped)) in receive.iter().enumerate() {
        if nr == 0 && !json {
            terminal = Terminal::enter();
        }
        let wanted = Wanted {
            sort: arguments.sort,
            by_process: arguments.processes,
            of_processes: is_of_processes(arguments),
        };
        let mut figures = TopFigures::new(&interval, wanted, skipped, cost.since_last());
        drop(interval);
        let rows = arguments.rows.map(|rows| usize::try_from(rows).unwrap_or(usize::MAX));
        if json {
            figures.keep(rows);
            output::print_json_line(&figures)?;
            continue;
        }
        let size = terminal.as_ref().map(|_| terminal::size());
        let screen = Screen { figures: &figures, sort: arguments.sort, rows, size };
        match &terminal {
            Some(terminal) => {
                let drawn = terminal.draw(&screen);
                drawn.map_err(|cause| Failure::new("cannot write to standard output", cause))?;
                last = Some(screen.to_string());
            }
            None => {
                let gap = if nr == 0 { "" } else { "\n" };
                output::print_text(&format_args!("{gap}{screen}"))?;
            }
        }
    }
    Ok(last)
}
