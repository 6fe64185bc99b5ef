//! `tribunal validate`: its report about a consistent project and about inconsistent ones, as text and as JSON.

use crate::common::Sandbox;

const PLANNING: &str = "_bmad-output/planning-artifacts";
const STORIES: &str = "_bmad-output/implementation-artifacts";

/// A project as the installer of 6.0 and its workflows leave it.
fn project() -> Sandbox {
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
        sandbox.write(path, text);
    }
    sandbox.write(
        &format!("{PLANNING}/prd.md"),
        "# Shop\n\n- FR1: Somebody can log in.\n- FR2: Somebody can log out.\n",
    );
    sandbox
}

fn planned() -> Sandbox {
    let sandbox = project();
    sandbox.write(&format!("{PLANNING}/architecture.md"), "# Shop\n\nOne program.\n");
    sandbox.write(
        &format!("{PLANNING}/epics.md"),
        "# Shop\n\n## Epic 1: People\n\nFRs covered: FR1, FR2\n\n### Story 1.1: Log in\n\n\
         **Acceptance Criteria:**\n\n- it opens\n",
    );
    sandbox.write(
        &format!("{STORIES}/sprint-status.yaml"),
        "development_status:\n  epic-1: in-progress\n  1-1-log-in: ready-for-dev\n",
    );
    sandbox.write(
        &format!("{STORIES}/1-1-log-in.md"),
        "# Story 1.1: Log in\n\nStatus: ready-for-dev\n\n## Acceptance Criteria\n\n1. It opens.\n",
    );
    sandbox
}

fn said(sandbox: &Sandbox, args: &[&str]) -> String {
    let ran = sandbox.run(&[&["validate"], args].concat());
    format!("{}{}exit code {}", ran.out, ran.err, ran.code.unwrap_or(-1))
}

#[test]
fn what_fits_together_is_ready() {
    insta::assert_snapshot!(said(&planned(), &[]));
    insta::assert_snapshot!(said(&planned(), &["--for", "dev-story"]));
}

#[test]
fn what_does_not_fit_is_named_with_its_place_and_what_to_do() {
    let sandbox = planned();
    sandbox.write(
        &format!("{PLANNING}/epics.md"),
        "# Shop\n\n## Epic 1: People\n\nFRs covered: FR1, FR9\n\n### Story 1.1: Log in\n\n\
         **Acceptance Criteria:**\n\n- it opens\n\n### Story 1.2: Log out\n\n**Acceptance Criteria:**\n\n- it closes\n",
    );
    sandbox.write(
        &format!("{STORIES}/sprint-status.yaml"),
        "development_status:\n  epic-1: in-progress\n  1-1-log-in: review\n  1-1-log-in: done\n",
    );
    sandbox.write("tribunal.yaml", "tier: 9\ntargetconfidence: 0.80\n");
    sandbox.write(&format!("{PLANNING}/architecture.md"), "# Shop\n\nSee [\u{1b}[31mit](gone.md).\n");
    insta::assert_snapshot!(said(&sandbox, &[]));
}

#[test]
fn what_a_workflow_needs_and_does_not_find_is_missing() {
    insta::assert_snapshot!(said(&project(), &["--for", "sprint-planning"]));
    // With `-C` the command to type contains the option, too.
    let ran = project().run(&["-C", ".", "validate", "--for", "epics"]);
    assert!(ran.out.contains("then again: tribunal -C . validate --for epics"), "{}", ran.out);
}

#[test]
fn programs_read_the_same() {
    let document = project().json(&["validate", "--for", "sprint-planning"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap());
    for sandbox in [project(), planned(), Sandbox::new()] {
        let schema = sandbox.json(&["schema", "validate"]);
        let validator = jsonschema::validator_for(&schema).unwrap();
        for args in [&["validate"][..], &["validate", "--for", "dev-story"]] {
            let document = sandbox.json(args);
            let errors: Vec<String> =
                validator.iter_errors(&document).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{errors:?}");
            assert_eq!(document["schema"], "tribunal.validate/1");
        }
    }
}

#[test]
fn a_folder_without_bmad_is_fine_until_a_workflow_is_asked_for() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(said(&sandbox, &[]));
    insta::assert_snapshot!(said(&sandbox, &["--for", "architecture"]));
}

#[test]
fn a_workflow_that_nobody_knows_is_a_slip() {
    let ran = project().run(&["validate", "--for", "architcture"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("did you mean architecture?"), "{}", ran.err);
    let by_its_own_name = project().run(&["validate", "--for", "/bmad-bmm-create-prd"]);
    assert_eq!(by_its_own_name.code, Some(0), "{}{}", by_its_own_name.out, by_its_own_name.err);
}
