//! Draws seats, challengers and fixers: side by side where there is room, otherwise one below the other.

use super::{
    frame::Frame,
    row::Row,
    worker::{State, Worker},
};
use crate::{
    columns::width,
    style::{Sign, Style},
    words,
};

/// A column narrower than this would cut every text.
const CELL: usize = 30;
const GAP: usize = 2;
/// The height of a cell: a head and two lines of text.
const CELL_LINES: usize = 3;

/// Draws all workers in at most `max_lines` lines.
pub(super) fn draw(frame: &Frame<'_>, height: usize, wide: bool) -> Vec<String> {
    let workers = frame.board.workers.as_slice();
    if workers.is_empty() {
        return Vec::new();
    }
    // A gap follows every cell but the last, hence the extra gap in the division.
    let across = workers.len().min((frame.room + GAP) / (CELL + GAP));
    if wide && across > 0 && workers.len().div_ceil(across) * CELL_LINES <= height {
        return workers.chunks(across).flat_map(|side| side_by_side(frame, side, across)).collect();
    }
    // The last line is kept for the number of workers that are not shown.
    let shown = if workers.len() > height { height.saturating_sub(1) } else { workers.len() };
    let mut lines: Vec<String> = workers[..shown].iter().map(|worker| one_line(frame, worker)).collect();
    if shown < workers.len() && height > 0 {
        let more = format!("… and {} more", workers.len() - shown);
        lines.push(frame.row().put(Style::Dim, &more).done());
    }
    lines
}

/// Draws one row of cells.
fn side_by_side(frame: &Frame<'_>, workers: &[Worker], across: usize) -> Vec<String> {
    let now = frame.board.now;
    let cell = (frame.room + GAP) / across - GAP;
    let cells: Vec<[Piece; CELL_LINES]> = workers.iter().map(|worker| look(worker, now, cell)).collect();
    let line = |at: usize| {
        let mut row = frame.row();
        for (column, cell_lines) in cells.iter().enumerate() {
            let (sign, text) = &cell_lines[at];
            // Each cell starts at a fixed column, even if the text of the cell before it is shorter.
            row = row.at(column * (cell + GAP));
            row = put_sign(row, *sign).put_within(cell - 2, sign.style, text);
        }
        row.done()
    };
    (0..CELL_LINES).map(line).collect()
}

type Piece = (Sign, String);

/// Appends a mark and a blank.
fn put_sign(row: Row<'_>, sign: Sign) -> Row<'_> {
    row.put(sign.style, sign.mark).put(Style::Plain, " ")
}

/// The lines of one cell: its head, and its text over two lines.
fn look(worker: &Worker, now: u64, cell: usize) -> [Piece; CELL_LINES] {
    let sign = sign(worker, now);
    let time = worker.busy_ms(now).map(|ms| format!(" {}", words::duration(ms))).unwrap_or_default();
    let agent = if worker.agent.is_empty() { String::new() } else { format!(" · {}", worker.agent) };
    let says = says(worker, now);
    let (first, second) = over_two_lines(&says, cell - 2);
    // The lines below the head are indented like the text behind the mark.
    let quiet = |text: &str| (Sign { style: Style::Plain, mark: " " }, text.to_string());
    [(sign, format!("{}{agent}{time}", worker.name)), quiet(first), quiet(second)]
}

/// Breaks a text at the last blank that fits. A word longer than the line is not broken here; the row cuts it.
fn over_two_lines(text: &str, room: usize) -> (&str, &str) {
    if width(text) <= room {
        return (text, "");
    }
    // Prefixes get wider from blank to blank, so the last one that fits is the longest.
    let blanks = text.match_indices(' ').map(|(at, _)| text.split_at(at));
    let fits = blanks.take_while(|(first, _)| width(first) <= room).last();
    fits.map_or((text, ""), |(first, rest)| (first, rest.trim_start()))
}

/// Draws a worker in one line.
fn one_line(frame: &Frame<'_>, worker: &Worker) -> String {
    let now = frame.board.now;
    let sign = sign(worker, now);
    let time = worker.busy_ms(now).map(words::duration).unwrap_or_default();
    let row = put_sign(frame.row(), sign);
    let row = row.put_within(13, sign.style, &worker.name).at(16).put(Style::Plain, &format!("{time:>7}"));
    row.at(25).put(Style::Plain, &says(worker, now)).done()
}

/// The mark for a worker's state.
fn sign(worker: &Worker, now: u64) -> Sign {
    match &worker.state {
        State::Waiting => Sign { style: Style::Dim, mark: "○" },
        State::Limited => Sign { style: Style::Warn, mark: "○" },
        State::Working { .. } if worker.stalled_ms(now).is_some() => Sign { style: Style::Warn, mark: "!" },
        State::Working { .. } | State::Landing { .. } => Sign { style: Style::Bold, mark: "▸" },
        State::Done { .. } => Sign::DONE,
        State::Failed { .. } => Sign::FAILED,
    }
}

/// Describes what a worker is doing, with a warning if it has not reported anything for long.
fn says(worker: &Worker, now: u64) -> String {
    let says = match &worker.state {
        State::Waiting => "waits",
        State::Limited => "waits for its usage limit to pass",
        State::Working { doing, .. } if doing.is_empty() => "at work",
        State::Working { doing, .. } => doing,
        State::Landing { .. } => "landing: merged, checked, then put in place",
        State::Done { says } | State::Failed { says } => says,
    };
    let stalled = worker.stalled_ms(now).map(|ms| format!("not heard of for {}: ", words::duration(ms)));
    // Reviewers have no findings in hand.
    let hand =
        if worker.hand.is_empty() { String::new() } else { format!("{} · ", words::ids(&worker.hand)) };
    format!("{}{hand}{says}", stalled.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_at_the_last_blank_that_fits() {
        assert_eq!(over_two_lines("one two", 7), ("one two", ""));
        assert_eq!(over_two_lines("one two three", 8), ("one two", "three"));
        assert_eq!(over_two_lines("審査 中です", 5), ("審査", "中です"));
        assert_eq!(over_two_lines("unbreakable text", 5), ("unbreakable text", ""));
        assert_eq!(over_two_lines("", 5), ("", ""));
    }
}
