//! Landing over random trees: what lands is exactly both sides, what does not land leaves no trace, and dying in between
//! changes neither. Files are made of blocks with lines between them that nobody touches, so that what has to come out is
//! known without merging anything.

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
    // A review of one file makes none.
    assert!(!may_be_made("tests/a.rs", &["src/a.rs".to_string()]));
}
