//! Draws the board of several runs: a table with one row for each run, and a total below it.
//!
//! The columns depend only on the width of the screen, so that nothing moves while the figures change. If there are more
//! runs than lines, those that work are shown first, and the others are counted.

use tribunal_engine::reason::RunOutcome;

use super::{
    board::LiveBoard,
    figure_columns::{FigureColumn, TableColumns},
    frame::join_words,
    multi_board::{MultiRunBoard, RunRowEnding, RunRowState, RunTableRow},
    row::{RowBuilder, first_fitting},
};
use crate::{
    DisplayMode,
    kind_reporter::{ItemCounts, StageDescription},
    multi_run::describe_outcome,
    phrases,
    style::{LineMark, Screen, TextStyle},
    terminal_text::{display_width, truncate_to_width},
};

/// Below this width there is only one line for everything.
const MIN_COLUMNS: usize = 40;
/// Below this height there is only one line for everything, too.
const MIN_LINES: usize = 3;
/// The mark in front of a row, with its blank.
const MARK_COLUMNS: usize = 2;
/// A name never takes more than this, so that the figures stay close to it.
const MAX_NAME_COLUMNS: usize = 36;

impl MultiRunBoard {
    /// Draws the live region. No line is wider than the screen, and there are at most `max_lines` of them.
    pub fn draw_frame(&self, screen: &Screen, max_lines: usize) -> Vec<String> {
        let screen_columns = screen.max_columns.unwrap_or(80);
        // The last column stays free: a terminal that has filled it is about to wrap.
        let columns = screen_columns.saturating_sub(1);
        let layout = MultiLayout { board: self, screen, columns, table_columns: TableColumns::for_width(columns) };
        if max_lines == 0 {
            Vec::new()
        } else if screen_columns < MIN_COLUMNS || max_lines < MIN_LINES || self.controls.mode == DisplayMode::Silent {
            vec![layout.status_line()]
        } else {
            layout.draw_table(max_lines)
        }
    }

    /// Returns whether any run has a cost that was really paid.
    fn has_cost(&self) -> bool {
        self.total_figures().paid_cost.0 > 0
    }
}

/// A board and the room to draw it in.
struct MultiLayout<'a> {
    board: &'a MultiRunBoard,
    screen: &'a Screen,
    /// The number of columns that may be used.
    columns: usize,
    table_columns: &'a TableColumns,
}

