//! Renders the answers of commands as tables and lists.

use std::fmt::Write;

use tribunal_engine::{ids::Hash, reason::RunOutcome, timestamp::Timestamp, user_remark::UserRemark};
use tribunal_workflows::runs::{kinds::RunOrder, view::RunView};

use crate::{
    ActiveWork,
    calls::{AgentCall, group_by_vendor},
    clean_line, escape_line,
    kind_reporter::DEFAULT_RESULT_HEADING,
    kind_table,
    next_steps::collect_standing_steps,
    phrases,
    run_text::{describe_ending, describe_run, describe_run_usage, describe_totals, describe_totals_so_far},
    step_list::render_next_steps,
    style::{Screen, TextStyle},
    terminal_text::display_width,
    text_table::{TextCell, TextColumn, render_table},
    user_messages::describe_undelivered,
};
pub use crate::{
    review::render_findings,
    run_standing::{RunStanding, RunState, is_driven_by_session},
};

/// The columns of the list of runs. On a narrow screen the last ones move to a second line below each run.
fn run_columns(result_heading: &'static str) -> [TextColumn; 6] {
    ["RUN", "STATE", "STARTED (UTC)", result_heading, "USAGE", "SUBJECT"].map(TextColumn::new)
}

/// Renders a table with one row per run.
pub fn render_runs(standings: &[RunStanding<'_>], screen: &Screen) -> String {
    let run_orders = || standings.iter().filter_map(|run_standing| run_standing.run_view.order.as_ref());
    let first_kind = run_orders().next().map(RunOrder::kind_name);
    let is_mixed = run_orders().any(|order| Some(order.kind_name()) != first_kind);
    // Runs of several kinds are told apart by their subjects, and the column of results fits them all.
    let result_heading =
        run_orders().next().filter(|_| !is_mixed).map_or(DEFAULT_RESULT_HEADING, kind_table::result_heading);
    let make_row = |run_standing: &RunStanding<'_>| -> Vec<TextCell> {
        let run_view = run_standing.run_view;
        // The format is `2026-11-15 03:57:18`; seconds do not matter here.
        let mut start_text = run_view.start_time.format_utc();
        start_text.truncate(16);
        let result = kind_table::find_result(run_view);
        let subject_text = match &run_view.order {
            Some(order) if is_mixed => clean_line(&describe_run(order)),
            _ => subject_title(run_view),
        };
        vec![
            (indent_child(run_standing, standings) + &typed_run_id(run_view)).into(),
            TextCell { text: run_standing.state_name().to_string(), style: standing_style(run_standing) },
            start_text.into(),
            result.as_ref().map(kind_table::describe_result_cell).unwrap_or_default().into(),
            describe_run_usage(run_view).into(),
            subject_text.into(),
        ]
    };
    let run_rows: Vec<Vec<TextCell>> = standings.iter().map(make_row).collect();
    render_table(&run_columns(result_heading), &run_rows, screen)
}

/// The indent of a child run below its parent, if the parent is in the list, too.
fn indent_child(run_standing: &RunStanding<'_>, standings: &[RunStanding<'_>]) -> String {
    let Some(parent) = &run_standing.run_view.parent else { return String::new() };
    let is_listed = standings.iter().any(|other| other.run_view.run_id.as_ref() == Some(&parent.run));
    if is_listed { "  ".repeat(parent.depth.saturating_sub(1) as usize) + "└ " } else { String::new() }
}

/// What the run is about, in one line.
fn subject_title(run_view: &RunView) -> String {
    clean_line(&run_view.title())
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
        RunState::Crashed | RunState::Ended(RunOutcome::Halted | RunOutcome::Failed | RunOutcome::Cancelled) => {
            TextStyle::Failure
        }
    }
}

/// What `status` knows about a run besides its view.
#[derive(Clone, Debug, Default)]
pub struct RunDetails {
    /// What a live run is working on.
    pub active_work: Vec<ActiveWork>,
    /// Messages of the user that reached no agent yet.
    pub undelivered: Vec<UserRemark>,
    /// The child runs, one line each; see [`crate::list_child_lines`].
    pub child_lines: Vec<String>,
    /// The wall time at which the run is looked at.
    pub now_ms: u64,
}

/// Renders one run in a few lines, with what is known besides its view.
pub fn render_status(run_standing: &RunStanding<'_>, run_details: &RunDetails, screen: &Screen) -> String {
    let run_view = run_standing.run_view;
    let mut rendered = String::new();
    write_status_head(&mut rendered, run_standing, screen);
    write_run_totals(&mut rendered, run_view, screen);
    // A crashed run waits for nothing, although its journal still says so.
    if run_standing.is_live {
        write_usage_waits(&mut rendered, run_view, screen);
    }
    write_run_details(&mut rendered, run_standing, run_details, screen);
    for status_line in kind_table::list_status_lines(run_view) {
        write_wrapped(&mut rendered, &status_line, screen);
    }
    for file_line in kind_table::list_file_lines(run_view) {
        let _ = writeln!(rendered, "  {file_line}");
    }
    write_next_steps(&mut rendered, run_standing, screen);
    rendered
}

