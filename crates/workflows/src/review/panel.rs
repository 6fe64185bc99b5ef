//! One round: the panel reads a frozen copy, all seats in parallel; what it raises is grounded, merged and tracked.
//!
//! [`round_roles`] says which reviewers a round has, and [`round_findings`] merges what the seats raised with the findings that are
//! known.

mod round_findings;
mod round_roles;

use alloc::{format, string::String, vec::Vec};

use futures_util::future::try_join_all;

use crate::{
    findings::{agent_role::AgentRole, counts::FindingCounts, finding::FindingRaiser, seat_plan::SeatPlan},
    review::{
        PanelPass, ReviewState,
        challenge::{self, ChallengeCompletion, ChallengeInput},
        confidence::PartyAgreement,
        event::ReviewEvent,
        frozen_copy::{FrozenCopy, freeze_subject},
        merge::{finding_headline, is_same_claim},
        next_stage::round_trigger,
        review_host::ReviewHost,
        review_keys::ReviewKeys,
        round_stats::{self, RoundStats},
        run_stage::ReviewExit,
        user_requests,
    },
    runs::{settings::Settings, types::RunEvent},
    tasks::{
        asking::consult_agent,
        brief::{AgentTask, AnswerContent, RaisedFinding, ReviewBrief, WorkspaceKind},
        client::JobKind,
        consult_outcome::{ConsultOutcome, KeyedReply},
        selection,
    },
};
use tribunal_engine::{
    fault::{Fault, FaultKind},
    files::StrayEdit,
    host::ParkedRun,
    ids::{AgentName, FindingId, Key},
    limits::{AgentUsage, RunUsage, check_budget, check_runtime},
    reason::{RunEnding, RunReason},
    text,
};

use round_findings::{RoundFindings, defer_outside_goal, merge_answers};
use round_roles::{choose_roles, is_level_open};

/// One reviewer of the panel with its answer.
struct PanelSeat {
    role: AgentRole,
    agent: AgentName,
    consultation: ConsultOutcome,
    raised: Option<Vec<RaisedFinding>>,
    /// The number of findings that were only counted, because there were too many.
    omitted: u32,
}

/// Runs one review round.
pub(super) async fn review_round(host: &ReviewHost<'_>, state: &mut ReviewState, round: u32) -> Result<(), ReviewExit> {
    let round_key = Key::for_round(round);
    // Whether an earlier confidence holds depends on the text, so that is read before the level is chosen.
    let first_copy = match is_level_open(host, state) {
        true => Some(freeze_subject(host, state, round_key.freeze_key()).await?),
        false => None,
    };
    let first_text = first_copy.as_ref().map(|frozen| &frozen.subject_hash);
    let roles = choose_roles(host, state, &round_key, first_text).await?;
    let max_rounds = host.order.limits.rounds.saturating_mul(state.spent.granted_shares());
    host.note_own_event(ReviewEvent::RoundStarted { round, of: max_rounds, why: Some(round_trigger(state)) });
    // What the user sends may take back what an earlier run recorded, so the records are read first.
    state.read_dismissals(host, &round_key).await?;
    user_requests::read_inbox(host, state, &round_key).await?;

    let frozen = match first_copy {
        Some(frozen) => frozen,
        None => freeze_subject(host, state, round_key.freeze_key()).await?,
    };
    state.last_pass.text = Some(frozen.subject_hash.clone());
    state.fix_history.text = Some(frozen.subject_hash.clone());
    let scope = frozen.review_scope(host.order)?;
    if frozen.subject_text.is_empty() && host.order.subject.file_path().is_none() {
        return end_empty_round(host, state, round).await;
    }
    // The remarks say what is missing in the workspaces; they are shown once.
    if round == 1 {
        frozen.remarks.iter().for_each(|remark| host.note_event(RunEvent::Warned { text: remark.clone() }));
    }

    let mut stats = RoundStats { all_fixed_before: state.is_all_fixed(), ..RoundStats::default() };
    let panel_seats = ask_panel(host, state, round, &roles, &frozen).await?;
    // A round without any answer does not count: it is held again, or it ends the review.
    let Some(seat_answers) = collect_answers(host, state, &panel_seats, round) else {
        handle_silent_panel(host, state, &panel_seats)?;
        return Ok(());
    };
    state.count_round(round);
    let round_findings = merge_answers(host, state, seat_answers, &scope);
    let full_scope = frozen.full_scope(host.order);
    let due_findings = select_findings_to_challenge(host, state, &round_findings);
    let challenge_input = ChallengeInput {
        challenge_key: &round_key,
        freeze_key: &frozen.freeze_key,
        scope: full_scope.as_ref().unwrap_or(&scope),
    };
    let challenged = challenge::challenge_findings(host, state, challenge_input, due_findings).await?;
    defer_outside_goal(host, state, &round_findings.raised);
    // Claims are counted after the challenge, when it is known which of them are refuted.
    state.findings.iter().for_each(|finding| stats.count_finding(finding, round));
    let new_count = round_findings.unsettled_findings(state).count() as u32;
    state.record_pass(&round_findings, &panel_seats, matches!(challenged, ChallengeCompletion::All));
    let finding_counts = FindingCounts::from_findings(&state.findings);
    host.note_own_event(ReviewEvent::RoundEnded {
        round,
        new: new_count,
        dry: state.last_pass.dry,
        counts: finding_counts,
        unbelieved: stats.unbelieved,
    });
    state.calculate_confidence(host, &answering_seats(&panel_seats, round), party_agreement(&panel_seats));
    state.publish_tracker(host, &round_key).await?;
    let panel_verdict = check_panel_quality(host, state, stats);
    if let ChallengeCompletion::Halted(ending) = challenged {
        return Err(ending.into());
    }
    check_omissions(host, state, &panel_seats)?;
    Ok(panel_verdict?)
}

