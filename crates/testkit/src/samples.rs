//! Small sample values that many tests need.

use tribunal_engine::{
    fault::{Fault, FaultKind},
    files::{FrozenFile, Hunk, LandedFile, Patch, PatchRefusal},
    ids::{FindingId, Hash},
    limits::AgentUsage,
    tier::ProcessTier,
};
use tribunal_workflows::{
    development::checks::{
        CheckResult, CheckSpec, CheckStatus, ChecksOutcome, ChecksReport, CommandLine, FailureAction,
    },
    findings::{
        finding::{Evidence, Severity},
        seat_plan::{PartToJudge, SeatPlan},
        subject::Subject,
    },
    review::{
        confidence::{
            Confidence, ConfidenceSignals, ReviewerTally, SourceSignal, ValidationResult, calculate_confidence,
        },
        order::{PanelSettings, ReviewOrder},
    },
    runs::{
        effect::{AskOutcome, EffectKind, FailedTask, FreezeOutcome, FrozenSubject, LandOutcome, LandedChange, Reply},
        plan::RunPlan,
        settings::{AgentSpec, DriverSpec, Settings},
    },
    tasks::{
        brief::{AgentReply, AnswerContent, RaisedFinding, TaskBrief},
        claims::{ChallengeVerdict, ChallengerRuling, ClaimStatus, FixClaim, PartRuling},
        status_report::StatusReport,
    },
};

/// A text with one line for each flaw: `flaw 1`, `flaw 2`, … each under a heading of its own.
pub fn flawed_text(flaws: usize) -> String {
    let mut document_text = String::from("# Plan\n");
    for flaw_number in 1..=flaws {
        document_text.push_str(&format!("\n## Part {flaw_number}\n\nflaw {flaw_number}\n"));
    }
    document_text
}

/// The settings of a run with one agent.
pub fn sample_settings() -> Settings {
    Settings {
        agents: vec![AgentSpec::new("sample", DriverSpec::Command { argv: vec!["sample".into()] })],
        reviews: "reviews".into(),
        ..Settings::default()
    }
}

/// A review of `plan.md` by one agent, which may find nothing.
pub fn sample_plan() -> RunPlan<ReviewOrder> {
    let order = ReviewOrder {
        panel: PanelSettings { required_issues: 0, ..PanelSettings::default() },
        ..ReviewOrder::new(Subject::from_path("plan.md", None))
    };
    RunPlan { settings: sample_settings(), order }
}

/// A confidence of 83: the checks passed, and two of three reviewers are content.
pub fn sample_confidence() -> Confidence {
    let signals = ConfidenceSignals {
        validation: SourceSignal::Consulted(ValidationResult::Pass),
        reviewers: SourceSignal::Consulted(ReviewerTally { content: 2, answered: 3 }),
        ..ConfidenceSignals::default()
    };
    calculate_confidence(&signals, ProcessTier::default()).unwrap_or_else(|impossible| panic!("{impossible}"))
}

/// A claim about the line `flaw N`.
pub fn raised_flaw(flaw_number: usize, severity: Severity) -> RaisedFinding {
    RaisedFinding {
        severity,
        category: "sample".into(),
        description: format!("flaw {flaw_number} is a flaw"),
        evidence: Evidence::Quote { text: format!("flaw {flaw_number}") },
        file: None,
        line: None,
        suggested_fix: String::new(),
    }
}

/// Returns one check that blocks.
pub fn sample_checks() -> Vec<CheckSpec> {
    vec![CheckSpec::new(CommandLine::from_shell_line("make check"))]
}

/// Returns one check for each thing that can follow from a failure.
pub fn checks_of_every_action() -> Vec<CheckSpec> {
    let actions = [FailureAction::Warn, FailureAction::Block, FailureAction::Fix];
    let make_check = |action: FailureAction| CheckSpec {
        on_failure: action,
        ..CheckSpec::new(CommandLine::from_shell_line(action.as_str()))
    };
    actions.map(make_check).to_vec()
}

