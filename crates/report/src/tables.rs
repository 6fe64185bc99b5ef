//! Renders the answers of commands as tables and lists.

use std::fmt::Write;

use tribunal_core::{
    challenge,
    event::RunSummary,
    finding::{DismissalReason, Evidence, Finding, FindingStatus},
    ids::{FindingId, Hash},
    reason::RunOutcome,
    timestamp::Timestamp,
    tracker,
    view::{RunPhase, RunView},
};

use crate::{
    calls::{AgentCall, group_by_vendor},
    clean_line, escape_line, phrases,
    rulings::{Ruling, RulingIndex},
    style::{Screen, TextStyle},
};

/// A run as `runs` and `status` list it: its journal, and whether a process works on it.
#[derive(Clone, Copy, Debug)]
pub struct RunStanding<'a> {
    pub run_view: &'a RunView,
    pub is_live: bool,
}

impl RunStanding<'_> {
    pub fn run_state(&self) -> RunState {
        match (&self.run_view.phase, self.is_live) {
            (RunPhase::Running, true) => RunState::Running,
            // The journal has no ending and no process holds the run: it crashed.
            (RunPhase::Running, false) => RunState::Died,
            (RunPhase::Parked(summary) | RunPhase::Finished(summary), _) => {
                summary.outcome.map_or(RunState::Stopped, RunState::Ended)
            }
        }
    }

    /// The state in one word.
    pub fn state_name(&self) -> &'static str {
        self.run_state().as_str()
    }
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    Running,
    /// The journal has no ending, and no process works on the run.
    Died,
    /// The run was stopped before it reached an outcome.
    Stopped,
    /// The run ended, or waits, with this outcome.
    Ended(RunOutcome),
}

impl RunState {
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Died => "died",
            RunState::Stopped => "stopped",
            RunState::Ended(outcome) => outcome.as_str(),
        }
    }
}