/// Writes the run, its state and its subject: in one line, if that fits.
fn write_status_head(rendered: &mut String, run_standing: &RunStanding<'_>, screen: &Screen) {
    let (run_id, state_name) = (typed_run_id(run_standing.run_view), run_standing.state_name());
    let subject_title = subject_title(run_standing.run_view);
    let painted_id = screen.paint(TextStyle::Bold, &run_id);
    let painted_state = screen.paint(standing_style(run_standing), state_name);
    let head_columns = display_width(&run_id) + 1 + state_name.len();
    let _ = if screen.fits_line(head_columns + 3 + display_width(&subject_title)) {
        writeln!(rendered, "{painted_id} {painted_state} · {subject_title}")
    } else {
        writeln!(rendered, "{painted_id} {painted_state}\n{}", screen.wrap_hanging(2, 4, &subject_title))
    };
}

/// Writes a line of a status: indented, and wrapped with a larger indent.
fn write_wrapped(rendered: &mut String, line_text: &str, screen: &Screen) {
    let _ = writeln!(rendered, "{}", screen.wrap_parts(2, 4, line_text));
}

/// Writes how the run ended, what came of it and what it used; for a run under way, the totals so far. Its parent follows.
fn write_run_totals(rendered: &mut String, run_view: &RunView, screen: &Screen) {
    match run_view.run_summary() {
        Some(summary) => {
            write_wrapped(rendered, &describe_ending(summary), screen);
            write_wrapped(rendered, &describe_totals(summary), screen);
        }
        None => write_wrapped(rendered, &describe_totals_so_far(run_view), screen),
    }
    if let Some(parent) = &run_view.parent {
        write_wrapped(rendered, &format!("child run {} of {}", parent.name, parent.run), screen);
    }
}

/// Writes the child runs, who works on what since when, and what became of messages that no agent has got.
fn write_run_details(rendered: &mut String, run_standing: &RunStanding<'_>, run_details: &RunDetails, screen: &Screen) {
    for child_line in &run_details.child_lines {
        let indent = 2 + child_line.len() - child_line.trim_start().len();
        let _ = writeln!(rendered, "{}", screen.wrap_parts(indent, indent + 2, child_line.trim_start()));
    }
    for active_work in &run_details.active_work {
        write_wrapped(rendered, &format!("working: {}", active_work.describe(run_details.now_ms)), screen);
    }
    for message in &run_details.undelivered {
        let message_text = screen.wrap_hanging(2, 4, &describe_undelivered(message, run_standing));
        let _ = writeln!(rendered, "{}", screen.paint(TextStyle::Warning, &message_text));
    }
}

/// Writes which agents are at their usage limit, and until when the run waits for them.
fn write_usage_waits(rendered: &mut String, run_view: &RunView, screen: &Screen) {
    for (agent_name, until_ms) in run_view.limited_agents() {
        let until_utc = Timestamp { wall_ms: until_ms, awake_ms: 0 }.format_utc();
        let wait_text = format!("{agent_name} hit its usage limit; waiting until {until_utc} UTC");
        let wait_text = screen.paint(TextStyle::Warning, &screen.wrap_hanging(2, 4, &wait_text));
        let _ = writeln!(rendered, "{wait_text}");
    }
}

/// Writes the commands that the user may type next.
fn write_next_steps(rendered: &mut String, run_standing: &RunStanding<'_>, screen: &Screen) {
    let suggested_steps = collect_standing_steps(run_standing, &screen.program_name);
    rendered.push_str(&render_next_steps(&suggested_steps, screen));
}

/// The columns of the list of calls.
const CALL_COLUMNS: [TextColumn; 5] = [
    TextColumn::new("CALL"),
    TextColumn::new("AGENT"),
    TextColumn::new("DRIVER"),
    TextColumn { title: "PROMPT", tail_label: "prompt" },
    TextColumn { title: "OUTPUT", tail_label: "output" },
];

/// Renders a table with one row per call of an agent: the prompt and the output. `blob_bytes` returns the length of a stored
/// blob.
pub fn render_calls(
    agent_calls: &[AgentCall<'_>],
    blob_bytes: &dyn Fn(&Hash) -> Option<u64>,
    screen: &Screen,
) -> String {
    let make_row = |agent_call: &AgentCall<'_>| -> Vec<TextCell> {
        vec![
            escape_line(agent_call.effect_key.as_str()).into(),
            clean_line(agent_call.agent_task.agent.as_str()).into(),
            clean_line(&agent_call.driver_name).into(),
            describe_blob(agent_call.prompt_hash(), blob_bytes).into(),
            describe_blob(agent_call.output_hash(), blob_bytes).into(),
        ]
    };
    render_table(&CALL_COLUMNS, &agent_calls.iter().map(make_row).collect::<Vec<_>>(), screen)
}

