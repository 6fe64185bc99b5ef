//! Splits a change that is too big for one panel along its directories.

use std::collections::BTreeMap;

use tribunal_workflows::findings::subject::{ChangedPath, CodeChange};

use super::{ChangeError, FoundChange, MAX_PART_BYTES, MAX_PART_FILES, MAX_PARTS};

/// What one run reviews of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangePart {
    pub change: CodeChange,
    /// The size of its diff.
    pub diff_bytes: u64,
}

/// Files that stay together if possible, by their positions in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileSpan {
    start: usize,
    end: usize,
    diff_bytes: u64,
}

impl FileSpan {
    fn fits_in_part(self) -> bool {
        self.end - self.start <= MAX_PART_FILES && self.diff_bytes <= MAX_PART_BYTES
    }

    fn extended_by(self, next_span: FileSpan) -> FileSpan {
        FileSpan { start: self.start, end: next_span.end, diff_bytes: self.diff_bytes + next_span.diff_bytes }
    }
}

impl FoundChange {
    pub fn total_diff_bytes(&self) -> u64 {
        self.diff_sizes.iter().sum()
    }

    /// Returns one part, or as many as necessary.
    pub fn into_parts(self) -> Result<Vec<ChangePart>, ChangeError> {
        let FoundChange { change, diff_sizes, .. } = self;
        let relative_paths: Vec<&str> = change.files.iter().map(|file| file.path.as_str()).collect();
        let whole_span = FileSpan { start: 0, end: relative_paths.len(), diff_bytes: diff_sizes.iter().sum() };
        let mut spans = Vec::new();
        split_by_directory(&relative_paths, &diff_sizes, whole_span, 0, &mut spans);
        let packed_spans = pack_spans(&spans);
        if packed_spans.len() > MAX_PARTS {
            return Err(ChangeError::TooBig {
                range: change.range.clone(),
                files: relative_paths.len(),
                bytes: Some(whole_span.diff_bytes),
                folders: largest_directories(&relative_paths),
            });
        }
        if packed_spans.len() == 1 {
            return Ok(vec![ChangePart { change, diff_bytes: whole_span.diff_bytes }]);
        }
        let part_count = packed_spans.len();
        let to_part = |(index, span): (usize, &FileSpan)| {
            let range_name = format!("{} (part {} of {part_count})", change.range, index + 1);
            let files: Vec<ChangedPath> = change.files[span.start..span.end].to_vec();
            ChangePart {
                change: CodeChange { range: range_name, files, ..change.clone() },
                diff_bytes: span.diff_bytes,
            }
        };
        Ok(packed_spans.iter().enumerate().map(to_part).collect())
    }
}

/// Descends into directories until everything fits; a single file always counts as fitting.
fn split_by_directory(
    relative_paths: &[&str],
    diff_sizes: &[u64],
    span: FileSpan,
    depth: usize,
    spans: &mut Vec<FileSpan>,
) {
    if span.fits_in_part() || span.end - span.start <= 1 {
        spans.push(span);
        return;
    }
    // All files of a span share their first `depth` path parts.
    let path_part = |index: usize| relative_paths[index].split('/').nth(depth);
    let is_in_directory = |index: usize| relative_paths[index].split('/').nth(depth + 1).is_some();
    let mut group_start = span.start;
    while group_start < span.end {
        // Files of the directory itself stand alone; packing joins them.
        let is_same_directory = |index: &usize| {
            is_in_directory(group_start) && is_in_directory(*index) && path_part(*index) == path_part(group_start)
        };
        let group_end = (group_start + 1..span.end)
            .take_while(is_same_directory)
            .last()
            .map_or(group_start + 1, |last_index| last_index + 1);
        let group = FileSpan {
            start: group_start,
            end: group_end,
            diff_bytes: diff_sizes[group_start..group_end].iter().sum(),
        };
        split_by_directory(relative_paths, diff_sizes, group, depth + 1, spans);
        group_start = group_end;
    }
}

/// Joins adjacent spans to as few parts as their order allows.
fn pack_spans(spans: &[FileSpan]) -> Vec<FileSpan> {
    let mut packed_spans: Vec<FileSpan> = Vec::new();
    for span in spans {
        match packed_spans.last_mut() {
            // Spans are in path order, so joining neighbours keeps related directories together.
            Some(last_span) if last_span.extended_by(*span).fits_in_part() => *last_span = last_span.extended_by(*span),
            _ => packed_spans.push(*span),
        }
    }
    packed_spans
}

