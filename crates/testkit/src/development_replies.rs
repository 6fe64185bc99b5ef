//! Replies to the effects of runs that develop, which the worlds of such runs have in common.

use tribunal_engine::{
    fault::{Fault, FaultKind},
    ids::{CommitId, Hash, RunId},
    limits::UsageTotals,
    reason::RunReason,
};
use tribunal_workflows::{
    development::{
        changes::{ChangeOutcome, ReadChange},
        checks::{CheckResult, CheckStatus, ChecksOutcome, ChecksReport, CommandLine, RunChecks},
        commits::{CommitOutcome, IntegrateOutcome},
        concerns::{LandingConcern, LandingGate},
        workspace::{OpenOutcome, OpenedWorkspace, WorkspaceState},
    },
    findings::{
        reported_finding::LeftFindings,
        subject::{ChangedPath, CodeChange},
    },
    runs::{
        effect::{AskOutcome, FailedTask, Reply},
        types::ChildReport,
    },
    tasks::{
        brief::{AgentReply, AnswerContent},
        status_report::TurnReport,
    },
};

use crate::{dice::Dice, samples};

/// Returns the element for this time; the last one is repeated.
pub(crate) fn nth_or_last<T>(elements: &[T], index: usize) -> Option<&T> {
    elements.get(index).or(elements.last())
}

/// The outcome for work that is questionable; `None` if everything about it is accepted.
pub(crate) fn questionable_outcome(gate: &LandingGate, dice: &mut Dice) -> Option<IntegrateOutcome> {
    let mut concerns = vec![
        LandingConcern::LostFile { path: format!("lost{}.txt", dice.roll(3)) },
        LandingConcern::DeletedTest { path: "tests/a.rs".into() },
        LandingConcern::AddedSecret { path: "a.env".into(), kind: "github".into(), only_in_history: dice.roll(2) == 0 },
    ];
    concerns.truncate(1 + dice.roll(3));
    concerns.retain(|concern| !gate.accepted.contains(concern));
    (!gate.is_open && !concerns.is_empty()).then_some(IntegrateOutcome::Questionable { concerns })
}

/// The reply to the opening of a workspace in which agents keep their notes in `scratchpad`.
pub(crate) fn opened_reply(state: WorkspaceState, scratchpad: &str) -> Reply {
    Reply::OpenWorkspace(OpenOutcome::Opened(OpenedWorkspace {
        path: "/workspace".into(),
        base: CommitId::new("base"),
        state,
        scratchpad: scratchpad.into(),
        remarks: Vec::new(),
    }))
}

/// The answer of an agent that leaves the workspace like this. No two turns have the same output.
pub(crate) fn turn_reply(report: TurnReport, workspace: WorkspaceState, turn_number: usize) -> Reply {
    Reply::Ask(AskOutcome::Answered(AgentReply {
        output: Hash::new(format!("output {turn_number}")),
        workspace: Some(Box::new(workspace)),
        ..samples::agent_answer(AnswerContent::Turn(Box::new(report)), None)
    }))
}

/// The failure of an agent that leaves the workspace like this.
pub(crate) fn failed_turn_reply(fault: Fault, workspace: WorkspaceState) -> Reply {
    Reply::Ask(AskOutcome::Failed(FailedTask {
        usage: samples::sample_usage(),
        workspace: Some(Box::new(workspace)),
        ..samples::failed_task(fault)
    }))
}

/// The reply to checks that all pass, or all fail. With the work alone in its directory they say what they would in a fresh clone.
pub(crate) fn checks_reply(run_checks: &RunChecks, passes: bool, stands_alone: bool) -> Reply {
    let results = run_checks.checks.iter().map(|check| CheckResult {
        command: check.command.clone(),
        status: if passes { CheckStatus::Passed } else { CheckStatus::Failed { exit_code: 2 } },
        on_failure: check.on_failure,
        output: if passes { String::new() } else { "3 tests failed".into() },
        log: None,
        elapsed_ms: 5,
    });
    Reply::Checks(ChecksOutcome::Ran(ChecksReport {
        results: results.collect(),
        stands_alone,
        ..ChecksReport::default()
    }))
}

/// The reply to checks that the environment breaks.
pub(crate) fn broken_checks_reply() -> Reply {
    Reply::Checks(ChecksOutcome::Failed { fault: Fault::new(FaultKind::World, "no space left on device") })
}

/// The reply to a commit that the user's hook refuses.
pub(crate) fn refused_commit_reply() -> Reply {
    Reply::Commit(CommitOutcome::Refused(CheckResult {
        command: CommandLine::from_shell_line("pre-commit"),
        status: CheckStatus::Failed { exit_code: 1 },
        on_failure: Default::default(),
        output: "trailing spaces".into(),
        log: None,
        elapsed_ms: 1,
    }))
}

/// The change that consists of this file.
pub(crate) fn change_reply(read_change: &ReadChange, path: &str) -> Reply {
    let files = vec![ChangedPath { path: path.into(), from: None }];
    let change = CodeChange { range: read_change.title.clone(), files, ..CodeChange::default() };
    Reply::ReadChange(ChangeOutcome::Listed { change: Box::new(change) })
}

/// What a child run has used without a known price.
pub(crate) fn uncosted_usage(tokens: u64) -> UsageTotals {
    UsageTotals { tokens, uncosted_tokens: tokens, ..UsageTotals::default() }
}

/// The report of a child run without findings.
pub(crate) fn child_report(run: RunId, reason: RunReason, tokens: u64) -> ChildReport {
    ChildReport {
        run,
        outcome: reason.outcome(),
        reason,
        detail: "as the script says".into(),
        used: uncosted_usage(tokens),
        worked_ms: 10,
        result: LeftFindings::default(),
    }
}
