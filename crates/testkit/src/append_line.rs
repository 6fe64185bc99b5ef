//! Appends lines to a file that several processes write.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    path::Path,
};

/// Appends `line` and its line end by a single write, so that lines of processes that append at the same time are not mixed.
/// `writeln!` would write in pieces, and another process, or a kill, could come in between.
pub fn append_line(file_path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file_path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    #[test]
    fn lines_appended_at_the_same_time_are_not_mixed() {
        const WRITERS: usize = 8;
        const LINES: usize = 500;
        let directory = tempfile::tempdir().unwrap();
        let file_path = directory.path().join("calls");
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let file_path = &file_path;
                scope.spawn(move || {
                    for line in 0..LINES {
                        append_line(file_path, &format!("writer {writer} line {line}")).unwrap();
                    }
                });
            }
        });
        let file_text = fs::read_to_string(&file_path).unwrap();
        let mut lines: Vec<&str> = file_text.lines().collect();
        lines.sort_unstable();
        let mut expected: Vec<String> = (0..WRITERS)
            .flat_map(|writer| (0..LINES).map(move |line| format!("writer {writer} line {line}")))
            .collect();
        expected.sort_unstable();
        assert_eq!(lines, expected);
    }
}