impl MultiLayout<'_> {
    fn new_row(&self) -> RowBuilder<'_> {
        RowBuilder::new(self.screen, self.columns)
    }

    fn styled_line(&self, style: TextStyle, line_text: &str) -> String {
        self.new_row().append(style, line_text).finish()
    }

    /// Draws the rows and the total, and of the other parts what fits.
    fn draw_table(&self, max_lines: usize) -> Vec<String> {
        let row_count = self.board.rows.len();
        // Up to half of the lines are kept for rows; other parts get what is left, in this order.
        let mut spare_lines = max_lines.saturating_sub(1 + row_count.min(max_lines.div_ceil(2)));
        let mut take_part = |part_lines: Vec<String>| {
            if part_lines.len() > spare_lines {
                return Vec::new();
            }
            spare_lines -= part_lines.len();
            part_lines
        };
        let title_lines = take_part(vec![self.title_line()]);
        let heading_lines = take_part(vec![self.heading_line()]);
        let footer_lines = take_part(vec![self.footer_line()]);
        let help_lines = if self.board.controls.shows_help { take_part(self.help_lines()) } else { Vec::new() };
        let other_count = title_lines.len() + heading_lines.len() + footer_lines.len() + help_lines.len();
        let row_lines = self.row_lines(max_lines.saturating_sub(1 + other_count));
        [title_lines, heading_lines, row_lines, vec![self.total_line()], footer_lines, help_lines].concat()
    }

    fn title_line(&self) -> String {
        let run_count = phrases::format_count(count_to_u32(self.board.rows.len()), "run");
        let title_text = format!("{run_count} · {}", self.board.controls.mode);
        // The line separates the region from the log, even without colour.
        self.new_row()
            .append(TextStyle::Dim, "── ")
            .append(TextStyle::Bold, &title_text)
            .fill_with_rule(TextStyle::Dim)
            .finish()
    }

    /// The room for names: what the other columns leave, but not more than the longest name needs.
    fn name_columns(&self) -> usize {
        let TableColumns { stage_columns, figures, gap } = self.table_columns;
        let figure_columns: usize = figures.iter().map(|figure| gap + figure.column_count()).sum();
        let columns_left = self.columns.saturating_sub(MARK_COLUMNS + gap + stage_columns + figure_columns);
        let longest_name = self.board.rows.iter().map(|row| display_width(&row.subject_title)).max();
        // The word `total` is in this column, too.
        longest_name.unwrap_or_default().max(5).min(columns_left).min(MAX_NAME_COLUMNS)
    }

    /// The column at which a figure begins.
    fn figures_start(&self) -> usize {
        MARK_COLUMNS + self.name_columns() + self.table_columns.gap + self.table_columns.stage_columns
    }

    /// Appends the cells of all figures, right-aligned.
    fn append_figures<'b>(
        &self,
        row_builder: RowBuilder<'b>,
        style: TextStyle,
        figure_text: impl Fn(FigureColumn) -> String,
    ) -> RowBuilder<'b> {
        let mut row_builder = row_builder.move_to_column(self.figures_start());
        for figure_column in self.table_columns.figures {
            let cell_columns = self.table_columns.gap + figure_column.column_count();
            row_builder = row_builder.append(style, &format!("{:>cell_columns$}", figure_text(*figure_column)));
        }
        row_builder
    }

    fn heading_line(&self) -> String {
        let has_cost = self.board.has_cost();
        self.append_figures(self.new_row(), TextStyle::Dim, |figure_column| figure_column.heading(has_cost).to_string())
            .finish()
    }

    /// Draws the rows in at most `max_lines` lines. Their order is that of the command line, whichever of them are shown.
    fn row_lines(&self, max_lines: usize) -> Vec<String> {
        let rows = &self.board.rows;
        if rows.len() <= max_lines {
            return rows.iter().map(|row| self.row_line(row)).collect();
        }
        // The last line is kept for the number of runs that are not shown.
        let mut shown_indices: Vec<usize> = (0..rows.len()).collect();
        shown_indices.sort_by_key(|row_index| match rows[*row_index].state {
            RunRowState::Working => 0,
            RunRowState::Queued => 1,
            RunRowState::Ended(_) => 2,
        });
        shown_indices.truncate(max_lines.saturating_sub(1));
        shown_indices.sort_unstable();
        let mut row_lines: Vec<String> =
            shown_indices.iter().map(|row_index| self.row_line(&rows[*row_index])).collect();
        if max_lines > 0 {
            let more_text = format!("… and {} more", rows.len() - shown_indices.len());
            row_lines.push(self.new_row().append(TextStyle::Plain, "  ").append(TextStyle::Dim, &more_text).finish());
        }
        row_lines
    }

    fn row_line(&self, row: &RunTableRow) -> String {
        let LineMark { style, symbol } = row_mark(row);
        let name_columns = self.name_columns();
        let name_style = if row.state == RunRowState::Queued { TextStyle::Dim } else { TextStyle::Plain };
        let stage_text = first_fitting(self.table_columns.stage_columns, describe_stage(row));
        let row_builder = self
            .new_row()
            .append(style, symbol)
            .move_to_column(MARK_COLUMNS)
            .append(name_style, &shorten_path(&row.subject_title, name_columns))
            .move_to_column(MARK_COLUMNS + name_columns + self.table_columns.gap)
            .append_within(self.table_columns.stage_columns, stage_style(row), &stage_text);
        let has_cost = self.board.has_cost();
        match row.to_figures() {
            Some(figures) => self
                .append_figures(row_builder, TextStyle::Plain, |figure_column| {
                    figure_column.format_figure(&figures, has_cost)
                })
                .finish(),
            None => row_builder.finish(),
        }
    }

    fn total_line(&self) -> String {
        let (figures, has_cost) = (self.board.total_figures(), self.board.has_cost());
        let name_columns = self.name_columns();
        let states_text = first_fitting(self.table_columns.stage_columns, self.describe_states());
        let row_builder = self
            .new_row()
            .move_to_column(MARK_COLUMNS)
            .append_within(name_columns, TextStyle::Bold, "total")
            .move_to_column(MARK_COLUMNS + name_columns + self.table_columns.gap)
            .append_within(self.table_columns.stage_columns, TextStyle::Bold, &states_text);
        self.append_figures(row_builder, TextStyle::Bold, |figure_column| {
            figure_column.format_figure(&figures, has_cost)
        })
        .finish()
    }

    /// Describes how many runs are in which state, from the fullest form to the shortest.
    fn describe_states(&self) -> Vec<String> {
        let working_count = self.board.count_rows(|state| state == RunRowState::Working);
        let queued_count = self.board.count_rows(|state| state == RunRowState::Queued);
        let ended_count = self.board.count_rows(|state| matches!(state, RunRowState::Ended(_)));
        let state_parts: Vec<String> = [(working_count, "working"), (queued_count, "queued"), (ended_count, "ended")]
            .iter()
            .filter(|(state_count, _)| *state_count > 0)
            .map(|(state_count, state_word)| format!("{state_count} {state_word}"))
            .collect();
        vec![state_parts.join(", "), format!("{ended_count} of {} ended", self.board.rows.len())]
    }

    fn footer_line(&self) -> String {
        let controls = &self.board.controls;
        let line_forms = if controls.is_stopping {
            ["stopping all runs after their current tasks; press Ctrl-C to stop now", "stopping; Ctrl-C to stop now"]
        } else if controls.reads_keys {
            ["1-4 or v: detail level · s: stop all · ?: help", "1-4: detail · s: stop · ?: help"]
        } else {
            ["Ctrl-C: stop all runs after their current tasks", "Ctrl-C: stop"]
        };
        self.styled_line(TextStyle::Dim, &first_fitting(self.columns, line_forms.map(String::from)))
    }

    fn help_lines(&self) -> Vec<String> {
        let mode_names =
            DisplayMode::ALL.iter().enumerate().map(|(mode_index, mode)| format!("{} {mode}", mode_index + 1));
        let modes_text = mode_names.collect::<Vec<_>>().join(" · ");
        [
            format!("{modes_text} · v: next level"),
            "s: stop all runs after their current tasks, resume later · Ctrl-C twice: stop now".to_string(),
            "▸ working ○ queued ✓ resolved ? waiting for you ✗ not resolved ! no output for a minute".to_string(),
        ]
        .iter()
        .map(|help_text| self.styled_line(TextStyle::Dim, help_text))
        .collect()
    }

    /// Draws everything in one line, for tiny screens and for the silent mode.
    fn status_line(&self) -> String {
        let (figures, run_count) = (self.board.total_figures(), self.board.rows.len());
        let ended_count = self.board.count_rows(|state| matches!(state, RunRowState::Ended(_)));
        let ItemCounts { open: open_count, fixed: fixed_count, .. } = figures.items.unwrap_or_default();
        let is_stalled = self.board.rows.iter().any(RunTableRow::is_stalled);
        let (mark_text, mark_style) = if is_stalled { ("! ", TextStyle::Warning) } else { ("▸ ", TextStyle::Bold) };
        let ended_text = match self.board.controls.is_stopping {
            true => format!("stopping, {ended_count} of {run_count} ended"),
            false => format!("{ended_count} of {run_count} ended"),
        };
        let time_text = phrases::format_duration(figures.elapsed_ms);
        let usage_text = phrases::describe_usage(figures.tokens, figures.paid_cost, Default::default());
        let usage_text = if usage_text.is_empty() { usage_text } else { format!(" · {usage_text}") };
        let status_text = first_fitting(
            self.columns.saturating_sub(MARK_COLUMNS),
            [
                format!("runs: {ended_text} · {open_count} open, {fixed_count} fixed{usage_text} · {time_text}"),
                format!("{ended_text} · {open_count} open, {fixed_count} fixed · {time_text}"),
                format!("{ended_text} · {open_count} open"),
                ended_text,
            ],
        );
        self.new_row().append(mark_style, mark_text).append(TextStyle::Plain, &status_text).finish()
    }
}

