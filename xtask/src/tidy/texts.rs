//! Checks plain text: what any file may contain, and how the first file of a crate begins.
//!
//! A file is text if it is UTF-8 without a null byte; all other files are left alone. Snapshots and fixtures keep their
//! whitespace, because it is part of what they record, but they may not contain paths of one machine either.

use crate::Breach;
use crate::tree::has_extension;

const LINE_CHARS: usize = 140;
const DOC_LINES: usize = 3;
/// Top-level directories whose content differs from machine to machine.
const MACHINE_FOLDERS: [&str; 2] = ["work", "home"];

pub fn as_text(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

pub fn check(path: &str, text: &str) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let data = path.split('/').any(|part| part == "fixtures");
    let keeps_whitespace = data || has_extension(path, "snap");
    for (index, line) in text.split('\n').enumerate() {
        let mut breach = |message: String| breaches.push(Breach::at_line(path, index + 1, message));
        if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| has_machine_path(line, folder)) {
            breach(format!("a path below /{folder} is of one machine only"));
        }
        if !keeps_whitespace && line.ends_with(char::is_whitespace) {
            breach("whitespace at the end of the line".to_owned());
        }
        let chars = line.chars().count();
        // Characters are counted and not bytes, as an editor shows them.
        if has_extension(path, "rs") && !data && chars > LINE_CHARS {
            breach(format!("this line has {chars} characters, at most {LINE_CHARS} are allowed"));
        }
    }
    // An empty file, such as a placeholder for git, needs no newline.
    if !keeps_whitespace && !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
        breaches.push(Breach::in_file(path, "the file has to end with exactly one newline"));
    }
    if is_crate_root(path) && text.lines().take_while(|line| line.starts_with("//!")).count() < DOC_LINES {
        let message = format!(
            "a crate begins with at least {DOC_LINES} lines of `//!`: what it does, what not, and where that is"
        );
        breaches.push(Breach::in_file(path, message));
    }
    breaches
}

/// Whether the line contains an absolute path into this top-level directory. `.tribunal/work/x` is not absolute.
fn has_machine_path(line: &str, folder: &str) -> bool {
    let needle = format!("/{folder}/");
    // One of these characters before the slash means that a longer path goes on here.
    let continues_a_path = |char: char| char.is_alphanumeric() || "._-~})>]*$+@%".contains(char);
    line.match_indices(&needle).any(|(at, _)| !line[..at].ends_with(continues_a_path))
}

/// Whether the file is `src/lib.rs` or `src/main.rs` of a crate of this repository.
fn is_crate_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts.as_slice(),
        ["crates", _, "src", "lib.rs" | "main.rs"] | ["xtask", "src", "lib.rs" | "main.rs"]
    )
}
