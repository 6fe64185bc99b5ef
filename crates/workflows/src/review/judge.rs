//! Asks a judge whether a change repairs the findings that it was made for, and only those.
//!
//! The judge is of another provider than the fixer where one is configured. It sees the findings and the parts of the change,
//! but not what the fixer says about them. One judge is asked for each patch, once more if its answer is incomplete, and only
//! about what the [rules](super::landing_impact) cannot decide. Only a clear yes counts: a finding about which the judge is in doubt stays
//! open.

use alloc::{borrow::ToOwned, collections::BTreeMap, format, string::String, vec, vec::Vec};

use crate::{
    findings::{
        agent_role::AgentRole,
        finding::Finding,
        seat_plan::{PartToJudge, SeatPlan},
    },
    review::{
        ReviewState, challenge::find_ruling_problem, event::ReviewEvent, frozen_copy::freeze_subject,
        landing_impact::LandingImpact, review_host::ReviewHost, review_keys::ReviewKeys, run_stage::ReviewExit,
    },
    tasks::{
        asking::consult_agent,
        brief::{AgentTask, AnswerContent, AssignedFinding, ReviewBrief, WorkspaceKind},
        claims::{ChallengeVerdict, ChallengerRuling, PartRuling},
        consult_outcome::ConsultOutcome,
        selection,
    },
};
use tribunal_engine::{
    fault::{Fault, FaultKind},
    files::{FilePart, FrozenFile, LandedFile},
    host::ParkedRun,
    ids::{AgentName, FindingId, Key},
    limits::AgentUsage,
    text::truncate_chars,
};

/// The most parts that a judge sees besides those at the evidence of its findings, and the most characters of each text.
const MAX_OTHER_PARTS: usize = 60;
const MAX_PART_CHARS: usize = 3_000;
/// The most characters of a judge's reason that are repeated to a fixer.
const MAX_REASON_CHARS: usize = 300;

/// A change to be judged.
pub(super) struct ChangeToJudge<'c> {
    /// The key of the task that made the change; the judge's keys are below it.
    pub task_key: &'c Key,
    /// The agent that made it; `None` for a session of the user.
    pub made_by: Option<&'c AgentName>,
    pub findings: JudgedFindings,
    pub landed_files: &'c [LandedFile],
    /// The files before the change, if they are not the current ones.
    pub files_before: Option<&'c [FrozenFile]>,
}

/// What became of the judge's task.
pub(super) enum JudgeOutcome {
    Judged(Judgement),
    /// No judge gave an answer that could be read, or none could be asked.
    Unheard(String),
    EnvironmentFailed(Fault),
}

/// What a judge said.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    rulings: Vec<ChallengerRuling>,
    /// The findings at whose evidence only the formatting was changed.
    formatted_ids: Vec<FindingId>,
    /// By the index of the part.
    parts: BTreeMap<usize, PartRuling>,
}

impl Judgement {
    /// Returns why a finding does not count as repaired; `None` if it does.
    pub fn find_objection(&self, finding_id: FindingId) -> Option<String> {
        if self.formatted_ids.contains(&finding_id) {
            return Some("only its formatting was changed".to_owned());
        }
        match self.rulings.iter().rev().find(|ruling| ruling.id == finding_id) {
            Some(ruling) if ruling.holds == ChallengeVerdict::Valid => None,
            Some(ruling) if ruling.holds == ChallengeVerdict::Invalid => {
                Some(format!("the judge says that it is not repaired{}", format_reason(&ruling.note)))
            }
            Some(ruling) => {
                Some(format!("the judge could not tell whether it is repaired{}", format_reason(&ruling.note)))
            }
            None => Some("the judge said nothing about it".to_owned()),
        }
    }

    pub fn part_verdict(&self, part_index: usize) -> Option<ChallengeVerdict> {
        self.parts.get(&part_index).map(|part_ruling| part_ruling.holds)
    }

    fn part_note(&self, part_index: usize) -> &str {
        self.parts.get(&part_index).map_or("", |part_ruling| part_ruling.note.as_str())
    }
}

/// The findings that a change was made for, by who decides about them.
#[derive(Clone, Debug, Default)]
pub(super) struct JudgedFindings {
    /// Those that a judge decides about.
    pub open_ids: Vec<FindingId>,
    /// Those that a check decides about.
    pub checked_ids: Vec<FindingId>,
    /// Those that the rules have rejected, with the reason.
    pub rejected: Vec<(FindingId, String)>,
}

