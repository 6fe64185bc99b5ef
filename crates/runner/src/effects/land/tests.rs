//! Landing in random trees: what lands is exactly both sides, what does not land leaves no trace, and a crash in between
//! changes neither. Files consist of blocks with untouched lines between them, so the expected result is known without merging.

mod random;
mod trees;

use super::*;

#[test]
fn new_files_may_stand_beside_those_of_a_change_and_among_tests() {
    let allowed = ["src/a.rs".to_string(), "src/".to_string(), "./".to_string()];
    for path in ["src/b.rs", "notes.md", "tests/a.rs", "src/deep/tests/a.rs"] {
        assert!(may_be_made(path, &allowed), "{path}");
    }
    for path in
        ["src/deep/b.rs", ".github/workflows/x.yml", "src/.env", "tribunal.yaml", "CLAUDE.md", ".x/tests/a"]
    {
        assert!(!may_be_made(path, &allowed), "{path}");
    }
    // The review of a single file creates no files.
    assert!(!may_be_made("tests/a.rs", &["src/a.rs".to_string()]));
}
