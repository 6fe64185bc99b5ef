//! Where each era keeps its documents, and which of several counts.

use tribunal_bmad::{
    config::ProjectFolders,
    documents::{DocumentKind, ProjectDocuments, find_documents},
    project_files::{InMemoryFiles, ProjectFiles, UnreadableFile},
};

fn find_in(files: &[(&str, &str)]) -> ProjectDocuments {
    find_documents(&InMemoryFiles::from_files(files.iter().copied()), &ProjectFolders::default())
}

/// Renders `kind path + parts`, one line each, then the problems.
fn render_documents(file_paths: &[&str]) -> String {
    let owned_files: Vec<(String, &str)> =
        file_paths.iter().map(|path| (format!("_bmad-output/{path}"), "# T\n")).collect();
    let files: Vec<(&str, &str)> = owned_files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let ProjectDocuments { found: found_documents, problems } = find_in(&files);
    let shorten_path = |path: &str| path.replace("_bmad-output/", "");
    let mut rendered: Vec<String> = found_documents
        .iter()
        .map(|document| {
            let part_paths: Vec<String> = document.sharded.iter().map(|part| shorten_path(part)).collect();
            let part_list = if part_paths.is_empty() { String::new() } else { format!(" + {}", part_paths.join(" ")) };
            format!("{:?} {}{part_list}", document.kind, shorten_path(&document.path))
        })
        .collect();
    rendered.extend(
        problems.iter().map(|problem| shorten_path(&format!("{:?} {} {problem}", problem.weight, problem.rule))),
    );
    rendered.join("\n")
}

#[test]
fn early_eras_have_whole_files() {
    let files = [
        "planning-artifacts/prd.md",
        "planning-artifacts/prd-validation-report.md",
        "planning-artifacts/architecture.md",
        "planning-artifacts/ux-design-specification.md",
        "planning-artifacts/epics.md",
        "planning-artifacts/product-brief-shop-2026-01-02.md",
        "planning-artifacts/product-brief-shop-2026-03-01.md",
        "planning-artifacts/implementation-readiness-report-2026-01-09.md",
        "planning-artifacts/implementation-readiness-report-2026-02-01.md",
        "planning-artifacts/sprint-change-proposal-2026-02-01.md",
        "planning-artifacts/research/market-tea-research-2026-01-01.md",
        "planning-artifacts/bmm-workflow-status.yaml",
        "planning-artifacts/linux-notes.md",
        "implementation-artifacts/1-2-log-in.md",
        "implementation-artifacts/1-10-x.md",
        "implementation-artifacts/1-2a-y.md",
        "implementation-artifacts/sprint-status.yaml",
        "implementation-artifacts/tech-spec-wip.md",
        "implementation-artifacts/epic-1-retro-2026-02-03.md",
        "implementation-artifacts/epic-1-context.md",
        "implementation-artifacts/deferred-work.md",
        "traceability-matrix.md",
        "test-design-epic-1.md",
        "project-context.md",
    ];
    insta::assert_snapshot!(render_documents(&files));
}

#[test]
fn late_eras_have_run_folders_and_specs() {
    let files = [
        "planning-artifacts/prds/prd-shop-2026-07-01/prd.md",
        "planning-artifacts/prds/prd-shop-2026-07-01/addendum.md",
        "planning-artifacts/prds/prd-shop-2026-08-02/prd.md",
        "planning-artifacts/architecture/architecture-shop-2026-07-03/ARCHITECTURE-SPINE.md",
        "planning-artifacts/ux-design-specification.md",
        "planning-artifacts/ux-designs/ux-shop-2026-07-01/DESIGN.md",
        "planning-artifacts/ux-designs/ux-shop-2026-07-01/EXPERIENCE.md",
        "planning-artifacts/briefs/brief-shop-2026-07-01/brief.md",
        "planning-artifacts/epics.md",
        "planning-artifacts/implementation-readiness.md",
        "specs/spec-digest/SPEC.md",
        "specs/spec-digest/stories.yaml",
        "specs/spec-digest/stories/1-send.md",
        "specs/spec-digest/RETROSPECTIVE.md",
        "specs/notes/x.md",
        "implementation-artifacts/spec-3-2-digest.md",
        "implementation-artifacts/bmad-build-auto-result-x.md",
        "test-artifacts/traceability/gate-decision.json",
    ];
    insta::assert_snapshot!(render_documents(&files));
}

#[test]
fn parts_are_one_document_and_two_forms_are_reported() {
    let files = [
        "planning-artifacts/prd.md",
        "planning-artifacts/prd/index.md",
        "planning-artifacts/prd/goals.md",
        "planning-artifacts/architecture/index.md",
        "planning-artifacts/architecture/stack.md",
        "planning-artifacts/epics/epic-1.md",
        "planning-artifacts/epics/epic-2.md",
        "planning-artifacts/epics/index.md",
    ];
    insta::assert_snapshot!(render_documents(&files));
    insta::assert_snapshot!(render_documents(&["planning-artifacts/epic-10-b.md", "planning-artifacts/epic-2-a.md"]), @r"
    Epics planning-artifacts/epic-2-a.md + planning-artifacts/epic-10-b.md
    ");
}

#[test]
fn the_title_and_steps_of_a_document_are_read() {
    let documents = find_in(&[
        ("_bmad-output/planning-artifacts/prd.md", "---\nstepsCompleted: [1, 2, step-03-x]\ntitle: T\n---\n\n"),
        ("docs/architecture.md", "# The parts\r\n"),
    ]);
    let prd = documents.prd().unwrap();
    assert_eq!(
        (prd.empty, prd.title.as_deref(), prd.steps_completed.join(" ").as_str()),
        (true, Some("T"), "1 2 step-03-x")
    );
    assert_eq!(documents.problems[0].rule, "document-empty");
    assert_eq!(
        documents.first_of_kind(DocumentKind::Architecture).map(|document| document.title.as_deref()),
        Some(Some("The parts"))
    );
    assert_eq!(documents.first_of_kind(DocumentKind::Ux), None);
}

#[test]
fn a_project_without_documents_has_no_problem() {
    assert_eq!(find_in(&[("src/main.rs", "")]), ProjectDocuments::default());
}

/// Files that exist and cannot be read, in directories that contain themselves.
struct UnreadableFiles;

impl ProjectFiles for UnreadableFiles {
    fn read_file(&self, _: &str) -> Result<Option<String>, UnreadableFile> {
        Err(UnreadableFile::NotText { line: 1, column: 1 })
    }

    fn list_names(&self, _: &str) -> Vec<String> {
        ["prd.md", "prd/", "specs/", "SPEC.md", "..md"].map(String::from).to_vec()
    }
}

#[test]
fn folders_that_contain_themselves_are_left_after_a_few_levels() {
    let documents = find_documents(&UnreadableFiles, &ProjectFolders::default());
    assert!(documents.found.len() < 100);
    assert!(documents.problems.iter().any(|problem| problem.rule == "file-not-text"));
}