/// Formats a judge's reason as the end of a sentence.
fn format_reason(note: &str) -> String {
    match note {
        "" => String::new(),
        note => format!(": {}", truncate_chars(note, MAX_REASON_CHARS)),
    }
}

/// What a change repairs, by the rules and a judge.
#[derive(Debug, Default)]
pub(super) struct RepairVerdict {
    /// The findings that it repairs.
    pub repaired: Vec<FindingId>,
    /// The other findings that it was made for, with the reason.
    pub unrepaired: Vec<(FindingId, String)>,
    /// The parts that repair none of them.
    pub unrelated: Vec<FilePart>,
}

impl RepairVerdict {
    /// Combines what the judge says about findings and about parts. A part counts if it is at the evidence of a repaired
    /// finding, or if the judge says that it is needed. A finding is not repaired if its part also changes something that no
    /// finding asks for.
    pub fn combine_verdicts(
        state: &ReviewState,
        impact: &LandingImpact<'_>,
        judgement: &Judgement,
        findings: &JudgedFindings,
    ) -> RepairVerdict {
        let JudgedFindings { open_ids, checked_ids, rejected } = findings;
        let parts = impact.all_parts();
        let is_at = |part: &FilePart, finding_id: FindingId| {
            state.find_finding(finding_id).is_some_and(|finding| impact.is_part_at(part, finding))
        };
        let mut verdict =
            RepairVerdict { repaired: checked_ids.clone(), unrepaired: rejected.clone(), unrelated: Vec::new() };
        for finding_id in open_ids {
            let excess_part = parts.iter().enumerate().find(|(part_index, part)| {
                judgement.part_verdict(*part_index) == Some(ChallengeVerdict::Invalid) && is_at(part, *finding_id)
            });
            let objection = judgement.find_objection(*finding_id).or_else(|| {
                let (part_index, part) = excess_part?;
                let reason = format_reason(judgement.part_note(part_index));
                Some(format!("the judge says that the change at {part} does more than repair it{reason}"))
            });
            match objection {
                None => verdict.repaired.push(*finding_id),
                Some(reason) => verdict.unrepaired.push((*finding_id, reason)),
            }
        }
        let is_at_repaired = |part: &FilePart| verdict.repaired.iter().any(|id| is_at(part, *id));
        let is_at_unrepaired = |part: &FilePart| verdict.unrepaired.iter().any(|(id, _)| is_at(part, *id));
        let is_within = |part: &FilePart, finding_id: FindingId| {
            state.find_finding(finding_id).is_some_and(|finding| impact.is_part_within(part, finding))
        };
        let is_related = |(part_index, part): (usize, &FilePart)| match judgement.part_verdict(part_index) {
            // The judge connects it with a finding that it does not repair.
            Some(ChallengeVerdict::Valid) => is_at_repaired(part) || !is_at_unrepaired(part),
            Some(ChallengeVerdict::Invalid) => false,
            // Anything may make a check pass.
            Some(ChallengeVerdict::Ambiguous) | None if !checked_ids.is_empty() => !is_at_unrepaired(part),
            // Without a clear word only the quoted lines themselves may change.
            Some(ChallengeVerdict::Ambiguous) | None => verdict.repaired.iter().any(|id| is_within(part, *id)),
        };
        verdict.unrelated =
            parts.iter().enumerate().filter(|part| !is_related(*part)).map(|(_, part)| part.clone()).collect();
        verdict
    }
}

