//! Two threads that wake each other through pipes and are placed by the scheduler.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use percid::Counter;

use super::subject::{Batch, add};
use percid_command::exit::Failure;

/// The pipes of both directions.
pub(super) struct Pipes {
    there: (PipeReader, PipeWriter),
    back: (PipeReader, PipeWriter),
}

/// The messages: continue, or the batch is over.
const TURN: u8 = 1;
const OVER: u8 = 0;

impl Pipes {
    pub(super) fn open() -> Result<Pipes, Failure> {
        let pipe = || io::pipe().map_err(|cause| Failure::new("cannot make a pipe", cause));
        Ok(Pipes { there: pipe()?, back: pipe()? })
    }

    /// Wakes the threads alternately for about `length`; the increments follow each wake-up.
    pub(super) fn batch(
        &self,
        counter: Option<&Counter>,
        length: Duration,
    ) -> Result<Batch, Failure> {
        thread::scope(|scope| {
            let partner = scope.spawn(|| self.answer(counter));
            let mine = self.ask(counter, length);
            let answered = partner.join().expect("it does not panic");
            mine.and_then(|batch| answered.map(|()| batch))
        })
        .map_err(|cause| Failure::new("cannot use a pipe", cause))
    }

    fn ask(&self, counter: Option<&Counter>, length: Duration) -> io::Result<Batch> {
        let mut byte = [0];
        let mut moves = 0;
        let began = Instant::now();
        while moves == 0 || began.elapsed() < length {
            (&self.there.1).write_all(&[TURN])?;
            (&self.back.0).read_exact(&mut byte)?;
            add(counter);
            moves += 2;
        }
        let wall = began.elapsed();
        (&self.there.1).write_all(&[OVER])?;
        Ok(Batch { moves, wall })
    }

    fn answer(&self, counter: Option<&Counter>) -> io::Result<()> {
        let mut byte = [0];
        loop {
            (&self.there.0).read_exact(&mut byte)?;
            if byte == [OVER] {
                return Ok(());
            }
            add(counter);
            (&self.back.1).write_all(&[TURN])?;
        }
    }
}
