//! Checks of the user in a review: a check that fails warns, blocks, or becomes a finding.

use tribunal_engine::{files::Hunk, ids::FindingId, reason::RunReason};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{self, findings_reply, fixes_reply, flawed_text, frozen_reply, landed_reply, raised_flaw},
    trial::{TrialOutcome, TrialRun, ordered_workflow as workflow},
};
use tribunal_workflows::{
    development::checks::{
        CheckResult, CheckSpec, CheckStatus, ChecksOutcome, ChecksReport, CommandLine, FailureAction,
    },
    findings::{
        agent_role::AgentRole,
        finding::{Evidence, Finding, FindingStatus, Severity, TransitionCause},
    },
    review::{level::ReviewLevel, order::ReviewOrder},
    runs::{
        effect::{LandOutcome, Reply},
        plan::RunPlan,
        types::RunEvent,
        view::RunView,
    },
    tasks::{
        brief::{AgentTask, RaisedFinding},
        claims::ClaimStatus,
    },
};

const F1: FindingId = FindingId(1);
const F2: FindingId = FindingId(2);

fn plan_with_check(on_failure: FailureAction) -> RunPlan<ReviewOrder> {
    samples::sample_plan().with_change(|plan| {
        plan.order.level = Some(ReviewLevel::Minimal);
        plan.settings.checks =
            vec![CheckSpec { on_failure, ..CheckSpec::new(CommandLine::from_shell_line("make lint")) }];
    })
}

fn lint_result(on_failure: FailureAction, status: CheckStatus, output: &str) -> CheckResult {
    CheckResult {
        command: CommandLine::from_shell_line("make lint"),
        status,
        on_failure,
        output: output.into(),
        log: None,
        elapsed_ms: 7,
    }
}

const RED: CheckStatus = CheckStatus::Failed { exit_code: 2 };

/// A landing that changes the line of the flaw, with what a check that does not block says about it.
fn checked_landing(result: CheckResult) -> Reply {
    let repaired_text = flawed_text(1).replace("flaw 1", "repaired");
    let mut reply = landed_reply(&repaired_text, vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]);
    if let Reply::Land(LandOutcome::Landed(landed)) = &mut reply {
        landed.checks = vec![result];
    }
    reply
}

/// One flaw is found and its repair lands; the second panel finds nothing.
fn world_with_landing(result: CheckResult) -> ScriptedWorld {
    let repaired_text = flawed_text(1).replace("flaw 1", "repaired");
    ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-1/review/adversarial", findings_reply(vec![raised_flaw(1, Severity::High)]))
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], true))
        .reply_on("round-1/fix-1/fix/1/land", checked_landing(result))
        .reply_on("round-2/freeze", frozen_reply(&repaired_text))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply(&repaired_text))
}

fn run_to_end(plan: RunPlan<ReviewOrder>, world: ScriptedWorld) -> (RunReason, TrialRun<ScriptedWorld>) {
    let mut trial = TrialRun::new(plan, world, 1);
    match trial.run_workflow(workflow, None) {
        TrialOutcome::Done(ending) | TrialOutcome::Parked(ending) => {
            assert!(!ending.detail.contains("no scripted reply"), "{}", ending.detail);
            (ending.reason, trial)
        }
        other => panic!("{other:?}"),
    }
}

fn findings(trial: &TrialRun<ScriptedWorld>) -> Vec<Finding> {
    RunView::from_entries(&trial.journal).all_findings().cloned().collect()
}

fn warnings(trial: &TrialRun<ScriptedWorld>) -> Vec<&str> {
    let warned = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::Warned { text } => Some(text.as_str()),
        _ => None,
    });
    warned.collect()
}

fn fixer_tasks(trial: &TrialRun<ScriptedWorld>) -> Vec<AgentTask> {
    let asked = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::EffectStarted { effect: tribunal_workflows::runs::effect::Effect::Ask(asked), .. } => {
            Some(&asked.task)
        }
        _ => None,
    });
    asked.filter(|task| task.brief.as_review().is_some_and(|brief| brief.role == AgentRole::Fixer)).cloned().collect()
}

