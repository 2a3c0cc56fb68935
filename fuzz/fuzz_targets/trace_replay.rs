//! Schedules that no kernel makes, under every policy: events in any order, of threads that never
//! began or ended long ago.
#![no_main]

use libfuzzer_sys::fuzz_target;
use percid_fuzz::schedules::Schedule;
use percid_fuzz::{machines, traces};
use percid_sim::policies;
use percid_sim::run_control::RunControl;
use percid_trace::replay::{Settings, replay};

fuzz_target!(|schedule: Schedule| {
    let trace = schedule.trace();
    traces::check(&trace);
    #[cfg(feature = "files")]
    {
        percid_fuzz::files::check_stored(&trace);
        percid_fuzz::files::check_shown(&trace);
    }
    let policy = &policies::ALL[usize::from(schedule.policy) % policies::ALL.len()];
    let settings = Settings { turns_kept: 64, ..Settings::default() };
    let machine = machines::small();
    let replayed = replay(&trace, machine, policy, &settings, &RunControl::default());
    let replayed = replayed.expect("as many CPUs as the machine has");
    assert!(replayed.is_whole, "nobody stopped it");
    assert_eq!(replayed.spaces_stuck, 0, "every policy is told what a kernel would have told it");
});
