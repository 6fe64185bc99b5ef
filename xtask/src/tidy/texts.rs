//! Checks plain text: what any file may contain, and how the first file of a crate begins.
//!
//! A file is text if it is UTF-8 without a null byte; all other files are left alone. Snapshots and fixtures keep their
//! whitespace, because it is part of what they record, but they may not contain paths of one machine either.

use crate::RuleBreach;
use crate::repository::has_extension;

const MAX_LINE_CHARS: usize = 140;
const MIN_DOC_LINES: usize = 3;
/// Top-level directories whose content differs from machine to machine.
const MACHINE_FOLDERS: [&str; 2] = ["work", "home"];

pub fn as_text(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

pub fn check_text(file_path: &str, file_text: &str) -> Vec<RuleBreach> {
    let mut breaches = Vec::new();
    let is_fixture = file_path.split('/').any(|part| part == "fixtures");
    let keeps_whitespace = is_fixture || has_extension(file_path, "snap");
    for (line_index, line) in file_text.split('\n').enumerate() {
        let mut breach = |message: String| breaches.push(RuleBreach::at_line(file_path, line_index + 1, message));
        if let Some(machine_dir) = MACHINE_FOLDERS.iter().find(|machine_dir| has_machine_path(line, machine_dir)) {
            breach(format!("a path below /{machine_dir} is of one machine only"));
        }
        if !keeps_whitespace && line.ends_with(char::is_whitespace) {
            breach("whitespace at the end of the line".to_owned());
        }
        let char_count = line.chars().count();
        // Characters are counted and not bytes, as an editor shows them.
        if has_extension(file_path, "rs") && !is_fixture && char_count > MAX_LINE_CHARS {
            breach(format!("this line has {char_count} characters, at most {MAX_LINE_CHARS} are allowed"));
        }
    }
    // An empty file, such as a placeholder for git, needs no newline.
    if !keeps_whitespace && !file_text.is_empty() && (!file_text.ends_with('\n') || file_text.ends_with("\n\n")) {
        breaches.push(RuleBreach::in_file(file_path, "the file has to end with exactly one newline"));
    }
    if is_crate_root(file_path) && file_text.lines().take_while(|line| line.starts_with("//!")).count() < MIN_DOC_LINES
    {
        let message = format!(
            "a crate begins with at least {MIN_DOC_LINES} lines of `//!`: what it does, what not, and where that is"
        );
        breaches.push(RuleBreach::in_file(file_path, message));
    }
    breaches
}

/// Whether the line contains an absolute path into this top-level directory. `.tribunal/work/x` is not absolute.
fn has_machine_path(line: &str, machine_dir: &str) -> bool {
    let needle = format!("/{machine_dir}/");
    // One of these characters before the slash means that a longer path goes on here.
    let continues_a_path = |character: char| character.is_alphanumeric() || "._-~})>]*$+@%".contains(character);
    line.match_indices(&needle).any(|(match_offset, _)| !line[..match_offset].ends_with(continues_a_path))
}

/// Whether the file is `src/lib.rs` or `src/main.rs` of a crate of this repository.
fn is_crate_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts.as_slice(), ["crates", _, "src", "lib.rs" | "main.rs"] | ["xtask", "src", "lib.rs" | "main.rs"])
}