/// Asks all reviewers of the panel, then asks the user about edits that they made outside their workspaces.
async fn ask_panel(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    round: u32,
    roles: &[AgentRole],
    frozen: &FrozenCopy,
) -> Result<Vec<PanelSeat>, ParkedRun> {
    let settings = host.settings();
    let round_key = Key::for_round(round);
    // All seats are asked in parallel; each future handles its own retries.
    let offset = rotation_offset(settings, round);
    let reviewer_futures = roles.iter().enumerate().map(|(index, role)| {
        let agent = selection::agent_for_seat(settings, JobKind::Review, index, offset);
        let agent = selection::stand_in(settings, JobKind::Review, &agent, &state.spent.failing);
        let mut brief = reviewer_brief(state, host, round, *role, frozen.count_reviewed_lines(host.order));
        complete_brief(&mut brief, host, state, &frozen.subject_text);
        brief.surroundings.servers = list_servers(settings, &agent, *role);
        ask_reviewer(host, agent, brief, &state.spent, roles.len())
    });
    let panel_seats = try_join_all(reviewer_futures).await?;
    // The reviewers worked side by side, so most of them report the same edits.
    let strayed: Vec<StrayEdit> =
        panel_seats.iter().flat_map(|panel_seat| panel_seat.consultation.strayed.iter().cloned()).collect();
    state.dialog.ask_about_strays(host.run_host(), &round_key, &strayed).await?;
    Ok(panel_seats)
}

/// Selects the findings of a round that are challenged.
fn select_findings_to_challenge(
    host: &ReviewHost<'_>,
    state: &ReviewState,
    round_findings: &RoundFindings,
) -> Vec<FindingId> {
    let mut due_findings = challenge::select_due(host, state, &round_findings.raised, &round_findings.overlapping);
    // A refuted finding that is raised again is challenged again, even if several reviewers agree on it.
    due_findings.extend(round_findings.raised_again.iter().copied());
    due_findings.sort_unstable();
    due_findings
}

/// Ends a round in which nothing of the change is left to read: a repair or an outside edit has reverted it.
async fn end_empty_round(host: &ReviewHost<'_>, state: &mut ReviewState, round: u32) -> Result<(), ReviewExit> {
    if round == 1 {
        let detail = String::from("there is no longer any change to review");
        return Err(RunEnding::new(RunReason::Environment, detail).into());
    }
    let warning = String::from("the change is empty by now, so there is nothing left to review");
    host.note_event(RunEvent::Warned { text: warning });
    state.count_round(round);
    let last_text = state.last_pass.text.take();
    state.last_pass = PanelPass { dry: true, sound: true, text: last_text, ..PanelPass::default() };
    let finding_counts = FindingCounts::from_findings(&state.findings);
    host.note_own_event(ReviewEvent::RoundEnded { round, new: 0, dry: true, counts: finding_counts, unbelieved: 0 });
    state.publish_tracker(host, &Key::for_round(round)).await?;
    Ok(())
}