/// Renders one line per run.
pub fn render_runs(standings: &[RunStanding<'_>], screen: &Screen) -> String {
    let mut rendered = String::new();
    for run_standing in standings {
        let run_view = run_standing.run_view;
        let run_id = typed_run_id(run_view);
        let subject_title = run_view.settings.as_ref().map(|settings| settings.subject.title()).unwrap_or_default();
        let state_style = standing_style(run_standing);
        // The word is padded before it is painted, because colour codes have no width.
        let painted_state = screen.paint(state_style, &format!("{:<9}", run_standing.state_name()));
        let subject_title = screen.fit_text(90, &subject_title);
        let _ = writeln!(
            rendered,
            "{run_id:<20} {painted_state} {}  {:<32} {:<19} {subject_title}",
            run_view.start_time.format_utc(),
            phrases::describe_counts(&run_view.finding_counts()),
            describe_run_usage(run_view),
        );
    }
    rendered
}

/// Describes what a run has used, for a table cell.
fn describe_run_usage(run_view: &RunView) -> String {
    // A run that ended has its totals in the summary; one under way only has the sum so far.
    match run_view.run_summary() {
        Some(summary) => phrases::describe_usage(summary.tokens, summary.cost, summary.notional),
        None => phrases::describe_usage(run_view.usage.tokens, run_view.usage.cost, run_view.usage.notional),
    }
}

/// The run's id as the user can type it.
fn typed_run_id(run_view: &RunView) -> String {
    run_view.run_id.as_ref().map(|run_id| escape_line(run_id.as_str())).unwrap_or_default()
}

/// The style of a run's state.
fn standing_style(run_standing: &RunStanding<'_>) -> TextStyle {
    match run_standing.run_state() {
        RunState::Ended(RunOutcome::Resolved) => TextStyle::Success,
        RunState::Ended(RunOutcome::Waiting) | RunState::Stopped => TextStyle::Warning,
        RunState::Running => TextStyle::Bold,
        RunState::Died | RunState::Ended(RunOutcome::Halted | RunOutcome::Failed | RunOutcome::Cancelled) => {
            TextStyle::Failure
        }
    }
}

/// Renders one run in a few lines.
pub fn render_status(run_standing: &RunStanding<'_>, screen: &Screen) -> String {
    let run_view = run_standing.run_view;
    let mut rendered = String::new();
    let run_id = typed_run_id(run_view);
    let subject_title =
        run_view.settings.as_ref().map(|settings| clean_line(&settings.subject.title())).unwrap_or_default();
    let painted_state = screen.paint(standing_style(run_standing), run_standing.state_name());
    let _ = writeln!(rendered, "{} {painted_state} · {subject_title}", screen.paint(TextStyle::Bold, &run_id));
    write_run_totals(&mut rendered, run_view);
    // A crashed run waits for nothing, although its journal still says so.
    if run_standing.is_live {
        write_usage_waits(&mut rendered, run_view, screen);
    }
    // Refuted findings are named because they disappear from the counts of open ones.
    let is_refuted = |finding: &&Finding| finding.status == FindingStatus::Dismissed { why: DismissalReason::Invalid };
    let refuted_ids: Vec<FindingId> = run_view.findings.values().filter(is_refuted).map(|finding| finding.id).collect();
    if !refuted_ids.is_empty() {
        let _ = writeln!(rendered, "  refuted by challengers: {}", phrases::join_ids(&refuted_ids));
    }
    if let Some(score_card) = &run_view.confidence {
        let _ = writeln!(
            rendered,
            "  {}; for gates {}, {}",
            phrases::describe_confidence(score_card),
            score_card.for_gates,
            score_card.band
        );
    }
    if let Some(tracker_path) = &run_view.tracker_path {
        let _ = writeln!(rendered, "  tracker: {}", escape_line(tracker_path));
    }
    write_next_steps(&mut rendered, run_standing, screen);
    rendered
}

/// Writes how the run ended, what it found and what it used; for a run under way, the totals so far.
fn write_run_totals(rendered: &mut String, run_view: &RunView) {
    match run_view.run_summary() {
        Some(summary) => {
            let _ = writeln!(rendered, "  {}{}", summary.reason.table_row().description, describe_detail(summary));
            let _ = writeln!(
                rendered,
                "  {} · {}",
                phrases::describe_counts(&run_view.finding_counts()),
                phrases::describe_spending(summary)
            );
        }
        None => {
            let usage_text = describe_run_usage(run_view);
            // A run that has just started has used nothing yet.
            let usage_text = if usage_text.is_empty() { usage_text } else { format!(" · {usage_text}") };
            let rounds_text = phrases::format_count(run_view.rounds, "round");
            let _ = writeln!(
                rendered,
                "  {rounds_text} held · {}{usage_text}",
                phrases::describe_counts(&run_view.finding_counts())
            );
        }
    }
}

/// Writes which agents are at their usage limit, and until when the run waits for them.
fn write_usage_waits(rendered: &mut String, run_view: &RunView, screen: &Screen) {
    for (agent_name, until_ms) in run_view.limited_agents() {
        let until_utc = Timestamp { wall_ms: until_ms, awake_ms: 0 }.format_utc();
        let wait_text =
            format!("{} is at its usage limit; the run waits until {until_utc} UTC", clean_line(agent_name.as_str()));
        let _ = writeln!(rendered, "  {}", screen.paint(TextStyle::Warning, &wait_text));
    }
}

/// Writes the commands that the user may type next.
fn write_next_steps(rendered: &mut String, run_standing: &RunStanding<'_>, screen: &Screen) {
    let mut next_commands = crate::suggest_next_steps(run_standing.run_view, &screen.program_name);
    // Only the lock tells that a run crashed, so the journal's own suggestions do not include this command.
    if run_standing.run_state() == RunState::Died {
        next_commands.insert(0, format!("{} resume {}", screen.program_name, typed_run_id(run_standing.run_view)));
    }
    for (step_index, next_step) in next_commands.iter().enumerate() {
        let step_lead = if step_index == 0 { "next:" } else { "" };
        let _ = writeln!(rendered, "  {step_lead:<6}{}", escape_line(next_step));
    }
}

/// The detail of an ending, unless it only repeats the text of its reason.
pub(crate) fn describe_detail(summary: &RunSummary) -> String {
    let reason_text = summary.reason.table_row().description;
    if summary.detail == reason_text { String::new() } else { format!(": {}", clean_line(&summary.detail)) }
}

/// Renders findings with their evidence, the verdict of challengers and the last thing that happened to them.
pub fn render_findings<'a>(
    findings: impl IntoIterator<Item = &'a Finding>,
    rulings: &RulingIndex,
    screen: &Screen,
) -> String {
    let mut rendered = String::new();
    for finding in findings {
        let place_text = finding.place.as_ref().map(|place| clean_line(&place.to_string())).unwrap_or_default();
        let match_kind = finding.found.map(|match_kind| format!("  ({match_kind})")).unwrap_or_default();
        let finding_head = format!("{:<4} {:<9}", finding.id.to_string(), finding.severity.as_str());
        let finding_head = screen.paint_severity(finding.severity, &finding_head);
        let _ = writeln!(
            rendered,
            "{finding_head} {}  {place_text}{match_kind}",
            clean_line(&tracker::format_status(&finding.status))
        );
        let _ = writeln!(rendered, "{}", screen.wrap_text(5, &finding.description));
        let evidence_text = match &finding.evidence {
            Evidence::Quote { text: quoted_text } => format!("“{quoted_text}”"),
            Evidence::Absence { heading, terms } => {
                format!("nothing about {} under “{heading}”", terms.join(", "))
            }
        };
        let _ = writeln!(rendered, "{}", screen.paint(TextStyle::Dim, &screen.wrap_text(5, &evidence_text)));
        let ruling = rulings.find_ruling(finding.id);
        if let Some(ruling) = ruling {
            let _ = writeln!(rendered, "{}", screen.wrap_text(5, &describe_challenge(ruling)));
        }
        // The last note is left out if the ruling already says it.
        let is_told_by_ruling = ruling.is_some() && challenge::challenge_note(finding) == Some(finding.last_note());
        // The first note only records that the finding was raised.
        if finding.history.len() > 1 && !is_told_by_ruling {
            let _ = writeln!(rendered, "{}", screen.wrap_text(5, &format!("last: {}", finding.last_note())));
        }
        if let Some(other_finding) = finding.maybe_same_as {
            let _ = writeln!(rendered, "{}", screen.wrap_text(5, &format!("maybe the same as {other_finding}")));
        }
    }
    rendered
}

