//! Draws a report for a terminal: a block for each story, then what is left out, what waits, and what to type next.
//!
//! Titles and lists of keys come from files and can be of any length; they are cut.

use crate::{
    clean_line, escape_line,
    line_buffer::LineBuffer,
    phrases::{format_count, join_parts},
    report_parts::{
        document::{ReportedQuestion, RunReport, SprintTotals, StoryReport, describe_change},
        verdict::ReportVerdict,
    },
    step_list::{NextStep, render_commands, render_next_steps},
    style::{LineMark, Screen, TextStyle},
    terminal_text::{truncate_path, truncate_to_width},
};

/// The column at which the commands of a story begin.
const COMMAND_INDENT: usize = 4;
/// A longer title says no more.
const MAX_TITLE_COLUMNS: usize = 100;
/// The most of a key that is shown in the line of a story; commands have all of it.
const MAX_KEY_COLUMNS: usize = 60;
/// Reasons and remarks may contain lists of keys.
const MAX_REASON_COLUMNS: usize = 300;
/// The most stories that are listed as left out.
const MAX_LEFT_OUT: usize = 20;

pub(super) fn render_text(report: &RunReport, screen: &Screen) -> String {
    let mut lines = LineBuffer::new(screen.clone());
    write_head(report, &mut lines);
    for story in &report.stories {
        lines.write_gap();
        write_story(story, &mut lines);
    }
    if let Some(result) = &report.result {
        lines.write_wrapped(2, TextStyle::Plain, &result.summary);
        if let (Some(commit), Some(branch)) = (&result.commit, &result.branch) {
            lines.write_wrapped(2, TextStyle::Plain, &format!("merged on {branch} as {}", commit.short_hex()));
        }
        for remark in &result.look_at {
            lines.write_wrapped(2, TextStyle::Warning, &format!("look at: {remark}"));
        }
        write_commands(&result.look_closer, &mut lines);
    }
    if !report.retrospectives.is_empty() {
        lines.write_gap();
    }
    for retrospective in &report.retrospectives {
        lines.write_wrapped(0, TextStyle::Plain, &format!("retrospective: {retrospective}"));
    }
    if !report.left_out.is_empty() {
        lines.write_gap();
        lines.write_wrapped(0, TextStyle::Bold, "left out");
        for left_out in report.left_out.iter().take(MAX_LEFT_OUT) {
            lines.write_wrapped(2, TextStyle::Plain, &cut_text(&left_out.reason, MAX_REASON_COLUMNS));
        }
        let hidden_count = report.left_out.len().saturating_sub(MAX_LEFT_OUT);
        if hidden_count > 0 {
            lines.write_wrapped(2, TextStyle::Dim, &format!("… {hidden_count} more"));
        }
    }
    if !report.waiting.is_empty() {
        lines.write_gap();
        lines.write_wrapped(0, TextStyle::Bold, "waiting for you");
        report.waiting.iter().for_each(|question| write_question(question, &mut lines));
    }
    if !report.warnings.is_empty() {
        lines.write_gap();
        lines.write_wrapped(0, TextStyle::Bold, "warnings");
        for warning in &report.warnings {
            lines.write_wrapped(2, TextStyle::Plain, &cut_text(&warning.describe(), MAX_REASON_COLUMNS));
        }
    }
    if !report.next_steps.is_empty() {
        lines.write_gap();
        let next_steps = render_next_steps(&report.next_steps, screen);
        lines.write_block(&next_steps);
    }
    lines.take_text()
}

fn write_head(report: &RunReport, lines: &mut LineBuffer) {
    let head = &report.head;
    let discarded_text = if head.discarded { ", discarded" } else { "" };
    // The title of a review is a path, whose end tells most.
    let title = truncate_path(&clean_line(&head.title), MAX_TITLE_COLUMNS);
    let run_text = format!("{} {}{discarded_text}", escape_line(head.run.as_str()), head.state);
    lines.write_wrapped(0, TextStyle::Bold, &format!("{run_text} · {} of {title}", head.kind));
    if !head.reason.is_empty() {
        lines.write_wrapped(2, TextStyle::Plain, &cut_text(&head.reason, MAX_REASON_COLUMNS));
    }
    if head.discarded {
        lines.write_wrapped(
            2,
            TextStyle::Warning,
            "you discarded this run: it waits for nothing, and cannot be resumed",
        );
    }
    let totals_text = report.totals.as_ref().map(describe_totals).unwrap_or_default();
    // The format is `2026-11-15 03:57:18`; seconds do not matter here.
    let started_text = format!("started {} UTC", head.started.get(..16).unwrap_or(&head.started));
    let figures = join_parts([totals_text.as_str(), &head.usage.describe(), &started_text]);
    lines.write_wrapped(2, TextStyle::Plain, &figures);
}

