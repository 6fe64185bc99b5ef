//! Landing in random trees: what lands is exactly both sides, what does not land leaves no trace, and a crash in between
//! changes neither. Files consist of blocks with untouched lines between them, so the expected result is known without merging.

mod random_landings;
mod random_trees;

use super::candidate::may_create_file;

#[test]
fn new_files_may_be_created_beside_those_of_a_change_and_among_tests() {
    let allowed = ["src/a.rs".to_string(), "src/".to_string(), "./".to_string()];
    for relative_path in ["src/b.rs", "notes.md", "tests/a.rs", "src/deep/tests/a.rs"] {
        assert!(may_create_file(relative_path, &allowed), "{relative_path}");
    }
    for relative_path in
        ["src/deep/b.rs", ".github/workflows/x.yml", "src/.env", "tribunal.yaml", "CLAUDE.md", ".x/tests/a"]
    {
        assert!(!may_create_file(relative_path, &allowed), "{relative_path}");
    }
    // The review of a single file creates no files.
    assert!(!may_create_file("tests/a.rs", &["src/a.rs".to_string()]));
}
