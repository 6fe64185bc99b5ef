//! Challenges what a round has newly raised; [`crate::review::challenge_rules`] has the rules.
//!
//! Findings go out in batches to two challengers in parallel, and to a third where the two disagree. What a challenger quotes
//! against a finding is looked up like any other quote: a denial whose evidence is not in the subject only counts as doubt.

use alloc::{collections::BTreeMap, format, string::String, vec, vec::Vec};

use futures_util::future::try_join_all;

use crate::{
    findings::{
        agent_role::AgentRole,
        finding::{DismissalReason, Evidence, Finding, FindingStatus, Severity, StatusTransition, TransitionCause},
    },
    review::{
        ReviewState,
        challenge_rules::{
            ChallengeResult, ChallengerVoice, MAX_VOICES, OpenProviders, VOICES_AT_ONCE, decide_result, describe_doubt,
            describe_voices, is_settled, lower_severity, needs_challenge, refuting_providers,
        },
        event::ReviewEvent,
        ground::EvidenceScope,
        questions,
        review_host::ReviewHost,
    },
    runs::types::RunEvent,
    tasks::{
        answer_words::{VERDICT_WORDS, describe_unknown_words},
        asking::consult_agent,
        brief::{AgentTask, AnswerContent, CHALLENGE_BATCH_SIZE, FindingToChallenge, ReviewBrief, WorkspaceKind},
        claims::{ChallengeVerdict, ChallengerRuling, UnknownWord},
        client::JobKind,
        consult_outcome::{ConsultOutcome, KeyedReply},
        selection::{self, HeardAgent},
    },
};
use tribunal_engine::{
    fault::{Fault, FaultKind},
    host::ParkedRun,
    ids::{AgentName, FindingId, Key},
    limits::{AgentUsage, RunUsage, check_limits},
    reason::{RunEnding, RunReason},
};

/// The most challengers that work in parallel.
const MAX_PARALLEL_CHALLENGERS: usize = 6;
/// The least number of letters and digits in counter-evidence: fewer could occur anywhere.
const MIN_COUNTER_CHARS: usize = 4;

type VoicesByFinding = BTreeMap<FindingId, Vec<ChallengerVoice>>;

/// What challengers work on: the frozen text and the key of the effect that froze it.
pub(super) struct ChallengeInput<'g> {
    pub challenge_key: &'g Key,
    pub freeze_key: &'g Key,
    pub scope: &'g EvidenceScope<'g>,
}

/// Selects the findings to challenge. `overlapping` has those that several reviewers support with the same words.
pub(super) fn select_due(
    host: &ReviewHost<'_>,
    state: &ReviewState,
    candidates: &[FindingId],
    overlapping: &[FindingId],
) -> Vec<FindingId> {
    let is_selected = |finding_id: &&FindingId| {
        state
            .find_finding(**finding_id)
            .is_some_and(|finding| needs_challenge(finding, host.settings(), overlapping.contains(&finding.id)))
    };
    candidates.iter().filter(is_selected).copied().collect()
}

/// How far the challenge came.
pub(super) enum ChallengeCompletion {
    /// Every due finding was challenged.
    All,
    /// A limit was reached, or the environment failed. The findings that were not challenged are remembered.
    Halted(RunEnding),
}

