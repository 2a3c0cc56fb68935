//! Fits to parts of the published table must predict the other parts.

use percid_sim::paper::cross_validation::{
    CrossValidation, cross_validation, cross_validation_of_rows,
};
use percid_sim::paper::setting::Setting;
use percid_sim::run_control::RunControl;

const SEED: u64 = 1;

/// The errors of the sample and of all rows, rounded up: they may become no larger unnoticed. These
/// are no goals, which `percid_sim::paper::bounds` defines.
const PREDICTED_MEAN_ERROR: f64 = 0.14;
const PREDICTED_WORST_ERROR: f64 = 0.30;

/// A row of each pause. The sample is small because a fit to the other rows costs as much as
/// several whole tables.
const SAMPLE: [usize; 2] = [2, 6];

fn sample(setting: &Setting) -> CrossValidation {
    let found = cross_validation_of_rows(&SAMPLE, setting, SEED, &RunControl::default());
    found.expect("nobody stops it")
}

fn keeps_its_bounds(found: &CrossValidation) {
    let fitted = found.rows.iter().map(|left| left.fitted.len()).max();
    assert!(fitted <= Some(6), "{fitted:?} fitted numbers");
    let (mean, worst) = (found.mean_error, found.worst_error);
    let holds = mean <= PREDICTED_MEAN_ERROR && worst <= PREDICTED_WORST_ERROR;
    assert!(holds, "mean {mean}, worst {worst}");
}

#[test]
fn two_rows_are_predicted_from_the_others() {
    let found = sample(&Setting::published());
    assert_eq!((found.rows.len(), found.delays.len()), (2, 0));
    keeps_its_bounds(&found);
}

#[test]
#[ignore = "long: ten fits"]
fn rows_are_predicted_from_the_others() {
    let found = cross_validation(&Setting::published(), SEED, &RunControl::default());
    let found = found.expect("nobody stops it");
    assert_eq!((found.rows.len(), found.delays.len()), (8, 2));
    keeps_its_bounds(&found);
}

/// The negative control: a model without the most important effect predicts far worse, whatever is
/// fitted in its place.
#[test]
#[ignore = "slow: two fits"]
fn without_page_faults_rows_are_not_predicted() {
    let mut free = Setting::published();
    for name in ["first_touch_us", "first_touch_hot_us"] {
        *free.number_mut(name).expect("a price of the machine") = 0.0;
    }
    let found = sample(&free);
    assert!(found.mean_error > 2.0 * PREDICTED_MEAN_ERROR, "mean {}", found.mean_error);
}