/// Returns the reply to checks that all pass.
pub fn passed_checks_reply(checks: &[CheckSpec]) -> Reply {
    let passed_result = |check: &CheckSpec| CheckResult {
        command: check.command.clone(),
        status: CheckStatus::Passed,
        on_failure: check.on_failure,
        output: String::new(),
        log: None,
        elapsed_ms: 1,
    };
    let results = checks.iter().map(passed_result).collect();
    Reply::Checks(ChecksOutcome::Ran(ChecksReport { results, ..ChecksReport::default() }))
}

pub fn frozen_reply(text: &str) -> Reply {
    Reply::Freeze(FreezeOutcome::Frozen(FrozenSubject {
        hash: Hash::digest_of(text.as_bytes()),
        text: text.to_string(),
        files: Vec::new(),
        remarks: Vec::new(),
    }))
}

/// What one agent call uses.
pub(crate) fn sample_usage() -> AgentUsage {
    AgentUsage { input_tokens: 100, output_tokens: 20, ..AgentUsage::default() }
}

/// An answer of an agent that worked in no workspace for development.
pub(crate) fn agent_answer(content: AnswerContent, patch: Option<Patch>) -> AgentReply {
    AgentReply {
        content,
        remarks: Vec::new(),
        usage: sample_usage(),
        patch,
        minutes: Default::default(),
        prompt: Hash::new("prompt"),
        output: Hash::new("output"),
        endpoint: None,
        repeats: None,
        strayed: Vec::new(),
        session: None,
        workspace: None,
    }
}

fn agent_reply(content: AnswerContent, patch: Option<Patch>) -> Reply {
    Reply::Ask(AskOutcome::Answered(agent_answer(content, patch)))
}

pub fn findings_reply(raised: Vec<RaisedFinding>) -> Reply {
    agent_reply(AnswerContent::Findings { raised }, None)
}

/// The answer of a challenger that upholds everything it was given, or of a judge that confirms everything.
pub fn upholding_reply(brief: &TaskBrief) -> Reply {
    let mut reply = rulings_reply(
        brief.finding_ids().into_iter().map(|finding_id| (finding_id, ChallengeVerdict::Valid)).collect(),
    );
    add_part_verdicts(&mut reply, brief, |_| ChallengeVerdict::Valid);
    reply
}

/// Adds to the answer of a judge what it says about each part of the change.
pub fn add_part_verdicts(
    reply: &mut Reply,
    brief: &TaskBrief,
    mut verdict_on: impl FnMut(&PartToJudge) -> ChallengeVerdict,
) {
    let Some(SeatPlan::Judgement { parts: judged_parts }) = brief.as_review().map(|brief| &brief.plan) else { return };
    if let Reply::Ask(AskOutcome::Answered(AgentReply { content: AnswerContent::Rulings { parts, .. }, .. })) = reply {
        *parts = (1..)
            .zip(judged_parts)
            .map(|(part, judged_part)| PartRuling { part, holds: verdict_on(judged_part), note: "said so".into() })
            .collect();
    }
}

/// The answer of a challenger; it refutes a finding by quoting the title of the text.
pub fn rulings_reply(verdicts: Vec<(FindingId, ChallengeVerdict)>) -> Reply {
    let rulings = verdicts.into_iter().map(|(finding_id, holds)| ChallengerRuling {
        id: finding_id,
        holds,
        note: format!("about {finding_id}"),
        counter: if holds == ChallengeVerdict::Invalid { "# Plan".into() } else { String::new() },
    });
    agent_reply(AnswerContent::Rulings { rulings: rulings.collect(), parts: Vec::new(), unknown: Vec::new() }, None)
}

/// Sets what a judge says about the parts of a change, in their order.
pub fn set_part_verdicts(reply: &mut Reply, verdicts: &[ChallengeVerdict]) {
    if let Reply::Ask(AskOutcome::Answered(AgentReply { content: AnswerContent::Rulings { parts, .. }, .. })) = reply {
        let ruling =
            |(part, holds): (u32, &ChallengeVerdict)| PartRuling { part, holds: *holds, note: "said so".into() };
        *parts = (1..).zip(verdicts).map(ruling).collect();
    }
}

