//! The copies of a project's documents that agents of a loop read. A copy is the text of its document with a last line that
//! names the document and has a fingerprint of the text, so that a copy which the user edited by hand can be told from one that
//! is only out of date. The runner reads and writes the files.

use tribunal_engine::ids::Hash;

/// Where the copies are.
pub const SPECS_FOLDER: &str = ".ralph/specs";
const NOTE_START: &str = "<!-- copy of ";
const NOTE_MIDDLE: &str = ", written by tribunal loop plan: ";
const NOTE_END: &str = " -->";

/// How a copy compares with its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecCopyState {
    UpToDate,
    /// The document has changed, and the copy has not.
    Outdated,
    /// The copy has text that no document had when it was copied.
    EditedByHand,
}

/// The path of a document's copy: the path below BMAD's output folder, or else the whole path.
pub fn spec_copy_path(document_path: &str, output_folder: &str) -> String {
    let below_output = document_path.strip_prefix(output_folder.trim_end_matches('/'));
    let relative_path = below_output.and_then(|path| path.strip_prefix('/')).unwrap_or(document_path);
    format!("{SPECS_FOLDER}/{relative_path}")
}

/// The text of a document's copy.
pub fn render_spec_copy(document_path: &str, document_text: &str) -> String {
    let separator = if document_text.is_empty() || document_text.ends_with('\n') { "" } else { "\n" };
    let fingerprint = fingerprint_document(document_text);
    format!("{document_text}{separator}\n{NOTE_START}{document_path}{NOTE_MIDDLE}{fingerprint}{NOTE_END}\n")
}

/// Compares a copy with the document as it is now.
pub fn compare_spec_copy(document_text: &str, copy_text: &str) -> SpecCopyState {
    let new_fingerprint = fingerprint_document(document_text);
    let Some((copied_text, old_fingerprint)) = split_note(copy_text) else {
        // Another tool may have made the copy.
        let is_same = fingerprint_document(copy_text) == new_fingerprint;
        return if is_same { SpecCopyState::UpToDate } else { SpecCopyState::EditedByHand };
    };
    let is_untouched = fingerprint_document(copied_text) == old_fingerprint;
    match (is_untouched, old_fingerprint == new_fingerprint) {
        (false, _) => SpecCopyState::EditedByHand,
        (true, true) => SpecCopyState::UpToDate,
        (true, false) => SpecCopyState::Outdated,
    }
}

/// Splits a copy into the text of its document and the fingerprint; `None` if its last line is not such a note.
fn split_note(copy_text: &str) -> Option<(&str, &str)> {
    let (copied_text, note) = copy_text.trim_end().rsplit_once(NOTE_START)?;
    let (_, fingerprint) = note.strip_suffix(NOTE_END)?.rsplit_once(NOTE_MIDDLE)?;
    let is_fingerprint = fingerprint.chars().all(|character| character.is_ascii_hexdigit());
    is_fingerprint.then_some((copied_text, fingerprint))
}

/// The fingerprint of a document. Line endings and white space at the end do not count: git and editors change them.
fn fingerprint_document(document_text: &str) -> String {
    let steady_text = document_text.replace("\r\n", "\n");
    Hash::digest_of(steady_text.trim_end().as_bytes()).short_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_told_from_an_edited_one() {
        for document_text in ["# PRD\n\nText\n", "# PRD\r\n", "no newline", ""] {
            let copy_text = render_spec_copy("docs/prd.md", document_text);
            assert!(copy_text.starts_with(document_text), "{copy_text}");
            for unchanged_copy in [copy_text.clone(), copy_text.replace('\n', "\r\n"), format!("{copy_text}\n")] {
                assert_eq!(
                    compare_spec_copy(document_text, &unchanged_copy),
                    SpecCopyState::UpToDate,
                    "{unchanged_copy:?}"
                );
                assert_eq!(compare_spec_copy("new", &unchanged_copy), SpecCopyState::Outdated, "{unchanged_copy:?}");
            }
            for edited_copy in [format!("more\n{copy_text}"), format!("{copy_text}more\n")] {
                assert_eq!(
                    compare_spec_copy(document_text, &edited_copy),
                    SpecCopyState::EditedByHand,
                    "{edited_copy:?}"
                );
            }
        }
    }

    #[test]
    fn a_copy_of_another_tool_is_kept_unless_it_is_the_same() {
        assert_eq!(compare_spec_copy("a\n", "a"), SpecCopyState::UpToDate);
        assert_eq!(compare_spec_copy("a\n", "b"), SpecCopyState::EditedByHand);
    }

    #[test]
    fn copies_have_the_paths_of_their_documents() {
        for (document_path, output_folder, expected) in [
            ("_bmad-output/planning-artifacts/prd.md", "_bmad-output", ".ralph/specs/planning-artifacts/prd.md"),
            ("docs/prd.md", "_bmad-output", ".ralph/specs/docs/prd.md"),
            ("docs-old/prd.md", "docs", ".ralph/specs/docs-old/prd.md"),
            ("docs/prd.md", "", ".ralph/specs/docs/prd.md"),
        ] {
            assert_eq!(spec_copy_path(document_path, output_folder), expected);
        }
    }
}