/// Describes what became of the stories of a sprint: `2 stories done, 1 waiting, 1 left out · 9 files, +120 -8`.
pub(super) fn describe_totals(totals: &SprintTotals) -> String {
    let mut counts = vec![format!("{} done", format_count(totals.done, "story"))];
    for (count, word) in [(totals.waiting, "waiting"), (totals.other, "not done"), (totals.left_out, "left out")] {
        if count > 0 {
            counts.push(format!("{count} {word}"));
        }
    }
    let change_text = if totals.change.files > 0 { describe_change(totals.change) } else { String::new() };
    join_parts([counts.join(", ").as_str(), &change_text])
}

/// Writes a story: the verdict with what speaks for it, what speaks against it, then the figures and commands.
fn write_story(story: &StoryReport, lines: &mut LineBuffer) {
    let key = truncate_to_width(&escape_line(&story.story), MAX_KEY_COLUMNS);
    let title_line = format!("{key} {}", cut_text(&story.title, MAX_TITLE_COLUMNS));
    lines.write_marked(0, find_mark(story.verdict), title_line.trim_end());
    lines.write_wrapped(2, TextStyle::Plain, &cut_text(&story.sentence, MAX_REASON_COLUMNS));
    for remark in &story.look_at {
        lines.write_wrapped(2, TextStyle::Warning, &format!("look at: {remark}"));
    }
    let figures = describe_figures(story);
    if !figures.is_empty() {
        lines.write_wrapped(2, TextStyle::Dim, &figures);
    }
    write_commands(&list_looking_commands(story), lines);
}

/// Lists the commands that look closer. Those that answer a question are with the question.
pub(super) fn list_looking_commands(story: &StoryReport) -> Vec<String> {
    let is_answer = |command: &str| story.questions.iter().any(|question| question.command == command);
    story.look_closer.iter().filter(|command| !is_answer(command.as_str())).cloned().collect()
}

/// Cuts text of files and agents to a line of at most this width.
fn cut_text(text: &str, max_columns: usize) -> String {
    truncate_to_width(&clean_line(text), max_columns)
}

/// Describes the figures of a story: `4 files, +120 -8 · 3 sessions, 2 not completed · 31k tokens · $0.31 · 4:05`.
fn describe_figures(story: &StoryReport) -> String {
    let work = &story.work;
    let change_text = work.change.map(describe_change).unwrap_or_default();
    let kept_text = work.kept.as_ref().map(|kept| format!("work kept as {}", kept.short_hex())).unwrap_or_default();
    // The sentence about work that has landed says what became of its checks and findings.
    let (checks_text, findings_text) = match story.verdict.has_landed() {
        true => (String::new(), String::new()),
        false => (work.describe_checks().unwrap_or_default(), story.findings.describe()),
    };
    let usage_text = if story.run.is_some() { story.usage.describe() } else { String::new() };
    let sessions_text = describe_sessions(story);
    join_parts([change_text.as_str(), &kept_text, &sessions_text, &checks_text, &findings_text, &usage_text])
}

/// Describes the sessions: `3 sessions, 2 not completed`; empty if there were none.
pub(super) fn describe_sessions(story: &StoryReport) -> String {
    match (story.work.sessions, story.work.refused) {
        (0, _) => String::new(),
        (sessions, 0) => format_count(sessions, "session"),
        (sessions, refused) => format!("{}, {refused} not completed", format_count(sessions, "session")),
    }
}

fn find_mark(verdict: ReportVerdict) -> LineMark {
    match verdict {
        ReportVerdict::Merged | ReportVerdict::DoneOutside => LineMark::DONE,
        ReportVerdict::Waiting | ReportVerdict::OnOwnBranch => LineMark::QUESTION,
        ReportVerdict::Skipped | ReportVerdict::NotStarted | ReportVerdict::Stopped => LineMark::PAUSED,
        ReportVerdict::Running => LineMark::STARTED,
        ReportVerdict::Failed => LineMark::FAILED,
    }
}

/// Writes commands one below the other. They are escaped and not wrapped, because the user copies them.
fn write_commands(commands: &[String], lines: &mut LineBuffer) {
    let steps: Vec<NextStep> = commands.iter().map(|command| NextStep::new(command.clone(), "")).collect();
    for command_line in render_commands(&steps, COMMAND_INDENT, &lines.screen) {
        lines.write_line(0, &command_line);
    }
}

fn write_question(question: &ReportedQuestion, lines: &mut LineBuffer) {
    let story_text = if question.story.is_empty() { String::new() } else { format!(" ({})", question.story) };
    let question_line = format!("{}{story_text}: {}", escape_line(&question.id), question.question);
    lines.write_marked(2, LineMark::QUESTION, &question_line);
    for choice in &question.choices {
        lines.write_wrapped(COMMAND_INDENT, TextStyle::Plain, &format!("{}: {}", choice.key, choice.label));
    }
    // The command is escaped and not wrapped, because the user copies it.
    lines.write_line(COMMAND_INDENT, &format!("answer: {}", escape_line(&question.command)));
}