/// An answer in plain text.
pub fn text_reply(text: &str) -> Reply {
    agent_reply(AnswerContent::Text { text: text.into() }, None)
}

/// An answer with a status block.
pub fn status_reply(report: StatusReport) -> Reply {
    agent_reply(AnswerContent::Status(Box::new(report)), None)
}

pub fn unreadable_reply() -> Reply {
    agent_reply(AnswerContent::Unreadable { message: "the answer is empty".into() }, None)
}

/// The answer of a fixer, with a patch unless `patched` is false.
pub fn fixes_reply(claims: Vec<(FindingId, ClaimStatus)>, patched: bool) -> Reply {
    let claims = claims.into_iter().map(|(finding_id, said)| FixClaim {
        id: finding_id,
        said,
        note: format!("about {finding_id}"),
        verification: String::new(),
        files_modified: Vec::new(),
        memory_saved: false,
    });
    let patch = Patch { hash: Hash::new("patch"), files: vec!["plan.md".into()], diff: Hash::new("diff") };
    agent_reply(AnswerContent::Fixes { claims: claims.collect(), unknown: Vec::new() }, patched.then_some(patch))
}

pub fn landed_reply(text: &str, hunks: Vec<Hunk>) -> Reply {
    let (text, hash) = (text.to_string(), Hash::digest_of(text.as_bytes()));
    Reply::Land(LandOutcome::Landed(LandedChange { hunks, text, hash, files: Vec::new(), checks: Vec::new() }))
}

/// Turns the reply to a landing into that of its preview.
pub fn preview_of(landing_reply: Reply) -> Reply {
    match landing_reply {
        Reply::Land(LandOutcome::Landed(change)) => Reply::Land(LandOutcome::Previewed(change)),
        other_reply => other_reply,
    }
}

/// The reply to a look at a changed text, with one hunk for each line that differs.
pub fn taken_in_reply(old_files: &[FrozenFile], new_text: &str) -> Reply {
    let old_lines: Vec<&str> = old_files.iter().flat_map(|file| file.text.lines()).collect();
    let new_lines: Vec<&str> = new_text.lines().collect();
    let is_changed = |line_index: &usize| old_lines.get(*line_index) != new_lines.get(*line_index);
    let line_hunk = |line_index: usize| {
        let (old_len, new_len) = (u32::from(line_index < old_lines.len()), u32::from(line_index < new_lines.len()));
        Hunk { old_start: line_index as u32 + 1, old_len, new_len }
    };
    let hunks = (0..old_lines.len().max(new_lines.len())).filter(is_changed).map(line_hunk).collect();
    let path = old_files.first().map_or_else(String::new, |file| file.path.clone());
    let files = vec![LandedFile { path, hunks, text: new_text.to_string() }];
    let (hunks, text, hash) = (Vec::new(), String::new(), Hash::digest_of(new_text.as_bytes()));
    Reply::TakeIn(LandOutcome::Landed(LandedChange { hunks, text, hash, files, checks: Vec::new() }))
}

/// A task that failed before anything was used or printed.
pub(crate) fn failed_task(fault: Fault) -> FailedTask {
    FailedTask {
        fault,
        usage: AgentUsage::default(),
        output: None,
        prompt: None,
        endpoint: None,
        strayed: Vec::new(),
        workspace: None,
    }
}

pub fn failed_task_reply(kind: FaultKind) -> Reply {
    Reply::Ask(AskOutcome::Failed(failed_task(Fault::new(kind, "agent `sample` failed"))))
}

/// The reply of an effect of this kind that failed. It panics for a kind that cannot fail.
pub fn failed_effect_reply(kind: EffectKind) -> Reply {
    let fault = Fault::new(FaultKind::World, "the disk is full");
    match Reply::from_fault(kind, fault) {
        Some(reply) => reply,
        None => panic!("{} cannot fail", kind.as_str()),
    }
}

/// The refusal of a patch that conflicts with another change.
pub fn conflict_refusal(line: u32) -> PatchRefusal {
    let (file, ours, theirs) = (String::new(), String::new(), String::new());
    PatchRefusal::Conflict { line, file, ours, theirs }
}
