//! Checks that end at random.

use tribunal_workflows::development::checks::{
    CheckResult, CheckSpec, CheckStatus, ChecksOutcome, ChecksReport, FailureAction,
};

use crate::dice::Dice;

/// Runs checks at random: this many percent of them fail, each in its own way.
pub(crate) fn run_random_checks(dice: &mut Dice, checks: &[CheckSpec], failure_rate: usize) -> ChecksOutcome {
    let results: Vec<CheckResult> = checks.iter().map(|check| random_result(dice, check, failure_rate)).collect();
    let differences = if dice.roll_percent(30) { vec!["node_modules/".into()] } else { Vec::new() };
    ChecksOutcome::Ran(ChecksReport { results, differences, ..ChecksReport::default() })
}

/// Returns what a landing reports: the results of the checks that do not block.
pub(crate) fn random_landing_results(dice: &mut Dice, checks: &[CheckSpec], failure_rate: usize) -> Vec<CheckResult> {
    let other_checks = checks.iter().filter(|check| check.on_failure != FailureAction::Block);
    other_checks.map(|check| random_result(dice, check, failure_rate)).collect()
}

fn random_result(dice: &mut Dice, check: &CheckSpec, failure_rate: usize) -> CheckResult {
    let failures = [
        CheckStatus::Failed { exit_code: 1 },
        CheckStatus::Killed { signal: 9 },
        CheckStatus::TimedOut { after_ms: 1000 },
        CheckStatus::Flooded,
        CheckStatus::CannotRun { exit_code: 127 },
    ];
    let status = if dice.roll_percent(failure_rate) { *dice.pick(&failures) } else { CheckStatus::Passed };
    CheckResult {
        command: check.command.clone(),
        status,
        on_failure: check.on_failure,
        output: "the secret output".into(),
        log: None,
        elapsed_ms: 1,
    }
}