/// Challenges findings and applies the results.
pub(super) async fn challenge_findings(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    challenge_input: ChallengeInput<'_>,
    due_findings: Vec<FindingId>,
) -> Result<ChallengeCompletion, ParkedRun> {
    if due_findings.is_empty() {
        return Ok(ChallengeCompletion::All);
    }
    // Keys of challenges are below the round or the fix iteration that asks for them.
    let challenge_input =
        ChallengeInput { challenge_key: &challenge_input.challenge_key.child_key("challenge"), ..challenge_input };
    let mut voices_by_finding: VoicesByFinding = due_findings.iter().map(|finding_id| (*finding_id, vec![])).collect();
    let mut progress = ChallengeCompletion::All;
    // Two voices at once, then a third where they disagree, then a replacement for voices that failed.
    for voice_range in [0..VOICES_AT_ONCE, VOICES_AT_ONCE..MAX_VOICES, MAX_VOICES..MAX_VOICES + 1] {
        let is_unsettled = |finding_id: &&FindingId| {
            let voices = &voices_by_finding[*finding_id];
            !has_enough_voices(host, state, **finding_id, voices) && voices.len() < MAX_VOICES as usize
        };
        let open_findings: Vec<FindingId> = due_findings.iter().filter(is_unsettled).copied().collect();
        // If no agent works, a further voice would not be heard either.
        let is_in_vain = voice_range.start > 0
            && !selection::has_working_agent(host.settings(), JobKind::Challenge, &state.spent.failing);
        if open_findings.is_empty() || is_in_vain {
            break;
        }
        let batches: Vec<ChallengeBatch> = voice_range
            .flat_map(|voice_number| plan_batches(state, host, &open_findings, voice_number, &voices_by_finding))
            .collect();
        progress = hear_batches(host, state, &challenge_input, batches, &mut voices_by_finding).await?;
        if matches!(progress, ChallengeCompletion::Halted(_)) {
            break;
        }
    }
    // After a halt only findings with two agreeing voices are settled; the others are challenged later.
    for (finding_id, voices) in voices_by_finding {
        let is_heard = has_enough_voices(host, state, finding_id, &voices);
        if matches!(progress, ChallengeCompletion::Halted(_)) && !is_heard {
            state.unheard.push(finding_id);
        } else {
            state.unheard.retain(|unheard_id| *unheard_id != finding_id);
            settle_finding(host, state, challenge_input.challenge_key, finding_id, voices).await?;
        }
    }
    Ok(progress)
}

/// Whether no further challenger has to be asked about a finding.
fn has_enough_voices(
    host: &ReviewHost<'_>,
    state: &ReviewState,
    finding_id: FindingId,
    voices: &[ChallengerVoice],
) -> bool {
    let Some(finding) = state.find_finding(finding_id) else { return true };
    let refuting = refuting_providers(voices);
    let is_heard = |provider: &str| voices.iter().any(|voice| voice.provider_name() == provider);
    let mut open_providers = OpenProviders::default();
    for agent_spec in selection::working_challengers(host.settings(), &state.spent.failing) {
        open_providers.unheard |= !is_heard(agent_spec.provider_name());
        open_providers.unrefuting |= !refuting.contains(agent_spec.provider_name());
    }
    is_settled(voices, finding.severity, open_providers)
}

/// Checks the limits that concern challenges. The number of findings is checked after the challenge, which dismisses some.
fn find_limit(host: &ReviewHost<'_>, state: &ReviewState) -> Option<RunEnding> {
    check_limits(&host.settings().limits, &state.spent, host.last_timestamp().awake_ms)
}

/// One challenger with its findings.
struct ChallengeBatch {
    /// `1/2` is the second batch of the first voice.
    batch_name: String,
    agent: AgentName,
    findings: Vec<FindingId>,
}

fn plan_batches(
    state: &ReviewState,
    host: &ReviewHost<'_>,
    open_findings: &[FindingId],
    voice_number: u32,
    voices_by_finding: &VoicesByFinding,
) -> Vec<ChallengeBatch> {
    let mut by_agent: Vec<(AgentName, Vec<FindingId>)> = vec![];
    for finding in open_findings.iter().filter_map(|finding_id| state.find_finding(*finding_id)) {
        let heard_agents: Vec<HeardAgent> = voices_by_finding[&finding.id]
            .iter()
            .map(|voice| HeardAgent {
                name: voice.agent.clone(),
                has_refuted: voice.holds == ChallengeVerdict::Invalid,
            })
            .collect();
        // The first voices are chosen together; later ones only avoid the agents that were heard already.
        let nth_at_once = if voice_number < VOICES_AT_ONCE { voice_number } else { 0 };
        let agent =
            selection::choose_challenger(host.settings(), finding, nth_at_once, &heard_agents, &state.spent.failing);
        // A list keeps the order of the findings, so that keys of batches are the same in a replay.
        match by_agent.iter_mut().find(|(known_agent, _)| *known_agent == agent) {
            Some((_, findings)) => findings.push(finding.id),
            None => by_agent.push((agent, vec![finding.id])),
        }
    }
    let agent_chunks = by_agent
        .iter()
        .flat_map(|(agent, findings)| findings.chunks(CHALLENGE_BATCH_SIZE).map(move |chunk| (agent, chunk)));
    let named_batches = agent_chunks.enumerate().map(|(index, (agent, findings))| ChallengeBatch {
        batch_name: format!("{}/{}", voice_number + 1, index + 1),
        agent: agent.clone(),
        findings: findings.to_vec(),
    });
    named_batches.collect()
}

