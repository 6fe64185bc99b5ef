//! Draws the workers of a run: side by side where there is room, otherwise one below the other.

use super::{
    board::ProjectWork,
    frame::FrameLayout,
    row::RowBuilder,
    worker::{LiveWorker, WorkerState},
};
use crate::{
    phrases,
    style::{LineMark, TextStyle},
    terminal_text::display_width,
};

/// A column narrower than this would cut every text.
const MIN_CELL_COLUMNS: usize = 30;
const CELL_GAP: usize = 2;
/// The height of a cell: a head and two lines of text.
const CELL_LINES: usize = 3;

/// Draws all workers in at most `max_lines` lines.
pub(super) fn draw_workers(layout: &FrameLayout<'_>, max_lines: usize, is_wide: bool) -> Vec<String> {
    let workers = layout.board.workers.as_slice();
    if workers.is_empty() {
        return Vec::new();
    }
    // A gap follows every cell but the last, hence the extra gap in the division.
    let cells_per_row = workers.len().min((layout.columns + CELL_GAP) / (MIN_CELL_COLUMNS + CELL_GAP));
    if is_wide && cells_per_row > 0 && workers.len().div_ceil(cells_per_row) * CELL_LINES <= max_lines {
        return workers
            .chunks(cells_per_row)
            .flat_map(|row_workers| draw_cell_row(layout, row_workers, cells_per_row))
            .collect();
    }
    // The last line is kept for the number of workers that are not shown.
    let shown_count = if workers.len() > max_lines { max_lines.saturating_sub(1) } else { workers.len() };
    let mut worker_lines: Vec<String> =
        workers[..shown_count].iter().map(|worker| worker_line(layout, worker)).collect();
    if shown_count < workers.len() && max_lines > 0 {
        let more_text = format!("… and {} more", workers.len() - shown_count);
        worker_lines.push(layout.new_row().append(TextStyle::Dim, &more_text).finish());
    }
    worker_lines
}

/// Draws one row of cells.
fn draw_cell_row(layout: &FrameLayout<'_>, workers: &[LiveWorker], cells_per_row: usize) -> Vec<String> {
    let now_ms = layout.board.awake_ms;
    let cell_columns = (layout.columns + CELL_GAP) / cells_per_row - CELL_GAP;
    let worker_cells: Vec<[CellLine; CELL_LINES]> =
        workers.iter().map(|worker| worker_cell(worker, now_ms, cell_columns)).collect();
    let draw_line = |line_index: usize| {
        let mut row_builder = layout.new_row();
        for (cell_index, cell_lines) in worker_cells.iter().enumerate() {
            let (line_mark, cell_text) = &cell_lines[line_index];
            // Each cell starts at a fixed column, even if the text of the cell before it is shorter.
            row_builder = row_builder.move_to_column(cell_index * (cell_columns + CELL_GAP));
            row_builder =
                append_mark(row_builder, *line_mark).append_within(cell_columns - 2, line_mark.style, cell_text);
        }
        row_builder.finish()
    };
    (0..CELL_LINES).map(draw_line).collect()
}

type CellLine = (LineMark, String);

/// Appends a mark and a blank.
fn append_mark(row_builder: RowBuilder<'_>, line_mark: LineMark) -> RowBuilder<'_> {
    row_builder.append(line_mark.style, line_mark.symbol).append(TextStyle::Plain, " ")
}

/// The lines of one cell: its head, and its text over two lines.
fn worker_cell(worker: &LiveWorker, now_ms: u64, cell_columns: usize) -> [CellLine; CELL_LINES] {
    let line_mark = worker_mark(worker, now_ms);
    let time_text =
        worker.busy_ms(now_ms).map(|busy_ms| format!(" {}", phrases::format_duration(busy_ms))).unwrap_or_default();
    let agent_text = if worker.agent_name.is_empty() { String::new() } else { format!(" · {}", worker.agent_name) };
    let description = describe_worker(worker, now_ms);
    let (first_line, second_line) = split_into_two_lines(&description, cell_columns - 2);
    // The lines below the head are indented like the text behind the mark.
    let unmarked_line = |line_text: &str| (LineMark { style: TextStyle::Plain, symbol: " " }, line_text.to_string());
    [
        (line_mark, format!("{}{agent_text}{time_text}", worker.worker_name)),
        unmarked_line(first_line),
        unmarked_line(second_line),
    ]
}

/// Breaks a text at the last blank that fits. A word longer than the line is not broken here; the row cuts it.
fn split_into_two_lines(whole_text: &str, max_columns: usize) -> (&str, &str) {
    if display_width(whole_text) <= max_columns {
        return (whole_text, "");
    }
    // Prefixes get wider from blank to blank, so the last one that fits is the longest.
    let split_points = whole_text.match_indices(' ').map(|(blank_offset, _)| whole_text.split_at(blank_offset));
    let longest_split = split_points.take_while(|(first_line, _)| display_width(first_line) <= max_columns).last();
    longest_split.map_or((whole_text, ""), |(first_line, second_line)| (first_line, second_line.trim_start()))
}

/// Draws a worker in one line.
fn worker_line(layout: &FrameLayout<'_>, worker: &LiveWorker) -> String {
    let now_ms = layout.board.awake_ms;
    let line_mark = worker_mark(worker, now_ms);
    let time_text = worker.busy_ms(now_ms).map(phrases::format_duration).unwrap_or_default();
    let row_builder = append_mark(layout.new_row(), line_mark);
    let row_builder = append_name(row_builder, line_mark.style, &worker.worker_name, &time_text);
    row_builder.append(TextStyle::Plain, &describe_worker(worker, now_ms)).finish()
}

/// Appends the columns before the text of a worker: its name, and how long it has been working.
fn append_name<'a>(row_builder: RowBuilder<'a>, style: TextStyle, name: &str, time_text: &str) -> RowBuilder<'a> {
    row_builder
        .append_within(13, style, name)
        .move_to_column(16)
        .append(TextStyle::Plain, &format!("{time_text:>7}"))
        .move_to_column(25)
}

