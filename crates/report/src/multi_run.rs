//! Draws several runs at once: every line starts with the label of its run, and at the end there is one line per run.
//!
//! On a terminal, [`crate::live::MultiLiveReporter`] shows these lines above a region with one row for each run.

use std::io::{self, Write};

use tribunal_engine::{ids::RunId, progress::AgentProgress, reason::RunOutcome};
use tribunal_workflows::runs::types::{JournalEntry, RunSummary};

use crate::{
    DisplayMode, LineReporter, Reporter, kind_table, phrases,
    step_list::{NextStep, render_next_steps},
    style::{Screen, TextStyle},
    terminal_text::{display_width, escape_line, truncate_to_width},
};

/// The maximum width of a label. If a run's id is longer, its unique suffix is kept.
const MAX_LABEL_COLUMNS: usize = 18;
/// The width of an id's unique suffix, with its dash.
const ID_SUFFIX_COLUMNS: usize = 5;
/// A result with less room than this goes to a line of its own.
const MIN_RESULT_COLUMNS: usize = 30;
/// The separator between a label and its line.
const LABEL_SEPARATOR: &str = " │ ";

/// The label before every line of one run.
#[derive(Clone, Debug)]
pub struct RunLabel {
    label_text: String,
    column_count: usize,
    /// The position among the runs, which chooses the colour.
    run_index: usize,
}

impl RunLabel {
    /// Makes labels for runs that have no id yet, from the names that their ids will start with.
    pub fn for_subjects(subject_names: &[String]) -> Vec<RunLabel> {
        // Room for the suffix is reserved now: the column must not move once the ids are known.
        let longest_name = subject_names
            .iter()
            .map(|subject_name| display_width(subject_name) + ID_SUFFIX_COLUMNS)
            .max()
            .unwrap_or_default();
        let make_label = |(run_index, subject_name): (usize, &String)| RunLabel {
            label_text: subject_name.clone(),
            column_count: longest_name.min(MAX_LABEL_COLUMNS),
            run_index,
        };
        subject_names.iter().enumerate().map(make_label).collect()
    }

    /// Labels the run with its id from now on.
    fn set_run(&mut self, run_id: &RunId) {
        self.label_text = run_id.as_str().to_string();
    }

    /// The room that the label leaves. Lines are wrapped before the label is put in front of them.
    fn screen_behind(&self, screen: &Screen) -> Screen {
        let label_columns = self.column_count + display_width(LABEL_SEPARATOR);
        let max_columns = screen.max_columns.map(|screen_columns| screen_columns.saturating_sub(label_columns));
        Screen { max_columns, ..screen.clone() }
    }

    /// The label at its fixed width: `prd-k3f9`, `architecture…-k3f9`.
    fn padded_text(&self) -> String {
        let escaped_name = escape_line(&self.label_text);
        let shortened = match escaped_name.rfind('-') {
            // The suffix is what tells runs of one subject apart, so the part before it is cut.
            Some(dash_offset)
                if display_width(&escaped_name) > self.column_count
                    && display_width(&escaped_name[dash_offset..]) <= ID_SUFFIX_COLUMNS =>
            {
                let (id_head, id_suffix) = escaped_name.split_at(dash_offset);
                truncate_to_width(id_head, self.column_count - display_width(id_suffix)) + id_suffix
            }
            _ => truncate_to_width(&escaped_name, self.column_count),
        };
        let padding = self.column_count.saturating_sub(display_width(&shortened));
        format!("{shortened}{:padding$}", "")
    }
}

/// Reports one of several runs, as labelled lines.
#[derive(Debug)]
pub struct MultiRunReporter<W> {
    line_reporter: LineReporter<Vec<u8>>,
    writer: W,
    screen: Screen,
    run_label: RunLabel,
}

impl<W: Write> MultiRunReporter<W> {
    pub fn new(writer: W, screen: Screen, mode: DisplayMode, run_label: RunLabel) -> MultiRunReporter<W> {
        let line_screen = run_label.screen_behind(&screen);
        MultiRunReporter { line_reporter: LineReporter::new(Vec::new(), line_screen, mode), writer, screen, run_label }
    }

    /// Labels the run with its id from now on.
    pub fn set_run(&mut self, run_id: &RunId) {
        self.run_label.set_run(run_id);
    }

    pub fn set_mode(&mut self, mode: DisplayMode) {
        self.line_reporter.set_mode(mode);
    }

    /// Adapts to a screen of another size.
    pub fn set_screen(&mut self, screen: Screen) {
        self.line_reporter.set_screen(self.run_label.screen_behind(&screen));
        self.screen = screen;
    }

    /// Writes something about the run that is not in its journal.
    pub fn write_notice(&mut self, notice_text: &str) -> io::Result<()> {
        let painted_label =
            self.screen.paint(TextStyle::RunColour(self.run_label.run_index), &self.run_label.padded_text());
        // Blank lines separate paragraphs of one run; between the lines of several runs they would only tear them apart.
        for notice_line in notice_text.lines().filter(|notice_line| !notice_line.is_empty()) {
            writeln!(self.writer, "{painted_label}{LABEL_SEPARATOR}{notice_line}")?;
        }
        self.writer.flush()
    }

