//! Policies for membership masks that break their contract in one way each.

use std::sync::atomic::AtomicBool;

use percid_sim::mask::{
    BitPolicy, Join, MaskPolicy, MaskStep, MaskViolation, Outcome, Parameters, simulate,
};

/// A policy for the bit, decision by decision.
#[derive(Clone, Copy)]
struct Decisions {
    name: &'static str,
    within: Join,
    across: Join,
    clears_on_leaving: bool,
    trims: bool,
    clears_although_it_runs: bool,
}

/// The decisions of `TestEverywhere`.
const SOUND: Decisions = Decisions {
    name: "sound",
    within: Join::Test,
    across: Join::Test,
    clears_on_leaving: true,
    trims: true,
    clears_although_it_runs: false,
};

impl BitPolicy for Decisions {
    fn name(&self) -> &str {
        self.name
    }

    fn join(&self, across: bool) -> Join {
        if across { self.across } else { self.within }
    }

    fn clears_on_leaving(&self) -> bool {
        self.clears_on_leaving
    }

    fn trims(&self, _: Option<u64>, _: u64) -> bool {
        self.trims
    }

    fn clears_on_interrupt(&self, runs: bool) -> bool {
        self.clears_although_it_runs || !runs
    }
}

/// Simulates two processes, with kernel threads and frequent flushes.
fn run(policy: &dyn BitPolicy) -> Result<Outcome, MaskViolation> {
    let mut parameters = Parameters { turns_per_cpu: 100, ..Parameters::default() };
    (parameters.processes, parameters.threads) = (2, 90);
    parameters.other_space_share = Some(0.3);
    (parameters.kernel_share, parameters.turns_per_flush) = (0.1, 10.0);
    (parameters.sleep_share, parameters.sleep_us) = (0.5, 20.0);
    let outcome = simulate(&parameters, policy, 1, &AtomicBool::new(false));
    outcome.map(|outcome| outcome.expect("nobody stops it"))
}

#[test]
fn every_broken_mask_is_noticed_with_the_step_that_broke_it() {
    let switch = |across| MaskStep::Switch { across };
    let faults = [
        (Decisions { name: "never", within: Join::Keep, across: Join::Keep, ..SOUND }, None),
        (Decisions { name: "not-across", across: Join::Keep, ..SOUND }, Some(switch(true))),
        (Decisions { name: "not-within", within: Join::Keep, ..SOUND }, Some(switch(false))),
        (
            Decisions { name: "late-interrupt", clears_although_it_runs: true, ..SOUND },
            Some(MaskStep::Interrupt),
        ),
    ];
    for (policy, step) in faults {
        let violation = run(&policy).expect_err(policy.name);
        assert_eq!(violation.policy, policy.name);
        assert!(step.is_none_or(|step| step == violation.step), "{violation}");
        assert!(violation.to_string().contains("its bit is clear, after "), "{violation}");
    }
}

/// A bit that nothing clears within an address space needs no test there.
#[test]
fn masks_that_keep_the_contract_run() {
    let kept = Decisions { within: Join::Keep, across: Join::Set, trims: false, ..SOUND };
    run(&kept).expect("no flush clears a bit");
    for policy in MaskPolicy::ALL {
        run(&policy).unwrap_or_else(|violation| panic!("{violation}"));
    }
}

#[test]
fn the_same_decisions_give_the_same_outcome() {
    let own = run(&Decisions { name: "test-everywhere", ..SOUND });
    assert_eq!(own, run(&MaskPolicy::TestEverywhere));
}