/// Asks a judge about a change.
pub(super) async fn judge_change(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    change: ChangeToJudge<'_>,
) -> Result<JudgeOutcome, ParkedRun> {
    let judge_key = change.task_key.judge_key();
    if state.check_limits(host).is_some() {
        return Ok(JudgeOutcome::Unheard("a limit of the run is reached".to_owned()));
    }
    let current_files = match read_current_files(host, state, &judge_key).await? {
        Ok(current_files) => current_files,
        Err(fault) => return Ok(JudgeOutcome::EnvironmentFailed(fault)),
    };
    let files_before = change.files_before.unwrap_or(&current_files);
    let impact = LandingImpact::new(&host.order.subject, change.landed_files);
    let open_ids = &change.findings.open_ids;
    let findings: Vec<&Finding> = open_ids.iter().filter_map(|finding_id| state.find_finding(*finding_id)).collect();
    let parts = list_parts(&impact, &findings, change.landed_files, files_before);
    let is_formatted = |finding: &&Finding| is_only_formatted(&impact, finding, &parts);
    let formatted_ids: Vec<FindingId> =
        findings.iter().copied().filter(is_formatted).map(|finding| finding.id).collect();
    let finding_ids: Vec<FindingId> =
        open_ids.iter().copied().filter(|finding_id| !formatted_ids.contains(finding_id)).collect();
    if finding_ids.is_empty() {
        return Ok(JudgeOutcome::Judged(Judgement { formatted_ids, ..Judgement::default() }));
    }
    let judged_findings = findings.iter().filter(|finding| finding_ids.contains(&finding.id));
    let assigned = judged_findings.map(|finding| finding_to_judge(finding)).collect();
    let part_count = parts.len();
    let agent = selection::choose_judge(host.settings(), change.made_by, &state.spent.failing);
    let brief = ReviewBrief { assigned, plan: SeatPlan::Judgement { parts }, ..new_brief(host, state) };
    let workspace = WorkspaceKind::Frozen { by: judge_key.freeze_key() };
    let task = AgentTask::for_review(agent.clone(), brief, workspace, host.order.panel.reviewer_timeout_ms);
    // Other fixers may be at work, and each has its share of the budget.
    let parallel_tasks = host.order.fixers.max_concurrent.max(1) as usize;
    let request = host.new_consultation(&judge_key, task, &state.spent, parallel_tasks);
    let find_problem = |content: &AnswerContent| {
        find_ruling_problem(content, &finding_ids).or_else(|| find_missing_parts(content, part_count))
    };
    let consultation = consult_agent(host.run_host(), request, find_problem).await?;
    let judgement = read_judgement(&consultation).map(|judgement| Judgement { formatted_ids, ..judgement });
    let agent = consultation.last_agent().cloned().unwrap_or(agent);
    let fault = match &judgement {
        Some(_) => None,
        None => Some(
            consultation
                .fault
                .clone()
                .unwrap_or_else(|| Fault::new(FaultKind::Malformed, format!("{agent} returned no verdicts"))),
        ),
    };
    let verdict = judgement
        .as_ref()
        .map(|judgement| RepairVerdict::combine_verdicts(state, &impact, judgement, &change.findings))
        .unwrap_or_default();
    host.note_own_event(ReviewEvent::JudgeAnswered {
        key: judge_key.clone(),
        agent,
        findings: finding_ids,
        repaired: verdict.repaired,
        unrelated: verdict.unrelated,
        usage: consultation.usages.iter().copied().fold(AgentUsage::default(), AgentUsage::combined_with),
        fault: fault.clone(),
    });
    state.record_result(host, &consultation, judgement.is_some());
    state.dialog.ask_about_strays(host.run_host(), &judge_key, &consultation.strayed).await?;
    Ok(match (judgement, fault) {
        (Some(judgement), _) => JudgeOutcome::Judged(judgement),
        (None, Some(fault)) if fault.is_environment() => JudgeOutcome::EnvironmentFailed(fault),
        (None, fault) => JudgeOutcome::Unheard(fault.map_or_else(String::new, |fault| fault.detail)),
    })
}

/// Finds what is wrong with an answer that says nothing about the parts of the change.
fn find_missing_parts(content: &AnswerContent, part_count: usize) -> Option<String> {
    match content {
        AnswerContent::Rulings { parts, .. } if parts.is_empty() && part_count > 0 => {
            Some("a verdict is missing for each part of the change, C1 and so on".to_owned())
        }
        _ => None,
    }
}

/// Whether all parts at the evidence of a finding change nothing but blanks, line breaks, markup and case.
fn is_only_formatted(impact: &LandingImpact<'_>, finding: &Finding, parts: &[PartToJudge]) -> bool {
    let bare_text = |text: &str| {
        let letters = text.chars().filter(|character| !character.is_whitespace() && !"*_`#>-".contains(*character));
        letters.flat_map(char::to_lowercase).collect::<String>()
    };
    let own_ids: Vec<String> = impact
        .all_parts()
        .iter()
        .enumerate()
        .filter(|(_, part)| impact.is_part_at(part, finding))
        .map(|(index, _)| format!("C{}", index + 1))
        .collect();
    let own_parts = || parts.iter().filter(|part| own_ids.contains(&part.id));
    let is_formatting =
        |part: &PartToJudge| part.before != part.after && bare_text(&part.before) == bare_text(&part.after);
    own_parts().next().is_some() && own_parts().all(is_formatting)
}