/// Repeats the round if other agents can be asked; otherwise ends the review.
fn handle_silent_panel(host: &ReviewHost<'_>, state: &ReviewState, panel_seats: &[PanelSeat]) -> Result<(), RunEnding> {
    let settings = host.settings();
    // A used-up budget explains the silence better than a fault, and so does the time: agents get no more than is left of it.
    let awake_ms = host.last_timestamp().awake_ms;
    let used_up = check_budget(&settings.limits, &state.spent)
        .or_else(|| check_runtime(&settings.limits, &state.spent, awake_ms));
    if let Some(ending) = used_up {
        return Err(ending);
    }
    let fault = panel_seats.iter().find_map(|panel_seat| panel_seat.consultation.fault.clone());
    let is_environment_fault = fault.as_ref().is_some_and(Fault::is_environment);
    let detail = fault.map_or_else(String::new, |fault| fault.detail);
    if !is_environment_fault && selection::has_other_agents(settings, JobKind::Review) {
        host.note_event(RunEvent::Warned { text: format!("no reviewer answered: {detail}; repeating the round") });
        return Ok(());
    }
    Err(RunEnding::new(RunReason::Environment, format!("no reviewer answered: {detail}")))
}

/// Whether a pass is conclusive: more than half of the seats answered, each with claims of which at most half are refuted.
fn is_pass_conclusive(state: &ReviewState, panel_seats: &[PanelSeat], round: u32) -> bool {
    let sound_seats = panel_seats.iter().filter(|panel_seat| {
        let raiser = FindingRaiser { round, role: panel_seat.role, agent: panel_seat.agent.clone() };
        let own_findings = || state.findings.iter().filter(|finding| finding.raisers.contains(&raiser));
        let refuted_count = own_findings().filter(|finding| finding.status.is_refuted()).count();
        panel_seat.raised.is_some() && refuted_count * 2 <= own_findings().count()
    });
    sound_seats.count() * 2 > panel_seats.len()
}

/// Ends the review if the panel was degraded before and still is; the first time it only warns.
fn check_panel_quality(host: &ReviewHost<'_>, state: &mut ReviewState, stats: RoundStats) -> Result<(), RunEnding> {
    let degradation = round_stats::find_degradation(state.sheets.last(), &stats);
    state.sheets.push(stats);
    // A dry pass has enough sound answers: what the remaining reviewers made up does not matter.
    let Some(degradation) = degradation.filter(|_| !state.last_pass.dry) else { return Ok(()) };
    state.degraded += 1;
    if state.degraded > 1 {
        return Err(RunEnding::new(RunReason::PanelDegraded, degradation));
    }
    // At tier 0 and without fixing there is no other round.
    let next_step = match host.order.fix && host.settings().tier.number() > 0 {
        true => "; trying one more round with another panel",
        false => "",
    };
    host.note_event(RunEvent::Warned { text: format!("the panel may be unreliable: {degradation}{next_step}") });
    Ok(())
}

/// Returns by how many places the agents rotate: one more each round, so that every role gets another agent.
fn rotation_offset(settings: &Settings, round: u32) -> usize {
    if settings.agents.len() < 2 { 0 } else { round as usize - 1 }
}

/// A reviewer must find something in so many lines. A shorter text may well be flawless.
const LINES_PER_FINDING: u32 = 10;

/// Makes the brief of a reviewer. `line_count` is the number of lines under review.
fn reviewer_brief(
    state: &ReviewState,
    host: &ReviewHost<'_>,
    round: u32,
    role: AgentRole,
    line_count: u32,
) -> ReviewBrief {
    let known_lines = state.findings.iter().map(|finding| {
        format!("{} [{}]", finding_headline(finding), crate::review::tracker::format_status(&finding.status))
    });
    ReviewBrief {
        required: if round == 1 { host.order.panel.required_issues.min(line_count / LINES_PER_FINDING) } else { 0 },
        known: known_lines.collect(),
        said: state.dialog.remark_lines(),
        ..ReviewBrief::new(role, state.reviewed_subject(host.order), round)
    }
}

/// Adds what a reviewer should know besides the text: recent fixes, Tribunal's own files, and its plan.
fn complete_brief(task_brief: &mut ReviewBrief, host: &ReviewHost<'_>, state: &ReviewState, subject_text: &str) {
    let plan_settings = &host.order.panel.plans;
    task_brief.plan = match task_brief.role {
        AgentRole::Party => SeatPlan::plan_party(
            subject_text,
            &plan_settings.roster,
            plan_settings.min_agents as usize,
            plan_settings.max_rounds,
        ),
        AgentRole::Elicitation => SeatPlan::plan_elicitation(subject_text, plan_settings.min_methods as usize),
        _ => SeatPlan::Plain,
    };
    task_brief.fixed = state.fixes_since_last_pass();
    task_brief.surroundings = state.task_background(host);
}