/// Asks batches in parallel and records the voices.
async fn hear_batches(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    challenge_input: &ChallengeInput<'_>,
    batches: Vec<ChallengeBatch>,
    voices_by_finding: &mut VoicesByFinding,
) -> Result<ChallengeCompletion, ParkedRun> {
    let (mut any_answered, mut any_failed) = (false, false);
    let mut environment_fault: Option<Fault> = None;
    for parallel_batches in batches.chunks(MAX_PARALLEL_CHALLENGERS) {
        // Limits are checked between groups: a task that runs already is paid for anyway.
        if let Some(ending) = find_limit(host, state) {
            return Ok(ChallengeCompletion::Halted(ending));
        }
        let challenger_futures = parallel_batches.iter().map(|batch| {
            let agent_task = challenger_task(state, host, challenge_input, batch);
            let task_key = challenge_input.challenge_key.child_key(&batch.batch_name);
            ask_challenger(host, task_key, agent_task, &state.spent, parallel_batches.len())
        });
        for (batch, ChallengerAnswer { consultation, rulings }) in
            parallel_batches.iter().zip(try_join_all(challenger_futures).await?)
        {
            state.count_consultation(&consultation);
            consultation.record_usage(host.run_host(), &mut state.spent);
            let batch_key = challenge_input.challenge_key.child_key(&batch.batch_name);
            state.dialog.ask_about_strays(host.run_host(), &batch_key, &consultation.strayed).await?;
            // One answer is enough to show that challengers work.
            any_answered |= rulings.is_some();
            any_failed |= rulings.is_none();
            environment_fault = environment_fault.or(consultation.fault.clone().filter(Fault::is_environment));
            let answering_agent = consultation.last_agent().unwrap_or(&batch.agent);
            // A ruling about a finding of another batch is ignored.
            for ruling in rulings.into_iter().flatten().filter(|ruling| batch.findings.contains(&ruling.id)) {
                if let Some(finding_voices) = voices_by_finding.get_mut(&ruling.id) {
                    let provider = host.settings().agent_provider(answering_agent);
                    finding_voices.push(judge_ruling(answering_agent, provider, ruling, challenge_input.scope));
                }
            }
        }
    }
    // All batches together count as one task for the limit on failures.
    if any_answered {
        state.spent.failures_in_a_row = 0;
    } else if let Some(fault) = environment_fault {
        // A failure of the environment is not a failed attempt, and unchallenged findings are not repaired yet.
        let detail = format!("no challenger answered: {}", fault.detail);
        return Ok(ChallengeCompletion::Halted(RunEnding::new(RunReason::Environment, detail)));
    } else if any_failed {
        state.spent.failures_in_a_row += 1;
        state.metrics.failures += 1;
    }
    Ok(ChallengeCompletion::All)
}

fn challenger_task(
    state: &ReviewState,
    host: &ReviewHost<'_>,
    challenge_input: &ChallengeInput<'_>,
    batch: &ChallengeBatch,
) -> AgentTask {
    let disputed_findings = batch
        .findings
        .iter()
        .filter_map(|finding_id| state.find_finding(*finding_id))
        .map(FindingToChallenge::from_finding);
    let brief = ReviewBrief {
        disputed: disputed_findings.collect(),
        said: state.dialog.remark_lines(),
        surroundings: state.task_background(host),
        ..ReviewBrief::new(AgentRole::Challenger, state.reviewed_subject(host.order), state.round)
    };
    let workspace = WorkspaceKind::Frozen { by: challenge_input.freeze_key.clone() };
    AgentTask::for_review(batch.agent.clone(), brief, workspace, host.order.panel.reviewer_timeout_ms)
}