/// Reads the answers of a judge. If it was asked once more, what it said later counts.
fn read_judgement(consultation: &ConsultOutcome) -> Option<Judgement> {
    let mut judgement: Option<Judgement> = None;
    for content in consultation.replies.iter().map(|answered| &answered.reply.content) {
        if let AnswerContent::Rulings { rulings, parts, .. } = content {
            let judgement = judgement.get_or_insert_default();
            judgement.rulings.extend(rulings.iter().cloned());
            let numbered_parts = parts.iter().filter(|part| part.part > 0);
            judgement.parts.extend(numbered_parts.map(|part| (part.part as usize - 1, part.clone())));
        }
    }
    judgement
}

/// Freezes the subject for a judge and returns its files. `Err` if it cannot be read.
async fn read_current_files(
    host: &ReviewHost<'_>,
    state: &ReviewState,
    judge_key: &Key,
) -> Result<Result<Vec<FrozenFile>, Fault>, ParkedRun> {
    match freeze_subject(host, state, judge_key.freeze_key()).await {
        Ok(frozen) => Ok(Ok(match host.order.subject.file_path() {
            Some(path) => vec![FrozenFile { path: path.into(), text: frozen.subject_text }],
            None => frozen.frozen_files,
        })),
        Err(ReviewExit::Parked(parked)) => Err(parked),
        Err(ReviewExit::Ended(ending)) => Ok(Err(Fault::new(FaultKind::World, ending.detail))),
    }
}

/// Makes the brief of a judge without its findings and the change.
fn new_brief(host: &ReviewHost<'_>, state: &ReviewState) -> ReviewBrief {
    ReviewBrief {
        said: state.dialog.remark_lines(),
        surroundings: state.task_background(host),
        ..ReviewBrief::new(AgentRole::Judge, state.reviewed_subject(host.order), state.round)
    }
}

fn finding_to_judge(finding: &Finding) -> AssignedFinding {
    AssignedFinding {
        id: finding.id,
        severity: finding.severity,
        description: finding.description.clone(),
        evidence: finding.evidence.clone(),
        place: finding.place.as_ref().map(|place| format!("{place}")).unwrap_or_default(),
        suggested_fix: finding.suggested_fix.clone(),
        last_try: String::new(),
    }
}

/// Lists the parts of a change with their texts.
fn list_parts(
    impact: &LandingImpact<'_>,
    findings: &[&Finding],
    landed_files: &[LandedFile],
    files_before: &[FrozenFile],
) -> Vec<PartToJudge> {
    let (mut parts, mut other_count) = (Vec::new(), 0);
    for (index, part) in impact.all_parts().into_iter().enumerate() {
        let is_elsewhere = !findings.iter().any(|finding| impact.is_part_at(&part, finding));
        other_count += usize::from(is_elsewhere);
        // Parts that are not shown do not land.
        if is_elsewhere && other_count > MAX_OTHER_PARTS {
            continue;
        }
        let text_before = files_before.iter().find(|file| file.path == part.path).map_or("", |file| file.text.as_str());
        let Some(landed_file) = landed_files.iter().find(|file| file.path == part.path) else { continue };
        let new_start = landed_file.find_new_line(part.hunk);
        parts.push(PartToJudge {
            id: format!("C{}", index + 1),
            place: format!("{part}"),
            before: take_lines(text_before, part.hunk.old_start, part.hunk.old_len),
            after: take_lines(&landed_file.text, new_start, part.hunk.new_len),
            is_elsewhere,
        });
    }
    parts
}

fn take_lines(text: &str, first_line: u32, line_count: u32) -> String {
    let lines = text.lines().skip(first_line.saturating_sub(1) as usize).take(line_count as usize);
    truncate_chars(&lines.collect::<Vec<_>>().join("\n"), MAX_PART_CHARS)
}
