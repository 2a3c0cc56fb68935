//! Both walks over thousands of random scripts. `PERCID_SEED` repeats a run.

use percid_numa::walk::Reason;
use percid_numa::{Rules, Settings, Width};
use percid_numa_checks::compare::{Agreement, Difference, compare, their_rules};
use percid_numa_checks::script::{self, MIB};

const SCRIPTS: u64 = 400;
const EVENTS: usize = 600;

fn seed() -> u64 {
    let given = std::env::var("PERCID_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64)
    });
    println!("PERCID_SEED={seed}");
    seed
}

fn run(seed: u64, rules: &Rules, simulated: &Rules) -> Result<Agreement, (u64, Box<Difference>)> {
    let mut total = Agreement::default();
    for script in 0..SCRIPTS {
        let events = script::write(seed.wrapping_add(script), EVENTS);
        // Small budgets end passes in the middle of regions, large ones behind many of them.
        let settings = Settings {
            scan_size: [4 * MIB, 256 * MIB][script as usize % 2],
            ..Settings::default()
        };
        let agreed = compare(&events, &settings, rules, &their_rules(simulated))
            .map_err(|difference| (script, difference))?;
        total.passes += agreed.passes;
        total.armed += agreed.armed;
        for (name, count) in agreed.reasons {
            *total.reasons.entry(name).or_default() += count;
        }
    }
    Ok(total)
}

#[test]
fn the_same_script_has_the_same_decisions_and_reasons() {
    let seed = seed();
    let wide = Rules { width: Width::Bits128, ..Rules::FIXED };
    for rules in [Rules::BASE, Rules::SELECTIVE, Rules::FIXED, wide] {
        let agreed = run(seed, &rules, &rules).unwrap_or_else(|(script, difference)| {
            panic!("script {script} with {rules:?}: {difference:?}")
        });
        println!("{agreed:?}");
        assert!(agreed.passes > 10_000 && agreed.armed > 1000);
        let fixes = [Reason::SeqCompleted, Reason::IgnorePidInactive];
        for reason in Reason::ALL {
            let possible = rules != Rules::BASE || !fixes.contains(&reason);
            assert_eq!(agreed.reasons.contains_key(reason.name()), possible, "{reason}");
        }
    }
}

/// Negative controls: any rule that differs is noticed.
#[test]
fn a_rule_that_differs_is_noticed() {
    let (seed, fixed) = (seed(), Rules::FIXED);
    let changed = [
        Rules { width: Width::Bits128, ..fixed },
        Rules { window_before_test: false, ..fixed },
        Rules { once_per_sequence: false, ..fixed },
        Rules { complete_partial: false, ..fixed },
        Rules { force_inactive: false, ..fixed },
        Rules { own_first_sequences: false, ..fixed },
        Rules { end_starvation: false, ..fixed },
    ];
    for rules in changed {
        let (script, difference) = run(seed, &rules, &fixed).expect_err("a difference");
        println!("{rules:?}: script {script}, pass {}", difference.pass);
        assert_ne!(difference.library, difference.simulator);
    }
}
