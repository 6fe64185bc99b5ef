//! Renders a report as a Markdown document that explains itself: a summary, a table of the stories, and a section for each.
//!
//! Titles, reasons and questions come from files and agents; [`crate::markdown_escape`] makes them inert.

use std::fmt::Write;

use super::text::{describe_sessions, describe_totals, list_looking_commands};
use crate::{
    clean_line,
    markdown_escape::{escape_prose, fenced_block, inline_code},
    phrases::{MAX_LISTED_NAMES, abbreviate_count, describe_cost, format_cost, format_count, format_duration},
    report_parts::{
        document::{OtherRunReport, ReportedQuestion, RunReport, StoryReport, describe_change},
        usage::ReportUsage,
    },
    terminal_text::truncate_path,
};

/// The most of a title that is shown. A table with longer ones cannot be read.
const MAX_TITLE_COLUMNS: usize = 120;

pub(super) fn render_document(report: &RunReport) -> String {
    let mut rendered = render_head(report);
    if !report.stories.is_empty() {
        let _ = write!(rendered, "\n{}", render_table(&report.stories));
    }
    if let Some(result) = &report.result {
        let _ = write!(rendered, "\n{}", render_result(result));
    }
    for story in &report.stories {
        let _ = write!(rendered, "\n{}", render_story(story));
    }
    if !report.waiting.is_empty() {
        rendered.push_str("\n## Waiting for you\n");
        for question in &report.waiting {
            let _ = write!(rendered, "\n{}", render_question(question));
        }
    }
    if !report.retrospectives.is_empty() {
        rendered.push_str("\n## Retrospectives\n\n");
        for retrospective in &report.retrospectives {
            let _ = writeln!(rendered, "- {}", escape_prose(retrospective));
        }
    }
    if !report.left_out.is_empty() {
        rendered.push_str("\n## Left out\n\nThese open stories were not begun.\n\n");
        for left_out in &report.left_out {
            let _ = writeln!(rendered, "- {}", escape_prose(&left_out.reason));
        }
    }
    if !report.warnings.is_empty() {
        rendered.push_str("\n## Warnings\n\n");
        for warning in &report.warnings {
            let _ = writeln!(rendered, "- {}", escape_prose(&clean_line(&warning.describe())));
        }
    }
    if !report.next.is_empty() {
        let _ = write!(rendered, "\n## Next\n\n{}", fenced_block(&report.next.join("\n")));
    }
    rendered
}

/// Renders the title, and a paragraph about the run as a whole.
fn render_head(report: &RunReport) -> String {
    let head = &report.head;
    let mut kind_word = head.kind.clone();
    if let Some(first_letter) = kind_word.get_mut(..1) {
        first_letter.make_ascii_uppercase();
    }
    let mut rendered = format!("# {kind_word} report: {}\n\n", escape_prose(&cut_title(&head.title)));
    let _ = write!(rendered, "The run {} is **{}**", code_span(head.run.as_str()), head.state);
    if !head.reason.is_empty() {
        let _ = write!(rendered, ": {}", escape_prose(head.reason.trim_end_matches('.')));
    }
    rendered.push_str(".\n");
    if head.discarded {
        rendered.push_str("You have **discarded** it: it waits for nothing, and cannot be resumed.\n");
    }
    if let Some(totals) = &report.totals {
        let _ = writeln!(rendered, "{}.", describe_totals(totals));
    }
    let _ = writeln!(rendered, "Started {} UTC; it {}.", head.started, describe_usage(&head.usage));
    rendered
}

/// Describes what was used: `took 4:05 and used 31k tokens ($0.31)`.
fn describe_usage(usage: &ReportUsage) -> String {
    let cost_text = describe_cost(usage.cost, usage.notional).map(|cost| format!(" ({cost})")).unwrap_or_default();
    let time_text = format_duration(usage.elapsed_ms);
    format!("took {time_text} and used {} tokens{cost_text}", abbreviate_count(usage.tokens))
}

/// Renders one row per story.
fn render_table(stories: &[StoryReport]) -> String {
    let mut rendered = String::from(
        "| Story | Verdict | Commit | Changes | Checks | Findings | Cost | Time |\n\
         |:--|:--|:--|:--|:--|:--|--:|--:|\n",
    );
    for story in stories {
        let work = &story.work;
        let failed_count = work.checks.iter().filter(|check| !check.passed).count();
        let has_run = story.run.is_some();
        let cells = [
            escape_prose(&story_name(story)),
            story.verdict.as_str().to_string(),
            work.commit.as_ref().map(|commit| code_span(commit.short_hex())).unwrap_or_default(),
            work.change.map(describe_change).unwrap_or_default(),
            match (work.checks.len(), failed_count) {
                (0, _) => String::new(),
                (check_count, 0) => format!("{check_count} passed"),
                (check_count, _) => format!("{failed_count} of {check_count} failed"),
            },
            story.findings.describe_cell(),
            if has_run && !story.usage.cost.is_zero() { format_cost(story.usage.cost) } else { String::new() },
            if has_run { format_duration(story.usage.elapsed_ms) } else { String::new() },
        ];
        let _ = writeln!(rendered, "| {} |", cells.join(" | "));
    }
    rendered
}