/// Draws what the tool itself does in a workspace, in the columns of the workers.
pub(super) fn own_work_line(layout: &FrameLayout<'_>, work: &ProjectWork, now_ms: u64) -> String {
    let time_text = phrases::format_duration(now_ms.saturating_sub(work.started_ms));
    let row_builder = append_mark(layout.new_row(), LineMark::STARTED);
    let row_builder = append_name(row_builder, TextStyle::Bold, "tribunal", &time_text);
    row_builder.append(TextStyle::Plain, &work.description).finish()
}

/// The mark for a worker's state.
fn worker_mark(worker: &LiveWorker, now_ms: u64) -> LineMark {
    match &worker.state {
        WorkerState::Waiting => LineMark { style: TextStyle::Dim, symbol: "○" },
        WorkerState::WaitingForReset | WorkerState::WaitingForCall { .. } => {
            LineMark { style: TextStyle::Warning, symbol: "○" }
        }
        WorkerState::Working { .. } if worker.stalled_ms(now_ms).is_some() => {
            LineMark { style: TextStyle::Warning, symbol: "!" }
        }
        WorkerState::Working { .. } | WorkerState::Landing { .. } | WorkerState::RunningChild { .. } => {
            LineMark::STARTED
        }
        WorkerState::Paused { mark, .. } => *mark,
        WorkerState::Finished { .. } => LineMark::DONE,
        WorkerState::Failed { .. } => LineMark::FAILED,
    }
}

/// Describes what a worker is doing, with a warning if it has not reported anything for long.
fn describe_worker(worker: &LiveWorker, now_ms: u64) -> String {
    let state_text = match &worker.state {
        WorkerState::Waiting => "waiting",
        WorkerState::WaitingForReset => "waiting for its usage limit to reset",
        WorkerState::Working { activity, .. } if activity.is_empty() => "working",
        WorkerState::Working { activity, .. } => activity,
        WorkerState::Landing { .. } => "checking and applying the patch",
        WorkerState::RunningChild { child_id, .. } if child_id.is_empty() => "starting",
        WorkerState::RunningChild { child_id, .. } => child_id,
        WorkerState::WaitingForCall { message }
        | WorkerState::Paused { message, .. }
        | WorkerState::Finished { message }
        | WorkerState::Failed { message } => message,
    };
    let stalled_text = worker
        .stalled_ms(now_ms)
        .map(|stalled_ms| format!("no output for {} · ", phrases::format_duration(stalled_ms)));
    let work_text = if worker.work.is_empty() { String::new() } else { format!("{} · ", worker.work) };
    format!("{}{work_text}{state_text}", stalled_text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_at_the_last_blank_that_fits() {
        assert_eq!(split_into_two_lines("one two", 7), ("one two", ""));
        assert_eq!(split_into_two_lines("one two three", 8), ("one two", "three"));
        assert_eq!(split_into_two_lines("審査 中です", 5), ("審査", "中です"));
        assert_eq!(split_into_two_lines("unbreakable text", 5), ("unbreakable text", ""));
        assert_eq!(split_into_two_lines("", 5), ("", ""));
    }
}