/// The mark for the state of a run.
fn row_mark(row: &RunTableRow) -> LineMark {
    match (row.state, row.recorded_outcome()) {
        (RunRowState::Queued, _) => LineMark { style: TextStyle::Dim, symbol: "○" },
        (RunRowState::Working, _) if row.is_stalled() => LineMark { style: TextStyle::Warning, symbol: "!" },
        (RunRowState::Working, _) => LineMark { style: TextStyle::Bold, symbol: "▸" },
        (RunRowState::Ended(RunRowEnding::Recorded), Some(Some(RunOutcome::Resolved | RunOutcome::Cancelled))) => {
            LineMark::DONE
        }
        (RunRowState::Ended(RunRowEnding::Recorded), Some(Some(RunOutcome::Waiting))) => {
            LineMark { style: TextStyle::Warning, symbol: "?" }
        }
        // An interrupted run is neither good nor bad.
        (RunRowState::Ended(RunRowEnding::Recorded), Some(None)) => {
            LineMark { style: TextStyle::Warning, symbol: "–" }
        }
        (RunRowState::Ended(RunRowEnding::NotStarted), _) => LineMark { style: TextStyle::Warning, symbol: "–" },
        (RunRowState::Ended(_), _) => LineMark::FAILED,
    }
}

fn stage_style(row: &RunTableRow) -> TextStyle {
    match (row.state, row.recorded_outcome()) {
        (RunRowState::Queued, _) => TextStyle::Dim,
        (RunRowState::Ended(RunRowEnding::Recorded), Some(outcome)) => describe_outcome(outcome).0,
        (RunRowState::Ended(RunRowEnding::BrokeOff), _) => TextStyle::Failure,
        (RunRowState::Ended(_), _) => TextStyle::Warning,
        (RunRowState::Working, _) => TextStyle::Plain,
    }
}

