//! `tribunal inspect project` through the binary: projects of each era, a directory without BMAD, and broken files.

use crate::common::Sandbox;

const NO_FINDINGS_SCRIPT: &str = "tasks: [{task: '*', steps: [{findings: []}]}]\n";

/// Returns the report without its first line, which names the directory.
fn project_report(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = sandbox.run_tribunal(&[&["inspect", "project"], args].concat());
    let report_lines = output.stdout.lines().skip(1).collect::<Vec<_>>().join("\n");
    format!("exit {}\n{report_lines}", output.exit_code.unwrap_or(-1))
}

#[test]
fn a_directory_without_bmad_has_a_short_report() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    insta::assert_snapshot!(project_report(&sandbox, &[]));
}

#[test]
fn an_early_project_is_explained_with_a_tier_for_its_next_task() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.write_file(
        "_bmad/_config/manifest.yaml",
        "installation:\n  version: 6.0.0-alpha.22\nmodules:\n  - core\n  - bmm\n",
    );
    sandbox.write_file("_bmad/bmm/workflows/workflow-status/workflow.yaml", "x: 1\n");
    sandbox.write_file(
        "_bmad/bmm/config.yaml",
        "output_folder: \"{project-root}/out\"\nplanning_artifacts: \"{project-root}/plans\"\n",
    );
    sandbox.write_file(".claude/commands/bmad/bmm/workflows/dev-story.md", "x\n");
    sandbox.write_file("_bmad/_config/agent-manifest.csv", "name,displayName,title,module\ndev,Ada,Developer,bmm\n");
    sandbox.write_file("plans/prd.md", "# PRD\n\nWords.\n");
    insta::assert_snapshot!(project_report(&sandbox, &["--task", "Fix the typo"]));
}

#[test]
fn a_late_project_names_files_for_clients_without_commands() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.write_file(
        "_bmad/_config/manifest.yaml",
        "installation:\n  version: 6.12.0\nmodules:\n  - {name: bmm, version: 6.12.0}\n",
    );
    sandbox.write_file(
        "_bmad/config.toml",
        "[core]\noutput_folder = \"out\"\n[agents.bmad-agent-dev]\nmodule = \"bmm\"\nname = \"Ada\"\n",
    );
    sandbox.write_file(".agents/skills/bmad-build-auto/SKILL.md", "x\n");
    sandbox.write_file("out/implementation-artifacts/sprint-status.yaml", "development_status:\n  1-1-a: done\n");
    insta::assert_snapshot!(project_report(&sandbox, &["--for", "codex"]));
}

#[test]
fn broken_files_are_reported_with_their_line_and_exit_code_3() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.write_file("_bmad/_config/manifest.yaml", "installation:\n  version: 6.12.0\n");
    sandbox.write_file("_bmad/bmm/config.yaml", "output_folder: /srv/\u{1b}[2Jout\nplanning_artifacts: [a]\n");
    sandbox.write_file("_bmad/core/config.yaml", "a: [\n");
    insta::assert_snapshot!(project_report(&sandbox, &[]));
}

#[test]
fn an_agent_can_be_named_by_any_of_its_names_and_ambiguous_names_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write_file("_bmad/_config/manifest.yaml", "installation:\n  version: 6.0.4\nmodules: []\n");
    sandbox.write_file(
        "_bmad/_config/agent-manifest.csv",
        "name,displayName,title,role,module\ndev,Amelia,Developer,r,bmm\ndev,Bo,Game Developer,r,gds\n",
    );
    let inspect_agent = |agent_name: &str| sandbox.run_tribunal(&["inspect", "project", "--agent", agent_name]);
    assert!(
        inspect_agent("bmm:dev").stdout.contains("agent      bmm:dev (Amelia, Developer)"),
        "{}",
        inspect_agent("bmm:dev").stdout
    );
    assert!(inspect_agent("Bo").stdout.contains("agent      gds:dev (Bo, Game Developer)"));
    assert_eq!(inspect_agent("dev").exit_code, Some(2));
    assert!(inspect_agent("dev").stderr.contains("it could be bmm:dev or gds:dev"), "{}", inspect_agent("dev").stderr);
    assert!(inspect_agent("Ameli").stderr.contains("did you mean `bmm:dev`?"), "{}", inspect_agent("Ameli").stderr);
}