/// Returns the largest directories with their numbers of files, for narrowing a change.
pub(super) fn largest_directories(relative_paths: &[&str]) -> Vec<(String, usize)> {
    let mut file_counts: BTreeMap<&str, usize> = BTreeMap::new();
    for relative_path in relative_paths {
        // Two levels, since the first one is often a single `src`.
        let prefix_end = relative_path.match_indices('/').map(|(position, _)| position + 1).take(2).last();
        *file_counts.entry(prefix_end.map_or("", |prefix_end| &relative_path[..prefix_end])).or_default() += 1;
    }
    let mut file_counts: Vec<(String, usize)> = file_counts
        .into_iter()
        .filter(|(directory_name, _)| !directory_name.is_empty())
        .map(|(directory_name, file_count)| (directory_name.to_string(), file_count))
        .collect();
    file_counts.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    file_counts.truncate(5);
    file_counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found_change(files: &[(String, u64)]) -> FoundChange {
        let mut files = files.to_vec();
        files.sort();
        files.dedup_by(|first, second| first.0 == second.0);
        let changed = files.iter().map(|(path, _)| ChangedPath { path: path.clone(), from: None });
        let change = CodeChange { range: "a..b".into(), files: changed.collect(), ..CodeChange::default() };
        FoundChange { change, diff_sizes: files.iter().map(|(_, bytes)| *bytes).collect(), story_paths: Vec::new() }
    }

    fn many_files(directory: &str, count: usize, bytes: u64) -> Vec<(String, u64)> {
        (0..count).map(|number| (format!("{directory}/f{number:04}.rs"), bytes)).collect()
    }

    #[test]
    fn what_fits_stays_whole_and_keeps_its_name() {
        let parts = found_change(&many_files("src", 200, 100)).into_parts().unwrap();
        assert_eq!((parts.len(), parts[0].change.range.as_str(), parts[0].diff_bytes), (1, "a..b", 20_000));
    }

    #[test]
    fn folders_stay_together_where_they_can() {
        let all =
            [many_files("a", 150, 10), many_files("b/c", 90, 10), many_files("b/d", 90, 10), many_files("e", 10, 10)]
                .concat();
        let parts = found_change(&all).into_parts().unwrap();
        let described_parts: Vec<String> = parts
            .iter()
            .map(|part| {
                let (first, last) = (&part.change.files[0].path, &part.change.files[part.change.files.len() - 1].path);
                format!("{}: {first} to {last}", part.change.range)
            })
            .collect();
        assert_eq!(
            described_parts,
            ["a..b (part 1 of 2): a/f0000.rs to a/f0149.rs", "a..b (part 2 of 2): b/c/f0000.rs to e/f0009.rs"]
        );
    }

    #[test]
    fn more_than_ten_parts_are_refused_with_the_biggest_folders() {
        let error = found_change(&[many_files("src/a", 30, MAX_PART_BYTES / 2), many_files("src/b", 5, 1)].concat())
            .into_parts()
            .unwrap_err();
        let ChangeError::TooBig { files, bytes, folders: directories, .. } = error else { panic!("{error}") };
        assert_eq!((files, bytes), (35, Some(15 * MAX_PART_BYTES + 5)));
        assert_eq!(directories, [("src/a/".to_string(), 30), ("src/b/".to_string(), 5)]);
    }

    proptest! {
        #[test]
        fn every_file_is_in_exactly_one_part_and_no_part_is_too_big(
            files in prop::collection::vec(("[a-c]{1,2}(/[a-c]{1,2}){0,3}/[a-z]{3}", 0..MAX_PART_BYTES / 4), 1..300)
        ) {
            let found = found_change(&files);
            let all = found.change.files.clone();
            if let Ok(parts) = found.into_parts() {
                let again: Vec<ChangedPath> = parts.iter().flat_map(|part| part.change.files.clone()).collect();
                prop_assert_eq!(again, all);
                for part in &parts {
                    prop_assert!(part.change.files.len() <= MAX_PART_FILES && part.diff_bytes <= MAX_PART_BYTES);
                }
            }
        }
    }
}