/// Describes a ruling: `challenged: refuted by 2 of 2 challengers: it is excluded (“…”)`.
fn describe_challenge(ruling: &Ruling) -> String {
    let (objection_note, counter_quote) = ruling.strongest_objection().unwrap_or_default();
    let objection_note = if objection_note.is_empty() { String::new() } else { format!(": {objection_note}") };
    let counter_quote = if counter_quote.is_empty() { String::new() } else { format!(" (“{counter_quote}”)") };
    format!("challenged: {}{objection_note}{counter_quote}", ruling.describe())
}

/// Renders one line per call of an agent: the prompt and the output. `blob_bytes` returns the length of a stored blob.
pub fn render_calls(agent_calls: &[AgentCall<'_>], blob_bytes: &dyn Fn(&Hash) -> Option<u64>) -> String {
    // Keys and names are escaped before they are measured, or columns would not line up.
    let row_names = |agent_call: &AgentCall<'_>| {
        (escape_line(agent_call.effect_key.as_str()), clean_line(agent_call.agent_task.agent.as_str()))
    };
    let call_names: Vec<(String, String)> = agent_calls.iter().map(row_names).collect();
    let key_columns = call_names.iter().map(|(shown_key, _)| shown_key.len()).max().unwrap_or_default();
    let agent_columns = call_names.iter().map(|(_, shown_agent)| shown_agent.len()).max().unwrap_or_default();
    let driver_columns =
        agent_calls.iter().map(|agent_call| clean_line(&agent_call.driver_name).len()).max().unwrap_or_default().max(8);
    let blob_cell = |blob_hash: Option<&Hash>| match blob_hash {
        None => format!("{:>9}        {:<12}", "-", ""),
        Some(blob_hash) => match blob_bytes(blob_hash) {
            Some(byte_count) => {
                format!("{:>9} bytes  {:<12}", phrases::group_thousands(byte_count), blob_hash.short_hex())
            }
            // The store should have every blob that the journal names; a missing one is shown as such.
            None => format!("{:>9}        {:<12}", "gone", blob_hash.short_hex()),
        },
    };
    let mut rendered = String::new();
    for (agent_call, (shown_key, shown_agent)) in agent_calls.iter().zip(&call_names) {
        let call_head = format!(
            "{shown_key:<key_columns$}  {shown_agent:<agent_columns$}  {:<driver_columns$}",
            clean_line(&agent_call.driver_name)
        );
        let call_line =
            format!("{call_head}{}  →{}", blob_cell(agent_call.prompt_hash()), blob_cell(agent_call.output_hash()));
        let _ = writeln!(rendered, "{}", call_line.trim_end());
    }
    rendered
}