/// Describes a stored text by its length and its hash.
fn describe_blob(blob_hash: Option<&Hash>, blob_bytes: &dyn Fn(&Hash) -> Option<u64>) -> String {
    match blob_hash.map(|blob_hash| (escape_line(blob_hash.short_hex()), blob_bytes(blob_hash))) {
        None => format!("{:>9}", "-"),
        Some((short_hex, Some(byte_count))) => {
            format!("{:>9} bytes  {short_hex}", phrases::group_thousands(byte_count))
        }
        // The store should have every blob that the journal names; a missing one is shown as such.
        Some((short_hex, None)) => format!("{:>15}  {short_hex}", "missing"),
    }
}

/// The columns of the list of texts that a vendor received.
const SENT_COLUMNS: [TextColumn; 4] = [
    TextColumn::new("CALL"),
    TextColumn::new("AGENT"),
    TextColumn { title: "PROMPT", tail_label: "prompt" },
    TextColumn::new("TOKENS"),
];

/// Renders which text went to which vendor: a paragraph per vendor, with totals. `blob_bytes` returns the length of a blob.
pub fn render_sent_texts(
    agent_calls: &[AgentCall<'_>],
    blob_bytes: &dyn Fn(&Hash) -> Option<u64>,
    screen: &Screen,
) -> String {
    // The tables are indented below their vendors.
    let table_columns = screen.max_columns.map(|columns| columns.saturating_sub(2));
    let table_screen = Screen { max_columns: table_columns, ..screen.clone() };
    let mut rendered = String::new();
    for (vendor_totals, vendor_calls) in group_by_vendor(agent_calls, blob_bytes) {
        let paragraph_gap = if rendered.is_empty() { "" } else { "\n" };
        let vendor_line = match vendor_totals.vendor_name.as_str() {
            // Text played from a script stayed on this machine.
            _ if vendor_totals.is_script => "no vendor: replayed from a script".to_string(),
            "" => "unknown vendor".to_string(),
            vendor_name => match &vendor_totals.endpoint {
                Some(endpoint) => format!("to {} at {}", clean_line(vendor_name), clean_line(endpoint)),
                None => format!("to {}", clean_line(vendor_name)),
            },
        };
        let _ = writeln!(rendered, "{paragraph_gap}{}", screen.paint(TextStyle::Bold, &vendor_line));
        let make_row = |agent_call: &&AgentCall<'_>| -> Vec<TextCell> {
            vec![
                escape_line(agent_call.effect_key.as_str()).into(),
                agent_with_model(agent_call).into(),
                describe_blob(agent_call.prompt_hash(), blob_bytes).into(),
                format!("{} tokens", phrases::group_thousands(agent_call.usage().weighted_tokens())).into(),
            ]
        };
        let calls_table =
            render_table(&SENT_COLUMNS, &vendor_calls.iter().map(make_row).collect::<Vec<_>>(), &table_screen);
        calls_table.lines().for_each(|table_line| rendered.push_str(&format!("  {table_line}\n")));
        let estimate_prefix = if vendor_totals.usage.estimated { "about " } else { "" };
        // The list price is mentioned, but it is not part of what was paid.
        let notional_cost = vendor_totals.usage.cost.filter(|_| vendor_totals.usage.notional).unwrap_or_default();
        let total_cost = phrases::describe_cost(vendor_totals.usage.cost.unwrap_or_default(), notional_cost);
        let cost_text = total_cost.map(|total_cost| format!(", {total_cost}")).unwrap_or_default();
        let totals_text = format!(
            "total: {}, {} bytes, {estimate_prefix}{} tokens{cost_text}",
            phrases::format_count(vendor_totals.prompt_count, "prompt"),
            phrases::group_thousands(vendor_totals.prompt_bytes),
            phrases::group_thousands(vendor_totals.usage.weighted_tokens()),
        );
        write_wrapped(&mut rendered, &totals_text, screen);
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
            let _ = writeln!(rendered, "{decision_name} ({})", clean_line(&decision.owner));
            let _ = writeln!(rendered, "{}", screen.wrap_text(2, &decision.question));
            for choice in &decision.choices {
                // The label starts at the same column in all its lines.
                let label_text = screen.wrap_text(11, &choice.label);
                let _ = writeln!(rendered, "  {:<8} {}", choice.key.as_str(), label_text.trim_start());
            }
        }
    }
    rendered
}
