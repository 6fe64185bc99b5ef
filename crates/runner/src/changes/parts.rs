//! Splits a change that is too big for one panel along its directories.

use std::collections::BTreeMap;

use tribunal_core::subject::{Change, Changed};

use super::{ChangeError, Found, MOST_BYTES, MOST_FILES, MOST_PARTS};

/// What one run reviews of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub change: Change,
    /// The size of its diff.
    pub bytes: u64,
}

/// Files that stay together if possible, by their positions in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit {
    from: usize,
    to: usize,
    bytes: u64,
}

impl Unit {
    fn fits(self) -> bool {
        self.to - self.from <= MOST_FILES && self.bytes <= MOST_BYTES
    }

    fn with(self, next: Unit) -> Unit {
        Unit { from: self.from, to: next.to, bytes: self.bytes + next.bytes }
    }
}

impl Found {
    pub fn bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Returns one part, or as many as necessary.
    pub fn parts(self) -> Result<Vec<Part>, ChangeError> {
        let Found { change, bytes, .. } = self;
        let paths: Vec<&str> = change.files.iter().map(|file| file.path.as_str()).collect();
        let all = Unit { from: 0, to: paths.len(), bytes: bytes.iter().sum() };
        let mut units = Vec::new();
        split(&paths, &bytes, all, 0, &mut units);
        let packed = pack(&units);
        if packed.len() > MOST_PARTS {
            return Err(ChangeError::TooBig {
                range: change.range.clone(),
                files: paths.len(),
                bytes: Some(all.bytes),
                folders: folders(&paths),
            });
        }
        if packed.len() == 1 {
            return Ok(vec![Part { change, bytes: all.bytes }]);
        }
        let count = packed.len();
        let part = |(index, unit): (usize, &Unit)| {
            let range = format!("{} (part {} of {count})", change.range, index + 1);
            let files: Vec<Changed> = change.files[unit.from..unit.to].to_vec();
            Part { change: Change { range, files, ..change.clone() }, bytes: unit.bytes }
        };
        Ok(packed.iter().enumerate().map(part).collect())
    }
}

/// Descends into directories until everything fits; a single file always counts as fitting.
fn split(paths: &[&str], bytes: &[u64], unit: Unit, depth: usize, units: &mut Vec<Unit>) {
    if unit.fits() || unit.to - unit.from <= 1 {
        units.push(unit);
        return;
    }
    // All files of a span share their first `depth` path parts.
    let key = |index: usize| paths[index].split('/').nth(depth);
    let is_folder = |index: usize| paths[index].split('/').nth(depth + 1).is_some();
    let mut from = unit.from;
    while from < unit.to {
        // Files of the directory itself stand alone; packing joins them.
        let same = |index: &usize| is_folder(from) && is_folder(*index) && key(*index) == key(from);
        let to = (from + 1..unit.to).take_while(same).last().map_or(from + 1, |last| last + 1);
        let group = Unit { from, to, bytes: bytes[from..to].iter().sum() };
        split(paths, bytes, group, depth + 1, units);
        from = to;
    }
}

/// Joins adjacent spans to as few parts as their order allows.
fn pack(units: &[Unit]) -> Vec<Unit> {
    let mut packed: Vec<Unit> = Vec::new();
    for unit in units {
        match packed.last_mut() {
            // Spans are in path order, so joining neighbours keeps related directories together.
            Some(last) if last.with(*unit).fits() => *last = last.with(*unit),
            _ => packed.push(*unit),
        }
    }
    packed
}

/// Returns the largest directories with their numbers of files, for narrowing a change.
pub(super) fn folders(paths: &[&str]) -> Vec<(String, usize)> {
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for path in paths {
        // Two levels, since the first one is often a single `src`.
        let end = path.match_indices('/').map(|(at, _)| at + 1).take(2).last();
        *found.entry(end.map_or("", |end| &path[..end])).or_default() += 1;
    }
    let mut found: Vec<(String, usize)> = found
        .into_iter()
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, count)| (name.to_string(), count))
        .collect();
    found.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    found.truncate(5);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(files: &[(String, u64)]) -> Found {
        let mut files = files.to_vec();
        files.sort();
        files.dedup_by(|one, other| one.0 == other.0);
        let changed = files.iter().map(|(path, _)| Changed { path: path.clone(), from: None });
        let change = Change { range: "a..b".into(), files: changed.collect(), ..Change::default() };
        Found { change, bytes: files.iter().map(|(_, bytes)| *bytes).collect(), stories: Vec::new() }
    }

    fn many(folder: &str, count: usize, bytes: u64) -> Vec<(String, u64)> {
        (0..count).map(|n| (format!("{folder}/f{n:04}.rs"), bytes)).collect()
    }

    #[test]
    fn what_fits_stays_whole_and_keeps_its_name() {
        let parts = found(&many("src", 200, 100)).parts().unwrap();
        assert_eq!((parts.len(), parts[0].change.range.as_str(), parts[0].bytes), (1, "a..b", 20_000));
    }

    #[test]
    fn folders_stay_together_where_they_can() {
        let all = [many("a", 150, 10), many("b/c", 90, 10), many("b/d", 90, 10), many("e", 10, 10)].concat();
        let parts = found(&all).parts().unwrap();
        let shown: Vec<String> = parts
            .iter()
            .map(|part| {
                let (first, last) =
                    (&part.change.files[0].path, &part.change.files[part.change.files.len() - 1].path);
                format!("{}: {first} to {last}", part.change.range)
            })
            .collect();
        assert_eq!(
            shown,
            [
                "a..b (part 1 of 2): a/f0000.rs to a/f0149.rs",
                "a..b (part 2 of 2): b/c/f0000.rs to e/f0009.rs"
            ]
        );
    }

    #[test]
    fn more_than_ten_parts_are_refused_with_the_biggest_folders() {
        let error =
            found(&[many("src/a", 30, MOST_BYTES / 2), many("src/b", 5, 1)].concat()).parts().unwrap_err();
        let ChangeError::TooBig { files, bytes, folders, .. } = error else { panic!("{error}") };
        assert_eq!((files, bytes), (35, Some(15 * MOST_BYTES + 5)));
        assert_eq!(folders, [("src/a/".to_string(), 30), ("src/b/".to_string(), 5)]);
    }

    proptest! {
        #[test]
        fn every_file_is_in_exactly_one_part_and_no_part_is_too_big(
            files in prop::collection::vec(("[a-c]{1,2}(/[a-c]{1,2}){0,3}/[a-z]{3}", 0..MOST_BYTES / 4), 1..300)
        ) {
            let found = found(&files);
            let all = found.change.files.clone();
            if let Ok(parts) = found.parts() {
                let again: Vec<Changed> = parts.iter().flat_map(|part| part.change.files.clone()).collect();
                prop_assert_eq!(again, all);
                for part in &parts {
                    prop_assert!(part.change.files.len() <= MOST_FILES && part.bytes <= MOST_BYTES);
                }
            }
        }
    }
}