/// Describes what a run is doing or how it ended, from the fullest form to the shortest.
fn describe_stage(row: &RunTableRow) -> Vec<String> {
    match (row.state, row.recorded_outcome()) {
        (RunRowState::Queued, _) => vec!["queued".to_string()],
        (RunRowState::Ended(RunRowEnding::BrokeOff), _) => vec!["crashed".to_string()],
        (RunRowState::Ended(RunRowEnding::NotStarted), _) => vec!["not started".to_string()],
        (RunRowState::Ended(RunRowEnding::Recorded), recorded_outcome) => {
            let (_, outcome_word) = describe_outcome(recorded_outcome.flatten());
            match (recorded_outcome, row.board.run_view.open_decisions().count()) {
                (Some(Some(RunOutcome::Waiting)), 0) => vec!["waiting for you".to_string()],
                (Some(Some(RunOutcome::Waiting)), question_count) => {
                    let questions_text = phrases::format_count(count_to_u32(question_count), "question");
                    vec![format!("waiting for you: {questions_text}"), "waiting for you".to_string()]
                }
                _ => vec![outcome_word.to_string()],
            }
        }
        (RunRowState::Working, _) => describe_work(row),
    }
}

/// Describes what a run that works is doing.
fn describe_work(row: &RunTableRow) -> Vec<String> {
    let LiveBoard { workers, run_live, run_view, .. } = &row.board;
    let Some(stage) = run_live.describe_stage(workers) else { return vec!["starting".to_string()] };
    let StageDescription { has_begun, word, text, place, short_place } = stage;
    if !has_begun {
        return vec![word.to_string()];
    }
    if run_view.limited_agents().next().is_some() && workers.count_working() == 0 {
        return vec![
            join_words(&place, "waiting for a usage limit"),
            "waiting for a usage limit".to_string(),
            "usage limit, waiting".to_string(),
            "waiting for limit".to_string(),
        ];
    }
    let agents_text = phrases::format_count(count_to_u32(workers.count_working()), "agent");
    vec![
        format!("{}, {agents_text}", join_words(&place, &text)),
        join_words(&short_place, &text),
        join_words(&short_place, word),
        word.to_string(),
    ]
}

/// Shortens a path from its front, because names of files differ more than those of their directories.
fn shorten_path(path_text: &str, max_columns: usize) -> String {
    if display_width(path_text) <= max_columns {
        return path_text.to_string();
    }
    let path_tails = path_text.match_indices('/').map(|(slash_offset, _)| format!("…{}", &path_text[slash_offset..]));
    let file_name = path_text.rsplit('/').next().unwrap_or(path_text);
    let shortened = first_fitting(max_columns, path_tails.chain([file_name.to_string()]));
    truncate_to_width(&shortened, max_columns)
}

fn count_to_u32(item_count: usize) -> u32 {
    u32::try_from(item_count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_loses_its_directories_before_its_name() {
        assert_eq!(shorten_path("docs/prd.md", 11), "docs/prd.md");
        assert_eq!(shorten_path("docs/guide/prd.md", 14), "…/guide/prd.md");
        assert_eq!(shorten_path("docs/guide/prd.md", 10), "…/prd.md");
        assert_eq!(shorten_path("docs/guide/prd.md", 6), "prd.md");
        assert_eq!(shorten_path("docs/guide/prd.md", 5), "prd.…");
        assert_eq!(shorten_path("change main..HEAD", 10), "change…");
    }
}