#[test]
fn a_check_that_warns_lets_the_patch_land_with_a_warning() {
    let result = lint_result(FailureAction::Warn, RED, "line too long\n");
    let (reason, trial) = run_to_end(plan_with_check(FailureAction::Warn), world_with_landing(result));
    assert_eq!(reason, RunReason::GoalMet);
    assert_eq!(warnings(&trial), ["check `make lint` failed with exit code 2: line too long"]);
    let [finding] = findings(&trial).try_into().unwrap();
    assert_eq!(finding.status, FindingStatus::Fixed);
}

#[test]
fn a_check_to_fix_becomes_a_finding_that_is_fixed_when_the_check_passes() {
    let red = lint_result(FailureAction::Fix, RED, "line too long\n");
    let green = lint_result(FailureAction::Fix, CheckStatus::Passed, "");
    let world = world_with_landing(red.clone())
        .reply_on("round-1/fix-2/fix/1", fixes_reply(vec![(F2, ClaimStatus::Fixed)], true))
        .reply_on("round-1/fix-2/fix/1/land", checked_landing(CheckResult { output: "still".into(), ..red }))
        .reply_on("round-1/fix-3/fix/1", fixes_reply(vec![(F2, ClaimStatus::Fixed)], true))
        .reply_on("round-1/fix-3/fix/1/land", checked_landing(green));
    let (reason, trial) = run_to_end(plan_with_check(FailureAction::Fix), world);
    assert_eq!(reason, RunReason::GoalMet);
    let [repaired, check_finding] = findings(&trial).try_into().unwrap();
    assert_eq!(repaired.status, FindingStatus::Fixed, "a red check does not refuse a patch");
    assert_eq!((check_finding.severity, check_finding.category.as_str()), (Severity::High, "check"));
    let evidence = Evidence::Check { command: "make lint".into(), output: "line too long\n".into() };
    assert_eq!((&check_finding.evidence, check_finding.place.as_ref()), (&evidence, None));
    let causes: Vec<&TransitionCause> = check_finding.history.iter().map(|step| &step.cause).collect();
    use TransitionCause::{Assigned, CheckFailed, CheckPassed};
    assert_eq!(causes, [&CheckFailed, &Assigned, &CheckFailed, &Assigned, &CheckPassed]);
    let challenged = trial.journal.iter().any(|entry| {
        format!("{:?}", entry.event).contains("F2") && format!("{:?}", entry.event).contains("Challenger")
    });
    assert!(!challenged, "a fact is not challenged");
    // The fixer gets the output, and on its second attempt the newest one.
    let [_, second_task, third_task] = fixer_tasks(&trial).try_into().unwrap();
    assert_eq!(second_task.brief.as_review().unwrap().assigned[0].evidence, evidence);
    let last_try = &third_task.brief.as_review().unwrap().assigned[0].last_try;
    assert_eq!(last_try, "`make lint` failed with exit code 2: still");
}

#[test]
fn a_check_that_was_fixed_and_fails_again_is_open_again() {
    let result_with = |status| lint_result(FailureAction::Fix, status, "");
    let raised_again =
        RaisedFinding { evidence: Evidence::Quote { text: "repaired".into() }, ..raised_flaw(2, Severity::High) };
    let claim_fixed = |finding_number: u32| fixes_reply(vec![(FindingId(finding_number), ClaimStatus::Fixed)], true);
    let world = world_with_landing(result_with(RED))
        .reply_on("round-1/fix-2/fix/1", claim_fixed(2))
        .reply_on("round-1/fix-2/fix/1/land", checked_landing(result_with(CheckStatus::Passed)))
        .reply_on("round-2/review/adversarial", findings_reply(vec![raised_again]))
        .reply_on("round-2/fix-1/fix/1", claim_fixed(3))
        .reply_on("round-2/fix-1/fix/1/land", checked_landing(result_with(RED)))
        .reply_on("round-2/fix-2/fix/1", claim_fixed(2))
        .reply_on("round-2/fix-2/fix/1/land", checked_landing(result_with(RED)))
        .reply_on("round-2/fix-3/fix/1", claim_fixed(2))
        .reply_on("round-2/fix-3/fix/1/land", checked_landing(result_with(RED)));
    let (reason, trial) = run_to_end(plan_with_check(FailureAction::Fix), world);
    assert_eq!(reason, RunReason::FixIterations);
    let check_finding = findings(&trial).into_iter().find(|finding| finding.check_command().is_some()).unwrap();
    assert_eq!(check_finding.status, FindingStatus::Open);
    let causes: Vec<&TransitionCause> = check_finding.history.iter().map(|step| &step.cause).collect();
    use TransitionCause::{Assigned, CheckFailed, CheckPassed};
    assert_eq!(causes[..4], [&CheckFailed, &Assigned, &CheckPassed, &CheckFailed]);
}