/// The answer of one challenger.
struct ChallengerAnswer {
    consultation: ConsultOutcome,
    /// `None` if it did not answer with verdicts.
    rulings: Option<Vec<ChallengerRuling>>,
}

async fn ask_challenger(
    host: &ReviewHost<'_>,
    task_key: Key,
    agent_task: AgentTask,
    spent: &RunUsage,
    parallel_tasks: usize,
) -> Result<ChallengerAnswer, ParkedRun> {
    let agent_name = agent_task.agent.clone();
    let wanted_ids = agent_task.brief.finding_ids();
    let finding_count = wanted_ids.len() as u32;
    let request = host.new_consultation(&task_key, agent_task, spent, parallel_tasks);
    let consultation =
        consult_agent(host.run_host(), request, |content| find_ruling_problem(content, &wanted_ids)).await?;
    let mut rulings: Option<Vec<ChallengerRuling>> = None;
    for KeyedReply { reply, .. } in &consultation.replies {
        // An unknown verdict is none: the challenger counts as not heard about that finding.
        if let AnswerContent::Rulings { rulings: new_rulings, .. } = &reply.content {
            let all_rulings = rulings.get_or_insert_default();
            // If a challenger was asked once more, its later ruling on a finding counts.
            all_rulings.retain(|earlier: &ChallengerRuling| !new_rulings.iter().any(|ruling| ruling.id == earlier.id));
            all_rulings.extend(new_rulings.iter().cloned());
        }
        for remark in &reply.remarks {
            host.note_event(RunEvent::Warned { text: format!("challenger {agent_name}: {remark}") });
        }
    }
    let agent_name = consultation.last_agent().cloned().unwrap_or(agent_name);
    let has_ruling =
        |finding_id: &&FindingId| rulings.iter().flatten().any(|ruling: &ChallengerRuling| ruling.id == **finding_id);
    let silent_ids = wanted_ids.iter().filter(|finding_id| !has_ruling(finding_id)).copied().collect();
    let usage = consultation.usages.iter().copied().fold(AgentUsage::default(), AgentUsage::combined_with);
    let fault = match &rulings {
        Some(_) => None,
        None => Some(
            consultation
                .fault
                .clone()
                .unwrap_or_else(|| Fault::new(FaultKind::Malformed, format!("{agent_name} returned no verdicts"))),
        ),
    };
    host.note_own_event(ReviewEvent::ChallengerAnswered {
        key: task_key,
        agent: agent_name,
        findings: finding_count,
        usage,
        silent: silent_ids,
        fault,
    });
    Ok(ChallengerAnswer { consultation, rulings })
}

/// Finds what is wrong with an answer: unknown verdicts, missing ones, or no verdicts at all.
pub(super) fn find_ruling_problem(content: &AnswerContent, wanted_ids: &[FindingId]) -> Option<String> {
    match content {
        AnswerContent::Rulings { rulings, unknown, .. } => {
            let wanted_unknown: Vec<UnknownWord> =
                unknown.iter().filter(|unknown_word| wanted_ids.contains(&unknown_word.id)).cloned().collect();
            let is_mentioned = |finding_id: FindingId| {
                rulings.iter().any(|ruling| ruling.id == finding_id)
                    || wanted_unknown.iter().any(|unknown_word| unknown_word.id == finding_id)
            };
            let silent_ids = wanted_ids.iter().filter(|finding_id| !is_mentioned(**finding_id));
            let silent_names: Vec<String> = silent_ids.map(|finding_id| format!("{finding_id}")).collect();
            let mut problems: Vec<String> = Vec::new();
            // The missing ones come first: the list of accepted words is long.
            if !silent_names.is_empty() {
                problems.push(format!("a verdict is missing for {}", silent_names.join(", ")));
            }
            if !wanted_unknown.is_empty() {
                problems.push(describe_unknown_words("verdict", &wanted_unknown, &VERDICT_WORDS));
            }
            (!problems.is_empty()).then(|| problems.join("; "))
        }
        AnswerContent::Unreadable { message } => Some(message.clone()),
        _ => Some(String::from("expected verdicts and nothing else")),
    }
}