    /// Writes a notice whose lines are wrapped to the room behind the label, with their own indents.
    pub fn write_wrapped_notice(&mut self, notice_text: &str) -> io::Result<()> {
        let line_screen = self.run_label.screen_behind(&self.screen);
        let wrap_line = |notice_line: &str| {
            let indent = notice_line.len() - notice_line.trim_start().len();
            line_screen.cut_lines(&line_screen.wrap_hanging(indent, indent + 2, notice_line))
        };
        let wrapped_lines: Vec<String> = notice_text.lines().map(wrap_line).collect();
        self.write_notice(&wrapped_lines.join("\n"))
    }

    /// Writes what the inner reporter drew, with labels. Its error is returned after its output is out.
    fn flush_lines(&mut self, draw_result: io::Result<()>) -> io::Result<()> {
        let drawn_text = self.line_reporter.take_output();
        // Lines that were drawn before an error are still worth showing.
        self.write_notice(&String::from_utf8_lossy(&drawn_text))?;
        draw_result
    }
}

impl MultiRunReporter<Vec<u8>> {
    /// Takes what was drawn since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.writer)
    }
}

impl<W: Write> Reporter for MultiRunReporter<W> {
    fn report_entry(&mut self, journal_entry: &JournalEntry) -> io::Result<()> {
        // Labels carry a provisional name until the first entry tells the id.
        self.set_run(&journal_entry.run);
        let draw_result = self.line_reporter.report_entry(journal_entry);
        self.flush_lines(draw_result)
    }

    fn note_past_entry(&mut self, journal_entry: &JournalEntry) {
        self.set_run(&journal_entry.run);
        self.line_reporter.note_past_entry(journal_entry);
    }

    fn report_progress(&mut self, progress: &AgentProgress) -> io::Result<()> {
        let draw_result = self.line_reporter.report_progress(progress);
        self.flush_lines(draw_result)
    }
}

/// One run of several, and how it ended.
#[derive(Debug)]
pub struct MultiRunRow<'a> {
    pub run_id: Option<&'a RunId>,
    pub subject_name: &'a str,
    pub ending: MultiRunEnding<'a>,
}