/// Renders which text went to which vendor: a paragraph per vendor, with totals. `blob_bytes` returns the length of a blob.
pub fn render_sent_texts(
    agent_calls: &[AgentCall<'_>],
    blob_bytes: &dyn Fn(&Hash) -> Option<u64>,
    screen: &Screen,
) -> String {
    let mut rendered = String::new();
    let key_columns = agent_calls
        .iter()
        .map(|agent_call| escape_line(agent_call.effect_key.as_str()).len())
        .max()
        .unwrap_or_default();
    let agent_columns =
        agent_calls.iter().map(|agent_call| agent_with_model(agent_call).len()).max().unwrap_or_default();
    for (vendor_totals, vendor_calls) in group_by_vendor(agent_calls, blob_bytes) {
        let paragraph_gap = if rendered.is_empty() { "" } else { "\n" };
        let vendor_line = match vendor_totals.vendor_name.as_str() {
            // Text played from a script stayed on this machine.
            _ if vendor_totals.is_script => "no vendor: played from a script".to_string(),
            "" => "unknown".to_string(),
            vendor_name => format!("to {}", clean_line(vendor_name)),
        };
        let _ = writeln!(rendered, "{paragraph_gap}{}", screen.paint(TextStyle::Bold, &vendor_line));
        for agent_call in vendor_calls {
            let blob_cell = match agent_call.prompt_hash().map(|blob_hash| (blob_hash, blob_bytes(blob_hash))) {
                None => format!("{:>15}", "nothing"),
                Some((blob_hash, None)) => format!("{:>15}  {}", "gone", blob_hash.short_hex()),
                Some((blob_hash, Some(byte_count))) => {
                    format!("{:>9} bytes  {}", phrases::group_thousands(byte_count), blob_hash.short_hex())
                }
            };
            let tokens_text = format!("{} tokens", phrases::group_thousands(agent_call.usage().weighted_tokens()));
            let shown_key = escape_line(agent_call.effect_key.as_str());
            let _ = writeln!(
                rendered,
                "  {shown_key:<key_columns$}  {:<agent_columns$}  {blob_cell:<29}  {tokens_text:>14}",
                self::agent_with_model(agent_call)
            );
        }
        let estimate_prefix = if vendor_totals.usage.estimated { "about " } else { "" };
        // The list price is mentioned, but it is not part of what was paid.
        let notional_cost = vendor_totals.usage.cost.filter(|_| vendor_totals.usage.notional).unwrap_or_default();
        let total_cost = phrases::describe_cost(vendor_totals.usage.cost.unwrap_or_default(), notional_cost);
        let cost_text = total_cost.map(|total_cost| format!(", {total_cost}")).unwrap_or_default();
        let _ = writeln!(
            rendered,
            "  {}, {} bytes, {estimate_prefix}{} tokens{cost_text}",
            phrases::format_count(vendor_totals.prompt_count, "text"),
            phrases::group_thousands(vendor_totals.prompt_bytes),
            phrases::group_thousands(vendor_totals.usage.weighted_tokens()),
        );
    }
    rendered
}

/// Names an agent with its model: `claude-code (opus)`.
fn agent_with_model(agent_call: &AgentCall<'_>) -> String {
    let agent_name = clean_line(agent_call.agent_task.agent.as_str());
    match &agent_call.model_name {
        Some(model_name) => format!("{agent_name} ({})", clean_line(model_name)),
        None => agent_name,
    }
}

/// Renders the decisions that wait for the user.
pub fn render_decisions<'a>(waiting_runs: impl IntoIterator<Item = &'a RunView>, screen: &Screen) -> String {
    let mut rendered = String::new();
    for run_view in waiting_runs {
        let run_id = typed_run_id(run_view);
        for decision in run_view.open_decisions() {
            let decision_name =
                screen.paint(TextStyle::Bold, &format!("{run_id}.{}", escape_line(decision.id.as_str())));
            let _ = writeln!(rendered, "{decision_name} for {}", clean_line(&decision.owner));
            let _ = writeln!(rendered, "{}", screen.wrap_text(2, &decision.question));
            for choice in &decision.choices {
                let _ = writeln!(rendered, "  {:<8} {}", choice.key.as_str(), clean_line(&choice.label));
            }
        }
    }
    rendered
}
