//! The child runs of a run as a tree, for `tribunal status`.

use tribunal_engine::{children::MAX_DEPTH, ids::RunId};
use tribunal_workflows::runs::view::RunView;

use crate::{child_runs::describe_standing, kind_table, run_standing::RunStanding};

/// Lists the child runs of a run and theirs as a tree: one line each, and below those that are under way how far they are.
/// `read_child` reads the view of a child.
pub fn list_child_lines(run_standing: &RunStanding<'_>, read_child: &dyn Fn(&RunId) -> Option<RunView>) -> Vec<String> {
    let mut lines = Vec::new();
    add_child_lines(&mut lines, run_standing, read_child, 0);
    lines
}

fn add_child_lines(
    lines: &mut Vec<String>,
    run_standing: &RunStanding<'_>,
    read_child: &dyn Fn(&RunId) -> Option<RunView>,
    depth: usize,
) {
    for (child_name, standing) in &run_standing.run_view.children {
        let indent = "  ".repeat(depth);
        lines.push(format!("{indent}{}", describe_standing(child_name, standing, run_standing.is_live)));
        // A journal that came from elsewhere could name a run as its own child.
        if depth < MAX_DEPTH as usize
            && let Some(child_view) = read_child(&standing.run)
        {
            if run_standing.is_live && standing.outcome.is_none() {
                let status_lines = kind_table::list_status_lines(&child_view);
                lines.extend(status_lines.iter().map(|status_line| format!("{indent}  {status_line}")));
            }
            // A child runs in the process of its parent.
            let child_standing = RunStanding { run_view: &child_view, is_live: run_standing.is_live };
            add_child_lines(lines, &child_standing, read_child, depth + 1);
        }
    }
}