fn baseline_reply(results: Vec<CheckResult>) -> Reply {
    Reply::Checks(ChecksOutcome::Ran(ChecksReport {
        results,
        differences: vec![".env".into()],
        ..ChecksReport::default()
    }))
}

#[test]
fn a_check_that_blocks_on_the_untouched_project_keeps_the_review_from_starting() {
    let red = lint_result(FailureAction::Block, RED, "line 1\nline too long\n");
    let green = lint_result(FailureAction::Block, CheckStatus::Passed, "");
    let mut world = world_with_landing(green.clone())
        .reply_once("baseline", baseline_reply(vec![red]))
        .reply_on("baseline", baseline_reply(vec![green]));
    world.resumes_waits = true;
    let mut trial = TrialRun::new(plan_with_check(FailureAction::Block), world, 1);
    let TrialOutcome::Parked(ending) = trial.run_workflow(workflow, None) else { panic!() };
    assert_eq!((ending.reason, ending.reason.exit_code()), (RunReason::Baseline, 3));
    assert_eq!(ending.detail, "`make lint` failed with exit code 2: line too long; not in the workspace: .env");
    assert!(!trial.world.performed_keys.iter().any(|key| key.contains("review")), "no agent is asked");
    // When the user resumes the run, the checks run again, and only once.
    let life = trial.run_workflow(workflow, None);
    assert!(matches!(&life, TrialOutcome::Done(ending) if ending.reason == RunReason::GoalMet), "{life:?}");
    assert_eq!(trial.world.performed_keys.iter().filter(|key| *key == "baseline").count(), 2);
}

#[test]
fn a_missing_program_ends_the_review_as_a_fault_of_the_environment() {
    for (on_failure, expected_reason) in [
        (FailureAction::Block, RunReason::Environment),
        (FailureAction::Fix, RunReason::Environment),
        (FailureAction::Warn, RunReason::GoalMet),
    ] {
        let mut plan = plan_with_check(on_failure);
        // A check that decides something, because the checks do not run before the review for warnings alone.
        plan.settings.checks.push(CheckSpec::new(CommandLine::from_shell_line("make test")));
        let missing = lint_result(on_failure, CheckStatus::CannotRun { exit_code: 127 }, "make: not found");
        let green = lint_result(FailureAction::Warn, CheckStatus::Passed, "");
        let world = world_with_landing(green).reply_on("baseline", baseline_reply(vec![missing]));
        assert_eq!(run_to_end(plan, world).0, expected_reason, "{on_failure}");
    }
}

#[test]
fn the_checks_run_before_the_review_only_where_they_decide_something() {
    let run_with = |change: fn(&mut RunPlan<ReviewOrder>), action: FailureAction| {
        let mut plan = plan_with_check(action);
        change(&mut plan);
        let world = world_with_landing(lint_result(action, CheckStatus::Passed, ""));
        let (_, trial) = run_to_end(plan, world);
        trial.world.performed_keys.contains(&"baseline".to_string())
    };
    assert!(run_with(|_| (), FailureAction::Block) && run_with(|_| (), FailureAction::Fix));
    assert!(!run_with(|_| (), FailureAction::Warn));
    assert!(!run_with(|plan| plan.order.fix = false, FailureAction::Block));
    assert!(!run_with(|plan| plan.order.baseline = false, FailureAction::Block));
    assert!(!run_with(|plan| plan.settings.checks.clear(), FailureAction::Block));
}
