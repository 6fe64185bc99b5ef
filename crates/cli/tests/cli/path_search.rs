//! Directories and quoted patterns as subjects.
#![cfg(target_os = "linux")]

use crate::{
    common::{CommandOutput, Sandbox},
    multi_run::{ANSWER_NOTHING, sandbox_with_documents},
};

/// The subjects of all runs, sorted.
fn reviewed_subjects(sandbox: &Sandbox) -> Vec<String> {
    let run_summaries = sandbox.run_json(&["runs"])["runs"].as_array().cloned().unwrap_or_default();
    let mut subjects: Vec<String> =
        run_summaries.iter().map(|run_summary| run_summary["subject"]["path"].as_str().unwrap().to_string()).collect();
    subjects.sort();
    subjects
}

fn run_git(sandbox: &Sandbox, args: &[&str]) {
    assert!(sandbox.isolated_command("git").args(args).status().unwrap().success(), "{args:?}");
}

/// Resolves what would be reviewed, without starting anything.
fn dry_run(sandbox: &Sandbox, paths: &[&str]) -> CommandOutput {
    sandbox.run_tribunal(&[&["review", "--dry-run"], paths].concat())
}

#[test]
fn a_directory_means_its_documents_without_ignored_and_internal_ones() {
    let sandbox = sandbox_with_documents(
        &[
            "docs/a.md",
            "docs/deep/b.md",
            "docs/draft.md",
            "docs/.hidden.md",
            "docs/notes.txt",
            "_bmad/bmm/agents/x.md",
            "_bmad-output/prd.md",
            "_bmad-output/reviews/prd-issues.md",
            "_bmad-output/awaiting-human/note.md",
        ],
        ANSWER_NOTHING,
    );
    sandbox.write_file("docs/empty.md", "\n");
    sandbox.write_file("_bmad/bmm/config.yaml", "output_folder: \"{project-root}/_bmad-output\"\n");
    sandbox.write_file(".gitignore", "draft.md\n");
    run_git(&sandbox, &["init", "-q"]);
    let output = sandbox.run_tribunal(&["review", "docs/"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("note: not reviewed: docs/empty.md is empty"), "{}", output.stderr);
    assert!(output.stderr.contains("note: found 2 documents in docs/\n"), "{}", output.stderr);
    assert_eq!(reviewed_subjects(&sandbox), ["docs/a.md", "docs/deep/b.md"]);
    let whole_project = dry_run(&sandbox, &["."]);
    assert!(whole_project.stderr.contains("note: found 4 documents in .\n"), "{}", whole_project.stderr);
    assert!(whole_project.stdout.contains("would review _bmad-output/prd.md"), "{}", whole_project.stdout);
    // A directory that is named itself is not left out.
    assert!(dry_run(&sandbox, &["_bmad/bmm"]).stdout.contains("would review _bmad/bmm/agents/x.md"));
}

#[test]
fn a_quoted_pattern_means_the_files_that_match() {
    let sandbox = sandbox_with_documents(&["docs/a.md", "docs/b.md", "docs/deep/c.md", "docs/d.txt"], ANSWER_NOTHING);
    let output = sandbox.run_tribunal(&["review", "docs/*.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("note: 2 files matched by `docs/*.md`\n"), "{}", output.stderr);
    assert_eq!(reviewed_subjects(&sandbox), ["docs/a.md", "docs/b.md"]);
    let all_files = dry_run(&sandbox, &["docs/**/*.{md,txt}", "docs/a.md"]);
    assert!(all_files.stderr.contains("note: 4 files matched"), "{}", all_files.stderr);
    assert!(all_files.stderr.contains("docs/a.md was given more than once"), "{}", all_files.stderr);
    // A file whose name looks like a pattern is that file.
    sandbox.write_file("docs/[x].md", "# X\n\nText.\n");
    assert!(dry_run(&sandbox, &["docs/[x].md"]).stdout.contains("would review docs/[x].md"));
}

#[test]
fn patterns_that_match_nothing_are_errors() {
    let sandbox = sandbox_with_documents(&["docs/a.md"], ANSWER_NOTHING);
    for pattern in ["docs/*.rst", "nowhere/*.md"] {
        let output = sandbox.run_tribunal(&["review", "docs/a.md", pattern]);
        assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
        assert!(output.stderr.contains(&format!("error: no files match `{pattern}`\n")), "{}", output.stderr);
    }
    let output = sandbox.run_tribunal(&["review", "docs/[z-a].md"]);
    assert!(output.stderr.contains("is not a valid pattern"), "{}", output.stderr);
    assert!(!sandbox.path_of(".tribunal").exists(), "nothing was started");
}

#[test]
fn too_many_documents_need_a_flag() {
    let sandbox = sandbox_with_documents(&[], ANSWER_NOTHING);
    for number in 0..21 {
        let directory = if number < 15 { "docs/guide" } else { "docs/api" };
        sandbox.write_file(&format!("{directory}/{number}.md"), "# Text\n\nText.\n");
    }
    let output = dry_run(&sandbox, &["docs"]);
    assert_eq!(output.exit_code, Some(2));
    insta::assert_snapshot!(output.stderr, @r"
    error: found 21 documents; more than 20 are reviewed only with `--yes`
      Every document is reviewed in a run of its own, with its own agents and costs. Nothing was started.
      1. review a part: `tribunal review docs/guide` (15 documents)
      2. review a part: `tribunal review docs/api` (6 documents)
      3. or review all of them: add `--yes`
    ");
    let output = dry_run(&sandbox, &["docs", "--yes"]);
    assert_eq!((output.exit_code, output.stdout.matches("would review docs/").count()), (Some(0), 21));
}