/// Lists the MCP servers that an agent has and that a reviewer in this role should use.
fn list_servers(settings: &Settings, agent_name: &AgentName, role: AgentRole) -> Vec<String> {
    let client_spec = settings.find_agent(agent_name).and_then(|agent_spec| agent_spec.driver.client_spec());
    let servers = client_spec.map(|client_spec| client_spec.servers.as_slice()).unwrap_or_default();
    servers.iter().filter(|server| server.is_for_role(role)).map(|server| server.name.clone()).collect()
}

async fn ask_reviewer(
    host: &ReviewHost<'_>,
    agent_name: AgentName,
    brief: ReviewBrief,
    spent: &RunUsage,
    parallel_tasks: usize,
) -> Result<PanelSeat, ParkedRun> {
    let ReviewBrief { round, role, required, .. } = brief;
    let round_key = Key::for_round(round);
    let workspace = WorkspaceKind::Frozen { by: round_key.freeze_key() };
    let agent_task = AgentTask::for_review(agent_name.clone(), brief, workspace, host.order.timeout_ms(role));
    let reviewer_key = round_key.reviewer_key(role);
    let request = host.new_consultation(&reviewer_key, agent_task, spent, parallel_tasks);
    let consultation =
        consult_agent(host.run_host(), request, |content| find_answer_problem(content, required)).await?;
    let mut all_raised: Option<Vec<RaisedFinding>> = None;
    for KeyedReply { reply, .. } in &consultation.replies {
        if let AnswerContent::Findings { raised: newly_raised } = &reply.content {
            let mut newly_raised = newly_raised.clone();
            reply.minutes.raise_severities(&mut newly_raised);
            let merged = all_raised.get_or_insert_default();
            // Reviewers that are asked once more tend to repeat their first findings, in other words.
            newly_raised.retain(|candidate| !merged.iter().any(|earlier| is_same_claim(earlier, candidate)));
            merged.append(&mut newly_raised);
        }
        for remark in &reply.remarks {
            host.note_event(RunEvent::Warned { text: format!("{role} reviewer: {remark}") });
        }
    }
    let agent_name = consultation.last_agent().cloned().unwrap_or(agent_name);
    let raised_count = all_raised.as_ref().map_or(0, Vec::len) as u32;
    let omitted =
        all_raised.as_mut().map_or(0, |raised| omit_excess(raised, host.order.limits.allowed_findings(spent)));
    match (&all_raised, &consultation.fault) {
        (Some(_), _) => {
            let usage = consultation.usages.iter().copied().fold(AgentUsage::default(), AgentUsage::combined_with);
            host.note_own_event(ReviewEvent::SeatAnswered {
                round,
                role,
                agent: agent_name.clone(),
                raised: raised_count,
                usage,
            });
        }
        (None, fault) => {
            let fault = fault.clone().unwrap_or_else(|| {
                Fault::new(FaultKind::Malformed, format!("{agent_name} returned no list of findings"))
            });
            host.note_own_event(ReviewEvent::SeatIncomplete { round, role, agent: agent_name.clone(), fault });
        }
    }
    if omitted > 0 {
        let kept_count = raised_count - omitted;
        host.note_event(RunEvent::Warned {
            text: format!(
                "{role} reviewer: raised {raised_count} findings; the {kept_count} most severe were recorded, and {omitted} \
                 were only counted"
            ),
        });
    }
    Ok(PanelSeat { role, agent: agent_name, consultation, raised: all_raised, omitted })
}

/// Takes away what one reviewer raises beyond the limit, the least severe first, and returns how many findings that are. So many
/// findings end the review anyway.
fn omit_excess(raised: &mut Vec<RaisedFinding>, allowed_count: u32) -> u32 {
    let excess_count = raised.len().saturating_sub(allowed_count as usize);
    if excess_count > 0 {
        raised.sort_by_key(|finding| finding.severity);
        raised.truncate(allowed_count as usize);
    }
    excess_count as u32
}

/// Ends the review if a reviewer raised more than the limit allows.
fn check_omissions(host: &ReviewHost<'_>, state: &ReviewState, panel_seats: &[PanelSeat]) -> Result<(), RunEnding> {
    let allowed_count = host.order.limits.allowed_findings(&state.spent);
    match panel_seats.iter().filter(|panel_seat| panel_seat.omitted > 0).map(|panel_seat| panel_seat.omitted).max() {
        Some(omitted) => {
            let raised_count = omitted.saturating_add(allowed_count);
            let detail = format!("{raised_count} of at most {allowed_count} findings, from one reviewer");
            Err(RunEnding::new(RunReason::Findings, detail))
        }
        None => Ok(()),
    }
}