/// How one of several runs ended.
#[derive(Debug)]
pub enum MultiRunEnding<'a> {
    Ended(&'a RunSummary),
    /// The run began and broke off without recording an ending.
    BrokeOff(&'a str),
    /// The run never began.
    NotStarted(&'a str),
}

/// Renders one line per run, in the order in which the subjects were named.
pub fn render_run_results(rows: &[MultiRunRow<'_>], screen: &Screen) -> String {
    let format_id = |result_row: &MultiRunRow<'_>| {
        result_row.run_id.map_or_else(|| "-".to_string(), |run_id| escape_line(run_id.as_str()))
    };
    let id_columns = rows.iter().map(|result_row| display_width(&format_id(result_row))).max().unwrap_or_default();
    let mut rendered = format!("{}:\n", phrases::format_count(u32::try_from(rows.len()).unwrap_or(u32::MAX), "run"));
    for result_row in rows {
        let (row_style, outcome_word, details) = match &result_row.ending {
            MultiRunEnding::Ended(summary) => {
                let (row_style, outcome_word) = describe_outcome(summary.outcome);
                (row_style, outcome_word, kind_table::describe_result(&summary.result))
            }
            MultiRunEnding::BrokeOff(reason) => (TextStyle::Failure, "crashed", reason.to_string()),
            MultiRunEnding::NotStarted(reason) => (TextStyle::Warning, "not started", reason.to_string()),
        };
        let shown_id = format_id(result_row);
        let padding = id_columns - display_width(&shown_id);
        let row_head = format!("  {shown_id}{:padding$}  ", "");
        let outcome_cell = format!("{outcome_word:<11}");
        // A reason may start with the name of its subject, which is then not repeated.
        let row_text = if details.starts_with(result_row.subject_name) {
            details
        } else {
            phrases::join_parts([result_row.subject_name, &details])
        };
        let head_columns = display_width(&row_head) + outcome_cell.len() + 2;
        let painted_cell = screen.paint(row_style, &outcome_cell);
        // The text is below the outcome where there is no room for it beside it.
        if screen.fits_line(head_columns + MIN_RESULT_COLUMNS) {
            let row_text = screen.wrap_text(head_columns, &row_text);
            rendered.push_str(&format!("{row_head}{painted_cell}  {}\n", row_text.trim_start()));
        } else {
            let row_text = screen.wrap_text(6, &row_text);
            rendered.push_str(&format!("{row_head}{}\n{row_text}\n", screen.paint(row_style, outcome_word)));
        }
    }
    rendered
}

/// Renders the command that resumes all runs that were stopped; empty if there are not several of them.
pub fn render_stopped_steps(rows: &[MultiRunRow<'_>], screen: &Screen) -> String {
    let is_stopped = |result_row: &&MultiRunRow<'_>| {
        matches!(result_row.ending, MultiRunEnding::Ended(RunSummary { outcome: None, .. }))
    };
    match rows.iter().filter(is_stopped).count() {
        // A single run has this command in its own closing lines.
        0 | 1 => String::new(),
        stopped_count => {
            let resume_step =
                NextStep::new(format!("{} resume", screen.program_name), format!("all {stopped_count} stopped runs"));
            render_next_steps(&[resume_step], screen)
        }
    }
}

/// The word for an outcome, and its style.
pub(crate) fn describe_outcome(outcome: Option<RunOutcome>) -> (TextStyle, &'static str) {
    // A cancelled run ended the way the user asked for.
    match outcome {
        Some(outcome @ (RunOutcome::Resolved | RunOutcome::Cancelled)) => (TextStyle::Success, outcome.as_str()),
        Some(outcome @ RunOutcome::Waiting) => (TextStyle::Warning, outcome.as_str()),
        Some(outcome @ (RunOutcome::Halted | RunOutcome::Failed)) => (TextStyle::Failure, outcome.as_str()),
        None => (TextStyle::Warning, "stopped"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{line_buffer::LineBuffer, style::LineMark, terminal_text::painted_width};

    fn make_labels(subject_names: &[&str]) -> Vec<RunLabel> {
        RunLabel::for_subjects(&subject_names.iter().map(|subject_name| subject_name.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn labels_share_one_width_and_keep_the_unique_id_suffix() {
        let mut both_labels = make_labels(&["prd", "architecture-of-the-whole"]);
        assert_eq!(both_labels[0].padded_text(), "prd               ");
        assert_eq!(both_labels[1].padded_text(), "architecture-of-t…");
        both_labels[0].set_run(&RunId::new("prd-k3f9"));
        both_labels[1].set_run(&RunId::new("architecture-of-the-whol-x2m1"));
        assert_eq!(both_labels[0].padded_text(), "prd-k3f9          ");
        assert_eq!(both_labels[1].padded_text(), "architecture…-x2m1");
        let mut short_labels = make_labels(&["a", "be"]);
        short_labels[0].set_run(&RunId::new("a-k3f9"));
        assert_eq!(short_labels[0].padded_text(), "a-k3f9 ");
    }

    #[test]
    fn every_line_carries_its_run_label_and_none_is_empty() {
        let run_label = make_labels(&["prd", "plan"]).remove(1);
        let screen = Screen { use_colour: true, ..Screen::default() };
        let mut reporter = MultiRunReporter::new(Vec::new(), screen, DisplayMode::default(), run_label);
        reporter.write_notice("one\n\ntwo").unwrap();
        let written_text = String::from_utf8(reporter.writer).unwrap();
        assert_eq!(written_text, "\x1b[35mplan     \x1b[0m │ one\n\x1b[35mplan     \x1b[0m │ two\n");
    }

    #[test]
    fn lines_of_a_run_are_cut_at_the_width_that_the_screen_has_now() {
        let run_label = make_labels(&["story-1-2-sift"]).remove(0);
        let screen =
            |columns| Screen { use_colour: true, max_columns: Some(columns), cuts_lines: true, ..Screen::default() };
        let mut reporter = MultiRunReporter::new(Vec::new(), screen(120), DisplayMode::default(), run_label);
        let long_notice = format!("審査 a notice about {} and more", "a/very/long/path".repeat(9));
        // A window may become narrower, and wider again.
        for columns in [120, 44, 30, 80, 24] {
            reporter.set_screen(screen(columns));
            reporter.write_wrapped_notice(&long_notice).unwrap();
            let mark = LineMark::STARTED;
            let line_buffer_screen = reporter.run_label.screen_behind(&reporter.screen);
            let mut lines = LineBuffer::new(line_buffer_screen);
            lines.write_marked(2, mark, &long_notice);
            lines.write_worker_line(mark, "develop", &long_notice);
            reporter.write_notice(&lines.take_text()).unwrap();
            let written_text = String::from_utf8(reporter.take_output()).unwrap();
            for written_line in written_text.lines() {
                assert!(painted_width(written_line) < columns, "{columns}: {written_line:?}");
            }
            assert!(written_text.contains('…'), "{written_text:?}");
        }
    }

    #[test]
    fn the_result_rows_say_how_each_run_ended() {
        let run_ids = [RunId::new("prd-k3f9")];
        let result_rows = [
            MultiRunRow {
                run_id: Some(&run_ids[0]),
                subject_name: "prd.md",
                ending: MultiRunEnding::BrokeOff("the disk is full"),
            },
            MultiRunRow {
                run_id: None,
                subject_name: "a\u{202e}.md",
                ending: MultiRunEnding::NotStarted("stopped before its turn"),
            },
        ];
        assert_eq!(
            render_run_results(&result_rows, &Screen::default()),
            "2 runs:\n  prd-k3f9  crashed      prd.md · the disk is full\n  \
             -         not started  a.md · stopped before its turn\n"
        );
    }
}
