//! What a landing changed, one line per file as in `git diff --stat`: `src/pay.py | 4 ++--`.

use tribunal_engine::files::Hunk;
use tribunal_workflows::{
    findings::subject::Subject,
    runs::effect::{LandOutcome, LandedChange, Reply},
};

use crate::{
    clean_line,
    style::{Screen, TextStyle},
    terminal_text::{display_width, truncate_path},
};

/// At most this many files are listed.
const MAX_SHOWN_FILES: usize = 5;
/// The longest bar of `+` and `-`.
const MAX_BAR_COLUMNS: usize = 30;
/// The width of output that is not a terminal, as git assumes it.
const DEFAULT_COLUMNS: usize = 80;

/// The lines that were added to a file and removed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileStat {
    path: String,
    added: u32,
    removed: u32,
}

impl FileStat {
    fn from_hunks(path: &str, hunks: &[Hunk]) -> FileStat {
        let added = hunks.iter().map(|hunk| hunk.new_len).sum();
        let removed = hunks.iter().map(|hunk| hunk.old_len).sum();
        FileStat { path: path.to_string(), added, removed }
    }

    fn changed(&self) -> u32 {
        self.added.saturating_add(self.removed)
    }
}

/// Lists the files that an effect changed in the user's tree; `None` if the reply is not that of a landing.
pub(crate) fn list_landed_files(effect_reply: &Reply, subject: Option<&Subject>) -> Option<Vec<FileStat>> {
    let (Reply::Land(LandOutcome::Landed(landed_change)) | Reply::TakeIn(LandOutcome::Landed(landed_change))) =
        effect_reply
    else {
        return None;
    };
    let LandedChange { hunks, files, .. } = landed_change;
    let mut file_stats: Vec<FileStat> =
        files.iter().map(|landed_file| FileStat::from_hunks(&landed_file.path, &landed_file.hunks)).collect();
    // A single document is recorded without its path.
    if let (true, Some(file_path)) = (file_stats.is_empty(), subject.and_then(Subject::file_path)) {
        file_stats.push(FileStat::from_hunks(file_path, hunks));
    }
    file_stats.retain(|file_stat| file_stat.changed() > 0);
    Some(file_stats)
}

/// Renders the lines, each behind `indent` blanks.
pub(crate) fn render_diffstat(file_stats: &[FileStat], indent: usize, screen: &Screen) -> Vec<String> {
    let shown_stats = &file_stats[..file_stats.len().min(MAX_SHOWN_FILES)];
    let total_columns = screen.max_columns.unwrap_or(DEFAULT_COLUMNS).saturating_sub(indent + 1);
    let count_columns = shown_stats.iter().map(|stat| stat.changed().to_string().len()).max().unwrap_or_default();
    // A name gets what the count and a short bar leave over.
    let max_name_columns = total_columns.saturating_sub(count_columns + 14).max(12);
    let file_names: Vec<String> =
        shown_stats.iter().map(|stat| truncate_path(&clean_line(&stat.path), max_name_columns)).collect();
    let name_columns = file_names.iter().map(|name| display_width(name)).max().unwrap_or_default();
    let bar_columns = total_columns.saturating_sub(name_columns + count_columns + 4).clamp(4, MAX_BAR_COLUMNS);
    let largest_change = shown_stats.iter().map(FileStat::changed).max().unwrap_or_default();
    let mut stat_lines: Vec<String> = shown_stats
        .iter()
        .zip(&file_names)
        .map(|(stat, file_name)| {
            let padding = name_columns - display_width(file_name);
            let (plus_count, minus_count) = scale_bar(stat, largest_change, bar_columns);
            let (plus_bar, minus_bar) = ("+".repeat(plus_count), "-".repeat(minus_count));
            format!(
                "{:indent$}{file_name}{:padding$} | {:>count_columns$} {}{}",
                "",
                "",
                stat.changed(),
                paint_bar(screen, TextStyle::Success, &plus_bar),
                paint_bar(screen, TextStyle::Failure, &minus_bar),
            )
        })
        .collect();
    let hidden_count = file_stats.len() - shown_stats.len();
    if hidden_count > 0 {
        stat_lines.push(format!("{:indent$}and {hidden_count} more", ""));
    }
    stat_lines
}

fn paint_bar(screen: &Screen, style: TextStyle, bar: &str) -> String {
    if bar.is_empty() { String::new() } else { screen.paint(style, bar) }
}

/// How many `+` and `-` a file gets. Bars are shortened together if the largest does not fit; what changed keeps at least one.
fn scale_bar(stat: &FileStat, largest_change: u32, bar_columns: usize) -> (usize, usize) {
    let (added, removed, largest) = (stat.added as usize, stat.removed as usize, largest_change as usize);
    if largest <= bar_columns {
        return (added, removed);
    }
    let scale = |line_count: usize| (line_count * bar_columns / largest).max(usize::from(line_count > 0));
    (scale(added), scale(removed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(path: &str, added: u32, removed: u32) -> FileStat {
        FileStat { path: path.into(), added, removed }
    }

    #[test]
    fn files_are_listed_as_git_does_it() {
        let file_stats = [stat("src/pay.py", 2, 2), stat("src/long/name.py", 10, 0), stat("gone", 0, 1)];
        assert_eq!(
            render_diffstat(&file_stats, 2, &Screen::default()),
            ["  src/pay.py       |  4 ++--", "  src/long/name.py | 10 ++++++++++", "  gone             |  1 -"]
        );
    }

    #[test]
    fn of_many_files_the_first_five_are_listed() {
        let file_stats: Vec<FileStat> = (1..=7).map(|number| stat(&format!("f{number}"), 1, 0)).collect();
        let stat_lines = render_diffstat(&file_stats, 0, &Screen::default());
        assert_eq!(stat_lines.len(), 6);
        assert_eq!((stat_lines[4].as_str(), stat_lines[5].as_str()), ("f5 | 1 +", "and 2 more"));
    }

    #[test]
    fn long_bars_and_names_fit_the_screen() {
        let deep_path = format!("{}file.rs", "directory/".repeat(12));
        let file_stats = [stat(&deep_path, 5000, 1000), stat("small.rs", 1, 0)];
        for columns in [30, 50, 80, 200] {
            let screen = Screen { max_columns: Some(columns), ..Screen::default() };
            let stat_lines = render_diffstat(&file_stats, 6, &screen);
            assert!(stat_lines.iter().all(|line| display_width(line) < columns), "{columns}: {stat_lines:#?}");
            assert!(stat_lines[0].contains("/file.rs") && stat_lines[0].contains('-'), "{stat_lines:#?}");
            assert!(stat_lines[1].ends_with(" 1 +"), "a small change stays visible: {stat_lines:#?}");
        }
    }
}