fn find_answer_problem(content: &AnswerContent, required_count: u32) -> Option<String> {
    match content {
        AnswerContent::Findings { raised } if (raised.len() as u32) < required_count => Some(format!(
            "you raised {}, but a first round should have {required_count}; check again for what was missed",
            text::format_count(raised.len() as u32, "finding")
        )),
        AnswerContent::Findings { .. } => None,
        AnswerContent::Unreadable { message } => Some(message.clone()),
        _ => Some(String::from("expected findings and nothing else")),
    }
}

/// Records what the seats used and returns their answers; `None` if no seat answered.
fn collect_answers(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    panel_seats: &[PanelSeat],
    round: u32,
) -> Option<Vec<(FindingRaiser, Vec<RaisedFinding>)>> {
    let mut seat_answers = Vec::new();
    for panel_seat in panel_seats {
        state.record_result(host, &panel_seat.consultation, panel_seat.raised.is_some());
        if let Some(raised_findings) = &panel_seat.raised {
            let raiser = FindingRaiser { round, role: panel_seat.role, agent: panel_seat.agent.clone() };
            seat_answers.push((raiser, raised_findings.clone()));
        }
    }
    (!seat_answers.is_empty()).then_some(seat_answers)
}

/// Returns the agreement from the party's minutes, if a party was held.
fn party_agreement(panel_seats: &[PanelSeat]) -> Option<PartyAgreement> {
    let party_seat = panel_seats.iter().find(|panel_seat| panel_seat.role == AgentRole::Party)?;
    let reply_with_minutes =
        party_seat.consultation.replies.iter().rev().find(|keyed_reply| !keyed_reply.reply.minutes.is_empty())?;
    PartyAgreement::from_minutes(&reply_with_minutes.reply.minutes)
}

fn answering_seats(panel_seats: &[PanelSeat], round: u32) -> Vec<FindingRaiser> {
    let seats_with_answer = panel_seats.iter().filter(|panel_seat| panel_seat.raised.is_some());
    seats_with_answer
        .map(|panel_seat| FindingRaiser { round, role: panel_seat.role, agent: panel_seat.agent.clone() })
        .collect()
}

impl ReviewState {
    /// Counts a round as held, with no fix iteration yet.
    fn count_round(&mut self, round: u32) {
        self.round = round;
        self.iteration = 0;
        self.metrics.review_rounds = round;
    }

    /// Records what this pass over the text shows.
    fn record_pass(&mut self, round_findings: &RoundFindings, panel_seats: &[PanelSeat], all_challenged: bool) {
        let weighty_findings: Vec<FindingId> = round_findings
            .unsettled_findings(self)
            .filter(|finding| finding.severity.is_weighty())
            .map(|finding| finding.id)
            .collect();
        self.held_for_confidence = false;
        self.another_panel = false;
        self.last_pass.changed = false;
        self.last_pass.unheard = panel_seats.iter().filter(|panel_seat| panel_seat.raised.is_none()).count() as u32;
        self.last_pass.sound = is_pass_conclusive(self, panel_seats, self.round) && all_challenged;
        self.last_pass.dry = self.last_pass.sound && weighty_findings.is_empty();
        self.last_pass.raised = weighty_findings;
    }

    /// Whether something was fixed and nothing is open or blocked.
    fn is_all_fixed(&self) -> bool {
        let finding_counts = FindingCounts::from_findings(&self.findings);
        finding_counts.fixed > 0 && finding_counts.open + finding_counts.blocked == 0
    }

    /// Counts a consultation in the metrics of the review.
    pub(super) fn count_consultation(&mut self, consultation: &ConsultOutcome) {
        self.metrics.subagent_invocations += consultation.call_count();
        self.metrics.total_backoff_seconds += consultation.paused_ms / 1000;
        self.metrics.recoveries += u32::from(consultation.has_recovered);
    }

    /// Records a consultation: calls, tokens, failures in a row.
    pub(super) fn record_result(&mut self, host: &ReviewHost<'_>, consultation: &ConsultOutcome, is_answered: bool) {
        self.count_consultation(consultation);
        self.metrics.failures += u32::from(consultation.is_failure(is_answered));
        consultation.record_result(host.run_host(), &mut self.spent, is_answered);
    }
}
