//! Entries whose key stands on two lines, and other lines that are left out. Which of two lines is right must not be guessed.

use super::{Board, BoardEntry, parse_error_problem, shapes::ShapedEntry, tolerant::OmittedLine};
use crate::{
    problem::{FileProblem, ProblemWeight},
    yaml::YamlErrorKind,
};

/// Reports the lines that had to be left out.
pub(super) fn report_omitted(board: &mut Board, omitted: &[OmittedLine]) {
    for omitted_line in omitted {
        let mut problem = parse_error_problem(&board.path, &omitted_line.error);
        problem.line = Some(omitted_line.line);
        let is_entry = omitted_line.is_entry(board);
        let written_key = omitted_line.written_key();
        let twin = board.entries.iter_mut().find(|board_entry| board_entry.raw_key == written_key);
        let problem = match (omitted_line.error.kind, twin) {
            (YamlErrorKind::DuplicateKey, Some(twin)) => {
                mark_twin(twin, omitted_line.line, omitted_line.written_state(), problem)
            }
            // The line of an entry is missed: a run would not know its story.
            (YamlErrorKind::Syntax, None) if is_entry => problem,
            // The rest of the board can be used.
            _ => FileProblem { weight: ProblemWeight::Warning, ..problem.with_reason("Tribunal ignores this line.") },
        };
        board.problems.push(problem);
    }
}

/// Reports an item of a list whose story has another item in the same list. The YAML is valid, but it says as little as a key that
/// stands twice in a mapping.
pub(super) fn report_list_twin(board: &mut Board, first_position: usize, second_item: &ShapedEntry) {
    let Some(first_entry) = board.entries.get_mut(first_position) else { return };
    let message = format!("duplicate key `{}`", first_entry.raw_key);
    let problem = FileProblem::error("board-duplicate-key", &board.path, message)
        .at_line(second_item.line)
        .at_column(second_item.column)
        .with_reason("Tribunal cannot tell which of the two entries is right.")
        .with_advice("remove one of the two entries");
    let problem = mark_twin(first_entry, second_item.line, &second_item.state_text, problem);
    board.problems.push(problem);
}

/// Marks an entry whose key stands on a second line as well, and weighs the problem: of two different states neither holds.
fn mark_twin(
    board_entry: &mut BoardEntry,
    second_line: usize,
    second_state: &str,
    problem: FileProblem,
) -> FileProblem {
    board_entry.twin_line = Some(second_line);
    if board_entry.raw_state != second_state {
        board_entry.state = None;
        return problem;
    }
    // A move would make the two lines differ.
    FileProblem {
        weight: ProblemWeight::Warning,
        ..problem.with_reason("Its state cannot be changed while it stands on two lines.")
    }
}
