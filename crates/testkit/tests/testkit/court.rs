//! Tests of the simulated court with few runs: its rates are as configured, its bars hold. `cargo xtask court` has the real
//! figures.

use tribunal_engine::reason::RunOutcome;
use tribunal_testkit::court::{ALLOWED_RATES, AllowedRates, CourtTally, VARIANTS, calibrate, check_bars, render_table};

const SEED: u64 = 7;

fn is_near(actual: f64, expected: f64, tolerance: f64) -> bool {
    (actual - expected).abs() <= tolerance
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

#[test]
fn providers_find_their_configured_share_of_defects() {
    let calibration = calibrate(SEED, 1_500);
    for (found, ordered) in calibration.found.into_iter().zip([34.0, 57.0, 75.0, 89.0]) {
        assert!(is_near(found, ordered, 1.5), "{:?}", calibration.found);
    }
    assert!(is_near(calibration.groundless, 60.0, 2.0), "{calibration:?}");
    assert!(is_near(calibration.true_groundless, 0.0, 0.1), "what is true can be shown: {calibration:?}");
}

#[test]
fn challengers_err_at_their_configured_rate() {
    let calibration = calibrate(SEED, 1_500);
    assert!(
        is_near(calibration.on_false[0], 80.0, 2.5) && is_near(calibration.on_false[1], 10.0, 2.0),
        "{calibration:?}"
    );
    assert!(is_near(calibration.on_true[0], 5.0, 1.0) && is_near(calibration.on_true[1], 10.0, 1.5), "{calibration:?}");
}

#[test]
fn the_bars_hold() {
    let rows: Vec<_> = VARIANTS.iter().map(|variant| (*variant, variant.run_many(SEED, 150))).collect();
    let [one_reviewer, .., three_providers, _] = rows.iter().map(|(_, tally)| tally).collect::<Vec<_>>()[..] else {
        panic!()
    };

    // So few runs scatter, so the limits here are wider; the promised ones are checked with ten thousand runs.
    let allowed = AllowedRates { to_fixer: 8.0, lost: 2.0, unrepaired: 3.5, ..ALLOWED_RATES };
    let missed: Vec<String> =
        check_bars(&rows, allowed).iter().filter(|bar| !bar.holds).map(ToString::to_string).collect();
    assert!(missed.is_empty(), "{missed:#?}\n{}", render_table(&calibrate(SEED, 150), &rows));
    assert!(
        is_near(percent(three_providers.claims.untrue, three_providers.claims.raised), 35.0, 4.0),
        "{three_providers:?}"
    );

    let to_fixer = |tally: &CourtTally| percent(tally.false_ones.to_fixer, tally.false_ones.raised);
    assert!(to_fixer(one_reviewer) > 20.0, "without a challenge false findings do reach fixers: {one_reviewer:?}");
    assert!(percent(three_providers.defects.found, three_providers.defects.before) > 75.0, "{three_providers:?}");
}

#[test]
fn every_run_ends_and_the_same_seed_gives_the_same_tally() {
    for variant in &VARIANTS {
        let sum = variant.run_many(SEED, 12);
        let single_runs = (0..12).map(|run| variant.run_once(tribunal_testkit::court::derive_seed(SEED, run)));
        assert_eq!(sum, single_runs.fold(CourtTally::default(), CourtTally::merge), "{}", variant.name);
        let outcomes = [RunOutcome::Resolved, RunOutcome::Waiting, RunOutcome::Halted, RunOutcome::Failed];
        assert_eq!(outcomes.map(|outcome| sum.count_ended(outcome)).iter().sum::<u64>(), 12, "{:?}", sum.ends);
    }
}

#[test]
fn a_missed_bar_is_named_with_its_figures_and_seeds() {
    let mut bad_tally =
        CourtTally { runs: 1, max_rounds: 4, endless: [99].into(), over_budget: 1, ..CourtTally::default() };
    (bad_tally.repairs.fixed, bad_tally.repairs.unrepaired) = (100, 4);
    bad_tally.claims.misjoined = 1;
    (bad_tally.false_ones.raised, bad_tally.false_ones.to_fixer) = (100, 6);
    (bad_tally.true_ones.raised, bad_tally.true_ones.lost) = (100, 3);
    (bad_tally.defects.before, bad_tally.defects.left) = (10, 5);
    let rows = VARIANTS.map(|variant| (variant, bad_tally.clone()));
    let bars = check_bars(&rows, ALLOWED_RATES);
    assert!(bars.iter().all(|bar| !bar.holds), "{bars:#?}");
    let statements: String = bars.iter().map(|bar| format!("{bar}\n")).collect();
    for part in [
        "two providers: 6.00 % of false",
        "3.00 % of true",
        "4.00 % of fixed",
        "at most 4 rounds",
        "1 distinct claims merged",
        "1 runs over budget",
        "seeds 99",
        "one leaves 50.0 %",
    ] {
        assert!(statements.contains(part), "`{part}` is not in\n{statements}");
    }
}
