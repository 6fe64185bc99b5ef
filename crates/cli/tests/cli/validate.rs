//! `tribunal validate`: its report about a consistent project and about inconsistent ones, as text and as JSON.

use crate::common::Sandbox;

const PLANNING_DIR: &str = "_bmad-output/planning-artifacts";
const STORIES_DIR: &str = "_bmad-output/implementation-artifacts";

/// A project as the installer of 6.0 and its workflows leave it.
fn unplanned_project() -> Sandbox {
    let sandbox = Sandbox::new();
    for (path, text) in [
        ("_bmad/_config/manifest.yaml", "installation:\n  version: 6.0.4\nmodules:\n  - name: bmm\n"),
        ("_bmad/_config/bmad-help.csv", "module,phase\n"),
        ("_bmad/core/tasks/workflow.xml", "<x/>\n"),
        ("_bmad/bmm/config.yaml", "project_name: Shop\n"),
        (".claude/commands/bmad-bmm-create-prd.md", "x\n"),
        (".claude/commands/bmad-bmm-create-architecture.md", "x\n"),
        (".claude/commands/bmad-bmm-create-epics-and-stories.md", "x\n"),
        (".claude/commands/bmad-bmm-sprint-planning.md", "x\n"),
    ] {
        sandbox.write_file(path, text);
    }
    sandbox.write_file(
        &format!("{PLANNING_DIR}/prd.md"),
        "# Shop\n\n- FR1: Somebody can log in.\n- FR2: Somebody can log out.\n",
    );
    sandbox
}

fn planned_project() -> Sandbox {
    let sandbox = unplanned_project();
    sandbox.write_file(&format!("{PLANNING_DIR}/architecture.md"), "# Shop\n\nOne program.\n");
    sandbox.write_file(
        &format!("{PLANNING_DIR}/epics.md"),
        "# Shop\n\n## Epic 1: People\n\nFRs covered: FR1, FR2\n\n### Story 1.1: Log in\n\n\
         **Acceptance Criteria:**\n\n- it opens\n",
    );
    sandbox.write_file(
        &format!("{STORIES_DIR}/sprint-status.yaml"),
        "development_status:\n  epic-1: in-progress\n  1-1-log-in: ready-for-dev\n",
    );
    sandbox.write_file(
        &format!("{STORIES_DIR}/1-1-log-in.md"),
        "# Story 1.1: Log in\n\nStatus: ready-for-dev\n\n## Acceptance Criteria\n\n1. It opens.\n",
    );
    sandbox
}

fn validation_report(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = sandbox.run_tribunal(&[&["validate"], args].concat());
    format!("{}{}exit code {}", output.stdout, output.stderr, output.exit_code.unwrap_or(-1))
}

#[test]
fn a_consistent_project_is_ready() {
    insta::assert_snapshot!(validation_report(&planned_project(), &[]));
    insta::assert_snapshot!(validation_report(&planned_project(), &["--for", "dev-story"]));
}

#[test]
fn inconsistencies_are_reported_with_their_place_and_a_remedy() {
    let sandbox = planned_project();
    sandbox.write_file(
        &format!("{PLANNING_DIR}/epics.md"),
        "# Shop\n\n## Epic 1: People\n\nFRs covered: FR1, FR9\n\n### Story 1.1: Log in\n\n\
         **Acceptance Criteria:**\n\n- it opens\n\n### Story 1.2: Log out\n\n**Acceptance Criteria:**\n\n- it closes\n",
    );
    sandbox.write_file(
        &format!("{STORIES_DIR}/sprint-status.yaml"),
        "development_status:\n  epic-1: in-progress\n  1-1-log-in: review\n  1-1-log-in: done\n",
    );
    sandbox.write_file("tribunal.yaml", "tier: 9\ntargetconfidence: 0.80\n");
    sandbox.write_file(&format!("{PLANNING_DIR}/architecture.md"), "# Shop\n\nSee [\u{1b}[31mit](gone.md).\n");
    insta::assert_snapshot!(validation_report(&sandbox, &[]));
}

#[test]
fn missing_inputs_of_a_workflow_are_reported() {
    insta::assert_snapshot!(validation_report(&unplanned_project(), &["--for", "sprint-planning"]));
    // With `-C` the command to type contains the option, too.
    let output = unplanned_project().run_tribunal(&["-C", ".", "validate", "--for", "epics"]);
    assert!(output.stdout.contains("then check again: tribunal -C . validate --for epics"), "{}", output.stdout);
}

#[test]
fn the_json_document_reports_the_same() {
    let document = unplanned_project().run_json(&["validate", "--for", "sprint-planning"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap());
    for sandbox in [unplanned_project(), planned_project(), Sandbox::new()] {
        let schema = sandbox.run_json(&["schema", "validate"]);
        let validator = jsonschema::validator_for(&schema).unwrap();
        for args in [&["validate"][..], &["validate", "--for", "dev-story"]] {
            let document = sandbox.run_json(args);
            let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{errors:?}");
            assert_eq!(document["schema"], "tribunal.validate/1");
        }
    }
}

#[test]
fn a_directory_without_bmad_is_valid_until_a_workflow_is_named() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(validation_report(&sandbox, &[]));
    insta::assert_snapshot!(validation_report(&sandbox, &["--for", "architecture"]));
}

#[test]
fn an_unknown_workflow_is_refused_with_a_suggestion() {
    let output = unplanned_project().run_tribunal(&["validate", "--for", "architcture"]);
    assert_eq!(output.exit_code, Some(2));
    assert!(output.stderr.contains("did you mean `architecture`?"), "{}", output.stderr);
    let by_command_name = unplanned_project().run_tribunal(&["validate", "--for", "/bmad-bmm-create-prd"]);
    assert_eq!(by_command_name.exit_code, Some(0), "{}{}", by_command_name.stdout, by_command_name.stderr);
}

#[test]
fn files_outside_the_usual_directories_are_not_overlooked() {
    let sandbox = Sandbox::new();
    sandbox.write_file("docs/implementation-artifacts/sprint-status.yaml", "development_status: [\n");
    let output = sandbox.run_tribunal(&["validate"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stdout);
    assert!(!output.stdout.contains("no BMAD found"), "{}", output.stdout);
    let sandbox = Sandbox::new();
    sandbox.write_file("docs/implementation-artifacts/epic-1/1-1-a.md", "# Story 1.1: A\n\nStatus: done\n");
    let output = sandbox.run_tribunal(&["inspect", "project"]);
    assert!(output.stdout.contains("1 story file, but there is no board"), "{}", output.stdout);
}