/// Names a story by its key and its title.
fn story_name(story: &StoryReport) -> String {
    let key = cut_title(&story.story);
    match story.title.as_str() {
        "" => key,
        title => format!("{key}: {}", cut_title(title)),
    }
}

/// Cuts a title, which comes from a file and can be of any length. The title of a review is a path, whose end tells most.
fn cut_title(title: &str) -> String {
    truncate_path(&clean_line(title), MAX_TITLE_COLUMNS)
}

/// Renders the section of one story.
fn render_story(story: &StoryReport) -> String {
    let work = &story.work;
    let mut rendered =
        format!("## {}\n\n{}.\n", escape_prose(&story_name(story)), escape_prose(story.sentence.trim_end_matches('.')));
    let mut facts: Vec<String> =
        story.look_at.iter().map(|remark| format!("**Look at:** {}", escape_prose(remark))).collect();
    if let (Some(commit), Some(branch)) = (&work.commit, &work.branch) {
        let change_text = work.change.map(|change| format!(": {}", describe_change(change))).unwrap_or_default();
        let commit = code_span(commit.short_hex());
        facts.push(format!("Commit: {commit} on {}{change_text}", code_span(branch)));
    }
    if let Some(confirmation) = &work.confirmation {
        facts.push(format!("Confirmed in {}", code_span(confirmation.short_hex())));
    }
    if let Some(kept) = &work.kept {
        facts.push(format!("Not landed; the work is kept as commit {}", code_span(kept.short_hex())));
    }
    let sessions_text = describe_sessions(story);
    if !sessions_text.is_empty() {
        facts.push(format!("Work of agents: {sessions_text}"));
    }
    for check in &work.checks {
        facts.push(format!("Check {}: {}", code_span(&check.name), check.result));
    }
    // The remark about them names only the first ones.
    if work.delicate.changed_controls.len() > MAX_LISTED_NAMES {
        let paths: Vec<String> = work.delicate.changed_controls.iter().map(|path| code_span(path)).collect();
        facts.push(format!("Changed files that decide what checks, hooks or pipelines run: {}", paths.join(", ")));
    }
    let findings_text = story.findings.describe();
    if !findings_text.is_empty() {
        facts.push(format!("Review: {findings_text}"));
    }
    if story.findings.follow_ups > 0 {
        facts.push(format!("{} in the story's file", format_count(story.findings.follow_ups, "follow-up")));
    }
    if story.run.is_some() {
        facts.push(format!("It {}", describe_usage(&story.usage)));
    }
    if !facts.is_empty() {
        let _ = write!(rendered, "\n- {}\n", facts.join("\n- "));
    }
    rendered + &render_commands(&list_looking_commands(story))
}

/// Renders commands to copy; empty if there are none.
fn render_commands(commands: &[String]) -> String {
    match commands {
        [] => String::new(),
        commands => format!("\nTo look closer:\n\n{}", fenced_block(&commands.join("\n"))),
    }
}

/// Renders what came of a run that is neither a sprint nor a story.
fn render_result(result: &OtherRunReport) -> String {
    let mut facts = vec![format!("Result: {}", escape_prose(&result.summary))];
    if let Some(commit) = &result.commit {
        let branch_text = result.branch.as_ref().map(|branch| format!(" on {}", code_span(branch)));
        facts.push(format!("Last commit: {}{}", code_span(commit.short_hex()), branch_text.unwrap_or_default()));
    }
    facts.extend(result.look_at.iter().map(|remark| format!("**Look at:** {}", escape_prose(remark))));
    format!("- {}\n{}", facts.join("\n- "), render_commands(&result.look_closer))
}

/// Renders a question with its answers.
fn render_question(question: &ReportedQuestion) -> String {
    let story_text = match question.story.as_str() {
        "" => String::new(),
        story => format!(" about {}", escape_prose(story)),
    };
    let mut rendered =
        format!("### {}{story_text}\n\n{}\n\n", code_span(&question.id), escape_prose(&question.question));
    let _ = writeln!(rendered, "Answer with {}, where `ANSWER` is one of:\n", code_span(&question.command));
    for choice in &question.choices {
        let _ = writeln!(rendered, "- {}: {}", code_span(choice.key.as_str()), escape_prose(&choice.label));
    }
    rendered
}

/// Shows a name as code. Backticks are easier to read than an element, and safe around plain names.
fn code_span(name: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./ ".contains(character);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => format!("`{name}`"),
        false => inline_code(name),
    }
}