/// Turns a ruling into a voice. A denial needs counter-evidence that occurs in the subject; otherwise it becomes doubt.
fn judge_ruling(
    agent: &AgentName,
    provider: &str,
    ruling: ChallengerRuling,
    scope: &EvidenceScope<'_>,
) -> ChallengerVoice {
    let ChallengerRuling { mut holds, mut note, mut counter, .. } = ruling;
    // Punctuation says nothing, so only letters and digits count.
    let is_too_short = counter.chars().filter(|character| character.is_alphanumeric()).count() < MIN_COUNTER_CHARS;
    let problem = match counter.as_str() {
        "" => Some("without a quote"),
        _ if is_too_short => Some("the quote is too short to prove anything"),
        _ if !scope.has_evidence(&Evidence::Quote { text: counter.clone() }) => Some("the quote was not found"),
        _ => None,
    };
    if let (ChallengeVerdict::Invalid, Some(problem)) = (holds, problem) {
        holds = ChallengeVerdict::Ambiguous;
        note = format!("called invalid, but {problem}: {note}");
        // A quote that was not found must not be shown as evidence.
        counter = String::new();
    }
    let provider = if provider == agent.as_str() { String::new() } else { String::from(provider) };
    ChallengerVoice { agent: agent.clone(), provider, holds, note, counter }
}

/// Applies the result of the voices to one finding.
async fn settle_finding(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    challenge_key: &Key,
    finding_id: FindingId,
    voices: Vec<ChallengerVoice>,
) -> Result<(), ParkedRun> {
    let doubt_text = describe_doubt(&voices);
    let Some(finding) = state.find_finding_mut(finding_id) else { return Ok(()) };
    let result = decide_result(&voices, finding.severity);
    let is_critical = finding.severity == Severity::Critical;
    // A doubtful critical finding is not lowered: the user decides about it below.
    if result == ChallengeResult::Ambiguous && !is_critical {
        finding.severity = lower_severity(finding.severity);
    }
    let severity = finding.severity;
    let refutation = describe_voices(&voices, ChallengeVerdict::Invalid);
    host.note_own_event(ReviewEvent::FindingRuled { finding: finding_id, ruled: result, severity, voices });
    match result {
        // The finding stays as it is: it was upheld, or no challenger was heard.
        ChallengeResult::Valid | ChallengeResult::Unheard | ChallengeResult::Person => {}
        ChallengeResult::Invalid => {
            let dismissed_status = FindingStatus::Dismissed { why: DismissalReason::Invalid };
            state.transition_finding(
                host,
                finding_id,
                StatusTransition::new(dismissed_status, TransitionCause::Refuted, refutation),
            );
        }
        ChallengeResult::Ambiguous if is_critical => {
            ask_user(host, state, challenge_key, finding_id, &doubt_text).await?
        }
        ChallengeResult::Ambiguous => {
            let note_text = format!("in doubt, counted as {severity}; {doubt_text}");
            state.transition_finding(
                host,
                finding_id,
                StatusTransition::new(FindingStatus::Open, TransitionCause::InDoubt, note_text),
            );
        }
    }
    Ok(())
}

/// Asks the user about a critical finding on which challengers disagree.
async fn ask_user(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    challenge_key: &Key,
    finding_id: FindingId,
    doubt_text: &str,
) -> Result<(), ParkedRun> {
    let Some(finding) = state.find_finding(finding_id) else { return Ok(()) };
    let question = format!("{finding_id}: {} (challengers: {doubt_text})", describe_finding(finding));
    let decision_id = state.dialog.next_decision_id();
    let user_decision = questions::ask_about_disputed_finding(decision_id.clone(), finding_id, question);
    state
        .dialog
        .post_decision(host.run_host(), &challenge_key.child_key(&format!("ask-{finding_id}")), user_decision)
        .await?;
    let note_text = format!("challengers could not settle this critical finding: {doubt_text}");
    state.transition_finding(
        host,
        finding_id,
        StatusTransition::new(
            FindingStatus::Blocked { decision: decision_id },
            TransitionCause::NoAgreement,
            note_text,
        ),
    );
    Ok(())
}

fn describe_finding(finding: &Finding) -> String {
    match &finding.place {
        Some(place) => format!("{} at {place}", finding.description),
        None => finding.description.clone(),
    }
}
